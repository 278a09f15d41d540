// SPDX-License-Identifier: Apache-2.0
// Results of other tools, in Muster's metrics, units and labels. No input or output: texts in, values out.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runner/metrics/measurement.h"

namespace muster {

/// What a tool says of its own results.
enum class ToolVerdict { kNone, kPassed, kFailed };

/// One thing that a tool tested. Its metrics must all have been measured, of each device.
struct ImportedCase {
  std::string id;
  Labels labels;                     ///< known of all its values
  std::set<std::string> metrics;     ///< "collective.bus_bandwidth"
  std::vector<std::string> devices;  ///< "gpu3", by rank; empty: it is about the node
  std::string error;                 ///< why there is no result; empty: there is one
};

/// What was read from one file.
struct ImportedFile {
  std::string format;  ///< "nccl-tests"
  std::string tool;    ///< "nccl-tests 2.17.1, NCCL 2.28.9"
  ToolVerdict verdict = ToolVerdict::kNone;
  std::string said;                ///< that verdict in the tool's words
  int failures = 0;                ///< results that the tool itself calls failed
  std::string limits;              ///< what that verdict is based on: "the results' correctness, and no rate"
  int ranks = 0;                   ///< devices that took part
  std::vector<std::string> hosts;  ///< their machines, each once; empty: not told
  std::vector<std::string> deviceNames;  ///< their models, each once; empty: not told
  std::vector<ImportedCase> cases;
  std::vector<Measurement> measurements;  ///< metric, unit, labels, samples, case, device and rank alone
  bool ownNames = false;  ///< the file names the metrics: those that no plugin has are no fault of the reader
  std::vector<std::string> notes;  ///< what the file holds and was not imported, and why
};

/// Names of the formats that are read.
std::vector<std::string> importFormats();

/// Reads the text of a file called `name`; an empty `format` is found from the content. Refused with
/// "name:line", or the place in its JSON: what is no known format or could be two, is damaged or contradicts
/// itself, or holds a value that is no finite number.
Result<ImportedFile> importText(std::string_view text, const std::string& name, const std::string& format);

}  // namespace muster
