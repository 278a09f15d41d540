// SPDX-License-Identifier: Apache-2.0
// Input of a run on many nodes, whichever scheduler starts it: plan, scenario, waivers, and options of
// `muster run`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runner/app/node/node_run.h"
#include "runner/core/result.h"
#include "runner/plan/plan.h"

namespace CLI {
class App;
}

namespace muster {

struct SubmitInput {
  std::filesystem::path plan;
  std::filesystem::path out;  ///< the run folder; empty: one in the working directory
  std::filesystem::path scenario;
  std::vector<std::string> sets;
  std::vector<std::filesystem::path> skuFolders;
  std::vector<std::filesystem::path> pluginFolders;
  std::string sku;
  uint64_t seed = 42;
  std::filesystem::path waivers;
  std::filesystem::path topology;
  std::vector<std::string> nodeSkus;  ///< "NODES=SKU"
  bool sameMachine = false;
  bool rejectOutliers = false;
  bool strict = false;
};

/// Adds the options that say what each node runs and how the fleet is judged; the plan is an argument.
void addSubmitInput(CLI::App* submit, SubmitInput& input);

/// All that `muster run` would look at before its first stage, and the topology file.
Result<RunSetup> checkedSetup(const SubmitInput& input);

/// Begins the simulated run of a node here, without any stage: what it refuses (the scenario, a profile that
/// is not for it), each node would have to refuse later.
Status checkScenario(const SubmitInput& input, const RunSetup& setup, size_t nodes);

/// The options of `muster run` that are the same on every node.
std::vector<std::string> runOptions(const SubmitInput& input);

/// The plan's name as far as it can be part of a file's or a job's.
std::string plainNameOf(const std::string& planName);

/// An id for a new run: "node-full-20261121T031026Z-1f2e".
std::string newRunId(const std::string& planName);

/// The name that an input has in the run folder: its own, as records name it, where that is a plain one.
std::string inputName(const std::filesystem::path& path, const std::string& otherwise);

/// The time limit of a job that runs these stages one after the other, in minutes.
int minutesOf(const Plan& plan);

/// A duration of an option in minutes, rounded up.
Result<int> minutesFrom(const std::string& text, const char* option);

}  // namespace muster
