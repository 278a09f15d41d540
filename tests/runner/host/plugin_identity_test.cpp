// SPDX-License-Identifier: Apache-2.0
// Which libraries may be loaded: by version, by name, by owner and mode.
#include "runner/host/plugin_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "runner/host/abi_version.h"
#include "runner/host/plugin_library.h"
#include "tests/support/process.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

fs::path fakePath(const std::string& name) {
  return testing::buildDir() / "tests" / "fakes" / ("fake-" + name + ".so");
}

muster_plugin_info goodInfo() {
  return {
      MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), hostAbiMajor(), hostAbiMinor(), 0, "good", "1.2.3"};
}

std::string refusal(const muster_plugin_info& info) {
  const Result<PluginIdentity> identity = checkPluginInfo(info, "p.so");
  return identity.ok() ? "" : identity.error().text();
}

TEST(PluginIdentity, TakesAGoodLibraryByItsRealPath) {
  const testing::TempDir folder;
  fs::create_symlink(fakePath("ok"), folder.path() / "link.so");
  const Result<PluginIdentity> identity = identifyPlugin(folder.path() / "link.so");
  ASSERT_TRUE(identity.ok()) << identity.error().text();
  EXPECT_EQ(identity->name, "fake-ok");
  EXPECT_EQ(identity->version, "1.0.0");
  EXPECT_EQ(identity->path, fs::canonical(fakePath("ok")));
}

TEST(PluginIdentity, NeedsTheSameMajorAndNoNewerMinor) {
  muster_plugin_info info = goodInfo();
  EXPECT_EQ(refusal(info), "");
  info.abi_major = hostAbiMajor() + 1;
  EXPECT_THAT(refusal(info), HasSubstr("rebuild the plugin"));
  info.abi_major = 0;
  EXPECT_THAT(refusal(info), HasSubstr("was built for plugin ABI 0."));
  info = goodInfo();
  info.abi_minor = hostAbiMinor() + 1;
  EXPECT_THAT(refusal(info), HasSubstr("use a newer Muster"));
}

TEST(PluginIdentity, RefusesWrongMagicSizeAndNames) {
  muster_plugin_info info = goodInfo();
  info.magic ^= 1;
  EXPECT_THAT(refusal(info), HasSubstr("not a Muster plugin"));
  info = goodInfo();
  info.struct_size += 8;
  EXPECT_THAT(refusal(info), HasSubstr("has struct_size 128, expected 120"));
  info = goodInfo();
  std::memset(info.name, 'n', sizeof info.name);
  EXPECT_THAT(refusal(info), HasSubstr("its name has no end"));
  info = goodInfo();
  std::memset(info.version, 'v', sizeof info.version);
  EXPECT_THAT(refusal(info), HasSubstr("its version has no end"));
  for (const char* name : {"", "../x", "a b", "a\x1b[31m"}) {
    info = goodInfo();
    std::strncpy(info.name, name, sizeof info.name - 1);
    EXPECT_THAT(refusal(info), HasSubstr("expected letters, digits")) << name;
  }
}

TEST(PluginIdentity, RefusesWhatOthersCanWrite) {
  const testing::TempDir folder;
  const fs::path copy = folder.path() / "fake-ok.so";
  fs::copy_file(fakePath("ok"), copy);
  for (const mode_t mode : {0666, 0664, 0602}) {
    ASSERT_EQ(chmod(copy.c_str(), mode), 0);
    EXPECT_THAT(identifyPlugin(copy).error().text(), HasSubstr("refused: the plugin is writable by others"))
        << mode;
  }
  ASSERT_EQ(chmod(copy.c_str(), 0644), 0);
  EXPECT_TRUE(identifyPlugin(copy).ok());
  for (const auto& [mode, next] : {std::pair<mode_t, const char*>{0777, "run chmod go-w on it"},
                                   {0770, "run chmod go-w on it"},
                                   {01777, "put it into a folder of its own"}}) {
    ASSERT_EQ(chmod(folder.path().c_str(), mode), 0);
    EXPECT_THAT(identifyPlugin(copy).error().text(),
                AllOf(HasSubstr("refused: the folder of the plugin is writable"), HasSubstr(next)))
        << mode;
  }
}

TEST(PluginIdentity, RefusesAStrangersFile) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const testing::TempDir folder;
  const fs::path copy = folder.path() / "fake-ok.so";
  fs::copy_file(fakePath("ok"), copy);
  ASSERT_EQ(chown(copy.c_str(), 12345, 12345), 0);
  EXPECT_THAT(identifyPlugin(copy).error().text(),
              HasSubstr("belongs to user 12345; it must belong to root"));
}

TEST(PluginIdentity, RefusesWhatIsNotAFile) {
  const testing::TempDir folder;
  EXPECT_THAT(identifyPlugin(folder.path() / "none.so").error().text(),
              HasSubstr("none.so: cannot find the plugin"));
  EXPECT_THAT(identifyPlugin(folder.path()).error().text(), HasSubstr("is not a regular file"));
  ASSERT_EQ(mkfifo((folder.path() / "pipe.so").c_str(), 0600), 0);
  EXPECT_THAT(identifyPlugin(folder.path() / "pipe.so").error().text(), HasSubstr("is not a regular file"));
}

TEST(PluginLibrary, ChecksTheTable) {
  muster_plugin_ops ops{};
  EXPECT_THAT(checkOps(nullptr, "p.so").error().text(), HasSubstr("returned no table"));
  EXPECT_THAT(checkOps(&ops, "p.so").error().text(), HasSubstr("has struct_size 0"));
  ops.struct_size = sizeof ops;
  EXPECT_THAT(checkOps(&ops, "p.so").error().text(), HasSubstr("lacks describe, open, run or close"));
  ops.abi_minor = hostAbiMinor() + 1;
  EXPECT_THAT(checkOps(&ops, "p.so").error().text(), HasSubstr("is of ABI minor"));
}

TEST(PluginLibrary, NamesAMissingLibrary) {
  const std::string reason = ": cannot open shared object file: No such file or directory";
  EXPECT_EQ(loadErrorText("libcudnn.so.9" + reason, "/p/x.so").substr(0, 48),
            "needs the library libcudnn.so.9, which was not f");
  EXPECT_EQ(loadErrorText("/p/x.so" + reason, "/p/x.so").substr(0, 18), "cannot be loaded: ");
  EXPECT_EQ(loadErrorText("/p/x.so: undefined symbol: foo", "/p/x.so"),
            "cannot be loaded: /p/x.so: undefined symbol: foo; link the library that defines it (-Wl,-z,defs "
            "reports missing symbols at build time)");
}

}  // namespace
}  // namespace muster
