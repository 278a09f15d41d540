// SPDX-License-Identifier: Apache-2.0
// Muster's collectives beside Gloo called directly in a loop: two ranks of this CPU, large messages, paired
// runs. Fails where a bus bandwidth is below kGoal of Gloo's own. MUSTER_BUILD tells where the backend is.
#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tests/kernels/host_gloo/ranks.h"
#include "tests/support/process.h"

namespace muster {
namespace {

constexpr int kRanks = 2;
constexpr int kPairs = 61;  // two ranks on the loopback differ by a tenth from one pair to the next
constexpr double kGoal = 0.95;
constexpr uint64_t kBytes = 32 << 20;

using Clock = std::chrono::steady_clock;
using Context = std::shared_ptr<gloo::rendezvous::Context>;

/// Gloo alone: its own context, buffers and reduction.
class Direct {
 public:
  Direct(Context context, const CollectiveSpec& spec)
      : context_(std::move(context)),
        spec_(spec),
        send_(spec.sendCount(kRanks), 1.0f),
        receive_(spec.receiveCount(kRanks), 0.0f) {}

  double seconds() {
    gloo::BarrierOptions barrier(context_);
    gloo::barrier(barrier);
    const auto start = Clock::now();
    run();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  template <typename Options>
  Options operands() {
    Options options(context_);
    options.setInput(send_.data(), send_.size());
    options.setOutput(receive_.data(), receive_.size());
    return options;
  }

  void run() {
    switch (spec_.op) {
      case CollectiveOp::kAllReduce: {
        auto options = operands<gloo::AllreduceOptions>();
        options.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
        return gloo::allreduce(options);
      }
      case CollectiveOp::kReduce: {
        auto options = operands<gloo::ReduceOptions>();
        options.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
        options.setRoot(0);
        return gloo::reduce(options);
      }
      case CollectiveOp::kAllGather: {
        auto options = operands<gloo::AllgatherOptions>();
        return gloo::allgather(options);
      }
      case CollectiveOp::kAllToAll: {
        auto options = operands<gloo::AlltoallOptions>();
        return gloo::alltoall(options);
      }
      case CollectiveOp::kBroadcast: {
        gloo::BroadcastOptions options(context_);
        if (context_->rank == 0) options.setInput(send_.data(), send_.size());
        options.setOutput(receive_.data(), receive_.size());
        options.setRoot(0);
        return gloo::broadcast(options);
      }
      case CollectiveOp::kGather: {
        gloo::GatherOptions options(context_);
        options.setInput(send_.data(), send_.size());
        if (context_->rank == 0) options.setOutput(receive_.data(), receive_.size());
        options.setRoot(0);
        return gloo::gather(options);
      }
      case CollectiveOp::kScatter: {
        gloo::ScatterOptions options(context_);
        if (context_->rank == 0)
          options.setInputs(std::vector<float*>{send_.data(), send_.data() + spec_.count}, spec_.count);
        options.setOutput(receive_.data(), receive_.size());
        options.setRoot(0);
        return gloo::scatter(options);
      }
      default:
        return;
    }
  }

  Context context_;
  CollectiveSpec spec_;
  std::vector<float> send_;
  std::vector<float> receive_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Times of one collective, ours and Gloo's in turns, on the slower rank; "" or what went wrong.
std::string compare(Communicator& group, const Context& context, CollectiveOp op, bool& bad) {
  CollectiveSpec spec;
  spec.op = op;
  spec.count = kBytes / sizeof(float) / (countsPerRank(op) ? kRanks : 1);
  auto work = group.collective(spec);
  if (!work.ok()) return work.error().text();
  if (Status ready = (*work)->prepare(1); !ready.ok()) return ready.error().text();
  Direct direct(context, spec);
  std::vector<double> ours, theirs, ratios;
  for (int pair = -2; pair < kPairs; ++pair) {  // the first two warm up
    const bool oursFirst = pair % 2 == 0;
    double alone = oursFirst ? 0 : direct.seconds();
    if (Status together = group.barrier(); !together.ok()) return together.error().text();
    auto own = group.time([&] { return (*work)->run(); });
    if (!own.ok()) return own.error().text();
    if (oursFirst) alone = direct.seconds();
    const auto slower = group.maxOverRanks({*own, alone});
    if (!slower.ok()) return slower.error().text();
    if (pair < 0) continue;
    ours.push_back((*slower)[0]);
    theirs.push_back((*slower)[1]);
    ratios.push_back((*slower)[1] / (*slower)[0]);
  }
  const double scale = static_cast<double>(spec.bytes(kRanks)) * spec.busFactor(kRanks) / 1e9;
  const double ratio = median(ratios);
  bad = bad || ratio < kGoal;
  if (group.rank() == 0)
    fmt::print("{:<12} {:>12.2f} {:>12.2f} {:>10.2f}{}\n", collectiveOpName(op), scale / median(ours),
               scale / median(theirs), ratio, ratio < kGoal ? "  below the goal" : "");
  std::fflush(stdout);
  return "";
}

Context connect(const std::string& folder, int rank) {
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, kRanks);
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  gloo::rendezvous::FileStore store(folder);
  context->connectFullMesh(store, device);
  return context;
}

int benchmark() {
  const testing::TempDir folder;
  fmt::print("{} ranks over loopback, {} MiB of f32, median of {} pairs; goal: {} of Gloo alone\n", kRanks,
             kBytes >> 20, kPairs, kGoal);
  fmt::print("{:<12} {:>12} {:>12} {:>10}\n", "collective", "ours, GB/s", "Gloo, GB/s", "ratio");
  std::fflush(stdout);
  const auto words = testing::runRanks(
      kRanks,
      [&](testing::Rank& rank) -> std::string {
        auto group = rank.join();
        if (!group.ok()) return group.error().text();
        const Context context = connect(folder.path().string(), rank.spec.rank);
        bool bad = false;
        for (CollectiveOp op :
             {CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kBroadcast,
              CollectiveOp::kReduce, CollectiveOp::kAllToAll, CollectiveOp::kGather, CollectiveOp::kScatter})
          if (std::string problem = compare(**group, context, op, bad); !problem.empty()) return problem;
        return bad && rank.spec.rank == 0 ? "below the goal" : "";
      },
      300);
  int code = 0;
  for (const std::string& said : words) {
    if (said.empty()) continue;
    fmt::print(stderr, "collective-bench: {}\n", said);
    code = 1;
  }
  return code;
}

}  // namespace
}  // namespace muster

int main() {
  return muster::benchmark();
}
