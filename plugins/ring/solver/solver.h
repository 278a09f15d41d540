// SPDX-License-Identifier: Apache-2.0
// Schedule and solver: pure functions of what was measured so far, so that all ranks agree without talking.
#pragma once

#include <string>
#include <vector>

#include "plugins/ring/solver/lane_figures.h"
#include "plugins/ring/solver/round_log.h"

namespace muster::ring {

constexpr int kMostRounds =
    64;  ///< beside those of a tournament; a schedule ends here even where questions are open

/// The next round, given all that was measured: opening rounds first, then suspects against distinct healthy
/// partners that are idle, as many at once as there are; those left over wait for the next round. Empty:
/// done.
Round nextRound(const RoundLog& log);

/// The pairs to remeasure before the round just held ends: those of an opening round whose figures are
/// inconclusive. Empty: the round is over.
Round pairsToRemeasure(const RoundLog& log);

/// Once the rounds are over: what is measured again at a later time, because it is about to be reported as a
/// fault, and healthy pairs beside it; rounds right after each other. Empty: there is none, or it was
/// measured often enough.
std::vector<Round> nextVisit(const RoundLog& log);

/// Seconds between the rounds and visit `visit`, from 0; the pauses double, and the last visit is after
/// `whole`.
double visitTime(int visit, double whole);

struct Culprit {
  enum class Kind { kLink, kNode, kNodeRail, kRail, kLeafUplink, kUnattributable };
  Kind kind = Kind::kUnattributable;
  std::vector<int>
      nodes;  ///< link: two; node and (node, rail): one; unattributable: those that may be to blame
  int leaf = -1;
  std::string rail;  ///< rail, (node, rail), and a link that is slow on some rails only: "3" or "1,3"; else
                     ///< empty
  Quantity quantity = Quantity::kBandwidth;
  double loss = 0;        ///< share of the speed that is gone (latency: of 1/latency)
  double confidence = 0;  ///< probability that it is right: neither noise nor a transient; unattributable: 0
  /// Whether this may have another cause than a fault: it did not last, other processes may account for it,
  /// or the confidence is too low to reject anything for it. Then its pairs are neither good nor slow.
  bool undecided = false;
  std::vector<Pair> shownBy;  ///< pairs that are measured again at a later time; empty: any that it concerns
  std::string evidence;       ///< one sentence with node numbers in the form "#12"; see namedEvidence()
};
inline bool isNamed(const Culprit& culprit) {
  return culprit.kind != Culprit::Kind::kUnattributable;
}
const char* culpritKindName(Culprit::Kind kind);
/// Whether the culprit accounts for what the pair shows. A link needs both of its nodes, and so does an open
/// question about several; a rail is slow on all pairs alike, so it accounts for none.
bool slowsDown(const Culprit& culprit, const Pair& pair, const Topology& topology);

/// Everything that is to blame. A cause is named once, though it shows in several lanes. What was slow in the
/// rounds and not in the visits is unattributable and undecided: it is not located, and it is no pass.
std::vector<Culprit> solve(const RoundLog& log);

/// In a run whose noise may hide a loss (Resolution::blind), no smaller one rejects anything: undecided, with
/// a word in its evidence.
void doubtInNoise(const Resolution& resolution, std::vector<Culprit>& culprits);

}  // namespace muster::ring
