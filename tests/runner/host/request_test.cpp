// SPDX-License-Identifier: Apache-2.0
// Requests: what is read, what is added, what is refused.
#include "runner/host/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

Json good() {
  return {{"schema", 1},
          {"plugin", "/p/x.so"},
          {"test", "gemm"},
          {"cases",
           {{{"index", 2}, {"case", "gemm[n=1]"}, {"params", {{"n", 1}}}, {"repeat", 1}, {"attempt", 2}}}},
          {"context", {{"rank", 3}, {"world_size", 1}, {"device", {{"id", "gpu3"}}}, {"scenario", ""}}},
          {"affinity", {0, 5}}};
}

TEST(Request, ReadsAllFields) {
  const Result<HostRequest> request = requestFromJson(good());
  ASSERT_TRUE(request.ok()) << request.error().text();
  EXPECT_EQ(request->plugin, "/p/x.so");
  EXPECT_EQ(request->rank, 3);
  EXPECT_EQ(request->device, "gpu3");
  EXPECT_FALSE(request->simulated);
  EXPECT_EQ(request->affinity, (std::vector<int>{0, 5}));
  EXPECT_EQ(request->grace, 2);
  EXPECT_EQ(request->abandonAfter, 10);
  ASSERT_EQ(request->cases.size(), 1U);
  EXPECT_EQ(request->cases[0].index, 2);
  EXPECT_EQ(request->cases[0].attempt, 2);
  EXPECT_EQ((*parseJson(request->cases[0].json))["params"]["n"], 1);
  EXPECT_EQ((*parseJson(request->contextJson))["test"], "gemm");
}

void expectRefused(const Json& request, const std::string& why) {
  const Result<HostRequest> read = requestFromJson(request);
  ASSERT_FALSE(read.ok()) << why;
  EXPECT_THAT(read.error().text(), HasSubstr(why));
}

/// good() with the value at `pointer` replaced.
Json with(const char* pointer, const Json& value) {
  Json request = good();
  request[Json::json_pointer(pointer)] = value;
  return request;
}

TEST(Request, RefusesWhatIsMissingOrWrong) {
  expectRefused("text", "expected a JSON object");
  expectRefused(Json::object(), "schema");
  expectRefused(with("/schema", 2), "is 2, this muster-host reads 1");
  expectRefused(with("/plugin", 5), "plugin");
  expectRefused(with("/context", "x"), "context");
  expectRefused(with("/context/world_size", 0), "world_size");
  expectRefused(with("/cases", 1), "cases");
  expectRefused(with("/cases/0/index", -1), "index");
  expectRefused(with("/cases/0/params", 3), "params");
  expectRefused(with("/affinity/0", -4), "affinity");
  expectRefused(with("/grace", -1), "grace");
  expectRefused(with("/abandon_after", 1e9), "abandon_after");
  Json twice = good();
  twice["cases"].push_back(twice["cases"][0]);
  expectRefused(twice, "index 2 is listed twice");
}

TEST(Request, KnowsWhoTalksToWhom) {
  Json request = good();
  request["context"]["world_size"] = 8;
  request["context"]["scope"] = "node";
  EXPECT_EQ(requestFromJson(request)->groupRank, 3);
  EXPECT_EQ(requestFromJson(request)->groupSize, 8);
  request["context"]["scope"] = "device";  // each device alone, however many there are
  EXPECT_EQ(requestFromJson(request)->groupRank, 0);
  EXPECT_EQ(requestFromJson(request)->groupSize, 1);
  request["context"]["scope"] = "cluster";
  request["context"]["rank"] = 8;
  expectRefused(request, "is 8 of 8");
}

TEST(Request, NamesTheFileThatIsWrong) {
  const testing::TempDir folder;
  EXPECT_THAT(readRequest(folder.path() / "none.json").error().text(), HasSubstr("none.json"));
  EXPECT_THAT(readRequest(folder.write("bad.json", "{oops")).error().text(), HasSubstr("bad.json"));
  EXPECT_THAT(readRequest(folder.write("empty.json", "{}")).error().text(), HasSubstr("empty.json"));
}

}  // namespace
}  // namespace muster
