// SPDX-License-Identifier: Apache-2.0
// `muster check`: validates plans and lists all errors; runs nothing.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "kernels/sim/scenario/scenario.h"
#include "reports/acceptance/requirements.h"
#include "runner/app/input/plan_input.h"
#include "runner/app/prepare/check_report.h"
#include "runner/app/prepare/prepare_options.h"
#include "runner/app/process/print_error.h"
#include "runner/core/print.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/judge/waivers.h"
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

void printPlan(const CheckedPlan& plan) {
  for (const Diagnostic& diagnostic : plan.outcome.diagnostics) printError(diagnostic.text());
  if (!plan.valid())
    return printError(fmt::format("{}: {} error{}", plan.name, plan.errors(), plan.errors() == 1 ? "" : "s"));
  const Plan& valid = *plan.outcome.plan;
  printText("{}: valid: plan {}, {} stage{}, {} case{}\n", plan.name, valid.name, valid.stages.size(),
            valid.stages.size() == 1 ? "" : "s", plan.cases(), plan.cases() == 1 ? "" : "s");
}

/// Gives each plan to `use` as soon as it has been checked. `found`: mistakes of a profile, which stop it.
template <typename F>
Status checkEach(const CheckOptions& options, std::vector<Complaint>& found, F use) {
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, options.pluginFolders, {}));
  MUSTER_TRY(const auto profiles, allProfiles(tree, options.skuFolders, &catalog, &found));
  MUSTER_TRY(const PlanOptions planOptions, planOptionsFrom(options.sets, profiles));
  for (const std::filesystem::path& path : options.plans) {
    CheckedPlan plan{path.string(), {}};
    if (path == "-") {
      plan.name = "standard input";
      MUSTER_TRY(plan.outcome, checkInput(catalog, planOptions));
    } else {
      plan.outcome = loadPlan(path, catalog, planOptions);
    }
    use(plan);
  }
  return {};
}

Result<int> exitCodeFor(const Status& status, bool allValid) {
  if (!status.ok()) return status.error();
  return allValid ? kExitAccepted : kExitUsage;
}

/// The JSON Schema of one kind of file.
Result<Json> schemaOf(const CheckOptions& options) {
  if (options.schema == "scenario") return sim::scenarioSchema();
  if (options.schema == "waivers") return waiversSchema();
  if (options.schema == "requirements") return requirementsSchema();
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Catalog catalog, describePlugins(tree, options.pluginFolders, {}));
  if (options.schema == "profile") return profileSchema(catalog);
  MUSTER_TRY(const auto profiles, allProfiles(tree, options.skuFolders, &catalog));
  std::vector<std::string> skus;
  for (const auto& [name, profile] : profiles) skus.push_back(name);
  return planSchema(catalog, skus);
}

}  // namespace

Result<int> checkCommand(const CheckOptions& options) {
  if (!options.schema.empty()) {
    MUSTER_TRY(const Json schema, schemaOf(options));
    printJson(schema, -1);
    return kExitAccepted;
  }
  CheckReport report;
  bool allValid = true;
  std::vector<Complaint> found;
  const Status status = checkEach(options, found, [&](const CheckedPlan& plan) {
    allValid = allValid && plan.valid();
    if (options.json)
      report.add(plan);
    else
      printPlan(plan);
  });
  if (options.json) {
    for (const Complaint& complaint : found) report.add(complaint);
    if (!status.ok() && found.empty()) report.add(status.error());
    printJson(report.json(), 2);
  }
  return exitCodeFor(status, allValid);
}

}  // namespace muster
