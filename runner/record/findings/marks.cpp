// SPDX-License-Identifier: Apache-2.0
// Finds what marks a record.
#include "runner/record/findings/marks.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr const char* kSimulated = "SIMULATED";
constexpr const char* kImported = "IMPORTED";
constexpr const char* kRejudged = "RE-JUDGED";
constexpr const char* kRedacted = "REDACTED";
constexpr const char* kPartial = "PARTIAL";

}  // namespace

std::vector<Mark> marksOf(const Record& record) {
  std::vector<Mark> marks;
  if (record.simulated)
    marks.push_back({kSimulated, fmt::format("by scenario {}: no hardware was measured", record.scenario)});
  for (const std::string& text : importedTexts(record)) marks.push_back({kImported, text});
  if (!record.rejudged.empty()) marks.push_back({kRejudged, rejudgedText(record)});
  if (!record.redacted.fromSha256.empty())
    marks.push_back({kRedacted, fmt::format("names were replaced ({}); the original record has sha256 {}",
                                            join(record.redacted.rules, ", "),
                                            record.redacted.fromSha256.substr(0, 12))});
  if (record.selection.partial()) marks.push_back({kPartial, record.selection.text()});
  return marks;
}

/// Without the texts: it stands before each name, and a record may have thousands of names and files.
std::string markPrefix(const Record& record) {
  std::string words;
  if (record.simulated) words += fmt::format("{} ", kSimulated);
  if (!record.imported.empty()) words += fmt::format("{} ", kImported);
  if (!record.rejudged.empty()) words += fmt::format("{} ", kRejudged);
  if (!record.redacted.fromSha256.empty()) words += fmt::format("{} ", kRedacted);
  if (record.selection.partial()) words += fmt::format("{} ", kPartial);
  return words;
}

}  // namespace muster
