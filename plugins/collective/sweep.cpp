// SPDX-License-Identifier: Apache-2.0
// Test "sweep": one collective in one type over all sizes. Rank 0 tells the group's figures, every rank what
// was wrong on it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "kernels/checks/collective_values.h"
#include "plugins/collective/local_compute_time.h"
#include "plugins/collective/nccl_tests.h"
#include "plugins/collective/tests.h"
#include "runner/core/text.h"

namespace muster::collective {
namespace {

/// Whether all that leaves a node goes from GPU memory to the HCA directly; sockets never do. Not known of
/// the networks of other vendors, unless they say so.
std::optional<bool> usesGpuDirect(const std::vector<std::string>& transports) {
  std::optional<bool> direct;
  for (const std::string& name : transports) {
    const bool isDirect = name.ends_with("+gdr");
    const bool known =
        isDirect || name == "ib" || name == "roce" || name == "socket" || name.starts_with("collnet-");
    if (known) direct = isDirect && direct.value_or(true);
  }
  return direct;
}

class Sweep {
 public:
  Sweep(const Bench& bench, Params params, uint64_t seed) : bench_(bench), seed_(seed) {
    result_.params = std::move(params);
    if (bench.fabric != nullptr)
      result_.params.settings.insert(bench.fabric->settings.begin(), bench.fabric->settings.end());
    result_.ranks = bench.group.size();
    result_.device = bench.device.info().name;
    result_.implementation = bench.group.implementation();
  }

  Status run() {
    Status measured = runSizes();
    // What was found wrong counts, whatever ended the sweep. That nothing was is said of a whole one only.
    if (measured.ok() || wrong_ > 0) MUSTER_CHECK_OK(reportCorrectness());
    MUSTER_CHECK_OK(std::move(measured));
    MUSTER_CHECK_OK(reportLocalComputeTime());
    if (!isLeader()) return {};
    for (const SizeResult& size : result_.sizes) MUSTER_CHECK_OK(reportSize(size));
    MUSTER_CHECK_OK(reportGroup());
    return writeArtifacts();
  }

 private:
  [[nodiscard]] bool isLeader() const { return bench_.group.rank() == 0; }

  Status runSizes() {
    const auto& sizes = result_.params.sizes;
    for (size_t i = 0; i < sizes.size(); ++i) {
      place_ = static_cast<double>(i) / static_cast<double>(sizes.size());
      MUSTER_CHECK_OK(runSize(sizes[i]));
    }
    return {};
  }

  Status runSize(uint64_t asked) {
    SizeResult size;
    size.asked = asked;
    size.spec = result_.params.spec;
    size.spec.count = countFor(size.spec, asked, result_.ranks);
    // The smallest sizes round to the same one.
    if (!counts_.insert(size.spec.count).second) return {};
    size.bytes = size.spec.bytes(result_.ranks);
    for (bool inPlace : result_.params.inPlace) {
      size.spec.inPlace = inPlace;
      MUSTER_CHECK_OK(runPlacement(size));
    }
    result_.sizes.push_back(std::move(size));
    return {};
  }

  Status runPlacement(SizeResult& size) {
    const std::string text =
        fmt::format("{} {} of {} B, {}", collectiveOpName(size.spec.op), dtypeName(size.spec.dtype),
                    size.bytes, placementName(size.spec.inPlace));
    const auto keepGoing = [&] {
      bench_.host.progress(place_, text);
      return !bench_.host.cancelled();
    };
    Timing timing;
    Status measured =
        measure({bench_.group, result_.params, size.spec, seed_ + size.asked, keepGoing}, timing);
    noteFault(size.spec, text, timing.mismatch);
    MUSTER_CHECK_OK(std::move(measured).context(text));
    size.timings.push_back(std::move(timing));
    return {};
  }

  /// Whose data arrived wrong, in the words that a fleet looks for (reports/fleet/read/cause.h).
  [[nodiscard]] std::string sourceOf(const CollectiveSpec& spec, const CollectiveMismatch& found) const {
    if (found.source >= 0)
      return fmt::format("from rank {}{}", found.source,
                         found.inputRight ? ", whose input is right: it was damaged on its way" : "");
    const int owner = originOf(spec, bench_.group.rank(), result_.ranks, found.firstElement).rank;
    return found.inputRight ? fmt::format(
                                  "from a rank that cannot be told: the input of rank {} is right, it "
                                  "was damaged on its way or on arrival",
                                  owner)
                            : "from a rank that cannot be told";
  }

  void noteFault(const CollectiveSpec& spec, const std::string& text, const CollectiveMismatch& found) {
    if (found.wrong == 0) return;
    wrong_ += found.wrong;
    if (!firstFault_.empty()) return;
    firstFault_ = fmt::format("rank {}: {}: {} wrong elements, the first at {}, {}", bench_.group.rank(),
                              text, found.wrong, found.firstElement, sourceOf(spec, found));
    bench_.host.log(MUSTER_LOG_ERROR, firstFault_);
  }

  Status reportCorrectness() {
    MUSTER_CHECK_OK(bench_.host.measurement("collective_wrong_elements", "count",
                                            {static_cast<double>(wrong_)}, {}, bench_.device.now()));
    return firstFault_.empty() ? Status() : bench_.host.fact("collective_first_fault", firstFault_);
  }

  Status reportLocalComputeTime() {
    const int probes = result_.params.localComputeProbes;
    if (probes == 0) return {};
    MUSTER_TRY(const double seconds, measureLocalComputeTime(bench_, probes));
    return bench_.host.measurement("local_compute_time", "s", {seconds}, {}, bench_.device.now());
  }

  Status reportSize(const SizeResult& size) {
    for (const Timing& timing : size.timings) MUSTER_CHECK_OK(reportTiming(size, timing));
    return {};
  }

  Status reportTiming(const SizeResult& size, const Timing& timing) {
    sdk::Host::LabelList labels = {{"bytes", std::to_string(size.asked)},
                                   {"placement", placementName(timing.inPlace)}};
    std::vector<double> algorithm, bus;
    for (double seconds : timing.seconds) {
      algorithm.push_back(size.algorithmBandwidth(seconds));
      bus.push_back(size.busBandwidth(seconds, result_.ranks));
    }
    const double now = bench_.device.now();
    const sdk::Host& host = bench_.host;
    MUSTER_CHECK_OK(host.measurement("bus_bandwidth", "B/s", bus, labels, now));
    MUSTER_CHECK_OK(host.measurement("algorithm_bandwidth", "B/s", algorithm, labels, now));
    MUSTER_CHECK_OK(host.measurement("collective_time", "s", timing.seconds, labels, now));
    if (size.asked <= result_.params.latencyTo)
      MUSTER_CHECK_OK(host.measurement("latency", "s", timing.seconds, labels, now));
    if (size.asked != result_.sizes.back().asked) return {};
    if (bench_.nicLineRate > 0) {
      std::vector<double> shares = bus;
      for (double& share : shares) share /= bench_.nicLineRate;
      MUSTER_CHECK_OK(host.measurement("nic_line_rate_share", "ratio", shares, labels, now));
    }
    labels.emplace_back("ranks", std::to_string(result_.ranks));
    labels.emplace_back("nodes", std::to_string(bench_.nodes));
    return host.measurement("large_message_bus_bandwidth", "B/s", bus, labels, now);
  }

  Status reportGroup() {
    MUSTER_CHECK_OK(bench_.host.measurement("collective_ranks", "count", {static_cast<double>(result_.ranks)},
                                            {}, bench_.device.now()));
    MUSTER_CHECK_OK(bench_.host.fact("collective_implementation", result_.implementation));
    MUSTER_CHECK_OK(reportFabric());
    MUSTER_CHECK_OK(reportSettings());
    return reportTransport();
  }

  Status reportFabric() {
    if (bench_.fabric == nullptr) return {};
    MUSTER_CHECK_OK(bench_.host.fact("fabric", bench_.fabric->name));
    return bench_.host.fact("fabric_evidence", bench_.fabric->evidence);
  }

  /// Whether what the plan set was really in force.
  Status reportSettings() {
    MUSTER_TRY(SettingsUse use, bench_.group.settingsUse());
    // A library that says nothing of its settings proves none.
    if (use.taken.empty() && use.unsaid.empty())
      for (const auto& [name, value] : result_.params.settings) use.unsaid.push_back(name);
    if (!use.taken.empty()) MUSTER_CHECK_OK(bench_.host.fact("settings_taken", join(use.taken, " ")));
    return bench_.host.fact("unconfirmed_settings", use.unsaid.empty() ? "none" : join(use.unsaid, " "));
  }

  /// Transports that carried a hundredth of the bytes or more: the rest is background.
  Status reportTransport() {
    MUSTER_TRY(std::vector<TransportUse> uses, bench_.group.transports());
    double all = 0;
    for (const TransportUse& use : uses) all += use.bytes;
    std::vector<std::string> names, evidence;
    for (const TransportUse& use : uses) {
      if (use.bytes < all / 100) continue;
      if (std::count(names.begin(), names.end(), use.transport) == 0) names.push_back(use.transport);
      evidence.push_back(use.evidence);
    }
    MUSTER_CHECK_OK(bench_.host.fact("transport", join(names, ",")));
    MUSTER_CHECK_OK(bench_.host.fact("transport_evidence", join(evidence, "; ")));
    if (const auto direct = usesGpuDirect(names); direct && bench_.nodes > 1)
      MUSTER_CHECK_OK(
          bench_.host.measurement("gpudirect_rdma", "bool", {*direct ? 1.0 : 0.0}, {}, bench_.device.now()));
    return bench_.host.measurement("transport_bytes", "B", {all}, {}, bench_.device.now());
  }

  Status writeArtifacts() {
    const std::string name =
        fmt::format("{}-{}", collectiveOpName(result_.params.spec.op), dtypeName(result_.params.spec.dtype));
    MUSTER_CHECK_OK(bench_.host.artifact(name + ".txt", "text/plain", ncclTestsTable(result_)));
    return bench_.host.artifact(name + ".json", "application/json", dumpJson(ncclTestsJson(result_)));
  }

  const Bench& bench_;
  uint64_t seed_;
  SweepResult result_;
  std::set<uint64_t> counts_;
  double place_ = 0;  ///< share of the sizes that are done
  uint64_t wrong_ = 0;
  std::string firstFault_;
};

}  // namespace

Status runSweep(const Bench& bench, const Json& json, uint64_t seed) {
  if (bench.group.size() < 2)
    return Error{ErrorCode::kUnsupported,
                 "a collective needs two ranks or more, and this group has one; set `ranks`",
                 bench.device.info().id};
  MUSTER_TRY(Params params, sdk::readParams<Params>(json));
  return Sweep(bench, std::move(params), seed).run();
}

}  // namespace muster::collective
