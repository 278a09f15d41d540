// SPDX-License-Identifier: Apache-2.0
// How far a value lies from those of the other devices of its node.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runner/record/record.h"

namespace muster {

/// Without at least two peers with a value there is no distance.
struct PeerDistance {
  double median = std::numeric_limits<double>::quiet_NaN();  ///< of the peers, in the base unit
  double share = std::numeric_limits<double>::quiet_NaN();   ///< (value - median) / |median|
  size_t peers = 0;
  std::string unit;

  /// "18% below its 7 peers (median 730 TFLOP/s)"; empty without a distance.
  [[nodiscard]] std::string text() const;
};

/// The distances of a record's verdicts. A stage is indexed at its first use and must not change afterwards.
class PeerDistances {
 public:
  /// Compares the value of `verdict` with those of the other devices in the same case and with the same
  /// labels. Counts, texts and stability have no peers.
  PeerDistance of(const StageRecord& stage, const Verdict& verdict);

 private:
  /// One value for each device, though several expectations may compare it.
  struct Values {
    std::map<std::string, double> byDevice;
    std::vector<double> sorted;
  };
  using Subject = std::tuple<std::string, std::string, Labels>;  ///< metric, case, labels without the device
  using Peers = std::map<Subject, Values>;

  static Subject subjectOf(const Verdict& verdict);
  static Peers peersOf(const StageRecord& stage);
  std::map<const StageRecord*, Peers> stages_;
};

/// The distance of a single verdict.
PeerDistance peerDistance(const StageRecord& stage, const Verdict& verdict);

}  // namespace muster
