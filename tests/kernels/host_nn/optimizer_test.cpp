// SPDX-License-Identifier: Apache-2.0
// Three updates by each optimizer against the formulas in f64.
#include <cmath>

#include "tests/kernels/host_nn/fixture.h"

namespace muster::testing {
namespace {

/// A linear classifier with layer norm: weights, biases and scales.
Network classifier() {
  Network network;
  const Tensor tokens = network.indices({3, 2}, 5);
  Tensor x = network.add(Embedding{.name = "t", .rows = 5, .width = 21}, tokens);
  x = network.layerNorm("ln", x);
  network.crossEntropy(network.add(Linear{.name = "fc", .features = 7}, x), network.indices({3, 2}, 7));
  return network;
}

struct Slots {
  double first = 0, second = 0;
};

/// torch.optim.SGD and torch.optim.AdamW for one parameter element.
double updated(const OptimizerSpec& spec, double p, double g, double decay, double rate, int step,
               Slots& slots) {
  if (spec.kind == OptimizerKind::kSgd) {
    g += decay * p;
    slots.first = step == 1 ? g : spec.momentum * slots.first + g;
    return p - rate * slots.first;
  }
  p -= rate * decay * p;
  slots.first = spec.beta1 * slots.first + (1 - spec.beta1) * g;
  slots.second = spec.beta2 * slots.second + (1 - spec.beta2) * g * g;
  const double mean = slots.first / (1 - std::pow(spec.beta1, step));
  const double square = slots.second / (1 - std::pow(spec.beta2, step));
  return p - rate * mean / (std::sqrt(square) + spec.epsilon);
}

class Optimizers : public ::testing::TestWithParam<OptimizerSpec> {};

/// Gradients are the program's own: only the update is judged here.
TEST_P(Optimizers, UpdateAsTheFormulasSay) {
  const OptimizerSpec spec = GetParam();
  const Network network = classifier();
  OpenNn open(2);
  Pair pair(open, network);
  Program& program = pair.program();
  ASSERT_TRUE(program.setOptimizer(spec).ok());
  const auto count = network.parameters().size();
  std::vector<std::vector<double>> wanted = pair.reference().parameters;
  std::vector<std::vector<Slots>> slots(count);
  for (size_t i = 0; i < count; ++i) slots[i].resize(wanted[i].size());
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(program.forward(Pass::kTraining).ok());
    ASSERT_TRUE(program.backward().ok());
    for (size_t i = 0; i < count; ++i) {
      const std::vector<float> gradient = got(program.readGradient(static_cast<int>(i)));
      const bool decays = spec.decayAll || network.parameters()[i].role == ParameterRole::kWeight;
      for (size_t k = 0; k < gradient.size(); ++k)
        wanted[i][k] = updated(spec, wanted[i][k], 0.5 * static_cast<double>(gradient[k]),
                               decays ? spec.weightDecay : 0, 0.03, step, slots[i][k]);
    }
    ASSERT_TRUE(program.step(0.03, 0.5).ok());
  }
  for (size_t i = 0; i < count; ++i) {
    const std::vector<float> found = got(program.readParameter(static_cast<int>(i)));
    for (size_t k = 0; k < found.size(); ++k)
      ASSERT_NEAR(found[k], wanted[i][k], 1e-5) << network.parameters()[i].name << " element " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Optimizers,
    ::testing::Values(OptimizerSpec{}, OptimizerSpec{.momentum = 0, .weightDecay = 0.1},
                      OptimizerSpec{.momentum = 0.7, .weightDecay = 0.2, .decayAll = false},
                      OptimizerSpec{.kind = OptimizerKind::kAdamW},
                      OptimizerSpec{
                          .kind = OptimizerKind::kAdamW, .beta1 = 0.8, .beta2 = 0.9, .weightDecay = 0.3},
                      OptimizerSpec{.kind = OptimizerKind::kAdamW, .weightDecay = 0.3, .decayAll = false}));

TEST(OptimizerState, StartsAnewWhenSetAgain) {
  const Network network = classifier();
  OpenNn open;
  std::vector<std::vector<std::vector<float>>> results;
  for (int rounds : {1, 2}) {
    Pair pair(open, network);
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < network.parameters().size(); ++i)
        ASSERT_TRUE(
            pair.program().writeParameter(static_cast<int>(i), toFloat(pair.reference().parameters[i])).ok());
      results.push_back(pair.trained({}, 3, 0.05));
    }
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[1], results[2]);
}

}  // namespace
}  // namespace muster::testing
