// SPDX-License-Identifier: Apache-2.0
// Test "fio" with Debian's fio on this machine's disk, with programs that behave like a faulty fio or disk,
// and on a simulated node.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/plugins/storage/storage_run.h"

namespace muster::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class StorageFio : public StorageRun {
 protected:
  /// Why the build folder has no direct I/O; empty: it has.
  [[nodiscard]] std::string noDirect() const {
    const int fd = open((data() / "probe").c_str(), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    std::filesystem::remove(data() / "probe");
    return fd >= 0 ? "" : "the build folder's file system has no direct I/O";
  }
};

TEST_F(StorageFio, MeasuresAndVerifiesEveryPatternAndLeavesNothing) {
  if (!noDirect().empty()) GTEST_SKIP() << noDirect();
  for (const char* pattern : {"read", "write", "randread", "randwrite"}) {
    host.measurements.clear();
    EXPECT_EQ(onDisk("fio", small(pattern)).ran, MUSTER_OK) << pattern << ": " << host.error;
    plugin.expectDeclared(host, "fio");
    EXPECT_GT(host.value("bandwidth"), 0) << pattern;
    EXPECT_NEAR(host.value("operations") * 65536, host.value("bandwidth"), 0.01 * host.value("bandwidth"));
    EXPECT_GT(host.value("latency_p50"), 0);
    EXPECT_GE(host.value("latency_p99"), host.value("latency_p50"));
    EXPECT_GE(host.value("latency_p999"), host.value("latency_p99"));
    EXPECT_EQ(host.value("verify_errors"), 0);
    EXPECT_EQ(host.told("bandwidth").at(0).labels.at("io"), "direct");
    EXPECT_THAT(host.told("engine").at(0).text, StartsWith("fio-"));
    EXPECT_FALSE(host.told("file_system").at(0).text.empty());
    EXPECT_THAT(host.told("mount_options").at(0).text, AnyOf(StartsWith("rw"), StartsWith("ro")));
    EXPECT_THAT(left(), IsEmpty());
  }
}

TEST_F(StorageFio, WorksInTheRunFolderWhereNoDirectoryIsNamed) {
  Json params = small();
  params["directory"] = "";
  params["direct"] = false;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_OK) << host.error;
  EXPECT_EQ(host.told("bandwidth").at(0).labels.at("io"), "buffered");
  EXPECT_TRUE(std::filesystem::is_empty(dir().path() / "artifacts"));
}

/// The disk changes a block between writing and reading.
TEST_F(StorageFio, WrongDataIsCountedAndNamed) {
  fakeFio(
      "case \"$*\" in *continue_on_error*) printf XXXX | dd of=data bs=1 seek=70000 conv=notrunc "
      "2>/dev/null;; "
      "esac\nexec $FIO \"$@\"");
  Json params = small("write");
  params["direct"] = false;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_OK) << host.error;
  EXPECT_EQ(host.value("verify_errors"), 1);
  EXPECT_THAT(host.told("first_fault").at(0).text, HasSubstr("offset 65536"));
  EXPECT_THAT(left(), IsEmpty());
}

/// Nothing was written: every block is wrong.
TEST_F(StorageFio, LostWritesAreWrongData) {
  fakeFio("case \"$*\" in *continue_on_error*) head -c 4194304 /dev/zero >data;; esac\nexec $FIO \"$@\"");
  Json params = small("randwrite");
  params["direct"] = false;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_OK) << host.error;
  EXPECT_EQ(host.value("verify_errors"), 64);
}

TEST_F(StorageFio, AFioThatLiesIsAnError) {
  const std::string version = "case \"$1\" in --version) echo fio-3.33; exit 0;; esac\n";
  const auto errorOf = [&](const std::string& script) {
    fakeFio(version + script);
    Json params = small();
    params["direct"] = false;
    host.measurements.clear();
    EXPECT_EQ(onDisk("fio", params).ran, MUSTER_ERROR) << script;
    EXPECT_TRUE(host.told("bandwidth").empty());
    EXPECT_THAT(left(), IsEmpty());
    return host.error;
  };
  EXPECT_THAT(errorOf("exit 0"), HasSubstr("writing the file: fio ended with code 0 and without its JSON"));
  EXPECT_THAT(errorOf("echo '{'"), HasSubstr("without its JSON; it printed last: {"));
  EXPECT_THAT(errorOf("kill -SEGV $$"), HasSubstr("fio was killed by signal 11 (SIGSEGV)"));
  EXPECT_THAT(errorOf("echo '{\"fio version\": \"fio-3.33\", \"jobs\": []}'"), HasSubstr("reports 0 jobs"));
  EXPECT_THAT(errorOf("$FIO \"$@\" | sed 's/\"total_ios\" : [0-9]*/\"total_ios\" : 0/'"),
              HasSubstr("moved nothing"));
  EXPECT_THAT(errorOf("$FIO \"$@\" | sed 's/\"total_ios\" : [1-9][0-9]*/\"total_ios\" : 63/'"),
              HasSubstr("fio wrote 63 of 64 blocks"));
  EXPECT_THAT(
      errorOf("case \"$*\" in *runtime*) $FIO \"$@\" | sed 's/\"99.900000\"/\"99.800000\"/';; *) exec $FIO "
              "\"$@\";; esac"),
      HasSubstr("no 99.900000 percentile"));
  EXPECT_THAT(errorOf("case \"$*\" in *continue_on_error*) $FIO \"$@\" | sed 's/\"total_ios\" : "
                      "[1-9][0-9]*/\"total_ios\" : "
                      "1/';; *) exec $FIO \"$@\";; esac"),
              HasSubstr("fio checked 1 of 64 blocks"));
  EXPECT_THAT(errorOf("$FIO \"$@\"; exit 3"), HasSubstr("fio ended with code 3"));
}

TEST_F(StorageFio, ThatHangsIsKilledInTimeOrWhenCancelled) {
  fakeFio("case \"$1\" in --version) echo fio-3.33; exit 0;; esac\nexec sleep 1000");
  Json params = small();
  params["direct"] = false;
  params["time_limit"] = "1s";
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_ERROR);
  EXPECT_THAT(host.error, HasSubstr("fio did not end within 1 s and was killed"));
  params["time_limit"] = "1h";
  host.cancelAfter = 2;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_CANCELLED);
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(StorageFio, ThatIsMissingIsASkip) {
  setenv("MUSTER_FIO_DIR", data().c_str(), 1);
  Json params = small();
  params["direct"] = false;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host.error, HasSubstr("apt-get install fio"));
}

TEST_F(StorageFio, ThatOthersCouldReplaceIsRefused) {
  fakeFio("exec $FIO \"$@\"");
  std::filesystem::permissions(dir().path() / "bin", std::filesystem::perms(0777));
  Json params = small();
  params["direct"] = false;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_BAD_PARAMETER);
  EXPECT_THAT(host.error, HasSubstr("refused"));
}

TEST_F(StorageFio, NeverFillsAFileSystem) {
  Json params = small();
  params["size"] = "1000 TiB";
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_ERROR);
  EXPECT_THAT(host.error, HasSubstr("must stay free"));
  params = small();
  params["keep_free"] = "1000 TiB";
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_ERROR);
  EXPECT_THAT(host.error, HasSubstr("must stay free"));
  EXPECT_THAT(left(), IsEmpty());
}

/// A tmpfs of 64 MiB.
class StorageFioInMemory : public StorageFio {
 protected:
  void SetUp() override {
    mounted_ = mount("tmpfs", data().c_str(), "tmpfs", 0, "size=64m") == 0;
    if (!mounted_) GTEST_SKIP() << "needs root to mount a tmpfs";
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(umount(data().c_str()), 0);
    }
  }
  bool mounted_ = false;
};

TEST_F(StorageFioInMemory, HasNoDirectIoAndSaysSo) {
  EXPECT_EQ(onDisk("fio", small()).ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host.error, HasSubstr("tmpfs has no direct I/O"));
  EXPECT_THAT(host.error, HasSubstr("direct = false"));
  Json params = small();
  params["direct"] = false;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_OK) << host.error;
  EXPECT_EQ(host.told("bandwidth").at(0).labels.at("io"), "buffered");
  EXPECT_EQ(host.told("file_system").back().text, "tmpfs");
  EXPECT_EQ(host.told("mount_source").back().text, "tmpfs");
  EXPECT_THAT(host.told("mount_options").back().text, HasSubstr("size=65536k"));
}

/// Another process fills it after the space was looked at.
TEST_F(StorageFioInMemory, ThatIsFullIsAnErrorThatSaysSo) {
  fakeFio("case \"$1\" in --version) ;; *) head -c 62M /dev/zero >../other;; esac\nexec $FIO \"$@\"");
  Json params = small();
  params["direct"] = false;
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_ERROR);
  EXPECT_THAT(host.error, HasSubstr("fio ended with error 28 (No space left on device)"));
  EXPECT_THAT(left(), ElementsAre("other"));
}

TEST_F(StorageFioInMemory, KeepsTheMarginFree) {
  Json params = small();
  params["direct"] = false;
  params["size"] = "50 MiB";
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_ERROR);
  EXPECT_THAT(host.error, HasSubstr("the file system has 0.067"));
}

TEST_F(StorageFio, OnASimulatedNodeFollowsTheScenario) {
  EXPECT_EQ(onSim("fio", "", {{"pattern", "read"}, {"block_size", "1 MiB"}, {"duration", "20s"}}).ran,
            MUSTER_OK)
      << host.error;
  plugin.expectDeclared(host, "fio");
  EXPECT_DOUBLE_EQ(host.value("bandwidth"), 6e9);
  EXPECT_DOUBLE_EQ(host.told("bandwidth").at(0).time, 120);
  host.measurements.clear();
  EXPECT_EQ(onSim("fio", "[[storage.fault]]\nkind = \"slow\"\nfactor = 0.5\n",
                  {{"pattern", "randwrite"}, {"block_size", "4 KiB"}})
                .ran,
            MUSTER_OK);
  EXPECT_DOUBLE_EQ(host.value("operations"), 75000);
  EXPECT_DOUBLE_EQ(host.value("latency_p50"), 32 / 75000.0);
}

TEST_F(StorageFio, RunsOnceANode) {
  context["world_size"] = 2;
  EXPECT_EQ(onDisk("fio", small()).opened, MUSTER_BAD_PARAMETER);
  EXPECT_THAT(host.error, HasSubstr("ranks = 1"));
}

TEST_F(StorageFio, RefusesASizeThatIsNoMultipleOfTheBlocks) {
  Json params = small();
  params["size"] = "4195000 B";
  EXPECT_EQ(onDisk("fio", params).ran, MUSTER_BAD_PARAMETER);
  EXPECT_THAT(host.error, HasSubstr("multiple of `block_size`"));
}

}  // namespace
}  // namespace muster::testing
