// SPDX-License-Identifier: Apache-2.0
// A neural network as data: layers, shapes and parameters. Backends compile it, see kernels/interfaces/nn.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster {

/// A value of a network: an input, or what a layer gives. Its shape is `Network::shape()`.
struct Tensor {
  int id = -1;
  [[nodiscard]] bool there() const { return id >= 0; }
};

using Shape = std::vector<int64_t>;
int64_t elementsOf(const Shape& shape);
std::string shapeText(const Shape& shape);  ///< "8x64x56x56"

enum class ParameterRole { kWeight, kBias, kScale, kShift };

/// One trained parameter. Shapes and names follow PyTorch: convolutions [out, in, height, width], linear
/// layers [out, in], embeddings [rows, width].
struct Parameter {
  std::string name = {};  ///< "layer1.0.conv1.weight"
  Shape shape;
  ParameterRole role = ParameterRole::kWeight;
  [[nodiscard]] int64_t elements() const { return elementsOf(shape); }
};

/// Running statistics of one batch normalisation: not trained, but part of the model's state.
struct Statistics {
  std::string name = {};  ///< "layer1.0.bn1"; PyTorch's running_mean and running_var
  int64_t channels = 0;
};

enum class LayerKind {
  kConvolution,
  kMaxPool,
  kGlobalAveragePool,
  kLinear,
  kEmbedding,
  kLayerNorm,
  kAttention,
  kCrossEntropy,
};
const char* layerKindName(LayerKind kind);

enum class Activation { kNone, kRelu, kGelu };  ///< GELU is the exact one, with erf

/// y = relu(batchNorm(conv(x)) + residual), in parts where parts are left out. Images are [n, channels,
/// height, width].
struct Convolution {
  std::string name = {};  ///< of its weight
  std::string norm = {};  ///< of its batch normalisation; empty: none
  int64_t channels = 0;   ///< of the output
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  bool bias = false;  ///< only where there is no batch normalisation
  bool relu = false;
  Tensor residual = {};  ///< of the output's shape; only with batch normalisation
};

/// Windows of kernel x kernel; padding never wins (it counts as -infinity).
struct MaxPool {
  std::string name = {};
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t padding = 0;
};

/// y = activation(x W^T + bias) + residual, over the last dimension of x.
struct Linear {
  std::string name = {};
  int64_t features = 0;
  bool bias = true;
  Activation activation = Activation::kNone;
  Tensor residual = {};  ///< of the output's shape
};

/// y[n, t] = table[index[n, t]] + positions[t].
struct Embedding {
  std::string name = {};       ///< of the table
  std::string positions = {};  ///< of the learned positions; empty: none
  int64_t rows = 0;            ///< of the table: the indices' limit
  int64_t width = 0;
};

/// Scaled dot-product attention over packed projections: x is [n, t, 3 d] holding q, k and v, each of `heads`
/// heads side by side; y is [n, t, d]. Scores are scaled by 1/sqrt(d / heads).
struct Attention {
  std::string name = {};
  int64_t heads = 1;
  bool causal = true;
};

constexpr double kNormEpsilon = 1e-5;  ///< of batch and layer normalisation, PyTorch's default
constexpr double kNormMomentum = 0.1;  ///< of running statistics, PyTorch's default

/// A layer as compiled by backends. Which spec counts is told by `kind`.
struct Layer {
  LayerKind kind = LayerKind::kLinear;
  std::string name = {};
  std::vector<Tensor> inputs;  ///< x, and for kCrossEntropy the labels
  Tensor residual;
  Tensor output;
  Convolution convolution;
  MaxPool maxPool;
  Linear linear;
  Embedding embedding;
  Attention attention;
  int weight =
      -1;         ///< index in parameters(): of the convolution, linear layer, embedding, layer norm's scale
  int bias = -1;  ///< bias, positions, layer norm's shift
  int normScale = -1;  ///< of the batch normalisation
  int normShift = -1;
  int statistics = -1;  ///< index in statistics()
};

/// Built once, layer after layer in the order of the forward pass; pure data, no device. A mistake (shapes
/// that do not fit) is kept and returned by check(), so that models read as a list of layers.
class Network {
 public:
  /// f32 images [batch, channels, height, width].
  Tensor images(int64_t batch, int64_t channels, int64_t height, int64_t width);
  /// i32 tokens or labels of any shape, 0 <= value < limit.
  Tensor indices(const Shape& shape, int64_t limit);

  Tensor add(const Convolution& spec, Tensor x);
  Tensor add(const MaxPool& spec, Tensor x);
  Tensor add(const Linear& spec, Tensor x);
  Tensor add(const Embedding& spec, Tensor tokens);
  Tensor add(const Attention& spec, Tensor x);
  Tensor layerNorm(const std::string& name, Tensor x);
  Tensor globalAveragePool(Tensor x);  ///< [n, c, h, w] -> [n, c]
  /// Softmax, cross-entropy against labels and its gradient in one: the mean over all rows. Logits are
  /// [..., classes], labels [...]. Ends the network; gives a scalar.
  Tensor crossEntropy(Tensor logits, Tensor labels);

  /// The first mistake made while building, or a network that has no loss.
  [[nodiscard]] Status check() const;

  [[nodiscard]] const Shape& shape(Tensor tensor) const {
    return tensors_[static_cast<size_t>(tensor.id)].shape;
  }
  /// The limit of an input of indices, 0 for anything else.
  [[nodiscard]] int64_t limit(Tensor tensor) const { return tensors_[static_cast<size_t>(tensor.id)].limit; }
  [[nodiscard]] bool isInput(Tensor tensor) const { return tensors_[static_cast<size_t>(tensor.id)].input; }
  [[nodiscard]] int tensorCount() const { return static_cast<int>(tensors_.size()); }
  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Statistics>& statistics() const { return statistics_; }
  [[nodiscard]] int64_t parameterElements() const;  ///< all of them: what papers call "parameters"
  /// Floating point operations of matrix products (2 per multiply-add) of one forward pass over the batch.
  [[nodiscard]] double forwardFlops() const;
  /// The same of forward and backward; nothing flows back into inputs.
  [[nodiscard]] double trainingFlops() const;

 private:
  struct Value {
    Shape shape;
    int64_t limit = 0;
    bool input = false;
  };
  Tensor value(Shape shape, int64_t limit = 0, bool input = false);
  Tensor finish(Layer layer, Shape shape);
  int parameter(const std::string& name, Shape shape, ParameterRole role);
  bool wrong(const std::string& layer, const std::string& what);
  /// Whether x exists and has `dimensions` dimensions (0: any), else a mistake is noted.
  bool fits(const std::string& layer, Tensor x, size_t dimensions);

  std::vector<Value> tensors_;
  std::vector<Layer> layers_;
  std::vector<Parameter> parameters_;
  std::vector<Statistics> statistics_;
  std::string mistake_;
};

/// Of one layer: 2 per multiply-add of its matrix products, forward; normalisation and the like count
/// nothing.
double layerFlops(const Network& network, const Layer& layer);

}  // namespace muster
