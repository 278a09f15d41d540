// SPDX-License-Identifier: Apache-2.0
// What is made of records after a run: `muster report`, `redact`, `rma` and `capture`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

struct ReportOptions {
  std::vector<std::filesystem::path>
      records;                       ///< files, or folders with runs; of node lists the fleet's folder
  std::string format;                ///< one of reportFormats(); empty: summary, or report.html and junit.xml
  std::filesystem::path out;         ///< where the reports go; empty: standard output
  std::filesystem::path acceptance;  ///< acceptance.toml for the first page; empty: blanks
  std::filesystem::path
      requirements;  ///< clauses that must be met; empty: the copy beside the record, if any
};
/// Renders records again. Returns the record's exit code, of several the worst, or kExitIncomplete where it
/// is accepted and a clause of the requirements has no evidence or is not met, or where a record of a folder
/// cannot be used: it is named, and left out.
Result<int> reportCommand(const ReportOptions& options);
std::vector<std::string> reportFormats();
/// One line for each format, for --help.
std::string reportFormatsText();

struct RedactOptions {
  std::vector<std::filesystem::path> records;  ///< files, or folders with runs
  std::filesystem::path out;                   ///< a folder for each record is made in it
  std::filesystem::path map;                   ///< kept outside of `out`; an existing one goes on
  std::vector<std::string> rules;              ///< empty: all
  std::vector<std::string> words;
};
/// Writes records, and their reports, in which names are replaced by pseudonyms.
Result<int> redactCommand(const RedactOptions& options);

struct RmaOptions {
  std::filesystem::path record;
  std::string device;
  std::filesystem::path out;  ///< new or empty
};
/// Writes what a vendor needs to take a device back.
Result<int> rmaCommand(const RmaOptions& options);

struct CaptureOptions {
  std::filesystem::path record;
  std::filesystem::path out = "captured.toml";
  std::string name;  ///< of the scenario; empty: that of the file
};
/// Writes what a record says of its node as a scenario, by which later runs simulate it.
Result<int> captureCommand(const CaptureOptions& options);

CLI::App* addReport(CLI::App& app, ReportOptions& options);
CLI::App* addRedact(CLI::App& app, RedactOptions& options);
CLI::App* addRma(CLI::App& app, RmaOptions& options);
CLI::App* addCapture(CLI::App& app, CaptureOptions& options);

}  // namespace muster
