// SPDX-License-Identifier: Apache-2.0
// The exchanges of a round. Each rank times its own and tells all others; the longer time of both ends
// counts. Where ranks do not talk, each computes all.
#include "plugins/ring/meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "kernels/checks/largest.h"
#include "plugins/ring/cpu_wait.h"
#include "plugins/ring/solver/solver.h"
#include "runner/core/statistics.h"

namespace muster::ring {
namespace {

constexpr uint64_t kSmallMessage = 8;  ///< bytes
constexpr int kLatencyRepeats = 16;
constexpr int kDrawsPerRounds = 1 << 16;    ///< of simulated exchanges in as many rounds as kMostRounds
constexpr uint64_t kVisitTurns = 1u << 30;  ///< where those of visits begin
/// A process that waits for a CPU loses more than the wait: its peer has to wait with it, and then both begin
/// anew.
constexpr double kWaitWeight = 2;
constexpr double kMostWait = 0.98;  ///< share of an exchange
constexpr const char* kAllRails = "all";

double relativeSpread(const std::vector<double>& values) {
  const double center = medianOf(values);
  return center > 0 ? kMadToSigma * madOf(values, center) / center : 0;
}

/// Of the rails of a phase, the slowest decides each sample.
std::vector<double> slowestRail(const double* pair, size_t rails, size_t stride, size_t offset,
                                size_t samples) {
  std::vector<double> worst(samples);
  for (size_t rail = 0; rail < rails; ++rail)
    for (size_t s = 0; s < samples; ++s) worst[s] = std::max(worst[s], pair[rail * stride + offset + s]);
  return worst;
}

/// What both ends' waiting for a CPU may account for, as a logarithm; the rail of the phase where it is most.
/// `waits`: of the first rail and `what`.
double excuseOf(const double* waits, size_t rails, size_t stride, double seconds) {
  double waited = 0;
  for (size_t rail = 0; rail < rails; ++rail)
    waited = std::max(waited, waits[rail * stride] + waits[rail * stride + 3]);
  return -kWaitWeight * std::log(1 - std::min(kMostWait, waited / seconds));
}

}  // namespace

Result<std::unique_ptr<Meter>> Meter::prepare(Device& device, Communicator& communicator,
                                              const Members& members, const MeterOptions& options) {
  std::unique_ptr<Meter> meter(new Meter(device, communicator, members, options));
  std::vector<int> all;
  for (int rail = 0; rail < members.rails(); ++rail) {
    all.push_back(rail);
    if (options.alone && members.rails() > 1) meter->phases_.push_back({fmt::format("{}", rail), {rail}});
  }
  if (options.together || members.rails() == 1) meter->phases_.push_back({kAllRails, all});
  MUSTER_TRY(meter->send_, device.allocate(options.bytes));
  MUSTER_TRY(meter->receive_, device.allocate(options.bytes));
  // Random data: a transport that compresses must not look fast.
  MUSTER_CHECK_OK(
      device.fillNormal(*meter->send_, Dtype::kF32, static_cast<uint64_t>(communicator.rank()) + 1));
  return meter;
}

std::vector<Lane> Meter::lanes() const {
  std::vector<Lane> lanes;
  for (const Phase& phase : phases_) lanes.push_back({Quantity::kBandwidth, phase.rail, options_.noiseFloor});
  for (const Phase& phase : phases_)
    lanes.push_back({Quantity::kLatency, phase.rail, options_.latencyNoiseFloor});
  return lanes;
}

Result<Meter::Timed> Meter::timed(const std::function<Status()>& exchange) {
  const double waitedBefore = cpuWaitSeconds();
  MUSTER_TRY(const double seconds, communicator_.time(exchange));
  return Timed{seconds, std::max(0.0, cpuWaitSeconds() - waitedBefore)};
}

Result<Meter::Timed> Meter::timeMessage(int peer, bool sends) {
  // Both ends start together: a late one must not look like a slow link.
  MUSTER_CHECK_OK(communicator_.exchange(peer, *send_, kSmallMessage, *receive_, kSmallMessage));
  return timed([&] {
    return communicator_.exchange(peer, *send_, sends ? options_.bytes : 0, *receive_,
                                  sends ? 0 : options_.bytes);
  });
}

Result<Meter::Timed> Meter::timeLatency(int peer) {
  MUSTER_CHECK_OK(communicator_.exchange(peer, *send_, kSmallMessage, *receive_, kSmallMessage));
  MUSTER_TRY(
      const Timed all, timed([&]() -> Status {
        for (int i = 0; i < kLatencyRepeats; ++i)
          MUSTER_CHECK_OK(communicator_.exchange(peer, *send_, kSmallMessage, *receive_, kSmallMessage));
        return {};
      }));
  return Timed{all.seconds / kLatencyRepeats, all.waited / kLatencyRepeats};
}

/// `first`: this rank is the `a` of its pair, so it sends where the other receives.
Status Meter::samplePair(int peer, bool first, double* seconds) {
  const auto samples = static_cast<size_t>(options_.samples);
  for (int i = 0; i < options_.warmup; ++i) {
    MUSTER_TRY(const Timed there, timeMessage(peer, first));
    MUSTER_TRY(const Timed back, timeMessage(peer, !first));
    (void)there, (void)back;
  }
  std::array<std::vector<double>, 3> waited;
  for (size_t i = 0; i < samples; ++i)
    for (size_t what = 0; what < 3; ++what) {
      MUSTER_TRY(const Timed t, what == 2 ? timeLatency(peer) : timeMessage(peer, first == (what == 0)));
      seconds[what * samples + i] = t.seconds;
      waited[what].push_back(t.waited);
    }
  for (size_t what = 0; what < 3; ++what) seconds[sampleCount() + what] = medianOf(std::move(waited[what]));
  return {};
}

Status Meter::measureOwn(const Round& pairs, const Phase& phase, std::vector<double>& told,
                         std::vector<bool>& own) {
  const auto rail = std::find(phase.rails.begin(), phase.rails.end(), members_.ownRail);
  if (rail == phase.rails.end()) return {};
  for (size_t p = 0; p < pairs.size(); ++p) {
    const bool first = pairs[p].a == members_.own;
    if (!first && pairs[p].b != members_.own) continue;
    const int other = first ? pairs[p].b : pairs[p].a;
    const int peer = members_.ranks[static_cast<size_t>(other)][static_cast<size_t>(members_.ownRail)];
    const size_t cell = p * phase.rails.size() + static_cast<size_t>(rail - phase.rails.begin());
    const size_t at = (2 * cell + (first ? 0 : 1)) * toldByEnd();
    std::fill_n(own.begin() + static_cast<std::ptrdiff_t>(at), toldByEnd(), true);
    return samplePair(peer, first, &told[at])
        .context(fmt::format("pair {} - {}, rail {}", members_.names[static_cast<size_t>(pairs[p].a)],
                             members_.names[static_cast<size_t>(pairs[p].b)], phase.rail));
  }
  return {};
}

Status Meter::computeAll(const Turn& turn, const Round& pairs, const Phase& phase,
                         std::vector<double>& seconds) {
  const auto samples = static_cast<size_t>(options_.samples);
  double longest = 0;
  for (size_t p = 0; p < pairs.size(); ++p)
    for (size_t r = 0; r < phase.rails.size(); ++r) {
      const auto rail = static_cast<size_t>(phase.rails[r]);
      const int a = members_.ranks[static_cast<size_t>(pairs[p].a)][rail];
      const int b = members_.ranks[static_cast<size_t>(pairs[p].b)][rail];
      double* out = &seconds[(p * phase.rails.size() + r) * stride()];
      double sum = 0;
      for (size_t i = 0; i < samples; ++i) {
        // Looks, rounds, phases, samples and directions each draw anew.
        const auto turnNumber =
            turn.visit >= 0 ? kVisitTurns + static_cast<uint64_t>(turn.visit * kMostRounds + turn.round)
                            : static_cast<uint64_t>(turn.round / kMostRounds * kDrawsPerRounds +
                                                    turn.look * kMostRounds + turn.round % kMostRounds);
        const uint64_t phaseNumber = turnNumber * 2 + (phase.rails.size() > 1 ? 1 : 0);
        const uint64_t draw = (phaseNumber * 1000 + i) * 3;
        MUSTER_TRY(out[i], communicator_.exchangeBetween(a, b, options_.bytes, 0, draw));
        MUSTER_TRY(out[samples + i], communicator_.exchangeBetween(a, b, 0, options_.bytes, draw + 1));
        MUSTER_TRY(out[2 * samples + i],
                   communicator_.exchangeBetween(a, b, kSmallMessage, kSmallMessage, draw + 2));
        sum += out[i] + out[samples + i] + out[2 * samples + i];
      }
      longest = std::max(longest, sum);
    }
  pause(longest);
  return {};
}

void Meter::pause(double seconds) {
  device_.sleep(seconds);
  pauses_.push_back(seconds);
}

Result<std::vector<double>> Meter::measureTogether(const Round& pairs, const Phase& phase) {
  const size_t cells = pairs.size() * phase.rails.size();
  std::vector<double> told(cells * 2 * toldByEnd()), seconds(cells * stride());
  std::vector<bool> own(told.size());
  MUSTER_CHECK_OK(communicator_.barrier());
  MUSTER_CHECK_OK(measureOwn(pairs, phase, told, own));
  MUSTER_TRY(told, gatherOverRanks(communicator_, told, own));
  for (size_t cell = 0; cell < cells; ++cell)
    for (const size_t end : {0, 1}) {
      const double* said = &told[(2 * cell + end) * toldByEnd()];
      double* out = &seconds[cell * stride()];
      for (size_t i = 0; i < sampleCount(); ++i) out[i] = std::max(out[i], said[i]);
      std::copy_n(said + sampleCount(), 3, out + sampleCount() + 3 * end);
    }
  return seconds;
}

Result<std::vector<double>> Meter::measurePhase(const Turn& turn, const Round& pairs, const Phase& phase) {
  std::vector<double> seconds(pairs.size() * phase.rails.size() * stride());
  if (!communicator_.ranksTalk()) {
    MUSTER_CHECK_OK(computeAll(turn, pairs, phase, seconds));
  } else {
    MUSTER_TRY(seconds, measureTogether(pairs, phase));
  }
  for (size_t at = 0; at < seconds.size(); ++at)
    if (at % stride() < sampleCount() && (!(seconds[at] > 0) || !std::isfinite(seconds[at])))
      return Error{ErrorCode::kCorrupt, fmt::format("an exchange took {} s by the clock", seconds[at]),
                   device_.info().id};
  return seconds;
}

Status Meter::hold(const Turn& turn, const Round& pairs, RoundLog& log, std::vector<PairFigures>& figures) {
  const auto samples = static_cast<size_t>(options_.samples);
  const size_t lanes = phases_.size();
  std::vector<double> speeds(pairs.size() * 2 * lanes);
  std::vector<double> spreads(speeds.size());
  std::vector<double> excuses(speeds.size());
  for (size_t lane = 0; lane < lanes; ++lane) {
    const Phase& phase = phases_[lane];
    MUSTER_TRY(const std::vector<double> seconds, measurePhase(turn, pairs, phase));
    const size_t rails = phase.rails.size();
    const double volume = static_cast<double>(options_.bytes) * static_cast<double>(rails);
    for (size_t p = 0; p < pairs.size(); ++p) {
      const double* pair = &seconds[p * rails * stride()];
      const auto there = slowestRail(pair, rails, stride(), 0, samples);
      const auto back = slowestRail(pair, rails, stride(), samples, samples);
      const auto latency = slowestRail(pair, rails, stride(), 2 * samples, samples);
      const PairFigures f{turn.round,
                          turn.look,
                          turn.visit,
                          pairs[p],
                          phase.rail,
                          volume / medianOf(there),
                          volume / medianOf(back),
                          medianOf(latency)};
      const double* waits = pair + sampleCount();
      const bool forward = f.forward < f.backward;
      const size_t at = p * 2 * lanes + lane;
      speeds[at] = std::min(f.forward, f.backward);
      spreads[at] = relativeSpread(forward ? there : back);
      excuses[at] = excuseOf(waits + (forward ? 0 : 1), rails, stride(), medianOf(forward ? there : back));
      excuses[at + lanes] = excuseOf(waits + 2, rails, stride(), f.latency);
      speeds[at + lanes] = 1 / f.latency;
      spreads[at + lanes] = relativeSpread(latency);
      figures.push_back(f);
    }
  }
  for (size_t p = 0; p < pairs.size(); ++p) {
    const size_t at = p * 2 * lanes;
    if (turn.visit >= 0)
      log.addVisit({turn.visit, pairs[p], turn.after}, &speeds[at], &excuses[at]);
    else if (turn.look == 0)
      log.add(turn.round, pairs[p], &speeds[at], &spreads[at], &excuses[at]);
    else
      log.addLook(pairs[p], &speeds[at], &spreads[at], &excuses[at]);
  }
  return {};
}

}  // namespace muster::ring
