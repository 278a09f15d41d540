// SPDX-License-Identifier: Apache-2.0
// Measures one round: bandwidth both ways and latency of each pair, known to every rank afterwards.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/interfaces/communicator.h"
#include "plugins/ring/members.h"
#include "plugins/ring/solver/round_log.h"

namespace muster::ring {

struct MeterOptions {
  uint64_t bytes = 32u << 20;  ///< of a message, one way
  int samples = 5;
  int warmup = 1;
  bool alone = true;     ///< each rail by itself
  bool together = true;  ///< all rails at once
  double noiseFloor = 0.02;
  double latencyNoiseFloor = 0.1;
};

/// Where in a run figures are taken.
struct Turn {
  int round = 0;
  int look = 0;      ///< within the round
  int visit = -1;    ///< after all rounds: the number of the visit; -1: in a round
  double after = 0;  ///< see Visit
};

/// What a pair reached in one look on one rail, or over all. Medians of the samples.
struct PairFigures {
  int round = 0;
  int look = 0;    ///< from 0; later ones remeasure inconclusive pairs
  int visit = -1;  ///< see Turn
  Pair pair;
  std::string rail;
  double forward = 0;   ///< B/s from a to b
  double backward = 0;  ///< B/s from b to a
  double latency = 0;   ///< s, one way
};

/// Rails that work at the same time, under the name of their lane.
struct Phase {
  std::string rail;
  std::vector<int> rails;
};

class Meter {
 public:
  static Result<std::unique_ptr<Meter>> prepare(Device& device, Communicator& communicator,
                                                const Members& members, const MeterOptions& options);

  /// A bandwidth and a latency lane for each phase.
  [[nodiscard]] std::vector<Lane> lanes() const;
  /// Measures the pairs behind a barrier; all ranks call it with the same ones. Adds to `log` and `figures`.
  Status hold(const Turn& turn, const Round& pairs, RoundLog& log, std::vector<PairFigures>& figures);
  /// Lets the device's clock go on.
  void pause(double seconds);
  /// All pauses so far: those between rounds, and of simulated rounds themselves.
  [[nodiscard]] const std::vector<double>& pauses() const { return pauses_; }

 private:
  Meter(Device& device, Communicator& communicator, const Members& members, const MeterOptions& options)
      : device_(device), communicator_(communicator), members_(members), options_(options) {}

  /// Seconds of every sample of a phase: [pair][rail of the phase][forward, backward, latency][sample], and
  /// behind them how long each end waited for a CPU in the median sample: [end][forward, backward, latency].
  Result<std::vector<double>> measurePhase(const Turn& turn, const Round& pairs, const Phase& phase);
  /// The same where ranks talk. Each end of a pair tells what it measured itself, and no rank tells of
  /// another: the longer time of both ends counts.
  Result<std::vector<double>> measureTogether(const Round& pairs, const Phase& phase);
  /// Fills in what this rank tells, and marks it as its own: [pair][rail][end][told by an end].
  Status measureOwn(const Round& pairs, const Phase& phase, std::vector<double>& told,
                    std::vector<bool>& own);
  Status samplePair(int peer, bool first, double* seconds);
  /// Seconds that an exchange took, and how much longer this process waited for a CPU meanwhile.
  struct Timed {
    double seconds = 0, waited = 0;
  };
  Result<Timed> timed(const std::function<Status()>& exchange);
  Result<Timed> timeMessage(int peer, bool sends);
  Result<Timed> timeLatency(int peer);
  Status computeAll(const Turn& turn, const Round& pairs, const Phase& phase, std::vector<double>& seconds);
  [[nodiscard]] size_t sampleCount() const { return 3 * static_cast<size_t>(options_.samples); }
  [[nodiscard]] size_t stride() const { return sampleCount() + 6; }
  [[nodiscard]] size_t toldByEnd() const { return sampleCount() + 3; }

  Device& device_;
  Communicator& communicator_;
  const Members& members_;
  MeterOptions options_;
  std::vector<Phase> phases_;
  std::vector<double> pauses_;
  std::unique_ptr<Buffer> send_;
  std::unique_ptr<Buffer> receive_;
};

}  // namespace muster::ring
