// SPDX-License-Identifier: Apache-2.0
// Writes the inventory and values of a record as a scenario.
#include "runner/app/report/captured_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "runner/core/clock.h"
#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/sku/profile_writer.h"

namespace muster {
namespace {

constexpr double kSlower = 0.999;  ///< of the best device: nearer ones are as fast
constexpr double kSlowerPair = 0.97;
constexpr double kMostNoise = 0.05;
constexpr int kDigits = 6;
const std::vector<std::string> kNvlink = {"nvlink"};
const std::vector<std::string> kPcie = {"pcie_switch", "pcie_host", "pcie_system"};
const std::set<std::string> kErrors = {"env.ecc_corrected", "env.ecc_uncorrected", "env.row_remap_pending",
                                       "env.row_remap_failed"};

/// A value that a scenario states, and by which metric it was measured.
struct Source {
  const char* metric;
  Labels labels;
  const char* ops;  ///< of a fault that slows it down; empty: all devices alike
};

using ByDevice = std::map<std::string, double>;

/// Of an inventory, which a record may hold in any form.
std::string textIn(const Json& table, const char* key) {
  return table.is_object() && table.contains(key) && table[key].is_string() ? table[key].get<std::string>()
                                                                            : "";
}

double numberIn(const Json& table, const char* key) {
  return table.is_object() && table.contains(key) && table[key].is_number() ? table[key].get<double>() : 0;
}

Json sectionOf(const Json& inventory, const char* key) {
  return inventory.is_object() && inventory.contains(key) ? inventory[key] : Json();
}

class Capture {
 public:
  Capture(const Record& record, const std::string& name) : record_(record), name_(name) {
    for (const StageRecord& stage : record.stages) {
      std::map<std::tuple<std::string, std::string, int>, int> last;  // metric, case and rank -> attempt
      for (const Measurement& m : stage.measurements) {
        int& attempt = last[{m.metric, m.caseId, m.rank}];
        attempt = std::max(attempt, m.attempt);
      }
      for (const Measurement& m : stage.measurements)  // telemetry goes on through all attempts
        if (m.rank < 0 || m.attempt == last[{m.metric, m.caseId, m.rank}]) byMetric_[m.metric].push_back(&m);
    }
  }

  Result<CapturedScenario> make() {
    const Json devices = sectionOf(record_.inventory, "devices");
    if (!devices.is_array() || devices.empty())
      return Error{ErrorCode::kUsage, "the record has no device: its inventory could not be taken", ""};
    head();
    model(devices);
    MUSTER_CHECK_OK(figures());
    climate();
    node();
    network();
    faults(devices);
    listNotCaptured();
    return std::move(made_);
  }

 private:
  template <typename... T>
  void line(fmt::format_string<T...> form, T&&... parts) {
    made_.text += fmt::format(form, std::forward<T>(parts)...) + "\n";
  }

  void head() {
    line("# SPDX-License-Identifier: Apache-2.0");
    line("# Made by `muster capture` from a run of plan {} on {}: inventory and values of one node.",
         printable(record_.plan.name, 80), formatUtc(record_.started).substr(0, 10));
    line("schema = 1\nname = {}\ndescription = {}\nseed = 1", tomlText(name_),
         tomlText(fmt::format("Captured {}from a record of {}", record_.simulated ? "SIMULATED values " : "",
                              formatUtc(record_.started).substr(0, 10))));
  }

  void model(const Json& devices) {
    const Json& first = devices.front();
    line("\n[devices]\ncount = {}\nkind = {}\nname = {}\nmemory = {}", devices.size(),
         tomlText(textIn(first, "kind")), tomlText(textIn(first, "name")),
         quantity(numberIn(first, "memory_bytes"), "B"));
    if (const auto id = textIn(first, "pci_id"); !id.empty()) line("pci_id = {}", tomlText(id));
    if (const double cache = numberIn(first, "last_level_cache_bytes"); cache > 0)
      line("last_level_cache = {}", quantity(cache, "B"));
    table("devices.facts", sectionOf(first, "facts"));
    if (record_.peaks.empty()) return;
    line("\n[peaks]");
    for (const auto& [peak, value] : record_.peaks)
      if (peak.starts_with("flops.") || peak == "memory_bandwidth")
        line("{} = {}", tomlText(peak), quantity(value, peak == "memory_bandwidth" ? "B/s" : "FLOP/s"));
  }

  static std::string quantity(double value, const std::string& unit) {
    return tomlText(formatQuantity(value, unit, kDigits));
  }

  /// Texts, numbers and flags, but none that names this very machine.
  void table(const std::string& name, const Json& facts, const char* kind = "[{}]") {
    std::vector<std::string> lines;
    if (!facts.is_object()) return;
    for (const auto& [key, value] : facts.items()) {
      const bool own = key == "hostname" || key == "simulated" || key.find("serial") != std::string::npos ||
                       key.find("uuid") != std::string::npos || key.find("guid") != std::string::npos ||
                       key.find("machine_id") != std::string::npos;
      if (own || !(value.is_string() || value.is_number() || value.is_boolean())) continue;
      lines.push_back(tomlText(key) + " = " +
                      (value.is_string() ? tomlText(value.get<std::string>()) : dumpJson(value)));
    }
    if (lines.empty()) return;
    line("\n{}", fmt::format(fmt::runtime(kind), name));
    for (const std::string& one : lines) line("{}", one);
  }

  /// Each device's median over all samples of a metric with these labels.
  [[nodiscard]] ByDevice mediansOf(const std::string& metric, const Labels& labels) {
    std::map<std::string, std::vector<double>> samples;
    for (const Measurement* m : byMetric_[metric])
      if (labelsMatch(m->labels, labels))
        for (const double sample : m->samples)
          if (std::isfinite(sample) && sample > 0) samples[m->device].push_back(sample);
    ByDevice medians;
    for (const auto& [device, all] : samples) medians[device] = medianOf(all);
    return medians;
  }

  /// The best device's value; what the others reach of it becomes theirs. 0: not measured.
  double best(const Source& source) {
    const ByDevice all = mediansOf(source.metric, source.labels);
    double most = 0;
    for (const auto& [device, value] : all) most = std::max(most, value);
    if (source.ops[0] == '\0') return most;
    for (const auto& [device, value] : all) shares_[source.ops][device].push_back(value / most);
    captured_.insert(source.metric);
    return most;
  }

  Status figures() {
    line("\n# Rates of the best device without the cost of starting a kernel, which is in them already.");
    line("[figures]\nnoise = {}\nspread = \"0%\"\noverhead = \"0s\"\nramp = \"0s\"",
         quantity(noise(), "ratio"));
    line("clock = {}", quantity(clock_, "Hz"));
    const ByDevice latency = mediansOf("memory.latency", {});
    if (!latency.empty()) line("latency = {}", quantity(latency.begin()->second, "s"));
    line("[figures.gemm]");
    std::set<std::string> dtypes;
    for (const Measurement* m : byMetric_["compute.gemm_throughput"])
      if (const auto dtype = m->labels.find("dtype"); dtype != m->labels.end()) dtypes.insert(dtype->second);
    for (const std::string& dtype : dtypes)
      line("{} = {}", tomlText(dtype),
           quantity(best({"compute.gemm_throughput", {{"dtype", dtype}}, "gemm"}), "FLOP/s"));
    if (dtypes.empty()) return missing("compute.gemm_throughput", "compute.gemm");
    MUSTER_CHECK_OK(memory());
    copies();
    (void)best({"memory.pattern_read_rate", {}, "pattern"});
    (void)best({"train.rank_throughput", {}, "training"});
    return {};
  }

  static Error missing(const char* metric, const char* test) {
    return {ErrorCode::kUsage,
            fmt::format("the record has no {}, and every scenario needs it; run a plan with {}, such as "
                        "plans/node-quick.toml",
                        metric, test),
            ""};
  }

  /// The coefficient of variation of a long product, as the noise of one operation.
  double noise() {
    std::vector<double> all;
    for (const Measurement* m : byMetric_["compute.gemm_throughput"])
      if (const double cv = summarize(m->samples).cv; std::isfinite(cv)) all.push_back(cv);
    return all.empty() ? 0 : std::min(medianOf(all), kMostNoise);
  }

  Status memory() {
    line("[figures.memory]");
    std::map<std::string, double> rates;
    for (const char* op : {"read", "write", "copy", "triad"})
      rates[op] = best({"memory.bandwidth", {{"op", op}}, "memory"});
    const auto known =
        std::find_if(rates.begin(), rates.end(), [](const auto& rate) { return rate.second > 0; });
    if (known == rates.end()) return missing("memory.bandwidth", "memory.bandwidth");
    for (const auto& [op, rate] : rates)
      line("{} = {}{}", op, quantity(rate > 0 ? rate : known->second, "B/s"),
           rate > 0 ? "" : "  # not measured: as " + known->first);
    return {};
  }

  void copies() {
    const Labels near = {{"engine", "copy_engine"}, {"numa", "near"}};
    const double down = best({"memory.host_to_device_bandwidth", near, "host_copy"});
    const double up = best({"memory.device_to_host_bandwidth", near, "host_copy"});
    const double both = best({"memory.host_bidirectional_bandwidth", near, "host_copy"});
    if (!(down > 0 && up > 0 && both > 0)) return;
    line("[figures.copies]\nhost_to_device = {}\ndevice_to_host = {}\nhost_bidirectional = {}",
         quantity(down, "B/s"), quantity(up, "B/s"), quantity(both, "B/s"));
    const auto part = [&](const char* key, const Labels& labels) {
      const double rate = best({"memory.host_to_device_bandwidth", labels, ""});
      if (rate > 0) line("{} = {}", key, quantity(std::clamp(rate / down, 0.01, 1.0), "ratio"));
    };
    part("far", {{"engine", "copy_engine"}, {"numa", "far"}});
    part("kernel", {{"engine", "kernel"}, {"numa", "near"}});
    const bool nvlink = peers("peer", kNvlink);
    const bool pcie = peers("pcie_peer", kPcie);
    if (nvlink && pcie) line("bridged = {}", 1 + std::lround(best({"memory.nvlink_peers", {}, ""})));
  }

  /// Writes the rates over these links as `key`; whether there are any.
  bool peers(const char* key, const std::vector<std::string>& links) {
    double one = 0, both = 0;
    for (const std::string& link : links) {
      const auto rate = [&](const char* direction) {
        return best({"memory.peer_bandwidth", {{"direction", direction}, {"link", link}}, "peer_copy"});
      };
      one = std::max(one, rate("unidirectional"));
      both = std::max(both, rate("bidirectional"));
    }
    if (!(one > 0 && both > 0)) return false;
    line("{0} = {1}\n{0}_bidirectional = {2}", key, quantity(one, "B/s"), quantity(both, "B/s"));
    return true;
  }

  /// The range of what telemetry saw, over all devices; nothing where it saw nothing.
  std::vector<double> seen(const char* metric) {
    std::vector<double> all;
    for (const Measurement* m : byMetric_[metric])
      all.insert(all.end(), m->samples.begin(), m->samples.end());
    std::erase_if(all, [](double x) { return !std::isfinite(x); });
    std::sort(all.begin(), all.end());
    return all;
  }

  void climate() {
    const std::vector<double> heat = seen("env.temperature"), power = seen("env.power");
    if (heat.empty()) return;
    line("\n[climate]\nidle_temperature = {}\nload_temperature = {}", quantity(heat.front(), "degC"),
         quantity(heat.back(), "degC"));
    line("throttle_temperature = \"150 degC\"  # what heat slowed down is in the rates already");
    line("idle_clock = {}\nload_clock = {}", quantity(clock_, "Hz"), quantity(clock_, "Hz"));
    if (!power.empty())
      line("idle_power = {}\nload_power = {}", quantity(power.front(), "W"), quantity(power.back(), "W"));
  }

  void node() {
    table("node.host", sectionOf(record_.inventory, "host"));
    table("node.software", sectionOf(record_.inventory, "software"));
    for (const Json& nic : sectionOf(record_.inventory, "nics")) table("node.nics", nic, "[[{}]]");
  }

  void network() {
    const double bus =
        best({"collective.large_message_bus_bandwidth", {{"op", "all_reduce"}, {"nodes", "1"}}, ""});
    const auto peak = [&](const char* name) {
      const auto at = record_.peaks.find(name);
      return at == record_.peaks.end() ? 0.0 : at->second;
    };
    if (!(bus > 0)) return;
    captured_.insert("collective.large_message_bus_bandwidth");
    line("\n# Between nodes nothing was measured: the rate of the reference design.");
    line("[network]\nintra_bandwidth = {}\nrail_bandwidth = {}\nrails = {}", quantity(bus, "B/s"),
         quantity(peak("rail_bandwidth") > 0 ? peak("rail_bandwidth") : bus, "B/s"),
         peak("rails") > 0 ? static_cast<int>(peak("rails")) : 1);
  }

  void faults(const Json& devices) {
    for (size_t place = 0; place < devices.size(); ++place) {
      const std::string id = textIn(devices[place], "id");
      for (const auto& [ops, shares] : shares_) {
        const auto own = shares.find(id);
        if (own == shares.end()) continue;
        double sum = 0;
        for (const double share : own->second) sum += share;
        const double mean = sum / static_cast<double>(own->second.size());
        if (mean < kSlower)
          line("\n[[fault]]\nkind = \"slow\"\ndevice = {}\nfactor = {:.5f}\nops = [\"{}\"]", place, mean,
               ops);
      }
      errors(place, id);
    }
    slowPairs(devices);
  }

  double total(const char* metric, const std::string& device, const Labels& labels = {}) {
    double most = 0;
    for (const Measurement* m : byMetric_[metric])
      if (m->device == device && labelsMatch(m->labels, labels))
        for (const double sample : m->samples) most = std::max(most, std::isfinite(sample) ? sample : 0);
    return most;
  }

  void errors(size_t place, const std::string& id) {
    const bool pending = total("env.row_remap_pending", id) > 0,
               failed = total("env.row_remap_failed", id) > 0;
    for (const char* memory : {"dram", "sram"}) {
      const double corrected = total("env.ecc_corrected", id, {{"memory", memory}});
      const double uncorrected = memory[0] == 'd' ? total("env.ecc_uncorrected", id) : 0;
      const bool remap = memory[0] == 'd' && (pending || failed);
      if (!(corrected > 0 || uncorrected > 0 || remap)) continue;
      line("\n[[fault]]\nkind = \"ecc\"\ndevice = {}\nat = \"1us\"\nmemory = \"{}\"", place, memory);
      line("corrected = {}\nuncorrected = {}", std::min(corrected, 1e9), std::min(uncorrected, 1e9));
      if (memory[0] == 'd') line("remap_pending = {}\nremap_failed = {}", pending, failed);
    }
  }

  /// Pairs that are slower than both their devices.
  void slowPairs(const Json& devices) {
    std::map<std::string, size_t> places;
    for (size_t place = 0; place < devices.size(); ++place) places[textIn(devices[place], "id")] = place;
    for (const auto& links : {kNvlink, kPcie})
      for (const std::string& link : links)
        slowPairs(places, {{"direction", "unidirectional"}, {"link", link}});
  }

  void slowPairs(const std::map<std::string, size_t>& places, const Labels& oneWay) {
    std::map<std::pair<std::string, std::string>, std::vector<double>> pairs;
    for (const Measurement* m : byMetric_["memory.peer_bandwidth"]) {
      const auto peer = m->labels.find("peer");
      if (peer == m->labels.end() || !labelsMatch(m->labels, oneWay)) continue;
      std::vector<double>& samples = pairs[std::minmax(m->device, peer->second)];
      samples.insert(samples.end(), m->samples.begin(), m->samples.end());
    }
    const ByDevice own = mediansOf("memory.peer_bandwidth", oneWay);
    for (const auto& [ends, samples] : pairs) {
      const auto a = own.find(ends.first), b = own.find(ends.second);
      if (samples.empty() || a == own.end() || b == own.end() || places.count(ends.second) == 0) continue;
      const double share = medianOf(samples) / std::min(a->second, b->second);
      if (share < kSlowerPair)
        line("\n[[fault]]\nkind = \"slow_link\"\ndevice = {}\npeer_device = {}\nfactor = {:.4f}",
             places.at(ends.first), places.at(ends.second), share);
    }
  }

  void listNotCaptured() {
    std::set<std::string> left;
    for (const StageRecord& stage : record_.stages)
      for (const Verdict& verdict : stage.verdicts) {
        const bool failed = verdict.outcome == Outcome::kFail || verdict.outcome == Outcome::kError ||
                            verdict.outcome == Outcome::kFlaky;
        const std::string what = verdict.metric.empty() ? "stage " + stage.name : verdict.metric;
        if (failed && captured_.count(what) == 0 && kErrors.count(what) == 0) left.insert(what);
      }
    left.erase("env.device_count");
    made_.notCaptured.assign(left.begin(), left.end());
    for (const std::string& what : made_.notCaptured)
      line("{}# Failed in the record and not captured: {}", &what == &made_.notCaptured.front() ? "\n" : "",
           printable(what, 120));
  }

  const Record& record_;
  const std::string name_;
  std::map<std::string, std::vector<const Measurement*>> byMetric_;
  std::map<std::string, std::map<std::string, std::vector<double>>> shares_;  ///< by ops and device
  std::set<std::string> captured_;                                            ///< metrics
  double clock_ = 1.755e9;  ///< the same loaded and idle: what it did is in the rates
  CapturedScenario made_;
};

}  // namespace

Result<CapturedScenario> capturedScenario(const Record& record, const std::string& name) {
  return Capture(record, name).make();
}

}  // namespace muster
