// SPDX-License-Identifier: Apache-2.0
// See catalog.h: reading what a plugin's describe() says. Parameter values are converted in params.cpp.
#include "runner/metrics/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

/// Strict reading of one object: unknown keys are errors that name the nearest known one.
class StrictReader : public JsonReader {
 public:
  StrictReader(const Json& json, const std::string& path, const Names& known) : JsonReader(json, path) {
    if (!ok()) return;
    for (const auto& item : json.items()) {
      if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
      const std::string near = didYouMean(item.key(), known);
      fail(Error{ErrorCode::kProtocol,
                 fmt::format("unknown key \"{}\"{}", printable(item.key(), 80),
                             near.empty() ? "; known are " + join(known, ", ") : near),
                 path});
      return;
    }
  }
  void readName(const char* key, std::string& out) {
    read(key, out);
    if (ok() && !isPlainName(out))
      fail(key, fmt::format("\"{}\" is not a plain name; expected letters, digits, '_', '-' and '.'",
                            printable(out, 80)));
  }
  /// A list of at least one text, each of `allowed`.
  void readChoices(const char* key, Names& out, const Names& allowed) {
    read(key, out);
    if (ok() && out.empty()) fail(key, "is empty; expected at least one of " + join(allowed, ", "));
    for (const auto& text : out)
      if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
        fail(key, fmt::format("found \"{}\"; expected one of {}{}", printable(text, 40), join(allowed, ", "),
                              didYouMean(text, allowed)));
  }
};

constexpr std::pair<const char*, ParamType> kTypes[] = {
    {"int", ParamType::kInt},       {"float", ParamType::kFloat},       {"bool", ParamType::kBool},
    {"string", ParamType::kString}, {"quantity", ParamType::kQuantity}, {"list", ParamType::kList}};

void readType(StrictReader& r, const char* key, ParamType& out) {
  std::string name;
  r.read(key, name);
  if (!r.ok()) return;
  for (const auto& [known, type] : kTypes) {
    if (name != known) continue;
    out = type;
    return;
  }
  r.fail(key, fmt::format("\"{}\" is not a type; expected int, float, bool, string, quantity or list",
                          printable(name, 40)));
}

/// For the error below; units.h says which they are.
constexpr const char* kUnits =
    "s, B, B/s, FLOP/s, OP/s, Hz, W, degC, ratio, number, count, count/s, samples/s, bool and text";

void readBaseUnit(StrictReader& r, std::string& out) {
  r.read("unit", out);
  if (r.ok() && !isBaseUnit(out))
    r.fail("unit", fmt::format("\"{}\" is not a base unit; expected one of {}", printable(out, 40), kUnits));
}

/// A bound of a parameter or an expectation: a number, or a text with a unit.
Result<double> readFigure(const Json& value, const std::string& unit) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean() && unit == "bool") return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_string()) return parseAs(value.get<std::string>(), unit);
  return Error{ErrorCode::kProtocol,
               "found " + printable(dumpJson(value), 80) + "; expected a number or a quantity", ""};
}

void readBound(StrictReader& r, const Json& json, const char* key, const ParamSpec& spec,
               std::optional<double>& out) {
  if (!r.ok() || !json.contains(key)) return;
  const ParamType type = spec.type == ParamType::kList ? spec.itemType : spec.type;
  if (type == ParamType::kBool || type == ParamType::kString)
    return r.fail(key, "min and max do not apply to this type; use one_of");
  const auto value = readFigure(json[key], spec.unit.empty() ? "count" : spec.unit);
  if (!value.ok()) return r.fail(key, value.error().message);
  out = *value;
}

void readParamRange(StrictReader& r, const Json& json, ParamSpec& param) {
  readBound(r, json, "min", param, param.min);
  readBound(r, json, "max", param, param.max);
  if (param.min && param.max && *param.min > *param.max) r.fail("min", "is above max");
  r.optional("one_of", param.oneOf);
  const ParamType type = param.type == ParamType::kList ? param.itemType : param.type;
  if (r.ok() && r.has("one_of") && (param.oneOf.empty() || type != ParamType::kString))
    r.fail("one_of", "expected at least one text, on a parameter of type string");
}

Result<ParamSpec> readParam(const Json& json, const std::string& path) {
  ParamSpec param;
  StrictReader r(json, path, {"name", "type", "items", "unit", "default", "min", "max", "one_of", "summary"});
  r.readName("name", param.name);
  readType(r, "type", param.type);
  if (param.type == ParamType::kList) readType(r, "items", param.itemType);
  if (r.ok() && param.type == ParamType::kList && param.itemType == ParamType::kList)
    r.fail("items", "a list of lists is not supported");
  const bool quantity = param.type == ParamType::kQuantity ||
                        (param.type == ParamType::kList && param.itemType == ParamType::kQuantity);
  if (quantity) readBaseUnit(r, param.unit);
  if (r.ok() && !quantity && r.has("unit")) r.fail("unit", "only a quantity has one");
  if (r.ok() && param.type != ParamType::kList && r.has("items")) r.fail("items", "only a list has it");
  readParamRange(r, json, param);
  r.optional("summary", param.summary);
  if (r.ok() && !r.has("default")) r.fail("default", "is missing; every parameter needs one");
  if (!r.ok()) return r.status().error();
  if (param.type == ParamType::kList) param.defaultValue = json["default"];  // an empty one allows itself
  auto value = convertParam(param, json["default"]);
  if (!value.ok()) return Error{ErrorCode::kProtocol, value.error().message, path + ".default"};
  param.defaultValue = std::move(*value);
  return param;
}

void readStandingLimit(StrictReader& r, const Json& json, const char* key, CheckKind kind, Expectation& e) {
  e.kind = kind;
  if (kind == CheckKind::kDropMax) {
    const auto share = readFigure(json[key], "ratio");
    if (!share.ok()) return r.fail(key, share.error().message);
    e.limit = *share;
    return;
  }
  if (e.unit == "text") {
    if (kind != CheckKind::kEquals || !json[key].is_string())
      return r.fail(key, "a text metric takes equals with a text");
    e.allowed = {json[key].get<std::string>()};
    return;
  }
  const auto limit = readFigure(json[key], e.unit);
  if (!limit.ok()) return r.fail(key, limit.error().message);
  e.limit = *limit;
}

Result<Expectation> readStanding(const Json& json, const std::string& path, const std::string& metric,
                                 const std::string& unit) {
  Expectation e;
  e.metric = metric;
  e.unit = unit;
  e.origin = "standing";
  StrictReader r(
      json, path,
      {"min", "max", "equals", "drop_max", "warn_band", "statistic", "severity", "source", "remedy"});
  int limits = 0;
  for (const auto& [key, kind] : {std::pair{"min", CheckKind::kMin},
                                  {"max", CheckKind::kMax},
                                  {"equals", CheckKind::kEquals},
                                  {"drop_max", CheckKind::kDropMax}}) {
    if (!r.ok() || !r.has(key)) continue;
    ++limits;
    readStandingLimit(r, json, key, kind, e);
  }
  if (r.ok() && limits != 1)
    r.fail(Error{ErrorCode::kProtocol,
                 fmt::format("found {} limits; expected exactly one of min, max, equals, drop_max", limits),
                 path});
  // Standing expectations are about health: one bad reading must not vanish in a median.
  if (e.kind == CheckKind::kMin || e.kind == CheckKind::kMax)
    e.statistic = e.kind == CheckKind::kMax ? "max" : "min";
  r.optional("statistic", e.statistic);
  if (e.statistic != "median" && e.statistic != "mean" && e.statistic != "min" && e.statistic != "max")
    r.fail("statistic", "expected median, mean, min or max");
  r.optional("warn_band", e.warnBand);
  std::string severity = "fail";
  r.optional("severity", severity);
  if (severity != "fail" && severity != "warn" && severity != "error")
    r.fail("severity", "required: fail, warn or error");
  e.severity = severity == "warn" ? Severity::kWarn : Severity::kFail;
  if (severity == "error") e.origin = "condition";
  r.optional("source", e.source);
  r.optional("remedy", e.remedy);
  if (!r.ok()) return r.status().error();
  return e;
}

void readStandings(StrictReader& r, const Json& json, const std::string& path, const std::string& plugin,
                   MetricSpec& metric) {
  if (!r.ok() || !json.contains("standing")) return;
  const Json& standing = json["standing"];
  const Json list = standing.is_array() ? standing : Json::array({standing});
  for (const auto& item : list) {
    auto e = readStanding(item, path + ".standing", plugin + "." + metric.name, metric.unit);
    if (!e.ok()) return r.fail(e.error());
    if (e->source.empty())
      e->source = fmt::format("plugin {}, in every plan{}", plugin,
                              metric.summary.empty() ? "" : ": " + metric.summary);
    if (e->remedy.empty()) e->remedy = metric.remedy;
    metric.standing.push_back(std::move(*e));
  }
}

/// A built-in limit of every metric that is sampled over time, unless its description sets another one.
constexpr double kLargestDrop = 0.1;
constexpr double kDropWarnBand = 0.5;  ///< a warning from half the limit on

Expectation noDrop(const std::string& metric, const std::string& unit) {
  Expectation e;
  e.metric = metric;
  e.unit = unit;
  e.kind = CheckKind::kDropMax;
  e.limit = kLargestDrop;
  e.warnBand = kDropWarnBand;
  e.origin = "standing";
  e.source =
      "built-in: rates of a healthy GPU differ by about 1% from window to window; more than 10% below the "
      "peers "
      "is a fault (SuperBench, Azure), and no less below the device's own level";
  e.remedy =
      "Unstable under load: compare clocks, power, temperature and throttle reasons at that time in the "
      "telemetry, then check cooling, power supply and other users of the device";
  return e;
}

void readSeries(StrictReader& r, const std::string& plugin, MetricSpec& metric) {
  std::string series = "none";
  r.optional("series", series);
  r.optional("window", metric.window);
  const auto read = seriesFromName(series);
  if (!read.ok()) return r.fail("series", read.error().message);
  metric.series = *read;
  if ((metric.series == Series::kWindows) == metric.window.empty())
    return r.fail("window",
                  "names the parameter that holds the time of one sample; required with series "
                  "\"windows\", and only there");
  const auto isDrop = [](const Expectation& e) { return e.kind == CheckKind::kDropMax; };
  const bool hasDrop = std::any_of(metric.standing.begin(), metric.standing.end(), isDrop);
  if (metric.series == Series::kNone && hasDrop)
    return r.fail("standing", "drop_max needs samples over time: declare the metric's series");
  if (metric.series == Series::kNone) return;
  if (metric.direction == Direction::kNone)
    return r.fail("series", "needs a direction: which way is a drop?");
  if (!hasDrop) metric.standing.push_back(noDrop(plugin + "." + metric.name, metric.unit));
}

/// Every {label} of the template must be a label of the metric.
void checkPeak(StrictReader& r, const MetricSpec& metric) {
  for (size_t at = metric.peak.find('{'); at != std::string::npos; at = metric.peak.find('{', at + 1)) {
    const size_t end = metric.peak.find('}', at);
    if (end == std::string::npos) return r.fail("peak", "has a '{' without its '}'");
    const std::string label = metric.peak.substr(at + 1, end - at - 1);
    if (std::find(metric.labels.begin(), metric.labels.end(), label) == metric.labels.end())
      return r.fail("peak", fmt::format("uses {{{}}}, which is not a label of the metric{}",
                                        printable(label, 40), didYouMean(label, metric.labels)));
  }
}

Result<MetricSpec> readMetric(const Json& json, const std::string& path, const std::string& plugin) {
  MetricSpec metric;
  StrictReader r(
      json, path,
      {"name", "unit", "direction", "labels", "backends", "summary", "remedy", "peak", "informational",
       "optional", "leader", "total", "standing", "series", "window", "finding_labels"});
  r.readName("name", metric.name);
  readBaseUnit(r, metric.unit);
  std::string direction = "none";
  r.optional("direction", direction);
  if (const auto parsed = directionFromName(direction); parsed.ok())
    metric.direction = *parsed;
  else
    r.fail("direction", parsed.error().message);
  r.optional("labels", metric.labels);
  r.optional("finding_labels", metric.findingLabels);
  for (const std::string& label : metric.findingLabels)
    if (r.ok() && std::find(metric.labels.begin(), metric.labels.end(), label) == metric.labels.end())
      r.fail("finding_labels", fmt::format("has {}, which is not a label of the metric{}",
                                           printable(label, 40), didYouMean(label, metric.labels)));
  r.optional("summary", metric.summary);
  r.optional("remedy", metric.remedy);
  r.optional("peak", metric.peak);
  r.optional("informational", metric.informational);
  r.optional("optional", metric.optional);
  r.optional("leader", metric.leader);
  r.optional("total", metric.total);
  if (r.has("backends")) r.readChoices("backends", metric.backends, {"cuda", "host", "sim"});
  if (r.ok()) checkPeak(r, metric);
  readStandings(r, json, path, plugin, metric);
  if (r.ok()) readSeries(r, plugin, metric);
  if (!r.ok()) return r.status().error();
  return metric;
}

/// Reads the items of the list `key` with `readOne` and refuses two of one name.
template <typename T, typename F>
void readNamed(StrictReader& r, const char* key, const std::string& kind, const std::string& path,
               std::vector<T>& out, F readOne) {
  if (!r.ok() || !r.has(key)) return;
  std::set<std::string> names;
  r.each(key, [&](const Json& item, const std::string& itemPath) -> Status {
    const bool named = item.is_object() && item.contains("name") && item["name"].is_string();
    const std::string at =
        named ? fmt::format("{}, {} \"{}\"", path, kind, printable(item["name"].get<std::string>(), 64))
              : itemPath;
    MUSTER_TRY(T value, readOne(item, at));
    if (!names.insert(value.name).second) return Error{ErrorCode::kProtocol, "is declared twice", at};
    out.push_back(std::move(value));
    return {};
  });
}

/// A metric of a backend that the test does not run on would never be measured.
Status checkMetricBackends(const TestSpec& test, const std::string& path) {
  for (const auto& metric : test.metrics)
    for (const auto& backend : metric.backends)
      if (std::find(test.backends.begin(), test.backends.end(), backend) == test.backends.end())
        return Error{ErrorCode::kProtocol,
                     fmt::format("names {}, which is not a backend of the test; its backends are {}", backend,
                                 join(test.backends, ", ")),
                     fmt::format("{}, metric \"{}\".backends", path, metric.name)};
  return {};
}

/// The window of a series must be a duration among the test's parameters.
Status checkWindows(const TestSpec& test, const std::string& path) {
  for (const auto& metric : test.metrics) {
    if (metric.window.empty()) continue;
    const ParamSpec* param = test.param(metric.window);
    if (param == nullptr || param->type != ParamType::kQuantity || param->unit != "s")
      return Error{ErrorCode::kProtocol,
                   fmt::format("names \"{}\"; expected a parameter of type quantity in s",
                               printable(metric.window, 64)),
                   fmt::format("{}, metric \"{}\".window", path, metric.name)};
  }
  return {};
}

Result<TestSpec> readTest(const Json& json, const std::string& path, const std::string& plugin) {
  TestSpec test;
  StrictReader r(json, path,
                 {"name", "summary", "backends", "scopes", "ranks", "group", "params", "metrics"});
  r.readName("name", test.name);
  r.optional("summary", test.summary);
  r.readChoices("backends", test.backends, {"cuda", "host", "sim"});
  r.readChoices("scopes", test.scopes, {"device", "node", "cluster"});
  r.optional("ranks", test.ranks);
  if (r.ok() && json.contains("ranks") && test.ranks < 1)
    return Error{ErrorCode::kProtocol, fmt::format("is {}; expected a number above 0", test.ranks),
                 path + ".ranks"};
  readNamed(r, "params", "parameter", path, test.params, readParam);
  readNamed(r, "metrics", "metric", path, test.metrics,
            [&](const Json& item, const std::string& at) { return readMetric(item, at, plugin); });
  bool group = false;
  r.optional("group", group);
  for (MetricSpec& metric : test.metrics)
    for (const char* label : {kRanksLabel, kNodesLabel})
      if (group && std::find(metric.labels.begin(), metric.labels.end(), label) == metric.labels.end())
        metric.labels.emplace_back(label);
  if (!r.ok()) return r.status().error();
  MUSTER_CHECK_OK(checkMetricBackends(test, path));
  MUSTER_CHECK_OK(checkWindows(test, path));
  return test;
}

/// A plan names a metric by plugin and name alone, so all tests of a plugin must mean the same by it.
Status checkSharedMetrics(const PluginSpec& plugin) {
  std::map<std::string, const MetricSpec*> seen;
  for (const auto& test : plugin.tests)
    for (const auto& metric : test.metrics) {
      const auto [at, fresh] = seen.emplace(metric.name, &metric);
      if (fresh || (at->second->unit == metric.unit && at->second->direction == metric.direction &&
                    at->second->series == metric.series))
        continue;
      return Error{
          ErrorCode::kProtocol, "another test declares this metric with another unit, direction or series",
          fmt::format("plugin \"{}\", test \"{}\", metric \"{}\"", plugin.name, test.name, metric.name)};
    }
  return {};
}

template <typename T>
const T* findNamed(const std::vector<T>& list, std::string_view name) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const T& item) { return item.name == name; });
  return at == list.end() ? nullptr : &*at;
}

}  // namespace

const char* paramTypeName(ParamType type) {
  const auto* at = std::find_if(std::begin(kTypes), std::end(kTypes),
                                [&](const auto& named) { return named.second == type; });
  return at == std::end(kTypes) ? "?" : at->first;
}

std::string TestSpec::scopesText() const {
  std::vector<std::string> texts = scopes;
  if (texts.size() > 1) texts.front() += " (default)";
  if (ranks > 0)
    texts.push_back(fmt::format("by default {} process{} per node", ranks, ranks == 1 ? "" : "es"));
  return join(texts, ", ");
}

const ParamSpec* TestSpec::param(std::string_view wanted) const {
  return findNamed(params, wanted);
}
const MetricSpec* TestSpec::metric(std::string_view wanted) const {
  return findNamed(metrics, wanted);
}
const TestSpec* PluginSpec::test(std::string_view wanted) const {
  return findNamed(tests, wanted);
}

Result<PluginSpec> pluginSpecFromDescribe(const std::string& plugin, const Json& describe) {
  PluginSpec spec;
  spec.name = plugin;
  const std::string path = fmt::format("plugin \"{}\"", plugin);
  StrictReader r(describe, path, {"tests"});
  if (r.ok() && !r.has("tests")) r.fail("tests", "is missing; expected a list of tests");
  readNamed(r, "tests", "test", path, spec.tests,
            [&](const Json& item, const std::string& at) { return readTest(item, at, plugin); });
  if (r.ok() && spec.tests.empty()) r.fail("tests", "is empty; a plugin offers at least one test");
  if (!r.ok()) return r.status().error();
  MUSTER_CHECK_OK(checkSharedMetrics(spec));
  return spec;
}

const PluginSpec* Catalog::plugin(std::string_view name) const {
  const auto at = plugins.find(std::string(name));
  return at == plugins.end() ? nullptr : &at->second;
}

const MetricSpec* Catalog::metric(std::string_view qualified) const {
  for (const auto& [name, spec] : plugins) {
    // Plugin names may hold a dot, so the name is compared and not split off.
    if (!qualified.starts_with(name + ".")) continue;
    for (const auto& test : spec.tests)
      if (const auto* metric = test.metric(qualified.substr(name.size() + 1))) return metric;
  }
  return nullptr;
}

}  // namespace muster
