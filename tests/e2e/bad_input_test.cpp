// SPDX-License-Identifier: Apache-2.0
// Bad input gets a clear error and loses nothing.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

void expectUsageError(const ProcessResult& result, const std::string& said) {
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_NE(result.err.find(said), std::string::npos) << "expected: " << said << "\nfound: " << result.err;
}

TEST(BadInput, AMissingPlanIsNamed) {
  TempDir dir;
  expectUsageError(runMuster({"run", (dir.path() / "nowhere.toml").string()}), "nowhere.toml");
}

TEST(BadInput, AFolderIsNotAPlan) {
  TempDir dir;
  fs::create_directories(dir.path() / "plan.toml");
  expectUsageError(runMuster({"check", (dir.path() / "plan.toml").string()}), "is a folder");
}

TEST(BadInput, APlanOfAGigabyteIsRefusedUnread) {
  TempDir dir;
  const auto file = dir.write("big.toml", "schema = 1\n");
  ASSERT_EQ(truncate(file.c_str(), 1'000'000'000), 0);
  ProcessOptions options;
  options.timeout = 20;
  expectUsageError(runMuster({"check", file.string()}, options), "larger than 4 MiB");
}

TEST(BadInput, ABinaryIsNotAPlan) {
  TempDir dir;
  const auto file = dir.write("binary.toml", readWhole("/bin/true").substr(0, 20000));
  expectUsageError(runMuster({"check", file.string()}), "binary.toml");
}

TEST(BadInput, AnUnreadablePlanSaysWhy) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  TempDir dir;
  chmod(dir.path().c_str(), 0755);
  const auto file = dir.write("secret.toml", "schema = 1\n");
  chmod(file.c_str(), 0600);
  const auto result = runProcess({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                  (distDir() / "bin/muster").string(), "check", file.string()});
  expectUsageError(result, "EACCES");
}

TEST(BadInput, TooFewDescriptorsAreNamedBeforeAnythingRuns) {
  TempDir dir;
  const auto result = runProcess({"prlimit", "--nofile=100", (distDir() / "bin/muster").string(), "run",
                                  plan("quickstart.toml"), "--out", (dir.path() / "out").string()});
  expectUsageError(result, "this process may open 100 files, and a run needs at least 256");
  EXPECT_FALSE(fs::exists(dir.path() / "out"));
}

TEST(BadInput, AReadOnlyOutFolderIsRefusedBeforeAnythingRuns) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  TempDir dir;
  chmod(dir.path().c_str(), 0555);
  const auto result = runProcess({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                  (distDir() / "bin/muster").string(), "run", plan("environment.toml"),
                                  "--out", (dir.path() / "run").string()});
  expectUsageError(result, (dir.path() / "run").string());
}

TEST(BadInput, AFolderWithAFinishedRunIsKept) {
  TempDir dir;
  const auto out = (dir.path() / "run").string();
  const std::vector<std::string> arguments = {
      "run", plan("node-quick.toml"), "--simulate", scenario("h100x8-healthy"), "--out", out};
  ASSERT_EQ(runMuster(arguments).exitCode, 0);
  const std::string before = readWhole(dir.path() / "run" / "record.json");
  expectUsageError(runMuster(arguments), "already holds a run");
  EXPECT_EQ(readWhole(dir.path() / "run" / "record.json"), before);
}

TEST(BadInput, AHostileRecordIsRefused) {
  TempDir dir;
  const auto torn = dir.write("torn.json", "{\"schema\": 1, \"tool\":");
  const auto other = dir.write("other.json", "{\"schema\": 99}");
  const auto deep = dir.write("deep.json", std::string(200000, '['));
  for (const auto& file : {torn, other, deep}) {
    const auto result = runMuster({"judge", file.string()});
    EXPECT_EQ(result.exitCode, 2) << file << result.err;
  }
}

TEST(BadInput, AnUnknownScenarioIsNamed) {
  TempDir dir;
  const auto result = runMuster({"run", plan("node-quick.toml"), "--simulate",
                                 (dir.path() / "no.toml").string(), "--out", (dir.path() / "run").string()});
  EXPECT_NE(result.exitCode, 0);
  EXPECT_NE((result.err + result.out).find("no.toml"), std::string::npos) << result.err;
}

TEST(BadInput, AnUnknownSkuNamesTheNearest) {
  TempDir dir;
  expectUsageError(runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-healthy"),
                              "--sku", "h100-sxm5-80g", "--out", (dir.path() / "run").string()}),
                   "h100-sxm5-80gb");
}

}  // namespace
}  // namespace muster::testing
