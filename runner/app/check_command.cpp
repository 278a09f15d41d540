// SPDX-License-Identifier: Apache-2.0
// `muster check`: every mistake of a plan in one go, without running anything.
#include <fmt/format.h>

#include <cstdio>

#include "runner/app/commands.h"
#include "runner/app/exit_code.h"
#include "runner/app/plan_input.h"
#include "runner/dispatch/plugins.h"

namespace muster {

Result<int> checkCommand(const std::vector<std::filesystem::path>& plans,
                         const std::vector<std::string>& sets,
                         const std::vector<std::filesystem::path>& pluginFolders,
                         const std::vector<std::filesystem::path>& skuFolders) {
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, pluginFolders, {}));
  MUSTER_TRY(const auto profiles, allProfiles(tree, skuFolders, &catalog));
  MUSTER_TRY(const PlanOptions options, planOptionsFrom(sets, profiles));
  size_t bad = 0;
  for (const std::filesystem::path& path : plans) {
    const PlanOutcome outcome = loadPlan(path, catalog, options);
    size_t mistakes = 0;
    for (const Diagnostic& diagnostic : outcome.diagnostics) {
      fmt::print(stderr, "{}{}\n", diagnostic.warning ? "warning: " : "", diagnostic.text());
      mistakes += diagnostic.warning ? 0 : 1;
    }
    if (mistakes > 0 || !outcome.plan) {
      ++bad;
      fmt::print(stderr, "{}: {} mistake{}\n", path.string(), mistakes, mistakes == 1 ? "" : "s");
      continue;
    }
    size_t cases = 0;
    for (const Stage& stage : outcome.plan->stages) cases += stage.cases.size();
    fmt::print("{}: good: plan {}, {} stage{}, {} case{}\n", path.string(), outcome.plan->name,
               outcome.plan->stages.size(), outcome.plan->stages.size() == 1 ? "" : "s", cases,
               cases == 1 ? "" : "s");
  }
  return bad == 0 ? kExitAccepted : kExitUsage;
}

}  // namespace muster
