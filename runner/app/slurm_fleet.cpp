// SPDX-License-Identifier: Apache-2.0
// See slurm_fleet.h.
#include "runner/app/slurm_fleet.h"

#include <fmt/format.h>

#include <map>

#include "reports/model/deviations.h"
#include "runner/app/exit_code.h"
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
std::string worstOf(const fs::path& record) {
  const auto read = readRecord(record);
  if (!read.ok()) return "rejected";
  const auto all = deviations(*read);
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

/// The nodes of the fleet's report that are not accepted; none while there is no report.
Result<std::vector<FleetLine>> notAccepted(const slurm::RunStore& run) {
  std::vector<FleetLine> lines;
  const fs::path path = run.folder() / "fleet" / "fleet.json";
  std::error_code error;
  if (!fs::exists(path, error)) return lines;
  MUSTER_TRY(const std::string text, readFile(path, kMostFleetBytes));
  MUSTER_TRY(const Json fleet, parseJson(text).context(path.string()));
  JsonReader reader(fleet, path.string());
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
  return lines;
}

/// What a node's own record rejects it for, or what the fleet says.
std::string whyNot(const slurm::RunStore& run, const FleetLine& line) {
  if (slurm::readExit(run.exit(line.node)) == kExitRejected)
    return worstOf(run.nodeFolder(line.node) / "record.json");
  return line.reason.empty() ? line.state + " by the fleet" : line.reason;
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
  MUSTER_TRY(const auto lines, notAccepted(run));
  for (size_t i = 0; i < lines.size() && i < kMostLines; ++i)
    fmt::print("{:<20} {:<10} {}\n", lines[i].node, lines[i].state, printable(whyNot(run, lines[i]), 200));
  if (lines.size() > kMostLines) fmt::print("and {} nodes more\n", lines.size() - kMostLines);
  fmt::print("fleet report: {}\n", fleetReportText(run, code));
  std::error_code error;
  const bool missing = !fs::exists(run.folder() / "fleet" / "fleet.json", error);
  // Without a report nothing is accepted or rejected.
  return missing && code != kExitUsage && code != kExitInternal ? kExitIncomplete : code;
}

Result<std::vector<slurm::RejectedNode>> rejectedNodes(const slurm::RunStore& run) {
  MUSTER_TRY(const auto lines, notAccepted(run));
  std::map<std::string, FleetLine> byFleet;
  for (const FleetLine& line : lines)
    if (line.state == "rejected") byFleet.emplace(line.node, line);
  std::vector<slurm::RejectedNode> rejected;
  for (const std::string& node : run.submission().nodes) {
    const auto found = byFleet.find(node);
    if (found != byFleet.end())
      rejected.push_back({node, whyNot(run, found->second), !found->second.suspect});
    else if (slurm::readExit(run.exit(node)) == kExitRejected)
      rejected.push_back({node, whyNot(run, {node, "rejected", ""})});
  }
  return rejected;
}

}  // namespace muster
