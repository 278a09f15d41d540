// SPDX-License-Identifier: Apache-2.0
// What both tests of this plugin work with: the rank's place and its RDMA ports.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/interfaces/backend.h"
#include "plugins/sdk/plugin.h"

namespace muster::rdma {

/// A rank's place in the stage, and its backend.
struct Site {
  sdk::Host host;
  std::unique_ptr<Backend> backend;
  bool virtualTime = false;
  bool clusterScope = false;
  int nodeRank = 0;
  int nodeCount = 1;
  int localRank = 0;
  int localSize = 1;
};
Result<Site> openSite(const sdk::Host& host, const Json& context);

/// Where the engine and sysfs are: the environment says that, and no plan, since who hands over a plan must
/// not choose which programs run.
RdmaOptions rdmaOptions(const sdk::Host& host);

/// The ports that `hcas` names, or all of them where it says "all". kUnsupported where the node has none at
/// all; kNotFound names one that is not there.
Result<std::vector<RdmaPort>> choosePorts(const std::vector<RdmaPort>& ports,
                                          const std::vector<std::string>& hcas);

/// Reports whether a port is active, and its line rate.
Status reportPort(const Site& site, const RdmaPort& port, double now);

/// Failures of some ports while the others go on.
class Failures {
 public:
  void add(const Error& error);
  /// One error with all of them.
  [[nodiscard]] Status status() const;

 private:
  std::vector<std::string> texts_;
  ErrorCode code_ = ErrorCode::kIo;
};

}  // namespace muster::rdma
