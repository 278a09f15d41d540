// SPDX-License-Identifier: Apache-2.0
// What all readers of formats share: a file's lines or its JSON, numbers, and errors with their place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/json.h"
#include "runner/import/imported.h"

namespace muster::imports {

inline constexpr size_t kMostValues = 100'000;  ///< of one file
inline constexpr size_t kMostCases = 1'000;     ///< of one file
inline constexpr size_t kMostNotes = 100;       ///< of one file
inline constexpr size_t kMostDevices = 1024;    ///< of one node
inline constexpr double kGiga = 1e9;            ///< of GB/s as these tools print it

/// A file as the readers see it.
struct Source {
  std::string name;
  std::string_view text;
  std::optional<Json> json;  ///< where the text is, or ends with, one document, not several lines of JSON
  std::string error;  ///< "line 3 reports an error: Killed", of the first such line outside of JSON; or empty
  std::vector<std::string> notes;  ///< "line 1: note: ...", of lines before the JSON that are no error

  [[nodiscard]] Error refuse(size_t line, const std::string& problem) const;
  /// `place` is a path in the JSON; empty: the file as a whole.
  [[nodiscard]] Error refuse(const std::string& place, const std::string& problem) const;
};

/// A format: how it is recognized, and how it is read.
struct Format {
  const char* name;
  bool (*matches)(const Source& source);
  Result<ImportedFile> (*read)(const Source& source);
};

/// Calls `each(line, number)` from 1 on until one returns an error. Another separator than
/// that of lines splits a line that a terminal shows over itself.
template <typename F>
Status eachLine(std::string_view text, F each, char separator = '\n') {
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    MUSTER_CHECK_OK(each(line, ++number));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return {};
}

/// Calls `each(json, number)` for the JSON object of each line that is not empty. A line that holds none is
/// refused.
Status eachJsonLine(const Source& source, const std::function<Status(const Json&, size_t)>& each);

/// The first line that is not empty, where it is a JSON object.
std::optional<Json> firstJsonLine(const Source& source);

/// A reader's error about the JSON of this line.
Error refuseAt(const Source& source, size_t line, const Error& error);

/// The words of a line, between spaces and tabs.
std::vector<std::string_view> wordsOf(std::string_view line);

/// The text behind `before` in a line that holds it, up to the end; empty where it does not.
std::string_view behind(std::string_view line, std::string_view before);

/// Whether shells, `date`, `time`, launchers, containers or NCCL print this line, without white space around
/// it, behind a run that did not fail. None of them says that it ended well.
bool isUsualEnd(std::string_view line);

/// A finite number that fills the whole text.
std::optional<double> finiteNumber(std::string_view text);
/// A count of at most 2^53 that fills the whole text.
std::optional<uint64_t> wholeNumber(std::string_view text);

/// Whether an object holds `key`.
bool holds(const Json& json, const char* key);

/// Adds a text to a list that does not hold it yet.
void addOnce(std::vector<std::string>& list, std::string text);

/// Refuses, at `place`, more values or cases than a file may hold. Readers ask while they read: what a file
/// holds may take many times its size.
Status checkCounts(size_t values, size_t cases, const std::string& place = "");

/// Adds a note where it is one of those that are kept, or the first of those that are left out.
void addNote(std::vector<std::string>& notes, std::string text);

/// A measurement of one value.
Measurement valueOf(std::string metric, Labels labels, double value, std::string caseId);

/// The formats, each in its own source.
extern const Format kNcclTestsText;
extern const Format kNcclTestsJson;
extern const Format kNvbandwidth;
extern const Format kDcgmDiag;
extern const Format kFio;
extern const Format kGpuBurn;
extern const Format kGpuFryer;
extern const Format kMllog;
extern const Format kOcp;
extern const Format kSuperBench;

}  // namespace muster::imports
