// SPDX-License-Identifier: Apache-2.0
// Expands params and matrix of a stage to its cases.
#include "runner/plan/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runner/core/text.h"
#include "runner/metrics/params.h"
#include "runner/metrics/renamed.h"

namespace muster {
namespace {

constexpr size_t kLongestLabel = 128;
constexpr size_t kMostCases = CaseBudget{}.cases;

/// One parameter that the matrix varies.
struct Axis {
  std::string name;
  std::vector<Json> values;        ///< converted
  std::vector<std::string> texts;  ///< as written
};

/// A value as the matrix names it: quantities as they were written, whole numbers without ".0" in either
/// language.
std::string matrixText(const ParamSpec& spec, const Json& written, const Json& converted) {
  if (spec.type == ParamType::kQuantity && written.is_string())
    return std::string(trim(written.get<std::string>()));
  if (converted.is_number_float()) return fmt::format("{}", converted.get<double>());
  return paramText(converted);
}

class CaseReader {
 public:
  CaseReader(const PlanDocument& document, const std::string& stagePointer, const std::string& stage,
             const TestSpec& test, CaseBudget& budget, Diagnostics& diagnostics)
      : document_(document),
        stagePointer_(stagePointer),
        stage_(stage),
        test_(test),
        budget_(budget),
        diagnostics_(diagnostics) {}

  std::vector<Case> read() {
    for (const ParamSpec& param : test_.params) base_.params[param.name] = param.defaultValue;
    if (base_.params.is_null()) base_.params = Json::object();
    readParams();
    readMatrix();
    if (!ok_ || !fitsBudget()) return {};
    return expand();
  }

 private:
  void fail(const std::string& pointer, const Mistake& mistake) {
    ok_ = false;
    diagnostics_.error(document_.at(pointer), mistake.within(fmt::format("stage \"{}\": ", stage_)));
  }

  [[nodiscard]] std::vector<std::string> paramNames() const {
    std::vector<std::string> names;
    for (const ParamSpec& param : test_.params) names.push_back(param.name);
    return names;
  }

  /// The declared parameter `name`; told when there is none.
  const ParamSpec* declared(const std::string& name, const std::string& pointer) {
    const ParamSpec* spec = test_.param(name);
    if (spec != nullptr) return spec;
    const std::string sentence =
        fmt::format("test \"{}\" has no parameter \"{}\"", test_.name, printable(name, 80));
    Mistake mistake = unknownName(sentence, name, paramNames());
    if (test_.params.empty())
      mistake = mistake.then("; it has none");
    else if (mistake.suggestion.empty())
      mistake = mistake.then("; expected one of " + join(paramNames(), ", "));
    fail(pointer, mistake);
    return nullptr;
  }

  std::optional<Json> converted(const ParamSpec& spec, const Json& value, const std::string& pointer) {
    auto result = convertParam(spec, value);
    if (result.ok()) return std::move(*result);
    Mistake mistake(fmt::format("parameter \"{}\": {}", spec.name, result.error().message));
    mistake.found = shown(value);
    mistake.required = requiredText(spec);
    if (value.is_string())
      mistake.suggestion = nearestName(value.get<std::string>(), spec.oneOf).value_or("");
    fail(pointer, mistake);
    return std::nullopt;
  }

  /// The table `key` of the stage, or nullptr when it is absent or (told) no table.
  const Json* table(const char* key, const std::string& example) {
    const Json* value = valueAt(document_.root, pointerTo(stagePointer_, key));
    if (value == nullptr || value->is_object()) return value;
    fail(pointerTo(stagePointer_, key),
         Mistake::value(shown(*value), "a table, for example " + example).within(std::string(key) + ": "));
    return nullptr;
  }

  void readParams() {
    const Json* params = table("params", "{ size = 8192 }");
    if (params == nullptr) return;
    for (const auto& item : params->items()) {
      if (diagnostics_.full()) return;
      const std::string pointer = pointerTo(pointerTo(stagePointer_, "params"), item.key());
      const ParamSpec* spec = declared(item.key(), pointer);
      if (spec == nullptr) continue;
      base_.written.insert(spec->name);
      if (auto value = converted(*spec, item.value(), pointer)) base_.params[spec->name] = std::move(*value);
    }
  }

  void readMatrix() {
    const Json* matrix = table("matrix", "{ dtype = [\"bf16\", \"f32\"] }");
    if (matrix == nullptr) return;
    // By name, so that a Lua table (which has no order) gives the same cases as a TOML one.
    std::map<std::string, const Json*> axes;
    for (const auto& item : matrix->items()) axes[item.key()] = &item.value();
    if (!countFits(axes)) return;
    for (const auto& [name, values] : axes) {
      if (diagnostics_.full()) return;
      readAxis(name, *values);
    }
  }

  /// Whether the combinations fit what is left of the plan's cases; counted before any value is looked at.
  bool countFits(const std::map<std::string, const Json*>& axes) {
    size_t count = 1;
    for (const auto& [name, values] : axes)
      if (values->is_array() && !values->empty()) count = std::min(count * values->size(), kMostCases + 1);
    if (count <= budget_.cases) return true;
    fail(pointerTo(stagePointer_, "matrix"),
         fmt::format(
             "the matrix has {} combinations; expected at most the {} cases that are left of a plan's {}",
             count > kMostCases ? fmt::format("more than {}", kMostCases) : fmt::format("{}", count),
             budget_.cases, kMostCases));
    return false;
  }

  void readAxis(const std::string& name, const Json& values) {
    const std::string pointer = pointerTo(pointerTo(stagePointer_, "matrix"), name);
    const ParamSpec* spec = declared(name, pointer);
    if (spec == nullptr) return;
    if (!values.is_array() || values.empty())
      return fail(pointer, fmt::format("matrix \"{}\": found {}; expected a list of at least one value", name,
                                       shown(values)));
    if (base_.written.count(name) > 0)
      return fail(pointer, fmt::format("\"{}\" is in both params and matrix; keep one of them", name));
    Axis axis{name, {}, {}};
    for (size_t i = 0; i < values.size() && !diagnostics_.full(); ++i)
      readAxisValue(*spec, values[i], pointerTo(pointer, std::to_string(i)), axis);
    base_.written.insert(name);
    axes_.push_back(std::move(axis));
  }

  void readAxisValue(const ParamSpec& spec, const Json& written, const std::string& pointer, Axis& axis) {
    auto value = converted(spec, written, pointer);
    if (!value) return;
    std::string text = matrixText(spec, written, *value);
    if (text.empty() || printable(text, kLongestLabel) != text)
      return fail(pointer,
                  fmt::format("matrix \"{}\": found {}; expected a value of 1 to {} printable characters, "
                              "because it names the case",
                              spec.name, shown(written), kLongestLabel));
    if (!seen_.insert({spec.name, dumpJson(*value)}).second)
      return fail(pointer, fmt::format("matrix \"{}\": {} is listed twice", spec.name, shown(written)));
    axis.values.push_back(std::move(*value));
    axis.texts.push_back(std::move(text));
  }

  /// Whether the cases fit what is left of the plan's budget; takes them off it.
  bool fitsBudget() {
    size_t count = 1;
    size_t bytes = dumpJson(base_.params).size() + 1;
    for (const Axis& axis : axes_) {
      count *= axis.values.size();
      size_t widest = 0;
      for (const Json& value : axis.values) widest = std::max(widest, dumpJson(value).size());
      bytes += widest;
    }
    if (count > budget_.cases)
      fail(stagePointer_, fmt::format("exceeds the limit of {} cases per plan", kMostCases));
    else if (bytes > budget_.bytes / count)
      fail(
          pointerTo(stagePointer_, axes_.empty() ? "params" : "matrix"),
          fmt::format("{} cases with {} bytes of parameters each are too much for one plan; expected at most "
                      "{} bytes in "
                      "all",
                      count, bytes, CaseBudget{}.bytes));
    if (!ok_) return false;
    budget_.cases -= count;
    budget_.bytes -= bytes * count;
    return true;
  }

  /// Every combination; the last axis varies fastest.
  std::vector<Case> expand() const {
    std::vector<Case> cases = {base_};
    for (const Axis& axis : axes_) {
      std::vector<Case> wider;
      wider.reserve(cases.size() * axis.values.size());
      for (const Case& before : cases)
        for (size_t i = 0; i < axis.values.size(); ++i) {
          wider.push_back(before);
          wider.back().params[axis.name] = axis.values[i];
          wider.back().matrix[axis.name] = axis.texts[i];
        }
      cases = std::move(wider);
    }
    for (Case& c : cases) c.id = caseId(c);
    return cases;
  }

  [[nodiscard]] std::string caseId(const Case& c) const {
    std::vector<std::string> parts;
    for (const auto& [name, text] : c.matrix) parts.push_back(name + "=" + text);
    return parts.empty() ? stage_ : fmt::format("{}[{}]", stage_, join(parts, ","));
  }

  const PlanDocument& document_;
  const std::string& stagePointer_;
  const std::string& stage_;
  const TestSpec& test_;
  CaseBudget& budget_;
  Diagnostics& diagnostics_;
  Case base_;
  std::vector<Axis> axes_;
  std::set<std::pair<std::string, std::string>> seen_;
  bool ok_ = true;
};

}  // namespace

std::vector<Case> readCases(const PlanDocument& document, const std::string& pointer,
                            const std::string& stage, const TestSpec& test, CaseBudget& budget,
                            Diagnostics& diagnostics) {
  return CaseReader(document, pointer, stage, test, budget, diagnostics).read();
}

std::string paramText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return dumpJson(value);
  std::vector<std::string> items;
  for (const Json& item : value) items.push_back(paramText(item));
  return join(items, ",");
}

}  // namespace muster
