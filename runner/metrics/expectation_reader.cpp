// SPDX-License-Identifier: Apache-2.0
// Reads one `[[expect]]` table into expectations.
#include "runner/metrics/expectation_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/metrics/params.h"
#include "runner/metrics/renamed.h"

namespace muster {
namespace {

const std::vector<std::string> kKeys = {
    "metric",    "where",     "min",      "max",    "equals",   "one_of",    "contains",  "excludes",
    "baseline",  "within",    "of_peak",  "cv_max", "drop_max", "predicate", "tolerance", "of",
    "statistic", "warn_band", "severity", "source", "remedy",   "params"};
const std::vector<std::string> kChecks = {"min",      "max",    "equals",  "one_of", "contains", "excludes",
                                          "baseline", "within", "of_peak", "cv_max", "drop_max", "predicate"};
constexpr size_t kMostLabelChoices = 100;

/// A value as it would stand in the file, for messages.
std::string shown(const Json& value) {
  return printable(dumpJson(value), 60);
}

size_t heldBytes(const std::string& label, const std::string& value) {
  return 4 * sizeof(std::string) + label.size() + value.size();  // with the node of the map
}

size_t heldBytes(const Expectation& e) {
  size_t bytes = sizeof(e);
  for (const auto* text :
       {&e.metric, &e.unit, &e.predicate, &e.statistic, &e.source, &e.remedy, &e.origin, &e.at})
    bytes += text->size();
  for (const auto* labels : {&e.where, &e.params})
    for (const auto& [label, value] : *labels) bytes += heldBytes(label, value);
  for (const std::string& text : e.allowed) bytes += sizeof(text) + text.size();
  return bytes;
}

/// Reads one table; keeps the parts that all its checks share in `base_`.
class Reader {
 public:
  Reader(const Json& table, const ExpectationFrame& frame, ExpectationBudget& budget,
         const ExpectationComplaint& complain)
      : table_(table), frame_(frame), budget_(budget), complain_(complain) {}

  std::vector<Expectation> read() {
    if (!table_.is_object()) {
      fail("", "an expectation is a table with a metric and a limit, found " + shown(table_));
      return {};
    }
    refuseUnknownKeys();
    readMetric();
    readWhere();
    readParams();
    readCommon();
    readChecks();
    refuseOverlong(found_);
    if (failed_ || !fitsBudget()) return {};
    std::vector<Expectation> all = byLabels();
    refuseOverlong(all);
    return failed_ ? std::vector<Expectation>() : all;
  }

 private:
  void fail(const std::string& key, const Mistake& mistake) {
    failed_ = true;
    complain_(key, mistake);
  }

  [[nodiscard]] const Json* find(const char* key) const {
    auto it = table_.find(key);
    return it == table_.end() ? nullptr : &*it;
  }

  void refuseUnknownKeys() {
    for (const auto& [key, value] : table_.items()) {
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
        fail(key,
             Mistake::name(fmt::format("unknown key \"{}\" in an expectation", printable(key)), key, kKeys));
    }
  }

  std::string text(const char* key, bool required) {
    const Json* value = find(key);
    if (value == nullptr) {
      if (required) fail("", fmt::format("an expectation needs `{}`", key));
      return "";
    }
    if (!value->is_string() || trim(value->get<std::string>()).empty()) {
      fail(key, fmt::format("`{}` must be a text that is not empty, found {}", key, shown(*value)));
      return "";
    }
    return value->get<std::string>();
  }

  void readMetric() {
    base_.metric = text("metric", true);
    if (base_.metric.empty() || frame_.catalog == nullptr) return;
    spec_ = frame_.catalog->metric(base_.metric);
    if (spec_ == nullptr) {
      fail("metric", unknownName(fmt::format("no plugin declares metric \"{}\"", printable(base_.metric)),
                                 base_.metric, metricNames()));
      return;
    }
    base_.unit = spec_->unit;
  }

  [[nodiscard]] std::vector<std::string> metricNames() const {
    std::vector<std::string> names;
    for (const auto& [pluginName, plugin] : frame_.catalog->plugins)
      for (const TestSpec& test : plugin.tests)
        for (const MetricSpec& metric : test.metrics) names.push_back(pluginName + "." + metric.name);
    return names;
  }

  void readWhere() {
    const Json* where = find("where");
    if (where == nullptr) return;
    if (!where->is_object()) {
      fail("where", "`where` must be a table of labels such as { dtype = \"bf16\" }, found " + shown(*where));
      return;
    }
    for (const auto& [label, value] : where->items()) {
      std::string key = "where." + label;
      if (value.is_array())
        readChoices(label, value, key);
      else if (auto text = labelText(label, value, key))
        base_.where[label] = *text;
      checkLabel(label, key);
    }
  }

  void readParams() {
    const Json* params = find("params");
    if (params == nullptr) return;
    if (!frame_.provenance)
      return fail("params", "`params` belongs in a SKU profile; a plan's limit is of its own stage");
    if (!params->is_object())
      return fail("params",
                  "`params` must be a table of test parameters such as { duration = \"30s\" }, found " +
                      shown(*params));
    for (const auto& [name, value] : params->items()) {
      const std::string key = "params." + name;
      const auto text = value.is_number_float() ? dumpJson(value) : labelText(name, value, key);
      if (!text) continue;
      base_.params[name] = *text;
      checkParam(name, *text, key);
    }
  }

  /// Every test that has the metric may have the parameter.
  void checkParam(const std::string& name, const std::string& text, const std::string& key) {
    if (spec_ == nullptr || name == kStageParam) return;
    std::vector<std::string> known = {kStageParam};
    for (const auto& [plugin, spec] : frame_.catalog->plugins)
      for (const TestSpec& test : spec.tests) {
        if (std::none_of(test.metrics.begin(), test.metrics.end(), [&](const MetricSpec& metric) {
              return plugin + "." + metric.name == base_.metric;
            }))
          continue;
        if (const ParamSpec* param = test.param(name)) return checkParamValue(*param, text, key);
        for (const ParamSpec& param : test.params) known.push_back(param.name);
      }
    fail(key, Mistake::name(fmt::format("no test of metric \"{}\" has a parameter \"{}\"", base_.metric,
                                        printable(name)),
                            name, known));
  }

  void checkParamValue(const ParamSpec& param, const std::string& text, const std::string& key) {
    const bool number = param.type == ParamType::kInt || param.type == ParamType::kFloat ||
                        param.type == ParamType::kQuantity;
    const bool flag = param.type == ParamType::kBool && text != "true" && text != "false";
    if (flag || (number && !parseAs(text, param.unit.empty() ? "number" : param.unit).ok()))
      fail(key, fmt::format("`{}` must be {}, found \"{}\"", key, requiredText(param), printable(text, 60)));
    if (param.type == ParamType::kString && !param.oneOf.empty() && !contains(param.oneOf, text))
      fail(key, Mistake::choice(key, text, param.oneOf));
  }

  std::optional<std::string> labelText(const std::string& label, const Json& value, const std::string& key) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    fail(key, fmt::format("label `{}` must be a text or a whole number, or a list of them, found {}",
                          printable(label), shown(value)));
    return {};
  }

  /// A label with a list of values: the limit holds for each of them.
  void readChoices(const std::string& label, const Json& list, const std::string& key) {
    std::vector<std::string> texts;
    for (const Json& value : list)
      if (auto text = labelText(label, value, key)) texts.push_back(*text);
    if (list.empty()) fail(key, fmt::format("label `{}` must have at least one value", printable(label)));
    if (std::set<std::string>(texts.begin(), texts.end()).size() != texts.size())
      fail(key, fmt::format("label `{}` has one value twice; once is enough", printable(label)));
    labelCombinations_ *= std::max<size_t>(texts.size(), 1);
    if (labelCombinations_ > kMostLabelChoices) {
      labelCombinations_ = kMostLabelChoices + 1;  // no overflow
      return fail(key, fmt::format("`where` has more than {} combinations of values", kMostLabelChoices));
    }
    choices_.emplace_back(label, std::move(texts));
  }

  void refuseOverlong(const std::vector<Expectation>& all) {
    for (const Expectation& expectation : all)
      if (const std::string key = overlongKey(expectation); !key.empty() && !failed_)
        fail(find(key.c_str()) == nullptr ? "" : key,
             fmt::format("`{}` is longer than {} bytes", key, kMostExpectationText));
  }

  /// Whether all that byLabels() makes fits what is left of the budget; takes it off.
  bool fitsBudget() {
    const size_t count = found_.size() * labelCombinations_ * frame_.copies;
    size_t bytes = 0;  // of the largest
    for (const Expectation& expectation : found_) bytes = std::max(bytes, heldBytes(expectation));
    for (const auto& [label, values] : choices_) {
      size_t widest = 0;
      for (const std::string& value : values) widest = std::max(widest, heldBytes(label, value));
      bytes += widest;
    }
    if (count <= budget_.expectations && bytes <= budget_.bytes / std::max<size_t>(count, 1)) {
      budget_.expectations -= count;
      budget_.bytes -= bytes * count;
      return true;
    }
    if (!std::exchange(budget_.exceeded, true)) {
      const ExpectationBudget all;
      fail(
          choices_.empty() ? "" : "where." + choices_.front().first,
          fmt::format("the limit makes {} x {} bytes of expectations; expected with all before it at most {} "
                      "expectations and {} MiB; shorten the lists in `where`, `source` and `remedy`, or use "
                      "fewer limits",
                      count, bytes, all.expectations, all.bytes >> 20));
    }
    return false;
  }

  /// What was found, for each combination of the labels' values.
  std::vector<Expectation> byLabels() {
    std::vector<Expectation> all = std::move(found_);
    for (const auto& [label, values] : choices_) {
      std::vector<Expectation> wider;
      for (const Expectation& expectation : all)
        for (const std::string& value : values) {
          wider.push_back(expectation);
          wider.back().where[label] = value;
        }
      all = std::move(wider);
    }
    return all;
  }

  void checkLabel(const std::string& label, const std::string& key) {
    if (spec_ == nullptr || label == "device") return;
    if (std::find(spec_->labels.begin(), spec_->labels.end(), label) != spec_->labels.end()) return;
    std::vector<std::string> known = spec_->labels;
    known.emplace_back("device");
    fail(key, Mistake::name(fmt::format("metric \"{}\" has no label \"{}\"", base_.metric, printable(label)),
                            label, known)
                  .then("; it has: " + join(known, ", ")));
  }

  void readCommon() {
    base_.origin = frame_.origin;
    base_.at = frame_.at;
    base_.source = text("source", frame_.provenance);
    base_.remedy = text("remedy", frame_.provenance && spec_ != nullptr && spec_->remedy.empty());
    if (base_.remedy.empty() && spec_ != nullptr) base_.remedy = spec_->remedy;
    if (find("statistic") != nullptr) base_.statistic = oneOf("statistic");
    if (find("severity") != nullptr)
      base_.severity = oneOf("severity") == "warn" ? Severity::kWarn : Severity::kFail;
    if (find("warn_band") != nullptr) base_.warnBand = share("warn_band").value_or(0);
  }

  std::string oneOf(const char* key) {
    const std::vector<std::string>& allowed = expectationChoices(key);
    std::string value = text(key, false);
    if (value.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
    fail(key, Mistake::choice(key, value, allowed));
    return "";
  }

  void readChecks() {
    limitCheck("min", CheckKind::kMin);
    limitCheck("max", CheckKind::kMax);
    limitCheck("baseline", CheckKind::kBaseline);
    equalsCheck();
    oneOfCheck();
    wordsCheck("contains", CheckKind::kContains);
    wordsCheck("excludes", CheckKind::kExcludes);
    withinCheck();
    shareCheck("of_peak", CheckKind::kOfPeak);
    shareCheck("cv_max", CheckKind::kCvMax);
    shareCheck("drop_max", CheckKind::kDropMax);
    predicateCheck();
    if (checks_ == 0)
      fail("",
           "an expectation needs a limit: min, max, equals, one_of, contains, excludes, baseline with "
           "tolerance, within, of_peak, "
           "cv_max or drop_max");
    refuseNothingBetween();
    belongsTo("tolerance", "baseline");
    belongsTo("of", "within");
  }

  /// A minimum above the maximum: no machine meets both.
  void refuseNothingBetween() {
    const auto limitOf = [&](CheckKind kind) {
      const auto at = std::find_if(found_.begin(), found_.end(),
                                   [&](const Expectation& expectation) { return expectation.kind == kind; });
      return at == found_.end() ? std::optional<double>() : at->limit;
    };
    const auto least = limitOf(CheckKind::kMin), most = limitOf(CheckKind::kMax);
    if (least && most && *least > *most)
      fail("min",
           fmt::format("`min = {}` is above `max = {}`, so no value can meet both; swap or correct them",
                       shown(*find("min")), shown(*find("max"))));
  }

  void belongsTo(const char* key, const char* owner) {
    if (find(key) != nullptr && find(owner) == nullptr)
      fail(key, fmt::format("`{}` is only valid together with `{}`", key, owner));
  }

  void add(CheckKind kind, double limit, std::string unit) {
    Expectation expectation = base_;
    expectation.kind = kind;
    expectation.limit = limit;
    expectation.unit = std::move(unit);
    found_.push_back(std::move(expectation));
  }

  void limitCheck(const char* key, CheckKind kind) {
    const Json* value = find(key);
    if (value == nullptr) return;
    ++checks_;
    std::string unit = base_.unit;
    std::optional<double> limit = number(key, *value, unit);
    if (!limit) return;
    bool lowerBound = kind == CheckKind::kMin || (kind == CheckKind::kBaseline && !lowerIsBetter());
    if (lowerBound && *limit <= 0 && unit != "degC")
      return fail(key, fmt::format("`{} = {}` can never fail: write the limit that a healthy machine keeps",
                                   key, shown(*value)));
    double tolerance = kind == CheckKind::kBaseline ? baselineTolerance() : 0;
    add(kind, *limit, unit);
    found_.back().tolerance = tolerance;
  }

  [[nodiscard]] bool lowerIsBetter() const {
    return spec_ != nullptr && spec_->direction == Direction::kLower;
  }

  double baselineTolerance() {
    if (find("tolerance") == nullptr) fail("baseline", "`baseline` needs a `tolerance`, for example \"7%\"");
    if (spec_ != nullptr && spec_->direction == Direction::kNone) wantsDirection("baseline");
    return find("tolerance") == nullptr ? 0 : share("tolerance").value_or(0);
  }

  void wantsDirection(const char* key) {
    fail(key, fmt::format("metric \"{}\" is not ordered (neither higher nor lower is better): use min and "
                          "max in place of `{}`",
                          base_.metric, key));
  }

  /// A limit in the metric's unit. Without a catalogue the unit is the one that is written, and handed back.
  std::optional<double> number(const char* key, const Json& value, std::string& unit) {
    if (spec_ != nullptr && unit == "text") {
      fail(key,
           fmt::format("metric \"{}\" is a text: use equals or one_of in place of `{}`", base_.metric, key));
      return {};
    }
    std::optional<double> read;
    if (value.is_number()) {
      read = value.get<double>();
    } else if (value.is_boolean() && (unit == "bool" || unit.empty())) {
      read = value.get<bool>() ? 1 : 0;
      unit = "bool";
    } else if (value.is_string()) {
      read = quantity(key, value.get<std::string>(), unit);
      if (!read) return {};
    } else {
      fail(key, fmt::format("`{}` must be a number or a quantity such as \"650 TFLOP/s\", found {}", key,
                            shown(value)));
      return {};
    }
    if (std::isfinite(*read)) return read;
    // JSON, and so shown(), has no word for these.
    fail(key, fmt::format("`{}` must be a finite number, found {}", key,
                          std::isnan(*read) ? "nan"
                          : *read > 0       ? "inf"
                                            : "-inf"));
    return {};
  }

  std::optional<double> quantity(const char* key, const std::string& text, std::string& unit) {
    if (spec_ != nullptr) {
      auto read = parseAs(text, unit);
      if (read.ok()) return *read;
      fail(key, fmt::format("`{}`: {}", key, read.error().message));
      return {};
    }
    auto read = parseQuantity(text);
    if (!read.ok()) {
      fail(key, fmt::format("`{}`: {}", key, read.error().message));
      return {};
    }
    unit = read->unit;
    return read->value;
  }

  /// A share of 1, written as "3%" or 0.03; above 0 and below 1 (of_peak: also 1; cv_max: any above 0).
  std::optional<double> share(const char* key) {
    const Json& value = *find(key);
    std::optional<double> read;
    if (value.is_number()) read = value.get<double>();
    if (value.is_string()) {
      auto parsed = parseAs(value.get<std::string>(), "ratio");
      if (parsed.ok()) read = *parsed;
    }
    const std::string name = key;
    const NumberRange range = expectationShare(name);
    if (read && *read >= range.min && *read <= range.max) return read;
    fail(key, fmt::format("`{}` must be a share such as \"5%\" or 0.05, above 0 and {} 100%, found {}", key,
                          name == "of_peak" ? "at most" : "below", shown(value)));
    return {};
  }

  void equalsCheck() {
    const Json* value = find("equals");
    if (value == nullptr) return;
    ++checks_;
    std::string unit = base_.unit;
    bool isText = unit == "text" ||
                  (spec_ == nullptr && value->is_string() && !parseQuantity(value->get<std::string>()).ok());
    if (!isText) {
      if (auto limit = number("equals", *value, unit)) add(CheckKind::kEquals, *limit, unit);
      return;
    }
    if (!value->is_string())
      return fail("equals", fmt::format("metric \"{}\" is a text: `equals` must be one too, found {}",
                                        base_.metric, shown(*value)));
    add(CheckKind::kEquals, 0, "text");
    found_.back().allowed = {value->get<std::string>()};
  }

  void oneOfCheck() {
    const Json* list = find("one_of");
    if (list == nullptr) return;
    ++checks_;
    if (!list->is_array() || list->empty())
      return fail("one_of", "`one_of` must be a list of at least one value, found " + shown(*list));
    std::vector<std::string> allowed;
    std::string unit = base_.unit.empty() ? "text" : base_.unit;
    for (const Json& item : *list) {
      if (unit == "text" && item.is_string()) {
        allowed.push_back(item.get<std::string>());
      } else if (unit == "text") {
        fail("one_of", "`one_of` of a text holds texts, found " + shown(item));
      } else if (auto value = number("one_of", item, unit)) {
        allowed.push_back(fmt::format("{}", *value));
      }
    }
    add(CheckKind::kOneOf, 0, unit);
    found_.back().allowed = std::move(allowed);
  }

  /// A text, or a list of them.
  void wordsCheck(const char* key, CheckKind kind) {
    const Json* value = find(key);
    if (value == nullptr) return;
    ++checks_;
    if (spec_ != nullptr && spec_->unit != "text")
      return fail(key,
                  fmt::format("metric \"{}\" is not a text: use min, max, equals or one_of in place of `{}`",
                              base_.metric, key));
    const Json list = value->is_array() ? *value : Json::array({*value});
    std::vector<std::string> words;
    for (const Json& item : list)
      if (item.is_string() && !trim(item.get<std::string>()).empty())
        words.push_back(item.get<std::string>());
      else
        return fail(key, fmt::format("`{}` holds texts that are not empty, found {}", key, shown(item)));
    if (words.empty()) return fail(key, fmt::format("`{}` must have at least one text", key));
    add(kind, 0, "text");
    found_.back().allowed = std::move(words);
  }

  void withinCheck() {
    if (find("within") == nullptr) return;
    ++checks_;
    auto tolerance = share("within");
    if (find("of") == nullptr)
      fail("within", "`within` needs `of`: \"node\" or \"fleet\", whose median is meant");
    std::string of = find("of") == nullptr ? "" : oneOf("of");
    if (spec_ != nullptr && spec_->direction == Direction::kNone) wantsDirection("within");
    add(CheckKind::kWithin, 0, base_.unit);
    found_.back().tolerance = tolerance.value_or(0);
    found_.back().peers = of == "fleet" ? PeerGroup::kFleet : PeerGroup::kNode;
  }

  void shareCheck(const char* key, CheckKind kind) {
    if (find(key) == nullptr) return;
    ++checks_;
    auto limit = share(key);
    if (kind == CheckKind::kOfPeak && spec_ != nullptr && spec_->peak.empty())
      fail(key, fmt::format("metric \"{}\" has no theoretical peak: use min or baseline", base_.metric));
    if (kind == CheckKind::kDropMax && spec_ != nullptr && spec_->series == Series::kNone)
      fail(key, fmt::format("metric \"{}\" is not sampled over time, so it has no drop: use cv_max or min",
                            base_.metric));
    add(kind, limit.value_or(0), base_.unit);
  }

  void predicateCheck() {
    if (find("predicate") == nullptr) return;
    ++checks_;
    if (!frame_.predicates)
      return fail("predicate", "`predicate` is a Lua function: only a Lua plan can hold one");
    add(CheckKind::kPredicate, 0, base_.unit);
    found_.back().predicate = text("predicate", false);
  }

  const Json& table_;
  const ExpectationFrame& frame_;
  ExpectationBudget& budget_;
  const ExpectationComplaint& complain_;
  const MetricSpec* spec_ = nullptr;
  Expectation base_;
  std::vector<Expectation> found_;
  std::vector<std::pair<std::string, std::vector<std::string>>> choices_;  ///< labels with lists of values
  size_t labelCombinations_ = 1;
  int checks_ = 0;
  bool failed_ = false;
};

}  // namespace

const std::vector<std::string>& expectationKeys() {
  return kKeys;
}

const std::vector<std::string>& expectationChecks() {
  return kChecks;
}

const std::vector<std::string>& expectationChoices(const std::string& key) {
  static const std::vector<std::string> kStatistics = {"median", "mean", "min", "max"};
  static const std::vector<std::string> kSeverities = {"fail", "warn"};
  static const std::vector<std::string> kPeerGroups = {"node", "fleet"};
  return key == "statistic" ? kStatistics : key == "severity" ? kSeverities : kPeerGroups;
}

NumberRange expectationShare(const std::string& key) {
  const bool mayBeZero = key == "warn_band" || key == "tolerance";
  return {mayBeZero ? 0 : std::numeric_limits<double>::min(), key == "cv_max"    ? 10
                                                              : key == "of_peak" ? 1
                                                                                 : std::nextafter(1.0, 0.0)};
}

std::string overlongKey(const Expectation& e) {
  size_t where = 0, params = 0, allowed = 0;
  for (const auto& [label, value] : e.where) where += label.size() + value.size();
  for (const auto& [name, value] : e.params) params += name.size() + value.size();
  for (const std::string& text : e.allowed) allowed += text.size();
  const std::pair<const char*, size_t> sizes[] = {
      {"metric", e.metric.size()},
      {"where", where},
      {"params", params},
      {"unit", e.unit.size()},
      {e.unit == "text" || e.kind == CheckKind::kOneOf ? checkKindName(e.kind) : "allowed", allowed},
      {"statistic", e.statistic.size()},
      {"source", e.source.size()},
      {"remedy", e.remedy.size()},
      {"origin", e.origin.size()},
      {"at", e.at.size()}};
  for (const auto& [key, size] : sizes)
    if (size > kMostExpectationText) return key;
  return "";
}

std::vector<Expectation> readExpectation(const Json& table, const ExpectationFrame& frame,
                                         ExpectationBudget& budget, const ExpectationComplaint& complain) {
  return Reader(table, frame, budget, complain).read();
}

}  // namespace muster
