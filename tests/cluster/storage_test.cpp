// SPDX-License-Identifier: Apache-2.0
// A directory that hosts share, and one that a host has for itself, by mount namespaces.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runner/system/files.h"
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
  using Change = std::function<void(const fs::path&)>;
  /// What `change` does to all files in the shared directory, and `changeDirectory` to those that hold them,
  /// while the run is there, has no host rejected.
  void runBeside(ClusterRun& run, const Change& change, const Change& changeDirectory = {}) {
    std::atomic<bool> done = false;
    std::thread vandal([&] {
      std::error_code error;
      while (!done)
        for (const auto& entry : fs::directory_iterator(shared(), error)) {
          if (changeDirectory) changeDirectory(entry.path());
          for (const auto& file : fs::directory_iterator(entry.path(), error)) change(file.path());
        }
    });
    run.finish();
    done = true;
    vandal.join();
    for (int host = 0; host < 3; ++host) {
      EXPECT_NE(run.ended(host).exitCode, 1) << said(run, host);
      EXPECT_NE(textOf(run, host, "faulty_node"), "1");
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(shared())) fs::remove_all(entry.path(), error);
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
  const auto plug = [](const fs::path& file) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    file.string().copy(address.sun_path, sizeof address.sun_path - 1);
    const Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    if (unlink(file.c_str()) == 0)
      (void)bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  };
  for (const Change& change : {Change(writeIn), Change(remove), Change(occupy), Change(plug)}) {
    ClusterRun run(3, plan(), {});
    run.startAll();
    runBeside(run, [&](const fs::path& file) {
      if (file.filename() == "rank1") change(file);
    });
    EXPECT_EQ(run.ended(1).exitCode, 3) << said(run, 1);
    for (int host = 0; host < 3; ++host)
      EXPECT_THAT(textOf(run, host, "node_fault"), AllOf(HasSubstr("n1: "), HasSubstr("cannot be told")));
  }
}

/// The same while a file is written: before it gets its name, and at each of its replacements.
TEST_F(ClusterStorage, BlamesNoHostForWhatAnotherOneDoesWhileItWrites) {
  std::atomic<int> hits = 0;
  const auto writeBefore = [&](const fs::path& file) {
    if (file.filename().string().starts_with("rank")) return;
    std::fstream open(file, std::ios::in | std::ios::out | std::ios::binary);
    if (open.seekp(8) << "XXXX" << std::flush) ++hits;
  };
  const auto renameOver = [&](const fs::path& file) {
    const fs::path other = dir_.path() / "other";
    std::ofstream(other) << "XXXX";
    if (file.filename() == "rank1" && rename(other.c_str(), file.c_str()) == 0) ++hits;
  };
  for (const Change& change : {Change(writeBefore), Change(renameOver)}) {
    hits = 0;
    for (int round = 0; round < 10 && hits == 0; ++round) {  // the moment may pass unseen
      ClusterRun run(3, plan(), {});
      run.startAll();
      runBeside(run, change);
    }
    EXPECT_GT(hits, 0) << "nothing was changed";
  }
}

/// The directory where all meet gets another one in its place while they enter, so that one is alone.
TEST_F(ClusterStorage, BlamesNoHostWhereAnotherOneReplacesTheDirectory) {
  int parted = 0;
  for (int round = 0; round < 20 && parted < 2; ++round) {  // all may be faster, or slower
    bool done = false;
    const auto replace = [&](const fs::path& directory) {
      if (done || rename(directory.c_str(), (shared() / ".away").c_str()) != 0) return;
      done = mkdir(directory.c_str(), 0700) == 0;
    };
    ClusterRun run(3, plan(), {});
    run.startAll();
    runBeside(
        run, [](const fs::path&) {}, replace);
    EXPECT_TRUE(done);
    // A host that finds no directory between the two steps is told alone, and is incomplete alone.
    if (textOf(run, 0, "node_fault").find("all nodes: ") == std::string::npos) continue;
    ++parted;
    for (int host = 0; host < 3; ++host) {
      EXPECT_EQ(run.ended(host).exitCode, 3) << said(run, host);
      EXPECT_THAT(textOf(run, host, "node_fault"),
                  AllOf(HasSubstr("all nodes: "), HasSubstr("met in inode"), HasSubstr("was renamed or")));
    }
  }
  EXPECT_GT(parted, 0);
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
