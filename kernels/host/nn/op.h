// SPDX-License-Identifier: Apache-2.0
// One operation of a program, and the plan that operations are made with.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/host/nn/loops/loops.h"
#include "kernels/host/nn/onednn.h"
#include "kernels/host/nn/storage.h"
#include "kernels/interfaces/nn.h"

namespace muster::host {

/// A tensor of the network in this program.
struct Value {
  memory::desc desc;         ///< images: blocked by channels; everything else row-major
  void* data = nullptr;      ///< inputs of indices: int32_t
  std::vector<void*> parts;  ///< while backward is planned: its gradient, as parts to be added
  bool needsGradient = true;
};

/// Where a parameter lies, and in which layout.
struct ParameterPlace {
  memory::desc desc;
  uint64_t first = 0;  ///< in the flat buffers
  uint64_t count = 0;
};

/// Running statistics of one batch normalisation, padded to whole blocks of channels.
struct StatisticsPlace {
  float* mean = nullptr;
  float* variance = nullptr;
};

/// What operations are made with. Forward order first, then planBackward() in reverse: all memory is fixed
/// before the first step.
struct Plan {
  Engine& engine;
  Storage& storage;
  const Network& network;
  memory::data_type type = memory::data_type::f32;  ///< of activations and their gradients
  const Loops& loops;                               ///< for this type
  std::vector<Value> values;
  std::vector<ParameterPlace> places;
  std::vector<StatisticsPlace> statistics;
  float* parameters = nullptr;  ///< both flat buffers exist once every operation has chosen its layouts
  float* gradients = nullptr;
  int lanes = 16;  ///< channels of a block of images
  uint64_t scratchFloats = 0;
  float* scratch = nullptr;            ///< shared by all operations, which run one after the other
  std::set<std::string> kernels = {};  ///< what oneDNN took for the products: "brgemm:avx512_core_bf16"

  Value& of(Tensor tensor) { return values[static_cast<size_t>(tensor.id)]; }
  float* parameter(int index) { return parameters + places[static_cast<size_t>(index)].first; }
  float* gradient(int index) { return gradients + places[static_cast<size_t>(index)].first; }
  [[nodiscard]] int64_t elementBytes() const { return static_cast<int64_t>(memory::data_type_size(type)); }
  /// Asks for shared scratch memory; `scratch` is there when bind() is called.
  void wantScratch(uint64_t floats) { scratchFloats = scratchFloats > floats ? scratchFloats : floats; }

  /// Blocked images of a 4-dimensional shape.
  [[nodiscard]] memory::desc imageDesc(const Shape& shape) const;
  [[nodiscard]] ImageBlocks blocksOf(const Shape& shape) const;
  /// Makes the memory of a layer's output.
  Result<void*> makeOutput(Tensor tensor, const memory::desc& desc);
  /// The same for rows: everything that is no image.
  Result<void*> makeRows(Tensor tensor) { return makeOutput(tensor, plain(network.shape(tensor), type)); }
  /// Memory for a gradient of `tensor`, which is added to its parts.
  Result<void*> newPart(Tensor tensor);
};

/// The gradient of one value as an operation finds it: at most two parts, in memory of its own.
struct Incoming {
  void* first = nullptr;
  const void* second = nullptr;  ///< may be missing
  std::vector<void*> others;     ///< to be added to `first` before use
};

/// Made in three steps: the constructor-like prepare() chooses layouts and makes the output, bind() finds the
/// parameters, planBackward() moves gradients. Run functions may throw dnnl::error.
class Op {
 public:
  Op(const Layer& layer, Plan& plan) : layer_(layer), engine_(plan.engine), loops_(plan.loops) {}
  virtual ~Op() = default;
  /// Chooses layouts: of the output (makes its memory) and of the parameters.
  virtual Status prepare(Plan& plan) = 0;
  /// Parameters and scratch have their places now.
  virtual Status bind(Plan& plan) = 0;
  /// Takes the gradient of the output from its parts, and adds parts to the inputs' values.
  virtual Status planBackward(Plan& plan) = 0;
  virtual void forward(Pass pass) = 0;
  virtual void backward() = 0;
  [[nodiscard]] const Layer& layer() const { return layer_; }

 protected:
  /// Adds what is beyond the parts of the output's gradient that the operation takes.
  void gather(int64_t count) const {
    for (const void* part : incoming_.others) loops_.addTo(incoming_.first, part, count);
  }

  const Layer& layer_;
  Engine& engine_;
  const Loops& loops_;
  Incoming incoming_;  ///< the output's gradient
};

/// Takes the parts of a tensor's gradient; `limit` 1 or 2 of them stay separate. kInternal where there is
/// none.
Result<Incoming> takeGradient(Plan& plan, Tensor tensor, size_t limit);
/// Gives back the parts that were only read.
void giveBack(Plan& plan, const Incoming& incoming);

Result<std::unique_ptr<Op>> makeOp(const Layer& layer, Plan& plan);
std::unique_ptr<Op> makeConvolution(const Layer& layer, Plan& plan);
std::unique_ptr<Op> makeMaxPool(const Layer& layer, Plan& plan);
std::unique_ptr<Op> makeAveragePool(const Layer& layer, Plan& plan);
std::unique_ptr<Op> makeLinear(const Layer& layer, Plan& plan);
std::unique_ptr<Op> makeEmbedding(const Layer& layer, Plan& plan);
std::unique_ptr<Op> makeLayerNorm(const Layer& layer, Plan& plan);
std::unique_ptr<Op> makeAttention(const Layer& layer, Plan& plan);

/// The end of a program: its loss.
class LossOp : public Op {
 public:
  using Op::Op;
  [[nodiscard]] virtual double loss() const = 0;
  [[nodiscard]] virtual int64_t correct() const = 0;
};
std::unique_ptr<LossOp> makeCrossEntropy(const Layer& layer, Plan& plan);

}  // namespace muster::host
