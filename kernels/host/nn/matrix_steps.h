// SPDX-License-Identifier: Apache-2.0
// A weight and the three products with it (forward, gradient of the weight, gradient of the input): shared by
// convolutions and linear layers.
#pragma once

#include "kernels/host/nn/op.h"

namespace muster::host {

/// A product as oneDNN does it.
struct Product {
  dnnl::primitive primitive;
  memory::desc weights;  ///< what it wants, or gives in the case of the weight's gradient
  memory::desc scratch;
};

/// Runs the products over one weight. The flat buffers hold the weight in f32, in the layout that forward
/// wants, or in bf16 (where forward wants a copy anyway) in that of the gradient. Where a product wants it in
/// another layout or type, it is reordered in scratch memory.
class WeightSteps {
 public:
  memory::desc sourceDesc, outputDesc;

  /// Before take(): the gradient of the weight reads both in these layouts, into which they are reordered.
  void readUnblocked(const memory::desc& source, const memory::desc& output) {
    unblockedSource_ = source;
    unblockedOutput_ = output;
  }
  /// Takes oneDNN's choices; no `data` where the input wants no gradient. Gives the weight its place, asks
  /// for scratch memory. kUnsupported where bf16 has nothing but oneDNN's slow reference code.
  Status take(Plan& plan, const Layer& layer, const dnnl::primitive_desc& forward,
              const dnnl::primitive_desc& gradient, const dnnl::primitive_desc* data);
  void bindForward(Plan& plan, const Layer& layer, const void* x, void* y);
  void bindBackward(Plan& plan, const Layer& layer, const void* x, const void* dy, void* dx);
  void forward(Engine& engine) const { runAll(engine, forward_); }
  void backward(Engine& engine) const { runAll(engine, backward_); }

 private:
  static void runAll(Engine& engine, const std::vector<Step>& steps);
  Product admit(Plan& plan, const dnnl::primitive_desc& desc, const memory::desc& weights);
  [[nodiscard]] memory scratch(const Plan& plan, const Product& product) const;
  /// What lies at `data` as the gradient of the weight wants it; where that takes a reorder, a step is added.
  memory unblocked(Plan& plan, const memory::desc& desc, const void* data, const memory::desc& wanted,
                   uint64_t at);
  /// The weight as a product wants it; where that takes a reorder, a step is added.
  memory weightFor(Plan& plan, const Layer& layer, const Product& product, std::vector<Step>& steps);

  Product forwardProduct_, gradientProduct_, dataProduct_;
  bool hasData_ = false;
  bool dataIsMatmul_ = false;  ///< the gradient of the input is a plain product, with its arguments
  std::string reference_;      ///< reference code that oneDNN took
  memory::desc stored_;
  memory::desc unblockedSource_, unblockedOutput_;  ///< empty: the gradient reads both as they lie
  uint64_t sourceAt_ = 0, outputAt_ = 0;            ///< in scratch memory, behind a reordered weight
  uint64_t room_ = 0;  ///< floats at the start of scratch memory, for what is reordered
  std::vector<Step> forward_, backward_;
};

/// Whether oneDNN has nothing but its slow general code for this.
inline bool isReference(const dnnl::primitive_desc& desc) {
  return std::string_view(desc.impl_info_str()).starts_with("ref");
}

/// oneDNN's description of the gradient of a weight, always f32: `make` describes it in a layout, `any`
/// leaves the layout open. Beside an f32 weight, that one's layout is kept where it costs nothing.
template <typename Make>
auto describeGradient(const Make& make, const memory::desc& any, const memory::desc& forwardWeights) {
  auto best = make(any);
  if (forwardWeights.data_type() != memory::data_type::f32 || best.diff_weights_desc() == forwardWeights)
    return best;
  try {
    auto stored = make(forwardWeights);
    if (std::string(stored.impl_info_str()) == best.impl_info_str()) return stored;
  } catch (const dnnl::error&) {  // not offered in that layout
  }
  return best;
}

}  // namespace muster::host
