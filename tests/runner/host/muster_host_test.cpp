// SPDX-License-Identifier: Apache-2.0
// muster-host as a person starts it: by hand, in a shell, without a runner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "runner/core/json.h"
#include "runner/core/text.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string host() {
  return buildDir() / "runner" / "host" / "muster-host";
}
std::string fake(const std::string& name) {
  return buildDir() / "tests" / "fakes" / ("fake-" + name + ".so");
}

std::string requestFor(const TempDir& folder, const std::string& name, int kind) {
  const Json request{{"schema", 1},
                     {"plugin", fake(name)},
                     {"test", "run"},
                     {"cases", {{{"index", 0}, {"case", "run"}, {"params", {{"kind", kind}, {"value", 2}}}}}},
                     {"context", {{"world_size", 1}}},
                     {"grace", 0.2}};
  return folder.write("request.json", dumpJson(request));
}

TEST(MusterHost, TeachesItsUse) {
  const ProcessResult help = runProcess({host(), "--help"});
  EXPECT_EQ(help.exitCode, 0);
  EXPECT_THAT(help.out, HasSubstr("--request FILE"));
  EXPECT_THAT(runProcess({host(), "--version"}).out, HasSubstr("plugin ABI 1."));
}

TEST(MusterHost, RefusesWrongUse) {
  const std::vector<std::vector<std::string>> wrong{{},
                                                    {"--describe"},
                                                    {"--nonsense"},
                                                    {"--describe", "a", "--request", "b"},
                                                    {"--request", "a", "--request", "b"}};
  for (std::vector<std::string> words : wrong) {
    words.insert(words.begin(), host());
    const ProcessResult result = runProcess(words);
    EXPECT_EQ(result.exitCode, 2);
    EXPECT_THAT(result.err, HasSubstr("see muster-host --help"));
  }
}

TEST(MusterHost, NeedsItsDescriptorsWhenSupervised) {
  const ProcessResult result =
      runProcess({"/bin/sh", "-c", host() + " --supervised --describe x.so 3>&- 4>&- 5>&-"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("needs descriptor 3"));
}

TEST(MusterHost, DescribesAPlugin) {
  const ProcessResult result = runProcess({host(), "--describe", fake("ok")});
  EXPECT_EQ(result.exitCode, 0);
  const Result<Json> frame = parseJson(trim(result.out));
  ASSERT_TRUE(frame.ok()) << result.out;
  EXPECT_EQ((*frame)["name"], "fake-ok");
  EXPECT_EQ((*frame)["description"]["tests"][0]["name"], "run");
}

TEST(MusterHost, KeepsFramesApartFromWhatThePluginPrints) {
  const TempDir folder;
  const ProcessResult result = runProcess({host(), "--request", requestFor(folder, "ok", 0)});
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_EQ(result.err, "fake-ok prints this\n");
  for (const std::string& line : split(trim(result.out), '\n')) EXPECT_TRUE(parseJson(line).ok()) << line;
  EXPECT_THAT(result.out, HasSubstr(R"({"type":"done","cases":1})"));
}

TEST(MusterHost, EndsLikeItsRank) {
  const TempDir folder;
  EXPECT_EQ(runProcess({host(), "--request", requestFor(folder, "crash", 0)}).exitCode, 128 + SIGSEGV);
  EXPECT_EQ(runProcess({host(), "--request", requestFor(folder, "exit-early", 7)}).exitCode, 7);
  EXPECT_EQ(runProcess({host(), "--request", requestFor(folder, "no-entry", 0)}).exitCode, 1);
  EXPECT_EQ(runProcess({host(), "--request", folder.path() / "none"}).exitCode, 1);
}

TEST(MusterHost, LeavesNothingBehindOnItsOwnEither) {
  const TempDir folder;
  ProcessOptions options;
  options.environment["MUSTER_TEST_MARKER"] = folder.path();
  const ProcessResult result = runProcess({host(), "--request", requestFor(folder, "children", 0)}, options);
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_THAT(processesWith(folder.path()), IsEmpty());
}

TEST(MusterHost, EndsEverythingOnTerm) {
  const TempDir folder;
  ProcessOptions options;
  options.environment["MUSTER_TEST_MARKER"] = folder.path();
  // The shell sends TERM to the guard as soon as the children are there, then waits for it.
  const std::string script =
      host() + " --request " + requestFor(folder, "children", 1) +
      " > frames & g=$!; while ! grep -q progress frames; do sleep 0.02; done; kill $g; wait $g";
  options.folder = folder.path();
  const ProcessResult result = runProcess({"/bin/sh", "-c", script}, options);
  EXPECT_FALSE(result.timedOut);
  EXPECT_EQ(result.exitCode, 128 + SIGKILL) << result.err;
  EXPECT_THAT(processesWith(folder.path()), IsEmpty());
}

TEST(LaterHost, RunsAPluginOfAnOlderMinor) {
  const TempDir folder;
  const std::string later = buildDir() / "tests" / "runner" / "host" / "muster-host-later";
  EXPECT_THAT(runProcess({later, "--version"}).out, HasSubstr("plugin ABI 1.7"));
  const ProcessResult result = runProcess({later, "--request", requestFor(folder, "borders", 2)});
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_THAT(result.out, HasSubstr(R"("state":"ok")"));
}

}  // namespace
}  // namespace muster::testing
