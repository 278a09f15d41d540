// SPDX-License-Identifier: Apache-2.0
// See record_input.h.
#include "runner/app/record_input.h"

#include <fmt/format.h>

#include "reports/model/record_check.h"
#include "runner/app/node_inventory.h"
#include "runner/plan/stage_names.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

/// What a record of this plan must hold; empty: the text is no plan.
std::vector<std::string> stagesIn(const std::string& plan) {
  std::vector<std::string> names = stageNamesIn(plan);
  if (!names.empty()) names.emplace_back(kInventoryStage);
  return names;
}

Status checkStages(const Record& record) {
  const std::vector<std::string> wanted = stagesIn(record.plan.text);
  std::vector<std::string> found;
  for (const StageRecord& stage : record.stages) found.push_back(stage.name);
  const std::string difference =
      wanted.empty() ? "the text of its plan cannot be read" : stageDifference(found, wanted);
  if (difference.empty()) return {};
  return Error{ErrorCode::kUsage,
               difference + "; the file was edited or torn: use the record as `muster run` wrote it",
               "record"};
}

}  // namespace

Result<Record> recordAt(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error) && fs::exists(path / "record.json", error))
    return Error{ErrorCode::kUsage,
                 fmt::format("is a folder; wanted its record, {}", (path / "record.json").string()),
                 path.string()};
  MUSTER_TRY(Record record, readRecord(path));
  if (Status whole = checkStages(record); !whole.ok())
    return std::move(whole).error().context("reading record " + path.string());
  return record;
}

void setAsideIncomplete(fleet::FleetRecords& records) {
  const auto& plans = records.names->plans;
  fleet::PlanStages stages;
  for (uint32_t i = 0; i < plans.size(); ++i)
    if (auto names = stagesIn(plans[i]); !names.empty()) stages.emplace(plans.textOf(i), std::move(names));
  fleet::setAsideIncomplete(records, stages);
}

}  // namespace muster
