// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of a Linux machine: sysfs, and perftest as the engine.
#pragma once

#include <memory>

#include "kernels/host/inventory/root.h"
#include "kernels/host/rdma/perftest.h"
#include "kernels/interfaces/rdma.h"

namespace muster {

class HostRdma : public Rdma {
 public:
  explicit HostRdma(const RdmaOptions& options);

  [[nodiscard]] double now() const override;
  void sleep(double seconds) override;
  Result<std::vector<RdmaPort>> ports() override;
  Result<RdmaCounters> counters(const RdmaPort& port) override;
  Result<std::string> engine(RdmaMethod method) override { return perftest_.version(method); }
  Result<RdmaFigure> loopback(const RdmaTransfer& transfer) override;
  Result<RdmaFigure> pair(const RdmaTransfer& transfer, const RdmaPeer& peer, RdmaMeeting& meeting) override;

 private:
  RdmaOptions options_;
  Root root_;
  Perftest perftest_;
};

std::unique_ptr<Rdma> makeHostRdma(const RdmaOptions& options);

}  // namespace muster
