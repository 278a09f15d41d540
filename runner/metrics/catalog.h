// SPDX-License-Identifier: Apache-2.0
// What plugins offer, as their describe() says: tests, typed parameters and metrics. Plans are checked
// against it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/metrics/expectation.h"
#include "runner/metrics/measurement.h"

namespace muster {

enum class ParamType { kInt, kFloat, kBool, kString, kQuantity, kList };
const char* paramTypeName(ParamType type);  ///< as describe() writes it: int, float, bool, ...

/// One parameter of a test. Quantities hold their bounds and default in the base unit.
struct ParamSpec {
  std::string name;
  ParamType type = ParamType::kInt;
  ParamType itemType = ParamType::kString;  ///< kList only
  std::string unit;                         ///< kQuantity only: the base unit
  Json defaultValue;
  std::optional<double> min;
  std::optional<double> max;
  std::vector<std::string> oneOf;
  std::string summary;
};

/// Labels that the runner gives every measurement of a test with "group": how many ranks measured together,
/// on how many nodes.
inline constexpr const char* kRanksLabel = "ranks";
inline constexpr const char* kNodesLabel = "nodes";

/// One metric of a test.
struct MetricSpec {
  std::string name;  ///< without the plugin's name
  std::string unit;
  Direction direction = Direction::kNone;
  std::vector<std::string> labels;
  std::vector<std::string> findingLabels;  ///< of these, those that say what was found, and not on what
  std::vector<std::string>
      backends;  ///< backends that report it; empty: all (GPU readings are absent on the host)
  std::string summary;
  std::string
      remedy;        ///< what to do if a limit of it is missed; for expectations that say nothing themselves
  std::string peak;  ///< template of the peak's name, "flops.{dtype}"; empty if it has none
  bool informational = false;
  bool optional =
      false;  ///< only some machines have it (EDAC counters): unmeasured, it is not among a case's metrics
  bool leader =
      false;  ///< rank 0 alone reports it, for its whole group (a rate that all ranks reach together)
  bool total = false;  ///< telemetry: samples are a running total, of which only the last one is judged
  Series series = Series::kNone;      ///< how the samples of one measurement follow each other in time
  std::string window;                 ///< kWindows: the parameter that says how long one sample takes
  std::vector<Expectation> standing;  ///< hold in every plan; metric and origin are filled
};

struct TestSpec {
  std::string name;
  std::string summary;
  std::vector<std::string> backends;
  std::vector<std::string> scopes;  ///< the first is that of a stage that names none
  int ranks = 0;                    ///< processes per node where a stage states none; 0: one per device
  std::vector<ParamSpec> params;
  std::vector<MetricSpec> metrics;

  [[nodiscard]] const ParamSpec* param(std::string_view name) const;
  [[nodiscard]] const MetricSpec* metric(std::string_view name) const;
  /// "node (default), device, by default 1 process per node"
  [[nodiscard]] std::string scopesText() const;
};

struct PluginSpec {
  std::string name;
  std::string version;
  std::string path;  ///< real path of the library
  std::vector<TestSpec> tests;

  [[nodiscard]] const TestSpec* test(std::string_view name) const;
};

/// Reads the JSON of describe(). Errors name the test and key.
Result<PluginSpec> pluginSpecFromDescribe(const std::string& plugin, const Json& describe);

/// Checks one parameter value (as written in a plan: JSON bool, number, string, array) and converts it to the
/// form that run() gets (quantities become numbers in the base unit). Errors say what was found and what was
/// wanted.
Result<Json> convertParam(const ParamSpec& spec, const Json& value);

/// All installed plugins by name.
struct Catalog {
  std::map<std::string, PluginSpec> plugins;
  std::map<std::string, Error> refused;  ///< library file name -> why it was refused

  [[nodiscard]] const PluginSpec* plugin(std::string_view name) const;
  /// The metric "plugin.name" wherever it is declared, or nullptr.
  [[nodiscard]] const MetricSpec* metric(std::string_view qualified) const;
};

}  // namespace muster
