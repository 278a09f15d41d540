// SPDX-License-Identifier: Apache-2.0
// What nodes tell node 0 about their ranks, and how node 0 finds the culprit in it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/dispatch/supervisor.h"

namespace muster {

/// One rank as its node's runner sees it: from exits and /proc. What its plugin says counts only against
/// itself.
struct RankReport {
  int rank = 0;
  std::string device;
  std::string failure;  ///< "was killed by SIGKILL (Killed)"; empty: nothing known
  int signal = 0;       ///< that ended it; 0: none
  int64_t order = 0;    ///< of its failure among all failures of the group, from 1; 0: none
  char state = 0;       ///< R, S, D, T ... at the last look; 0: not known
  double stateFor = 0;  ///< seconds that it has been in it
  double active = -1;   ///< share of recent looks in which it was not asleep; negative: too few looks
  bool ended = false;   ///< its process is gone
  int casesEnded = 0;
  std::map<int, std::string> caseFailures;  ///< why runs failed on it that no other rank made fail
};

/// How a node leaves whose user ends the run.
constexpr const char* kInterrupted = "was interrupted by its user";

/// One node of a group, as node 0 knows it.
struct NodeReport {
  int node = 0;
  std::string name;     ///< "node 2 (n2)"
  bool silent = false;  ///< no heartbeat for too long
  bool mute = false;    ///< it sent heartbeats, but no answer: its runner hangs
  double silence = 0;   ///< seconds since the last one; negative: there never was one
  bool cutOff = false;  ///< it said that it lost node 0
  /// Seconds for which node 0 itself did not run when it last heard of this node, where that is long enough
  /// for the node to give node 0 up.
  double lostInStop = 0;
  std::string gone;                  ///< how it left: kInterrupted, or another text; empty: it did not
  int firstRank = 0, rankCount = 0;  ///< its own ones of the group
  std::vector<RankReport> ranks;

  /// What it says of its ranks; what it says of others does not count.
  void take(std::vector<RankReport> said);
};

/// Who is at fault.
struct Culprit {
  std::string text;     ///< in one line that is the same on all nodes; empty: nobody is known to be
  std::set<int> ranks;  ///< that are at fault themselves: the text may repeat what a library said of others
  bool isInterruption = false;  ///< of the run, by its user, and nothing else is known to have failed
};

Json toJson(const RankReport& report);
/// From another process. It names no rank and no node in the words that stand for the runner's own.
Result<RankReport> rankReportFromJson(const Json& json, const std::string& path);

/// Follows the statuses of a node's own ranks and makes reports of them.
class RankWatch {
 public:
  /// `now` in seconds of any one clock. Returns whether a rank began to fail since the last call.
  bool look(const std::vector<RankStatus>& statuses, double now);
  /// Gives the ranks that fail and have no place yet their place among the group's failures.
  void order(int64_t place);
  [[nodiscard]] const std::vector<RankReport>& reports() const { return reports_; }

 private:
  struct Track {
    char state = 0;
    double since = 0;
    std::vector<std::pair<double, bool>> looks;  ///< recent ones: when, and whether it was not asleep
  };
  std::map<int, Track> tracks_;
  std::vector<RankReport> reports_;
};

/// Who is known to be at fault by now: nodes that left come first (that takes their ranks along), then
/// failures (signals before exits that follow within the same moment), then nodes without a heartbeat.
Culprit knownCulprit(const std::vector<NodeReport>& nodes);

/// What is said when a node loses others after it was stopped itself for `seconds`.
std::string stoppedNode(const std::string& name, double seconds);

/// What is said when one of two nodes loses the other: each has only its own word for it, so neither is
/// named.
std::string lostEachOther(const std::string& how);

/// Who failed runs by themselves, of those that are left in `nodes`. Nobody where more than half of all ranks
/// did: then what they have in common is at fault.
Culprit failedByThemselves(const std::vector<NodeReport>& nodes);

/// The known culprit and those who failed by themselves: that another one died does not acquit them.
Culprit withOwnFailures(Culprit known, const std::vector<NodeReport>& nodes);

/// Whether a text of another node may be taken for the runner's words about a rank or a node.
bool namesParts(std::string_view text);

/// The same once the group's deadline has passed: also looks at process states and at who works while the
/// others wait. Its text is never empty: it says so when nobody can be blamed.
Culprit culpritAtDeadline(const std::vector<NodeReport>& nodes);

}  // namespace muster
