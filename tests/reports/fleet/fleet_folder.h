// SPDX-License-Identifier: Apache-2.0
// Folders of node records for tests of the fleet.
#pragma once

#include <string>
#include <vector>

#include "reports/fleet/fleet_record.h"
#include "runner/record/record.h"
#include "tests/support/process.h"

namespace muster::testing {

/// A healthy record of the node `name`, of one plan, with parts of its own.
Record nodeRecord(const std::string& name);
/// The text of its plan, with its digest.
void givePlan(Record& record, const std::string& text);
/// Gives the record's devices serials and UUIDs that depend on `seed`.
void giveParts(Record& record, const std::string& seed);
/// The same node with a figure that missed its limit on gpu3.
Record failedRecord(const std::string& name, const std::string& device = "gpu3");
/// What the stage's verdicts and measurements come from, as a run keeps it.
void keepEvidence(StageRecord& stage);
/// Measures the devices of the inventory, as Muster's own stage does.
void measureInventory(Record& record);
/// Makes a stage of eight ranks that of node number `node` of a group of `nodes`.
void joinGroup(StageRecord& stage, int node, int nodes);
/// A stage of scope cluster that passed, in the record of number `number` of the nodes that met in it, with
/// so many GPUs each.
StageRecord metStage(const std::string& name, const std::vector<std::string>& nodes, int number, int ranks,
                     const std::string& id);
/// Makes it one that the plan lets a node skip, without a result.
void skipOptional(StageRecord& stage);
/// `passed`, as a test of pairs has it about a slow link to the node with the number `peer`.
Verdict slowLink(Verdict passed, const std::string& peer);
/// Makes what `stage` came to "left to another job", as `--scope` does.
void leaveElsewhere(Record& record, const std::string& stage);

/// A run folder of many nodes.
class FleetFolder {
 public:
  /// Writes `record` to PATH/record.json; by default PATH is the node's name. Each one is a run of its own,
  /// unless it has another id than nodeRecord() gives.
  void add(Record record, const std::string& path = "");
  void write(const std::string& path, const std::string& text) { folder_.write(path, text); }
  /// Reads and judges everything; the nodes are expected. Fails the test on an error.
  fleet::Fleet assess(const std::vector<std::string>& expected);
  fleet::Fleet assess(const fleet::FleetOptions& options);
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }
  [[nodiscard]] const fleet::FleetRecords& records() const { return records_; }

 private:
  TempDir folder_;
  int runs_ = 0;
  fleet::FleetRecords records_;
};

/// The node's entry; fails the test when there is none.
const fleet::FleetNode& nodeOf(const fleet::Fleet& fleet, const std::string& name);

}  // namespace muster::testing
