// SPDX-License-Identifier: Apache-2.0
// The judge: measurements x expectations -> verdicts. Pure: no I/O, no clock, no randomness.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runner/metrics/expectation.h"
#include "runner/metrics/measurement.h"
#include "runner/metrics/states.h"
#include "runner/metrics/verdict.h"

namespace muster {

/// How one case ended on one rank in one attempt.
struct CaseEnd {
  std::string caseId;
  int rank = 0;
  std::string device;
  int attempt = 1;
  enum class State { kOk, kError, kUnsupported } state = State::kOk;
  std::string message;  ///< why it ended in error, or what the machine lacks
  std::string remedy;
  /// What an error comes from: the rank itself, another member of its group, or the end of the whole run by
  /// its user. Only the first says anything about the device.
  enum class Cause { kOwn, kGroup, kCancelled } cause = Cause::kOwn;
  double begun = 0;  ///< on the runner's clock; 0: never, or not known (not part of a record)
  double ended = 0;
};
constexpr std::array<const char*, 3> namesOf(CaseEnd::State) {
  return {"ok", "error", "unsupported"};
}

/// CPU time that one case lacked because others had it: processes outside of this run, other virtual
/// machines, or nobody (a CPU quota). Shares of the time that its processors could have given.
struct ExternalLoad {
  std::string caseId;
  int attempt = 1;
  double median = 0;  ///< over the time of the case
  double mean = 0;
  double peak = 0;
  std::string by;  ///< "stress-ng(123), other virtual machines"
};

/// Everything the judge needs of one stage.
struct StageEvidence {
  std::string stage;
  StageState state = StageState::kRan;
  std::string reason;  ///< why it was skipped, left elsewhere, or could not start
  bool required = true;
  bool allowFlaky = false;
  /// --device left out a part of the node's devices: limits relative to others cannot be judged.
  bool peersMissing = false;
  std::vector<CaseEnd>
      ends;  ///< one for each case x rank x attempt that was to run; expected, also when it never ran
  /// The component that the stage's group names as faulty; empty: none. Such a stage never passes.
  std::string faulty;
  std::vector<Measurement> measurements;
  std::vector<Expectation>
      expectations;  ///< plan, profile and standing ones; each applies to the cases that declare its metric
  std::map<std::string, std::set<std::string>> caseMetrics;  ///< case id -> qualified metrics it may report
  /// Those that rank 0 alone reports, for its whole group: no other rank lacks them.
  std::set<std::string> leaderMetrics;
  /// Metric -> its labels that say what was found: another attempt may have found something else, or nothing.
  std::map<std::string, std::set<std::string>> findingLabels;
  std::vector<ExternalLoad> externalLoad;  ///< of cases on the host backend; see external_load.h
  /// case id -> labels known beforehand (its scalar parameters as text). An expectation whose `where`
  /// contradicts them does not apply to that case; one that no case can meet is an error if it is the plan's
  /// and left out otherwise.
  std::map<std::string, Labels> caseLabels;
  /// One of a sweep over the number of nodes: what is expected of another size of group is the other stages'.
  bool sweep = false;
  /// Then how many ranks this group and the smaller ones have; empty where nodes have different numbers of
  /// them.
  std::set<int> groupRanks;
};

/// What verdicts rest on besides the stage itself.
struct JudgeContext {
  std::map<std::string, double>
      peaks;              ///< theoretical peaks: the profile's, or the device's own where the SKU is unknown
  std::string peaksFrom;  ///< "profile h100-sxm5-80gb" or "device properties (unknown SKU)"
  /// Answers of Lua predicates: predicate source -> one entry per measurement of that stage, in order.
  std::map<std::string, std::vector<std::pair<bool, std::string>>> predicateAnswers;
  /// Measurements that a predicate failed on (it raised an error, or returned no boolean): predicate source
  /// -> index of the measurement -> why. A verdict that rests on one of them is an error.
  std::map<std::string, std::map<size_t, std::string>> predicateErrors;
  bool peersAreDeferred = true;  ///< fleet-relative expectations become deferred (a node's record)
};

struct StageJudgement {
  std::vector<Verdict> verdicts;
  Accounting accounting;
};

/// Judges one stage. Rules that make it fail closed:
/// - each (expectation, case, rank or device) without a measurement is an error, once its case was to report
/// the metric;
/// - NaN, infinity, negative durations and rates, zero samples, a wrong unit: error;
/// - a plan's expectation whose metric no case of the stage declares is an error; a profile's one does not
/// apply;
/// - a case that ended in error gives one error verdict, its missing measurements none; where another member
/// of the group or the end of the run ended it, one for the case, which is about no device;
/// - a stage whose group names a faulty component has an error at least;
/// - attempts: the last one counts; an earlier fail and a last pass is flaky, every attempt is kept.
/// What was found in an earlier attempt and not in the last one, which looked at the same, has passed there.
/// A fail that was being tried again when the run was interrupted is an error where the stage allows flaky
/// results.
/// A miss that external load explains (external_load.h) is an error, and so is the miss of a built-in
/// limit on the conditions of a measurement (origin "condition"): neither says anything about the machine,
/// nor makes it flaky. A profile's limit whose labels name a value that a case chose itself (the size of a
/// message) applies where that value was measured; the metric as such must not be missing. `within` needs at
/// least two peers in the node, else the verdict is an error that says so, unless the group has a single
/// device by inventory, which gives `skipped` (not required), as do peers that a partial run left out.
StageJudgement judgeStage(const StageEvidence& evidence, const JudgeContext& context);

struct Decision {
  Acceptance acceptance = Acceptance::kIncomplete;
  int exitCode = 3;
  std::vector<std::string> reasons;  ///< "2 expectations failed", "1 required stage was skipped"
};

struct DecisionInput {
  Accounting accounting;
  bool strict = false;
  bool interrupted = false;
  bool unknownSku = false;
  bool allowUnknownSku = false;
  bool noGpuSkip = false;     ///< no device was found and --no-gpu=skip was given
  bool flakyAllowed = false;  ///< every flaky verdict's stage allows it
  bool onlyIdle = false;      ///< the node was idle in every stage of the plan
  /// What of the plan alone was run, as a reason; empty: all of it. Stands for one required skip
  /// (kSelectionStage), which blocks acceptance also where nobody fills this in.
  std::string partial;
};

/// The node's outcome and exit code, as DESIGN section 6 orders them, but that an interrupted run in which
/// something had failed is rejected: run again from its beginning, it could be accepted. Nothing judged at
/// all is incomplete. A partial run is never accepted: at best it is partial (exit 3). An accounting that
/// does not balance is an internal fault (exit 4).
Decision decide(const DecisionInput& input);

/// Whether a decision is about an interrupted run.
bool wasInterrupted(Acceptance acceptance, const std::vector<std::string>& reasons);

}  // namespace muster
