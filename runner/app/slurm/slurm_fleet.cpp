// SPDX-License-Identifier: Apache-2.0
// Determines the rejected nodes of a Slurm run from records, exit files, fleet.json and Slurm.
#include "runner/app/slurm/slurm_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "runner/app/input/measured_only.h"
#include "runner/core/json.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/record/findings/deviations.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMostFleetBytes = 256ull << 20;  ///< 40 MB for 10,000 nodes
constexpr size_t kMostLines = 40;
constexpr int kNotStartedByShell = 126;
constexpr int kNotFoundByShell = 127;
constexpr int kSignalled = 128;

/// The worst deviation of a node's record in a few words.
std::string worstOf(const Record& record) {
  const auto all = deviations(record);
  if (all.empty()) return "rejected";
  const Deviation& worst = all.front();
  const std::string who = worst.who();
  return fmt::format("{} {}{}{}", worst.stages().front(),
                     worst.first().metric.empty() ? outcomeName(worst.outcome) : worst.first().metric,
                     who.empty() ? "" : " of ", who);
}

using fleet::NodeState;

/// A node in the fleet's report.
struct FleetLine {
  std::string node;
  NodeState state = NodeState::kMissing;
  std::string reason;
  bool suspect = false;  ///< a suspect of the fleet names it
};

/// The fleet's report: its nodes that are not accepted; nothing while there is none.
struct FleetReport {
  bool there = false;
  std::vector<FleetLine> lines;
};

Result<FleetReport> readReport(const slurm::RunStore& run) {
  FleetReport report;
  std::vector<FleetLine>& lines = report.lines;
  const fs::path path = run.folder() / "fleet" / "fleet.json";
  std::error_code error;
  if (!fs::exists(path, error)) return report;
  MUSTER_TRY(const std::string text, readOwnFile(path, kMostFleetBytes));
  MUSTER_TRY(const Json fleet, parseJson(text).context(path.string()));
  report.there = true;
  JsonReader reader(fleet, path.string());
  reader.each("nodes", [&](const Json& item, const std::string& where) -> Status {
    FleetLine line;
    JsonReader node(item, where);
    node.read("node", line.node);
    // It becomes a part of paths.
    if (node.ok() && !isPlainName(line.node)) node.fail("node", "is not a node name");
    node.read("state", line.state);
    node.optional("reason", line.reason);
    node.optional("suspect", line.suspect);
    if (line.state != NodeState::kAccepted) lines.push_back(std::move(line));
    return node.status();
  });
  MUSTER_CHECK_OK(reader.status());
  return report;
}

/// What a node's own record rejects it for, or what the fleet says.
std::string whyNot(const slurm::RunStore& run, const FleetLine& line) {
  if (line.state == NodeState::kRejected && slurm::readExit(run.exit(line.node)) == kExitRejected) {
    const auto record = readRecord(run.nodeFolder(line.node) / "record.json");
    return record.ok() ? worstOf(*record) : "rejected";
  }
  return line.reason.empty() ? std::string(nameOf(line.state)) + " by the fleet" : line.reason;
}

/// Why there is no report though the fleet job ended.
std::string whyNoReport(int code) {
  if (code == kNotFoundByShell || code == kNotStartedByShell)
    return "muster could not be started there; it must be on a file system shared by all nodes";
  if (code > kSignalled && code != kExitInterrupted)
    return fmt::format("signal {} ended it", code - kSignalled);
  return "`muster fleet` refused or failed";
}

}  // namespace

std::string fleetReportText(const slurm::RunStore& run, int code) {
  std::error_code error;
  if (fs::exists(run.folder() / "fleet" / "fleet.json", error))
    return fmt::format("exit {}, {}", code, (run.folder() / "fleet").string());
  return fmt::format("none: the fleet job ended with {}: {}; see {}, then `muster slurm resume`", code,
                     whyNoReport(code), (run.folder() / "logs").string() + "/fleet-*.out");
}

Result<int> showFleet(const slurm::RunStore& run, int code) {
  MUSTER_TRY(const FleetReport report, readReport(run));
  const std::vector<FleetLine>& lines = report.lines;
  for (size_t i = 0; i < lines.size() && i < kMostLines; ++i)
    printText("{:<20} {:<10} {}\n", lines[i].node, nameOf(lines[i].state),
              printable(whyNot(run, lines[i]), 200));
  if (lines.size() > kMostLines) printText("and {} nodes more\n", lines.size() - kMostLines);
  printText("fleet report: {}\n", fleetReportText(run, code));
  std::error_code error;
  const bool missing = !fs::exists(run.folder() / "fleet" / "fleet.json", error);
  // Without a report nothing is accepted or rejected.
  return missing && code != kExitUsage && code != kExitInternal ? kExitIncomplete : code;
}

bool reportStands(const slurm::RunStore& run) {
  const auto code = slurm::fleetExit(run);
  if (!code || *code == kExitUsage || *code == kExitInternal) return false;
  const auto report = readReport(run);
  return report.ok() && report->there &&
         std::all_of(report->lines.begin(), report->lines.end(), [](const FleetLine& line) {
           return line.state == fleet::NodeState::kRejected || line.state == fleet::NodeState::kAffected;
         });
}

Result<std::set<std::string>> rejectedByFleet(const slurm::RunStore& run) {
  MUSTER_TRY(const FleetReport report, readReport(run));
  std::set<std::string> nodes;
  for (const FleetLine& line : report.lines)
    if (line.state == fleet::NodeState::kRejected) nodes.insert(line.node);
  return nodes;
}

std::set<std::string> uncountedByFleet(const slurm::RunStore& run) {
  std::set<std::string> nodes;
  if (const auto report = readReport(run); report.ok())
    for (const FleetLine& line : report->lines)
      if (line.state == fleet::NodeState::kMissing || line.state == fleet::NodeState::kQuarantined ||
          line.state == fleet::NodeState::kStale)
        nodes.insert(line.node);
  return nodes;
}

Status requireMeasured(const slurm::RunStore& run, const std::string& action) {
  return requireMeasured(!run.submission().scenarioFile.empty(), action, run.folder());
}

Result<JudgedFleet> judgeRun(const slurm::RunStore& run, const slurm::Witness& witness, bool unconfirmed) {
  const auto path = [&](const char* name) { return (run.folder() / name).string(); };
  std::vector<std::string> arguments = {path("records"),
                                        "--expect",
                                        path("expect.txt"),
                                        "--plan",
                                        run.input(run.submission().planFile).string(),
                                        "--slurm-run",
                                        run.folder().string()};
  const auto& more = run.submission().fleetOptions;
  arguments.insert(arguments.end(), more.begin(), more.end());
  MUSTER_TRY(FleetCommandOptions options, parseFleetOptions(std::move(arguments)));
  options.unconfirmed = unconfirmed;  // whatever the run was submitted with
  return judgeFleet(options, &witness);
}

namespace {

using Standing = slurm::NodeEnd::Standing;

/// Decides about one node after the other, by everything that is known of it.
class Rejections {
 public:
  Rejections(const slurm::RunStore& run, const slurm::Witness& witness, const fleet::Fleet& fleet,
             const FleetReport& report, bool unconfirmed)
      : run_(run), witness_(witness), unconfirmed_(unconfirmed) {
    for (const fleet::FleetNode& node : fleet.nodes) judged_.emplace(node.name, &node);
    for (const FleetLine& line : report.lines) told_.emplace(line.node, line);
    reported_ = report.there;
    const slurm::NodeEnd end = witness.ofFleet();
    if (!believed(end))
      fleetUnconfirmed_ = "the fleet job does not confirm it: " + end.why;
    else if (end.exitCode != kExitRejected || fleet.exitCode != kExitRejected)
      fleetUnconfirmed_ =
          fmt::format("the fleet job ended with {}, but its records give {}", end.exitCode, fleet.exitCode);
  }

  /// Nothing where nobody rejects the node.
  [[nodiscard]] std::optional<slurm::RejectedNode> of(const std::string& node) const {
    const auto judged = judged_.find(node);
    const auto told = told_.find(node);
    const auto toldState = told == told_.end() ? NodeState::kAccepted : told->second.state;
    const bool toldSuspect = toldState == NodeState::kAffected && told->second.suspect;
    const slurm::NodeEnd end =
        run_.submission().nodeStages ? witness_.ofNode(node) : witness_.ofCluster(node);
    const bool anybody = toldState == NodeState::kRejected || toldSuspect ||
                         slurm::readExit(run_.exit(node)) == kExitRejected || end.exitCode == kExitRejected;
    if (judged == judged_.end())
      return anybody ? std::optional(contradictory(node, "it has no evaluated record")) : std::nullopt;
    const fleet::FleetNode& found = *judged->second;
    const bool rejected = found.state == NodeState::kRejected;
    const bool cleared = found.state == NodeState::kAffected || found.state == NodeState::kIncomplete;
    const bool oneEnd = cleared && found.endOfLink;
    if (rejected && found.failed && believed(end) && end.exitCode == kExitRejected) {
      slurm::RejectedNode own{node, whyNot(run_, {node, NodeState::kRejected, found.reason})};
      // A job of the run's user may have come after the fleet's.
      if (toldState != NodeState::kRejected)
        own.unconfirmed = fmt::format("fleet.json and records differ: fleet.json says {}, the records say {}",
                                      reportSays(toldState), own.what);
      return own;
    }
    // Records claim what they like; only the node's own end, which Slurm has seen, makes it an act.
    if (!found.claim.empty())
      return slurm::RejectedNode{
          node, "", false,
          fmt::format("check it manually: a node is only drained if its own job failed: {}", found.claim)};
    if (rejected || oneEnd) {
      slurm::RejectedNode named{node, found.reason};
      if (!believed(end))
        named.unconfirmed = "rejected, but not confirmed: " + end.why;
      else if (!fleetUnconfirmed_.empty())
        named.unconfirmed = "rejected by the fleet, but " + fleetUnconfirmed_;
      else if (toldState != found.state)
        named.unconfirmed = fmt::format("its records are rejected by the fleet, but fleet.json says {}",
                                        reportSays(toldState));
      return named;
    }
    // Its own record is rejected for faults of other parts, whatever else it lacks.
    if (found.state == NodeState::kAffected || (cleared && found.failed))
      return slurm::RejectedNode{node, found.reason, true};
    if (!anybody && found.state != NodeState::kQuarantined) return std::nullopt;
    // Somebody says so, and the records do not.
    return contradictory(
        node, fmt::format("{}{}{}", nameOf(found.state), found.reason.empty() ? "" : ": ", found.reason));
  }

 private:
  [[nodiscard]] bool believed(const slurm::NodeEnd& end) const {
    return end.standing == Standing::kConfirmed || (unconfirmed_ && end.standing == Standing::kForgotten);
  }
  /// What fleet.json, which lists only what is not accepted, says of a node.
  [[nodiscard]] std::string reportSays(NodeState state) const {
    if (!reported_) return "nothing (there is none)";
    return nameOf(state);
  }
  static slurm::RejectedNode contradictory(const std::string& node, const std::string& what) {
    return {node, "", false, "its files and Slurm disagree: " + what};
  }

  const slurm::RunStore& run_;
  const slurm::Witness& witness_;
  bool unconfirmed_;
  std::map<std::string, const fleet::FleetNode*> judged_;
  std::map<std::string, FleetLine> told_;
  bool reported_ = false;
  std::string fleetUnconfirmed_;
};

}  // namespace

Result<std::vector<slurm::RejectedNode>> rejectedNodes(const slurm::RunStore& run,
                                                       const slurm::Witness& witness, bool unconfirmed) {
  MUSTER_TRY(const FleetReport report, readReport(run));
  MUSTER_TRY(const JudgedFleet judged, judgeRun(run, witness, unconfirmed));
  const Rejections rejections(run, witness, judged.fleet, report, unconfirmed);
  std::vector<slurm::RejectedNode> rejected;
  for (const std::string& node : run.submission().nodes)
    if (auto named = rejections.of(node)) rejected.push_back(std::move(*named));
  return rejected;
}

}  // namespace muster
