// SPDX-License-Identifier: Apache-2.0
// Learning what normal is: from the figures of a fleet to the limits of a SKU profile. Pure: no I/O, no
// clock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/metrics/measurement.h"

namespace muster {

/// What a limit is compared with of one measurement on one device.
struct LearnFigure {
  int node = 0;     ///< index into LearnInput::nodes
  int device = -1;  ///< index into its devices; -1: of the node as a whole
  double value = 0;
  size_t samples = 1;  ///< of which it comes
  int place = -1;      ///< index into LearnInput::places; -1: none but the device
};

/// All figures that one expectation of a profile would judge in one stage.
struct LearnGroup {
  std::string stage;
  std::string metric;
  Labels where;  ///< what all its measurements carry; no device, no peer
  std::string unit;
  Direction direction = Direction::kNone;
  std::string peak;  ///< name of its theoretical peak, or empty
  std::vector<LearnFigure> figures;
  Labels params =
      {};  ///< test parameters of its stage, beside those in `where`: a limit says nothing of others

  /// "compute.gemm_throughput dtype=bf16 size=8192 in stage gemm"
  [[nodiscard]] std::string text() const;
};

struct LearnNode {
  std::string name;
  std::vector<std::string> devices;
  std::string sick;     ///< why its own verdicts make it no example; empty: they do not
  bool misfit = false;  ///< it is no example whatever its verdicts: unlike most nodes, or interrupted
};

/// The most that a metric can physically be, and whose word that is.
struct PhysicalLimit {
  double most = 0;     ///< base unit; 0: unknown
  std::string source;  ///< "peak memory_bandwidth of profile h100-sxm5-80gb"
};

struct LearnInput {
  std::vector<LearnNode> nodes;
  std::vector<LearnGroup> groups;
  std::vector<PhysicalLimit> physical;  ///< one for each group
  std::vector<std::string> places{};    ///< what was measured beside the device: "peer=gpu3"
};

struct LearnOptions {
  double falseRejects = 0.0005;  ///< share of healthy nodes that all limits together may reject
  double confidence = 0.95;      ///< that they reject no more
  size_t leastNodes = 8;         ///< healthy ones, altogether and for each figure
  double mostSick = 0.2;         ///< share of the nodes
};

/// A device, or a whole node, whose figures were left out.
struct LeftOut {
  int node = 0;
  int device = -1;
  std::string why;  ///< "compute.gemm_throughput dtype=bf16 is 12.1 sigma below the others"
};

/// What was learned of one group.
struct LearnedLimit {
  size_t group = 0;      ///< index into LearnInput::groups
  double value = 0;      ///< centre of the healthy figures, base unit
  double sigma = 0;      ///< their spread as a share of it
  double skew = 0;       ///< of the bad tail; see spread.h
  double tolerance = 0;  ///< share of `value` by which a healthy figure may be worse
  size_t n = 0;          ///< figures
  size_t nodes = 0;
  double caught = 0;  ///< the smallest loss that this limit alone rejects 99 times of 100, as a share
};

struct Learned {
  std::vector<LearnedLimit> limits;
  std::vector<std::pair<size_t, std::string>> notLearned;  ///< group, why
  std::vector<LeftOut> leftOut;  ///< by the figures; nodes that are sick by their verdicts are not repeated
  std::vector<int> sick;         ///< nodes of which anything was left out, in order
  size_t used = 0;               ///< nodes whose figures count
  double tail = 0;               ///< share of healthy figures that each limit may reject
};

/// Chooses the healthy part, then a limit for each group. Errors (kUsage) when too few nodes are healthy, too
/// many are sick, or a figure is beyond what is physically possible: each says how many, why, and what would
/// do.
Result<Learned> learnLimits(const LearnInput& input, const LearnOptions& options);

/// First step: the devices and nodes that are outliers in a single metric or in all together.
std::vector<LeftOut> findOutliers(const LearnInput& input, double mostSick);

}  // namespace muster
