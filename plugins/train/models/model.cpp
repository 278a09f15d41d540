// SPDX-License-Identifier: Apache-2.0
// Chooses a model, and how its parameters start.
#include "plugins/train/models/model.h"

#include <fmt/format.h>

#include <cmath>

#include "plugins/train/models/resnet.h"
#include "plugins/train/models/transformer.h"
#include "plugins/train/random.h"

namespace muster::train {
namespace {

constexpr double kSigma = 0.02;  ///< of the transformer's weights

bool endsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

InitialValues transformerStart(const ModelSpec& spec, const Parameter& parameter) {
  if (parameter.role != ParameterRole::kWeight) return {InitialKind::kConstant, 0};
  const bool endsPart =
      endsWith(parameter.name, ".attn.proj.weight") || endsWith(parameter.name, ".mlp.down.weight");
  return {InitialKind::kNormal,
          endsPart ? kSigma / std::sqrt(2.0 * static_cast<double>(spec.layers)) : kSigma};
}

/// `inputs` of the classifier, for both its weight and its bias.
InitialValues resnetStart(const Parameter& parameter, int64_t inputs) {
  const Shape& shape = parameter.shape;
  if (shape.size() == 4)
    return {InitialKind::kNormal, std::sqrt(2.0 / static_cast<double>(shape[0] * shape[2] * shape[3]))};
  if (parameter.role == ParameterRole::kShift) return {InitialKind::kConstant, 0};
  return {InitialKind::kUniform, 1 / std::sqrt(static_cast<double>(inputs))};
}

int64_t classifierInputs(const Network& network) {
  for (const Parameter& parameter : network.parameters())
    if (parameter.name == "fc.weight") return parameter.shape[1];
  return 1;
}

}  // namespace

Result<Model> buildModel(const ModelSpec& spec) {
  Model model;
  if (spec.name == "resnet18" || spec.name == "resnet50") {
    model = buildResnet(spec);
  } else if (spec.name == "transformer") {
    model = buildTransformer(spec);
  } else {
    return Error{
        ErrorCode::kUsage,
        fmt::format("there is no model \"{}\"; there are resnet18, resnet50 and transformer", spec.name),
        "model"};
  }
  MUSTER_CHECK_OK(model.network.check());
  return model;
}

Status initialise(const ModelSpec& spec, uint64_t seed, Program& program) {
  const Network& network = program.network();
  const int64_t inputs = classifierInputs(network);
  for (size_t i = 0; i < network.parameters().size(); ++i) {
    const Parameter& parameter = network.parameters()[i];
    InitialValues values =
        spec.readsTokens() ? transformerStart(spec, parameter) : resnetStart(parameter, inputs);
    if (parameter.role == ParameterRole::kScale) values = {InitialKind::kConstant, 1};
    values.seed = mixKeys(seed, i);
    MUSTER_CHECK_OK(program.fillParameter(static_cast<int>(i), values));
  }
  return {};
}

}  // namespace muster::train
