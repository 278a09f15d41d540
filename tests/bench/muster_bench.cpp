// SPDX-License-Identifier: Apache-2.0
// muster-bench: figures of the compute and memory plugins beside the libraries called directly, in paired
// runs.
//
// Muster and each rival take turns (A B C A B C ...), so that a neighbour or a falling clock hits all of
// them. The ratio is the median over the pairs. Exit 0: every ratio meets its limit.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "runner/core/clock.h"
#include "runner/core/units.h"
#include "runner/system/files.h"
#include "tests/bench/direct.h"
#include "tests/plugins/recording_host.h"

namespace muster::bench {
namespace {

constexpr int kPairs = 7;
constexpr double kTurn = 0.5;    ///< seconds that each takes in turn
constexpr double kPause = 0.15;  ///< between turns: threads of the library before must have gone to sleep

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void pause() {
  std::this_thread::sleep_for(std::chrono::duration<double>(kPause));
}

/// Median rate of one turn of a rival: a warm call, then calls for kTurn seconds.
double turnOf(const Direct& direct) {
  pause();
  direct.once();
  std::vector<double> rates;
  const double end = systemClock().now() + kTurn;
  while (systemClock().now() < end || rates.size() < 3) {
    const double start = systemClock().now();
    direct.once();
    rates.push_back(direct.work / (systemClock().now() - start));
  }
  return median(rates);
}

/// What Muster's figure is held against: a name, and a function that takes one turn.
struct Rival {
  std::string name;
  std::function<double()> rate;
};
Rival rivalOf(std::unique_ptr<Direct> direct) {
  return {direct->name, [direct = std::shared_ptr<Direct>(std::move(direct))] { return turnOf(*direct); }};
}

/// One figure of Muster and what it must reach.
struct Contest {
  std::string name;
  std::string unit;
  double limit = 0;  ///< the ratio to the fastest rival
  std::function<double()> muster;
  std::vector<Rival> rivals;
};

/// A plugin's own measurement: the median that a record would hold.
double measured(const testing::PluginLibrary& plugin, const std::string& test, const std::string& metric,
                Json params) {
  pause();
  testing::RecordingHost host;
  const auto result = plugin.run(host, test, params, testing::contextFor("host", "cpu0"));
  if (result.ran == MUSTER_OK) return median(host.told(metric).at(0).samples);
  fmt::print(stderr, "muster-bench: {}\n", host.error);
  std::exit(1);
}

/// The rival with the highest median over all pairs.
size_t fastest(const std::vector<std::vector<double>>& rates) {
  size_t best = 0;
  for (size_t i = 1; i < rates.size(); ++i)
    if (median(rates[i]) > median(rates[best])) best = i;
  return best;
}

bool run(const Contest& contest) {
  std::vector<double> ours;
  std::vector<std::vector<double>> theirs(contest.rivals.size());
  for (int pair = 0; pair < kPairs; ++pair) {
    ours.push_back(contest.muster());
    for (size_t i = 0; i < theirs.size(); ++i) theirs[i].push_back(contest.rivals[i].rate());
  }
  const size_t rival = fastest(theirs);
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / theirs[rival][i]);
  const double ratio = median(ratios);
  fmt::print("{:<16} {:>14}   {:<15} {:>14}   ratio {:.3f} (pairs {:.3f} to {:.3f}), required {:.2f}: {}\n",
             contest.name, formatQuantity(median(ours), contest.unit), contest.rivals[rival].name,
             formatQuantity(median(theirs[rival]), contest.unit), ratio,
             *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()),
             contest.limit, ratio >= contest.limit ? "met" : "MISSED");
  std::fflush(stdout);
  return ratio >= contest.limit;
}

/// Settings of a turn for tests that sample until a rate is known.
Json inTurn(Json params) {
  params.update({{"warmup", "300ms"}, {"min_time", kTurn}, {"max_time", kTurn}});
  return params;
}

Contest gemmContest(const testing::PluginLibrary& compute, Dtype dtype, int64_t n) {
  Contest contest{fmt::format("gemm {} {}", dtypeName(dtype), n), "FLOP/s", 0.97, {}, {}};
  contest.muster = [&compute, dtype, n] {
    return measured(compute, "gemm", "gemm_throughput", inTurn({{"size", n}, {"dtype", dtypeName(dtype)}}));
  };
  for (auto* make : {directOnednn, directOpenblas})
    if (auto rival = make(dtype, n)) contest.rivals.push_back(rivalOf(std::move(rival)));
  return contest;
}

/// The stress test keeps the device full and compares every product; its rate leaves the comparisons out, so
/// it is gemm's.
Contest sustainedContest(const testing::PluginLibrary& compute, Dtype dtype, int64_t n) {
  const Json shape = {{"size", n}, {"dtype", dtypeName(dtype)}};
  Contest contest{fmt::format("sustained {} {}", dtypeName(dtype), n), "FLOP/s", 0.99, {}, {}};
  contest.muster = [&compute, shape] {
    Json params = shape;
    params.update({{"duration", 2 * kTurn}, {"window", kTurn / 5}});
    return measured(compute, "sustained", "sustained_throughput", params);
  };
  contest.rivals.push_back({"compute.gemm", [&compute, shape] {
                              return measured(compute, "gemm", "gemm_throughput", inTurn(shape));
                            }});
  return contest;
}

Contest copyContest(const testing::PluginLibrary& memory) {
  static constexpr uint64_t kBytes = 256u << 20;
  Contest contest{"memory copy", "B/s", 0.95, {}, {}};
  contest.muster = [&memory] {
    return measured(memory, "bandwidth", "bandwidth", inTurn({{"ops", {"copy"}}, {"bytes", kBytes}}));
  };
  contest.rivals.push_back(rivalOf(streamCopy(kBytes)));
  return contest;
}

/// Starts again without variables that slow a library down (Muster's host backend ignores them): the rivals
/// shall be as fast as they can.
void restartClean(char** argv) {
  bool dirty = false;
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
                           "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "OMP_NUM_THREADS"}) {
    dirty = dirty || getenv(name) != nullptr;
    unsetenv(name);
  }
  if (dirty) execv("/proc/self/exe", argv);
}

/// Contests whose name contains `wanted`. None is a failure: a typo must not look like success.
int runAll(const std::string& wanted) {
  const testing::PluginLibrary compute("compute");
  const testing::PluginLibrary memory("memory");
  std::vector<Contest> contests;
  contests.push_back(copyContest(memory));
  for (const auto& [dtype, n] : {std::pair{Dtype::kF32, 2048}, {Dtype::kF32, 4096}, {Dtype::kF64, 2048}})
    contests.push_back(gemmContest(compute, dtype, n));
  for (const auto& [dtype, n] : {std::pair{Dtype::kF32, 1024}, {Dtype::kF32, 2048}, {Dtype::kBf16, 2048}})
    contests.push_back(sustainedContest(compute, dtype, n));
  int ran = 0;
  int missed = 0;
  for (const Contest& contest : contests) {
    if (contest.name.find(wanted) == std::string::npos) continue;
    ++ran;
    if (!run(contest)) ++missed;
  }
  return ran > 0 && missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::bench::restartClean(argv);
  const auto folder = muster::executableFolder();
  if (!folder.ok()) return 1;
  setenv("MUSTER_BUILD", folder->parent_path().parent_path().c_str(), 1);
  return muster::bench::runAll(argc > 1 ? argv[1] : "");
}
