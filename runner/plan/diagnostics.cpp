// SPDX-License-Identifier: Apache-2.0
// See diagnostics.h; also how places and mistakes are written for people.
#include "runner/plan/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "runner/core/text.h"

namespace muster {

std::string SourcePosition::text() const {
  std::string place = printable(file);
  if (line > 0) place += fmt::format(":{}", line);
  if (line > 0 && column > 0) place += fmt::format(":{}", column);
  return place;
}

std::string Diagnostic::text() const {
  return fmt::format("{}: {}{}", at.text(), warning ? "warning: " : "", mistake.message);
}

void Diagnostics::error(SourcePosition at, Mistake mistake) {
  add(std::move(at), std::move(mistake), false);
}

void Diagnostics::warning(SourcePosition at, Mistake mistake) {
  add(std::move(at), std::move(mistake), true);
}

void Diagnostics::add(SourcePosition at, Mistake mistake, bool warning) {
  if (full()) {
    more_ = true;
    return;
  }
  Diagnostic diagnostic{std::move(at), std::move(mistake), warning};
  // A loop of a Lua plan makes the same mistake in each round.
  if (told_.insert(diagnostic.text()).second) found_.push_back(std::move(diagnostic));
}

bool Diagnostics::hasErrors() const {
  return std::any_of(found_.begin(), found_.end(), [](const Diagnostic& d) { return !d.warning; });
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> all = found_;
  std::stable_sort(all.begin(), all.end(), [](const Diagnostic& a, const Diagnostic& b) {
    const bool aPlaced = a.at.line > 0, bPlaced = b.at.line > 0;
    if (!aPlaced || !bPlaced || a.at.file == b.at.file)
      return std::tie(aPlaced, a.at.line, a.at.column) < std::tie(bPlaced, b.at.line, b.at.column);
    return a.at.file < b.at.file;
  });
  if (more_ || full())
    all.push_back(
        {{all.back().at.file, 0, 0}, fmt::format("stopped after {} errors; fix these first", kMost), false});
  return all;
}

}  // namespace muster
