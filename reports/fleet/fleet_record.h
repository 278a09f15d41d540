// SPDX-License-Identifier: Apache-2.0
// The fleet record: many nodes under one plan, each accounted for, and what stands out among them.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/fleet/fleet_delta.h"
#include "reports/fleet/incident.h"
#include "reports/fleet/key_figure.h"
#include "reports/fleet/read/record_stream.h"

namespace muster::fleet {

inline constexpr int kFleetSchema = 1;

/// A node that must have a record, and what the scheduler says of it.
struct ExpectedNode {
  std::string name;
  std::string down;  ///< why it could not be tested: "down: Not responding [slurm]"; empty: it could
  bool drained = false;
  std::string sku = {};  ///< that it must be; empty: the fleet's
};

/// Nodes that share a switch, a rack or a pod: a topology file's groups.
using Topology = std::map<std::string, std::vector<std::string>>;

/// What a SKU profile says of figures.
struct ProfileFigures {
  std::vector<Expectation> expectations;
  std::map<std::string, double> peaks;  ///< theoretical ones by name, base units
};

/// What the fleet is to be judged by.
struct FleetOptions {
  std::vector<ExpectedNode> expected;  ///< at least one
  std::string expectedFrom;            ///< "nodes.txt", "Slurm"
  std::string planSha256;              ///< of the plan that counts; empty: the one that most records hold
  std::map<std::string, std::string> planSkus;  ///< that plans name, by their digests; "auto" names none
  std::string fleetId;                 ///< of the run that counts; empty: the one that most records name
  std::set<std::string> clusterNodes;  ///< that took part in stages of scope cluster; empty: nobody said
  std::string resumeWith;  ///< the command that resumes all interrupted runs; empty: each has its own
  bool manyRuns = false;   ///< the records were put together from several runs on purpose
  std::map<std::string, ProfileFigures> profiles;  ///< by the digest of their text, as records name them
  std::vector<std::string> notes;                  ///< what could not be read of all that
  Topology topology;
  std::string topologyFrom;
  std::string waiversFrom;  ///< the file whose waivers the records were read under
  std::string waiversSha256;
  bool sameMachine = false;    ///< nodes may share a machine and its parts, as in tests and demos
  bool allowRejudged = false;  ///< records that `muster judge` judged again count
  std::map<std::string, std::string> pinnedProfiles;  ///< digests of the profiles that count, by their names
  bool rejectOutliers = false;  ///< a device or node named by its peers is rejected, not only suspected
  double at = 0;  ///< when it is judged: waivers that records hold must not have expired; seconds since 1970
};

/// The run whose records count.
struct FleetRun {
  std::string planName;
  std::string planSha256;
  std::vector<std::string> overrides;
  std::string fleetId;  ///< of the run over all nodes; empty: the records name none
  bool simulated = false;
};

/// One expected node.
struct FleetNode {
  std::string name;
  NodeState state = NodeState::kMissing;
  std::string reason;              ///< one line; empty when accepted
  std::vector<size_t> records;     ///< those that count, indices into FleetRecords::nodes
  std::vector<size_t> repeated{};  ///< those of the same stages that do not count
  std::string sku;                 ///< the profile, or the devices' model where none is known
  std::string expectedSku;         ///< that it must be; empty: nobody said, and the nodes are of no majority
  size_t devices = 0;
  Accounting accounting;   ///< of its own verdicts and its share of the groups' ones; nothing is deferred or
                           ///< elsewhere
  bool suspect = false;    ///< a suspect of the fleet names it
  bool endOfLink = false;  ///< one is a failed link of it, which the records of both its ends report
  bool failed = false;     ///< its own record is rejected, for whatever cause: the fleet is not accepted
  std::string claim;       ///< a finding about what records say of its identity, SKU or samples; empty: none
  std::string gap;         ///< why part of its run is not there; empty: all is
  /// Its worst rate or time as a share of the median of its like (1: as good, 0.5: half as good); NaN: it has
  /// none.
  double worstShare = std::numeric_limits<double>::quiet_NaN();
  /// Of its worst device, and that value as a share of the median of all devices (temperatures: above it).
  KeyValues keyValues = kNoKeyValues, keyShares = kNoKeyValues;
  std::string rack{};       ///< the smallest group of the topology that it is in; empty: none
  size_t slot = 0;          ///< its place in that group, from 1
  std::string worstFigure;  ///< "gpu3, gemm: compute.gemm_throughput (dtype=bf16)"
};

/// In the order expected. What a node's records say is settled first; later steps may only take it out of the
/// accepted ones, or find the part of another node at fault.
using FleetNodes = std::vector<FleetNode>;

/// Nodes, devices or records that one finding names.
inline constexpr size_t kMostNamed = 20;

/// A record that does not count, and why.
struct LeftOut {
  std::string path;
  std::string node;
  std::string acceptance;  ///< of a run without a record: running, interrupted
  std::string reason;      ///< one line
};

enum class FindingKind {
  kIdentity,  ///< one machine, part or run under several names
  kSku,       ///< a node of another SKU than expected
  kLimits,    ///< a node that was judged by other limits than those it is compared with
  kRejudged,  ///< a record that `muster judge` made
  kBinding,   ///< a record that speaks about nodes of which it has no say, or that others contradict
};
const char* findingKindName(FindingKind kind);

/// Why records are not what they must be, whatever was measured: their nodes are not accepted.
struct RecordFinding {
  FindingKind kind = FindingKind::kIdentity;
  std::vector<std::string> nodes;    ///< at most kMostNamed
  std::vector<std::string> records;  ///< their paths; at most kMostNamed
  std::string text;                  ///< one sentence that names them
  std::string next;                  ///< what to do
};

/// A cluster-scope stage in one group of nodes: its shared verdicts are counted once.
struct GroupStage {
  std::string stage;
  size_t records = 0;  ///< nodes whose records hold it
  size_t nodes = 0;    ///< nodes that the group had
  size_t ranks = 0;
  Outcome outcome = Outcome::kError;  ///< the worst of all its nodes
  std::string culprit;                ///< who ended it; empty: nobody
};

/// A fleet-relative expectation that was not met, or could not be judged.
struct DeferredMiss {
  std::string node;
  std::string device;
  uint32_t key = 0;  ///< in FleetNames::deferred
  Outcome outcome = Outcome::kFail;
  std::string detail;  ///< one line: "13.6us, expected at most ... (within 25% of the fleet median ...)"
};

/// What became of a fleet-relative expectation; deferred: it was not judged, as its record or stage does not
/// count.
struct DeferredOutcome {
  Outcome outcome = Outcome::kDeferred;
  double margin = std::numeric_limits<double>::quiet_NaN();  ///< share of the limit; negative: missed
};
/// By index into FleetRecords::nodes, then as in NodeSummary::deferred.
using DeferredOutcomes = std::vector<std::vector<DeferredOutcome>>;

/// An inventory fact in which nodes of like SKU differ.
struct FactDrift {
  std::string sku;
  std::string fact;
  bool ofDevices = false;  ///< counted by device, else by node
  std::string majority;    ///< its value; empty where no value has more than half
  size_t agree = 0;
  size_t total = 0;
  struct Odd {
    std::string value;  ///< "(none)" where the fact is absent
    size_t count = 0;
    std::vector<std::string> where;  ///< "node7", "node7 gpu3": at most kMostNamed
  };
  std::vector<Odd> odd;  ///< the rarest first
  std::string text;      ///< one sentence: what differs, on whom, what to do next
};
enum class SuspectKind { kGroup, kSwitch, kRail, kNode, kLink, kDevice };
const char* suspectKindName(SuspectKind kind);

/// How grave a finding is, the gravest first.
enum class FindingClass {
  kCorrectness,  ///< wrong results, ECC, XID, memory rows
  kMissing,      ///< a part or a node is lost or dead
  kLimit,        ///< a limit was missed
  kUnmeasured,   ///< something could not be measured or judged
  kOutlier,      ///< within its limits, but an outlier among its peers
};
const char* findingClassName(FindingClass grade);

/// Something that should be looked at, with what speaks against it.
struct Suspect {
  SuspectKind kind = SuspectKind::kDevice;
  std::string node;                   ///< empty for switches, rails and groups
  std::string what;                   ///< "gpu3", "gpu0-gpu3", "leaf1", "rail 3"; empty: the node itself
  std::string serial;                 ///< of a device, where known
  bool byPeers = false;               ///< the peers name it; else its own verdicts do
  std::vector<std::string> evidence;  ///< one line each, at most kMostEvidence; its own verdicts first
  std::string next;                   ///< what to do
  bool byBoth = false;                ///< the peers name it, and so do its own verdicts
  bool failed = false;                ///< a requirement was not met
  bool unmeasured = false;            ///< something could not be measured or judged
  FindingClass grade = FindingClass::kOutlier;
  std::vector<std::string>
      beneath{};                   ///< what follows from it or belongs to it, a line each: at most kMostNamed
  size_t beneathLeft = 0;          ///< lines beyond those
  std::set<std::string> stages{};  ///< whose results speak against it: where it failed, if it did
  bool located = false;            ///< by what ranks measured between them: a link, or an end of links
  bool ofPair = false;             ///< a link that a test of pairs reports: either end may be at fault
  bool endOfLinks = false;         ///< a node that links have in common which the test located as links
  std::set<std::string> partners{};   ///< of a node that links have in common, those at their other ends; of
                                      ///< a link, those that each say they are its other end
  std::set<std::string> reporters{};  ///< of a link, the nodes whose records name it
  std::set<std::string> confirmedEnds{};  ///< of links in common, the ends of those that both report
  bool contested = false;                 ///< only others name it: its node's own record does not
  std::set<std::string> members{};        ///< of a group that failed as a whole: its nodes
  bool wrongData = false;                 ///< what was received is wrong: no slowness elsewhere explains it
  std::string limitSource{};              ///< where the limit comes from that it misses; empty: not known

  /// "device n1 gpu3", "link n1 - n2, rail 0".
  [[nodiscard]] std::string name() const;
};
inline constexpr size_t kMostEvidence = 6;
inline constexpr size_t kMostSuspects = 5000;  ///< listed
inline constexpr size_t kMostQuarantined = 2000;

/// How one figure spreads over the devices of like SKU.
struct Distribution {
  uint32_t key = 0;  ///< in FleetNames::figures
  std::string name;  ///< for people
  std::string sku;
  std::string unit;
  Direction direction = Direction::kNone;
  size_t n = 0;
  double median = 0;
  double low = 0;  ///< least and greatest
  double high = 0;
  double q05 = 0;
  double q95 = 0;
  double spread = 0;         ///< 1.4826 x median absolute deviation
  std::vector<size_t> bins;  ///< counts in equal steps from low to high
};

/// A waiver that was in force in the fleet, and what became of it.
struct FleetWaiver {
  Waiver waiver;
  uint32_t number = 0;  ///< in FleetNames::waivers
  bool given = false;   ///< by the fleet's own file; else nodes ran under it
  WaiverState state = WaiverState::kUndecided;
  WaiverCount count;               ///< over all records that count
  std::vector<std::string> nodes;  ///< on which it covers something: at most kMostNamed
  std::string detail;              ///< one line for people
};

/// Everything about one fleet. Points into the records it was made from only by index.
struct Fleet : FleetRun {
  Acceptance acceptance = Acceptance::kIncomplete;
  int exitCode = 3;
  std::vector<std::string> reasons;
  std::string expectedFrom;
  std::string topologyFrom;
  double started = 0;  ///< of the first record that counts; seconds since 1970
  double finished = 0;
  FleetNodes nodes;
  std::array<size_t, kNodeStateCount> states{};
  Accounting accounting;
  std::vector<LeftOut> duplicates;
  std::vector<LeftOut> stale;
  std::vector<LeftOut> foreign;
  std::vector<LeftOut> withoutRecord;    ///< runs of this plan: interrupted, or still at work
  std::vector<Quarantined> quarantined;  ///< at most kMostQuarantined; a note counts the others
  std::vector<GroupStage> groups;
  size_t deferredCount = 0;
  std::vector<DeferredMiss> deferred;
  DeferredOutcomes deferredOutcomes;
  std::string waiversFrom;
  std::string waiversSha256;
  std::vector<FleetWaiver> waivers;  ///< those of the file in its order, then those of records
  size_t waiversUnmatched = 0;       ///< each is an error of the fleet
  std::vector<RecordFinding> findings;
  bool sameMachine = false;  ///< as the options say
  bool rejectOutliers = false;
  bool allowRejudged = false;  ///< as the options say
  size_t rejudged = 0;         ///< records that count and were judged again
  std::vector<FactDrift> drift;
  KeyFigures keyFigures;
  std::vector<Incident> incidents;  ///< the most urgent first: one for each cause
  std::vector<Suspect> suspects;
  size_t suspectsLeft = 0;  ///< those beyond kMostSuspects
  std::vector<Distribution> distributions;
  std::vector<std::string> notes;   ///< what could not be told, and why
  std::optional<FleetDelta> delta;  ///< when accepted by delta
  std::string recordsSha256;        ///< over the digests of all records that count, by node
};

/// Accounts for every expected node and looks for what stands out. An error for an empty or ambiguous
/// expectation (a node named twice), or when the accounting does not balance (kInternal).
Result<Fleet> assess(const FleetRecords& records, const FleetOptions& options);

/// The text of fleet.json: the same records and options give the same bytes.
std::string fleetText(const Fleet& fleet, const FleetRecords& records);

}  // namespace muster::fleet
