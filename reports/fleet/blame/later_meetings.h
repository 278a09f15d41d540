// SPDX-License-Identifier: Apache-2.0
// Whether a node met others after a run, for instance after a repair: then its record of that run may be
// gone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/fleet/blame/roster.h"

namespace muster::fleet {

class RunTable;

class LaterMeetings {
 public:
  /// `runs`: with its entries; they and the others must outlive it.
  LaterMeetings(const RunTable& runs, const Roster& roster, const FleetNames& names);

  /// Whether one of its records that count is accepted.
  [[nodiscard]] bool isAccepted(const std::string& node) const { return accepted_.contains(node); }
  /// Whether it met others after that stage, in which they met it: by the records of others, or by its own
  /// where those whom it met were in that run, too, and have met others since.
  [[nodiscard]] bool hasOne(const std::string& node, const StageOfRun& before,
                            const Roster::Meeting& meeting) const;
  /// Whether it met others in another run than `before`, that ended after that time, as others tell who name
  /// it.
  [[nodiscard]] bool wasMetAfter(const std::string& node, double time, const std::string& before) const;

 private:
  struct Span {
    double first = 0, last = 0;  ///< seconds since 1970
  };
  /// When a run ended, as all but the node say: half of them not later, and half not earlier. A run that was
  /// resumed has begun long before.
  [[nodiscard]] Span endOf(const std::string& run, const std::string& node) const;

  const RunTable& runs_;
  const Roster& roster_;
  const FleetNames& names_;
  std::map<std::string, std::map<std::string, Span>> ends_;  ///< by run and node, of its records
  std::map<std::string, std::set<std::string>> runsOfNodes_;
  std::map<std::string, std::vector<const NodeSummary*>> accepted_;  ///< by node, of those that count
};

}  // namespace muster::fleet
