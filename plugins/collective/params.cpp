// SPDX-License-Identifier: Apache-2.0
// Reads the parameters of a sweep and spreads its sizes.
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

Status readNames(const std::string& op, const std::string& dtype, const std::string& reduction,
                 CollectiveSpec& spec) {
  MUSTER_TRY(spec.op, collectiveOpFromName(op));
  MUSTER_TRY(spec.dtype, dtypeFromName(dtype));
  MUSTER_TRY(spec.reduce, reduceOpFromName(reduction));
  return {};
}

}  // namespace

Result<Params> readParams(const Json& json) {
  Params params;
  std::string op, dtype, reduction, fabric = "none", settings;
  std::vector<std::string> placements;
  double from = 0, to = 0, factor = 2, latencyTo = 0;
  JsonReader reader(json, "params");
  reader.read("op", op);
  reader.read("dtype", dtype);
  reader.read("reduction", reduction);
  reader.read("root", params.spec.root);
  reader.read("from", from);
  reader.read("to", to);
  reader.read("factor", factor);
  reader.read("placements", placements);
  reader.read("checks", params.checks);
  reader.read("warmup", params.warmup);
  reader.read("iterations", params.iterations);
  reader.read("sample_time", params.sampleTime);
  reader.read("latency_to", latencyTo);
  reader.read("own_time_probes", params.ownTimeProbes);
  reader.read("interface", params.interface);
  reader.read("fabric", fabric);
  reader.read("settings", settings);
  reader.read("graph", params.graph);
  reader.read("call_timeout", params.callTimeout);
  MUSTER_CHECK_OK(reader.status());
  MUSTER_CHECK_OK(readNames(op, dtype, reduction, params.spec));
  MUSTER_TRY(params.settings, fabricSettings(fabric));
  MUSTER_CHECK_OK(readSettings(settings, params.settings));
  MUSTER_TRY(params.sizes, spreadSizes(from, to, factor));
  params.latencyTo = static_cast<uint64_t>(latencyTo);
  for (bool inPlace : {false, true}) {
    const bool wanted = std::count(placements.begin(), placements.end(), placementName(inPlace)) > 0;
    if (wanted && (!inPlace || worksInPlace(params.spec.op))) params.inPlace.push_back(inPlace);
  }
  if (params.inPlace.empty())
    return Error{ErrorCode::kUsage, op + " has no form in place, and no other was asked for",
                 "params.placements"};
  return params;
}

uint64_t countFor(const CollectiveSpec& spec, uint64_t bytes, int ranks) {
  const uint64_t elements = bytes * 8 / dtypeBits(spec.dtype);
  return std::max<uint64_t>(1, countsPerRank(spec.op) ? elements / static_cast<uint64_t>(ranks) : elements);
}

const char* placementName(bool inPlace) {
  return inPlace ? "in_place" : "out_of_place";
}

}  // namespace muster::collective
