// SPDX-License-Identifier: Apache-2.0
// Which expectations hold for a stage: the plan's own, the profile's, and the standing ones of its metrics.
#pragma once

#include <string>
#include <vector>

#include "runner/judge/judge.h"
#include "runner/metrics/catalog.h"
#include "runner/plan/plan.h"
#include "runner/sku/profile.h"

namespace muster {

/// Qualified metrics ("compute.gemm_throughput") that a test reports on `backend`.
std::set<std::string> metricsOn(const PluginSpec& plugin, const TestSpec& test, const std::string& backend);

/// As StageEvidence::findingLabels.
std::map<std::string, std::set<std::string>> findingLabelsOf(const PluginSpec& plugin, const TestSpec& test);

/// The metrics that rank 0 alone reports in a stage of `scope`; in scope device each rank is a group of its
/// own.
std::set<std::string> leaderMetricsOn(const PluginSpec& plugin, const TestSpec& test, Scope scope);

/// Takes the optional metrics that nothing was measured of out of what the cases in `caseIds` may report,
/// unless the machine could not run them at all.
void leaveOutUnmeasured(const PluginSpec& plugin, const TestSpec& test,
                        const std::vector<std::string>& caseIds, StageEvidence& evidence);

/// The scalar parameters of a case as labels; lists are joined with commas.
Labels knownLabels(const Case& c);

/// The profile's expectations that the cases in `evidence` can meet: their metric is declared by a case whose
/// known labels do not contradict `where`. A label `op` is also looked up in a list parameter `ops`. Those
/// with `params` only where these are the parameters of all such cases.
std::vector<Expectation> profileExpectations(const Profile& profile, const StageEvidence& evidence);

/// The standing expectations of a test's metrics on `backend`. On the host a drop over time only warns, from
/// 50% on, unless the plan or the profile says otherwise.
std::vector<Expectation> standingExpectations(const TestSpec& test, const std::string& backend);

/// What a stage of `ranks` ranks on `nodes` nodes can report, and every limit that holds for it: the plan's
/// own, those of `profile` (nullptr: none) and the standing ones. Of telemetry beside it nothing.
StageEvidence expectedEvidence(const Stage& stage, const PluginSpec& plugin, const TestSpec& test,
                               const std::string& backend, int ranks, int nodes, const Profile* profile);

/// Puts the parameters that the profile fixes for "compute.gemm" into the case, where the plan wrote none
/// itself.
Status applyStageParams(const Profile& profile, const TestSpec& test, const std::string& qualifiedTest,
                        Case& c);

}  // namespace muster
