// SPDX-License-Identifier: Apache-2.0
// Collects the mistakes of one plan, so that all of them are told in one go.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runner/plan/plan.h"

namespace muster {

/// The mistakes found so far. Keeps the first kMost of them: a plan with more is told so in a last line.
class Diagnostics {
 public:
  static constexpr size_t kMost = 200;

  void error(SourcePosition at, Mistake mistake);
  void warning(SourcePosition at, Mistake mistake);
  /// Whether any further mistake would be left out: the moment to stop looking.
  [[nodiscard]] bool full() const { return found_.size() >= kMost; }
  [[nodiscard]] bool hasErrors() const;
  /// In file order: mistakes of the command line first, then by file, line and column.
  [[nodiscard]] std::vector<Diagnostic> sorted() const;

 private:
  void add(SourcePosition at, Mistake mistake, bool warning);

  std::vector<Diagnostic> found_;
  std::set<std::string> told_;
  bool more_ = false;
};

}  // namespace muster
