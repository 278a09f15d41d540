// SPDX-License-Identifier: Apache-2.0
// `muster check`: validates plans and lists all errors; runs nothing.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "runner/app/commands/commands.h"
#include "runner/app/commands/plan_input.h"
#include "runner/app/process/print_error.h"
#include "runner/core/print.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr size_t kMostInput = size_t{16} << 20;  ///< more than the largest plan, which is refused as such

/// A plan from standard input. It is Lua where one of its lines begins with "return", as each Lua plan's last
/// statement does and no line of TOML; else TOML. Messages name it stdin.lua or stdin.toml.
Result<PlanOutcome> checkInput(const Catalog& catalog, const PlanOptions& options) {
  std::string text;
  char buffer[65536];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, n);
    if (text.size() > kMostInput) break;
  }
  if (std::ferror(stdin) != 0)
    return Error{ErrorCode::kUsage, "cannot read it: " + errnoText(errno), "standard input"};
  const bool lua = text.starts_with("return") || text.find("\nreturn") != std::string::npos;
  return parsePlan(text, lua ? "stdin.lua" : "stdin.toml", catalog, options);
}

}  // namespace

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
    PlanOutcome outcome;
    if (path == "-") {
      MUSTER_TRY(outcome, checkInput(catalog, options));
    } else {
      outcome = loadPlan(path, catalog, options);
    }
    const std::string name = path == "-" ? "standard input" : path.string();
    size_t mistakes = 0;
    for (const Diagnostic& diagnostic : outcome.diagnostics) {
      printError(fmt::format("{}{}", diagnostic.warning ? "warning: " : "", diagnostic.text()));
      mistakes += diagnostic.warning ? 0 : 1;
    }
    if (mistakes > 0 || !outcome.plan) {
      ++bad;
      printError(fmt::format("{}: {} error{}", name, mistakes, mistakes == 1 ? "" : "s"));
      continue;
    }
    size_t cases = 0;
    for (const Stage& stage : outcome.plan->stages) cases += stage.cases.size();
    printText("{}: valid: plan {}, {} stage{}, {} case{}\n", name, outcome.plan->name,
              outcome.plan->stages.size(), outcome.plan->stages.size() == 1 ? "" : "s", cases,
              cases == 1 ? "" : "s");
  }
  return bad == 0 ? kExitAccepted : kExitUsage;
}

}  // namespace muster
