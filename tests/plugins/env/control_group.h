// SPDX-License-Identifier: Apache-2.0
// A real control group with a CPU quota, for tests that run something inside it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::testing {

/// A fresh group of the cpu controller (version 1 or 2, what the machine has), removed when the object goes.
class ControlGroup {
 public:
  /// `percent` of one CPU.
  explicit ControlGroup(int percent);
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  /// False where this user or machine cannot make one; why() says what was missing.
  [[nodiscard]] bool usable() const { return why_.empty(); }
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// A command that runs what follows it inside the group.
  [[nodiscard]] std::vector<std::string> wrapper() const;

 private:
  std::filesystem::path folder_;
  std::string why_;
};

}  // namespace muster::testing
