// SPDX-License-Identifier: Apache-2.0
// A machine with made-up RDMA devices: a tree like sysfs, and perftest's programs beside it.
#pragma once

#include <map>
#include <string>

#include "tests/support/process.h"

namespace muster::testing {

/// One device with one port of 400 Gb/s. Everything lies in a temporary folder.
class FakeHcas {
 public:
  FakeHcas();

  /// Adds a device: its port's files, and what the fake perftest does on it (tests/fakes/perftest).
  void add(const std::string& device, const std::string& behaviour = "ok", double gigabits = 392,
           double microseconds = 1.8);
  /// Writes a file of a device's port: "state", "counters/link_downed" ...
  void set(const std::string& device, const std::string& file, const std::string& text) const;
  [[nodiscard]] std::string portFile(const std::string& device, const std::string& file) const;
  /// Adds a line to the fake perftest's configuration.
  void configure(const std::string& line) const;

  [[nodiscard]] std::string sysfs() const { return (folder_.path() / "sys").string(); }
  [[nodiscard]] std::string programs() const { return (folder_.path() / "bin").string(); }
  /// What leads a run to them.
  [[nodiscard]] std::map<std::string, std::string> environment() const {
    return {{"MUSTER_SYSFS", sysfs()}, {"MUSTER_PERFTEST_DIR", programs()}};
  }
  [[nodiscard]] const TempDir& folder() const { return folder_; }

 private:
  TempDir folder_;
};

}  // namespace muster::testing
