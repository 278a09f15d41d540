// SPDX-License-Identifier: Apache-2.0
// The parameters of this plugin's tests.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/checks/timing.h"
#include "kernels/interfaces/copies.h"
#include "kernels/interfaces/device.h"
#include "kernels/spec/pattern.h"
#include "plugins/sdk/params.h"

namespace muster::memory {

/// One kernel of the test "bandwidth".
struct Op {
  const char* name;
  MemoryOp op;
  double streams;  ///< buffers that are read or written in one pass
};
inline constexpr std::array kOps = {Op{"read", MemoryOp::kRead, 1}, Op{"write", MemoryOp::kWrite, 1},
                                    Op{"copy", MemoryOp::kCopy, 2}, Op{"triad", MemoryOp::kTriad, 3}};

/// A list of rows of `table`, by their names.
template <typename Table>
void declareNamed(sdk::ParamTable& param, const char* name, std::vector<typename Table::value_type>& field,
                  const sdk::Names& standard, const Table& table, const char* summary) {
  sdk::Names names;
  for (const auto& row : table) names.emplace_back(row.name);
  const auto find = [&](std::string_view wanted) -> Result<typename Table::value_type> {
    for (const auto& row : table)
      if (wanted == row.name) return row;
    return Error{ErrorCode::kUsage, "there is no \"" + std::string(wanted) + "\" among the " + name,
                 std::string("params.") + name};
  };
  param(name, field, standard, names, find, summary);
}

/// A warm-up's longest time, and the shortest and longest of sampling.
inline void declareTimes(sdk::ParamTable& param, SamplingOptions& sampling,
                         const std::array<const char*, 3>& standard) {
  param("warmup", sampling.warmupMax, "s", standard[0], {"0s", "1h"},
        "longest warm-up of each metric; it ends early once the rate is steady");
  param("min_time", sampling.minTime, "s", standard[1], {"0s", "24h"}, "minimum sampling time per metric");
  param("max_time", sampling.maxTime, "s", standard[2], {"0s", "24h"},
        "longest sampling time if the value has not converged");
}
inline Status completeTimes(SamplingOptions& sampling) {
  sampling.warmupMin = std::min(sampling.warmupMin, sampling.warmupMax);
  sampling.maxTime = std::max(sampling.maxTime, sampling.minTime);
  return {};
}

struct BandwidthParams {
  std::vector<Op> ops;
  uint64_t bytes = 0;
  SamplingOptions sampling;

  void declare(sdk::ParamTable& param) {
    declareNamed(param, "ops", ops, {"read", "write", "copy", "triad"}, kOps,
                 "kernels to time: copy is a = b, triad a = b + s c");
    param("bytes", bytes, "B", "0 B", {"0 B", "16 TiB"},
          "size of each of the three buffers; 0 B: four times the last-level cache, in at most half of the "
          "free memory");
    param("warmup", sampling.warmupMax, "s", "2s", {"0s", "1h"},
          "longest warm-up of each kernel; it ends early once the rate is steady");
    param("min_time", sampling.minTime, "s", "1s", {"0s", "24h"}, "minimum sampling time per kernel");
    param("max_time", sampling.maxTime, "s", "5s", {"0s", "24h"},
          "longest sampling time if the rate has not converged");
  }
  Status complete() { return completeTimes(sampling); }
};

struct PatternParams {
  uint64_t bytes = 0;
  double fraction = 0;  ///< of what is free
  std::vector<NamedPattern> patterns;
  int passes = 0;

  void declare(sdk::ParamTable& param) {
    param("bytes", bytes, "B", "1 GiB", {"8 B", "16 TiB"},
          "memory to test; an error if more than the free memory");
    param("fraction", fraction, "ratio", "0%", {"0%", "95%"}, "share of free memory to test; 0%: use bytes");
    declareNamed(
        param, "patterns", patterns,
        {"zeros", "ones", "checkerboard", "inverse_checkerboard", "walking_one", "address", "random"},
        kPatterns, "patterns to write; see kernels/spec/pattern.h");
    param("passes", passes, 1, {1, 1000000}, "repetitions of all patterns");
  }
};

struct LatencyParams {
  uint64_t bytes = 0;
  uint64_t stride = 0;  ///< whole 64-bit words
  uint64_t steps = 0;
  SamplingOptions sampling;

  void declare(sdk::ParamTable& param) {
    param("bytes", bytes, "B", "0 B", {"0 B", "16 TiB"},
          "size of the ring, rounded down to a power of two of lines; 0 B: at least eight times the "
          "last-level cache");
    param("stride", stride, "B", "256 B", {"8 B", "1 GiB"},
          "distance between lines; each is visited once per round, in random order");
    param("steps", steps, 100000, {1, 1000000000}, "loads per timing");
    declareTimes(param, sampling, {"1s", "1s", "5s"});
  }
  Status complete() {
    stride = stride / 8 * 8;
    return completeTimes(sampling);
  }
};

/// What host_copy and peer share.
struct CopyParams {
  uint64_t bytes = 0;  ///< of each buffer, whole 64-bit words
  std::vector<CopyEngine> engines;
  double turnTimeout = 0;
  SamplingOptions sampling;

  void declareCopies(sdk::ParamTable& param) {
    param("bytes", bytes, "B", "256 MiB", {"8 B", "1 TiB"}, "size of each copy");
    param("engines", engines, {"copy_engine"}, {"copy_engine", "kernel"}, copyEngineFromName,
          "copy method: copy engines, or a kernel that reads and writes across the link");
  }
  void declareTurns(sdk::ParamTable& param) {
    param("turn_timeout", turnTimeout, "s", "5m", {"1s", "24h"}, "timeout for the turns of other ranks");
  }
  Status complete() {
    bytes = bytes / 8 * 8;
    return completeTimes(sampling);
  }
};

struct HostCopyParams : CopyParams {
  sdk::Names numa;

  void declare(sdk::ParamTable& param) {
    declareCopies(param);
    param("numa", numa, {"near", "far"}, {"near", "far"},
          "NUMA node of the host memory: near (the device's own) or far (the farthest, if there is another)");
    declareTurns(param);
    declareTimes(param, sampling, {"500ms", "300ms", "2s"});
  }
};

struct PeerParams : CopyParams {
  void declare(sdk::ParamTable& param) {
    declareCopies(param);
    declareTurns(param);
    declareTimes(param, sampling, {"100ms", "100ms", "1s"});
  }
};

}  // namespace muster::memory
