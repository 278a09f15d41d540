// SPDX-License-Identifier: Apache-2.0
// ResNet-18 and ResNet-50 v1.5.
#include "plugins/train/models/resnet.h"

#include <array>

namespace muster::train {
namespace {

/// What tells the depths apart.
struct Depth {
  bool bottleneck;
  std::array<int, 4> blocks;
};

Convolution convolution(const std::string& name, const std::string& norm, int64_t channels, int64_t kernel,
                        int64_t stride, bool relu) {
  Convolution spec;
  spec.name = name;
  spec.norm = norm;
  spec.channels = channels;
  spec.kernel = kernel;
  spec.stride = stride;
  spec.padding = kernel / 2;
  spec.relu = relu;
  return spec;
}

/// What a block adds to its result: its input, or a projection of it where shapes differ.
Tensor shortcut(Network& network, const std::string& name, Tensor x, int64_t channels, int64_t stride) {
  if (!x.there() || (stride == 1 && network.shape(x)[1] == channels)) return x;
  return network.add(convolution(name + ".downsample.0", name + ".downsample.1", channels, 1, stride, false),
                     x);
}

/// Two 3x3 convolutions.
Tensor basicBlock(Network& network, const std::string& name, Tensor x, int64_t width, int64_t stride) {
  const Tensor residual = shortcut(network, name, x, width, stride);
  const Tensor y = network.add(convolution(name + ".conv1", name + ".bn1", width, 3, stride, true), x);
  Convolution last = convolution(name + ".conv2", name + ".bn2", width, 3, 1, true);
  last.residual = residual;
  return network.add(last, y);
}

/// 1x1, 3x3 and 1x1 to four times the width.
Tensor bottleneck(Network& network, const std::string& name, Tensor x, int64_t width, int64_t stride) {
  const Tensor residual = shortcut(network, name, x, 4 * width, stride);
  const Tensor a = network.add(convolution(name + ".conv1", name + ".bn1", width, 1, 1, true), x);
  const Tensor b = network.add(convolution(name + ".conv2", name + ".bn2", width, 3, stride, true), a);
  Convolution last = convolution(name + ".conv3", name + ".bn3", 4 * width, 1, 1, true);
  last.residual = residual;
  return network.add(last, b);
}

Tensor stage(Network& network, const Depth& depth, int number, Tensor x, int64_t width) {
  for (int i = 0; i < depth.blocks[static_cast<size_t>(number)]; ++i) {
    const std::string name = "layer" + std::to_string(number + 1) + "." + std::to_string(i);
    const int64_t stride = number > 0 && i == 0 ? 2 : 1;
    x = depth.bottleneck ? bottleneck(network, name, x, width, stride)
                         : basicBlock(network, name, x, width, stride);
  }
  return x;
}

}  // namespace

Model buildResnet(const ModelSpec& spec) {
  const Depth depth = spec.name == "resnet50" ? Depth{true, {3, 4, 6, 3}} : Depth{false, {2, 2, 2, 2}};
  Model model;
  Network& network = model.network;
  model.input = network.images(spec.batch, 3, spec.imageSize, spec.imageSize);
  model.labels = network.indices({spec.batch}, spec.classes);
  Tensor x = network.add(convolution("conv1", "bn1", spec.width, 7, 2, true), model.input);
  x = network.add(MaxPool{"maxpool", 3, 2, 1}, x);
  for (int number = 0; number < 4; ++number) x = stage(network, depth, number, x, spec.width << number);
  x = network.globalAveragePool(x);
  Linear classifier;
  classifier.name = "fc";
  classifier.features = spec.classes;
  model.logits = network.add(classifier, x);
  network.crossEntropy(model.logits, model.labels);
  return model;
}

}  // namespace muster::train
