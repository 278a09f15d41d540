// SPDX-License-Identifier: Apache-2.0
// One error in a file that a person wrote: a sentence for people, and its parts for programs.
#pragma once

#include <string>
#include <utility>

#include "runner/core/text.h"

namespace muster {

/// The parts are empty where the error has none.
struct Mistake {
  std::string message;     ///< the whole sentence; the parts are in it
  std::string found;       ///< the value as it stands in the file
  std::string required;    ///< which values are valid
  std::string suggestion;  ///< the valid name that was probably meant

  Mistake(std::string sentence) : message(std::move(sentence)) {}  // NOLINT(google-explicit-constructor)
  Mistake(const char* sentence) : message(sentence) {}             // NOLINT(google-explicit-constructor)

  /// "found 3; expected a text", with "; did you mean "x"?" if there is a suggestion.
  static Mistake value(std::string found, std::string required, std::string suggestion = "") {
    Mistake mistake("found " + found + "; expected " + required + hint(suggestion));
    mistake.found = std::move(found);
    mistake.required = std::move(required);
    mistake.suggestion = std::move(suggestion);
    return mistake;
  }
  /// `sentence` about a name that is not among `known`, and the nearest of these.
  static Mistake name(const std::string& sentence, std::string_view found,
                      const std::vector<std::string>& known) {
    std::string nearest = nearestName(found, known).value_or("");
    Mistake mistake(sentence + hint(nearest));
    mistake.found = printable(found, 80);
    mistake.suggestion = std::move(nearest);
    return mistake;
  }
  /// The same, with the list of `known` where none of them is near.
  static Mistake oneOf(const std::string& sentence, std::string_view found,
                       const std::vector<std::string>& known) {
    Mistake mistake = name(sentence, found, known);
    mistake.required = "one of " + join(known, ", ");
    return mistake.suggestion.empty() ? mistake.then("; expected " + mistake.required) : mistake;
  }
  /// A text that is none of `allowed`.
  static Mistake choice(const std::string& key, std::string_view found,
                        const std::vector<std::string>& allowed) {
    const std::string list = join(allowed, ", ");
    Mistake mistake =
        name("`" + key + "` must be one of " + list + ", found \"" + printable(found) + "\"", found, allowed);
    mistake.required = "one of " + list;
    return mistake;
  }
  /// The same about another location: "stage "gemm": message".
  [[nodiscard]] Mistake within(const std::string& prefix) const {
    Mistake longer = *this;
    longer.message = prefix + message;
    return longer;
  }
  /// With a further half sentence: "; it has gemm, best".
  [[nodiscard]] Mistake then(const std::string& more) const {
    Mistake longer = *this;
    longer.message += more;
    return longer;
  }

 private:
  static std::string hint(const std::string& suggestion) {
    return suggestion.empty() ? "" : "; did you mean \"" + suggestion + "\"?";
  }
};

}  // namespace muster
