// SPDX-License-Identifier: Apache-2.0
// The record: everything about one node's run. Canonical as JSON; every report is derived from it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/judge/waivers.h"
#include "runner/metrics/measurement.h"
#include "runner/metrics/states.h"
#include "runner/metrics/verdict.h"
#include "runner/record/selection.h"

namespace muster {

/// 2: measurements, verdicts and telemetry in groups with rows; samples of seven digits. 1 had an object for
/// each and is no longer read.
inline constexpr int kRecordSchema = 2;

/// Larger files of a test are not kept.
inline constexpr uint64_t kMaxArtifactBytes = 256ull << 20;

/// A file kept beside the record.
struct ArtifactRecord {
  std::string name;
  std::string path;  ///< relative to the record's folder
  std::string mediaType;
  uint64_t bytes = 0;
  std::string sha256;
};

/// How one rank ended in one attempt of a stage.
struct RankRecord {
  int rank = 0;
  std::string device;
  int attempt = 1;
  RankOutcome state = RankOutcome::kError;
  int exitCode = 0;
  std::string signal;        ///< "SIGSEGV", or empty
  std::string error;         ///< one line; empty when ok
  std::string lastProgress;  ///< last progress line it sent
  std::string outputTail;    ///< the end of its stdout and stderr
  std::string rerun;         ///< the command that reruns just this rank
};

/// One plotted telemetry series of a stage: at most 300 points.
struct TelemetrySeries {
  std::string metric;  ///< "telemetry.temperature"
  std::string unit;
  std::string device;
  std::vector<double> time;  ///< seconds since the stage began
  std::vector<double> value;
  Summary summary;  ///< over every raw sample
};

struct CaseRecord {
  std::string id;
  Json params;
};

/// One stage of the run.
struct StageRecord {
  std::string name;
  std::string plugin;
  std::string pluginVersion;
  std::string pluginSha256;  ///< of its library; empty in records of older versions
  std::string test;
  Scope scope = Scope::kDevice;
  std::vector<std::string> needs;
  bool required = true;
  StageState state = StageState::kRan;
  std::string reason;                 ///< of a state other than ran
  Outcome outcome = Outcome::kError;  ///< the worst of its verdicts
  double started = 0;                 ///< seconds since 1970; virtual time under simulation
  double duration = 0;                ///< seconds
  double timeout = 0;
  int repeat = 1;
  int attempts = 1;  ///< attempts that were made
  std::vector<CaseRecord> cases;
  std::vector<RankRecord> ranks;
  std::vector<Measurement> measurements;
  std::vector<Verdict> verdicts;
  std::vector<TelemetrySeries> telemetry;
  std::vector<ArtifactRecord> artifacts;
  std::vector<std::string> log;  ///< what the plugin logged at warning or above
  /// Cluster scope: {"world_size", "first_rank", "nodes", "culprit"}, the last empty when all went well, and
  /// of several nodes "id" and "around"; else null.
  Json group;
  Json evidence;  ///< expectations, case ends and case metrics: what `muster judge` needs to judge the
                  ///< samples again
};

/// A text with its digest: the plan and the profile as they were in force, with what they include.
struct SourceRecord {
  std::string name;
  std::string path;
  std::string sha256;
  std::string text;
  std::map<std::string, std::string> includes = {};  ///< path below its folder -> SHA-256; part of the text
};

/// One time that `muster judge` judged the stored samples again.
struct Rejudgement {
  std::string fromSha256;  ///< of the record that was judged again
  double at = 0;           ///< seconds since 1970
  std::string toolVersion;
  std::string buildId;
  std::string profile;  ///< name of the profile that --sku gave; empty: the record's own requirements
  std::string profileSha256;
  std::string waiversSha256;  ///< of the waivers that --waivers gave; empty: the record's own
  bool strict = false;        ///< --strict was given
};

/// `muster redact` replaced names in the record.
struct RedactedRecord {
  std::string fromSha256;          ///< of the original record; empty: this is the original
  std::vector<std::string> rules;  ///< "host", "serial" ...: what was replaced
};

/// A file of another tool, whose values one stage of an imported record holds.
struct ImportedRecord {
  std::string stage;
  std::string file;
  std::string sha256;
  uint64_t bytes = 0;
  std::string format;   ///< "nccl-tests"
  std::string tool;     ///< its name and version, as the file says
  std::string said;     ///< the tool's own verdict in its words; empty: it gives none
  std::string differs;  ///< why the result here is another one; empty: it is the same
  /// Models of its devices, each once; empty: not told, as in older records.
  std::vector<std::string> deviceNames = {};
};

/// One waiver that was in force and what became of it here.
struct WaiverRecord {
  std::string stage;
  std::string metric;
  Labels where;
  std::string device;
  std::string serial;
  std::string node;
  std::string reason;
  std::string approver;
  std::string expires;  ///< "2026-12-31"
  std::string at;       ///< file:line:column
  WaiverState state = WaiverState::kUndecided;
  size_t covered = 0;  ///< failures that it covers
  std::string detail;
};

struct Record {
  std::string toolVersion;
  std::string buildId;
  /// SHA-256 of Muster's programs and libraries that ran, but for plugins, by file name; empty in older
  /// records.
  std::map<std::string, std::string> binaries;
  std::string runId;
  std::string node;  ///< host name
  int nodeRank = 0;
  int nodeCount = 1;
  double started = 0;  ///< seconds since 1970
  double finished = 0;
  bool simulated = false;
  std::string scenario;  ///< its name, when simulated
  std::string backend;
  uint64_t seed = 0;
  std::string bootId;
  int resumed = 0;  ///< how often the run was resumed
  SourceRecord plan;
  std::vector<std::string> overrides;
  Selection selection;                ///< partial: the run left out a part of its plan
  SourceRecord profile;               ///< empty name: unknown SKU
  std::string skuHow;                 ///< how the profile was chosen
  SourceRecord waiverFile;            ///< empty digest: none was given
  std::vector<WaiverRecord> waivers;  ///< in the order of the file
  bool allowUnknownSku = false;
  bool strict = false;
  std::vector<std::string> command;  ///< argv
  /// The command that starts this run anew, for --only and --device to be added; empty in older records.
  std::vector<std::string> rerun;
  Json inventory;  ///< {"host": {...}, "devices": [...], "software": {...}, "nics": [...]}
  Json launcher;   ///< {"kind": "none", ...}
  std::map<std::string, std::string> environment;  ///< allow-listed variables
  std::map<std::string, double> peaks;             ///< theoretical peaks in force
  std::string peaksFrom;
  std::vector<StageRecord> stages;
  /// Not empty: `muster import` made the record from these files, and Muster measured nothing itself.
  std::vector<ImportedRecord> imported;
  std::vector<Rejudgement> rejudged;  ///< the oldest first; empty: the verdicts are those of the run itself
  RedactedRecord redacted;
  Accounting accounting;
  Acceptance acceptance = Acceptance::kIncomplete;
  int exitCode = 3;
  std::vector<std::string> reasons;
  std::string fileSha256;  ///< of the text that it was read from; empty: it was made otherwise
  std::string mac;         ///< by its node's key (record_mac.h); empty: it was written without one
};

/// The backend of a record that `muster import` made.
inline constexpr const char* kImportedBackend = "imported";
inline constexpr const char* kImportedPlugin = "imported";  ///< of its stages
inline constexpr const char* kSimulatedBackend = "sim";

/// One line for each imported file: what it is, what its tool said, and what the result here is.
std::vector<std::string> importedTexts(const Record& record);

/// "judged again on 2026-11-21T03:10:00Z by Muster 0.1.0 with profile h100 (sha256 ...), from the record of
/// sha256 ...": the last time; empty where the verdicts are those of the run itself.
std::string rejudgedText(const Record& record);

Json toJson(const StageRecord& stage);
Result<StageRecord> stageRecordFromJson(const Json& json, const std::string& path);

Json toJson(const Record& record);
Result<Record> recordFromJson(const Json& json);

/// The text of the record's file: the same record always gives the same bytes, so its digest can be printed
/// in reports.
std::string recordText(const Record& record);

/// The bytes that a record may have at most.
inline constexpr uint64_t kMaxRecordBytes = 16ull << 20;

/// Reads the text of a record field by field. Whether its fields agree is for checkRecord() to say.
Result<Record> uncheckedRecord(const std::string& text);
/// Reads a record file of at most 16 MiB and checks it field by field; hostile files give an error, never a
/// crash.
/// `directory`: below which no link is followed on the way to it; empty: links are.
Result<Record> readRecord(const std::filesystem::path& path, const std::filesystem::path& directory = {});
/// `text`: of recordText.
Status writeRecord(const std::string& text, const std::filesystem::path& path);

}  // namespace muster
