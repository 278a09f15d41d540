// SPDX-License-Identifier: Apache-2.0
// `muster report`: records rendered again, as pages or in other programs' formats.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "reports/acceptance/acceptance_document.h"
#include "reports/acceptance/clause_matrix.h"
#include "reports/formats/formats.h"
#include "reports/history/store/kept_fleet.h"
#include "reports/terminal/terminal.h"
#include "runner/app/input/measured_only.h"
#include "runner/app/input/record_input.h"
#include "runner/app/node/outputs.h"
#include "runner/app/process/print_error.h"
#include "runner/app/report/report_options.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/judge/exit_code.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

/// The entry of this name, or nullptr.
template <typename T>
const T* named(const std::vector<T>& table, const std::string& name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const T& one) { return one.name == name; });
  return found == table.end() ? nullptr : &*found;
}

/// Bytes of the texts that are put together in one file.
constexpr size_t kMostMergedBytes = 4ull << 30;

/// Writes `text` to --out, or prints it.
Status put(const std::string& text, const fs::path& out) {
  if (!out.empty()) return writeFileAtomically(out, text, Durable::kNo);
  printLines(text);
  return {};
}

Result<std::vector<RecordFile>> filesOf(const ReportOptions& options) {
  std::vector<RecordFile> files;
  for (const fs::path& given : options.records) {
    MUSTER_TRY(const auto found, recordFilesAt(given));
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

/// The requirements that the record at `file` is shown under: those of the option, else the copy beside it.
Result<std::optional<Requirements>> requirementsOf(const ReportOptions& options, const fs::path& file) {
  const fs::path kept = file.parent_path() / kRequirementsFile;
  if (options.requirements.empty()) {
    MUSTER_TRY(const bool there, isKept(kept));
    if (!there) return std::optional<Requirements>();
  }
  MUSTER_TRY(Requirements requirements,
             readRequirements(options.requirements.empty() ? kept : options.requirements));
  return std::optional(std::move(requirements));
}

/// Under the requirements that were given or lie beside it.
Result<Record> judgedRecordOf(const ReportOptions& options, const RecordFile& file, PredicateTime& call) {
  MUSTER_TRY(const auto requirements, requirementsOf(options, file.path));
  MUSTER_TRY(Record record, soundRecordAt(file, call));
  return underRequirements(std::move(record), requirements);
}

/// Where the texts go: together, or each to a file that is called like its node.
enum class Target { kOne, kFileOfEach };

/// The record at `file`, unless it cannot be rendered beside those of `nodes`, whose files these are.
Result<Record> renderableRecordOf(const Format& format, const ReportOptions& options, const RecordFile& file,
                                  Target target, std::map<std::string, fs::path>& nodes,
                                  PredicateTime& call) {
  MUSTER_TRY(Record record, judgedRecordOf(options, file, call));
  const std::string node = printable(record.node, 80);
  if (target == Target::kFileOfEach && !isPlainName(record.node))
    return Error{
        ErrorCode::kUsage,
        fmt::format("the node's name \"{}\" cannot be that of a file; render its record alone", node),
        file.path.string()};
  const auto [first, isFirst] = nodes.emplace(record.node, file.path);
  if (format.onePerNode && !isFirst)
    return Error{
        ErrorCode::kUsage,
        fmt::format("is a second record of node {}, beside {}; --format {} takes one record of each node",
                    node, first->second.string(), format.name),
        file.path.string()};
  return record;
}

/// Renders one record after another and gives each text with its node's name; returns the worst exit code.
Result<int> renderEach(const Format& format, const ReportOptions& options,
                       const std::vector<RecordFile>& files, Target target,
                       const std::function<Status(const std::string& node, std::string text)>& take) {
  if (!options.requirements.empty()) MUSTER_CHECK_OK(readRequirements(options.requirements));
  int exitCode = kExitAccepted;
  std::map<std::string, fs::path> nodes;
  PredicateTime call{PredicateTime::kOfCall};
  for (const RecordFile& file : files) {
    const Result<Record> record = renderableRecordOf(format, options, file, target, nodes, call);
    if (!record.ok()) {
      if (!mayLeaveOut(file, files.size())) return record.error();
      printError(fmt::format("left out: {}", record.error().text()));
      exitCode = worstExit(exitCode, kExitIncomplete);
      continue;
    }
    exitCode = worstExit(exitCode, record->exitCode);
    TextLimit limit;
    std::string text = format.renderWithin(*record, limit);
    if (limit.leftOut() > 0) printError(fmt::format("{}: {}", file.path.string(), limit.note()));
    MUSTER_CHECK_OK(take(record->node, std::move(text)));
  }
  if (nodes.empty()) return noSoundRecord(files.size());
  return exitCode;
}

/// A file for each record.
Result<int> reportEach(const Format& format, const ReportOptions& options,
                       const std::vector<RecordFile>& files) {
  if (options.out.empty())
    return Error{
        ErrorCode::kUsage,
        fmt::format("--format {} writes a file for each record; say where with --out DIR", format.name), ""};
  MUSTER_TRY(const fs::path folder, makeOutputFolder(options.out, "--out"));
  return renderEach(format, options, files, Target::kFileOfEach,
                    [&](const std::string& node, const std::string& text) {
                      return put(text, folder / (node + format.ending));
                    });
}

Result<int> reportAs(const Format& format, const ReportOptions& options) {
  MUSTER_TRY(const std::vector<RecordFile> files, filesOf(options));
  std::error_code error;
  const bool alone = files.size() == 1 && !fs::is_directory(options.out, error);
  if (format.merge == nullptr && !alone) return reportEach(format, options, files);
  std::vector<std::string> texts;
  size_t bytes = 0;
  MUSTER_TRY(
      const int exitCode,
      renderEach(format, options, files, Target::kOne, [&](const std::string&, std::string text) -> Status {
        if ((bytes += text.size()) > kMostMergedBytes)
          return Error{ErrorCode::kUsage,
                       fmt::format("{} of {} records are more than 4 GiB in this format; give fewer at once",
                                   texts.size() + 1, files.size()),
                       fmt::format("--format {}", format.name)};
        texts.push_back(std::move(text));
        return {};
      }));
  MUSTER_CHECK_OK(put(alone ? texts.front() : format.merge(texts), options.out));
  return exitCode;
}

/// Lists of nodes come from a fleet, which alone knows those that are missing.
Result<int> listNodes(const NodeListFormat& format, const ReportOptions& options) {
  if (!options.requirements.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("--format {} lists the nodes as fleet.json has them; judge the fleet under its "
                             "clauses with `muster fleet --requirements`",
                             format.name),
                 "--requirements"};
  fs::path folder = options.records.front();
  std::error_code error;
  if (!fs::is_directory(folder, error) && folder.filename() == "fleet.json") folder = folder.parent_path();
  if (options.records.size() != 1 || !fs::is_directory(folder.empty() ? "." : folder, error))
    return Error{ErrorCode::kUsage,
                 fmt::format("--format {} takes the fleet.json of one fleet; make it with `muster fleet`",
                             format.name),
                 options.records.front().string()};
  MUSTER_TRY(const history::KeptFleet fleet, history::readFleetIn(folder.empty() ? "." : folder));
  MUSTER_CHECK_OK(requireMeasured(fleet.simulated, "choose nodes", options.records.front()));
  std::vector<NodeStanding> nodes;
  for (const history::FleetMember& member : fleet.nodes)
    nodes.push_back({member.name, member.state == fleet::NodeState::kAccepted});
  MUSTER_CHECK_OK(put(format.render(nodes), options.out));
  return kExitAccepted;
}

/// The summary of a record, with its clauses.
int showSummary(const Record& original, const std::optional<Requirements>& requirements) {
  const Record record = underRequirements(original, requirements);
  printLines(renderSummary(record, false, kSummaryColumns));
  if (!requirements) return record.exitCode;
  const ClauseMatrix matrix = clauseMatrix(*requirements, record);
  for (const ClauseResult& result : matrix.clauses)
    printText("  clause {:<8} {}\n", result.clause->id, result.text());
  if (!matrix.stagesWithout.empty())
    printText("  stages that are evidence for no clause: {}\n", join(matrix.stagesWithout, ", "));
  return record.exitCode;
}

/// The summary of one record, or its pages.
Result<int> reportPages(const ReportOptions& options) {
  if (options.records.size() != 1)
    return Error{ErrorCode::kUsage, "takes one record without --format", options.records[1].string()};
  AcceptanceDocument document;
  if (!options.acceptance.empty()) {
    if (options.out.empty())
      return Error{ErrorCode::kUsage, "is printed in report.html only; say where with --out DIR",
                   "--acceptance"};
    MUSTER_TRY(document, readAcceptanceDocument(options.acceptance));
  }
  const fs::path& file = options.records.front();
  MUSTER_TRY(document.requirements, requirementsOf(options, file));
  MUSTER_TRY(const Record record, soundRecordAt(file));
  if (options.out.empty()) return showSummary(record, document.requirements);
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const fs::path out, makeOutputFolder(options.out, "--out"));
  MUSTER_CHECK_OK(keepDocuments(document, out));
  MUSTER_CHECK_OK(writeReports(record, sha256Hex(recordText(record)), out, tree.templates, document));
  printText("report {}\n", (options.out / "report.html").string());
  return underRequirements(record, document.requirements).exitCode;
}

}  // namespace

std::vector<std::string> reportFormats() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.emplace_back(format.name);
  for (const NodeListFormat& format : nodeListFormats()) names.emplace_back(format.name);
  return names;
}

std::string reportFormatsText() {
  std::string text = "\nFormats (--format):\n";
  for (const Format& format : formats()) text += fmt::format("  {:<11} {}\n", format.name, format.about);
  for (const NodeListFormat& format : nodeListFormats())
    text += fmt::format("  {:<11} {}; of fleet.json\n", format.name, format.about);
  return text;
}

Result<int> reportCommand(const ReportOptions& options) {
  if (options.format.empty()) return reportPages(options);
  if (!options.acceptance.empty())
    return Error{ErrorCode::kUsage, "is printed in report.html only, which is written without --format",
                 "--acceptance"};
  if (const NodeListFormat* list = named(nodeListFormats(), options.format)) return listNodes(*list, options);
  return reportAs(*named(formats(), options.format), options);
}

}  // namespace muster
