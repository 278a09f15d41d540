// SPDX-License-Identifier: Apache-2.0
// What `muster check --json` prints: the result of validation as one JSON object.
#pragma once

#include <string>

#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/core/toml/toml_table.h"
#include "runner/plan/plan.h"

namespace muster {

/// One plan of the command line and what its validation found.
struct CheckedPlan {
  std::string name;  ///< as it was given
  PlanOutcome outcome;

  [[nodiscard]] size_t errors() const;
  [[nodiscard]] size_t cases() const;
  [[nodiscard]] bool valid() const { return outcome.plan.has_value() && errors() == 0; }
};

/// Collects plans and errors. The object has `valid`, `files` (one entry per plan), `errors` and `warnings`.
/// An error has `file`, `line`, `column` and `message`, and `found`, `required` and `suggestion` where the
/// error has them.
class CheckReport {
 public:
  void add(const CheckedPlan& plan);
  /// Of a profile.
  void add(const Complaint& complaint);
  /// An error that stopped the command: a plugin, an option, a file that cannot be read.
  void add(const Error& error);
  [[nodiscard]] Json json() const;

 private:
  Json files_ = Json::array();
  Json errors_ = Json::array();
  Json warnings_ = Json::array();
};

}  // namespace muster
