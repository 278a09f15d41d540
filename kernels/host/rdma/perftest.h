// SPDX-License-Identifier: Apache-2.0
// perftest (ib_write_bw, ib_send_lat) as the engine of RDMA transfers, under supervision.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/interfaces/rdma.h"
#include "runner/system/child_process.h"

namespace muster {

/// A deadline with a way to be cancelled.
struct Patience {
  double until = 0;  ///< of systemClock().now()
  std::function<bool()> cancelled = {};

  [[nodiscard]] bool over() const;
  [[nodiscard]] bool wasCancelled() const { return cancelled && cancelled(); }
};

/// Runs perftest's programs as child processes. Whatever they do - hang, crash, print nonsense - becomes an
/// error that names the port, the program, its side and its last words. They run on the processors of the
/// NUMA node that the port is on, where sysfs tells it and this process may use them.
class Perftest {
 public:
  explicit Perftest(const RdmaOptions& options) : options_(options) {}

  /// "perftest 6.06 (/usr/bin/ib_write_bw)".
  Result<std::string> version(RdmaMethod method) const;
  /// Server and client on this node, on one port.
  Result<RdmaFigure> loopback(const RdmaTransfer& transfer) const;
  /// The serving side of a pair; `announce` is called with its TCP port once it listens.
  Status serve(const RdmaTransfer& transfer, const std::function<Status(int)>& announce) const;
  Result<RdmaFigure> connect(const RdmaTransfer& transfer, const std::string& host, int tcpPort) const;

 private:
  /// The program of a transfer, and how it gets at a GPU's memory.
  struct Engine {
    std::string path;
    bool dmaBuf = false;
  };
  /// A server that listens.
  struct Server {
    ChildProcess process;
    int tcpPort;
  };
  [[nodiscard]] Result<std::string> program(RdmaMethod method) const;
  [[nodiscard]] Result<std::string> ask(const std::string& path, const char* option) const;
  [[nodiscard]] Result<Engine> prepare(const RdmaTransfer& transfer) const;
  [[nodiscard]] Result<bool> needsDmaBuf(const std::string& path) const;
  [[nodiscard]] Result<ChildProcess> startSide(const RdmaTransfer& transfer, const Engine& engine,
                                               int tcpPort, const std::string& host) const;
  [[nodiscard]] Result<Server> startServer(const RdmaTransfer& transfer, const Engine& engine,
                                           const Patience& patience) const;
  [[nodiscard]] Result<RdmaFigure> runClient(const RdmaTransfer& transfer, const Engine& engine,
                                             const std::string& host, int tcpPort, ChildProcess* server,
                                             const Patience& patience) const;
  [[nodiscard]] Patience patience(double seconds) const;

  RdmaOptions options_;
};

/// The arguments of one side; `host` is empty on the serving one. `dmaBuf`: a GPU's memory is shared that
/// way, as there is no nvidia_peermem.
std::vector<std::string> perftestArguments(const RdmaTransfer& transfer, int tcpPort, const std::string& host,
                                           bool dmaBuf);

}  // namespace muster
