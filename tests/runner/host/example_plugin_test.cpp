// SPDX-License-Identifier: Apache-2.0
// The worked C example: built from the ABI header alone, as its README says, described and run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/core/text.h"
#include "runner/metrics/catalog.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;

std::string hostProgram() {
  return buildDir() / "runner" / "host" / "muster-host";
}

/// Builds the example in `folder`, where nothing but the header can be included.
std::string build(const TempDir& folder) {
  std::filesystem::copy_file(sourceDir() / "plugins" / "abi" / "muster_plugin.h",
                             folder.path() / "muster_plugin.h");
  const std::string library = folder.path() / "pipe-latency.so";
  const ProcessResult compiled = runProcess({"cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                             "-shared", "-fPIC", "-I", folder.path(), "-o", library,
                                             sourceDir() / "plugins" / "abi" / "example" / "pipe_latency.c"});
  EXPECT_EQ(compiled.exitCode, 0) << compiled.err;
  return library;
}

std::vector<Json> framesOf(const ProcessResult& result) {
  std::vector<Json> frames;
  for (const std::string& line : split(trim(result.out), '\n')) frames.push_back(*parseJson(line));
  return frames;
}

TEST(ExamplePlugin, DescribesItself) {
  const TempDir folder;
  const std::vector<Json> frames = framesOf(runProcess({hostProgram(), "--describe", build(folder)}));
  ASSERT_EQ(frames.size(), 1U);
  const Result<PluginSpec> spec = pluginSpecFromDescribe("pipe-latency", frames[0]["description"]);
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  ASSERT_NE(spec->test("ping_pong"), nullptr);
  EXPECT_NE(spec->test("ping_pong")->metric("round_trip"), nullptr);
}

TEST(ExamplePlugin, MeasuresAndCleansUp) {
  const TempDir folder;
  const Json request{
      {"schema", 1},
      {"plugin", build(folder)},
      {"test", "ping_pong"},
      {"cases", {{{"index", 0}, {"case", "latency"}, {"params", {{"rounds", 50}, {"samples", 4}}}}}},
      {"context", {{"world_size", 1}}}};
  const ProcessResult result =
      runProcess({hostProgram(), "--request", folder.write("request.json", dumpJson(request))});
  ASSERT_EQ(result.exitCode, 0) << result.err << result.out;
  std::vector<Json> measurements;
  for (const Json& frame : framesOf(result))
    if (frame["type"] == "measurement") measurements.push_back(frame);
  ASSERT_EQ(measurements.size(), 2U) << result.out;
  EXPECT_EQ(measurements[0]["metric"], "round_trip");
  EXPECT_EQ(measurements[0]["labels"]["rounds"], "50");
  EXPECT_EQ(measurements[0]["samples"].size(), 4U);
  EXPECT_THAT(measurements[0]["samples"].get<std::vector<double>>(), Each(Gt(0)));
  EXPECT_EQ(measurements[1]["samples"], Json({0.0}));
  EXPECT_THAT(processesWith(folder.path()), IsEmpty());
}

}  // namespace
}  // namespace muster::testing
