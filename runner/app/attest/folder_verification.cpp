// SPDX-License-Identifier: Apache-2.0
// Goes through a directory and verifies what is there.
#include "runner/app/attest/folder_verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/acceptance/clause_matrix.h"
#include "reports/fleet/read/record_stream.h"
#include "runner/app/attest/fleet_verification.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/record/findings/concessions.h"

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
    const auto text = tools.folder.read(prefix + kFleetName, kMaxEnvelopeBytes);
    const auto json = text.ok() ? parseJson(*text) : Result<Json>(text.error());
    const auto list = json.ok() && json->is_object() ? json->find("quarantined") : Json::const_iterator();
    if (!json.ok() || !json->is_object() || list == json->end() || !list->is_array()) continue;
    for (const Json& entry : *list) {
      std::string path;
      JsonReader(entry, "quarantined").optional("path", path);
      if (path.ends_with(kRecordName))
        folders.insert(prefix + path.substr(0, path.size() - std::string_view(kRecordName).size()));
    }
  }
  return folders;
}

/// Adds the result of one run, under its requirements if there are any.
void takeResult(const VerifyTools& tools, const std::string& prefix, const Record& record,
                FolderResult& result) {
  const auto documents = documentsIn(tools, prefix);
  const Record shown = documents.ok() ? underRequirements(record, documents->requirements) : record;
  result.simulated = result.simulated || record.simulated;
  result.concessions = result.concessions || !concessionsOf(record).empty();
  VerifiedResult one{prefix + kRecordName, shown.exitCode, nameOf(shown.acceptance), {}, false};
  for (const StageRecord& stage : record.stages)
    if (stage.state == StageState::kElsewhere) one.elsewhere.push_back(stage.name);
  result.verified.push_back(std::move(one));
  result.results.push_back(resultOf(shown, prefix));
}

/// The worst of the fleets, and of the runs of which none tells.
void conclude(FolderResult& result, Verification& out) {
  for (const VerifiedResult& one : result.verified) {
    if (one.inFleet) continue;
    if (!one.elsewhere.empty())
      out.leaveOpen(
          VerifyCheck::kLimits,
          fmt::format("{}: ran in another job, whose record no fleet of this directory joins with it: {}",
                      one.path, join(one.elsewhere, ", ")));
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
                     one.keyId))
           : out.tell(VerifyCheck::kSignature,
                      fmt::format("also signed, as it says, by key {}, which was not verified", one.keyId)));
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
  for (const std::string& prefix : runs) {
    Verification apart;
    const bool counts = !setAside.contains(prefix) && !isSetAside(prefix);
    const auto record = verifyRun(tools, prefix, counts ? out : apart);
    if (apart.isRefuted())
      out.leaveOpen(VerifyCheck::kRecord, fmt::format("{} does not count, and is refuted: {}", prefix,
                                                      apart.refutations().front()));
    if (record && counts) takeResult(tools, prefix, *record, result);
  }
  for (const std::string& prefix : foldersWith(tools.files, kFleetName))
    if (!isSetAside(prefix)) verifyFleet(tools, prefix, out, result);
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
  if (tools.files.working > 0)
    out.tell(VerifyCheck::kFiles,
             fmt::format("{} working files of the runs (.lock, requests/, output/) are not signed",
                         tools.files.working));
  if (dumpJson(statement->results) != dumpJson(results))
    out.refute(
        VerifyCheck::kSignature,
        fmt::format("{}: the results that were signed are not those of the records", attest::kEnvelopeName));
}

}  // namespace muster
