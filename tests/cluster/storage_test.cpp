// SPDX-License-Identifier: Apache-2.0
// A directory that hosts share, and one that a host has for itself, by mount namespaces.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ClusterStorage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    fs::create_directories(shared());
  }
  [[nodiscard]] fs::path shared() const { return dir_.path() / "shared"; }

  [[nodiscard]] std::string plan() const {
    return fmt::format(R"(schema = 1
name = "shared"
sku = "auto"
backend = "host"

[[stage]]
name = "shared"
test = "storage.shared"
scope = "cluster"
ranks = 1
timeout = "60s"
[stage.params]
directory = "{}"
visible_within = "3s"
)",
                       shared().string());
  }
  /// What stands in front of each run: on host `odd` it sees `mount` in place of the shared directory.
  [[nodiscard]] static std::vector<std::string> only(int odd, const std::string& mount) {
    return {"unshare",
            "--mount",
            "sh",
            "-c",
            fmt::format("if [ \"$(hostname)\" = {} ]; then {} || exit 99; fi; exec \"$@\"", Hosts::name(odd),
                        mount),
            "sh"};
  }
  static std::string textOf(const ClusterRun& run, int host, const std::string& metric) {
    for (const Measurement& m : run.stage(host, "shared").measurements)
      if (m.metric == "storage." + metric) return m.isText() ? m.text : fmt::format("{}", m.samples.at(0));
    return "";
  }
  static std::string said(const ClusterRun& run, int host) {
    return run.ended(host).out + run.ended(host).err;
  }

  TempDir dir_;
};

TEST_F(ClusterStorage, AcceptsHostsThatShareADirectory) {
  ClusterRun run(3, plan(), {});
  run.startAll();
  run.finish();
  for (int host = 0; host < 3; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, 0) << said(run, host);
    EXPECT_EQ(textOf(run, host, "faulty_node"), "0");
    EXPECT_EQ(textOf(run, host, "node_fault"), "");
    EXPECT_NE(textOf(run, host, "visible_time"), "");
  }
  EXPECT_TRUE(fs::is_empty(shared()));
}

TEST_F(ClusterStorage, NamesTheHostWithADirectoryOfItsOwn) {
  ClusterRun run(3, plan(), {});
  run.wrapper = only(1, "mount -t tmpfs own " + shared().string());
  run.startAll();
  run.finish();
  for (int host = 0; host < 3; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, host == 1 ? 1 : 0) << said(run, host);
    EXPECT_EQ(textOf(run, host, "faulty_node"), host == 1 ? "1" : "0");
    EXPECT_THAT(textOf(run, host, "node_fault"), HasSubstr("n1: does not see the file of n0, n2"));
    EXPECT_THAT(textOf(run, host, "node_fault"), HasSubstr("its directory is tmpfs of own"));
  }
  EXPECT_TRUE(fs::is_empty(shared()));
}

TEST_F(ClusterStorage, NamesTheHostWithoutTheDirectory) {
  ClusterRun run(3, plan(), {});
  run.wrapper = only(2, "mount -t tmpfs own " + dir_.path().string());
  run.startAll();
  run.finish();
  for (int host = 0; host < 3; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, host == 2 ? 1 : 0) << said(run, host);
    EXPECT_THAT(textOf(run, host, "node_fault"),
                HasSubstr("n2: " + shared().string() + ": cannot open the directory"));
  }
}

/// Another node of the run can do all of this, as the same user: no host is rejected for it.
TEST_F(ClusterStorage, BlamesNoHostForWhatAnotherOneDoesToItsFiles) {
  const auto writeIn = [](const fs::path& file) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(4321) << "XXXX";
  };
  const auto remove = [](const fs::path& file) { unlink(file.c_str()); };
  const auto occupy = [](const fs::path& file) {
    if (unlink(file.c_str()) == 0) mkdir(file.c_str(), 0700);
  };
  for (const std::function<void(const fs::path&)>& change :
       {std::function<void(const fs::path&)>(writeIn), std::function<void(const fs::path&)>(remove),
        std::function<void(const fs::path&)>(occupy)}) {
    ClusterRun run(3, plan(), {});
    run.startAll();
    std::atomic<bool> done = false;
    std::thread vandal([&] {
      std::error_code error;
      while (!done)
        for (const auto& entry : fs::directory_iterator(shared(), error))
          if (fs::exists(entry.path() / "rank1", error)) change(entry.path() / "rank1");
    });
    run.finish();
    done = true;
    vandal.join();
    EXPECT_EQ(run.ended(1).exitCode, 3) << said(run, 1);
    for (int host = 0; host < 3; ++host) {
      EXPECT_NE(run.ended(host).exitCode, 1) << said(run, host);
      EXPECT_NE(textOf(run, host, "faulty_node"), "1");
      EXPECT_THAT(textOf(run, host, "node_fault"), AllOf(HasSubstr("n1: "), HasSubstr("cannot be told")));
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(shared())) fs::remove_all(entry.path(), error);
  }
}

TEST_F(ClusterStorage, NamesTheHostThatGetsLocksOfOthers) {
  ClusterRun run(3, plan(), {});
  run.wrapper = only(1, "export LD_PRELOAD=" + (buildDir() / "tests/cluster/granting-locks.so").string());
  run.startAll();
  run.finish();
  for (int host = 0; host < 3; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, host == 1 ? 1 : 0) << said(run, host);
    EXPECT_THAT(textOf(run, host, "node_fault"), HasSubstr("n1: gets locks that are held by n0, n2"));
  }
}

TEST_F(ClusterStorage, SaysThatTwoHostsCannotBeToldApart) {
  ClusterRun run(2, plan(), {});
  run.wrapper = only(1, "mount -t tmpfs own " + shared().string());
  run.startAll();
  run.finish();
  for (int host = 0; host < 2; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, 3) << said(run, host);  // one of them may be well
    EXPECT_THAT(textOf(run, host, "node_fault"), HasSubstr("which of n0, n1 is at fault cannot be told"));
  }
}

}  // namespace
}  // namespace muster::testing
