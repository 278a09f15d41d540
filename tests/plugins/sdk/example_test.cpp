// SPDX-License-Identifier: Apache-2.0
// The worked C++ example, built of the sources that plugins/README.md names and of no library: described and
// run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/core/text.h"
#include "runner/metrics/catalog.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string host() {
  return buildDir() / "runner" / "host" / "muster-host";
}
std::string example() {
  return buildDir() / "tests" / "plugins" / "sdk" / "fsync-latency.so";
}

/// The frames of one type that a run of the example in `folder` gave.
std::vector<Json> run(const TempDir& requests, const std::string& folder, const std::string& type) {
  const Json params{{"folder", folder}, {"block", 512.0}, {"samples", 3}};
  const Json request{{"schema", 1},
                     {"plugin", example()},
                     {"test", "fsync"},
                     {"cases", {{{"index", 0}, {"case", "fsync"}, {"params", params}, {"seed", 1}}}},
                     {"context", {{"world_size", 1}}}};
  const ProcessResult result =
      runProcess({host(), "--request", requests.write("request.json", dumpJson(request))});
  EXPECT_EQ(result.exitCode, 0) << result.err << result.out;
  std::vector<Json> frames;
  for (const std::string& line : split(trim(result.out), '\n'))
    if (const auto frame = parseJson(line); frame.ok() && (*frame)["type"] == type) frames.push_back(*frame);
  return frames;
}

TEST(SdkExample, DescribesItself) {
  const ProcessResult result = runProcess({host(), "--describe", example()});
  const auto frame = parseJson(trim(result.out));
  ASSERT_TRUE(frame.ok()) << result.err << result.out;
  const Result<PluginSpec> spec = pluginSpecFromDescribe("fsync-latency", (*frame)["description"]);
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_NE(spec->test("fsync"), nullptr);
}

TEST(SdkExample, MeasuresAndLeavesNothingInTheFolder) {
  const TempDir requests, target;
  const std::vector<Json> measured = run(requests, target.path(), "measurement");
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0]["metric"], "latency");
  ASSERT_EQ(measured[0]["samples"].size(), 3U);
  EXPECT_THAT(measured[0]["samples"].get<std::vector<double>>(), Each(Gt(0)));
  EXPECT_TRUE(std::filesystem::is_empty(target.path()));
}

TEST(SdkExample, NamesAFolderThatIsNotThere) {
  const TempDir requests;
  EXPECT_THAT(run(requests, "/nowhere", "measurement"), IsEmpty());
  const Json end = run(requests, "/nowhere", "case").back();
  EXPECT_EQ(end["state"], "error");
  EXPECT_THAT(end["message"].get<std::string>(), HasSubstr("cannot make a file in /nowhere: No such file"));
}

}  // namespace
}  // namespace muster::testing
