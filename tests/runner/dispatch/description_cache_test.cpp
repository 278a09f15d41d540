// SPDX-License-Identifier: Apache-2.0
// Descriptions are kept between runs as long as nothing has changed, and never believed from others' files.
#include "runner/dispatch/description_cache.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <sstream>
#include <thread>

#include "runner/dispatch/plugins.h"
#include "runner/system/files.h"
#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

/// A folder of plugins, a host that notes which libraries it was asked to describe, and a cache of their own.
class DescriptionCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_CACHE_HOME", (folder_.path() / "cache").c_str(), 1);
    fs::create_directories(plugins());
    for (const char* fake : {"ok", "crash", "describe-garbage"}) copy(fake);
    writeHost("");
    settle();
  }
  void TearDown() override { unsetenv("XDG_CACHE_HOME"); }

  [[nodiscard]] fs::path plugins() const { return folder_.path() / "plugins"; }
  [[nodiscard]] fs::path cacheFile() const { return folder_.path() / "cache/muster/plugins.json"; }
  [[nodiscard]] fs::path log() const { return folder_.path() / "asked"; }

  void copy(const std::string& fake) const {
    fs::copy_file(fakeLibrary(fake), plugins() / ("fake-" + fake + ".so"),
                  fs::copy_options::overwrite_existing);
  }

  void writeHost(const std::string& comment) const {
    const fs::path host = folder_.path() / "host";
    folder_.write("host", fmt::format("#!/bin/sh\n# {}\nbasename \"$2\" >> {}\nexec {} \"$@\"\n", comment,
                                      log().string(), hostExecutable().string()));
    fs::permissions(host, fs::perms(0755));
  }

  /// Files that were changed a moment ago are not believed to stay as they are.
  static void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(2100)); }

  /// The libraries that hosts were started for.
  std::vector<std::string> describe() {
    fs::remove(log());
    Tree tree;
    tree.hostExecutable = folder_.path() / "host";
    tree.plugins = plugins();
    const Result<Catalog> catalog = describePlugins(tree, {}, {}, 60);
    EXPECT_TRUE(catalog.ok());
    if (!catalog.ok()) return {};
    EXPECT_EQ(catalog->plugins.size(), 2U);
    EXPECT_NE(catalog->metric("fake-ok.value"), nullptr);
    EXPECT_EQ(catalog->refused.count("fake-describe-garbage.so"), 1U);
    std::vector<std::string> asked;
    if (const auto text = readFile(log()); text.ok()) {
      std::istringstream lines(*text);
      for (std::string line; std::getline(lines, line);) asked.push_back(line);
    }
    return asked;
  }

  TempDir folder_;
};

TEST_F(DescriptionCacheTest, OfRootIsNotMadeInAnothersHome) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const fs::path home = folder_.path() / "home", target = folder_.path() / "target";
  fs::create_directories(home);
  fs::create_directories(target);
  fs::create_symlink(target, home / ".cache");
  ASSERT_EQ(chown(home.c_str(), 12345, 12345), 0);
  unsetenv("XDG_CACHE_HOME");
  const std::string before = getenv("HOME") == nullptr ? "/root" : getenv("HOME");
  setenv("HOME", home.c_str(), 1);
  EXPECT_FALSE(describe().empty());
  setenv("HOME", before.c_str(), 1);
  EXPECT_TRUE(fs::is_empty(target));
}

/// Only root could remove there what root made.
TEST_F(DescriptionCacheTest, OfRootIsNotMadeInTheHomeOfWhoCalledSudo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const std::string before = getenv("HOME") == nullptr ? "/root" : getenv("HOME");
  const fs::path home = folder_.path() / "home", cache = home / ".cache";
  fs::create_directories(home);
  ASSERT_EQ(chown(home.c_str(), 12345, 12345), 0);
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", home.c_str(), 1);
  setenv("SUDO_UID", "12345", 1);
  EXPECT_FALSE(describe().empty());
  EXPECT_TRUE(fs::is_empty(home));
  fs::create_directories(cache);
  ASSERT_EQ(chown(cache.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(describe().empty());
  EXPECT_TRUE(fs::is_empty(cache));
  unsetenv("SUDO_UID");
  setenv("HOME", before.c_str(), 1);
}

TEST_F(DescriptionCacheTest, AsksAgainOnlyForWhatHasChangedOrWasRefused) {
  EXPECT_THAT(describe(), UnorderedElementsAre("fake-ok.so", "fake-crash.so", "fake-describe-garbage.so"));
  EXPECT_THAT(describe(), ElementsAre("fake-describe-garbage.so"));
  copy("ok");
  EXPECT_THAT(describe(), UnorderedElementsAre("fake-ok.so", "fake-describe-garbage.so"));
  settle();
  describe();
  EXPECT_THAT(describe(), ElementsAre("fake-describe-garbage.so"));
  writeHost("of another build");
  settle();
  EXPECT_EQ(describe().size(), 3U);
  EXPECT_EQ(describe().size(), 1U);
}

TEST_F(DescriptionCacheTest, IsNeitherUsedNorWrittenWhereOthersCouldChangeIt) {
  describe();
  fs::permissions(cacheFile(), fs::perms(0666));
  EXPECT_EQ(describe().size(), 3U);
  fs::remove(cacheFile());
  fs::permissions(cacheFile().parent_path(), fs::perms(0777));
  EXPECT_EQ(describe().size(), 3U);
  EXPECT_FALSE(fs::exists(cacheFile()));
  fs::permissions(cacheFile().parent_path(), fs::perms(0700));
  EXPECT_EQ(describe().size(), 3U);
  EXPECT_EQ(describe().size(), 1U);
  fs::permissions(plugins(), fs::perms(0777));
  DescriptionCache cache(folder_.path() / "host");
  EXPECT_EQ(cache.find(plugins() / "fake-ok.so"), nullptr);
}

TEST_F(DescriptionCacheTest, WorksWithoutAFolderForIt) {
  folder_.write("file", "");
  for (const char* home : {"file/below", "relative", "/proc/nowhere"}) {
    setenv("XDG_CACHE_HOME", home[0] == 'f' ? (folder_.path() / home).c_str() : home, 1);
    setenv("HOME", "/proc/nowhere", 1);
    EXPECT_EQ(describe().size(), 3U) << home;
  }
}

TEST_F(DescriptionCacheTest, ADamagedFileIsNotAnAnswerOrTheRightOne) {
  describe();
  const std::string whole = *readFile(cacheFile());
  const fs::path library = plugins() / "fake-ok.so";
  const Json right = *DescriptionCache(folder_.path() / "host").find(library);
  std::mt19937 random(7);
  const auto below = [&](size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
  };
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = whole;
    if (trial % 2 == 0)
      text.resize(below(whole.size()));
    else
      text.erase(below(whole.size()), 1 + below(40));
    ASSERT_TRUE(writeFileAtomically(cacheFile(), text, Durable::kNo).ok());
    const DescriptionCache cache(folder_.path() / "host");
    const Json* answer = cache.find(library);
    // A description that lost a part is read like a plugin's own: with every check.
    if (answer != nullptr && trial % 2 == 0) {
      EXPECT_EQ(*answer, right);
    }
  }
  for (const char* text : {"", "[]", "1", "null", R"({"host":1,"plugins":3})", R"({"plugins":{"a":1}})"}) {
    ASSERT_TRUE(writeFileAtomically(cacheFile(), text, Durable::kNo).ok());
    EXPECT_EQ(describe().size(), 3U) << text;
  }
}

}  // namespace
}  // namespace muster::testing
