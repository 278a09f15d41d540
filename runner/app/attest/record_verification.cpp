// SPDX-License-Identifier: Apache-2.0
// Verifies record, journal, artifacts and reports of one run.
#include "runner/app/attest/record_verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/acceptance/clause_matrix.h"
#include "reports/html/html.h"
#include "reports/junit/junit.h"
#include "runner/app/attest/derived_limits.h"
#include "runner/app/attest/derived_verdicts.h"
#include "runner/app/input/derived_inventory.h"
#include "runner/app/input/judged_again.h"
#include "runner/app/input/record_input.h"
#include "runner/app/node/node_inventory.h"
#include "runner/app/node/node_run.h"
#include "runner/app/node/reboot_stage.h"
#include "runner/app/node/run_folder.h"
#include "runner/app/node/waiver_input.h"
#include "runner/attest/envelope.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"
#include "runner/record/findings/attempts.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"

namespace muster {
namespace {

using attest::FolderFile;

constexpr uint64_t kMaxReportBytes = 256ull << 20;
constexpr uint64_t kMaxDocumentBytes = 1ull << 20;  // acceptance.toml, requirements.toml

std::vector<Override> overridesOf(const Record& record) {
  std::vector<Override> overrides;
  for (const std::string& set : record.overrides)
    if (auto parsed = parseOverride(set); parsed.ok()) overrides.push_back(*std::move(parsed));
  return overrides;
}

class RunVerification {
 public:
  RunVerification(const VerifyTools& tools, std::string prefix, Verification& out)
      : tools_(tools), prefix_(std::move(prefix)), out_(out) {}

  void verify() {
    const auto text = tools_.folder.read(prefix_ + kRecordName, kMaxRecordBytes);
    const auto record = text.ok() ? uncheckedRecord(*text) : Result<Record>(text.error());
    if (!record.ok()) {
      return refute(VerifyCheck::kRecord, std::string(kRecordName) + ": " + record.error().message);
    }
    sameBuild_ = record->buildId == buildId();
    verifyRecord(*record, *text);
    verifyVerdicts(*record);
    verifyLimits(*record);
    verifyPromise(*record);
    verifyArtifacts(*record);
    verifyJournal(*record);
    verifyReports(*record, *text);
  }

 private:
  [[nodiscard]] std::string named(const std::string& line) const {
    return prefix_.empty() ? line : prefix_ + ": " + line;
  }
  void refute(VerifyCheck check, const std::string& line) { out_.refute(check, named(line)); }
  void leaveOpen(VerifyCheck check, const std::string& line) { out_.leaveOpen(check, named(line)); }

  /// A difference that another build of Muster may have made is no proof.
  void differ(VerifyCheck check, const std::string& line, const Record& record) {
    if (sameBuild_) return refute(check, line);
    leaveOpen(check, fmt::format("{}; the run was made by Muster {}, this is {}: verify with that one", line,
                                 record.buildId, buildId()));
  }

  void verifyRecord(const Record& record, const std::string& text) {
    if (const Status agrees = checkRecord(record); !agrees.ok())
      refute(VerifyCheck::kRecord, agrees.error().message);
    if (const Status stages = checkStages(record); !stages.ok())
      refute(VerifyCheck::kRecord, stages.error().message);
    if (const std::string at = textDifference(text, recordText(record)); !at.empty())
      differ(VerifyCheck::kRecord, std::string(kRecordName) + ": " + at, record);
    for (const SourceRecord* source : {&record.profile, &record.waiverFile})
      if (!source->sha256.empty() && sha256Hex(source->text) != source->sha256)
        refute(VerifyCheck::kRecord,
               fmt::format("the text of {} has another SHA-256 than the record states", source->path));
  }

  void verifyVerdicts(const Record& record) {
    size_t count = 0;
    for (const StageRecord& stage : record.stages) count += stage.verdicts.size();
    const auto again = judgedAgain(record, record.plan.sha256, {}, tools_.tree, tools_.lua);
    if (!again.ok() && again.error().code == ErrorCode::kTimeout)
      return leaveOpen(VerifyCheck::kVerdict, again.error().text());
    if (!again.ok()) return refute(VerifyCheck::kVerdict, again.error().text());
    const auto differences = verdictDifferences(record, *again, sameBuild_);
    for (const VerdictDifference& one : differences)
      one.ofWarnings ? differ(VerifyCheck::kVerdict, one.text, record)
                     : refute(VerifyCheck::kVerdict, one.text);
    if (differences.empty())
      out_.tell(VerifyCheck::kVerdict,
                named(fmt::format("{} check results derived again from the stored samples: {}", count,
                                  nameOf(record.acceptance))));
  }

  void verifyLimits(const Record& record) {
    if (!record.imported.empty())
      return leaveOpen(VerifyCheck::kLimits, "imported results of other tools: no plan ran");
    if (!record.rejudged.empty())
      return leaveOpen(VerifyCheck::kLimits, rejudgedText(record) + ": ask for the original record");
    const PlanOutcome outcome =
        parsePlan(record.plan.text, record.plan.path, tools_.catalog, {overridesOf(record), {}});
    if (!outcome.plan) {
      const std::string why =
          outcome.diagnostics.empty() ? "it cannot be read" : outcome.diagnostics.front().text();
      return leaveOpen(VerifyCheck::kLimits, "the limits of its plan cannot be derived: " + why);
    }
    std::optional<Profile> profile;
    if (!record.profile.name.empty()) {
      auto parsed = parseProfile(record.profile.text, record.profile.path, &tools_.catalog);
      if (!parsed.ok())
        return leaveOpen(VerifyCheck::kLimits, "its profile cannot be read: " + parsed.error().text());
      profile = *std::move(parsed);
    }
    if (tools_.promise.profileSha256.empty()) verifyOwnProfile(record, *outcome.plan);
    const auto differences =
        limitDifferences(record, *outcome.plan, profile ? &*profile : nullptr, tools_.catalog);
    for (const std::string& line : differences) differ(VerifyCheck::kLimits, line, record);
    if (differences.empty())
      out_.tell(VerifyCheck::kLimits,
                named("tests, parameters and limits derived again from plan and profile"));
  }

  /// Without the customer's copy the profile must be the one that this installation has for such devices:
  /// `--sku` can take the place of the plan's.
  void verifyOwnProfile(const Record& record, const Plan& plan) {
    if (record.profile.name.empty()) return;
    NodeInventory inventory;
    inventory.facts = record.inventory;
    RunOptions plain;  // as the run was, but for --sku
    plain.scenario = record.scenario;
    const auto choice = chooseSku(tools_.profiles, requiredSku(plan, plain), inventory.devices());
    const Profile* own = choice.ok() ? choice->profile : nullptr;
    const std::string used =
        fmt::format("profile {} (sha256 {})", record.profile.name, record.profile.sha256);
    if (own == nullptr || own->name != record.profile.name)
      leaveOpen(
          VerifyCheck::kLimits,
          fmt::format(
              "the run used {}, where its plan and devices call for {}: give the promised one with --sku",
              used, own == nullptr ? "none that is known here" : own->name));
    else if (own->sha256 != record.profile.sha256)
      leaveOpen(
          VerifyCheck::kLimits,
          fmt::format("{} is not the one of this installation: give the promised one with --sku", used));
    else
      out_.tell(VerifyCheck::kLimits, named(used + " is that of this installation for its plan and devices"));
  }

  /// A fleet applies the run's own waivers to what it compares with other nodes.
  static bool mayBeWaivedLater(const Record& record) {
    const auto waits = [](const Verdict& verdict) { return verdict.outcome == Outcome::kDeferred; };
    return !record.waiverFile.sha256.empty() &&
           std::any_of(record.stages.begin(), record.stages.end(), [&](const StageRecord& stage) {
             return std::any_of(stage.verdicts.begin(), stage.verdicts.end(), waits);
           });
  }

  void verifyPromise(const Record& record) {
    const Promise& promise = tools_.promise;
    if (!concessionsOf(record).empty() || mayBeWaivedLater(record))
      verifyPromisedWaivers(promise, prefix_ + kRecordName, record.waiverFile.path, record.waiverFile.sha256,
                            out_);
    if (!promise.planSha256.empty()) {
      if (record.plan.sha256 != promise.planSha256)
        refute(VerifyCheck::kPromise, fmt::format("the run used plan {} (sha256 {}), promised was sha256 {}",
                                                  record.plan.name, record.plan.sha256, promise.planSha256));
      else if (!record.overrides.empty())
        refute(VerifyCheck::kPromise,
               fmt::format("the promised plan was changed with --set {}", join(record.overrides, " --set ")));
      else
        out_.tell(VerifyCheck::kPromise, named("the run used the promised plan, without --set"));
    }
    if (promise.profileSha256.empty()) return;
    const auto promised = promise.profileSha256.find(record.profile.name);
    if (promised == promise.profileSha256.end())
      refute(VerifyCheck::kPromise,
             fmt::format("the run used profile \"{}\"; promised: {}", record.profile.name, promisedNames()));
    else if (promised->second != record.profile.sha256)
      refute(VerifyCheck::kPromise,
             fmt::format("the run used another profile {} (sha256 {}), promised was sha256 {}",
                         record.profile.name, record.profile.sha256, promised->second));
    else
      out_.tell(VerifyCheck::kPromise, named("the run used the promised profile " + record.profile.name));
    const auto own = tools_.profiles.find(record.profile.name);
    if (promise.profileSha256.size() > 1 && own != tools_.profiles.end() && own->second.match.onlyByName)
      leaveOpen(VerifyCheck::kPromise,
                fmt::format("of several promised profiles the run chose {}, which no device asks for: verify "
                            "such nodes alone, with one --sku",
                            record.profile.name));
  }

  [[nodiscard]] std::string promisedNames() const {
    std::vector<std::string> names;
    for (const auto& [name, sha256] : tools_.promise.profileSha256) names.push_back(name);
    return join(names, ", ");
  }

  void verifyArtifacts(const Record& record) {
    std::map<std::string, std::string> listed;  // path -> SHA-256
    for (const StageRecord& stage : record.stages)
      for (const ArtifactRecord& artifact : stage.artifacts) {
        const auto [first, isNew] = listed.emplace(prefix_ + artifact.path, artifact.sha256);
        if (isNew && !artifact.sha256.empty()) verifyArtifact(artifact);
        if (first->second != artifact.sha256)
          refute(VerifyCheck::kFiles,
                 fmt::format("{}: the record names it twice, with two SHA-256", artifact.path));
      }
    verifyInventoryFile(record);
    const std::string below = prefix_ + "artifacts/";
    const bool resumed = record.resumed > 0;  // what an interrupted stage had left stays there
    for (const FolderFile& file : tools_.files.files)
      if (file.name.starts_with(below) && !resumed && !listed.contains(file.name))
        leaveOpen(VerifyCheck::kFiles,
                  fmt::format("{}: no stage of the record names this artifact", file.name));
  }

  /// The artifact from which the run read the record's inventory. One that is missing is left open above.
  void verifyInventoryFile(const Record& record) {
    for (const StageRecord& stage : record.stages) {
      const auto artifact =
          std::find_if(stage.artifacts.begin(), stage.artifacts.end(),
                       [](const ArtifactRecord& one) { return one.name == kInventoryFile; });
      if (stage.name != kInventoryStage || artifact == stage.artifacts.end()) continue;
      const auto text = tools_.folder.read(prefix_ + artifact->path, kMaxDocumentBytes * 16);
      if (!text.ok() || sha256Hex(*text) != artifact->sha256) continue;
      const auto facts = parseJson(*text);
      const std::string what = facts.ok() ? factsDifference(record.inventory, *facts) : facts.error().text();
      if (what.empty() || record.inventory.empty()) continue;  // one that failed is found by its stage
      const std::string line = fmt::format("its inventory is not that of {}: {}", artifact->path, what);
      // Names in a redacted record are others than those in the file.
      record.redacted.fromSha256.empty() ? refute(VerifyCheck::kRecord, line)
                                         : leaveOpen(VerifyCheck::kRecord, line);
    }
  }

  void verifyArtifact(const ArtifactRecord& artifact) {
    const auto& files = tools_.files.files;
    const auto listed =
        std::lower_bound(files.begin(), files.end(), prefix_ + artifact.path,
                         [](const FolderFile& file, const std::string& name) { return file.name < name; });
    if (listed != files.end() && listed->name == prefix_ + artifact.path && listed->bytes > kMaxArtifactBytes)
      return refute(VerifyCheck::kFiles, fmt::format("{}: it has {} bytes, and no artifact has more than {}",
                                                     artifact.path, listed->bytes, kMaxArtifactBytes));
    const uint64_t limit = std::min(artifact.bytes, kMaxArtifactBytes) + 1;
    const auto found = tools_.folder.sums(prefix_ + artifact.path, 1 << 20, limit);
    if (!found.ok() && found.error().code == ErrorCode::kNotFound)
      return leaveOpen(VerifyCheck::kFiles,
                       fmt::format("{}: the record names this artifact, and it is missing", artifact.path));
    if (!found.ok() || found->sha256 != artifact.sha256)
      refute(VerifyCheck::kFiles,
             fmt::format("{}: is not the artifact that the record names by its SHA-256", artifact.path));
  }

  /// The journal was written while the run went on: each finished stage, and each start.
  void verifyJournal(const Record& record) {
    if (!hasFile(tools_.files, prefix_ + kJournalName)) {
      if (record.imported.empty())
        leaveOpen(VerifyCheck::kAttempts,
                  fmt::format("{} is missing: whether stages were tried before, only the record says",
                              kJournalName));
      return tellAttempts(record);
    }
    const auto text = tools_.folder.read(prefix_ + kJournalName, kMaxReportBytes);
    const auto journal = text.ok() ? journalFromText(*text) : Result<Journal>(text.error());
    if (!journal.ok()) return refute(VerifyCheck::kAttempts, journal.error().text());
    const auto differs = [&](const std::string& what) {
      refute(VerifyCheck::kAttempts, std::string(kJournalName) + ": " + what);
    };
    if (journal->run.value("run_id", "") != record.runId) differs("it is of another run than the record");
    if (journal->run.value("plan_sha256", "") != record.plan.sha256)
      differs("the run was started with another plan");
    if (journal->starts != record.resumed)
      differs(
          fmt::format("the run was resumed {} times, the record says {}", journal->starts, record.resumed));
    for (const JournalStage& kept : journal->stages) {
      const auto stage = std::find_if(record.stages.begin(), record.stages.end(),
                                      [&](const StageRecord& s) { return s.name == kept.stage.name; });
      if (stage == record.stages.end() || dumpJson(toJson(*stage)) != dumpJson(toJson(kept.stage)))
        differs(fmt::format("stage {} ended otherwise than the record says", kept.stage.name));
      if (kept.stage.name == kInventoryStage) compareInventory(record, kept.extra, differs);
    }
    // These two have no line. The waivers were judged again; whether the node rebooted follows from its
    // boots.
    const StageRecord reboot = rebootStage(journal->run.value("boot_id", ""), record.bootId).record;
    const auto told = std::find_if(record.stages.begin(), record.stages.end(),
                                   [&](const StageRecord& s) { return s.name == reboot.name; });
    const bool isTold = told != record.stages.end();
    if (isTold != (record.resumed > 0) || (isTold && dumpJson(toJson(*told)) != dumpJson(toJson(reboot))))
      differs("whether the node rebooted between its starts is not what the record says");
    for (const StageRecord& stage : record.stages)
      if (stage.state == StageState::kRan && stage.name != kWaiverStage && stage.name != reboot.name &&
          std::none_of(journal->stages.begin(), journal->stages.end(),
                       [&](const JournalStage& kept) { return kept.stage.name == stage.name; }))
        leaveOpen(VerifyCheck::kAttempts,
                  fmt::format("{} has no line of stage {}: whether it was tried before, only the record says",
                              kJournalName, stage.name));
    for (const auto& [name, failed] : journal->interrupted)
      if (std::none_of(record.stages.begin(), record.stages.end(),
                       [&, &n = name, &f = failed](const StageRecord& s) {
                         return s.name == n && s.attempts >= f.attempts;
                       }))
        differs(fmt::format("stage {} had failed before, and the record has no such attempt", name));
    tellAttempts(record);
  }

  /// What the journal kept of the inventory for a run that goes on.
  template <typename F>
  static void compareInventory(const Record& record, const Json& kept, F differs) {
    Json facts;
    std::string profile;
    if (kept.is_object()) {
      facts = kept.value("facts", Json());
      JsonReader(kept, "inventory").optional("profile_sha256", profile);
    }
    if (const std::string what = factsDifference(record.inventory, facts); !what.empty())
      differs("the inventory was another one: " + what);
    if (record.rejudged.empty() && profile != record.profile.sha256)
      differs("the run was started with another profile");
  }

  /// What was not passed at once.
  void tellAttempts(const Record& record) {
    std::vector<std::string> facts;
    if (const std::string attempts = attemptsText(record); !attempts.empty()) facts.push_back(attempts);
    if (record.selection.partial()) facts.push_back(record.selection.text());
    if (!record.rejudged.empty()) facts.push_back(rejudgedText(record));
    out_.tell(VerifyCheck::kAttempts,
              named(facts.empty() ? "every stage was tried once" : join(facts, "; ")));
  }

  void verifyReports(const Record& record, const std::string& text) {
    if (hasFile(tools_.files, prefix_ + "profile.toml"))
      compareFile(VerifyCheck::kRecord, "profile.toml", record.profile.text, record, true);
    const auto document = documentsIn(tools_, prefix_);
    if (!document.ok()) return refute(VerifyCheck::kReports, document.error().text());
    const Record shown = underRequirements(record, document->requirements);
    size_t compared = 0;
    if (hasFile(tools_.files, prefix_ + "junit.xml")) {
      compareFile(VerifyCheck::kReports, "junit.xml", renderJunit(shown), record, false);
      ++compared;
    }
    if (hasFile(tools_.files, prefix_ + "report.html")) {
      const auto html = renderHtml(shown, sha256Hex(text), tools_.tree.templates, *document);
      if (!html.ok()) return leaveOpen(VerifyCheck::kReports, html.error().text());
      compareFile(VerifyCheck::kReports, "report.html", *html, record, false);
      ++compared;
    }
    if (compared < 2) leaveOpen(VerifyCheck::kReports, "report.html or junit.xml is missing");
    if (same_)
      out_.tell(VerifyCheck::kReports,
                named(fmt::format("{} reports rendered again, byte for byte", compared)));
  }

  void compareFile(VerifyCheck check, const std::string& name, const std::string& expected,
                   const Record& record, bool anyBuild) {
    const auto found = tools_.folder.read(prefix_ + name, kMaxReportBytes);
    const std::string what = found.ok() ? textDifference(*found, expected) : found.error().message;
    if (what.empty()) return;
    same_ = false;
    if (anyBuild)
      refute(check, name + ": " + what);
    else
      differ(check, name + ": " + what, record);
  }

  const VerifyTools& tools_;
  std::string prefix_;
  Verification& out_;
  bool sameBuild_ = true;
  bool same_ = true;  ///< all compared files are what they must be
};

/// Adds what the child process of a record found, and notes what it read.
Status takeFindings(const std::string& output, const VerifyTools& tools, Verification& out) {
  MUSTER_TRY(const Json told, parseJson(output));
  JsonReader reader(told, "result");
  std::map<std::string, std::string> reads;
  reader.read("reads", reads);
  const Json* checks = reader.object("checks");
  MUSTER_CHECK_OK(reader.status());
  for (const auto& [name, sha256] : reads) tools.folder.note(name, sha256);
  return out.add(*checks);
}

}  // namespace

bool hasFile(const attest::FolderList& files, const std::string& name) {
  return std::binary_search(files.files.begin(), files.files.end(), FolderFile{name, 0, {}},
                            [](const FolderFile& a, const FolderFile& b) { return a.name < b.name; });
}

Result<AcceptanceDocument> documentsIn(const VerifyTools& tools, const std::string& prefix) {
  AcceptanceDocument document;
  if (const std::string name = prefix + kAcceptanceFile; hasFile(tools.files, name)) {
    MUSTER_TRY(const std::string text, tools.folder.read(name, kMaxDocumentBytes));
    MUSTER_TRY(document, parseAcceptanceDocument(text, name));
  }
  if (const std::string name = prefix + kRequirementsFile; hasFile(tools.files, name)) {
    MUSTER_TRY(const std::string text, tools.folder.read(name, kMaxDocumentBytes));
    MUSTER_TRY(document.requirements, parseRequirements(text, name));
  }
  return document;
}

void verifyPromisedWaivers(const Promise& promise, const std::string& where, const std::string& file,
                           const std::string& sha256, Verification& out) {
  if (promise.waiversSha256.empty())
    out.leaveOpen(
        VerifyCheck::kPromise,
        fmt::format("{}: accepted under the waivers of {}: did you agree to them? Give your copy with "
                    "--waivers",
                    where, file));
  else if (!promise.waiversSha256.contains(sha256))
    out.refute(VerifyCheck::kPromise,
               fmt::format("{}: accepted under the waivers of {} (sha256 {}), agreed was sha256 {}", where,
                           file, sha256, fmt::join(promise.waiversSha256, ", ")));
  else
    out.tell(VerifyCheck::kPromise, fmt::format("{}: the waivers are those that you agreed to", where));
}

std::string textDifference(std::string_view found, std::string_view expected) {
  const size_t at = attest::firstDifference(found, expected);
  if (at == std::string_view::npos) return "";
  if (at >= found.size()) return fmt::format("ends at byte {}, derived are {} bytes", at, expected.size());
  if (at >= expected.size()) return fmt::format("has {} bytes, derived are {}", found.size(), at);
  return fmt::format("byte {} is 0x{:02x}, derived is 0x{:02x}", at, static_cast<unsigned char>(found[at]),
                     static_cast<unsigned char>(expected[at]));
}

std::optional<Record> verifyRun(const VerifyTools& tools, const std::string& prefix, Verification& out) {
  const ChildEnd child = checkInChild(tools.lua, [&] {
    Verification found;
    tools.folder.takeReads();  // the parent has those so far
    RunVerification(tools, prefix, found).verify();
    return dumpJson({{"checks", found.json()}, {"reads", tools.folder.takeReads()}});
  });
  Status whole = child.problem.empty()
                     ? takeFindings(child.output, tools, out)
                     : Status(Error{ErrorCode::kTimeout, "the check of this record " + child.problem, ""});
  if (!whole.ok()) {
    out.leaveOpen(VerifyCheck::kRecord, fmt::format("{}{}: {}", prefix, kRecordName, whole.error().message));
    return std::nullopt;
  }
  const auto text = tools.folder.read(prefix + kRecordName, kMaxRecordBytes);
  if (!text.ok()) return std::nullopt;
  Result<Record> record = uncheckedRecord(*text);
  return record.ok() ? std::optional(*std::move(record)) : std::nullopt;
}

}  // namespace muster
