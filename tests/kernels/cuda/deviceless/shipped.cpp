// SPDX-License-Identifier: Apache-2.0
// Reads the plans for their models, and walks over the models' networks.
#include "tests/kernels/cuda/deviceless/shipped.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/process.h"

namespace muster::deviceless {
namespace {

constexpr int64_t kUnitBytes = 16;  ///< Engine::channelUnit()

using Values = std::map<std::string, std::string>;

/// Each `key = value` of each stage of a plan in TOML, on lines or in inline tables, without quotes and
/// comments.
std::vector<Values> stagesOf(const std::string& text) {
  static const std::regex value(R"re((\w+) *= *(?:"([^"\n]*)"|([^\s"{}\[\],#]+)))re");
  static const std::regex comment(R"re((^|\n)#[^\n]*)re");
  std::vector<Values> stages;
  size_t begin = text.find("[[stage]]");
  while (begin != std::string::npos) {
    const size_t end = text.find("[[stage]]", begin + 1);
    const std::string body = std::regex_replace(text.substr(begin, end - begin), comment, "$1");
    Values& values = stages.emplace_back();
    for (std::sregex_iterator at(body.begin(), body.end(), value), none; at != none; ++at)
      values.emplace((*at)[1], (*at)[2].matched ? (*at)[2] : (*at)[3]);
    begin = end;
  }
  return stages;
}

ShippedModel modelOf(const std::string& from, const Values& values) {
  ShippedModel model{from, {}, {Dtype::kF32}};
  const auto take = [&](const char* key, int64_t& to) {
    if (const auto found = values.find(key); found != values.end()) to = std::stoll(found->second);
  };
  if (values.count("model") != 0) model.spec.name = values.at("model");
  if (values.count("dtype") != 0) model.dtypes = {*dtypeFromName(values.at("dtype"))};
  take("batch_size", model.spec.batch);
  take("num_classes", model.spec.classes);
  take("image_size", model.spec.imageSize);
  take("width", model.spec.width);
  take("dimension", model.spec.dimension);
  take("heads", model.spec.heads);
  take("sequence", model.spec.sequence);
  model.spec.layers = 1;  // of a transformer: all are alike
  return model;
}

Network networkOf(const ShippedModel& model) {
  auto built = train::buildModel(model.spec);
  EXPECT_TRUE(built.ok()) << model.from << ": " << built.error().text();
  return std::move(built).value().network;
}

int usersOf(const Network& network, Tensor tensor) {
  int users = 0;
  for (const Layer& layer : network.layers()) {
    if (layer.residual.id == tensor.id) ++users;
    for (const Tensor& input : layer.inputs)
      if (input.id == tensor.id) ++users;
  }
  return users;
}

void addConvolutions(const Network& network, Dtype dtype, std::map<std::string, ShippedConvolution>& to) {
  const int64_t unit = kUnitBytes / (dtypeBits(dtype) == 16 ? 2 : 4);
  const auto add = [&](const ShippedConvolution& c) {
    const cuda::ConvolutionGraph graph({.dtype = c.dtype}, c.shape, c.product, c.added);
    to[std::string(dtypeName(dtype)) + " " + graph.name()] = c;
  };
  for (const Layer& layer : network.layers()) {
    if (layer.kind != LayerKind::kConvolution) continue;
    const cuda::ConvolutionShape shape = cuda::convolutionShape(network, layer, unit);
    add({dtype, shape, cuda::ConvolutionProduct::kOutput});
    add({dtype, shape, cuda::ConvolutionProduct::kFilterGradient});
    if (network.isInput(layer.inputs[0])) continue;
    add({dtype, shape, cuda::ConvolutionProduct::kInputGradient, false});
    if (usersOf(network, layer.inputs[0]) > 1)
      add({dtype, shape, cuda::ConvolutionProduct::kInputGradient, true});
  }
}

}  // namespace

std::vector<ShippedModel> shippedModels() {
  std::vector<ShippedModel> models;
  for (const char* name : {"resnet18", "resnet50", "transformer"}) {
    models.push_back(modelOf("defaults", {{"model", name}}));
    models.back().dtypes = {Dtype::kF32, Dtype::kTf32, Dtype::kBf16};
  }
  for (const auto& entry : std::filesystem::directory_iterator(testing::sourceDir() / "plans")) {
    if (!entry.is_regular_file()) continue;
    for (const Values& stage : stagesOf(testing::readWhole(entry.path())))
      if (stage.count("test") != 0 && stage.at("test").starts_with("train."))
        models.push_back(modelOf(entry.path().stem().string() + " " + stage.at("name"), stage));
  }
  return models;
}

std::map<std::string, ShippedConvolution> shippedConvolutions() {
  std::map<std::string, ShippedConvolution> all;
  for (const ShippedModel& model : shippedModels())
    for (Dtype dtype : model.dtypes) addConvolutions(networkOf(model), dtype, all);
  return all;
}

std::map<std::string, cuda::AttentionShape> shippedAttention() {
  std::map<std::string, cuda::AttentionShape> all;
  for (const ShippedModel& model : shippedModels()) {
    const Network network = networkOf(model);
    for (const Layer& layer : network.layers()) {
      if (layer.kind != LayerKind::kAttention) continue;
      cuda::AttentionShape shape = cuda::attentionShape(network, layer);
      const cuda::HeadShape& s = shape.heads;
      for (const bool causal : {true, false}) {
        shape.causal = causal;
        all[fmt::format("{}x{}x{}x{}{}", s.n, s.heads, s.t, s.width, causal ? " causal" : "")] = shape;
      }
    }
  }
  return all;
}

}  // namespace muster::deviceless
