// SPDX-License-Identifier: Apache-2.0
// Small all-reduces by our NCCL driver beside the same calls made directly: one and two ranks over the fake
// NCCL and emulated GPUs, paired runs. Fails where a message between two takes over kGoal of the direct
// calls' time; what a real NCCL takes comes on top of both.
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/buffer.h"
#include "tests/gpu/gpu.h"
#include "tests/kernels/host_gloo/ranks.h"
#include "tests/support/process.h"

namespace muster {
namespace {

constexpr int kPairs = 101;
constexpr int kRuns = 200;  ///< of a sample, as the collective plugin batches small messages
constexpr double kGoal = 1.05;

using Clock = std::chrono::steady_clock;

/// NCCL alone, as its manual shows it: a blocking communicator, a stream, two events.
class Direct {
 public:
  /// "" or what went wrong.
  std::string form(testing::Rank& me) {
    ncclUniqueId id{};
    if (me.spec.rank == 0) {
      if (ncclGetUniqueId(&id) != ncclSuccess) return "no unique id";
      if (Status told = me.store.set("direct", {id.internal, sizeof id.internal}); !told.ok())
        return told.error().text();
    }
    auto bytes = me.store.get("direct", me.spec.timeout);
    if (!bytes.ok()) return bytes.error().text();
    std::memcpy(id.internal, bytes->data(), sizeof id.internal);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.splitShare = 1;
    ncclComm_t parent = nullptr;
    (void)ncclCommInitRankConfig(&parent, me.spec.size, id, me.spec.rank, &config);
    if (!settled(parent)) return "the ranks are not connected";
    config.blocking = 1;
    (void)ncclCommSplit(parent, 0, me.spec.rank, &comm_, &config);
    if (!settled(parent)) return "no communicator that blocks";
    if (cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) != cudaSuccess) return "no stream";
    for (cudaEvent_t* event : {&begin_, &end_})
      if (cudaEventCreateWithFlags(event, cudaEventDefault) != cudaSuccess) return "no event";
    return "";
  }

  /// Seconds of kRuns runs; negative: a call failed.
  double seconds(void* data, uint64_t count) {
    const auto start = Clock::now();
    bool bad = cudaEventRecord(begin_, stream_) != cudaSuccess;
    for (int run = 0; run < kRuns; ++run)
      bad |= ncclAllReduce(data, data, count, ncclFloat32, ncclMax, comm_, stream_) != ncclSuccess;
    bad |= cudaEventRecord(end_, stream_) != cudaSuccess || cudaStreamSynchronize(stream_) != cudaSuccess;
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    return bad ? -1 : took;
  }

 private:
  static bool settled(ncclComm_t comm) {
    ncclResult_t state = ncclInProgress;
    while (comm != nullptr && ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress) {
    }
    return state == ncclSuccess;
  }

  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

Result<double> ownSeconds(Communicator& group, Collective& work) {
  const auto start = Clock::now();
  MUSTER_TRY(double gpu, group.time([&]() -> Status {
    for (int run = 0; run < kRuns; ++run) MUSTER_CHECK_OK(work.run());
    return {};
  }));
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  if (gpu > 0) return took;
  return Error{ErrorCode::kCorrupt, "the emulated GPU took no time", ""};
}

/// Times of one size, ours and the direct calls' in turns, on the slower rank; "" or what went wrong.
std::string compare(Communicator& group, Device& device, Direct& direct, uint64_t bytes, bool& bad) {
  CollectiveSpec spec;
  spec.count = bytes / sizeof(float);
  spec.reduce = ReduceOp::kMax;
  auto work = group.collective(spec);
  auto data = device.allocate(bytes);
  if (!work.ok() || !data.ok()) return testing::problemOf(work) + testing::problemOf(data);
  if (Status ready = (*work)->prepare(1); !ready.ok()) return ready.error().text();
  void* memory = cuda::bytesOf(**data);
  std::vector<double> ours, theirs, ratios;
  for (int pair = -2; pair < kPairs; ++pair) {  // the first two warm up
    const bool oursFirst = pair % 2 == 0;
    double alone = oursFirst ? 0 : direct.seconds(memory, spec.count);
    if (Status together = group.barrier(); !together.ok()) return together.error().text();
    auto own = ownSeconds(group, **work);
    if (!own.ok()) return own.error().text();
    if (Status together = group.barrier(); !together.ok()) return together.error().text();
    if (oursFirst) alone = direct.seconds(memory, spec.count);
    if (alone < 0) return "a direct call failed";
    const auto slower = group.maxOverRanks({*own, alone});
    if (!slower.ok()) return slower.error().text();
    if (pair < 0) continue;
    ours.push_back((*slower)[0] / kRuns);
    theirs.push_back((*slower)[1] / kRuns);
    ratios.push_back((*slower)[0] / (*slower)[1]);
  }
  const double ratio = median(ratios);
  const bool over =
      group.size() > 1 && ratio > kGoal;  // alone, a call of the fake takes a quarter of a microsecond
  bad = bad || over;
  if (group.rank() == 0)
    fmt::print("{:<6} {:<12} {:>12.2f} {:>12.2f} {:>10.3f}{}\n", group.size(), fmt::format("{} B", bytes),
               median(ours) * 1e6, median(theirs) * 1e6, ratio, over ? "  over the goal" : "");
  std::fflush(stdout);
  return "";
}

std::string contest(testing::Rank& me) {
  const auto device = gpu::openGpu();
  auto group = gpu::backend("cuda").communicator(*device, me.spec, me.store);
  if (!group.ok()) return group.error().text();
  Direct direct;
  if (std::string problem = direct.form(me); !problem.empty()) return problem;
  bool bad = false;
  for (const uint64_t bytes : {8, 1024, 16384})
    if (std::string problem = compare(**group, *device, direct, bytes, bad); !problem.empty()) return problem;
  return bad && me.spec.rank == 0 ? "over the goal" : "";
}

int benchmark() {
  const testing::TempDir folder;
  setenv("MUSTER_FAKE_NCCL_FOLDER", folder.path().c_str(), 1);
  fmt::print("all_reduce over the fake NCCL, median of {} pairs of {} runs; goal: {} of NCCL alone\n", kPairs,
             kRuns, kGoal);
  fmt::print("{:<6} {:<12} {:>12} {:>12} {:>10}\n", "ranks", "message", "ours, us", "direct, us", "ratio");
  std::fflush(stdout);
  int code = 0;
  for (const int ranks : {1, 2})
    for (const std::string& said : testing::runRanks(ranks, contest, 300)) {
      if (said.empty()) continue;
      fmt::print(stderr, "nccl-bench: {}\n", said);
      code = 1;
    }
  return code;
}

}  // namespace
}  // namespace muster

int main() {
  return muster::benchmark();
}
