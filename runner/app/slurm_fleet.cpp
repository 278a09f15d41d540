// SPDX-License-Identifier: Apache-2.0
// See slurm_fleet.h.
#include "runner/app/slurm_fleet.h"

#include <fmt/format.h>

#include <map>

#include "reports/model/deviations.h"
#include "runner/app/exit_code.h"
#include "runner/app/measured_only.h"
#include "runner/core/files.h"
#include "runner/core/json.h"
#include "runner/core/text.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMostFleetBytes = 1ull << 30;
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

/// A node in the fleet's report.
struct FleetLine {
  std::string node;
  std::string state;
  std::string reason;
  bool suspect = false;  ///< a suspect of the fleet names it
};

/// The fleet's report: its nodes that are not accepted; nothing while there is none.
struct FleetReport {
  bool simulated = false;
  std::vector<FleetLine> lines;
};

Result<FleetReport> readReport(const slurm::RunStore& run) {
  FleetReport report;
  std::vector<FleetLine>& lines = report.lines;
  const fs::path path = run.folder() / "fleet" / "fleet.json";
  std::error_code error;
  if (!fs::exists(path, error)) return report;
  MUSTER_TRY(const std::string text, readFile(path, kMostFleetBytes));
  MUSTER_TRY(const Json fleet, parseJson(text).context(path.string()));
  JsonReader reader(fleet, path.string());
  reader.read("simulated", report.simulated);
  reader.each("nodes", [&](const Json& item, const std::string& where) -> Status {
    FleetLine line;
    JsonReader node(item, where);
    node.read("node", line.node);
    node.read("state", line.state);
    node.optional("reason", line.reason);
    node.optional("suspect", line.suspect);
    if (line.state != "accepted") lines.push_back(std::move(line));
    return node.status();
  });
  MUSTER_CHECK_OK(reader.status());
  return report;
}

/// What a node's own record rejects it for, or what the fleet says.
std::string whyNot(const slurm::RunStore& run, const FleetLine& line) {
  if (line.state == "rejected" && slurm::readExit(run.exit(line.node)) == kExitRejected) {
    const auto record = readRecord(run.nodeFolder(line.node) / "record.json");
    return record.ok() ? worstOf(*record) : "rejected";
  }
  return line.reason.empty() ? line.state + " by the fleet" : line.reason;
}

/// Whether the run's plan, its fleet's report or any of its records is simulated.
Result<bool> isSimulated(const slurm::RunStore& run, const FleetReport& report) {
  if (report.simulated || !run.submission().scenarioFile.empty()) return true;
  for (const std::string& node : run.submission().nodes) {
    const fs::path path = run.nodeFolder(node) / "record.json";
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    // What cannot be read proves nothing: it is no reason to drain anything either.
    if (const auto record = readRecord(path); record.ok() && record->simulated) return true;
  }
  return false;
}

/// Why there is no report though the fleet job ended.
std::string whyNoReport(int code) {
  if (code == kNotFoundByShell || code == kNotStartedByShell)
    return "muster could not be started there; it must be on a file system that all nodes see";
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
    fmt::print("{:<20} {:<10} {}\n", lines[i].node, lines[i].state, printable(whyNot(run, lines[i]), 200));
  if (lines.size() > kMostLines) fmt::print("and {} nodes more\n", lines.size() - kMostLines);
  fmt::print("fleet report: {}\n", fleetReportText(run, code));
  std::error_code error;
  const bool missing = !fs::exists(run.folder() / "fleet" / "fleet.json", error);
  // Without a report nothing is accepted or rejected.
  return missing && code != kExitUsage && code != kExitInternal ? kExitIncomplete : code;
}

Status requireMeasured(const slurm::RunStore& run, const std::string& action) {
  MUSTER_TRY(const FleetReport report, readReport(run));
  MUSTER_TRY(const bool simulated, isSimulated(run, report));
  return requireMeasured(simulated, action, run.folder());
}

Result<std::vector<slurm::RejectedNode>> rejectedNodes(const slurm::RunStore& run) {
  MUSTER_TRY(const FleetReport report, readReport(run));
  std::map<std::string, FleetLine> byFleet;
  for (const FleetLine& line : report.lines) byFleet.emplace(line.node, line);
  std::vector<slurm::RejectedNode> rejected;
  for (const std::string& node : run.submission().nodes) {
    const auto found = byFleet.find(node);
    if (found == byFleet.end()) {
      if (slurm::readExit(run.exit(node)) == kExitRejected)
        rejected.push_back({node, whyNot(run, {node, "rejected", ""})});
      continue;
    }
    const FleetLine& line = found->second;
    // Of a link that fails both ends must get no work until it is repaired; who only reports it must.
    if (line.state == "rejected")
      rejected.push_back({node, whyNot(run, line)});
    else if (line.state == "affected")
      rejected.push_back({node, whyNot(run, line), !line.suspect});
    else if (slurm::readExit(run.exit(node)) == kExitRejected)
      rejected.push_back({node, whyNot(run, {node, "rejected", ""})});
  }
  return rejected;
}

}  // namespace muster
