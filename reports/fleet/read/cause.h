// SPDX-License-Identifier: Apache-2.0
// Why a case ended in error, read from the runner's own words: which parts these name, and what ended them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/fleet/read/node_summary.h"

namespace muster::fleet {

/// How the metric ends that says where the first wrong result came from: "collective.collective_first_fault".
inline constexpr std::string_view kFirstFault = "first_fault";

/// Whose data was wrong, as the test says it: "…, from rank 6" gives "6", "from a rank that cannot be told"
/// an empty text. Nothing where the result is no group's.
std::optional<std::string> sourceRank(std::string_view firstFault);

struct CaseCause {
  Cause cause = Cause::kOwn;
  std::string source;  ///< of kPeer: the part of the text that names another part
};

/// Why a case or stage ended in error or was skipped. `named` is what its group's node 0 published, empty:
/// nothing; `stopped`: its rank is known to have been told to stop. What is quoted in them says nothing.
CaseCause caseCause(std::string_view whole, std::string_view named, bool stopped);

/// A rank or node that a text of the runner names.
struct Mention {
  int rank = -1;             ///< -1: the node itself
  std::string device;        ///< of the rank; may be empty
  int node = -1;             ///< its number in the group; -1: the reporter's own
  std::string host;          ///< of the node; empty: not said
  bool interrupted = false;  ///< a user or scheduler ended it: nobody's fault
};

/// Whether a stage was skipped since a node's own run had failed or was ended before it: then its record is
/// not accepted.
bool wasUnable(std::string_view reason);
/// Of them: since it was ended before the stage, by a user or scheduler.
bool wasStoppedBefore(std::string_view reason);

/// A text that may name parts, short enough to be kept, and cut where a name ends: the start of a number
/// would name another part.
std::string boundedCause(std::string_view text);

/// The parts that a source of kPeer holds to be faulty: "rank 3 (gpu3 of node 1 (n1)) was killed", "node 1
/// (n1) was lost". Empty: it names none, or only those that suffer from it.
std::vector<Mention> accusedBy(const std::string& whole);

}  // namespace muster::fleet
