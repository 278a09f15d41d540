// SPDX-License-Identifier: Apache-2.0
// The backend that a session of the env plugin looks at, and how its readings are reported.
#include "plugins/env/machine.h"

#include <map>

#include "plugins/env/describe.h"
#include "runner/core/text.h"

namespace muster::env {

namespace {

/// Facts that carry the words of a number.
const std::map<std::string, std::string>& factNames() {
  static const std::map<std::string, std::string> names{{reading::kBusyShare, "busiest_process"},
                                                        {"hardware_errors", "last_hardware_error"},
                                                        {reading::kXidFatal, "last_xid"},
                                                        {reading::kXidApplication, "last_xid"},
                                                        {reading::kXidInformation, "last_xid"}};
  return names;
}

/// Labels that carry the words of a number about a GPU, so that its verdict says what was found.
const std::map<std::string, std::string>& labelNames() {
  static const std::map<std::string, std::string> names{{reading::kXidFatal, "xid"},
                                                        {reading::kXidApplication, "xid"},
                                                        {reading::kNvlinkErrors, "links"},
                                                        {reading::kNvlinkCrcErrors, "links"},
                                                        {"nvlink_crc_per_second", "links"},
                                                        {"device_lost", "reason"},
                                                        {reading::kXidInformation, "xid"},
                                                        {reading::kSxidFatal, "sxid"},
                                                        {reading::kSxidNonfatal, "sxid"},
                                                        {"hca_log_errors", "message"},
                                                        {"hca_pcie_share", "link"},
                                                        {"hca_link_flaps", "message"},
                                                        {"fabric_clique_differs", "cliques"},
                                                        {"fabric_manager_errors", "message"},
                                                        {"imex_ready", "reason"},
                                                        {"nvlinks_active", "inactive"},
                                                        {"c2c_links_down", "inactive"},
                                                        {"fabric_ready", "reason"},
                                                        {reading::kFabricHealthy, "reason"},
                                                        {"recovery_needed", "action"},
                                                        {"gpu_processes", "processes"},
                                                        {"vbios_differs", "versions"},
                                                        {"acs_redirecting_bridges", "bridges"}};
  return names;
}

}  // namespace

Result<Machine> openMachine(const Json& context) {
  Machine machine;
  BackendOptions options;
  int worldSize = 1;
  JsonReader r(context, "context");
  r.read("backend", machine.backendName);
  r.read("backend_dir", options.folder);
  r.optional("scenario", options.scenario);
  r.optional("virtual_start", options.virtualStart);
  r.optional("seed", options.seed);
  r.optional("world_size", worldSize);
  r.optional("run_folder", machine.runFolder);
  r.optional("counters", machine.counters);
  MUSTER_CHECK_OK(r.status());
  if (context.contains("node") && context["node"].is_object()) {
    JsonReader node(context["node"], "context.node");
    node.optional("rank", options.nodeRank);
    node.optional("count", options.nodeCount);
    node.optional("run_count", options.nodeCount);
    MUSTER_CHECK_OK(node.status());
  }
  if (worldSize > 1 && context.contains("device") && context["device"].is_object())
    machine.device = context["device"].value("id", "");
  machine.virtualStart = options.virtualStart;
  MUSTER_TRY(machine.backend, loadBackend(machine.backendName, options));
  MUSTER_TRY(machine.inventory, machine.backend->inventory());
  return machine;
}

Reporter::Reporter(const sdk::Host& host, const Machine& machine, const std::string& test)
    : host_(host), machine_(machine), declared_(metricNames(test, machine.backendName)) {}

Status Reporter::report(const Reading& reading, double time) {
  if (declared_.count(reading.name) == 0 || !machine_.reports(reading)) return {};
  sdk::Host::LabelList labels(reading.labels.begin(), reading.labels.end());
  if (!reading.device.empty()) labels.emplace_back("device", reading.device);
  const auto label = labelNames().find(reading.name);
  if (label != labelNames().end() && !reading.text.empty()) labels.emplace_back(label->second, reading.text);
  if (reading.unit == "text") return host_.fact(reading.name, reading.text, labels);
  if (keeping_) {
    Series& series = kept_[{reading.name, std::move(labels)}];
    series.unit = reading.unit;
    series.values.push_back(reading.value);
    series.times.push_back(time);
  } else {
    MUSTER_CHECK_OK(host_.measurement(reading.name, reading.unit, {reading.value}, labels, time));
  }
  const auto fact = factNames().find(reading.name);
  if (fact == factNames().end() || reading.text.empty() || declared_.count(fact->second) == 0) return {};
  if (!said_.insert(fact->second + "\n" + reading.device + "\n" + reading.text).second) return {};
  return host_.fact(
      fact->second, reading.text,
      reading.device.empty() ? sdk::Host::LabelList{} : sdk::Host::LabelList{{"device", reading.device}});
}

Status Reporter::report(const std::vector<Reading>& readings, double time) {
  for (const Reading& reading : readings) MUSTER_CHECK_OK(report(reading, time));
  return {};
}

Status Reporter::flush() {
  for (const auto& [key, series] : kept_)
    MUSTER_CHECK_OK(host_.series(key.first, series.unit, series.values, series.times, key.second));
  kept_.clear();
  return {};
}

std::string unreadableText(const std::vector<UnreadableSource>& sources) {
  std::vector<std::string> parts;
  for (const UnreadableSource& source : sources) {
    const std::string device = source.device.empty() ? "" : " of " + source.device;
    parts.push_back(source.name + device + ": " + source.reason);
  }
  return join(parts, " | ");
}

}  // namespace muster::env
