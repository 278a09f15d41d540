// SPDX-License-Identifier: Apache-2.0
// Reads and checks the environment variables of a launcher.
#include "runner/launcher/launcher_variables.h"

#include <fmt/format.h>

#include <charconv>

#include "runner/core/text.h"

namespace muster {

std::string LauncherVariables::text(const std::string& name) const {
  const auto found = environment_.find(name);
  return found == environment_.end() ? "" : found->second;
}

Error LauncherVariables::wrong(const std::string& what) const {
  return {ErrorCode::kUsage, launcher_ + ": " + what, ""};
}

Result<int> LauncherVariables::number(const std::string& name, int least, int most) const {
  const std::string value = text(name);
  if (value.empty())
    return wrong(
        fmt::format("{} is not set; start muster by the launcher itself, or give --nnodes, --node-rank "
                    "and --rendezvous",
                    name));
  int number = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (failure != std::errc() || end != value.data() + value.size() || number < least || number > most)
    return wrong(
        fmt::format("{}={}, expected a whole number from {} to {}", name, printable(value, 60), least, most));
  return number;
}

Result<int> LauncherVariables::numberOr(const std::string& name, int least, int most, int otherwise) const {
  return has(name) ? number(name, least, most) : Result<int>(otherwise);
}

}  // namespace muster
