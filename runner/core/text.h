// SPDX-License-Identifier: Apache-2.0
// Small text helpers shared by diagnostics: nearest names, safe printing of hostile text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Suggests what unknown names may have been meant to be. All that one of these suggests takes less than a
/// second, so that a file of a thousand unknown names costs no more; then it suggests nothing.
class Suggester {
 public:
  /// The candidate nearest to `name` by edit distance (transpositions count one), if one is near enough to be
  /// meant.
  std::optional<std::string> nearestName(std::string_view name, const std::vector<std::string>& candidates);
  /// `; did you mean "x"?` or an empty text.
  std::string didYouMean(std::string_view name, const std::vector<std::string>& candidates);

 private:
  size_t steps_ = 50'000'000;  ///< of edit distances that are left
};

/// The same for one name alone.
std::optional<std::string> nearestName(std::string_view name, const std::vector<std::string>& candidates);
std::string didYouMean(std::string_view name, const std::vector<std::string>& candidates);

/// One character of UTF-8 text. size 1 and valid false for a byte that starts no valid character.
struct Character {
  uint32_t code = 0;
  size_t size = 1;
  bool valid = true;
};
Character characterAt(std::string_view text, size_t at);
/// Whether a character would move a terminal's cursor, turn the direction of the text around it, or be there
/// without being seen: then two names that look alike are not the same.
bool isHidden(uint32_t code);
/// What stands for a hidden character: "\x1b", "\u202e", "\U000e0041".
std::string escaped(uint32_t code);

/// `text` with hidden characters escaped and cut to `limit` bytes at a UTF-8 border, so it is safe on a
/// terminal.
std::string printable(std::string_view text, size_t limit = 400);

/// Why something failed, in the words of another process, as it is kept and passed on: at most kLongestReason
/// bytes, as a record repeats it for each case. What is longer is cut and ends with "...".
constexpr size_t kLongestReason = 1000;
std::string reasonText(std::string_view text);

/// `text` made valid UTF-8: every invalid byte becomes U+FFFD.
std::string validUtf8(std::string_view text);

/// Whether `name` is a plain name: letters, digits, '-', '_' and '.', not starting with '.' or '-', 1 to 64
/// long.
bool isPlainName(std::string_view name);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// Of nodes, by rank, who told them: calls those "node-rank-N" whose name is not plain, and would be read as
/// something else, or which another one has, at least up to its first dot, as hosts may call themselves by
/// their full names: one would be blamed for the other.
void keepOwnNames(std::vector<std::string>& names);

/// Words of somebody else in double quotes, of which they hold none themselves: what reads a text for what it
/// says of ranks and nodes leaves out what is quoted in it (reports/fleet/read/cause.h).
std::string quoted(std::string_view text, size_t most);

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
/// ASCII letters alone change.
std::string lowerCase(std::string text);
std::string upperCase(std::string text);
bool contains(const std::vector<std::string>& list, std::string_view item);

}  // namespace muster
