// SPDX-License-Identifier: Apache-2.0
// One operation of a program on the GPU, and the plan that operations are made with.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/dnn/library/engine.h"
#include "kernels/cuda/dnn/library/storage.h"

namespace muster::cuda {

/// A tensor of the network in this program: images (4 dimensions) as padded NHWC, everything else row-major.
struct Value {
  void* data = nullptr;      ///< inputs of indices: int32_t
  void* gradient = nullptr;  ///< while backward is planned: where its gradient is collected
  bool needsGradient = true;
  ImageShape image;      ///< of images only
  int64_t elements = 0;  ///< padding included
};

/// Where a parameter lies in the flat buffers.
struct ParameterPlace {
  uint64_t first = 0;
  uint64_t count = 0;
  FilterShape filter;  ///< of convolutions' weights; else empty
};

/// Running statistics of one batch normalisation, over the padded channels.
struct StatisticsPlace {
  float* mean = nullptr;
  float* variance = nullptr;
};

/// What embeddings need to know of an input of tokens: see EmbeddingArrays.
struct TokenOrder {
  int tensor = -1;
  int64_t rows = 0;
  int32_t* order = nullptr;
  int32_t* starts = nullptr;
};

/// What operations are made with. Forward order first, then planBackward() in reverse: all memory is fixed
/// before the first step.
struct Plan {
  Engine& engine;
  Storage& storage;
  const Network& network;
  std::vector<Value> values;
  std::vector<ParameterPlace> places;
  std::vector<StatisticsPlace> statistics;
  std::vector<TokenOrder> tokens;
  float* parameters = nullptr;  ///< the flat buffers exist once every operation has chosen its layouts
  float* gradients = nullptr;
  std::byte* weights = nullptr;  ///< what products read: the 16-bit copy, or the parameters themselves
  uint64_t scratchBytes = 0;
  uint64_t workspaceBytes = 0;
  void* scratch = nullptr;  ///< shared by all operations, which run one after the other

  Value& of(Tensor tensor) { return values[static_cast<size_t>(tensor.id)]; }
  [[nodiscard]] int64_t bytesPerElement() const { return bytesOf(engine.element); }
  float* parameter(int index) { return parameters + places[static_cast<size_t>(index)].first; }
  float* gradient(int index) { return gradients + places[static_cast<size_t>(index)].first; }
  void* weight(int index) {
    return weights + places[static_cast<size_t>(index)].first * static_cast<uint64_t>(bytesPerElement());
  }
  /// Ask for shared memory; it is there when bind() is called, and the workspace when tune() is.
  void wantScratch(uint64_t bytes) { scratchBytes = std::max(scratchBytes, bytes); }
  void wantWorkspace(uint64_t bytes) { workspaceBytes = std::max(workspaceBytes, bytes); }

  /// Gives the output of a layer its shape and memory.
  Status makeValue(Tensor tensor);
  [[nodiscard]] bool isImage(Tensor tensor) const { return network.shape(tensor).size() == 4; }
  /// Where to leave a gradient of `tensor`; kInternal for one that needs none.
  Result<Sink> sinkOf(Tensor tensor);
  /// The collected gradient of a layer's output; kUsage where no later layer uses it. The caller gives it
  /// back to the storage, or hands it on.
  Result<void*> takeGradient(Tensor tensor);
};

/// Made in steps: prepare() chooses layouts and makes the output, bind() finds the parameters,
/// planBackward() moves gradients, tune() chooses algorithms, which may write over any value.
class Op {
 public:
  explicit Op(const Layer& layer) : layer_(layer) {}
  virtual ~Op() = default;
  virtual Status prepare(Plan& plan) = 0;
  virtual Status bind(Plan& plan) = 0;
  virtual Status planBackward(Plan& plan) = 0;
  virtual Status tune() { return {}; }
  virtual Status forward(Pass pass) = 0;
  virtual Status backward() = 0;
  /// How it is done, where that is not always the same: "attention fused by cudnn".
  [[nodiscard]] virtual std::vector<std::string> methods() const { return {}; }
  [[nodiscard]] const Layer& layer() const { return layer_; }

 protected:
  const Layer& layer_;
};

/// kUnsupported for a layer of rows that is given images.
Status wantRows(const Plan& plan, const Layer& layer);

Result<std::unique_ptr<Op>> makeOp(const Layer& layer);
std::unique_ptr<Op> makeConvolution(const Layer& layer);
std::unique_ptr<Op> makeMaxPool(const Layer& layer);
std::unique_ptr<Op> makeAveragePool(const Layer& layer);
std::unique_ptr<Op> makeLinear(const Layer& layer);
std::unique_ptr<Op> makeEmbedding(const Layer& layer);
std::unique_ptr<Op> makeLayerNorm(const Layer& layer);
std::unique_ptr<Op> makeAttention(const Layer& layer);

/// The end of a program: its loss.
class LossOp : public Op {
 public:
  using Op::Op;
  [[nodiscard]] virtual const double* sums() const = 0;  ///< on the GPU: sum of losses, right rows
  [[nodiscard]] virtual int64_t rows() const = 0;
};
std::unique_ptr<LossOp> makeCrossEntropy(const Layer& layer);

}  // namespace muster::cuda
