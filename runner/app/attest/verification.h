// SPDX-License-Identifier: Apache-2.0
// What a verification found, check by check.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runner/core/json.h"

namespace muster {

/// In the order in which they are shown.
enum class VerifyCheck {
  kSignature,
  kFiles,
  kRecord,
  kVerdict,
  kLimits,
  kPromise,
  kAttempts,
  kReports,
  kFleet
};
constexpr std::array<const char*, 9> namesOf(VerifyCheck) {
  return {"signature", "files", "record", "verdict", "limits", "promise", "attempts", "reports", "fleet"};
}

class Verification {
 public:
  /// Something is not what it is said to be.
  void refute(VerifyCheck check, const std::string& line) { of(check).refuted.push_back(line); }
  /// Something could not be checked.
  void leaveOpen(VerifyCheck check, const std::string& line) { of(check).open.push_back(line); }
  /// What was confirmed, or is to be known.
  void tell(VerifyCheck check, const std::string& line) { of(check).told.push_back(line); }

  [[nodiscard]] bool isRefuted() const;
  [[nodiscard]] bool isOpen() const;
  /// What was refuted, a line each.
  [[nodiscard]] std::vector<std::string> refutations() const;
  /// A line for each finding, with the state of its check; bounded.
  [[nodiscard]] std::string text() const;
  /// All of them, by check: {"signature": {"refuted": [], "open": [], "confirmed": []}}.
  [[nodiscard]] Json json() const;
  /// Adds what another one found, from its json().
  Status add(const Json& checks);

 private:
  struct Lines {
    std::vector<std::string> refuted, open, told;
  };
  Lines& of(VerifyCheck check) { return lines_[static_cast<size_t>(check)]; }

  std::array<Lines, namesOf(VerifyCheck{}).size()> lines_;
};

}  // namespace muster
