// SPDX-License-Identifier: Apache-2.0
// Environment variables of a launcher, read strictly. Internal to this folder.
#pragma once

#include <map>
#include <string>

#include "runner/core/result.h"

namespace muster {

constexpr int kMaxNodes = 65536;
constexpr int kMaxProcesses = 1 << 24;

using Environment = std::map<std::string, std::string>;

/// The variables that one launcher sets. Empty values count as absent.
class LauncherVariables {
 public:
  LauncherVariables(const Environment& environment, std::string launcher)
      : environment_(environment), launcher_(std::move(launcher)) {}

  [[nodiscard]] bool has(const std::string& name) const { return !text(name).empty(); }
  [[nodiscard]] std::string text(const std::string& name) const;
  /// A whole number from `least` to `most`; kUsage when it is missing or anything else.
  Result<int> number(const std::string& name, int least, int most) const;
  /// The same, or `otherwise` where the variable is missing.
  Result<int> numberOr(const std::string& name, int least, int most, int otherwise) const;
  /// kUsage: "Slurm: <what>".
  [[nodiscard]] Error wrong(const std::string& what) const;

 private:
  const Environment& environment_;
  std::string launcher_;
};

}  // namespace muster
