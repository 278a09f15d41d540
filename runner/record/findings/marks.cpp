// SPDX-License-Identifier: Apache-2.0
// Finds what marks a record.
#include "runner/record/findings/marks.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster {

std::vector<Mark> marksOf(const Record& record) {
  std::vector<Mark> marks;
  if (record.simulated)
    marks.push_back({"SIMULATED", fmt::format("by scenario {}: no hardware was measured", record.scenario)});
  for (const std::string& text : importedTexts(record)) marks.push_back({"IMPORTED", text});
  if (!record.rejudged.empty()) marks.push_back({"RE-JUDGED", rejudgedText(record)});
  if (!record.redacted.fromSha256.empty())
    marks.push_back({"REDACTED", fmt::format("names were replaced ({}); the original record has sha256 {}",
                                             join(record.redacted.rules, ", "),
                                             record.redacted.fromSha256.substr(0, 12))});
  if (record.selection.partial()) marks.push_back({"PARTIAL", record.selection.text()});
  return marks;
}

std::string markPrefix(const Record& record) {
  std::string words, last;
  for (const Mark& mark : marksOf(record)) {
    if (mark.word != last) words += mark.word + " ";
    last = mark.word;
  }
  return words;
}

}  // namespace muster
