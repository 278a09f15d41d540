// SPDX-License-Identifier: Apache-2.0
// The record as a file: one deterministic text, written as one step. Reading is in record_read.cpp.
#include "runner/record/record.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr size_t kOneLineBytes = 140;

/// Below this depth a value is one line: a measurement, a verdict or a series each, easy to search and to
/// compare.
constexpr size_t kLineDepth = 4;

/// Whether `value` is small: without structure inside, and short.
bool isShort(const Json& value) {
  for (const auto& item : value)
    if (item.is_structured() && !item.empty()) return false;
  return dumpJson(value).size() <= kOneLineBytes;
}

void writeValue(const Json& value, size_t depth, std::string& out);

void writeMembers(const Json& value, size_t depth, std::string& out) {
  const char* separator = "\n";
  for (const auto& [key, item] : value.items()) {
    out += separator + std::string(depth + 1, ' ');
    if (value.is_object()) out += dumpJson(key) + ": ";
    writeValue(item, depth + 1, out);
    separator = ",\n";
  }
  out += "\n" + std::string(depth, ' ');
}

/// Neither a wall nor a ribbon of text: what is small or deep stands on one line.
void writeValue(const Json& value, size_t depth, std::string& out) {
  if (!value.is_structured() || value.empty() || depth >= kLineDepth || isShort(value)) {
    out += dumpJson(value);
    return;
  }
  out += value.is_object() ? '{' : '[';
  writeMembers(value, depth, out);
  out += value.is_object() ? '}' : ']';
}

}  // namespace

std::string recordText(const Record& record) {
  std::string text;
  writeValue(toJson(record), 0, text);
  return text + "\n";
}

Status writeRecord(const std::string& text, const std::filesystem::path& path) {
  return writeFileAtomically(path, text).context("writing the record");
}

}  // namespace muster
