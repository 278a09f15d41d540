// SPDX-License-Identifier: Apache-2.0
// The backend that a session of the env plugin looks at, and how its readings are reported.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/interfaces/backend.h"
#include "plugins/sdk/plugin.h"

namespace muster::env {

/// An open backend and what the host said of this rank.
struct Machine {
  std::unique_ptr<Backend> backend;
  Inventory* inventory = nullptr;
  std::string backendName;
  std::string
      device;  ///< our device where the stage has several ranks; empty: this rank speaks for all of the node
  std::string runFolder;    ///< the run directory; empty: the host does not say
  std::string counters;     ///< what the telemetry of the stage before handed over; empty: nothing
  double virtualStart = 0;  ///< seconds of virtual time at which the session begins (sim)

  [[nodiscard]] bool virtualTime() const { return backend->virtualTime(); }
  /// Whether a reading of `reading.device` is ours to report: the node's always, another rank's device never.
  [[nodiscard]] bool reports(const Reading& reading) const {
    return reading.device.empty() || device.empty() || reading.device == device;
  }
};

/// Opens the backend that the context names.
Result<Machine> openMachine(const Json& context);

/// Reports readings as measurements: those that a test declares and that are ours. The words beside a number
/// become a fact of their own ("busy_share" -> "busiest_process").
class Reporter {
 public:
  Reporter(const sdk::Host& host, const Machine& machine, const std::string& test);

  /// `time`: seconds of the device's clock; negative: now.
  Status report(const Reading& reading, double time = -1);
  Status report(const std::vector<Reading>& readings, double time = -1);
  /// From now on keeps numbers until `flush`, which reports those of a metric and its labels as one series.
  void keepSeries() { keeping_ = true; }
  Status flush();
  Status fact(const std::string& name, const std::string& text) const { return host_.fact(name, text); }
  [[nodiscard]] const sdk::Host& host() const { return host_; }

 private:
  struct Series {
    std::string unit;
    std::vector<double> values, times;
  };

  const sdk::Host host_;
  const Machine& machine_;
  std::set<std::string> declared_;
  bool keeping_ = false;
  std::map<std::pair<std::string, sdk::Host::LabelList>, Series> kept_;
  std::set<std::string> said_;  ///< words that were reported as a fact
};

/// "kernel log: Operation not permitted; processes: ..." for one line.
std::string unreadableText(const std::vector<UnreadableSource>& sources);

}  // namespace muster::env
