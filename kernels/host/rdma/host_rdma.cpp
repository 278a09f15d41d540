// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of a Linux machine.
#include "kernels/host/rdma/host_rdma.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/host/inventory/nics.h"
#include "kernels/host/inventory/rdma_counters.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster {

namespace {

/// A device's name goes to a command line: sysfs is not trusted to have made a harmless one.
Status checkName(const std::string& device) {
  if (isPlainName(device)) return {};
  return Error{ErrorCode::kProtocol,
               "an RDMA device is called \"" + printable(device, 64) + "\", which is not a valid name",
               "/sys/class/infiniband"};
}

}  // namespace

HostRdma::HostRdma(const RdmaOptions& options) : options_(options), perftest_(options) {}

double HostRdma::now() const {
  return systemClock().now();
}

void HostRdma::sleep(double seconds) {
  constexpr double kLook = 0.05;
  const double until = now() + seconds;
  while (now() < until && !(options_.cancelled && options_.cancelled()))
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(kLook, until - now())));
}

Result<std::vector<RdmaPort>> HostRdma::ports() {
  std::vector<RdmaPort> ports = readRdmaPorts(root_, options_.sysfs);
  for (const RdmaPort& port : ports) MUSTER_CHECK_OK(checkName(port.device));
  return ports;
}

Result<RdmaCounters> HostRdma::counters(const RdmaPort& port) {
  return readRdmaCounters(root_, port.device, port.port, options_.sysfs);
}

Result<RdmaFigure> HostRdma::loopback(const RdmaTransfer& transfer) {
  MUSTER_CHECK_OK(checkName(transfer.device));
  return perftest_.loopback(transfer).context(transfer.portName() + " to itself");
}

Result<RdmaFigure> HostRdma::pair(const RdmaTransfer& transfer, const RdmaPeer& peer, RdmaMeeting& meeting) {
  MUSTER_CHECK_OK(checkName(transfer.device));
  const std::string step = transfer.portName() + " with node " + std::to_string(peer.node);
  if (!peer.serves) {
    MUSTER_CHECK_OK(
        perftest_.serve(transfer, [&](int tcpPort) { return meeting.announce(tcpPort); }).context(step));
    return RdmaFigure{};
  }
  auto place = meeting.await(transfer.timeout);
  if (!place.ok()) return std::move(place).error().context(step);
  return perftest_.connect(transfer, place->first, place->second).context(step);
}

std::unique_ptr<Rdma> makeHostRdma(const RdmaOptions& options) {
  return std::make_unique<HostRdma>(options);
}

}  // namespace muster
