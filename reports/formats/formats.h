// SPDX-License-Identifier: Apache-2.0
// Formats: a record written for other programs, each a pure function of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/junit/text_limit.h"
#include "runner/record/record.h"

namespace muster {

struct Format {
  const char* name;    ///< "csv"
  const char* ending;  ///< of its files
  const char* about;   ///< one line for people
  std::string (*renderWithin)(const Record& record, TextLimit& limit);
  /// The texts of several records as one; nullptr: each record needs a file of its own.
  std::string (*merge)(const std::vector<std::string>& texts);
  bool onePerNode;  ///< two records of one node contradict each other

  [[nodiscard]] std::string render(const Record& record) const {
    TextLimit limit;
    return renderWithin(record, limit);
  }
};

/// All formats, in the order in which help lists them.
const std::vector<Format>& formats();

/// One event per line, by the Open Compute Project's Test & Validation specification 2.0. Every sample is an
/// element of a series; the value that was compared is a measurement whose validator is the limit; outcomes
/// that the specification does not know (waived, flaky ...) are extensions "muster.OUTCOME". What is left out
/// is an error in the log of its step, so that nobody takes a part of the samples for all.
std::string renderOcp(const Record& record, TextLimit& limit);

/// Common Test Report Format: a test for each check result, one for the acceptance itself, and a skipped one
/// for what is left out.
std::string renderCtrf(const Record& record, TextLimit& limit);

/// Prometheus text for node_exporter's textfile collector. The number of its series and the values of its
/// labels are bounded, so it needs no limit.
std::string renderPrometheus(const Record& record, TextLimit& limit);
std::string mergePrometheus(const std::vector<std::string>& texts);

/// One row per sample. A text that a spreadsheet would take for a formula begins with an apostrophe.
std::string renderCsv(const Record& record, TextLimit& limit);
/// The last row of a file with this header, if `limit` left something out: marks and note are its first cell.
std::string csvNote(std::string_view header, const TextLimit& limit, const std::string& marks = "",
                    const std::string& second = "");
/// A text of the record as a cell: control characters are shown.
std::string csvCell(const std::string& text);
std::string mergeCsv(const std::vector<std::string>& texts);

/// Verdict and findings for a ticket. All text of the record stands in code spans and blocks.
std::string renderMarkdown(const Record& record, TextLimit& limit);
/// The same, with the findings about one device alone.
std::string renderMarkdownOf(const Record& record, const std::string& device, TextLimit& limit);
std::string mergeMarkdown(const std::vector<std::string>& texts);

/// A node of a fleet, for lists of nodes.
struct NodeStanding {
  std::string name;
  bool accepted = false;
};

struct NodeListFormat {
  const char* name;
  const char* about;
  std::string (*render)(const std::vector<NodeStanding>& nodes);
};

/// Formats that are made of a fleet in place of records.
const std::vector<NodeListFormat>& nodeListFormats();

}  // namespace muster
