// SPDX-License-Identifier: Apache-2.0
// Declares the parameters of a sweep and spreads its sizes.
#include "plugins/collective/params.h"

#include <algorithm>
#include <cmath>

#include "plugins/collective/fabrics.h"
#include "runner/core/text.h"

namespace muster::collective {
namespace {

constexpr size_t kMostSizes = 1000;

/// `from`, then each `factor` times the one before, `to` at most.
Result<std::vector<uint64_t>> spreadSizes(double from, double to, double factor) {
  std::vector<uint64_t> sizes;
  for (double size = from; size <= to * (1 + 1e-9); size *= factor) {
    const auto whole = static_cast<uint64_t>(std::llround(size));
    if (sizes.empty() || whole > sizes.back()) sizes.push_back(whole);
    if (sizes.size() > kMostSizes)
      return Error{ErrorCode::kUsage, "more than 1000 sizes; raise factor or from", "params.factor"};
  }
  if (sizes.empty())
    return Error{ErrorCode::kUsage, "from is larger than to, so there is no size to run", "params.from"};
  return sizes;
}

Status readSettings(const std::string& texts, std::map<std::string, std::string>& out) {
  for (const std::string& text : split(texts, ' ')) {
    if (text.empty()) continue;
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error{ErrorCode::kUsage, "\"" + printable(text, 80) + "\" is not a setting, expected NAME=value",
                   "params.settings"};
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return {};
}

}  // namespace

void Params::declare(sdk::ParamTable& param) {
  param("op", spec.op, "all_reduce",
        {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter",
         "sendrecv"},
        collectiveOpFromName, "collective operation");
  param("dtype", spec.dtype, "f32",
        {"f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"}, dtypeFromName,
        "element type; skipped if the device does not support it");
  param("reduction", spec.reduce, "sum", {"sum", "prod", "min", "max", "avg"}, reduceOpFromName,
        "operation that all_reduce, reduce_scatter and reduce apply to the elements");
  param("root", spec.root, 0, {0, 1000000}, "root rank of broadcast, reduce, gather and scatter");
  param("from", from, "B", "8 B", {"1 B", "16 TiB"}, "smallest message size");
  param("to", to, "B", "128 MiB", {"1 B", "16 TiB"}, "largest message size");
  param("factor", factor, 2, {1.01, 1000000}, "factor from one size to the next");
  param("placements", placements, {"out_of_place", "in_place"}, {"out_of_place", "in_place"},
        "buffer placement; in_place is skipped for alltoall and sendrecv");
  param("checks", checks, 1, {1, 1000000},
        "checked runs of each size and placement before timing; more runs find rarer errors");
  param("warmup", warmup, 5, {0, 1000000}, "untimed runs of each size before timing");
  param("iterations", iterations, 20, {1, 100000}, "samples of each size");
  param("sample_time", sampleTime, "s", "500us", {"0s", "1m"},
        "minimum duration of a sample; shorter runs are repeated");
  param("latency_to", latencyTo, "B", "1 KiB", {"0 B", "16 TiB"},
        "largest size whose time is also reported as latency");
  param("local_compute_probes", localComputeProbes, 10, {0, 10000},
        "number of local_compute_time samples; 0: none");
  param("interface", interface, "", "network interface or address to use; empty: the backend's choice");
  param(
      "fabric", fabric, "none", fabricNames(),
      "NCCL settings published for this fabric (plugins/collective/fabrics.cpp); `settings` overrides them; "
      "auto: "
      "of the fabric that the detected NICs belong to, without those that the environment or nccl.conf sets");
  param("graph", graph, false,
        "time a CUDA graph of the runs, without launch overhead; skipped if the backend has no graphs");
  param("settings", addedSettings, "",
        "library settings NAME=value, separated by spaces (NCCL_ALGO=Ring NCCL_P2P_DISABLE=1)");
  param("call_timeout", callTimeout, "s", "1m", {"1ms", "1h"}, "timeout after which a peer counts as lost");
}

Status Params::complete() {
  MUSTER_TRY(settings, fabricSettings(fabric));
  MUSTER_CHECK_OK(readSettings(addedSettings, settings));
  MUSTER_TRY(sizes, spreadSizes(from, to, factor));
  for (bool place : {false, true}) {
    const bool wanted = std::count(placements.begin(), placements.end(), placementName(place)) > 0;
    if (wanted && (!place || worksInPlace(spec.op))) inPlace.push_back(place);
  }
  if (inPlace.empty())
    return Error{ErrorCode::kUsage,
                 collectiveOpName(spec.op) + std::string(" has no form in place, and no other was asked for"),
                 "params.placements"};
  return {};
}

uint64_t countFor(const CollectiveSpec& spec, uint64_t bytes, int ranks) {
  const uint64_t elements = bytes * 8 / dtypeBits(spec.dtype);
  return std::max<uint64_t>(1, countsPerRank(spec.op) ? elements / static_cast<uint64_t>(ranks) : elements);
}

const char* placementName(bool inPlace) {
  return inPlace ? "in_place" : "out_of_place";
}

}  // namespace muster::collective
