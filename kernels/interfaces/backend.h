// SPDX-License-Identifier: Apache-2.0
// The border of a backend module: what kernels/loader opens, and the entry each backend exports.
#pragma once

#include <memory>
#include <string>

#include "kernels/interfaces/communicator.h"
#include "kernels/interfaces/copies.h"
#include "kernels/interfaces/device.h"
#include "kernels/interfaces/inventory.h"
#include "kernels/interfaces/nn.h"
#include "kernels/interfaces/ops.h"
#include "kernels/interfaces/rdma.h"
#include "kernels/interfaces/storage.h"

namespace muster {

/// What a backend needs to know of the run.
struct BackendOptions {
  std::string folder;       ///< where backend modules are (host_blas.so beside backend_host.so)
  std::string scenario;     ///< sim: path of the scenario file
  double virtualStart = 0;  ///< sim: virtual seconds at which this session starts
  int nodeRank = 0;
  int nodeCount = 1;
  uint64_t seed = 0;
};

/// An open backend.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< host, sim, cuda
  /// Whether time is computed and ranks do not wait for each other: nothing of this machine's clocks, load or
  /// peers may enter a figure.
  [[nodiscard]] virtual bool virtualTime() const { return false; }
  virtual Result<Inventory*> inventory() = 0;
  /// Opens the device with this id for work.
  virtual Result<std::unique_ptr<Device>> open(const std::string& deviceId) = 0;
  /// The operations of an open device; loads the libraries behind them on first use.
  virtual Result<std::unique_ptr<Ops>> ops(Device& device) = 0;
  /// Training on an open device; kUnsupported where the backend has none.
  virtual Result<std::unique_ptr<Nn>> nn(Device& device) {
    return Error{ErrorCode::kUnsupported, "the backend " + name() + " cannot train networks",
                 device.info().id};
  }
  /// Copies between an open device, which must outlive them, its host and its peers.
  virtual Result<std::unique_ptr<Copies>> copies(Device& device) {
    return Error{ErrorCode::kUnsupported,
                 "the backend " + name() + " has no link between a device and its host or peers to copy over",
                 device.info().id};
  }
  /// The node's RDMA devices.
  virtual Result<std::unique_ptr<Rdma>> rdma(const RdmaOptions& options) {
    (void)options;
    return Error{ErrorCode::kUnsupported, "backend " + name() + " has no access to RDMA devices", ""};
  }
  /// The storage of a simulated node; null on a real one, and where the scenario has none.
  virtual std::unique_ptr<SimulatedStorage> simulatedStorage() { return nullptr; }
  /// Forms a group with the other ranks that name the same one; all of them call this. `device` and `store`
  /// must outlive it; the store is used while the group forms.
  virtual Result<std::unique_ptr<Communicator>> communicator(Device& device, const CommunicatorSpec& spec,
                                                             GroupStore& store) {
    (void)device, (void)spec, (void)store;
    return Error{ErrorCode::kUnsupported, "the backend \"" + name() + "\" has no communicators", ""};
  }
};

/// Exported as `muster_backend_entry` by backend_<name>.so. C++ across the border, so the build id must be
/// equal.
struct BackendEntry {
  const char* buildId;
  Result<std::unique_ptr<Backend>> (*open)(const BackendOptions& options);
};

/// Opens `backend_<name>.so` of `options.folder`; refuses a module of another build and names a missing
/// library. Modules stay loaded until the process ends.
Result<std::unique_ptr<Backend>> loadBackend(const std::string& name, const BackendOptions& options);

}  // namespace muster
