// SPDX-License-Identifier: Apache-2.0
// Goes through a directory and verifies what is there.
#include "runner/app/attest/folder_verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/acceptance/clause_matrix.h"
#include "reports/fleet/read/record_stream.h"
#include "runner/app/attest/fleet_verification.h"
#include "runner/app/fleet/fleet_inputs.h"
#include "runner/app/node/run_folder.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/findings/deviations.h"

namespace muster {
namespace {

using attest::Envelope;
using attest::PublicKey;
using attest::Statement;

constexpr uint64_t kMaxEnvelopeBytes = 256ull << 20;

/// The folders ("", "n17/") that hold a file of this name.
std::vector<std::string> foldersWith(const attest::FolderList& files, std::string_view name) {
  std::vector<std::string> folders;
  for (const attest::FolderFile& file : files.files) {
    const std::string_view path = file.name;
    if (!path.ends_with(name)) continue;
    const std::string_view folder = path.substr(0, path.size() - name.size());
    if (folder.empty() || folder.ends_with('/')) folders.emplace_back(folder);
  }
  return folders;
}

Json sourceJson(const SourceRecord& source) {
  Json json = {{"name", source.name}, {"sha256", source.sha256}};
  if (!source.includes.empty()) json["includes"] = source.includes;
  return json;
}

Json resultOf(const Record& record, const std::string& prefix) {
  Json attempts = Json::object();
  for (const StageRecord& stage : record.stages)
    if (stage.attempts > 1) attempts[stage.name] = stage.attempts;
  Json json = {{"folder", prefix},
               {"node", record.node},
               {"run_id", record.runId},
               {"acceptance", nameOf(record.acceptance)},
               {"exit_code", record.exitCode},
               {"simulated", record.simulated},
               {"plan", sourceJson(record.plan)},
               {"overrides", record.overrides},
               {"profile", sourceJson(record.profile)},
               {"resumed", record.resumed},
               {"attempts", attempts}};
  if (!record.waiverFile.sha256.empty()) json["waivers"] = sourceJson(record.waiverFile);
  return json;
}

/// Whether `found` is worse than `known`, in the order in which exit codes rank.
bool isWorse(int found, int known) {
  constexpr std::array kOrder = {kExitInterrupted, kExitInternal, kExitRejected,
                                 kExitIncomplete,  kExitNoGpu,    kExitAccepted};
  const auto rank = [&](int code) { return std::find(kOrder.begin(), kOrder.end(), code) - kOrder.begin(); };
  return rank(found) < rank(known);
}

/// Folders of records that a fleet lists as quarantined: it says itself that they cannot be used.
std::set<std::string> setAsideIn(const VerifyTools& tools) {
  std::set<std::string> folders;
  for (const std::string& prefix : foldersWith(tools.files, kFleetName)) {
    if (isSetAside(prefix)) continue;
    const auto text = tools.folder.read(prefix + kFleetName, kMaxEnvelopeBytes);
    const auto json = text.ok() ? parseJson(*text) : Result<Json>(text.error());
    const auto list = json.ok() && json->is_object() ? json->find("quarantined") : Json::const_iterator();
    if (!json.ok() || !json->is_object() || list == json->end() || !list->is_array()) continue;
    const std::string records = recordsOfFleet(tools, prefix);
    for (const Json& entry : *list) {
      std::string path;
      JsonReader(entry, "quarantined").optional("path", path);
      if (path.ends_with(kRecordName))
        folders.insert(records + path.substr(0, path.size() - std::string_view(kRecordName).size()));
    }
  }
  return folders;
}

/// What each of these files is derived from, in its own folder.
constexpr std::array<std::pair<const char*, const char*>, 4> kDerivedFiles = {{
    {"report.html", kRecordName},
    {"junit.xml", kRecordName},
    {"fleet.html", kFleetName},
    {kFleetInputsFile, kFleetName},
}};
constexpr std::array kReportEndings = {".html",  ".htm", ".shtml", ".xht", ".xhtml",
                                       ".mhtml", ".mht", ".svg",   ".pdf", ".xml"};
constexpr size_t kMostNamed = 5;  ///< files in one line

/// Files beside records and fleets, each of which a reader may take for a result.
class OtherFiles {
 public:
  OtherFiles(const VerifyTools& tools, const std::set<std::string>& artifacts, Verification& out)
      : tools_(tools), artifacts_(artifacts), out_(out) {}

  void verify() {
    for (const attest::FolderFile& file : tools_.files.files) verifyFile(file.name);
    for (const std::string& path : tools_.files.working)
      if (isLikeReport(path)) leaveOpen(path, "it comes from no record");
    if (others_.empty()) return;
    const size_t shown = std::min(others_.size(), kMostNamed);
    const std::string names = join(std::vector<std::string>(others_.begin(), others_.begin() + shown), ", ");
    out_.tell(VerifyCheck::kFiles,
              fmt::format("not read, as no result depends on them: {} ({}{})", plural(others_.size(), "file"),
                          names, others_.size() > shown ? ", ..." : ""));
  }

 private:
  /// Whether a desktop would show it as a page.
  static bool isLikeReport(const std::string& path) {
    const std::string small = lowerCase(path.substr(0, path.find_last_not_of(" .") + 1));
    return std::any_of(kReportEndings.begin(), kReportEndings.end(),
                       [&](const char* ending) { return small.ends_with(ending); });
  }

  void verifyFile(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    const std::string name = path.substr(folder.size());
    const bool ofRun = hasFile(tools_.files, folder + kRecordName);
    const bool ofFleet = hasFile(tools_.files, folder + kFleetName);
    for (const auto& [derived, source] : kDerivedFiles) {
      if (name != derived) continue;
      if (!hasFile(tools_.files, folder + source))
        out_.refute(VerifyCheck::kReports,
                    fmt::format("{}: there is no {} beside it, of which it would be", path, source));
      else if (source == std::string_view(kFleetName) && isSetAside(path))
        out_.tell(VerifyCheck::kReports,
                  path + ": is of an earlier round, which does not count: not verified");
      return;
    }
    if (artifacts_.contains(path)) return;
    if (isLikeReport(path)) return leaveOpen(path, "it comes from no record");
    const auto isOneOf = [&](std::initializer_list<const char*> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const bool known = (ofRun && isOneOf({kRecordName, kJournalName, "profile.toml"})) ||
                       (ofFleet && isOneOf({kFleetName})) ||
                       ((ofRun || ofFleet) && isOneOf({kAcceptanceFile, kRequirementsFile}));
    if (!known) others_.push_back(path);
  }

  void leaveOpen(const std::string& path, const std::string& why) {
    out_.leaveOpen(VerifyCheck::kReports, fmt::format("{}: was not verified: {}", path, why));
  }

  const VerifyTools& tools_;
  const std::set<std::string>& artifacts_;  ///< that a record names by their SHA-256
  Verification& out_;
  std::vector<std::string> others_;
};

/// Whether each result that counts was judged by the requirements that the customer expects.
void verifyPromisedRequirements(const VerifyTools& tools, const FolderResult& result, Verification& out) {
  if (tools.promise.requirementsSha256.empty()) return;
  for (const VerifiedResult& one : result.verified) {
    if (one.inFleet) continue;
    const std::string name = one.path.substr(0, one.path.rfind('/') + 1) + kRequirementsFile;
    if (!hasFile(tools.files, name)) {
      out.refute(VerifyCheck::kPromise, fmt::format("{}: {} is missing, which was promised", one.path, name));
      continue;
    }
    const auto found = tools.folder.sums(name, 1 << 20, kMaxEnvelopeBytes);
    if (!found.ok())
      out.refute(VerifyCheck::kPromise, found.error().text());
    else if (found->sha256 != tools.promise.requirementsSha256)
      out.refute(VerifyCheck::kPromise, fmt::format("{} has sha256 {}, promised was sha256 {}", name,
                                                    found->sha256, tools.promise.requirementsSha256));
    else
      out.tell(VerifyCheck::kPromise, fmt::format("{}: under the promised requirements", one.path));
  }
}

/// What only a fleet judges, of a run that no fleet of the directory joins with others.
std::vector<std::string> undoneOf(const Record& record) {
  std::vector<std::string> elsewhere, together;
  size_t deferred = 0;
  for (const StageRecord& stage : record.stages) {
    if (stage.state == StageState::kElsewhere) elsewhere.push_back(stage.name);
    if (stage.scope == Scope::kCluster && record.nodeCount > 1) together.push_back(stage.name);
    for (const Verdict& verdict : stage.verdicts) deferred += verdict.outcome == Outcome::kDeferred ? 1 : 0;
  }
  std::vector<std::string> lines;
  if (!elsewhere.empty()) lines.push_back("ran in another job: " + join(elsewhere, ", "));
  if (!together.empty())
    lines.push_back(
        fmt::format("ran together with {} other nodes: {}", record.nodeCount - 1, join(together, ", ")));
  if (deferred > 0)
    lines.push_back(fmt::format("{} relative to the other nodes", plural(deferred, "check result")));
  return lines;
}

/// Adds the result of one run, under its requirements if there are any.
void takeResult(const VerifyTools& tools, const std::string& prefix, const Record& record,
                FolderResult& result) {
  const auto documents = documentsIn(tools, prefix);
  const Record shown = documents.ok() ? underRequirements(record, documents->requirements) : record;
  result.simulated = result.simulated || record.simulated;
  result.concessions = result.concessions || !concessionsOf(record).empty();
  VerifiedResult one;
  one.path = prefix + kRecordName;
  one.exitCode = shown.exitCode;
  one.acceptance = nameOf(shown.acceptance);
  one.node = record.node;
  one.sha256 = record.fileSha256;
  one.nodeCount = record.nodeCount;
  one.undone = undoneOf(record);
  one.compares =
      !one.undone.empty() || std::any_of(record.stages.begin(), record.stages.end(),
                                         [](const auto& stage) { return stage.scope == Scope::kCluster; });
  result.verified.push_back(std::move(one));
  result.results.push_back(resultOf(shown, prefix));
}

/// Leaves open runs that need others, and are in no fleet of the directory.
void verifyJoined(const FolderResult& result, Verification& out) {
  std::vector<std::string> undone;
  std::string example;
  for (const VerifiedResult& one : result.verified) {
    if (one.inFleet || one.undone.empty()) continue;
    undone.push_back(one.path);
    if (example.empty()) example = join(one.undone, "; ");
  }
  if (!undone.empty())
    out.leaveOpen(
        VerifyCheck::kLimits,
        fmt::format("{}: no fleet of this directory joins them with the records that they need ({}): ask for "
                    "fleet.json, which `muster fleet` writes",
                    devicesText(undone), example));
}

/// Leaves open records of plans that compare or connect nodes, where no fleet that counts them holds all
/// nodes that the directory has of such plans, or that their run had: each part of a cluster may be well by
/// itself. Of any plan: one may differ from another by a comment.
void verifyWhole(const FolderResult& result, Verification& out) {
  std::set<std::string> all;
  for (const VerifiedResult& one : result.verified)
    if (one.compares) all.insert(one.node);
  std::set<std::string> parts, fewer;
  for (const VerifiedResult& one : result.verified) {
    if (!one.compares) continue;
    bool whole = all.size() < 2;
    size_t together = 1;
    for (const VerifiedResult& fleet : result.verified) {
      if (!fleet.counted.contains(one.sha256)) continue;
      whole = whole || std::includes(fleet.members.begin(), fleet.members.end(), all.begin(), all.end());
      together = std::max(together, fleet.members.size());
    }
    if (!whole) parts.insert(one.path);
    if (one.inFleet && together < static_cast<size_t>(one.nodeCount)) fewer.insert(one.path);
  }
  if (!parts.empty())
    out.leaveOpen(
        VerifyCheck::kLimits,
        fmt::format(
            "{}: no fleet counts them together with all nodes that are compared or connected: what connects "
            "them, and limits relative to the fleet, were not judged over all; ask for one fleet, or "
            "verify each part alone if they are of different times",
            devicesText({parts.begin(), parts.end()})));
  if (!fewer.empty())
    out.leaveOpen(VerifyCheck::kLimits,
                  fmt::format("{}: their run had more nodes than the fleet has: ask what became of "
                              "the others",
                              devicesText({fewer.begin(), fewer.end()})));
}

/// The worst of the fleets, and of the runs of which none tells.
void conclude(FolderResult& result, Verification& out) {
  for (const VerifiedResult& one : result.verified) {
    if (one.inFleet) continue;
    if (!result.acceptance.empty() && !isWorse(one.exitCode, result.exitCode)) continue;
    result.exitCode = one.exitCode;
    result.acceptance = one.acceptance;
  }
  if (!result.acceptance.empty()) return;
  result.exitCode = kExitIncomplete;
  result.acceptance = "no result";
  out.leaveOpen(VerifyCheck::kRecord, "no record counts");
}

void verifySigners(const Envelope& envelope, const std::vector<PublicKey>& keys, Verification& out) {
  std::vector<std::string> known;
  for (const PublicKey& key : keys) {
    known.push_back(key.id());
    if (envelope.isSignedBy(key))
      out.tell(VerifyCheck::kSignature, fmt::format("signed by key {}", key.id()));
    else
      out.refute(VerifyCheck::kSignature,
                 fmt::format("{}: no valid signature by key {}", attest::kEnvelopeName, key.id()));
  }
  for (const attest::EnvelopeSignature& one : envelope.signatures)
    if (!contains(known, one.keyId))
      (keys.empty()
           ? out.leaveOpen(
                 VerifyCheck::kSignature,
                 fmt::format(
                     "a signature names key {}; it was not verified: give the signer's public key with --key",
                     printable(one.keyId, 80)))
           : out.tell(VerifyCheck::kSignature,
                      fmt::format("also signed, as it says, by key {}, which was not verified",
                                  printable(one.keyId, 80))));
}

/// Runs that were set aside: no result counts them, but they were made.
struct EarlierRuns {
  size_t all = 0;  ///< with a record
  size_t rejected = 0;
};

void tellEarlier(const VerifyTools& tools, const EarlierRuns& earlier, Verification& out) {
  const auto journals = foldersWith(tools.files, kJournalName);
  const auto unended = std::count_if(journals.begin(), journals.end(), [&](const std::string& prefix) {
    return isSetAside(prefix) && !hasFile(tools.files, prefix + kRecordName);
  });
  const size_t all = earlier.all + static_cast<size_t>(unended);
  if (all == 0) return;
  out.tell(VerifyCheck::kAttempts,
           fmt::format("{} set aside in {}/, which no result counts: {} rejected, {} without a record",
                       plural(all, "earlier run"), fleet::kAttemptsFolder, earlier.rejected, unended));
}

/// Each fleet reads its records again. Fleets of parts, of the parts' parts and so on are few; many that name
/// the same records would cost hours.
void verifyFleets(const VerifyTools& tools, const std::vector<std::string>& runs, Verification& out,
                  FolderResult& result) {
  constexpr size_t kMostTimes = 16;
  size_t reads = 0;
  for (const std::string& prefix : foldersWith(tools.files, kFleetName)) {
    if (isSetAside(prefix)) continue;
    const std::string records = recordsOfFleet(tools, prefix);
    reads += 1 + static_cast<size_t>(std::count_if(runs.begin(), runs.end(), [&](const std::string& run) {
               return run.starts_with(records);
             }));
    if (reads > kMostTimes * runs.size())
      return out.leaveOpen(VerifyCheck::kFleet,
                           fmt::format("{}{}: this fleet and those after it were not verified: together they "
                                       "read each record more than {} times",
                                       prefix, kFleetName, kMostTimes));
    verifyFleet(tools, prefix, out, result);
  }
}

}  // namespace

bool isSetAside(const std::string& path) {
  return ("/" + path).find(std::string("/") + fleet::kAttemptsFolder + "/") != std::string::npos;
}

Result<Envelope> envelopeOf(const attest::Folder& folder) {
  MUSTER_TRY(const std::string text, folder.read(attest::kEnvelopeName, kMaxEnvelopeBytes));
  return attest::parseEnvelope(text).context(attest::kEnvelopeName);
}

FolderResult verifyContent(const VerifyTools& tools, Verification& out) {
  FolderResult result;
  for (const std::string& line : tools.files.strange)
    out.refute(VerifyCheck::kFiles, line + ": only files and directories can be verified");
  const auto runs = foldersWith(tools.files, kRecordName);
  if (runs.empty()) out.refute(VerifyCheck::kRecord, "there is no record.json in the directory");
  const std::set<std::string> setAside = setAsideIn(tools);
  std::set<std::string> artifacts;
  EarlierRuns earlier;
  for (const std::string& prefix : runs) {
    Verification apart;
    const bool isEarlier = isSetAside(prefix);
    const bool counts = !setAside.contains(prefix) && !isEarlier;
    const auto record = verifyRun(tools, prefix, counts ? out : apart);
    if (apart.isRefuted())
      out.leaveOpen(VerifyCheck::kRecord, fmt::format("{} does not count, and is refuted: {}", prefix,
                                                      apart.refutations().front()));
    if (record && counts) takeResult(tools, prefix, *record, result);
    earlier.all += isEarlier ? 1 : 0;
    if (!record) continue;
    earlier.rejected += isEarlier && record->acceptance == Acceptance::kRejected ? 1 : 0;
    for (const StageRecord& stage : record->stages)
      for (const ArtifactRecord& artifact : stage.artifacts)
        if (!artifact.sha256.empty()) artifacts.insert(prefix + artifact.path);
  }
  tellEarlier(tools, earlier, out);
  verifyFleets(tools, runs, out, result);
  OtherFiles(tools, artifacts, out).verify();
  verifyPromisedRequirements(tools, result, out);
  verifyJoined(result, out);
  verifyWhole(result, out);
  verifyIdentities(tools, result, out);
  conclude(result, out);
  return result;
}

void verifySignature(const VerifyTools& tools, const std::vector<PublicKey>& keys, const Json& results,
                     Verification& out) {
  const auto envelope = envelopeOf(tools.folder);
  if (!envelope.ok() && envelope.error().code == ErrorCode::kNotFound) {
    const std::string line = fmt::format("not signed: {} is missing", attest::kEnvelopeName);
    return keys.empty() ? out.leaveOpen(VerifyCheck::kSignature, line)
                        : out.refute(VerifyCheck::kSignature, line);
  }
  if (!envelope.ok()) return out.refute(VerifyCheck::kSignature, envelope.error().text());
  verifySigners(*envelope, keys, out);
  const auto statement = attest::parseStatement(envelope->payload);
  if (!statement.ok())
    return out.refute(VerifyCheck::kSignature,
                      fmt::format("{}: {}", attest::kEnvelopeName, statement.error().text()));
  const auto differences = attest::fileDifferences(*statement, tools.folder, tools.files);
  for (const std::string& line : differences) out.refute(VerifyCheck::kFiles, line);
  if (!differences.empty()) return;
  out.tell(VerifyCheck::kFiles, fmt::format("{} signed files are unchanged", statement->files.size()));
  if (!tools.files.working.empty())
    out.tell(
        VerifyCheck::kFiles,
        fmt::format("{} working files of the runs (.lock, requests/, output/, run.key, keys/) are not signed",
                    tools.files.working.size()));
  if (dumpJson(statement->results) != dumpJson(results))
    out.refute(
        VerifyCheck::kSignature,
        fmt::format("{}: the results that were signed are not those of the records", attest::kEnvelopeName));
}

}  // namespace muster
