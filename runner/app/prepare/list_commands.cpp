// SPDX-License-Identifier: Apache-2.0
// `muster plugins` and `muster skus`: what is installed.
#include <fmt/format.h>

#include "runner/app/input/plan_input.h"
#include "runner/app/prepare/plugin_reference.h"
#include "runner/app/prepare/prepare_options.h"
#include "runner/app/process/print_error.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/metrics/params.h"
#include "runner/sku/profile.h"

namespace muster {
namespace {

/// " (1 to 100)", " (copy, scale)" or nothing: what the parameter may be.
std::string allowedText(const ParamSpec& param) {
  if (!param.oneOf.empty()) return " (" + join(param.oneOf, ", ") + ")";
  const std::string range = rangeText(param);
  return range.empty() ? "" : " (" + range + ")";
}

void printTest(const PluginSpec& plugin, const TestSpec& test) {
  printText("\n{}.{}  {}\n", plugin.name, test.name, test.summary);
  printText("  backends {}; scopes {}\n", join(test.backends, ", "), test.scopesText());
  printText("  parameters\n");
  for (const ParamSpec& param : test.params) {
    printText("    {:<18} {:<9} default {:<12} {}{}\n", param.name, paramTypeName(param.type),
              defaultText(param), param.summary, allowedText(param));
  }
  printText("  metrics\n");
  for (const MetricSpec& metric : test.metrics) {
    printText("    {:<34} {:<8} {:<7} {}\n", plugin.name + "." + metric.name, metric.unit,
              directionName(metric.direction), metric.summary);
    for (const Expectation& standing : metric.standing)
      printText("    {:<34} always: {}\n", "", standing.text());
  }
}

Error unknownName(const char* what, const std::string& name, const std::vector<std::string>& known) {
  return Error{ErrorCode::kUsage,
               fmt::format("no {} named \"{}\"{}; available: {}", what, printable(name),
                           didYouMean(name, known), join(known, ", ")),
               ""};
}

}  // namespace

Result<int> pluginsCommand(const PluginsOptions& options) {
  const std::string& name = options.name;
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, options.folders, {}));
  if (!name.empty() && catalog.plugin(name) == nullptr) {
    std::vector<std::string> names;
    for (const auto& [known, spec] : catalog.plugins) names.push_back(known);
    // What was refused has no name of its own, but a file.
    for (const auto& [file, why] : catalog.refused)
      if (file == name + ".so") return Error{ErrorCode::kUsage, "refused: " + why.text(), file};
    return unknownName("plugin", name, names);
  }
  Json list = Json::array();
  for (const auto& [known, spec] : catalog.plugins) {
    if (!name.empty() && known != name) continue;
    std::vector<std::string> tests;
    for (const TestSpec& test : spec.tests) tests.push_back(test.name);
    list.push_back({{"name", known}, {"version", spec.version}, {"path", spec.path}, {"tests", tests}});
    if (options.json || options.reference) continue;
    printText("{:<10} {:<8} {:<48} {}\n", known, spec.version, join(tests, ", "), spec.path);
    if (name.empty()) continue;
    for (const TestSpec& test : spec.tests) printTest(spec, test);
  }
  for (const auto& [file, why] : catalog.refused)
    printError(fmt::format("refused: {}: {}", file, why.text()));
  if (options.reference)
    printLines(pluginReference(catalog, name));
  else if (options.json)
    printJson(list, 2);
  else if (name.empty())
    printText("\n`muster plugins NAME` shows a plugin's tests, parameters and metrics.\n");
  return kExitAccepted;
}

Result<int> skusCommand(const SkusOptions& options) {
  const std::string& name = options.name;
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const auto profiles, allProfiles(tree, options.folders, nullptr));
  if (!name.empty() && profiles.count(name) == 0) {
    std::vector<std::string> names;
    names.reserve(profiles.size());
    for (const auto& [known, profile] : profiles) names.push_back(known);
    return unknownName("profile", name, names);
  }
  for (const auto& [known, profile] : profiles) {
    if (!name.empty() && known != name) continue;
    printText("{:<18} {:>3} {:<7}  {:>3} expectations  {}\n", known,
              profile.deviceCount == 0 ? "any" : std::to_string(profile.deviceCount),
              profile.deviceCount == 1 ? "device" : "devices", profile.expectations.size(),
              profile.description);
    if (name.empty()) continue;
    for (const Expectation& expectation : profile.expectations) {
      printText("\n  {} {}: {}\n    source: {}\n", expectation.metric, labelsText(expectation.where),
                expectation.text(), expectation.source);
      if (!expectation.params.empty()) printText("    only with: {}\n", labelsText(expectation.params));
      if (!expectation.remedy.empty()) printText("    remedy: {}\n", expectation.remedy);
    }
  }
  return kExitAccepted;
}

}  // namespace muster
