// SPDX-License-Identifier: Apache-2.0
// Peers: the same measurement on the other ranks and devices of the group.
#pragma once

#include <map>
#include <string>

#include "runner/judge/check.h"

namespace muster {

/// Collects, once per metric and statistic, what every rank measured.
class PeerTable {
 public:
  explicit PeerTable(const EvidenceIndex& index);

  /// Valid figures of all measurements like `group`: same metric, case and labels apart from device, rank and
  /// peer; its own among them. Those that the expectation's `where` leaves out are no peers. Of more than
  /// three the median alone, three times.
  Peers of(const Expectation& expectation, const Group& group);

 private:
  const std::map<std::string, std::vector<double>>& valuesFor(const Expectation& expectation);
  [[nodiscard]] bool singleDevice(const std::string& caseId) const;

  const EvidenceIndex& index_;
  std::map<std::string, size_t> ranks_;  ///< of each case
  std::map<const Expectation*, std::map<std::string, std::vector<double>>> known_;
};

}  // namespace muster
