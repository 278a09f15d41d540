// SPDX-License-Identifier: Apache-2.0
// `muster capture`: a record's inventory and values as a scenario for --simulate.
#include <fmt/format.h>

#include "kernels/sim/scenario/scenario.h"
#include "runner/app/input/record_input.h"
#include "runner/app/report/captured_scenario.h"
#include "runner/app/report/report_options.h"
#include "runner/core/print.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;

Result<int> captureCommand(const CaptureOptions& options) {
  MUSTER_TRY(const Record record, soundRecordAt(options.record));
  if (!record.imported.empty())
    return Error{ErrorCode::kUsage, "it holds other tools' results, which name no devices to simulate",
                 options.record.string()};
  std::error_code ignored;
  if (fs::exists(options.out, ignored))
    return Error{ErrorCode::kUsage, "exists already; choose another file with --out", options.out.string()};
  const std::string name = options.name.empty() ? options.out.stem().string() : options.name;
  auto captured = capturedScenario(record, name);
  if (!captured.ok()) return std::move(captured).error().context(options.record.string());
  MUSTER_TRY([[maybe_unused]] const sim::Scenario sound,
             sim::parseScenario(captured->text, options.out.string()).context("captured scenario"));
  MUSTER_CHECK_OK(writeFileAtomically(options.out, captured->text));
  std::vector<std::string> command = {"muster", "run", record.plan.path, "--simulate", options.out.string()};
  if (!record.profile.name.empty()) command.insert(command.end(), {"--sku", record.profile.name});
  printText("{}: {} devices; try it with `{}`\n", options.out.string(), record.inventory["devices"].size(),
            printable(shellCommand(command)));
  for (const std::string& what : captured->notCaptured)
    printText("failed in the record, and not captured: {}\n", printable(what, 120));
  return kExitAccepted;
}

}  // namespace muster
