// SPDX-License-Identifier: Apache-2.0
// One test of the storage plugin over the C border, on this machine's disk and on a simulated one.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/plugins/recording_host.h"
#include "tests/support/process.h"

namespace muster::testing {

/// Everything lies in the build folder: /tmp may be in memory.
class StorageRun : public ::testing::Test {
 protected:
  StorageRun();
  ~StorageRun() override;

  /// In a directory that the plan names.
  CaseResult onDisk(const std::string& test, Json params);
  /// On a simulated node with `faults` planted.
  CaseResult onSim(const std::string& test, const std::string& faults, const Json& params = Json::object(),
                   int rank = 0, int ranks = 1);
  /// Has the plugin run this shell script in place of fio; "$FIO" in it is the real one.
  void fakeFio(const std::string& script);
  /// Names in the directory of the plan.
  [[nodiscard]] std::vector<std::string> left() const;
  [[nodiscard]] std::filesystem::path data() const { return dir().path() / "data"; }
  [[nodiscard]] const TempDir& dir() const { return *dir_; }

  /// A case that takes a second or two.
  static Json small(const std::string& pattern = "read");

  Json context = contextFor("host", "");
  PluginLibrary plugin{"storage"};
  RecordingHost host;

 private:
  std::unique_ptr<TempDir> dir_;
};

}  // namespace muster::testing
