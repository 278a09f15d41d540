// SPDX-License-Identifier: Apache-2.0
// Expectations: what a measurement must meet, with its source, severity and remedy.
#pragma once

#include <string>
#include <vector>

#include "runner/metrics/measurement.h"

namespace muster {

/// How an expectation compares.
enum class CheckKind {
  kMin,        ///< observed >= limit
  kMax,        ///< observed <= limit
  kEquals,     ///< observed == limit, or the text equals allowed[0]
  kOneOf,      ///< the text (or number, as text) is one of `allowed`
  kContains,   ///< the text holds each of `allowed` as a whole word or phrase
  kExcludes,   ///< the text holds none of `allowed` so
  kBaseline,   ///< not worse than limit by more than the share `tolerance`, in the metric's bad direction
  kWithin,     ///< not worse than the peers' median by more than the share `tolerance`
  kOfPeak,     ///< observed >= limit (a share) x the theoretical peak
  kCvMax,      ///< the coefficient of variation over all samples <= limit
  kDropMax,    ///< the worst stretch of time lies at most this share below the measurement's own level
  kPredicate,  ///< a Lua predicate of the plan said so
};

enum class Severity { kFail, kWarn };
enum class PeerGroup { kNode, kFleet };

/// Among an expectation's parameters the name of the stage: a device is another one when it is warm.
inline constexpr const char* kStageParam = "stage";

/// One expectation on the measurements of one metric.
struct Expectation {
  std::string metric;  ///< "compute.gemm_throughput"
  Labels where;        ///< only measurements that carry these labels
  /// Of a profile: only stages all of whose cases have these test parameters; kStageParam: of this name.
  Labels params;
  CheckKind kind = CheckKind::kMin;
  double limit = 0;      ///< in `unit`; kOfPeak, kCvMax and kDropMax: a share of 1
  std::string unit;      ///< base unit of the metric
  double tolerance = 0;  ///< kBaseline, kWithin: a share of 1
  PeerGroup peers = PeerGroup::kNode;
  std::vector<std::string> allowed;  ///< kEquals on text, kOneOf, kContains, kExcludes
  std::string predicate;             ///< kPredicate: the Lua source, kept in the record
  std::string statistic = "median";  ///< which summary is compared: median, mean, min or max
  double warnBand = 0;               ///< share of the limit: met, but nearer than this, is a warning
  Severity severity = Severity::kFail;
  std::string source;  ///< where the figure comes from
  std::string remedy;  ///< what to do about a miss
  std::string origin;  ///< "plan", "profile h100-sxm5-80gb" or "standing"
  std::string at;      ///< file:line of its definition; may be empty

  bool operator==(const Expectation&) const = default;
  /// "min 650 TFLOP/s", "within 3% of the node median", "cv at most 2%".
  [[nodiscard]] std::string text() const;
  /// True if what is compared is a share that the samples have among themselves, not their value.
  [[nodiscard]] bool comparesStability() const {
    return kind == CheckKind::kCvMax || kind == CheckKind::kDropMax;
  }
};

Json toJson(const Expectation& expectation);
Result<Expectation> expectationFromJson(const Json& json, const std::string& path);

const char* checkKindName(CheckKind kind);  ///< min, max, equals, one_of, contains, excludes, baseline,
                                            ///< within, of_peak, cv_max, drop_max, predicate

}  // namespace muster
