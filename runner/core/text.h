// SPDX-License-Identifier: Apache-2.0
// Small text helpers shared by diagnostics: nearest names, safe printing of hostile text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The candidate nearest to `name` by edit distance (transpositions count one), if one is near enough to be
/// meant.
std::optional<std::string> nearestName(std::string_view name, const std::vector<std::string>& candidates);

/// `; did you mean "x"?` or an empty text.
std::string didYouMean(std::string_view name, const std::vector<std::string>& candidates);

/// `text` with control characters escaped and cut to `limit` bytes at a UTF-8 border, so it is safe on a
/// terminal.
std::string printable(std::string_view text, size_t limit = 400);

/// `text` made valid UTF-8: every invalid byte becomes U+FFFD.
std::string validUtf8(std::string_view text);

/// Whether `name` is a plain name: letters, digits, '-', '_' and '.', not starting with '.' or '-', 1 to 64
/// long.
bool isPlainName(std::string_view name);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
/// ASCII letters alone change.
std::string lowerCase(std::string text);
std::string upperCase(std::string text);
bool contains(const std::vector<std::string>& list, std::string_view item);

}  // namespace muster
