// SPDX-License-Identifier: Apache-2.0
// Applies `--set` values to a plan document.
#include "runner/plan/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runner/core/text.h"

namespace muster {
namespace {

const std::vector<std::string> kSettablePlanKeys = {"name", "sku", "backend"};
const std::vector<std::string> kSettableNetworkKeys = {"network.rails", "network.rail_bandwidth"};
const std::vector<std::string> kSettableStageKeys = {"timeout", "repeat", "attempts"};

/// A number when all of `text` is one, else the text itself; validation says what was wanted.
Json numberOrText(const std::string& text) {
  const std::string_view digits = trim(text);
  const char* end = digits.data() + digits.size();
  int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(digits.data(), end, whole);
      error == std::errc() && stop == end)
    return whole;
  double number = 0;
  if (const auto [stop, error] = std::from_chars(digits.data(), end, number);
      error == std::errc() && stop == end)
    return number;
  return text;
}

Json valueAs(ParamType type, ParamType itemType, const std::string& text) {
  switch (type) {
    case ParamType::kInt:
    case ParamType::kFloat:
      return numberOrText(text);
    case ParamType::kBool:
      return text == "true" || text == "false" ? Json(text == "true") : Json(text);
    case ParamType::kList: {
      Json list = Json::array();
      for (const std::string& item : split(text, ','))
        list.push_back(valueAs(itemType, ParamType::kString, std::string(trim(item))));
      return list;
    }
    case ParamType::kString:
    case ParamType::kQuantity:
      return text;
  }
  return text;
}

class Overrider {
 public:
  Overrider(const Catalog& catalog, PlanDocument& document, Diagnostics& diagnostics)
      : catalog_(catalog), document_(document), diagnostics_(diagnostics) {}

  void apply(const Override& override) {
    argument_ = override.key + "=" + override.value;
    if (contains(kSettablePlanKeys, override.key))
      return put(document_.root, "", override.key, override.value);
    if (contains(kSettableNetworkKeys, override.key) && !stageOf(override.key)) return putNetwork(override);
    if (const auto stage = stageOf(override.key)) return applyToStage(*stage, override);
    failUnknown(override.key);
  }

  [[nodiscard]] std::vector<std::string> applied() && { return std::move(applied_); }

 private:
  void fail(const std::string& message) {
    diagnostics_.error({fmt::format("--set {}", argument_), 0, 0}, message);
  }

  void put(Json& table, const std::string& pointer, const std::string& key, Json value) {
    table[key] = std::move(value);
    document_.places[pointerTo(pointer, key)] = {fmt::format("--set {}", argument_), 0, 0};
    applied_.push_back(argument_);
  }

  void putNetwork(const Override& override) {
    Json& network = document_.root["network"];
    if (network.is_null()) network = Json::object();
    if (!network.is_object()) return;  // validation says so
    const std::string key = override.key.substr(override.key.find('.') + 1);
    put(network, "/network", key, key == "rails" ? numberOrText(override.value) : Json(override.value));
  }

  [[nodiscard]] std::vector<std::string> stageNames() const {
    std::vector<std::string> names;
    if (!document_.root.contains("stage") || !document_.root["stage"].is_array()) return names;
    for (const Json& stage : document_.root["stage"])
      names.push_back(stage.is_object() && stage.contains("name") && stage["name"].is_string()
                          ? stage["name"].get<std::string>()
                          : "");
    return names;
  }

  /// The stage whose name and a dot start `key`; the longest, because names may hold dots.
  [[nodiscard]] std::optional<size_t> stageOf(const std::string& key) const {
    const std::vector<std::string> names = stageNames();
    std::optional<size_t> best;
    for (size_t i = 0; i < names.size(); ++i)
      if (!names[i].empty() && key.starts_with(names[i] + ".") &&
          (!best || names[i].size() > names[*best].size()))
        best = i;
    return best;
  }

  void failUnknown(const std::string& key) {
    const size_t dot = key.rfind('.');
    if (dot == std::string::npos)
      return fail(
          fmt::format("unknown key \"{}\"{}; expected name, sku, backend, network.rails, "
                      "network.rail_bandwidth, or STAGE.PARAMETER",
                      printable(key, 80), didYouMean(key, kSettablePlanKeys)));
    std::vector<std::string> names = stageNames();
    names.erase(std::remove(names.begin(), names.end(), ""), names.end());
    const std::string stage = key.substr(0, dot);
    std::string help = didYouMean(stage, names);
    if (help.empty())
      help = names.empty() ? "; it has none" : "; its stages are " + printable(join(names, ", "), 200);
    fail(fmt::format("the plan has no stage \"{}\"{}", printable(stage, 80), help));
  }

  void applyToStage(size_t index, const Override& override) {
    Json& stage = document_.root["stage"][index];
    const auto name = stage["name"].get<std::string>();
    const std::string key = override.key.substr(name.size() + 1);
    const std::string pointer = pointerTo("/stage", std::to_string(index));
    if (contains(kSettableStageKeys, key)) return put(stage, pointer, key, numberOrText(override.value));
    const TestSpec* test = testOf(stage);
    if (test == nullptr) return;  // validation says what is wrong with the stage's plugin or test
    const ParamSpec* spec = test->param(key);
    if (spec == nullptr) return failParam(name, *test, key);
    Json& params = stage["params"];
    if (params.is_null()) params = Json::object();
    if (!params.is_object()) return;  // told by validation
    if (stage.contains("matrix") && stage["matrix"].is_object()) stage["matrix"].erase(key);
    put(params, pointerTo(pointer, "params"), key, valueAs(spec->type, spec->itemType, override.value));
  }

  [[nodiscard]] const TestSpec* testOf(const Json& stage) const {
    const auto text = [&](const char* key) {
      return stage.contains(key) && stage[key].is_string() ? stage[key].get<std::string>() : "";
    };
    const PluginSpec* plugin = catalog_.plugin(text("plugin"));
    return plugin == nullptr ? nullptr : plugin->test(text("test"));
  }

  void failParam(const std::string& stage, const TestSpec& test, const std::string& key) {
    std::vector<std::string> known = kSettableStageKeys;
    for (const ParamSpec& param : test.params) known.push_back(param.name);
    std::string help = didYouMean(key, known);
    if (help.empty()) help = "; expected one of " + join(known, ", ");
    fail(fmt::format("stage \"{}\" (test \"{}\") has no parameter \"{}\"{}", stage, test.name,
                     printable(key, 80), help));
  }

  const Catalog& catalog_;
  PlanDocument& document_;
  Diagnostics& diagnostics_;
  std::string argument_;
  std::vector<std::string> applied_;
};

}  // namespace

Result<Override> parseOverride(const std::string& argument) {
  const size_t equals = argument.find('=');
  const std::string key(trim(std::string_view(argument).substr(0, equals)));
  if (equals == std::string::npos || key.empty())
    return Error{
        ErrorCode::kUsage,
        fmt::format("found \"{}\"; expected STAGE.PARAMETER=VALUE, for example gemm.size=4096, or sku=NAME",
                    printable(argument, 80)),
        "--set"};
  return Override{key, argument.substr(equals + 1)};
}

std::vector<std::string> applyOverrides(const std::vector<Override>& overrides, const Catalog& catalog,
                                        PlanDocument& document, Diagnostics& diagnostics) {
  if (!document.root.is_object()) return {};
  Overrider overrider(catalog, document, diagnostics);
  for (const Override& override : overrides) overrider.apply(override);
  return std::move(overrider).applied();
}

}  // namespace muster
