// SPDX-License-Identifier: Apache-2.0
// What a node has and how it fares: devices, software, health readings. Implemented by each backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace muster {

/// One health reading of one device (or of the node, device empty), as `telemetry.<name>` or `env.<name>`.
struct Reading {
  std::string name;    ///< "temperature", "clock", "power", "throttle_thermal", "ecc_uncorrected" ...
  std::string unit;    ///< base unit
  std::string device;  ///< device id; empty for the node
  double value = 0;
  std::string text;    ///< for unit "text"
};

/// A reading that could not be taken: "never seen" and "cannot see" are different things.
struct UnreadableSource {
  std::string name;    ///< "kernel log"
  std::string device;
  std::string reason;
};

struct Readings {
  std::vector<Reading> values;
  std::vector<UnreadableSource> unreadable;
};

/// What inventory knows of one backend's machine.
class Inventory {
 public:
  virtual ~Inventory() = default;
  /// Every device of the node. None is an empty list; a driver that is missing is an error that says what to install.
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  /// Facts about host, software, NICs as one JSON object: {"host": {...}, "software": {...}, "nics": [...]}.
  virtual Result<Json> node() = 0;
  /// Health now, at time `at` of the device clock (sim evaluates its scenario there; others read the hardware).
  /// `load` names the stage's kind of work ("idle", "compute", "memory"), which only sim uses.
  virtual Result<Readings> health(double at, const std::string& load) = 0;
};

}  // namespace muster
