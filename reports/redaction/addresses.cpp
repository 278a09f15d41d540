// SPDX-License-Identifier: Apache-2.0
// Finds addresses by their form.
#include "reports/redaction/addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr std::string_view kHex = "0123456789abcdefABCDEF";
constexpr size_t kUuid = 36, kUuidDigits = 32;  ///< characters with dashes and without

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isHex(char c) {
  return kHex.find(c) != std::string_view::npos;
}
bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool isWord(char c) {
  return isDigit(c) || isLetter(c) || c == '_';
}

/// The character at `at`, or a blank outside of the text.
char charAt(const std::string& text, size_t at) {
  return at < text.size() ? text[at] : ' ';
}

/// Calls `take(begin, end)` for each longest stretch of these characters.
template <typename F>
void eachStretch(const std::string& text, std::string_view characters, F take) {
  for (size_t at = text.find_first_of(characters); at != std::string::npos;) {
    const size_t end = std::min(text.find_first_not_of(characters, at), text.size());
    take(at, end);
    at = text.find_first_of(characters, end);
  }
}

/// An address that could be anybody's: neither this machine's own nor one that means all.
bool isAddress4(const std::string& text) {
  unsigned char bytes[4];
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 && bytes[0] != 127 && bytes[0] != 0;
}

/// `marked`: in brackets, or with a zone. Else a short one must begin as those of machines do, with four
/// digits, or have groups enough: "c10::add" and the slice "1::2" are none.
bool isAddress6(const std::string& text, bool marked) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET6, text.c_str(), bytes) != 1) return false;
  const bool digits = std::any_of(text.begin(), text.end(), isDigit);
  const auto colons = std::count(text.begin(), text.end(), ':');
  const bool twoGroups = !text.starts_with("::") && (colons > 2 || !text.ends_with("::"));
  const bool shortened = text.find("::") != std::string::npos;
  return (marked && twoGroups) ||
         (digits && ((twoGroups && text.find(':') == 4) || (shortened && colons >= 3)));
}

/// Zeros alone, or ones: of nobody.
bool isUniform(std::string_view digits) {
  return std::all_of(digits.begin(), digits.end(), [&](char c) { return c == digits.front(); });
}

std::string hexOf(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), isHex);
  return lowerCase(digits);
}

/// Whether the text is groups of so many hexadecimal digits.
bool isGrouped(std::string_view text, size_t digits, char separator) {
  for (size_t i = 0; i < text.size(); ++i)
    if (i % (digits + 1) == digits ? text[i] != separator : !isHex(text[i])) return false;
  return text.size() % (digits + 1) == digits;
}

/// 6, 8 or 20 groups of two digits: of Ethernet, EUI-64 and InfiniBand. With dashes, digits alone are a date.
bool isHardwareAddress(std::string_view text, char separator) {
  return (text.size() == 17 || text.size() == 23 || text.size() == 59) && isGrouped(text, 2, separator) &&
         !isUniform(hexOf(text)) && (separator == ':' || std::any_of(text.begin(), text.end(), isLetter));
}

/// "0c42:a103:0012:3456", as the driver of InfiniBand writes it.
bool isGuid(std::string_view text) {
  return text.size() == 19 && isGrouped(text, 4, ':');
}

/// The groups of a stretch without those that go on as a word beyond it: "fe80::1" of "eth0:fe80::1:lost".
/// Nothing of a name of C++, such as "d::add1::" of "std::add1::run".
std::string_view wholeGroups(const std::string& text, size_t from, size_t to, char separator) {
  const std::string_view stretch = std::string_view(text).substr(0, to);
  size_t begin = from, end = to;
  if (from > 0 && isWord(text[from - 1])) {
    begin = std::min(stretch.find(separator, from), to);
    if (begin == to || charAt(text, ++begin) == separator) return {};
  }
  // Digits and dots at the end are an address of their own: ::ffff:10.0.0.1.
  const bool dotted = charAt(text, to) == '.' && isDigit(charAt(text, to + 1));
  if (dotted || isWord(charAt(text, to))) {
    const size_t last = stretch.substr(begin).rfind(separator);
    if (last == 0 || last == std::string::npos || (!dotted && text[begin + last - 1] == separator)) return {};
    end = begin + last;
  }
  std::string_view groups = std::string_view(text).substr(begin, end - begin);
  const std::string two(2, separator);
  if (groups.starts_with(separator) && !groups.starts_with(two)) groups.remove_prefix(1);
  if (groups.ends_with(separator) && !groups.ends_with(two)) groups.remove_suffix(1);
  return groups;
}

/// Whether brackets or a zone say that the stretch is an address: "[fd00::17]:29400", but not "x[1::2]".
bool isMarked(const std::string& text, size_t begin, size_t end) {
  if (charAt(text, end) == '%') return isWord(charAt(text, end + 1));
  return begin > 0 && text[begin - 1] == '[' && charAt(text, end) == ']' &&
         !(begin > 1 && (isWord(text[begin - 2]) || text[begin - 2] == ']'));
}

/// The address that the groups are, or hold before a port; empty: none.
std::string addressOf(const std::string& text, std::string_view groups) {
  const auto begin = static_cast<size_t>(groups.data() - text.data());
  std::string word(groups);
  if (isHardwareAddress(word, ':') || isAddress6(word, isMarked(text, begin, begin + word.size())))
    return word;
  word.resize(std::min(word.rfind(':'), word.size()));  // fd00::17:29400
  return isAddress6(word, false) ? word : "";
}

std::string separated(const std::string& digits, size_t size, const char* separator) {
  std::vector<std::string> groups;
  for (size_t at = 0; at < digits.size(); at += size) groups.push_back(digits.substr(at, size));
  return join(groups, separator);
}

/// "2754677a-c8c8-4539-d2c0-6a8297de39c6" of 32 digits.
std::string dashed(const std::string& digits) {
  return join({digits.substr(0, 8), digits.substr(8, 4), digits.substr(12, 4), digits.substr(16, 4),
               digits.substr(20)},
              "-");
}

}  // namespace

std::vector<std::string> addressesIn(const std::string& text) {
  std::vector<std::string> found;
  eachStretch(text, "0123456789.", [&](size_t begin, size_t end) {
    while (end > begin && text[end - 1] == '.') --end;
    const bool alone = (begin == 0 || !isLetter(text[begin - 1])) && !isLetter(charAt(text, end));
    if (std::string word = text.substr(begin, end - begin); alone && isAddress4(word))
      found.push_back(std::move(word));
  });
  eachStretch(text, "0123456789abcdefABCDEF:", [&](size_t begin, size_t end) {
    const std::string_view groups = wholeGroups(text, begin, end, ':');
    if (std::string word = groups.empty() ? "" : addressOf(text, groups); !word.empty())
      found.push_back(std::move(word));
  });
  eachStretch(text, "0123456789abcdefABCDEF-", [&](size_t begin, size_t end) {
    if (const auto groups = wholeGroups(text, begin, end, '-'); isHardwareAddress(groups, '-'))
      found.emplace_back(groups);
  });
  return found;
}

std::vector<std::string> otherWritings(const std::string& value) {
  std::vector<std::string> all;
  const std::string digits = hexOf(value);
  if (isUniform(digits)) return all;
  if (isHardwareAddress(value, ':') || isHardwareAddress(value, '-') || isGuid(value)) {
    all = {separated(digits, 2, ":"), separated(digits, 2, "-"), separated(digits, 4, "."),
           separated(digits, 4, ":"), digits};
  } else if (value.size() == kUuidDigits && digits.size() == kUuidDigits) {
    all = {dashed(digits)};
  } else if (value.size() >= kUuid) {
    const std::string bare = lowerCase(value.substr(value.size() - kUuid));
    const std::string own = hexOf(bare);
    if (own.size() == kUuidDigits && bare == dashed(own)) all = {bare, own};
  }
  all.erase(std::remove(all.begin(), all.end(), lowerCase(value)), all.end());
  return all;
}

}  // namespace muster
