// SPDX-License-Identifier: Apache-2.0
// Builds a model for benchmarks and fills its inputs.
#include "tests/bench/trained_model.h"

#include <random>

namespace muster::bench {
namespace {

Status fillInputs(const train::Model& model, Program& program) {
  std::minstd_rand random(1);
  for (const Tensor input : {model.input, model.labels}) {
    const auto count = static_cast<size_t>(elementsOf(model.network.shape(input)));
    const auto limit = static_cast<uint64_t>(model.network.limit(input));
    if (limit == 0) {
      std::normal_distribution<float> normal;
      std::vector<float> values(count);
      for (float& value : values) value = normal(random);
      MUSTER_CHECK_OK(program.writeInput(input, values));
      continue;
    }
    std::vector<int32_t> values(count);
    for (int32_t& value : values) value = static_cast<int32_t>(random() % limit);
    MUSTER_CHECK_OK(program.writeInput(input, values));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Program>> trainedModel(Nn& nn, const train::ModelSpec& spec,
                                              const ProgramOptions& options) {
  MUSTER_TRY(train::Model model, train::buildModel(spec));
  MUSTER_TRY(std::unique_ptr<Program> program, nn.compile(model.network, options));
  MUSTER_CHECK_OK(train::initialise(spec, 1, *program));
  MUSTER_CHECK_OK(fillInputs(model, *program));
  OptimizerSpec optimizer;
  if (spec.readsTokens()) optimizer.kind = OptimizerKind::kAdamW;
  MUSTER_CHECK_OK(program->setOptimizer(optimizer));
  return program;
}

Status trainingStep(Program& program, const train::ModelSpec& spec, double rate) {
  MUSTER_CHECK_OK(program.forward(Pass::kTraining));
  MUSTER_CHECK_OK(program.backward());
  return program.step(rate * (spec.readsTokens() ? 1e-3 : 1e-2));
}

}  // namespace muster::bench
