// SPDX-License-Identifier: Apache-2.0
// The names of enumerations, as files and messages write them: converted where text is read and written,
// nowhere else.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "runner/core/text.h"

namespace muster {

/// An enumeration with names: `namesOf(E())`, beside it, gives them in the order of its values, from 0 on.
template <typename E>
concept Named = std::is_enum_v<E> && requires {
  namesOf(E());
};

template <Named E>
const char* nameOf(E value) {
  return namesOf(value)[static_cast<size_t>(value)];
}

template <Named E>
std::optional<E> fromName(std::string_view name) {
  const auto names = namesOf(E());
  for (size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<E>(i);
  return std::nullopt;
}

/// "\"fine\" is none of accepted, rejected": for a name that fromName() does not know.
template <Named E>
std::string noneOf(std::string_view name) {
  const auto names = namesOf(E());
  return "\"" + printable(name, 80) + "\" is none of " + join({names.begin(), names.end()}, ", ");
}

}  // namespace muster
