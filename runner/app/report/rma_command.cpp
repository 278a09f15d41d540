// SPDX-License-Identifier: Apache-2.0
// `muster rma`: a directory with all that a vendor needs to take a device back.
#include <fmt/format.h>

#include <algorithm>

#include "reports/formats/rma.h"
#include "runner/app/input/record_input.h"
#include "runner/app/process/print_error.h"
#include "runner/app/report/report_options.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/record/findings/parts.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMostArtifactBytes = 64ull << 20;

Status checkDevice(const Record& record, const std::string& device) {
  std::vector<std::string> ids;
  for (const DevicePart& part : devicesOf(record)) ids.push_back(part.id);
  if (contains(ids, device)) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("is no device of this record{}; it has {}", didYouMean(device, ids),
                           ids.empty() ? "none" : printable(join(ids, ", "), 400)),
               "--device " + printable(device, 80)};
}

/// Copies the artifacts of the stages concerned that are still as the run left them; returns the others.
Result<std::vector<std::string>> copyArtifacts(const Record& record, const std::set<std::string>& stages,
                                               const fs::path& from, const fs::path& out) {
  std::vector<std::string> missing;
  std::set<std::string> seen;
  for (const StageRecord& stage : record.stages) {
    if (stages.count(stage.name) == 0) continue;
    for (const ArtifactRecord& artifact : stage.artifacts) {
      if (!seen.insert(artifact.path).second) continue;
      const auto text = readFileBelow(from, artifact.path, kMostArtifactBytes);
      if (!text.ok() || sha256Hex(*text) != artifact.sha256) {
        missing.push_back(artifact.path);
        continue;
      }
      const fs::path path = artifact.path;
      const fs::path to = *path.begin() == "artifacts" ? out / path : out / "artifacts" / path;
      MUSTER_TRY(const fs::path folder, makeOutputFolder(to.parent_path(), "--out"));
      MUSTER_CHECK_OK(writeFileAtomically(folder / to.filename(), *text, Durable::kNo));
    }
  }
  return missing;
}

}  // namespace

Result<int> rmaCommand(const RmaOptions& options) {
  MUSTER_TRY(const Record record, soundRecordAt(options.record));
  MUSTER_CHECK_OK(checkDevice(record, options.device));
  MUSTER_TRY(const fs::path out, makeOutputFolder(options.out, "--out"));
  if (std::error_code error; !fs::is_empty(out, error) || error)
    return Error{ErrorCode::kUsage, "this directory is not empty; choose another --out",
                 options.out.string()};
  for (const BundleFile& file : rmaBundle(record, options.device, record.fileSha256)) {
    MUSTER_CHECK_OK(writeFileAtomically(out / file.name, file.text, Durable::kNo));
    if (!file.note.empty()) printError(fmt::format("{}: {}", (out / file.name).string(), file.note));
  }
  const std::set<std::string> stages = stagesAbout(record, options.device);
  const fs::path run = options.record.has_parent_path() ? options.record.parent_path() : fs::path(".");
  MUSTER_TRY(const auto missing, copyArtifacts(record, stages, run, out));
  for (const std::string& path : missing)
    printText("not copied: {} is missing beside the record, or was changed\n", path);
  printText("{}{}: {}\n", record.simulated ? "SIMULATED " : "", deviceOf(record, options.device).text(),
            (options.out / "findings.md").string());
  return kExitAccepted;
}

}  // namespace muster
