// SPDX-License-Identifier: Apache-2.0
// The models that are trained, as networks of kernels/spec/network.h.
#pragma once

#include <string>
#include <vector>

#include "kernels/interfaces/nn.h"
#include "kernels/spec/network.h"

namespace muster::train {

/// Which model, and every size of it.
struct ModelSpec {
  std::string name = "resnet18";  ///< resnet18, resnet50 or transformer
  int64_t batch = 32;             ///< samples of one rank's step
  // Images.
  int64_t classes = 1000;
  int64_t imageSize = 224;
  int64_t width = 64;  ///< channels of the first stage
  // Text.
  int64_t vocabulary = 32000;
  int64_t dimension = 1024;
  int64_t heads = 16;
  int64_t layers = 12;
  int64_t feedForward = 4096;
  int64_t sequence = 512;

  [[nodiscard]] bool readsTokens() const { return name == "transformer"; }
};

/// A network with its ends.
struct Model {
  Network network;
  Tensor input;   ///< images [batch, 3, size, size], or tokens [batch, sequence]
  Tensor labels;  ///< [batch], or [batch, sequence]
  Tensor logits;  ///< [labels..., classes or vocabulary]
};

/// ResNet-18 and -50 (He, Zhang, Ren, Sun 2015; 50 as "v1.5", its stride in the 3x3), names and shapes of
/// parameters as torchvision has them. The transformer is a decoder-only language model with layer norm
/// before each part, as GPT-2 (Radford et al. 2019); its output layer is its own and has no bias. kUsage says
/// which size does not fit.
Result<Model> buildModel(const ModelSpec& spec);

/// Gives parameters their start: convolutions normal by He et al. 2015 over the outputs, normalisations one
/// and zero, the classifier uniform within 1/sqrt(inputs), as torchvision does; the transformer normal with
/// sigma 0.02, and 0.02/sqrt(2 layers) where a part ends in the residual stream, as GPT-2. A pure function of
/// the seed.
Status initialise(const ModelSpec& spec, uint64_t seed, Program& program);

}  // namespace muster::train
