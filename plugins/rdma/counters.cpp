// SPDX-License-Identifier: Apache-2.0
// Test "counters": what the error counters of each port grow by while it carries traffic, or while it rests.
#include <fmt/format.h>

#include <algorithm>

#include "plugins/rdma/params.h"
#include "plugins/rdma/tests.h"
#include "runner/core/text.h"

namespace muster::rdma {
namespace {

/// One look at the counters of all ports.
Result<std::vector<RdmaCounters>> look(Rdma& rdma, const std::vector<RdmaPort>& ports) {
  std::vector<RdmaCounters> counters;
  for (const RdmaPort& port : ports) {
    MUSTER_TRY(RdmaCounters one, rdma.counters(port));
    if (one.values.empty() && one.unreadable.empty())
      return Error{ErrorCode::kNotFound, "has no counter that could be read; is its driver too old?",
                   port.name()};
    counters.push_back(std::move(one));
  }
  return counters;
}

/// Lets each active port write to itself in turn until the time is up.
Status carryTraffic(const Site& site, Rdma& rdma, const std::vector<RdmaPort>& ports, RdmaTransfer transfer,
                    double duration, Failures& failures) {
  const double start = rdma.now();
  size_t active = 0;
  do {
    active = 0;
    for (const RdmaPort& port : ports) {
      if (site.host.cancelled())
        return Error{ErrorCode::kTimeout, "cancelled while reading the counters", ""};
      if (!port.active()) continue;
      ++active;
      site.host.progress(duration > 0 ? std::min(1.0, (rdma.now() - start) / duration) : 1,
                         "traffic on " + port.name());
      transfer.device = port.device;
      transfer.port = port.port;
      const auto figure = rdma.loopback(transfer);
      if (figure.ok()) continue;
      failures.add(figure.error());
      return {};  // the counters say why, perhaps: they are read next
    }
  } while (active > 0 && rdma.now() - start < duration);
  return {};
}

Status reportGrowth(const Site& site, const RdmaPort& port, const RdmaCounters& before,
                    const RdmaCounters& after, double now) {
  std::vector<std::string> missing;
  for (const RdmaCounter& counter : kRdmaCounters) {
    const auto first = before.values.find(counter.name);
    const auto second = after.values.find(counter.name);
    if (first == before.values.end() || second == after.values.end()) {
      missing.emplace_back(counter.name);
      continue;
    }
    const auto grown = static_cast<double>(rdmaGrowth(counter.name, first->second, second->second));
    MUSTER_CHECK_OK(site.host.measurement(counter.name, counter.unit, {grown}, {{"port", port.name()}}, now));
  }
  return missing.empty() ? Status()
                         : site.host.fact("missing_counters", join(missing, ", "), {{"port", port.name()}});
}

void addUnreadable(const std::vector<UnreadableSource>& unreadable, Failures& failures) {
  for (const UnreadableSource& source : unreadable)
    failures.add({ErrorCode::kIo, source.name + ": " + source.reason, source.device});
}

/// The ports once more: one that is gone or down now is a finding.
Status lookAgain(const Site& site, Rdma& rdma, const std::vector<RdmaPort>& ports, Failures& failures) {
  MUSTER_TRY(const std::vector<RdmaPort> present, rdma.ports());
  for (const RdmaPort& port : ports) {
    const auto same = std::find_if(present.begin(), present.end(),
                                   [&](const RdmaPort& p) { return p.name() == port.name(); });
    if (same == present.end())
      failures.add({ErrorCode::kNotFound, "is gone from sysfs", port.name()});
    else
      MUSTER_CHECK_OK(reportPort(site, *same, rdma.now()));
  }
  return {};
}

}  // namespace

Status runCounters(Site& site, const Json& json, const std::string& /*caseName*/) {
  MUSTER_TRY(const CountersParams params, sdk::readParams<CountersParams>(json));
  MUSTER_TRY(const auto rdma, site.backend->rdma(rdmaOptions(site.host)));
  MUSTER_TRY(const std::vector<RdmaPort> all, rdma->ports());
  MUSTER_TRY(const std::vector<RdmaPort> ports, choosePorts(all, params.hcas));
  Failures failures;
  MUSTER_CHECK_OK(
      site.host.measurement("port_count", "count", {static_cast<double>(ports.size())}, {}, rdma->now()));
  for (const RdmaPort& port : ports) MUSTER_CHECK_OK(reportPort(site, port, rdma->now()));
  MUSTER_TRY(const std::vector<RdmaCounters> before, look(*rdma, ports));
  if (params.traffic)
    MUSTER_CHECK_OK(carryTraffic(site, *rdma, ports, params.transfer, params.duration, failures));
  else
    rdma->sleep(params.duration);
  if (site.host.cancelled()) return Error{ErrorCode::kTimeout, "cancelled while reading the counters", ""};
  MUSTER_TRY(const std::vector<RdmaCounters> after, look(*rdma, ports));
  for (size_t i = 0; i < ports.size(); ++i) {
    MUSTER_CHECK_OK(reportGrowth(site, ports[i], before[i], after[i], rdma->now()));
    addUnreadable(after[i].unreadable, failures);
  }
  MUSTER_CHECK_OK(lookAgain(site, *rdma, ports, failures));
  return failures.status();
}

}  // namespace muster::rdma
