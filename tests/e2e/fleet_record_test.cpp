// SPDX-License-Identifier: Apache-2.0
// Which records count for a fleet: those of its run, whole and honest. The others are named, and so are runs
// that were interrupted.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/e2e/fleet_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FleetRecord : public ::testing::Test {
 protected:
  fs::path record(int node) {
    return run_.path() / "run" / ("sim-node-000" + std::to_string(node)) / "record.json";
  }
  std::string reasonOf(const std::string& node) {
    const Json fleet = run_.json();
    for (const Json& each : fleet["nodes"])
      if (each["node"] == node) return each["state"].get<std::string>() + ": " + each.value("reason", "");
    return "no such node";
  }
  FleetRun run_;
};

TEST_F(FleetRecord, CountsOnlyWithinItsRun) {
  ASSERT_EQ(run_.simulate(3, "", {"--fleet-id", "monday"}).exitCode, 0);
  ASSERT_EQ(
      run_.simulate(1, "", {"--fleet-id", "tuesday", "--node-rank", "3", "--nnodes", "4"}, "run/b").exitCode,
      0);
  ASSERT_EQ(run_.simulate(1, "", {"--node-rank", "4", "--nnodes", "5"}, "run/c").exitCode, 0);
  auto result = run_.judge(5);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_EQ(run_.json()["fleet_id"], "monday");
  EXPECT_THAT(reasonOf("sim-node-0003"),
              HasSubstr("stale: of another run: it belongs to fleet run tuesday, expected fleet run monday"));
  EXPECT_THAT(reasonOf("sim-node-0004"), HasSubstr("stale: of another run: it belongs to no fleet run"));
  result = run_.judge("sim-node-0003\n", {"--fleet-id", "tuesday"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_EQ(run_.judge(5, {"--fleet-id", "../x"}).exitCode, 2);
}

TEST_F(FleetRecord, OfOneScopeNeedsTheOtherAndWhatGroupsShareCountsOnce) {
  const auto job = [&](const std::string& scope) {
    return runMuster({"run", plan("cluster.toml"), "--simulate", scenario("h100x8-cluster-healthy"), "--set",
                      "burn.duration=30s", "--nodes", "4", "--plain", "--scope", scope, "--out",
                      (run_.path() / "run" / scope.substr(0, 6)).string()});
  };
  ASSERT_EQ(job("device,node").exitCode, 0);
  EXPECT_EQ(run_.judge(4).exitCode, 3);
  EXPECT_THAT(reasonOf("sim-node-0002"), HasSubstr("incomplete: no record of the job that runs"));
  ASSERT_EQ(job("cluster").exitCode, 0);
  const auto result = run_.judge(4);
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const Json fleet = run_.json();
  EXPECT_TRUE(fleet["duplicates"].empty());
  EXPECT_GT(fleet["deferred_judged"], 0);
  size_t counted = 0;
  for (const auto& [outcome, count] : fleet["accounting"]["counts"].items()) counted += count.get<size_t>();
  EXPECT_EQ(fleet["accounting"]["expected"], counted);
  EXPECT_EQ(fleet["accounting"]["counts"]["deferred"], 0);
  EXPECT_EQ(fleet["accounting"]["counts"]["elsewhere"], 0);
  ASSERT_FALSE(fleet["groups"].empty());
  for (const Json& group : fleet["groups"]) EXPECT_EQ(group["records"], 4) << group;
}

/// Nodes that each ran alone, or in pairs, have not measured what connects them with the others.
TEST_F(FleetRecord, OfAStageOverNodesMustBeOfARunWithAllOfThem) {
  const std::string ring = run_.write("ring.toml",
                                      "schema = 1\nname = \"ring\"\nsku = \"auto\"\nbackend = \"cuda\"\n"
                                      "[[stage]]\nname = \"ring\"\nplugin = \"ring\"\ntest = \"ring\"\n"
                                      "scope = \"cluster\"\ntimeout = \"2m\"\n")
                               .string();
  const auto runInGroupsOf = [&](int count) {
    fs::remove_all(run_.path() / "run");
    for (int node = 0; node < 4; ++node) {
      const int first = node - node % count;
      EXPECT_EQ(runMuster({"run", ring, "--simulate", scenario("h100x8-cluster-healthy"), "--plain",
                           "--nnodes", std::to_string(count), "--node-rank", std::to_string(node - first),
                           "--node-names", fmt::format("sim-node-[{:04}-{:04}]", first, first + count - 1),
                           "--out", (run_.path() / "run" / std::to_string(node)).string()})
                    .exitCode,
                0);
    }
  };
  const auto exitCode = [&](const std::vector<std::string>& more = {}) {
    return run_.judge(4, std::vector<std::string>{"--same-machine"} + more).exitCode;
  };
  const auto reasons = [&] { return run_.json()["reasons"].dump(); };
  runInGroupsOf(1);
  EXPECT_EQ(exitCode(), 3);
  EXPECT_THAT(reasons(), HasSubstr("ring ran with no other node on sim-node-0000, sim-node-0001, "));
  EXPECT_EQ(exitCode({"--many-runs"}), 3);
  runInGroupsOf(2);
  EXPECT_EQ(exitCode(), 3);
  EXPECT_THAT(reasons(), HasSubstr("ring ran with 2 nodes on "));
  EXPECT_EQ(exitCode({"--many-runs"}), 0);
  EXPECT_THAT(run_.json()["notes"].dump(), HasSubstr("ring ran with 2 nodes on "));
  const std::string key = (run_.path() / "key").string(), run = (run_.path() / "run").string();
  const std::string nodes = run_.write("delivered.txt", "sim-node-[0000-0003]\n").string();
  ASSERT_EQ(runMuster({"fleet", run, "--expect", nodes, "--same-machine", "--many-runs"}).exitCode, 0);
  ASSERT_EQ(runMuster({"sign", "--new-key", key}).exitCode, 0);
  ASSERT_EQ(runMuster({"sign", run, "--key", key}).exitCode, 0);
  EXPECT_THAT(runMuster({"verify", run, "--key", key + ".pub", "--plan", ring}).out,
              HasSubstr("OPEN     fleet      fleet.json: ring ran with 2 nodes on "))
      << "the supplier's --many-runs";
  runInGroupsOf(4);
  EXPECT_EQ(exitCode(), 0) << reasons();
}

/// One clock that is wrong, or one file that cannot be read, keeps no other node from its verdict.
TEST_F(FleetRecord, ThatEndsInTheFutureOrCannotBeReadForAClauseCostsItsOwnNodeAlone) {
  ASSERT_EQ(run_.simulate(3, "").exitCode, 0);
  const auto change = [&](int node, auto edit) {
    Json json = Json::parse(readWhole(record(node)));
    edit(json);
    std::ofstream(record(node)) << json.dump();
  };
  change(1, [](Json& json) { json["run"]["finished"] = json["run"]["finished"].get<double>() + 1000; });
  change(2, [](Json& json) { json["peaks_from"] = nullptr; });
  const std::string contract =
      run_.write("contract.toml",
                 "schema = 1\nname = \"contract\"\n[[clause]]\nid = \"B.1\"\nrequirement = \"rates\"\n"
                 "metrics = [\"compute.gemm_throughput\"]\n")
          .string();
  const auto result = run_.judge(3, {"--requirements", contract});
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(reasonOf("sim-node-0000"), HasSubstr("accepted"));
  EXPECT_THAT(reasonOf("sim-node-0001"), HasSubstr("this machine's clock or the node's is wrong"));
  EXPECT_THAT(reasonOf("sim-node-0002"), HasSubstr("incomplete: its record cannot be read for the clauses"));
}

TEST_F(FleetRecord, OfARunThatWasCutIsNamedWithTheCommandThatGoesOn) {
  ASSERT_EQ(run_.simulate(3, "", {"--fleet-id", "monday"}).exitCode, 0);
  // What a crash leaves: the journal up to the second stage, and a truncated line.
  const fs::path folder = record(1).parent_path();
  const std::string journal = readWhole(folder / "journal.jsonl");
  for (const char* file : {"record.json", "report.html", "junit.xml"}) fs::remove(folder / file);
  size_t end = 0;
  for (int line = 0; line < 4; ++line) end = journal.find('\n', end) + 1;
  std::ofstream(folder / "journal.jsonl") << journal.substr(0, end + 40);
  auto result = run_.judge(3);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const Json fleet = run_.json();
  ASSERT_EQ(fleet["without_record"].size(), 1u);
  EXPECT_TRUE(fleet["quarantined"].empty())
      << "other files of a run are no records: " << fleet["quarantined"];
  const auto reason = fleet["without_record"][0]["reason"].get<std::string>();
  EXPECT_THAT(reason, HasSubstr("its run was interrupted (2 stages finished)"));
  EXPECT_THAT(reasonOf("sim-node-0001"), HasSubstr("incomplete: " + reason));
  EXPECT_THAT(readWhole(run_.path() / "out/fleet.html"), HasSubstr("muster run --resume"));
  // The very command goes on, and the fleet is whole.
  const size_t begin = reason.find('`') + 1;
  const std::string command = reason.substr(begin, reason.find('`', begin) - begin);
  const auto resumed =
      runProcess({"sh", "-c", "exec \"$0\" ${1#muster }", (distDir() / "bin/muster").string(), command});
  EXPECT_EQ(resumed.exitCode, 0) << command << resumed.out << resumed.err;
  EXPECT_EQ(recordIn(folder).launcher.value("fleet_id", ""), "monday");
  EXPECT_EQ(run_.judge(3).exitCode, 0);
}

TEST_F(FleetRecord, OfARunWithoutAWholeJournalIsQuarantined) {
  ASSERT_EQ(run_.simulate(2, "").exitCode, 0);
  fs::remove(record(1));
  std::ofstream(record(1).parent_path() / "journal.jsonl") << "{\"run_id\":";
  EXPECT_EQ(run_.judge(2).exitCode, 3);
  EXPECT_THAT(run_.json()["quarantined"][0]["reason"].get<std::string>(),
              HasSubstr("its journal has no complete first line"));
  EXPECT_THAT(reasonOf("sim-node-0001"), HasSubstr("quarantined: no record"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// Six hostile records in one folder beside two good ones.
TEST_F(FleetRecord, ThatIsTruncatedHugeForeignOrHostileIsQuarantinedWithItsReason) {
  ASSERT_EQ(run_.simulate(8, "").exitCode, 0);
  const auto change = [&](int node, const std::string& from, const std::string& to) {
    const std::string text = replaced(readWhole(record(node)), from, to);
    std::ofstream(record(node)) << text;
  };
  fs::resize_file(record(1), fs::file_size(record(1)) / 2);
  fs::resize_file(record(2), 4ull << 30);  // sparse
  change(3, "\"schema\": ", "\"schema\": 9");
  std::string many;
  for (int i = 0; i < 1'000'000; ++i) many += "{\"metric\":\"a.b\",\"unit\":\"s\"},";
  change(4, "\"measurements\": [", "\"measurements\": [" + many);
  change(5, "\"node\": \"sim-node-0005\"", "\"node\": \"../../etc\"");
  change(6, "\"started\": ", "\"started\": NaN, \"x\": ");
  const auto result = run_.judge(8);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const Json fleet = run_.json();
  EXPECT_EQ(fleet["coverage"]["states"]["accepted"], 2) << "nothing stops the rest";
  const char* reasons[] = {"truncated: the JSON ends after",
                           "4 GiB long",
                           "a record of schema 9",
                           "B long",
                           "is not a node name",
                           "JSON has no NaN"};
  ASSERT_EQ(fleet["quarantined"].size(), 6u) << fleet["quarantined"].dump(1);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_THAT(fleet["quarantined"][i]["reason"].get<std::string>(), HasSubstr(reasons[i]));
  EXPECT_EQ(fleet["coverage"]["states"]["quarantined"], 6) << "also where no name could be read";
  EXPECT_THAT(result.out, HasSubstr("Quarantined (6)"));
}

}  // namespace
}  // namespace muster::testing
