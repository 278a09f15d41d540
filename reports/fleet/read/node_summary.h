// SPDX-License-Identifier: Apache-2.0
// What a fleet keeps of one node's record: small enough that ten thousand fit into memory at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/fleet/read/name_table.h"
#include "runner/metrics/states.h"
#include "runner/metrics/verdict.h"

namespace muster::fleet {

/// One device as the inventory names it. A replaced one is told by its serial or UUID.
struct DeviceIdentity {
  std::string id;    ///< "gpu3", unique inside the node
  std::string kind;  ///< "gpu", "cpu"
  std::string name;  ///< model
  std::string uuid;
  std::string serial;
  std::string pciAddress;
};

/// One inventory fact, flattened: "host.kernel" = "6.8.0", "software.nccl" = "2.28", of a device "vbios" =
/// "96.00.74". Names and values are ids in FleetNames::texts.
struct Fact {
  int16_t device = -1;  ///< index into NodeSummary::devices; -1: of the node
  uint32_t name = 0;
  uint32_t value = 0;
};

/// All samples of one measurement on one device: those of every repeat of the last attempt.
struct Figure {
  uint32_t key = 0;     ///< in FleetNames::figures: stage, case, metric, unit, labels
  int16_t device = -1;  ///< index into NodeSummary::devices; -1: of the node
  uint16_t n = 0;       ///< samples, at most 65535 are counted
  float median = 0;     ///< base unit; finite
  float cv = 0;         ///< sample standard deviation / |mean|; 0 for n = 1, and without keepSpreads()
  /// What limits are compared with: the median, or where a drop over time fails a node the level of its worst
  /// stretch if that is worse; without keepSpreads() the median.
  float compared = 0;
};

/// A requirement by which a stage was judged: what it is about, and its limit. Ids in FleetNames::texts.
struct LimitSummary {
  uint32_t about = 0;  ///< metric, labels, kind and unit
  uint32_t limit = 0;  ///< limit, tolerance, severity and what else decides
};

/// A node of a run as another one took it down when they met.
struct NodeAround {
  int number = 0;
  uint32_t node = 0;  ///< its name in FleetNames::texts
  int firstRank = 0;
  int ranks = 0;  ///< 0: it was idle
};

/// How one stage of the plan ended on this node.
struct StageSummary {
  uint32_t name = 0;  ///< in FleetNames::texts
  Scope scope = Scope::kDevice;
  StageState state = StageState::kRan;
  std::string reason;  ///< of a state other than ran; boundedCause()
  Outcome outcome = Outcome::kError;
  bool required = true;
  Accounting accounting;  ///< of this stage's verdicts, as they stand in the record
  Accounting shared;      ///< of those, the ones about no device or rank: all nodes of a group hold the same
  int worldSize = 0;      ///< cluster scope: ranks of the group; 0 elsewhere
  int groupNodes = 0;     ///< cluster scope: nodes of the group
  uint32_t groupId =
      0;  ///< cluster scope: the same of all nodes that met, in FleetNames::texts; of an empty text: not told
  std::vector<NodeAround> around;  ///< cluster scope: who met, this node and those around it; empty: not told
  std::string culprit;             ///< cluster scope: who ended it; empty: nobody
  bool unmeasured = false;         ///< an optional one, in each of whose own cases something was skipped
  /// Node and cluster scope: this node's ranks by their number in the group, each with its index into
  /// NodeSummary::devices (-1: it has no device).
  std::vector<std::pair<int32_t, int16_t>> ranks;
  uint32_t plugin = 0;   ///< "compute", in FleetNames::texts
  uint32_t library = 0;  ///< version and digest of its library, in FleetNames::texts; empty text: none ran
  uint32_t program = 0;  ///< the operator's programs that it ran, with their digests; empty text: none
  std::vector<LimitSummary> limits;  ///< in the order of the record
};

/// What a failure follows from, as far as its own record tells.
enum class Cause : uint8_t {
  kOwn,      ///< the part that reports it
  kStopped,  ///< it was told to stop, by a user or a scheduler: nobody's fault
  kPeer,     ///< another part of its group ended it: `source` says which, in the runner's words
  kRank,     ///< data of one rank of its group is wrong: `source` is its number; empty: it cannot be told
  kGroup,    ///< a result of the whole group, which one rank reports for all
  kNeed,     ///< a stage that it needs did not pass
};

/// One verdict that a reader must see: fail, error, flaky, a required skip, unjudged under --strict, warn,
/// waived. At most kMostDeviations of a record are kept, those that block first, then the worst; and of those
/// that may be another node's fault kMostOfOthers. Those that follow from the same cause outside of the part
/// that reports them are one.
struct DeviationSummary {
  Outcome outcome = Outcome::kError;
  uint32_t stage = 0;   ///< in FleetNames::texts
  uint32_t metric = 0;  ///< in FleetNames::texts; of an empty text where the verdict is about a case or stage
  std::string device;
  std::string labels;  ///< "dtype=bf16"
  std::string detail;  ///< one line for people, at most 300 bytes
  std::string remedy;  ///< at most 300 bytes
  double margin = 0;   ///< share of the limit; negative: missed; NaN when it has no meaning
  Cause cause = Cause::kOwn;
  std::string source{};       ///< see Cause; boundedCause()
  uint32_t times = 1;         ///< verdicts that are this one
  bool blocks = false;        ///< no warning, not waived, not flaky where that is allowed
  bool ofOthers = false;      ///< it blocks, and another node or stage may be its cause
  std::string limitSource{};  ///< where its limit comes from; at most 300 bytes
};

/// A fleet-relative expectation on one measurement, to be judged beside the other nodes' ones of equal `key`.
struct DeferredSummary {
  uint32_t key = 0;  ///< in FleetNames::deferred: stage, case, metric, labels, expectation
  std::string device;
  double observed = 0;  ///< the statistic to compare; base unit
};

/// What one record says of a waiver. Those that are about other nodes are only named.
struct WaiverCount {
  uint32_t waiver = 0;     ///< in FleetNames::waivers
  bool concerns = false;   ///< it is about this node or one of its parts
  bool ran = false;        ///< its stage ran here
  bool sawMetric = false;  ///< its stage judged the metric that it names
  bool sawDevice = false;  ///< ... and the device
  uint32_t matched = 0;    ///< verdicts that it names
  uint32_t covered = 0;    ///< of those, the failures
  uint32_t passed = 0;     ///< of those, the ones that were met
  uint32_t errors = 0;     ///< what could not be measured where it applies
};

/// What tells a machine from all others, as its inventory has it; empty: not known there.
struct MachineIds {
  std::string machineId;  ///< digest of /etc/machine-id; machines installed from one image may share it
  std::string boardSerial;
  std::string productSerial;
  std::string productUuid;
  std::string bmcGuid;
};

/// How a record was judged again after its run.
struct RejudgedSummary {
  std::vector<std::string> from;  ///< digests of the records it was judged from, the oldest first
  double at = 0;                  ///< the last time; seconds since 1970
  std::string buildId;            ///< of the Muster that did it last
  std::string profileSha256;      ///< of the profile that was given last; empty: none
};

/// One node's record, read and checked. Everything that is a list of many is bounded, or small per entry.
struct NodeSummary {
  std::string path;    ///< of the record, relative to the folder that was read
  std::string sha256;  ///< of the record's bytes
  std::string node;    ///< host name; a plain name
  std::string jobId;   ///< of the Slurm job that it says it ran in; empty: in none
  std::string runId;
  std::string fleetId;  ///< of the run over many nodes that it belongs to; empty: it names none
  int nodeRank = 0;
  int nodeCount = 1;
  double started = 0;  ///< seconds since 1970
  double finished = 0;
  std::string bootId;
  MachineIds machine;
  std::string toolVersion;
  std::string buildId;
  uint32_t binaries = 0;  ///< lines "file sha256" in FleetNames::texts; empty text: not told
  std::string planName;
  std::string planSha256;
  std::vector<std::string> overrides;  ///< the --set arguments
  std::string profileName;             ///< empty: unknown SKU
  std::string profileSha256;
  std::string backend;
  bool simulated = false;
  std::string scenario;
  std::string partial;  ///< what of its plan alone it ran (--only, --device); empty: all of it
  bool strict = false;
  bool allowUnknownSku = false;
  bool flakyAllowed = true;   ///< every flaky verdict's stage allows it
  uint64_t allowedFlaky = 0;  ///< flaky verdicts of `accounting` whose stages allow them
  int resumed = 0;
  std::optional<RejudgedSummary> rejudged;  ///< nothing: the verdicts are those of the run itself
  /// Its evidence asks for more than it holds, or its inventory is not what it measured: it is to be judged
  /// again before it counts.
  bool doubtful = false;
  std::string redactedFrom;  ///< digest of the record that `muster redact` made it from; empty: the original
  /// Of all measurements, with the key of this process; equal for a record and its re-judgement.
  uint64_t samplesHash = 0;
  Acceptance acceptance = Acceptance::kIncomplete;
  int exitCode = 3;
  std::vector<std::string> reasons;  ///< at most 8
  Accounting accounting;             ///< agrees with the verdicts, those that the fleet waives moved
  std::vector<DeviceIdentity> devices;
  std::vector<Fact> facts;
  std::vector<StageSummary> stages;
  std::vector<DeviationSummary> deviations;
  size_t deviationsLeft = 0;  ///< those beyond the bounds
  std::vector<DeferredSummary> deferred;
  std::vector<WaiverCount> waivers;  ///< those the fleet was given, then the record's own others
  std::vector<Figure> figures;  ///< of metrics with a unit that can be compared: no counts, flags or texts
};

inline constexpr size_t kMostDeviations = 24;
/// All of them, since each that is not kept would count against the node. Node 0 of a ring reports all links.
inline constexpr size_t kMostOfOthers = 1'000;

/// Each expected node is in exactly one of these.
enum class NodeState {
  kRejected,
  kIncomplete,
  kAffected,  ///< it fails only by findings that name another part, or is one end of a link that fails
  kMissing,
  kQuarantined,  ///< its only record could not be used
  kStale,        ///< its only record is of another plan
  kDown,         ///< it has no record, and the scheduler says why
  kDrained,
  kAccepted,
};
inline constexpr int kNodeStateCount = 9;
constexpr std::array<const char*, kNodeStateCount> namesOf(NodeState) {
  return {"rejected", "incomplete", "affected", "missing", "quarantined",
          "stale",    "down",       "drained",  "accepted"};
}

/// A file that was left out, and why: torn, too large, another schema, hostile names, another run.
struct Quarantined {
  std::string path;    ///< relative to the folder that was read
  std::string node;    ///< the node that it lies with or the name it gives itself; empty: neither is known
  std::string reason;  ///< one line
  bool torn =
      false;  ///< no JSON, nor had it to show a MAC: whatever run of the node it was, its result is lost
};

}  // namespace muster::fleet
