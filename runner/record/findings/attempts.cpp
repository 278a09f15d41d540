// SPDX-License-Identifier: Apache-2.0
// Names resumed runs and stages that were tried more than once.
#include "runner/record/findings/attempts.h"

#include <fmt/format.h>

#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"

namespace muster {
namespace {

constexpr size_t kMostStages = 3;

}  // namespace

std::string attemptsText(const Record& record) {
  std::vector<std::string> parts;
  if (record.resumed > 0) parts.push_back("resumed " + plural(static_cast<size_t>(record.resumed), "time"));
  size_t left = 0;
  for (const StageRecord& stage : record.stages) {
    if (stage.attempts < 2) continue;
    if (parts.size() >= kMostStages + 1)
      ++left;
    else
      parts.push_back(fmt::format("stage {} tried {} times", printable(stage.name, 40), stage.attempts));
  }
  if (left > 0) parts.push_back(fmt::format("{} tried again", plural(left, "further stage")));
  return join(parts, ", ");
}

}  // namespace muster
