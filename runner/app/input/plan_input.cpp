// SPDX-License-Identifier: Apache-2.0
// Loads plans with profiles and overrides, and collects all errors.
#include "runner/app/input/plan_input.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster {

Result<std::map<std::string, Profile>> allProfiles(const Tree& tree,
                                                   const std::vector<std::filesystem::path>& extra,
                                                   const Catalog* catalog, std::vector<Complaint>* found) {
  MUSTER_TRY(auto profiles, loadProfiles(tree.plans / "skus", catalog, {}, found));
  for (const auto& folder : extra) {
    MUSTER_TRY(auto more, loadProfiles(folder, catalog, {tree.plans / "skus"}, found));
    for (auto& [name, profile] : more) profiles.insert_or_assign(name, std::move(profile));
  }
  return profiles;
}

namespace {

std::vector<std::string> namesOf(const std::map<std::string, Profile>& profiles) {
  std::vector<std::string> names;
  names.reserve(profiles.size());
  for (const auto& [name, profile] : profiles) names.push_back(name);
  return names;
}

}  // namespace

Status checkSkuName(const std::string& sku, const std::map<std::string, Profile>& profiles) {
  if (sku == "auto" || profiles.contains(sku)) return {};
  const auto names = namesOf(profiles);
  return Error{ErrorCode::kUsage,
               fmt::format("no SKU profile \"{}\"{}; available: auto, {}; --skus DIR adds more",
                           printable(sku), didYouMean(sku, names), join(names, ", ")),
               "--sku"};
}

Result<PlanOptions> planOptionsFrom(const std::vector<std::string>& sets,
                                    const std::map<std::string, Profile>& profiles) {
  PlanOptions options;
  options.skus = namesOf(profiles);
  for (const std::string& argument : sets) {
    MUSTER_TRY(Override parsed, parseOverride(argument));
    options.overrides.push_back(std::move(parsed));
  }
  return options;
}

Result<Plan> requirePlan(PlanOutcome outcome) {
  std::string text;
  size_t mistakes = 0;
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    if (diagnostic.warning) continue;
    text += (mistakes++ == 0 ? "" : "\n") + diagnostic.text();
  }
  if (mistakes == 0 && outcome.plan) return *std::move(outcome.plan);
  if (mistakes > 1) text += fmt::format("\n{} errors; nothing was run", mistakes);
  return Error{ErrorCode::kUsage, text, ""};
}

}  // namespace muster
