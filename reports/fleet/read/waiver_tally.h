// SPDX-License-Identifier: Apache-2.0
// The waivers of a fleet while one record is read: what they cover in it, counted for each of them.
#pragma once

#include <string_view>
#include <vector>

#include "reports/fleet/read/node_summary.h"
#include "runner/judge/waivers.h"

namespace muster::fleet {

/// Applies the waivers that a fleet was given to one record after another. A waiver is about one node or one
/// part, so for most records there is nothing to do.
class WaiverTally {
 public:
  explicit WaiverTally(const std::vector<Waiver>& given) : given_(given) {}

  /// Begins a record whose name and devices are known.
  void begin(const NodeSummary& node);
  void beginStage(std::string_view name, bool ran);
  /// Whether a waiver is about this stage of this node: only then settle() has to be asked.
  [[nodiscard]] bool concernsStage() const { return !inStage_.empty(); }
  /// Counts one verdict, as the record has it. The waiver that covers it if it is a failure, or nullptr.
  const Waiver* settle(Outcome recorded, const WaiverTarget& target);
  /// What was counted, of those waivers that are about this node.
  [[nodiscard]] const std::vector<WaiverCount>& counts() const { return counts_; }

 private:
  const std::vector<Waiver>& given_;
  std::vector<WaiverCount> counts_;
  std::vector<size_t> inStage_;  ///< indices into counts_
};

/// Counts one verdict for one waiver whose stage it is of. True: it covers this failure.
bool countFor(const Waiver& waiver, Outcome recorded, const WaiverTarget& target, WaiverCount& count);

/// How an outcome that was waived is told: "; fail, waived: card on order (approved by J. Doe, until
/// 2026-12-31)".
std::string waivedText(Outcome recorded, const Waiver& waiver);

}  // namespace muster::fleet
