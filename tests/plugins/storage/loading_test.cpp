// SPDX-License-Identifier: Apache-2.0
// Test "loading" on this machine's disk and on a simulated node.
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/plugins/storage/storage_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StorageLoading : public StorageRun {
 protected:
  static Json few(uint64_t files = 2500) {
    return {{"files", files}, {"file_size", "5000 B"}, {"threads", 4}, {"keep_free", "16 MiB"}};
  }
};

TEST_F(StorageLoading, ReadsEveryFileAndLeavesNothing) {
  EXPECT_EQ(onDisk("loading", few()).ran, MUSTER_OK) << host.error;
  plugin.expectDeclared(host, "loading");
  EXPECT_GT(host.value("file_rate"), 0);
  EXPECT_NEAR(host.value("file_bandwidth"), host.value("file_rate") * 5000, 1);
  EXPECT_EQ(host.value("wrong_files"), 0);
  EXPECT_THAT(host.told("cache").at(0).text, HasSubstr("posix_fadvise"));
  EXPECT_THAT(left(), IsEmpty());
}

/// While the files are written and read, another process changes some.
TEST_F(StorageLoading, CountsFilesThatChanged) {
  std::atomic<bool> done = false;
  std::thread vandal([&] {
    std::error_code error;
    while (!done)
      for (const auto& scratch : fs::directory_iterator(data(), error)) {
        const fs::path first = scratch.path() / "0/7", second = scratch.path() / "0/8";
        if (fs::file_size(first, error) == 5000)
          std::fstream(first, std::ios::in | std::ios::out | std::ios::binary).seekp(4321) << "XXXX";
        if (fs::file_size(second, error) == 5000)
          std::ofstream(second, std::ios::app | std::ios::binary) << "longer";
      }
  });
  const CaseResult result = onDisk("loading", few(4000));
  done = true;
  vandal.join();
  EXPECT_EQ(result.ran, MUSTER_OK) << host.error;
  EXPECT_EQ(host.value("wrong_files"), 2);
}

TEST_F(StorageLoading, ThatIsCancelledLeavesNothing) {
  host.cancelAfter = 0;
  EXPECT_EQ(onDisk("loading", few(200000)).ran, MUSTER_CANCELLED);
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(StorageLoading, NeverFillsAFileSystem) {
  Json params = few(10000000);
  params["file_size"] = "64 MiB";
  EXPECT_EQ(onDisk("loading", params).ran, MUSTER_ERROR);
  EXPECT_THAT(host.error, HasSubstr("must stay free"));
}

TEST_F(StorageLoading, TellsFilesInMemoryAndFewInodes) {
  if (mount("tmpfs", data().c_str(), "tmpfs", 0, "size=64m,nr_inodes=1000") != 0)
    GTEST_SKIP() << "needs root to mount a tmpfs";
  EXPECT_EQ(onDisk("loading", few(500)).ran, MUSTER_OK) << host.error;
  EXPECT_EQ(host.value("cached_share"), 1) << "tmpfs keeps its files in the page cache";
  EXPECT_EQ(onDisk("loading", few(2500)).ran, MUSTER_ERROR);
  EXPECT_THAT(host.error, HasSubstr("inodes free"));
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_EQ(umount(data().c_str()), 0);
}

TEST_F(StorageLoading, OnASimulatedNodeFollowsTheScenario) {
  EXPECT_EQ(onSim("loading", "[[storage.fault]]\nkind = \"slow\"\nfactor = 0.5\nuntil = \"200s\"\n").ran,
            MUSTER_OK)
      << host.error;
  plugin.expectDeclared(host, "loading");
  EXPECT_DOUBLE_EQ(host.value("file_rate"), 10000);
}

TEST_F(StorageLoading, IsSkippedWhereTheScenarioHasNoStorage) {
  Json simulated = contextFor("sim", "", (sourceDir() / "plans/scenarios/h100x8-healthy.toml").string());
  simulated["scope"] = "node";
  simulated["artifact_dir"] = "";
  EXPECT_EQ(plugin.run(host, "loading", Json::object(), simulated).opened, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host.error, HasSubstr("[storage]"));
}

}  // namespace
}  // namespace muster::testing
