// SPDX-License-Identifier: Apache-2.0
// How text reaches standard output: the one place where `muster` prints what records, run folders, databases
// and other programs say.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <type_traits>

#include "runner/core/json.h"
#include "runner/core/text.h"

namespace muster {

/// What stands for a value in a printed line: of a text, no control character reaches the terminal.
template <typename T>
using Shown = std::conditional_t<std::is_convertible_v<const T&, std::string_view>, std::string, T>;

template <typename T>
Shown<T> shown(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return printable(value, std::string::npos);
  else
    return value;
}

/// Prints as fmt::print does; every text among `values` is taken for anybody's.
template <typename... T>
void printText(fmt::format_string<Shown<T>...> format, const T&... values) {
  fmt::print("{}", fmt::format(format, shown(values)...));
}

/// Prints JSON of ASCII alone, with a line break after it.
inline void printJson(const Json& value, int indent = -1) {
  fmt::print("{}\n", value.dump(indent, ' ', true, Json::error_handler_t::replace));
}

/// Prints text of many lines whose writer has escaped what is not his own.
inline void printLines(const std::string& text) {
  fmt::print("{}", text);
}

}  // namespace muster
