// SPDX-License-Identifier: Apache-2.0
// Networks as data: shapes, parameters, operations, and the mistakes that are named.
#include "kernels/spec/network.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Network, GivesShapesAndParametersAsPyTorchDoes) {
  Network network;
  Tensor x = network.images(2, 3, 9, 9);
  x = network.add(
      Convolution{.name = "conv1", .norm = "bn1", .channels = 8, .kernel = 7, .stride = 2, .padding = 3}, x);
  EXPECT_EQ(network.shape(x), (Shape{2, 8, 5, 5}));
  x = network.add(MaxPool{.name = "pool", .kernel = 3, .stride = 2, .padding = 1}, x);
  EXPECT_EQ(network.shape(x), (Shape{2, 8, 3, 3}));
  x = network.globalAveragePool(x);
  EXPECT_EQ(network.shape(x), (Shape{2, 8}));
  x = network.add(Linear{.name = "fc", .features = 4}, x);
  network.crossEntropy(x, network.indices({2}, 4));
  ASSERT_TRUE(network.check().ok());
  std::string names;
  for (const Parameter& p : network.parameters()) names += p.name + " " + shapeText(p.shape) + "; ";
  EXPECT_EQ(names, "conv1.weight 8x3x7x7; bn1.weight 8; bn1.bias 8; fc.weight 4x8; fc.bias 4; ");
  EXPECT_EQ(network.parameterElements(), 8 * 3 * 49 + 16 + 32 + 4);
  ASSERT_EQ(network.statistics().size(), 1u);
  EXPECT_EQ(network.statistics()[0].name, "bn1");
}

TEST(Network, CountsOperationsOfMatrixProducts) {
  Network network;
  const Tensor tokens = network.indices({2, 10}, 7);
  Tensor x = network.add(Embedding{.name = "t", .rows = 7, .width = 4}, tokens);
  x = network.add(Linear{.name = "qkv", .features = 12}, x);
  x = network.add(Attention{.name = "a", .heads = 2, .causal = false}, x);
  network.crossEntropy(network.add(Linear{.name = "head", .features = 7}, x), network.indices({2, 10}, 7));
  const double qkv = 2.0 * 20 * 4 * 12;
  const double attention = 2 * (2.0 * 2 * 10 * 10 * 4);
  const double head = 2.0 * 20 * 4 * 7;
  EXPECT_EQ(network.forwardFlops(), qkv + attention + head);
  EXPECT_EQ(network.trainingFlops(), 3 * (qkv + attention + head));
}

TEST(Network, CountsNoGradientOfItsInputs) {
  Network network;
  const Tensor x = network.add(Convolution{.name = "a", .channels = 4}, network.images(1, 3, 2, 2));
  network.crossEntropy(network.add(Linear{.name = "fc", .features = 2}, network.globalAveragePool(x)),
                       network.indices({1}, 2));
  EXPECT_EQ(network.forwardFlops(), 2.0 * 4 * 4 * 3 + 2 * 4 * 2);
  EXPECT_EQ(network.trainingFlops(), 2 * (2.0 * 4 * 4 * 3) + 3 * (2 * 4 * 2));
}

/// What check() says of a network that `build` adds one wrong layer to.
template <typename Build>
std::string mistakeOf(Build build) {
  Network network;
  build(network);
  const Status status = network.check();
  if (status.ok()) return "none";
  EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  return status.error().message;
}

TEST(NetworkMistakes, NameLayerAndShapes) {
  EXPECT_EQ(mistakeOf([](Network& n) {
              n.add(Convolution{.name = "c", .channels = 4, .kernel = 5}, n.images(1, 3, 4, 4));
            }),
            "layer \"c\": 4 channels of 5x5 windows, stride 1, padding 0 do not fit 1x3x4x4");
  EXPECT_EQ(mistakeOf([](Network& n) {
              n.add(Convolution{.name = "c", .channels = 4}, n.indices({1, 2}, 3));
            }),
            "layer \"c\": its input is 1x2, expected 4 dimensions");
  EXPECT_EQ(mistakeOf([](Network& n) { n.add(Linear{.name = "l", .features = 4}, Tensor{}); }),
            "layer \"l\": its input is not a tensor of this network; an earlier layer is wrong, or it was "
            "left out");
  EXPECT_EQ(mistakeOf([](Network& n) {
              const Tensor x = n.images(1, 3, 4, 4);
              n.add(Convolution{.name = "c", .norm = "n", .channels = 4, .residual = x}, x);
            }),
            "layer \"c\": its residual is not 1x4x4x4");
  EXPECT_EQ(mistakeOf([](Network& n) {
              const Tensor x = n.images(1, 4, 4, 4);
              n.add(Convolution{.name = "c", .channels = 4, .residual = x}, x);
            }),
            "layer \"c\": a residual needs batch normalisation");
  EXPECT_EQ(mistakeOf([](Network& n) { n.images(0, 3, 4, 4); }), "layer \"images\": 0x3x4x4 is empty");
  EXPECT_EQ(mistakeOf([](Network& n) {
              n.add(Embedding{.name = "e", .rows = 4, .width = 2}, n.indices({1, 2}, 5));
            }),
            "layer \"e\": a table of 4x2 for indices below 5");
}

TEST(NetworkMistakes, KeepTheFirstOne) {
  EXPECT_EQ(mistakeOf([](Network& n) {
              Tensor x = n.add(MaxPool{.name = "first", .kernel = 3, .padding = 2}, n.images(1, 1, 4, 4));
              x = n.add(Convolution{.name = "second", .channels = 1}, x);
              n.globalAveragePool(x);
            }),
            "layer \"first\": 3x3 windows, stride 2, padding 2 do not fit 1x1x4x4");
}

TEST(NetworkMistakes, CoverTheLoss) {
  EXPECT_EQ(mistakeOf([](Network& n) { n.images(1, 1, 1, 1); }),
            "the network has no loss; end it with crossEntropy()");
  EXPECT_EQ(mistakeOf([](Network& n) {
              const Tensor x = n.add(Embedding{.name = "e", .rows = 4, .width = 2}, n.indices({1, 2}, 4));
              n.crossEntropy(x, n.indices({1, 2}, 3));
            }),
            "layer \"loss\": labels 1x2 below 3 do not fit logits 1x2x2");
  EXPECT_EQ(mistakeOf([](Network& n) {
              const Tensor x = n.add(Embedding{.name = "e", .rows = 4, .width = 2}, n.indices({1, 2}, 4));
              n.crossEntropy(x, n.indices({1, 2}, 2));
              n.layerNorm("late", x);
            }),
            "layer \"late\": follows the loss, which ends a network");
}

TEST(NetworkMistakes, RefuseAnActivationBesideAResidual) {
  EXPECT_EQ(mistakeOf([](Network& n) {
              const Tensor x = n.add(Embedding{.name = "e", .rows = 4, .width = 2}, n.indices({1, 2}, 4));
              n.add(Linear{.name = "l", .features = 2, .activation = Activation::kGelu, .residual = x}, x);
            }),
            "layer \"l\": takes an activation or a residual, not both");
}

}  // namespace
}  // namespace muster
