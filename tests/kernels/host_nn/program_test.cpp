// SPDX-License-Identifier: Apache-2.0
// Programs as a whole: what they refuse, what they report, determinism, NaN, evaluation.
#include <cmath>
#include <cstring>

#include "kernels/host/buffer.h"
#include "tests/kernels/host_nn/fixture.h"

namespace muster::testing {
namespace {

/// A small ResNet-like network with every kind of image layer.
struct Images {
  Network network;
  Tensor input, labels, logits;
  explicit Images(int64_t batch = 4, int64_t channels = 20) {
    input = network.images(batch, 3, 8, 8);
    labels = network.indices({batch}, 5);
    Tensor x = network.add(
        Convolution{.name = "a", .norm = "na", .channels = channels, .kernel = 3, .padding = 1, .relu = true},
        input);
    x = network.add(MaxPool{.name = "p", .kernel = 3, .stride = 2, .padding = 1}, x);
    x = network.add(Convolution{.name = "b", .norm = "nb", .channels = channels, .relu = true, .residual = x},
                    x);
    logits = network.add(Linear{.name = "fc", .features = 5}, network.globalAveragePool(x));
    network.crossEntropy(logits, labels);
  }
};

struct Text {
  Network network;
  Tensor tokens, labels, logits;
  Text() {
    tokens = network.indices({2, 6}, 9);
    labels = network.indices({2, 6}, 9);
    Tensor x = network.add(Embedding{.name = "t", .positions = "p", .rows = 9, .width = 12}, tokens);
    Tensor y = network.add(Linear{.name = "qkv", .features = 36}, network.layerNorm("ln", x));
    y = network.add(Attention{.name = "a", .heads = 2}, y);
    x = network.add(Linear{.name = "proj", .features = 12, .residual = x}, y);
    y = network.add(Linear{.name = "up", .features = 24, .activation = Activation::kGelu}, x);
    logits = network.add(Linear{.name = "head", .features = 9}, y);
    network.crossEntropy(logits, labels);
  }
};

std::vector<std::byte> bytesIn(const Buffer& buffer) {
  const std::byte* data = host::bytesOf(buffer);
  return {data, data + buffer.bytes()};
}

TEST(Programs, KeepParametersAsTheyWereWritten) {
  OpenNn open;
  const Images images;
  Pair pair(open, images.network);
  for (size_t i = 0; i < images.network.parameters().size(); ++i)
    EXPECT_EQ(got(pair.program().readParameter(static_cast<int>(i))),
              toFloat(pair.reference().parameters[i]));
}

TEST(Programs, StartWithScalesOfOneAndTheRestZero) {
  OpenNn open;
  const Images images;
  const auto program = open.compile(images.network);
  for (size_t i = 0; i < images.network.parameters().size(); ++i) {
    const float wanted = images.network.parameters()[i].role == ParameterRole::kScale ? 1 : 0;
    for (const float value : got(program->readParameter(static_cast<int>(i)))) EXPECT_EQ(value, wanted);
  }
}

TEST(Programs, AnnounceGradientsFromTheEndToTheStart) {
  OpenNn open;
  for (const Network& network : {Images().network, Text().network}) {
    Pair pair(open, network);
    Program& program = pair.program();
    ASSERT_TRUE(program.forward(Pass::kTraining).ok());
    uint64_t end = program.gradientElements();
    std::vector<std::byte> seen(program.gradients().bytes());
    const Status status = program.backward([&](ElementRange range) -> Status {
      EXPECT_EQ(range.first + range.count, end);
      end = range.first;
      std::memcpy(seen.data() + 4 * range.first, host::bytesOf(program.gradients()) + 4 * range.first,
                  4 * range.count);
      return {};
    });
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(end, 0u);
    EXPECT_EQ(seen, bytesIn(program.gradients()));  // nothing changed after it was announced
  }
}

TEST(Programs, StopBackwardWhereItsListenerFails) {
  OpenNn open;
  const Text text;
  Pair pair(open, text.network);
  ASSERT_TRUE(pair.program().forward(Pass::kTraining).ok());
  int calls = 0;
  const Status status = pair.program().backward([&](ElementRange) -> Status {
    ++calls;
    return Error{ErrorCode::kTimeout, "rank 3 is gone", ""};
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "rank 3 is gone");
  EXPECT_EQ(calls, 1);
}

TEST(Programs, PlaceParametersSideBySide) {
  OpenNn open;
  const Images images;
  const auto program = open.compile(images.network);
  uint64_t next = 0;
  for (size_t i = 0; i < images.network.parameters().size(); ++i) {
    const ElementRange range = program->range(static_cast<int>(i));
    EXPECT_EQ(range.first, next);
    EXPECT_GE(range.count, static_cast<uint64_t>(images.network.parameters()[i].elements()));
    next = range.first + range.count;
  }
  EXPECT_EQ(next, program->gradientElements());
  EXPECT_EQ(program->gradients().bytes(), 4 * next);
}

TEST(Programs, TellLayoutsApart) {
  OpenNn open;
  const auto layout = [&](int64_t channels) {
    const Images images(4, channels);
    return (*open.nn->compile(images.network, {}))->layout();
  };
  EXPECT_EQ(layout(20), layout(20));
  EXPECT_NE(layout(20), layout(21));
}

TEST(Programs, GiveTheSameBitsTwice) {
  for (int threads : {1, 3}) {
    OpenNn open(threads);
    for (const Network& network : {Images().network, Text().network}) {
      std::vector<std::vector<std::byte>> results;
      for (int run = 0; run < 2; ++run) {
        Pair pair(open, network);
        pair.trained({.kind = OptimizerKind::kAdamW, .weightDecay = 0.1}, 4, 1e-2);
        results.push_back(bytesIn(pair.program().parameters()));
      }
      EXPECT_EQ(results[0], results[1]) << threads << " threads";
    }
  }
}

TEST(Programs, LearnWhatTheySee) {
  OpenNn open;
  const Images images;
  Pair pair(open, images.network);
  ASSERT_TRUE(pair.program().forward(Pass::kTraining).ok());
  const double before = *pair.program().loss();
  pair.trained({}, 60, 0.05);
  EXPECT_LT(*pair.program().loss(), 0.2 * before);
  EXPECT_EQ(*pair.program().correct(), 4);
}

TEST(Programs, CountRightAnswers) {
  OpenNn open;
  const Text text;
  Pair pair(open, text.network);
  ASSERT_TRUE(pair.program().forward(Pass::kTraining).ok());
  const std::vector<float> logits = got(pair.program().readTensor(text.logits));
  std::vector<int32_t> best;
  for (size_t row = 0; row < 12; ++row) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * 9);
    best.push_back(static_cast<int32_t>(std::max_element(begin, begin + 9) - begin));
  }
  best[0] = (best[0] + 1) % 9;
  best[7] = (best[7] + 1) % 9;
  ASSERT_TRUE(pair.program().writeInput(text.labels, best).ok());
  ASSERT_TRUE(pair.program().forward(Pass::kEvaluation).ok());
  EXPECT_EQ(*pair.program().correct(), 10);
}

/// y = (x - running mean) / sqrt(running variance + epsilon): by hand on one channel.
TEST(Evaluation, UsesTheRunningStatistics) {
  Network network;
  const Tensor input = network.images(1, 1, 1, 2);
  const Tensor y = network.add(Convolution{.name = "a", .norm = "n", .channels = 1}, input);
  const Tensor logits = network.add(Linear{.name = "fc", .features = 2}, network.globalAveragePool(y));
  network.crossEntropy(logits, network.indices({1}, 2));
  OpenNn open;
  const auto program = open.compile(network);
  ASSERT_TRUE(program->writeParameter(0, std::vector<float>{1}).ok());
  ASSERT_TRUE(program->writeInput(input, std::vector<float>{5, 9}).ok());
  ASSERT_TRUE(program->writeStatistics(0, std::vector<float>{1, 4}).ok());
  ASSERT_TRUE(program->forward(Pass::kEvaluation).ok());
  const std::vector<float> values = got(program->readTensor(y));
  EXPECT_NEAR(values[0], 2, 1e-5);
  EXPECT_NEAR(values[1], 4, 1e-5);
  EXPECT_EQ(got(program->readStatistics(0)), (std::vector<float>{1, 4}));
  ASSERT_TRUE(program->forward(Pass::kTraining).ok());  // batch: mean 7, unbiased variance 8
  const std::vector<float> running = got(program->readStatistics(0));
  EXPECT_NEAR(running[0], 0.9 * 1 + 0.1 * 7, 1e-5);
  EXPECT_NEAR(running[1], 0.9 * 4 + 0.1 * 8, 1e-5);
}

TEST(Evaluation, AllowsNoBackward) {
  OpenNn open;
  const Images images;
  Pair pair(open, images.network);
  ASSERT_TRUE(pair.program().forward(Pass::kEvaluation).ok());
  EXPECT_FALSE(pair.program().backward().ok());
  ASSERT_TRUE(pair.program().forward(Pass::kTraining).ok());
  ASSERT_TRUE(pair.program().backward().ok());
  EXPECT_FALSE(pair.program().backward().ok());  // a forward pass is used up
}

/// One NaN anywhere in the parameters must reach the loss: no max(), mask or clamp may swallow it.
TEST(Nan, ReachesTheLossFromEveryParameter) {
  OpenNn open;
  for (const Network& network : {Images().network, Text().network})
    for (size_t i = 0; i < network.parameters().size(); ++i) {
      SCOPED_TRACE(network.parameters()[i].name);
      Pair pair(open, network);
      std::vector<float> values = got(pair.program().readParameter(static_cast<int>(i)));
      // every row of a table, as not every token occurs
      std::fill(values.begin(), values.end(), NAN);
      ASSERT_TRUE(pair.program().writeParameter(static_cast<int>(i), values).ok());
      ASSERT_TRUE(pair.program().forward(Pass::kTraining).ok());
      EXPECT_TRUE(std::isnan(*pair.program().loss()));
      EXPECT_EQ(*pair.program().correct(), 0);
    }
}

TEST(Nan, ReachesLossAndGradientsFromOnePixel) {
  OpenNn open;
  const Images images;
  Pair pair(open, images.network);
  std::vector<float> pixels = toFloat(pair.reference().values[static_cast<size_t>(images.input.id)]);
  pixels[100] = NAN;
  ASSERT_TRUE(pair.program().writeInput(images.input, pixels).ok());
  ASSERT_TRUE(pair.program().forward(Pass::kTraining).ok());
  ASSERT_TRUE(pair.program().backward().ok());
  EXPECT_TRUE(std::isnan(*pair.program().loss()));
  for (size_t i = 0; i < images.network.parameters().size(); ++i) {
    const std::vector<float> gradient = got(pair.program().readGradient(static_cast<int>(i)));
    EXPECT_TRUE(std::any_of(gradient.begin(), gradient.end(), [](float g) { return std::isnan(g); }))
        << images.network.parameters()[i].name;
  }
}

TEST(Refusals, NameWhatIsWrong) {
  OpenNn open;
  const Text text;
  Pair pair(open, text.network);
  Program& program = pair.program();
  const auto expectError = [](const Status& status, const char* part) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kUsage);
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
  };
  std::vector<int32_t> tokens(12, 3);
  tokens[5] = 9;
  expectError(program.writeInput(text.tokens, tokens),
              "index 9 at position 5 of input 0 is out of bounds, expected 0 to 8");
  tokens[5] = -1;
  expectError(program.writeInput(text.tokens, tokens), "index -1");
  expectError(program.writeInput(text.tokens, std::vector<int32_t>(11)), "takes 12 values (2x6), not 11");
  expectError(program.writeInput(text.tokens, std::vector<float>(12)), "takes indices, not numbers");
  expectError(program.writeInput(text.logits, std::vector<float>(108)), "is not an input");
  expectError(program.writeParameter(99, std::vector<float>(1)), "there is no parameter 99");
  expectError(program.writeParameter(0, std::vector<float>(1)), "t.weight takes 108 values (9x12), not 1");
  expectError(program.step(0.1), "setOptimizer()");
  expectError(program.backward(), "needs a forward pass");
  EXPECT_FALSE(program.loss().ok());
  EXPECT_FALSE(program.correct().ok());
  EXPECT_FALSE(program.readTensor(text.tokens).ok());
  EXPECT_FALSE(program.readStatistics(0).ok());
}

TEST(Refusals, CoverNetworksAndTypes) {
  OpenNn open;
  Network lossless;
  lossless.add(Convolution{.name = "a", .channels = 1}, lossless.images(1, 1, 1, 1));
  EXPECT_EQ(open.nn->compile(lossless, {}).error().code, ErrorCode::kUsage);
  Network dead;
  const Tensor x = dead.images(1, 2, 2, 2);
  dead.add(Convolution{.name = "unused", .channels = 4}, x);
  const Tensor y = dead.globalAveragePool(dead.add(Convolution{.name = "used", .channels = 4}, x));
  dead.crossEntropy(dead.add(Linear{.name = "fc", .features = 2}, y), dead.indices({1}, 2));
  const auto refused = open.nn->compile(dead, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("convolution \"unused\""), std::string::npos)
      << refused.error().message;
  const auto wrongType = open.nn->compile(Text().network, {.dtype = Dtype::kF16});
  ASSERT_FALSE(wrongType.ok());
  EXPECT_EQ(wrongType.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(wrongType.error().message.find("f16"), std::string::npos);
}

}  // namespace
}  // namespace muster::testing
