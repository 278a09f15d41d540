// SPDX-License-Identifier: Apache-2.0
// Several hosts on one machine: network namespaces with host names of their own, joined by veth pairs and a
// bridge.
#pragma once

#include <future>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace muster::testing {

/// Hosts n0, n1 ... with one interface eth0 each, 10.77.0.1, 10.77.0.2 ...; the bridge has a namespace of its
/// own, so nothing of this machine's network is touched. All of it goes with the object.
class Hosts {
 public:
  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  /// Why no hosts can be made here (no root, no `ip`); empty when they can.
  static std::string whyNot();

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] static std::string name(int host);
  [[nodiscard]] static std::string address(int host);

  /// A shell script that runs a command on a host as ssh would: SCRIPT ADDRESS COMMAND...
  [[nodiscard]] std::string remoteShell() const;
  /// Starts a command on a host.
  std::future<ProcessResult> start(int host, const std::vector<std::string>& command,
                                   const ProcessOptions& options = {});
  /// Takes the host's link down, as a pulled cable does, or up again.
  void setLink(int host, bool up);
  /// Limits what the host sends and what it receives to `rate` of `tc` each ("100mbit"), by htb at both ends
  /// of its cable. Called again, it replaces the limit.
  void limit(int host, const std::string& rate);
  /// Limits what two hosts send each other to `rate` each way, and leaves what they send others alone. Both
  /// must have a limit of their own already.
  void limitLink(int one, int other, const std::string& rate);
  /// Processes on the host whose command line contains `text`.
  [[nodiscard]] std::vector<int> processes(int host, const std::string& text) const;

 private:
  [[nodiscard]] std::string space(int host) const;
  [[nodiscard]] std::string hub() const;
  void addHost(int host);
  static void shape(const std::string& space, const std::string& device, int shapeClass,
                    const std::string& rate);

  int count_;
  std::string prefix_;
};

}  // namespace muster::testing
