// SPDX-License-Identifier: Apache-2.0
// See record_output.h.
#include "runner/app/judge/record_output.h"

#include "reports/terminal/terminal.h"
#include "runner/app/node/outputs.h"
#include "runner/app/node/run_folder.h"
#include "runner/core/print.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;

Result<int> showRecord(const Record& record, const fs::path& out, const fs::path& templates) {
  if (!out.empty()) {
    MUSTER_TRY(const fs::path folder, makeOutputFolder(out, "--out"));
    std::error_code error;
    if (fs::exists(folder / "record.json", error))
      return Error{ErrorCode::kUsage, "this directory already holds a record; choose another --out",
                   out.string()};
    MUSTER_CHECK_OK(requireNoRunBelow(folder, "choose another --out"));
    MUSTER_CHECK_OK(writeOutputs(record, folder, templates));
  }
  printLines(renderSummary(record, false, kSummaryColumns));
  return record.exitCode;
}

}  // namespace muster
