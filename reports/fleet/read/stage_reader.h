// SPDX-License-Identifier: Apache-2.0
// One stage of a record -> what the fleet keeps of it: figures, deviations, deferred expectations, counts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "reports/fleet/read/cause.h"
#include "reports/fleet/read/columnar_reader.h"
#include "reports/fleet/read/dom_fields.h"
#include "reports/fleet/read/flat_map.h"
#include "reports/fleet/read/label_list.h"
#include "reports/fleet/read/record_stream.h"
#include "reports/fleet/read/waiver_tally.h"
#include "runner/core/keyed_hash.h"
#include "runner/record/verdict_check.h"

namespace muster::fleet {

/// What is sampled beside a stage, on its first rank.
inline constexpr std::string_view kTelemetryCase = "telemetry";

/// Reads the stages of one record after another into its summary. Keeps buffers and known keys between
/// records.
class StageReader {
 public:
  StageReader(FleetNames& names, const ReadLimits& limits, Failures& failures)
      : names_(names), limits_(limits), failures_(failures), waivers_(names.givenWaivers) {}

  /// Figures have their spread and what limits are compared with, too, which takes time.
  void keepSpreads() { spreads_ = true; }

  /// Begins a record; `node` must outlive its stages.
  void begin(NodeSummary& node);
  /// The waivers that the record itself names as having covered something. Call it before its stages.
  void noteWaivers(const dom::object& record);
  /// Reads one stage. `accepted`: the record says so, which figures that are no numbers contradict.
  void read(const dom::object& stage, bool accepted);
  /// Counts of all verdicts so far, as the record has them.
  [[nodiscard]] const Accounting& counted() const { return counted_; }
  /// Whether every flaky verdict's stage allows it.
  [[nodiscard]] bool flakyAllowed() const { return flakyAllowed_; }
  /// Whether the inventory's devices are those that Muster's own stage measured.
  [[nodiscard]] bool measuredDevices() const { return !toldOtherwise_ && told_.size() == 1 + 2 * listed_; }
  /// Puts the deviations in order and drops those beyond the bounds.
  void finish();

  /// The number of `text`; does not ask the shared table twice.
  uint32_t text(std::string_view text);

 private:
  template <typename V>
  using TextMap = std::unordered_map<std::string, V, KeyedHash, std::equal_to<>>;
  /// A measurement while its repeats are gathered.
  struct Slot {
    uint32_t key = 0;
    int16_t device = -1;
    int attempt = 1;
    bool finite = true;
    Series series = Series::kNone;  ///< with keepSpreads(), where a drop over time fails the node
    Direction direction = Direction::kNone;
    double window = 0;
    std::vector<double> samples;
  };
  /// What a test says of the first wrong result of a group: the rank that it came from, empty where it cannot
  /// be told.
  struct FirstFault {
    std::string device;
    std::string caseId;
    std::string stem;  ///< of the metrics that it belongs to: "collective.collective_"
    std::string rank;
  };
  struct MetricFacts {
    Direction direction = Direction::kNone;
    std::string unit;
  };
  struct Parts;  ///< one measurement's fields
  /// Of one verdict what every verdict is asked for; views into the record.
  struct VerdictFields {
    std::string_view outcomeName, metric, caseId, device;
    bool required = true;
    bool deviceLabel = true;  ///< the device is a label too, which is left out
    int64_t rank = -1;        ///< below 0: of no rank
    bool hasExpectation = false;
    dom::element expectation;  ///< its index, or itself
    bool hasObserved = false;
    double observed = std::numeric_limits<double>::quiet_NaN();
    double limit = std::numeric_limits<double>::quiet_NaN();
    double margin = std::numeric_limits<double>::quiet_NaN();
    LabelList labels;
    bool labelled = true;  ///< the labels could be read
    Outcome outcome = Outcome::kError;

    void read(std::string_view key, const dom::element& value);
  };
  /// What an expectation asks for, read once for all verdicts that point at it.
  struct Claim {
    dom::element expectation;
    bool known = false;  ///< its kind is one
    VerdictClaim claim;
  };
  /// One of the stage's expectations, and on how many measurements it must have a verdict and has one.
  struct Asked {
    dom::element expectation;
    std::string text;  ///< of the expectation, once it was asked for
    std::string_view metric, kind;
    LabelList where;
    bool counts =
        false;  ///< of two equal ones the first has the verdicts of both; drops are not always judged
    size_t due = 0;
    size_t judged = 0;
  };
  /// The least and the greatest sample of one measurement.
  struct Span {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
  };

  /// Outcome of the stage, which a waiver may have changed.
  void settleStage(StageSummary& summary);
  void readLimits(const dom::object& stage, const dom::array* expectations, StageSummary& summary);
  void readGroup(const dom::object& stage, StageSummary& summary);
  void readAround(const dom::array& around, StageSummary& summary);
  void readRanks(const dom::array& ranks, StageSummary& summary);
  void readLeaderMetrics(const dom::object& evidence);
  void readCancelledCases(const dom::object& evidence);
  /// Keeps what a test says of the first wrong result: which rank it came from, if any.
  void noteFirstFault(const Parts& parts);
  void readMeasurements(const dom::array& measurements, bool accepted);
  void readMeasurementGroup(const dom::object& group, bool accepted);
  void addMeasurement(Parts& parts, bool accepted);
  void noteMetric(Parts& parts);
  void addSamples(Parts& parts, bool accepted);
  void hashMeasurement(Parts& parts);
  bool unpack(Parts& parts);
  void scale(const Parts& parts);
  static bool readSamples(const dom::element& samples, std::vector<double>& out);
  uint32_t figureKey(const Parts& parts);
  uint32_t numberOfFigure(const Parts& parts, std::string key);
  Slot& slotOf(uint32_t key, int16_t device);
  void finishFigures();
  void readVerdicts(const dom::array& verdicts, const dom::array& expectations, StageSummary& summary);
  void readClaims(const dom::array& expectations);
  void readVerdict(const ColumnarReader& verdict, VerdictFields& fields, StageSummary& summary);
  void addDeviation(const ColumnarReader& verdict, const dom::element& expectation, bool hasExpectation,
                    Outcome outcome, const std::string& waived);
  void cutDeviations();
  /// Whether the stage's ranks work together.
  [[nodiscard]] bool ofGroup() const { return scope_ != Scope::kDevice; }
  /// What a failure follows from where that is not the part which reports it.
  void findCause(const ColumnarReader& verdict, DeviationSummary& deviation);
  /// Why the verdict cannot have its outcome; empty: it can.
  std::string contradictionOf(const VerdictFields& verdict, const Claim& asked, StageState state);
  const Waiver* coveringWaiver(const ColumnarReader& verdict, Outcome recorded);
  void addDeferred(const ColumnarReader& verdict, const VerdictFields& fields,
                   const dom::element& expectation);
  /// Notes what the stage's expectations are about, before its measurements are read.
  void readExpectations(const dom::object& evidence);
  void readAsked(const dom::array& expectations);
  /// Counts a measurement at its unfolded size: what rows share costs two bytes per row in the file.
  void countUnfolded(const Parts& parts);
  /// Counts a key at what it costs to keep, the first time that the record has it.
  void countKey(size_t textBytes, const LabelList& labels);
  /// The measurement that a verdict is about, as noteAsked() knows it.
  std::optional<uint64_t> measurementOf(const VerdictFields& verdict);
  void requireWithin(const Span& span, const VerdictFields& verdict, const char* outcome);
  /// Takes the samples of a measurement into `span`.
  void widen(Span& span, Parts& parts);
  /// Notes what the measurement must be judged by.
  void noteAsked(Parts& parts);
  /// Notes that it was; a pass outside of its samples is a failure.
  void noteJudged(const VerdictFields& verdict);
  void checkAsked();
  /// The number of what one rank measured in one case: of this metric, or empty: of any.
  uint64_t measuredId(std::string_view metric, std::string_view caseId, int64_t rank);
  /// Whether a stage of an accepted record may lack measurements: a case failed on a device, or passed
  /// without a metric that has a limit. Labels or the plan can allow that, which only the judge finds out; it
  /// is rare in honest records.
  bool lacksMeasurements(const dom::object& evidence, const StageSummary& stage);
  /// Notes what the inventory says too.
  void noteDevice(Parts& parts);
  void checkArtifacts(const dom::array& artifacts);
  int16_t deviceIndex(std::string_view id);
  [[nodiscard]] bool blocksOrTells(Outcome outcome, bool required) const;

  FleetNames& names_;
  ReadLimits limits_;
  Failures& failures_;
  NodeSummary* node_ = nullptr;
  std::string stage_;
  uint32_t stageNumber_ = 0;
  Accounting counted_;
  std::map<std::string, bool, std::less<>> cases_;  ///< of an optional stage: whether something was skipped
  WaiverTally waivers_;
  bool accepted_ = false;  ///< the record says so: then every measurement must be judged
  std::vector<Asked> asked_;
  std::vector<Asked*> askedOfMetric_;        ///< those that count and are about the measurement's metric
  std::vector<Asked*> concerned_;            ///< and about the measurement itself
  bool ofFleet_ = false;                     ///< an expectation relative to the fleet is about its metric
  std::vector<Claim> claims_;                ///< of the stage's expectations
  std::vector<Span> spans_;                  ///< of this stage's measurements that are asked for
  FlatMap<size_t> spanOf_;                   ///< by measurementId()
  FlatMap<bool> measured_;                   ///< by measuredId(), where the record says accepted
  size_t listed_ = 0;                        ///< devices of the inventory
  std::set<std::string> told_;               ///< what was measured as the inventory has it
  bool toldOtherwise_ = false;               ///< something was measured that the inventory has otherwise
  FlatMap<bool> judged_;                     ///< index of the span, and below it that of the expectation
  std::set<std::string_view> fleetMetrics_;  ///< with an expectation that is relative to the fleet
  std::unordered_map<uint64_t, Span> comparable_;       ///< their measurements, by measurementId()
  std::set<std::pair<uint64_t, uint32_t>> deferredOn_;  ///< measurements with a deferred verdict, and its key
  std::set<std::string_view> warnedDrops_;              ///< metrics whose drop_max only warns
  std::set<std::string_view> failedDrops_;              ///< those with one that fails
  std::vector<double> scratch_;
  std::string scratchKey_;
  bool spreads_ = false;
  std::set<std::pair<std::string, std::string>> ownWaivers_;  ///< stage (empty: every one) and metric
  bool flakyAllowed_ = true;                                  ///< by all stages
  bool allowsFlaky_ = false;                                  ///< this stage does
  size_t deviationsKept_ = 0;                                 ///< after the last cut
  size_t measurements_ = 0;
  size_t verdicts_ = 0;
  size_t samples_ = 0;
  uint64_t compared_ = 0;    ///< labels of expectations with labels of measurements
  uint64_t unfolded_ = 0;    ///< bytes of the measurements' texts, each counted for every row that has it
  uint64_t keyBytes_ = 0;    ///< of the keys that are kept
  std::vector<Slot> slots_;  ///< the first usedSlots_ are those of this stage; the others keep their memory
  size_t usedSlots_ = 0;
  FlatMap<size_t> slotByKey_;
  TextMap<MetricFacts> metrics_;
  std::string culprit_;  ///< of this stage's group, as the record has it
  /// By text, where it lies: many verdicts may share one; and whether their rank or case was stopped.
  std::map<std::tuple<const char*, size_t, bool>, CaseCause> causes_;
  Scope scope_ = Scope::kDevice;                 ///< its own
  std::set<int64_t> stopped_;                    ///< ranks that were told to stop
  std::set<std::string> cancelledCases_;         ///< ended with the whole run, on any rank
  std::set<std::string> leaderMetrics_;          ///< reported by rank 0 for the whole group
  std::set<std::string, std::less<>> programs_;  ///< of the operator, that the stage ran
  std::vector<FirstFault> firstFaults_;
  FlatMap<bool> figures_;  ///< keys of the figures that this record has
  FlatMap<bool> deferredKeys_;
  size_t knownBytes_ = 0;  ///< of the texts in the next two
  TextMap<uint32_t> knownKeys_;
  TextMap<uint32_t> knownTexts_;
};

}  // namespace muster::fleet
