// SPDX-License-Identifier: Apache-2.0
// Computes edit distances, formats lists and escapes texts.
#include "runner/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace muster {
namespace {

/// Names longer than this are no typos; it also bounds the work on hostile input.
constexpr size_t kLongestName = 128;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Optimal string alignment: insert, delete, replace and swap of neighbours cost one each.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

bool nearEnough(size_t distance, size_t length) {
  return distance <= std::max<size_t>(1, length / 3) && 2 * distance < length;
}

struct Range {
  uint32_t first, last;
};
/// Control characters, line and paragraph separators, bidirectional formatting, annotations, and the default
/// ignorable code points (https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt).
constexpr Range kHidden[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

}  // namespace

Character characterAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1, true};
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + size > text.size()) return {first, 1, false};
  uint32_t code = first & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {first, 1, false};
    code = (code << 6) | (byte(at + i) & 0x3Fu);
  }
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[size] || code > 0x10FFFF || surrogate) return {first, 1, false};
  return {code, size, true};
}

bool isHidden(uint32_t code) {
  return std::any_of(std::begin(kHidden), std::end(kHidden),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
}

std::string escaped(uint32_t code) {
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

std::optional<std::string> Suggester::nearestName(std::string_view name,
                                                  const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  const std::string wanted = lower(name);
  std::optional<std::string> best;
  size_t bestDistance = kLongestName;
  for (const auto& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({name.size(), candidate.size()});
    const bool comparable = longer <= kLongestName && nearEnough(longer - shorter, longer);
    const size_t steps = comparable ? (name.size() + 1) * (candidate.size() + 1) : 1;
    steps_ -= std::min(steps, steps_);
    if (steps_ == 0) return std::nullopt;
    if (!comparable) continue;
    const size_t distance = editDistance(wanted, lower(candidate));
    if (distance >= bestDistance || !nearEnough(distance, longer)) continue;
    best = candidate;
    bestDistance = distance;
  }
  if (best) return best;
  // The plugin's name was left out: "gemm_throughput" for "compute.gemm_throughput".
  const std::string ending = "." + std::string(name);
  for (const auto& candidate : candidates)
    if (candidate.ends_with(ending)) return candidate;
  return std::nullopt;
}

std::string Suggester::didYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto nearest = nearestName(name, candidates);
  return nearest ? "; did you mean \"" + *nearest + "\"?" : "";
}

std::optional<std::string> nearestName(std::string_view name, const std::vector<std::string>& candidates) {
  return Suggester().nearestName(name, candidates);
}

std::string didYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  return Suggester().didYouMean(name, candidates);
}

std::string printable(std::string_view text, size_t limit) {
  const auto shown = [](uint32_t code) -> std::string {
    return code == '\n' ? "\\n" : code == '\t' ? "\\t" : code == '\r' ? "\\r" : escaped(code);
  };
  const auto plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (text.size() <= limit && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  constexpr std::string_view kCut = "...";
  std::string result;
  size_t lastFit = 0;  // where to cut so that the mark still fits
  for (size_t at = 0; at < text.size();) {
    const Character c = characterAt(text, at);
    const std::string piece = !c.valid           ? std::string(kReplacement)
                              : isHidden(c.code) ? shown(c.code)
                                                 : std::string(text.substr(at, c.size));
    if (result.size() + piece.size() > limit) {
      result.resize(lastFit);
      if (limit >= kCut.size()) result += kCut;
      return result;
    }
    result += piece;
    if (result.size() + kCut.size() <= limit) lastFit = result.size();
    at += c.size;
  }
  return result;
}

std::string reasonText(std::string_view text) {
  return printable(text, kLongestReason);
}

std::string validUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character c = characterAt(text, at);
    result += c.valid ? text.substr(at, c.size) : kReplacement;
    at += c.size;
  }
  return result;
}

bool isPlainName(std::string_view name) {
  if (name.empty() || name.size() > 64 || name[0] == '.' || name[0] == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

void keepOwnNames(std::vector<std::string>& names) {
  constexpr std::string_view kNumbered = "node-rank-";
  const auto shortName = [](const std::string& name) { return name.substr(0, name.find('.')); };
  std::map<std::string, int> nodes;
  for (const std::string& name : names) ++nodes[shortName(name)];
  for (size_t rank = 0; rank < names.size(); ++rank)
    if (std::string& name = names[rank];
        !isPlainName(name) || name.starts_with(kNumbered) || nodes[shortName(name)] > 1)
      name = fmt::format("{}{}", kNumbered, rank);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string quoted(std::string_view text, size_t most) {
  std::string words = printable(text, most);
  std::replace(words.begin(), words.end(), '"', '\'');
  return '"' + words + '"';
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0;;) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string lowerCase(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

std::string upperCase(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace muster
