// SPDX-License-Identifier: Apache-2.0
// Checks the input of a run on many nodes, and makes names and options of it.
#include "runner/app/submit/submit_input.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runner/app/fleet/fleet_options.h"
#include "runner/app/input/plan_input.h"
#include "runner/app/node/waiver_input.h"
#include "runner/core/clock.h"
#include "runner/core/duration.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/inputs/toml_input.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr int kMargin = 10;  // minutes beside the stages' own timeouts: inventory, start, reports
constexpr int kMostMinutes = 366 * 24 * 60;

/// Shows nothing: what a run would refuse is told as its error.
class NoView : public RunView {
 public:
  void runStarted(const Record&, const fs::path&) override {}
  void stageStarted(const StageStart&) override {}
  void stageProgress(const StageProgress&) override {}
  void stageEnded(const StageRecord&) override {}
  void note(const std::string&) override {}
  void runEnded(const Record&, const fs::path&) override {}
};

/// A folder of its own that is removed again.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "muster-submit-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

std::string plainNameOf(const std::string& planName) {
  std::string name;
  for (const char c : planName.substr(0, 32)) name += isPlainName(std::string("a") + c) ? c : '-';
  return isPlainName(name) ? name : "plan";
}

std::string newRunId(const std::string& planName) {
  std::string name = plainNameOf(planName), time = formatUtc(systemClock().wallUnix());
  time.erase(std::remove_if(time.begin(), time.end(), [](char c) { return c == ':' || c == '-'; }),
             time.end());
  std::random_device device;
  return fmt::format("{}-{}-{:04x}", name, time, device() & 0xffff);
}

int minutesOf(const Plan& plan) {
  double seconds = 0;
  for (const Stage& stage : plan.stages) seconds += stage.timeout * stage.attempts;
  return std::min(static_cast<int>(std::ceil(seconds / 60)) + kMargin, kMostMinutes);
}

Result<int> minutesFrom(const std::string& text, const char* option) {
  constexpr DurationRange kTimes = {1, kMostMinutes * 60.0, "a duration from 1s to 366d, for example 90m"};
  MUSTER_TRY(const double seconds, parseDuration(text, kTimes).context(option));
  return static_cast<int>(std::ceil(seconds / 60));
}

std::string inputName(const fs::path& path, const std::string& otherwise) {
  const std::string name = path.filename().string();
  return isPlainName(name) ? name : otherwise;
}

std::vector<std::string> runOptions(const SubmitInput& o) {
  std::vector<std::string> words = {"--seed", std::to_string(o.seed)};
  for (const std::string& set : o.sets) words.insert(words.end(), {"--set", set});
  if (!o.sku.empty()) words.insert(words.end(), {"--sku", o.sku});
  for (const fs::path& path : o.skuFolders)
    words.insert(words.end(), {"--skus", fs::absolute(path).string()});
  for (const fs::path& path : o.pluginFolders)
    words.insert(words.end(), {"--plugins", fs::absolute(path).string()});
  if (o.strict) words.push_back("--strict");
  return words;
}

Status checkScenario(const SubmitInput& o, const RunSetup& asked, size_t nodes) {
  MUSTER_CHECK_OK(frozenToml(o.scenario));
  const ScratchFolder scratch;
  if (scratch.path().empty())
    return Error{ErrorCode::kIo, "cannot make a folder in which the scenario is checked", "TMPDIR"};
  RunOptions options;
  options.scenario = o.scenario;
  options.sku = o.sku;
  NoView view;
  RunSetup setup = asked;
  setup.options = &options;
  setup.view = &view;
  setup.plan.stages.clear();
  MUSTER_TRY(RunFolder folder, RunFolder::create(scratch.path() / "run"));
  NodeRun run(setup, std::move(folder), {"submit", 0, static_cast<int>(std::max<size_t>(nodes, 1))});
  const auto record = run.run();
  return record.ok() ? Status() : Status(record.error());
}

Result<RunSetup> checkedSetup(const SubmitInput& o) {
  RunSetup setup;
  MUSTER_TRY(setup.tree, findTree());
  MUSTER_TRY(setup.catalog, describePlugins(setup.tree, o.pluginFolders, {}));
  MUSTER_TRY(setup.profiles, allProfiles(setup.tree, o.skuFolders, &setup.catalog));
  MUSTER_TRY(PlanOptions planOptions, planOptionsFrom(o.sets, setup.profiles));
  if (!o.sku.empty()) {
    MUSTER_CHECK_OK(checkSkuName(o.sku, setup.profiles));
    planOptions.skus.clear();  // the plan's own is not used
  }
  MUSTER_TRY(setup.plan, requirePlan(loadPlan(o.plan, setup.catalog, planOptions)));
  const auto named = setup.profiles.find(o.sku.empty() ? setup.plan.sku : o.sku);
  if (named != setup.profiles.end()) MUSTER_CHECK_OK(checkOrigin(named->second, !o.scenario.empty()));
  if (!o.waivers.empty()) {
    MUSTER_TRY(const Waivers waivers, readWaivers(o.waivers, systemClock().wallUnix()));
    MUSTER_CHECK_OK(checkAgainstPlan(waivers, setup.plan, setup.catalog));
  }
  if (!o.topology.empty()) MUSTER_CHECK_OK(checkTopology(o.topology));
  return setup;
}

}  // namespace muster
