// SPDX-License-Identifier: Apache-2.0
// `muster redact`: records without the names of hosts, parts, addresses and users.
#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/redaction/redaction.h"
#include "runner/app/input/record_input.h"
#include "runner/app/node/outputs.h"
#include "runner/app/report/report_options.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr mode_t kSecretMode = 0600;
constexpr uint64_t kMostMapBytes = 256ull << 20;

/// The map tells who is who: it must not lie beside what is given away.
Status checkMapPlace(const RedactOptions& options) {
  std::error_code error;
  const fs::path out = fs::weakly_canonical(options.out, error);
  const fs::path map = fs::weakly_canonical(options.map, error);
  const auto [end, at] = std::mismatch(out.begin(), out.end(), map.begin(), map.end());
  const auto folder = outputFolder(options.map.has_parent_path() ? options.map.parent_path() : fs::path("."));
  if (end != out.end()) return folder.ok() ? Status() : folder.error();
  return Error{ErrorCode::kUsage, "is inside of --out; keep the map where nobody else can read it",
               "--map " + options.map.string()};
}

/// An earlier map, which nobody else could have read or written.
Status takeMap(const fs::path& path, Redaction& redaction) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return {};
  auto text = readPrivateFile(path, kMostMapBytes);
  if (!text.ok()) return std::move(text).error().context("reading the map, which is as secret as a key");
  MUSTER_TRY(const Json json, parseJson(*text));
  return redaction.take(json).context("reading the map " + path.string());
}

/// Written before any record: pseudonyms that were given away must stay known.
Status keepMap(const fs::path& path, const Redaction& redaction) {
  const fs::path next = path.string() + ".new";
  const std::string text = dumpJson(redaction.toJson(), 1) + "\n";
  if (const auto again = parseJson(text); !again.ok())
    return Error{ErrorCode::kUsage,
                 fmt::format("the map could not be read again: {}. Nothing was written: redact fewer records "
                             "with one map",
                             again.error().message),
                 path.string()};
  std::error_code error;
  fs::remove(next, error);
  MUSTER_TRY(Fd fd, openOwnFile(next, O_WRONLY, kSecretMode));
  MUSTER_CHECK_OK(appendAndSync(fd.get(), text, next));
  fd.reset();
  fs::rename(next, path, error);
  if (error) return Error{ErrorCode::kIo, "cannot write the map: " + error.message(), path.string()};
  return {};
}

std::set<Secret> rulesOf(const RedactOptions& options) {
  std::set<Secret> rules;
  for (const std::string& name : options.rules) rules.insert(*fromName<Secret>(name));
  if (rules.empty()) rules = {Secret::kHost, Secret::kSerial, Secret::kAddress, Secret::kUser};
  if (!options.words.empty()) rules.insert(Secret::kWord);
  return rules;
}

/// A record whose names are collected.
struct Collected {
  RecordFile file;
  std::string sha256;
};

Result<Record> redacted(const Collected& collected, const Redaction& redaction, PredicateTime& call) {
  MUSTER_TRY(const Record record, soundRecordAt(collected.file, call));
  MUSTER_CHECK_OK(checkUnchanged(record, collected.sha256, collected.file.path));
  return redaction.apply(record, record.fileSha256).context("redacting " + collected.file.path.string());
}

/// Whether a redacted record can be given away: it says the same as before under a name that a directory may
/// have. `file`: of the record before.
Status checkRedacted(const Record& record, const fs::path& file, PredicateTime& call) {
  if (!isPlainName(record.node))
    return Error{ErrorCode::kUsage, "its node's name cannot be that of a directory, also once redacted",
                 file.string()};
  const std::string step = "checking the redacted record of " + file.string();
  MUSTER_CHECK_OK(checkRecord(record).context(step));
  MUSTER_CHECK_OK(checkStages(record).context(step));
  MUSTER_TRY(const std::string difference, unsoundness(record, call).context(step));
  if (difference.empty()) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("once redacted, its check results would not match its samples: {}; two of its names "
                  "may differ only in upper and lower case. Nothing was written: leave this record "
                  "out",
                  difference),
      file.string()};
}

/// Writes a redacted record into a folder of its own and reads it back.
Status write(const Record& record, size_t number, const fs::path& folder, const fs::path& templates) {
  const fs::path own = folder / fmt::format("{:04}-{}", number, record.node);
  MUSTER_TRY(const fs::path out, makeOutputFolder(own, "--out"));
  MUSTER_CHECK_OK(writeOutputs(record, out, templates));
  const auto again = recordAt(out / "record.json");
  return again.ok() ? Status() : Status(again.error());
}

/// The records, and all names that stand in any of them.
Result<std::vector<Collected>> collect(const RedactOptions& options, Redaction& redaction,
                                       PredicateTime& call) {
  std::vector<RecordFile> files;
  for (const fs::path& given : options.records) {
    MUSTER_TRY(const auto found, recordFilesAt(given));
    files.insert(files.end(), found.begin(), found.end());
  }
  std::vector<Collected> all;
  for (const RecordFile& file : files) {
    MUSTER_TRY(const Record record, recordAt(file));
    redaction.collect(record);
    all.push_back({file, record.fileSha256});
  }
  for (const std::string& word : options.words) redaction.addWord(word);
  MUSTER_CHECK_OK(redaction.name());
  for (const Collected& one : all) {  // nothing is written if one of them cannot be redacted
    MUSTER_TRY(const Record record, redacted(one, redaction, call));
    MUSTER_CHECK_OK(checkRedacted(record, one.file.path, call));
  }
  return all;
}

}  // namespace

Result<int> redactCommand(const RedactOptions& options) {
  MUSTER_CHECK_OK(checkMapPlace(options));
  Redaction redaction(rulesOf(options));
  MUSTER_CHECK_OK(takeMap(options.map, redaction));
  PredicateTime call{PredicateTime::kOfCall};
  MUSTER_TRY(const std::vector<Collected> files, collect(options, redaction, call));
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const fs::path out, makeOutputFolder(options.out, "--out"));
  if (std::error_code error; !fs::is_empty(out, error) || error)
    return Error{ErrorCode::kUsage, "this directory is not empty; choose another --out",
                 options.out.string()};
  MUSTER_CHECK_OK(keepMap(options.map, redaction));
  std::set<std::string> nodes;
  for (size_t i = 0; i < files.size(); ++i) {
    MUSTER_TRY(const Record record, redacted(files[i], redaction, call));
    MUSTER_CHECK_OK(write(record, i + 1, out, tree.templates));
    nodes.insert(record.node);
  }
  const std::string list = join({nodes.begin(), nodes.end()}, "\n") + "\n";
  MUSTER_CHECK_OK(writeFileAtomically(out / "nodes.txt", list, Durable::kNo));
  printText("{} redacted into {}; {} tells who is who: keep it to yourself\n",
            files.size() == 1 ? "1 record" : fmt::format("{} records", files.size()), options.out.string(),
            options.map.string());
  if (const size_t words = redaction.wordsLeftOut(); words > 0)
    printText("note: {} of the map not replaced; name them by --word to replace them\n",
              words == 1 ? "1 word" : fmt::format("{} words", words));
  return kExitAccepted;
}

}  // namespace muster
