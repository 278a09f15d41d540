// SPDX-License-Identifier: Apache-2.0
// Writes the events of `--json`.
#include "runner/app/view/view_json.h"

#include <cstdio>

#include "runner/core/clock.h"
#include "runner/core/print.h"

namespace muster {
namespace {

class JsonView : public RunView {
 public:
  void runStarted(const Record& record, const std::filesystem::path& folder) override {
    emit({{"event", "run_started"},
          {"run", record.runId},
          {"plan", record.plan.name},
          {"node", record.node},
          {"backend", record.backend},
          {"simulated", record.simulated},
          {"profile", record.profile.name},
          {"folder", folder.string()}});
  }
  void stageStarted(const StageStart& stage) override {
    emit({{"event", "stage_started"},
          {"stage", stage.name},
          {"what", stage.what},
          {"index", stage.index},
          {"count", stage.count},
          {"timeout", stage.timeout}});
  }
  void stageProgress(const StageProgress& progress) override {
    if (progress.elapsed >= last_ && progress.elapsed < last_ + 1) return;  // one per second is enough
    last_ = progress.elapsed;
    emit({{"event", "stage_progress"},
          {"elapsed", progress.elapsed},
          {"fraction", progress.fraction < 0 ? Json() : Json(progress.fraction)},
          {"text", progress.text}});
  }
  void stageEnded(const StageRecord& stage) override {
    Json verdicts = Json::array();
    for (const Verdict& verdict : stage.verdicts)
      if (verdict.outcome != Outcome::kPass) verdicts.push_back(toJson(verdict));
    emit({{"event", "stage_ended"},
          {"stage", stage.name},
          {"state", nameOf(stage.state)},
          {"reason", stage.reason},
          {"outcome", outcomeName(stage.outcome)},
          {"duration", stage.duration},
          {"deviations", verdicts}});
  }
  void note(const std::string& text) override { emit({{"event", "note"}, {"text", text}}); }
  void runEnded(const Record& record, const std::filesystem::path& folder) override {
    Json counts = Json::object();
    for (int i = 0; i < kOutcomeCount; ++i)
      counts[outcomeName(static_cast<Outcome>(i))] = record.accounting.of(static_cast<Outcome>(i));
    emit({{"event", "run_ended"},
          {"acceptance", nameOf(record.acceptance)},
          {"exit_code", record.exitCode},
          {"simulated", record.simulated},
          {"reasons", record.reasons},
          {"counts", counts},
          {"record", (folder / "record.json").string()},
          {"report", (folder / "report.html").string()}});
  }

 private:
  static void emit(Json event) {
    event["time"] = formatUtc(systemClock().wallUnix());
    printJson(event);
    std::fflush(stdout);
  }
  double last_ = -1;
};

}  // namespace

std::unique_ptr<RunView> makeJsonView() {
  return std::make_unique<JsonView>();
}

}  // namespace muster
