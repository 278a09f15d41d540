// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of a simulated node: pure functions of scenario, seed, node rank and virtual time.
#pragma once

#include <memory>
#include <vector>

#include "kernels/interfaces/rdma.h"
#include "kernels/sim/scenario/scenario.h"

namespace muster::sim {

/// The ports of a node as they are at virtual time `at`.
std::vector<RdmaPort> simRdmaPorts(const RdmaModel& model, int node, double at);
/// What the port of HCA number `hca` has counted by `at`.
RdmaCounters simRdmaCounters(const RdmaModel& model, int node, int hca, double at);

class SimRdma : public Rdma {
 public:
  /// `clock` is the session's: its cases follow each other in virtual time.
  SimRdma(std::shared_ptr<const Scenario> scenario, int node, uint64_t runSeed,
          std::shared_ptr<double> clock);

  [[nodiscard]] double now() const override { return *clock_; }
  void sleep(double seconds) override { *clock_ += seconds; }
  Result<std::vector<RdmaPort>> ports() override;
  Result<RdmaCounters> counters(const RdmaPort& port) override;
  Result<std::string> engine(RdmaMethod) override { return std::string("simulated"); }
  Result<RdmaFigure> loopback(const RdmaTransfer& transfer) override;
  Result<RdmaFigure> pair(const RdmaTransfer& transfer, const RdmaPeer& peer, RdmaMeeting& meeting) override;

 private:
  /// The two ends of a transfer; the same one twice for a loopback.
  struct Ends {
    int hca;
    int client;
    int server;
  };
  [[nodiscard]] Result<int> hcaOf(const std::string& device, int port) const;
  [[nodiscard]] double speed(int node, int hca) const;
  [[nodiscard]] double pathShare(const Ends& ends) const;
  Result<RdmaFigure> run(const RdmaTransfer& transfer, const Ends& ends);

  std::shared_ptr<const Scenario> scenario_;
  int node_;
  uint64_t seed_;
  std::shared_ptr<double> clock_;
};

}  // namespace muster::sim
