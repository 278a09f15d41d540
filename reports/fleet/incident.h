// SPDX-License-Identifier: Apache-2.0
// Incidents: what is wrong with a fleet, one entry for each cause.
#pragma once

#include <string>
#include <vector>

namespace muster::fleet {

/// How urgent an incident is.
enum class Urgency {
  kA,  ///< wrong results, memory errors, or a part or node that is missing
  kB,  ///< a limit was missed, or something could not be measured
  kC,  ///< within its limits, but an outlier among its peers: does not block acceptance
};

/// What kind of part an incident is about, for the sentence about what is to be done.
enum class Repair { kGpu, kNode, kLink, kNetwork, kFleet, kAbsentNode, kRetest, kRecords, kNone };

struct Incident {
  Urgency urgency = Urgency::kC;
  int order = 0;                   ///< within and across urgencies: less is more urgent
  Repair repair = Repair::kNone;   ///< what it takes
  std::string kind;                ///< "device", "node", "record" ...
  std::vector<std::string> nodes;  ///< at most kMostNamed
  size_t nodeCount = 0;
  std::string part;                  ///< "gpu3", "link n2 - n3"; empty: the node itself
  std::string serial;                ///< of a device, where known
  std::string place;                 ///< of its nodes in the topology: "A05"
  std::string cause;                 ///< one line
  std::string limitSource;           ///< where the limit comes from that was missed
  std::string action;                ///< one sentence
  std::string command;               ///< that tests it again; empty: none does
  std::vector<std::string> beneath;  ///< what follows from it, a line each: at most kMostNamed
  size_t beneathLeft = 0;

  [[nodiscard]] bool blocks() const { return urgency != Urgency::kC; }
  [[nodiscard]] const char* urgencyName() const {
    return urgency == Urgency::kA ? "A" : urgency == Urgency::kB ? "B" : "C";
  }
};

}  // namespace muster::fleet
