// SPDX-License-Identifier: Apache-2.0
// What the shipped models ask cuDNN for: every convolution and attention of the models with the plugin's
// default sizes, and of the train stages of plans/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/dnn/ops/attention_graphs.h"
#include "kernels/cuda/dnn/ops/convolution_graph.h"
#include "plugins/train/models/model.h"

namespace muster::deviceless {

struct ShippedModel {
  std::string from;  ///< "defaults" or the plan's stage
  train::ModelSpec spec;
  std::vector<Dtype> dtypes;
};
std::vector<ShippedModel> shippedModels();

/// A product of a convolution as a network needs it.
struct ShippedConvolution {
  Dtype dtype = Dtype::kF32;
  cuda::ConvolutionShape shape;
  cuda::ConvolutionProduct product = cuda::ConvolutionProduct::kOutput;
  bool added = false;
};
/// By their names, each once. The gradient of an input that others use too is listed both ways: written, and
/// added.
std::map<std::string, ShippedConvolution> shippedConvolutions();

/// Each size once, causal or not.
std::map<std::string, cuda::AttentionShape> shippedAttention();

}  // namespace muster::deviceless
