// SPDX-License-Identifier: Apache-2.0
// Judges the records of a fleet again and compares what comes of it.
#include "runner/app/attest/fleet_verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "reports/fleet/blame/cluster_stages.h"
#include "reports/fleet/check/identity.h"
#include "reports/fleet/read/record_stream.h"
#include "reports/fleet/render/fleet_html.h"
#include "runner/app/fleet/fleet_command.h"
#include "runner/core/build_info.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr uint64_t kMaxFleetBytes = 1ull << 30;

Result<FleetInputs> readInputs(const VerifyTools& tools, const std::string& prefix) {
  MUSTER_TRY(const std::string text, tools.folder.read(prefix + kFleetInputsFile, kMaxFleetBytes));
  MUSTER_TRY(const Json json, parseJson(text));
  return fleetInputsFromJson(json);
}

/// The folder `at`, relative to `prefix`, as the names in it begin; nothing where it is not below the
/// verified one. `muster slurm` and `muster k8s` keep the records beside the fleet's folder.
std::optional<std::string> recordsFolder(const std::string& prefix, const std::string& at) {
  if (at.empty()) return std::nullopt;
  const std::string folder = (std::filesystem::path(prefix) / at / "").lexically_normal().generic_string();
  if (folder == ".") return "";
  if (!isNameBelow(folder.substr(0, folder.size() - 1))) return std::nullopt;
  return folder;
}

class FleetVerification {
 public:
  FleetVerification(const VerifyTools& tools, std::string prefix, Verification& out)
      : tools_(tools), prefix_(std::move(prefix)), out_(out) {}

  void verify(FolderResult& result) {
    const auto kept = tools_.folder.read(prefix_ + kFleetName, kMaxFleetBytes);
    const auto json = kept.ok() ? parseJson(*kept) : Result<Json>(kept.error());
    if (!json.ok())
      return out_.refute(VerifyCheck::kFleet, prefix_ + kFleetName + ": " + json.error().text());
    takeResult(*json, result);
    auto inputs = readInputs(tools_, prefix_);
    if (!inputs.ok()) return leaveOpen(inputs.error().text());
    verifyWaivers(*inputs, result);
    verifyOptions(inputs->wanted);
    const std::string at = inputs->recordsAt;
    const std::optional<std::string> records = recordsFolder(prefix_, at);
    if (!records) return leaveOpen("its records are not in this directory");
    witnessed_ = inputs->witnessed;
    const std::filesystem::path folder = tools_.folder.path() / *records;
    auto judged = judgeRecords(*std::move(inputs), folder, {});
    const bool same = judged.ok() && compare(*kept, *judged, at, folder);
    if (witnessed_ && !same) {
      joinAll(*records, result);
      return leaveOpen("Slurm or a record key decided which records count, and neither is at hand");
    }
    if (!judged.ok()) return out_.refute(VerifyCheck::kFleet, judged.error().text());
    join(*judged, *records, result);
    if (manyRuns_) verifyGroups(*judged);
  }

 private:
  /// Each record that the fleet read must be one of those that were verified on their own. Those that it does
  /// not count, of nodes that nobody expects or of another plan, count by themselves.
  void join(const JudgedFleet& judged, const std::string& folder, FolderResult& result) {
    for (const fleet::NodeSummary& node : judged.records.nodes) {
      const std::string path = folder + node.path;
      if (const std::string verified = tools_.folder.readSha256(path);
          !verified.empty() && verified != node.sha256)
        leaveOpen(path + " was changed while it was verified: verify again");
      if (std::none_of(result.verified.begin(), result.verified.end(),
                       [&](const VerifiedResult& one) { return one.path == path; }))
        out_.refute(VerifyCheck::kFleet,
                    fmt::format("{}{} counts {}, which was not verified: {}", prefix_, kFleetName, path,
                                ("/" + path).ends_with(std::string("/") + kRecordName)
                                    ? "it cannot be read as a whole"
                                    : fmt::format("its name must be {}", kRecordName)));
    }
    std::set<std::string> counted, members;
    for (const fleet::FleetNode& node : judged.fleet.nodes) {
      if (!node.records.empty()) members.insert(node.name);
      for (const auto* list : {&node.records, &node.repeated})  // what repeated ones missed counts
        for (const size_t i : *list) counted.insert(judged.records.nodes[i].sha256);
    }
    for (VerifiedResult& one : result.verified) {
      one.inFleet = one.inFleet || (one.path.starts_with(folder) && counted.contains(one.sha256));
      if (one.path != prefix_ + kFleetName) continue;
      one.members = members;
      one.counted = counted;
    }
    result.concessions = result.concessions ||
                         std::any_of(judged.fleet.waivers.begin(), judged.fleet.waivers.end(),
                                     [](const fleet::FleetWaiver& one) { return one.count.covered > 0; });
  }

  static void joinAll(const std::string& folder, FolderResult& result) {
    for (VerifiedResult& one : result.verified)
      if (one.path.starts_with(folder) && one.path.ends_with(kRecordName)) one.inFleet = true;
  }

  void verifyWaivers(const FleetInputs& inputs, FolderResult& result) {
    if (inputs.waiversText.empty()) return;
    result.concessions = true;
    verifyPromisedWaivers(tools_.promise, prefix_ + kFleetName, inputs.waiversPath,
                          sha256Hex(inputs.waiversText), out_);
  }

  /// Options by which the supplier let pass what a fleet refuses otherwise.
  void verifyOptions(const fleet::FleetOptions& options) {
    const std::string fleet = prefix_ + kFleetName;
    if (options.sameMachine)
      out_.leaveOpen(VerifyCheck::kFleet,
                     fleet +
                         ": judged with --same-machine, for tests and demos: nodes may be one machine under "
                         "several names");
    manyRuns_ = options.manyRuns;
    if (manyRuns_) out_.tell(VerifyCheck::kFleet, fleet + ": put together from several runs (--many-runs)");
  }

  /// What --many-runs let pass, as a fleet without it refuses it.
  void verifyGroups(const JudgedFleet& judged) {
    for (const std::string& gap : fleet::findGroupGaps(judged.records, {}, judged.fleet.nodes).reasons)
      out_.leaveOpen(VerifyCheck::kFleet, fmt::format("{}{}: {}", prefix_, kFleetName, gap));
  }

  void leaveOpen(const std::string& why) {
    out_.leaveOpen(VerifyCheck::kFleet,
                   fmt::format("{}{} cannot be derived again: {}", prefix_, kFleetName, why));
  }

  /// What the fleet says of itself; whether it is true is compared later.
  void takeResult(const Json& json, FolderResult& result) {
    Acceptance acceptance = Acceptance::kIncomplete;
    std::string build;
    int exitCode = 0;
    JsonReader reader(json, kFleetName);
    reader.read("acceptance", acceptance);
    reader.read("exit_code", exitCode);
    const Json* tool = reader.object("tool");
    if (tool != nullptr) JsonReader(*tool, "tool").read("build_id", build);
    if (!reader.ok()) return out_.refute(VerifyCheck::kFleet, reader.status().error().text());
    sameBuild_ = build == buildId();
    const auto simulated = json.find("simulated");
    result.simulated = result.simulated || simulated == json.end() || *simulated != Json(false);
    VerifiedResult fleet;
    fleet.path = prefix_ + kFleetName;
    fleet.exitCode = exitCode;
    fleet.acceptance = nameOf(acceptance);
    result.verified.push_back(std::move(fleet));
    Json entry = {{"folder", prefix_}, {"fleet", true}};
    for (const char* key :
         {"acceptance", "exit_code", "simulated", "plan", "fleet_id", "records_sha256", "waivers_sha256"})
      if (const auto at = json.find(key); at != json.end()) entry[key] = *at;
    result.results.push_back(std::move(entry));
  }

  /// Whether the fleet's files come from these records, read without Slurm or a key.
  bool compare(const std::string& kept, JudgedFleet& judged, const std::string& recordsAt,
               const std::filesystem::path& records) {
    interrupted_ = !judged.records.interruptedRuns.empty();
    auto document = documentsIn(tools_, prefix_);
    if (!document.ok()) return refuted(VerifyCheck::kReports, document.error());
    fleet::PageExtras extras{recordsAt, *std::move(document), {}};
    if (extras.document.requirements) {
      auto clauses = applyRequirements(*extras.document.requirements, records, judged);
      if (!clauses.ok()) return refuted(VerifyCheck::kFleet, clauses.error());
      extras.clauses = *std::move(clauses);
    }
    const std::string text = fleet::fleetText(judged.fleet, judged.records, extras.clauses);
    bool same = equals(kFleetName, kept, text);
    const auto html =
        renderFleetHtml(judged.fleet, judged.records, sha256Hex(text), tools_.tree.templates, extras);
    if (!html.ok()) {  // a fault of this installation, not of the directory
      leaveOpen(html.error().text());
      return false;
    }
    const auto page = tools_.folder.read(prefix_ + "fleet.html", kMaxFleetBytes);
    same = (page.ok() ? equals("fleet.html", *page, *html) : differs("fleet.html", page.error().message)) &&
           same;
    if (same)
      out_.tell(VerifyCheck::kFleet,
                fmt::format("{} and fleet.html derived again from {} records, byte for byte", kFleetName,
                            judged.records.nodes.size()));
    return same;
  }

  bool refuted(VerifyCheck check, const Error& error) {
    out_.refute(check, error.text());
    return false;
  }

  bool equals(const std::string& name, const std::string& found, const std::string& derived) {
    const std::string what = textDifference(found, derived);
    return what.empty() || differs(name, what);
  }

  /// A difference that another build of Muster may have made is no proof, nor is one that follows from what
  /// Slurm or a key refused. False.
  bool differs(const std::string& name, const std::string& what) {
    if (witnessed_) return false;
    if (interrupted_)
      leaveOpen(fmt::format("{}: {}; it has commands that resume interrupted runs, by where they lay then",
                            name, what));
    else if (sameBuild_)
      out_.refute(VerifyCheck::kFleet, prefix_ + name + ": " + what);
    else
      leaveOpen(fmt::format("{}: {}; another build of Muster wrote it", name, what));
    return false;
  }

  const VerifyTools& tools_;
  std::string prefix_;
  Verification& out_;
  bool sameBuild_ = true;
  bool witnessed_ = false;
  bool interrupted_ = false;
  bool manyRuns_ = false;
};

}  // namespace

std::string recordsOfFleet(const VerifyTools& tools, const std::string& prefix) {
  const auto inputs = readInputs(tools, prefix);
  return inputs.ok() ? recordsFolder(prefix, inputs->recordsAt).value_or(prefix) : prefix;
}

void verifyIdentities(const VerifyTools& tools, const FolderResult& result, Verification& out) {
  std::vector<std::string> paths;
  size_t parts = 0;  // fleets, each of which has looked at its own nodes, and runs by themselves
  for (const VerifiedResult& one : result.verified) {
    if (!one.node.empty()) paths.push_back(one.path);
    parts += one.inFleet ? 0 : 1;
  }
  if (parts < 2) return;
  const auto read = [&](fleet::RecordReader& reader, size_t i) {
    const auto text = tools.folder.read(paths[i], kMaxRecordBytes);
    return text.ok() ? reader.parse(*text) : Result<fleet::NodeSummary>(text.error());
  };
  const auto records =
      fleet::readEach({paths.size(), read, [&](size_t i) { return paths[i]; }}, fleet::readerThreads());
  for (const fleet::Quarantined& bad : records.quarantined)
    out.leaveOpen(VerifyCheck::kFleet, fmt::format("{}: whether it is of another machine than the others: {}",
                                                   bad.path, bad.reason));
  std::map<std::string, std::vector<size_t>> byNode;
  for (size_t i = 0; i < records.nodes.size(); ++i) byNode[records.nodes[i].node].push_back(i);
  fleet::FleetNodes nodes;
  for (auto& [name, indices] : byNode) {
    nodes.emplace_back().name = name;
    nodes.back().records = std::move(indices);
  }
  for (const fleet::RecordFinding& finding : fleet::checkIdentities(records, {}, {}, nodes).findings)
    out.leaveOpen(
        VerifyCheck::kFleet,
        finding.text + "; if the machine was given another name between two fleets, verify each alone");
}

void verifyFleet(const VerifyTools& tools, const std::string& prefix, Verification& out,
                 FolderResult& result) {
  FleetVerification(tools, prefix, out).verify(result);
}

}  // namespace muster
