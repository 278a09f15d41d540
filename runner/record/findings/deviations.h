// SPDX-License-Identifier: Apache-2.0
// The deviations of a record: every verdict that a reader must see, grouped so that one cause is told once.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "runner/record/record.h"

namespace muster {

/// One verdict of a deviation, its stage and the rank it happened on.
struct DeviationItem {
  const Verdict* verdict = nullptr;
  const StageRecord* stage = nullptr;
  const RankRecord* rank = nullptr;  ///< nullptr: the verdict belongs to no rank
};

/// Verdicts with one outcome, stage and metric: they differ in device, case and limit (without a metric, in
/// the case). What is expected in every stage (no ECC error, no throttling) is one deviation over all stages.
/// Points into the record it was made from.
struct Deviation {
  Outcome outcome = Outcome::kError;
  bool blocks = false;                      ///< blocks acceptance
  std::vector<DeviationItem> items;         ///< at least one, in the order of the stages
  std::shared_ptr<const Verdict> own = {};  ///< what an item points to that is no verdict of the record

  [[nodiscard]] const Verdict& first() const { return *items.front().verdict; }
  /// The verdict that missed its limit by most; the first one where margins mean nothing.
  [[nodiscard]] const DeviationItem& worst() const;
  /// Whom it speaks of: the culprits that the test itself names, else the devices; empty when the whole node
  /// or stage is meant.
  [[nodiscard]] std::string who() const;
  /// What the test says of the first wrong result, of the first item that has one: "…, the first at 2048,
  /// from rank 6".
  [[nodiscard]] std::string firstFault() const;
  /// Distinct names of stages, in order.
  [[nodiscard]] std::vector<std::string> stages() const;
  /// The case, what was wanted and the detail line, where all items agree on it; else empty. A detail that
  /// only repeats the figures is left out.
  [[nodiscard]] std::string commonCase() const;
  [[nodiscard]] std::string commonWanted() const;
  [[nodiscard]] std::string commonDetail() const;
  /// Distinct devices, in order; empty when the whole node or stage is meant.
  [[nodiscard]] std::vector<std::string> devices() const;
  /// Expectations with distinct sources, in order; those without a source are left out.
  [[nodiscard]] std::vector<const Expectation*> origins() const;
  [[nodiscard]] std::vector<std::string> remedies() const;  ///< distinct ones, in order
  /// Distinct commands that rerun its ranks, in order; without those that the detail line gives.
  [[nodiscard]] std::vector<std::string> reruns() const;
};

/// Of a common detail, the bytes in which it is looked for what would be said twice.
inline constexpr size_t kMostTold = 8'000;
/// Whether `part` occurs in `text`, in a time linear in both: they may be of a hostile record.
bool holdsText(std::string_view text, std::string_view part);

/// Fails, errors, flakies, blocking skips, unjudged ones under --strict, an unknown SKU, then warnings; worst
/// first, else in stage order. Without stagesStoppedByFailure().
std::vector<Deviation> deviations(const Record& record);

/// What was not judged here and does not block: unjudged, optional skips, deferred, elsewhere. Without
/// stagesStoppedByFailure().
std::vector<Deviation> notJudged(const Record& record);

/// Stages that were skipped because one that they need has a blocking deviation or was itself stopped so.
std::set<const StageRecord*> stagesStoppedByFailure(const Record& record);

/// Whether a metric tells of a fault of a device's memory: ECC, row remap or XID.
bool tellsMemoryFault(const std::string& metric);

/// Verdicts that a waiver covers.
std::vector<Deviation> waived(const Record& record);

/// "gpu1, gpu3"; of many the first eight "and N more".
std::string devicesText(const std::vector<std::string>& devices);

/// "dtype=bf16 op=copy": the labels other than the device; the case's id where there are none. Sizes read as
/// "64 KiB".
std::string caseText(const Verdict& verdict);

/// A value beside that of its peers: "28.8 of 48 GB/s, 60%".
std::string shareText(double value, double peers, const std::string& unit);

/// The measured values of a record's verdicts. A stage is indexed at its first use and must not change
/// afterwards.
class MeasuredTexts {
 public:
  /// The value, or of a faulty component of a network its bandwidth beside that of the other pairs: "28.8 of
  /// 48 GB/s, 60%".
  std::string of(const StageRecord& stage, const Verdict& verdict);

 private:
  /// First values by metric, case and faulty component.
  using Values = std::map<std::tuple<std::string, std::string, std::string>, double>;
  std::map<const StageRecord*, Values> stages_;
};

/// That of a single verdict.
std::string measuredText(const StageRecord& stage, const Verdict& verdict);

/// What was wanted: the limit in force, else the expectation; empty when nothing was.
std::string wantedText(const Verdict& verdict);

/// What a remedy for several kinds of culprits ("link: reseat …; node: its NIC …") says of this kind; all of
/// it where it says nothing of the kind.
std::string remedyFor(const std::string& remedy, const std::string& kind);

/// How the profile was found, or why none was; without what "unknown SKU" beside it says already.
std::string skuNote(const Record& record);

/// "1 rank", "8 ranks".
std::string plural(size_t count, const std::string& noun);

/// The distance to the limit for people: "26% below limit", "12% above limit" if it was missed, else "4.1% to
/// spare"; empty when it has no meaning.
std::string marginText(const Verdict& verdict);

}  // namespace muster
