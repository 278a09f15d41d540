// SPDX-License-Identifier: Apache-2.0
// Runs of several nodes in which one node lies about all that its records say of who met whom.
#include "reports/fleet/blame/run_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>

#include "reports/fleet/fleet_record.h"
#include "runner/core/text.h"
#include "tests/reports/fleet/fleet_folder.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using fleet::NodeState;
using testing::FleetFolder;
using testing::nodeOf;
using testing::nodeRecord;
using testing::settle;

constexpr const char* kStage = "ring";

/// One run: who was which node of it, and who of them was found at fault.
struct MadeRun {
  std::vector<int> members;
  int faulty = -1;  ///< a number in the run, whose links all other members report; -1: nobody
  std::string id;
};

/// The record of one node in one run.
struct MadeRecord {
  int run = 0;
  Record record;
};

class LyingFleet {
 public:
  explicit LyingFleet(unsigned seed) : random_(seed), nodes_(below(7) + 3) {
    const int count = below(3) + 1;
    const bool all = below(2) == 0;
    fleetId_ = below(2) == 0 ? "" : "together";
    hasOwnIds_ = below(4) == 0;
    for (int i = 0; i < count; ++i) {
      MadeRun run;
      for (int node = 0; node < nodes_; ++node) run.members.push_back(node);
      if (!all || i > 0) {
        std::shuffle(run.members.begin(), run.members.end(), random_);
        // Of one run the others may be a small part.
        const int most = hasOwnIds_ && i > 0 && below(2) == 0 ? std::min(nodes_ - 1, 3) : nodes_ - 1;
        run.members.resize(static_cast<size_t>(below(most) + 2));
      }
      if (below(2) == 0) run.faulty = below(static_cast<int>(run.members.size()));
      run.id = fmt::format("{:016x}", i + 1);
      runs_.push_back(run);
    }
    for (int i = 0; i < count; ++i)
      for (int number = 0; number < sizeOf(runs_[static_cast<size_t>(i)]); ++number) add(i, number);
    liar_ = below(nodes_);
    if (below(4) == 0) stranger_ = (liar_ + 1) % nodes_;
  }

  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  [[nodiscard]] static std::string nameOf(int node) { return fmt::format("n{}", node); }
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] int liar() const { return liar_; }
  [[nodiscard]] int stranger() const { return stranger_; }
  [[nodiscard]] const std::vector<MadeRun>& runs() const { return runs_; }
  [[nodiscard]] static int sizeOf(const MadeRun& run) { return static_cast<int>(run.members.size()); }
  [[nodiscard]] bool isIn(int run, int node) const { return numberIn(run, node) >= 0; }
  [[nodiscard]] int numberIn(int run, int node) const {
    const std::vector<int>& members = runs_[static_cast<size_t>(run)].members;
    const auto at = std::find(members.begin(), members.end(), node);
    return at == members.end() ? -1 : static_cast<int>(at - members.begin());
  }

  [[nodiscard]] bool hasOwnIds() const { return hasOwnIds_; }
  /// Members of the run that are expected.
  [[nodiscard]] int voicesOf(int run) const {
    return sizeOf(runs_[static_cast<size_t>(run)]) - (isIn(run, stranger_) ? 1 : 0);
  }
  /// Whether it reports a slow link of another node, which it could do in another run.
  [[nodiscard]] bool reports(int node) const {
    for (int run = 0; run < static_cast<int>(runs_.size()); ++run)
      if (const int faulty = runs_[static_cast<size_t>(run)].faulty;
          faulty >= 0 && isIn(run, node) && faulty != numberIn(run, node))
        return true;
    return false;
  }
  /// In any run.
  [[nodiscard]] bool isFaulty(int node) const {
    for (int run = 0; run < static_cast<int>(runs_.size()); ++run)
      if (const int faulty = runs_[static_cast<size_t>(run)].faulty;
          faulty >= 0 && faulty == numberIn(run, node))
        return true;
    return false;
  }
  /// "runs n0 n3 (n3 at fault) | ...".
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const MadeRun& run : runs_) {
      all += all.empty() ? "runs" : " |";
      for (const int node : run.members) all += " " + nameOf(node);
      if (run.faulty >= 0)
        all += fmt::format(" ({} at fault)", nameOf(run.members[static_cast<size_t>(run.faulty)]));
    }
    return all;
  }

  fleet::Fleet assess() {
    FleetFolder folder;
    fleet::FleetOptions options;
    options.expectedFrom = "nodes.txt";
    options.manyRuns = !hasOwnIds_;
    for (int node = 0; node < nodes_; ++node)
      if (node != stranger_) options.expected.push_back({nameOf(node), "", false});
    int files = 0;
    for (const MadeRecord& entry : entries_)
      folder.add(entry.record, fmt::format("{}/{}", entry.run, ++files));
    return folder.assess(options);
  }

  /// What the liar's records say from now on. Returns it in words.
  std::string lie() {
    std::string said;
    std::vector<MadeRecord> own;
    for (const MadeRecord& entry : entries_)
      if (entry.record.node == nameOf(liar_)) own.push_back(entry);
    std::erase_if(entries_, [&](const MadeRecord& entry) { return entry.record.node == nameOf(liar_); });
    if (own.empty()) return "nothing";
    const size_t kept = static_cast<size_t>(below(static_cast<int>(own.size())));
    for (size_t i = 0; i < own.size(); ++i) {
      if (i != kept && below(2) == 0) {
        said += fmt::format("no record of run {}; ", own[i].run);
        continue;
      }
      for (int times = below(4); times > 0; --times)
        said += fmt::format("run {}: {}; ", own[i].run, change(own[i].record));
      settle(own[i].record);
      entries_.push_back(own[i]);
      if (below(4) > 0) continue;
      own[i].record.runId += "-again";
      own[i].record.started += 60;
      said += fmt::format("also run {}: {}; ", own[i].run, change(own[i].record));
      settle(own[i].record);
      entries_.push_back(own[i]);
    }
    return said;
  }

 private:
  void add(int index, int number) {
    const MadeRun& run = runs_[static_cast<size_t>(index)];
    Record record = nodeRecord(nameOf(run.members[static_cast<size_t>(number)]));
    record.nodeRank = number;
    record.nodeCount = sizeOf(run);
    record.started += 36000.0 * index;
    record.finished += 36000.0 * index + below(100);
    if (const std::string& id = hasOwnIds_ ? run.id : fleetId_; !id.empty()) record.launcher["fleet_id"] = id;
    record.stages.resize(2);
    record.stages.push_back(stageOf(run, number));
    settle(record);
    if (run.faulty >= 0 && number != run.faulty) report(record, run.faulty);
    entries_.push_back({index, record});
  }

  [[nodiscard]] static StageRecord stageOf(const MadeRun& run, int number) {
    std::vector<std::string> names;
    for (const int node : run.members) names.push_back(nameOf(node));
    return testing::metStage(kStage, names, number, 1, run.id);
  }

  const std::string& anyId() { return runs_[static_cast<size_t>(below(static_cast<int>(runs_.size())))].id; }

  /// That the link to another node is slow.
  static void report(Record& record, int other) {
    StageRecord& stage = record.stages.back();
    if (stage.verdicts.empty()) return;
    stage.verdicts.push_back(testing::slowLink(stage.verdicts.front(), std::to_string(other)));
    settle(record);
    record.acceptance = Acceptance::kRejected;
    record.exitCode = 1;
    record.reasons = {"as its counts say"};
  }

  std::string change(Record& record) {
    StageRecord& stage = record.stages.back();
    const int any = below(nodes_ + 1);
    const auto around = [&]() -> Json* {
      return stage.group.is_object() && stage.group.contains("around") ? &stage.group["around"] : nullptr;
    };
    switch (below(14)) {
      case 0:
        record.nodeRank = any;
        return fmt::format("it was node {}", any);
      case 1:
        record.nodeCount = any + 1;
        return fmt::format("of {} nodes", any + 1);
      case 2:
        if (stage.group.is_object()) stage.group["id"] = "ffffffffffffffff";
        return "a group of its own";
      case 3: {
        const std::string& id = anyId();
        if (stage.group.is_object()) stage.group["id"] = id;
        return "the group " + id;
      }
      case 4:
        if (stage.group.is_object()) stage.group["nodes"] = any + 1;
        return fmt::format("a group of {}", any + 1);
      case 5:
        if (stage.group.is_object()) stage.group.erase("around");
        return "no names";
      case 6:
        if (Json* names = around())
          for (Json& name : *names)
            if (below(2) == 0) name["node"] = nameOf(below(nodes_));
        return "other names";
      case 7: {
        const double shift = (below(7) - 3) * 36000.0;
        record.started += shift;
        record.finished += shift;
        return fmt::format("{} hours later", shift / 3600);
      }
      case 8:
        testing::skipOptional(stage);
        return "skipped";
      case 9:
        record.nodeCount = 1;
        record.nodeRank = 0;
        if (stage.group.is_object())
          stage.group = {{"world_size", 1}, {"first_rank", 0}, {"nodes", 1}, {"culprit", ""}};
        return "alone";
      case 10:
        record.launcher["fleet_id"] = hasOwnIds_ ? anyId() : below(2) == 0 ? "together" : "another";
        return "the fleet id " + record.launcher["fleet_id"].get<std::string>();
      case 11:
        if (stage.ranks.empty()) return "nothing";
        stage.ranks.front().rank = any;
        for (Verdict& verdict : stage.verdicts) verdict.rank = any;
        return fmt::format("rank {}", any);
      case 12:
        testing::leaveElsewhere(record, kStage);
        stage.group = Json();
        stage.ranks.clear();
        return "left to another job";
      default:
        report(record, any);
        return fmt::format("a slow link to {}", any);
    }
  }

  std::mt19937 random_;
  int nodes_;
  std::string fleetId_;
  bool hasOwnIds_;  ///< each run: then one of them counts
  std::vector<MadeRun> runs_;
  std::vector<MadeRecord> entries_;
  int liar_ = 0;
  int stranger_ = -1;  ///< a node that is not expected; -1: none
};

/// MUSTER_LIES=20000 tries as many.
unsigned lies() {
  const char* text = std::getenv("MUSTER_LIES");
  return text == nullptr ? 150 : static_cast<unsigned>(std::atoi(text));
}

TEST(RunTable, OneThatLiesEscapesNothingAndHarmsNobody) {
  const char* from = std::getenv("MUSTER_LIES_FROM");
  const unsigned first = from == nullptr ? 0 : static_cast<unsigned>(std::atoi(from));
  for (unsigned seed = first; seed < first + lies(); ++seed) {
    LyingFleet scene(seed);
    const fleet::Fleet honest = scene.assess();
    EXPECT_TRUE(honest.findings.empty()) << honest.findings.front().text << "; " << scene.text();
    const int liar = scene.liar();
    const std::string said = scene.lie();
    SCOPED_TRACE(fmt::format("seed {}: {}; {} says: {}", seed, scene.text(), LyingFleet::nameOf(liar), said));
    const fleet::Fleet lied = scene.assess();
    // Found at fault by two others in the last run in which it was.
    int last = -1;
    for (int run = 0; run < static_cast<int>(scene.runs().size()); ++run)
      if (scene.isIn(run, liar)) last = run;
    if (last >= 0) {
      const MadeRun& run = scene.runs()[static_cast<size_t>(last)];
      // What a run that does not count reports is not heard.
      if (run.faulty == scene.numberIn(last, liar) && scene.voicesOf(last) > 2 && !scene.hasOwnIds()) {
        EXPECT_NE(nodeOf(lied, LyingFleet::nameOf(liar)).state, NodeState::kAccepted);
      }
    }
    for (int node = 0; node < scene.nodes(); ++node) {
      if (node == liar || node == scene.stranger()) continue;
      const std::string name = LyingFleet::nameOf(node);
      const auto& before = nodeOf(honest, name);
      const auto& after = nodeOf(lied, name);
      if (before.state == NodeState::kRejected || scene.isFaulty(node)) continue;
      // A false report beside an honest one decides between the ends of a link (reports/README.md, "Pairs").
      if (said.find("slow link") == std::string::npos && !scene.reports(liar)) {
        EXPECT_NE(after.state, NodeState::kRejected) << name << ": " << after.reason;
      }
      // It may also choose which run counts (reports/README.md, "One run").
      if (before.state == NodeState::kIncomplete || lied.fleetId != honest.fleetId) continue;
      // Of two alone nobody can tell who lies; it may also say that it was in a run of which one tells.
      bool pair = false;
      for (int i = 0; i < static_cast<int>(scene.runs().size()); ++i)
        pair = pair || (scene.voicesOf(i) < (scene.isIn(i, liar) ? 3 : 2) && scene.isIn(i, node));
      // Nor of one that alone tells of a run, and the one that it misses there.
      if (pair ||
          after.reason.find(fmt::format("in which {} met it", LyingFleet::nameOf(liar))) != std::string::npos)
        continue;
      EXPECT_NE(after.state, NodeState::kIncomplete) << name << ": " << after.reason;
    }
  }
}

}  // namespace
}  // namespace muster
