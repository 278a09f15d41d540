// SPDX-License-Identifier: Apache-2.0
// The rank's place and its RDMA ports.
#include "plugins/rdma/site.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/loading/open_device.h"
#include "runner/core/text.h"

namespace muster::rdma {

Result<Site> openSite(const sdk::Host& host, const Json& context) {
  Site site{host, nullptr};
  std::string scope;
  JsonReader reader(context, "context");
  reader.read("scope", scope);
  reader.optional("local_rank", site.localRank);
  reader.optional("local_size", site.localSize);
  if (const Json* node = reader.object("node"); node != nullptr) {
    JsonReader inner(*node, "context.node");
    inner.read("rank", site.nodeRank);
    inner.read("count", site.nodeCount);
    MUSTER_CHECK_OK(inner.status());
  }
  MUSTER_CHECK_OK(reader.status());
  site.clusterScope = scope == "cluster";
  site.localSize = std::max(1, site.localSize);
  MUSTER_TRY(site.backend, openBackend(context));
  site.virtualTime = site.backend->virtualTime();
  return site;
}

RdmaOptions rdmaOptions(const sdk::Host& host) {
  RdmaOptions options;
  if (const char* folder = std::getenv("MUSTER_PERFTEST_DIR")) options.engineFolder = folder;
  if (const char* sysfs = std::getenv("MUSTER_SYSFS")) options.sysfs = sysfs;
  options.cancelled = [host] { return host.cancelled(); };
  return options;
}

Result<std::vector<RdmaPort>> choosePorts(const std::vector<RdmaPort>& ports,
                                          const std::vector<std::string>& hcas) {
  if (ports.empty())
    return Error{ErrorCode::kUnsupported,
                 "this node has no RDMA device (class/infiniband of sysfs is empty or missing); load the "
                 "HCA's driver, "
                 "or in a container mount the host's sysfs and name it in MUSTER_SYSFS",
                 ""};
  if (std::count(hcas.begin(), hcas.end(), "all") > 0) return ports;
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (const RdmaPort& port : ports) names.push_back(port.name());
  for (const std::string& wanted : hcas) {
    const bool there = std::any_of(ports.begin(), ports.end(), [&](const RdmaPort& port) {
      return port.device == wanted || port.name() == wanted;
    });
    if (!there)
      return Error{ErrorCode::kNotFound,
                   "there is no RDMA device or port \"" + printable(wanted, 64) + "\"; this node has " +
                       join(names, ", "),
                   "hcas"};
  }
  std::vector<RdmaPort> chosen;
  std::copy_if(ports.begin(), ports.end(), std::back_inserter(chosen), [&](const RdmaPort& port) {
    return std::count(hcas.begin(), hcas.end(), port.device) +
               std::count(hcas.begin(), hcas.end(), port.name()) >
           0;
  });
  return chosen;
}

Status reportPort(const Site& site, const RdmaPort& port, double now) {
  const sdk::Host::LabelList labels{{"port", port.name()}};
  MUSTER_CHECK_OK(site.host.measurement("port_active", "bool", {port.active() ? 1.0 : 0.0}, labels, now));
  if (!(port.bytesPerSecond > 0)) return {};
  return site.host.measurement("line_rate", "B/s", {port.bytesPerSecond}, labels, now);
}

void Failures::add(const Error& error) {
  if (texts_.empty()) code_ = error.code;
  // A skip of some ports must not hide what failed on others.
  if (code_ == ErrorCode::kUnsupported) code_ = error.code;
  texts_.push_back(error.text());
}

Status Failures::status() const {
  if (texts_.empty()) return {};
  return Error{code_, join(texts_, " || "), ""};
}

}  // namespace muster::rdma
