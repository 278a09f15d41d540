// SPDX-License-Identifier: Apache-2.0
// Describing plugins: the good ones are in the catalogue, the hostile ones are refused with a reason.
#include "runner/dispatch/plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "plugins/abi/muster_plugin.h"
#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tree fakeTree() {
  Tree tree;
  tree.hostExecutable = hostExecutable();
  tree.plugins = fakesDir();
  return tree;
}

Catalog describe(const std::vector<std::string>& only, double timeout = 60) {
  Result<Catalog> catalog = describePlugins(fakeTree(), {}, only, timeout);
  EXPECT_TRUE(catalog.ok());
  return catalog.ok() ? std::move(*catalog) : Catalog{};
}

TEST(Plugins, DescribesThoseThatAreAskedFor) {
  const Catalog catalog = describe({"fake-ok", "fake-crash"});
  EXPECT_EQ(catalog.plugins.size(), 2U);
  EXPECT_THAT(catalog.refused, IsEmpty());
  const PluginSpec* plugin = catalog.plugin("fake-ok");
  ASSERT_NE(plugin, nullptr);
  EXPECT_EQ(plugin->version, "1.0.0");
  EXPECT_EQ(plugin->path, fakeLibrary("ok"));
  ASSERT_NE(plugin->test("run"), nullptr);
  EXPECT_NE(plugin->test("run")->param("kind"), nullptr);
  EXPECT_NE(catalog.metric("fake-ok.value"), nullptr);
}

void expectRefused(const Catalog& catalog, const std::string& fake, const std::string& why) {
  const auto found = catalog.refused.find("fake-" + fake + ".so");
  ASSERT_NE(found, catalog.refused.end()) << fake;
  EXPECT_THAT(found->second.text(), HasSubstr(why)) << fake;
}

TEST(Plugins, RefusesHostileOnesEachWithItsReason) {
  const Catalog catalog =
      describe({"fake-wrong-major", "fake-newer-minor", "fake-wrong-magic", "fake-wrong-size",
                "fake-endless-name", "fake-no-symbol", "fake-no-entry", "fake-empty-slot",
                "fake-missing-library", "fake-constructor-abort", "fake-describe-garbage"});
  EXPECT_THAT(catalog.plugins, IsEmpty());
  expectRefused(catalog, "wrong-major", "was built for plugin ABI 2.0, this Muster speaks 1.x");
  expectRefused(catalog, "newer-minor",
                "needs plugin ABI 1.1000, this Muster has 1." + std::to_string(MUSTER_ABI_MINOR));
  expectRefused(catalog, "wrong-magic", "has magic 0x000000000000002a");
  expectRefused(catalog, "wrong-size", "has struct_size 8, expected 120");
  expectRefused(catalog, "endless-name", "its name has no end");
  expectRefused(catalog, "no-symbol", "exports no symbol muster_plugin");
  expectRefused(catalog, "no-entry", "no function muster_plugin_entry");
  expectRefused(catalog, "empty-slot", "lacks describe, open, run or close");
  expectRefused(catalog, "missing-library", "needs the library libfake-gone.so.1, which was not found");
  expectRefused(catalog, "constructor-abort", "fake-constructor-abort.so was killed by SIGABRT");
  expectRefused(catalog, "describe-garbage", "describe(): not valid JSON");
}

TEST(Plugins, EndsOneThatHangsWhileItDescribesItself) {
  const Catalog catalog = describe({"fake-describe-hang", "fake-ok"}, 3);
  expectRefused(catalog, "describe-hang", "timed out after 3s");
  EXPECT_NE(catalog.plugin("fake-ok"), nullptr);
}

TEST(Plugins, RefusesOneThatStandsInTwoFolders) {
  const TempDir folder;
  std::filesystem::copy_file(fakeLibrary("ok"), folder.path() / "fake-ok.so");
  const Result<Catalog> catalog = describePlugins(fakeTree(), {folder.path()}, {"fake-ok"});
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(catalog->plugin("fake-ok"), nullptr);
  expectRefused(*catalog, "ok",
                "found twice, in " + fakesDir().string() + " and in " + folder.path().string());
}

TEST(Plugins, RefusesOneWhoseFileHasAnotherName) {
  const TempDir folder;
  std::filesystem::copy_file(fakeLibrary("ok"), folder.path() / "fake-other.so");
  const Result<Catalog> catalog = describePlugins(fakeTree(), {folder.path()}, {"fake-other"});
  ASSERT_TRUE(catalog.ok());
  expectRefused(*catalog, "other", "holds plugin \"fake-ok\"; name the file fake-ok.so");
}

TEST(Plugins, RefusesAFolderThatOthersMayWrite) {
  const TempDir folder;
  std::filesystem::copy_file(fakeLibrary("ok"), folder.path() / "fake-ok.so");
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  Tree tree = fakeTree();
  tree.plugins = folder.path();
  const Result<Catalog> catalog = describePlugins(tree, {}, {"fake-ok"});
  ASSERT_TRUE(catalog.ok());
  expectRefused(*catalog, "ok", "the folder of the plugin is writable by others than its owner (mode 0777)");
}

TEST(Plugins, NamesAFolderThatIsNotThere) {
  const Result<Catalog> catalog = describePlugins(fakeTree(), {"/nowhere"}, {});
  ASSERT_FALSE(catalog.ok());
  EXPECT_THAT(catalog.error().text(), HasSubstr("/nowhere: cannot read the plugin folder: No such file"));
}

TEST(Plugins, AsksForTheFolderWhereAFileIsGiven) {
  const Result<Catalog> catalog = describePlugins(fakeTree(), {fakeLibrary("ok")}, {});
  ASSERT_FALSE(catalog.ok());
  EXPECT_THAT(catalog.error().text(), HasSubstr("Not a directory; give the folder that holds the library"));
}

TEST(Tree, IsNamedByTheEnvironmentAndNamesWhatIsMissing) {
  const TempDir folder;
  setenv("MUSTER_TREE", folder.path().c_str(), 1);
  const Result<Tree> empty = findTree();
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.error().text(),
              HasSubstr("lib/muster/host/muster-host: is missing from the installation"));
  folder.write("lib/muster/host/muster-host", "");
  for (const char* path :
       {"lib/muster/plugins", "lib/muster/backends", "share/muster/plans", "share/muster/templates"})
    std::filesystem::create_directories(folder.path() / path);
  const Result<Tree> tree = findTree();
  unsetenv("MUSTER_TREE");
  ASSERT_TRUE(tree.ok()) << tree.error().text();
  EXPECT_EQ(tree->plugins, folder.path() / "lib/muster/plugins");
}

}  // namespace
}  // namespace muster::testing
