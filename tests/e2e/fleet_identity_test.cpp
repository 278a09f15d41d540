// SPDX-License-Identifier: Apache-2.0
// What `muster fleet` does not accept although every record says accepted: one machine under two names,
// another SKU, looser limits, re-judged samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runner/system/files.h"
#include "tests/e2e/fleet_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FleetIdentity : public ::testing::Test {
 protected:
  fs::path folder(const std::string& name) { return run_.path() / "run" / name; }

  /// One simulated node of a fleet of four.
  ProcessResult node(int rank, const std::string& name, const std::string& scene = "h100x8-healthy",
                     const std::vector<std::string>& more = {}) {
    std::string text = kFleetPlan;
    text.replace(text.find("h100-sxm5-80gb"), 14, "auto");
    return runMuster(std::vector<std::string>{"run", run_.write("auto.toml", text).string(), "--simulate",
                                              scenario(scene), "--nnodes", "4", "--node-rank",
                                              std::to_string(rank), "--node-name", name, "--plain", "--out",
                                              folder(name).string()} +
                     more);
  }
  std::string stateOf(const std::string& name) {
    const Json fleet = run_.json();
    for (const Json& each : fleet["nodes"])
      if (each["node"] == name) return each["state"];
    return "no such node";
  }
  std::string findings() { return run_.json()["findings"].dump(); }

  FleetRun run_;
};

TEST_F(FleetIdentity, OfOneMachineUnderTwoNamesIsAFailureThatNamesBoth) {
  for (const char* name : {"n8", "n9"}) ASSERT_EQ(node(0, name).exitCode, 0);
  const auto result = run_.judge("n8\nn9\n");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("the same hardware appears under 2 names"));
  for (const char* name : {"n8", "n9"})
    EXPECT_EQ(stateOf(name), "incomplete") << "either may be the forged one";
  EXPECT_THAT(findings(), AllOf(HasSubstr("n8/record.json"), HasSubstr("n9/record.json")));
  EXPECT_THAT(readWhole(run_.path() / "out/fleet.html"),
              HasSubstr("the same hardware appears under 2 names"));

  const auto shared = run_.judge("n8\nn9\n", {"--same-machine"});
  EXPECT_EQ(shared.exitCode, 0) << shared.out << shared.err;
  EXPECT_EQ(run_.json()["same_machine"], true);
  EXPECT_THAT(readWhole(run_.path() / "out/fleet.html"), HasSubstr("allowed by --same-machine"));
}

TEST_F(FleetIdentity, OfACopiedRecordIsThatOfItsRun) {
  ASSERT_EQ(node(0, "n1").exitCode, 0);
  std::string text = readWhole(folder("n1") / "record.json");
  for (size_t at = text.find("\"n1\""); at != std::string::npos; at = text.find("\"n1\"", at + 1))
    text[at + 2] = '2';
  run_.write("run/n2/record.json", text);
  const auto result = run_.judge("n1\nn2\n", {"--same-machine"});
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_EQ(stateOf("n2"), "quarantined");
  EXPECT_THAT(result.out, HasSubstr("edited or truncated: run id"));
}

TEST_F(FleetIdentity, OfAnotherSkuMustBeExpected) {
  for (int rank = 0; rank < 3; ++rank) ASSERT_EQ(node(rank, "n" + std::to_string(rank)).exitCode, 0);
  ASSERT_EQ(node(3, "n3", "h200x8-healthy").exitCode, 0);
  const auto result = run_.judge("n[0-3]\n");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("wrong SKU: n3 is of h200-sxm, expected h100-sxm5-80gb, as 3 of 4 nodes are"));
  EXPECT_FALSE(run_.json()["drift"].empty());
  EXPECT_EQ(run_.judge("n[0-2]\nn3 sku=h200-sxm\n").exitCode, 0);
  EXPECT_EQ(run_.judge("n[0-3]\n", {"--node-sku", "n3=h200-sxm"}).exitCode, 0);
  EXPECT_EQ(run_.judge("n[0-3] sku=h200-sxm\n").exitCode, 1);
  EXPECT_EQ(run_.judge("n[0-3] sku=\n").exitCode, 2);
  EXPECT_EQ(run_.judge("n[0-3]\n", {"--node-sku", "n7=h200-sxm"}).exitCode, 2);
}

TEST_F(FleetIdentity, OfALooserProfileIsNotTakenForTheOthers) {
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(node(rank, "n" + std::to_string(rank)).exitCode, 0);
  std::string lax = readWhole(plan("skus/h100-sxm5-80gb.toml"));
  for (size_t at = lax.find("\nmin = \""); at != std::string::npos; at = lax.find("\nmin = \"", at + 1))
    lax.replace(at, lax.find('\n', at + 1) - at, "\nmin = \"1 GB/s\"");
  // The tree's own profiles lie in the way of one of the same name.
  std::string renamed = lax;
  renamed.replace(renamed.find("h100-sxm5-80gb"), 14, "h100-lax");
  copyIncluded("skus", run_.path() / "lax");
  run_.write("lax/h100-lax.toml", renamed);
  ASSERT_EQ(node(2, "n2", "h100x8-healthy", {"--skus", (run_.path() / "lax").string(), "--sku", "h100-lax"})
                .exitCode,
            0);
  const auto result = run_.judge("n[0-2]\n");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("n2 is of h100-lax"));

  // The same name, by `muster judge`.
  fs::remove_all(folder("n2"));
  ASSERT_EQ(node(2, "n2").exitCode, 0);
  copyIncluded("skus", run_.path());
  const std::string profile = run_.write("h100-sxm5-80gb.toml", lax).string();
  ASSERT_EQ(runMuster({"judge", (folder("n2") / "record.json").string(), "--sku", profile, "--out",
                       folder("n2-again").string()})
                .exitCode,
            0);
  fs::remove_all(folder("n2"));
  const auto again = run_.judge("n[0-2]\n", {"--allow-rejudged"});
  EXPECT_EQ(again.exitCode, 3) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("other limits: n2: profile h100-sxm5-80gb (sha256"));
  const auto pinned = run_.judge("n[0-2]\n", {"--allow-rejudged", "--sku", profile});
  EXPECT_EQ(pinned.exitCode, 3) << pinned.out << pinned.err;
  EXPECT_EQ(stateOf("n2"), "accepted") << pinned.out;
  EXPECT_EQ(stateOf("n0"), "incomplete") << pinned.out;
}

TEST_F(FleetIdentity, OfHugeProfilesDoesNotKeepThatOfMostNodesFromBeingRead) {
  for (int rank = 0; rank < 4; ++rank) ASSERT_EQ(node(rank, "n" + std::to_string(rank)).exitCode, 0);
  std::string big =
      "\n[expectations.w]\nmetric = \"compute.gemm_throughput\"\nmin = 1\nremedy = \"r\"\nsource = \"" +
      std::string(4000, 's') + "\"\nwhere = { dtype = [";
  for (int i = 0; i < 100; ++i) big += "\"" + std::to_string(i) + "\",";
  big += "] }\n";
  for (int i = 0; i < 60; ++i) big += "[[expect]]\nset = \"w\"\n";
  std::string most;
  for (const std::string name : {"n0", "n2", "n3"}) {
    auto record = readRecord(folder(name) / "record.json");
    ASSERT_TRUE(record.ok());
    if (name == "n0") {
      most = record->profile.sha256.substr(0, 12);
      continue;
    }
    std::string& text = record->profile.text;
    text.insert(text.find("\n#:included "), big + "# of " + name);
    record->profile.sha256 = sha256Hex(text);
    std::ofstream(folder(name) / "record.json") << recordText(*record);
  }
  const auto result = run_.judge("n[0-3]\n");
  const std::string fleet = run_.json().dump(), unread = " in the records cannot be read, so fleet medians";
  const size_t first = fleet.find(unread);
  ASSERT_NE(first, std::string::npos) << result.out << result.err;
  EXPECT_EQ(fleet.find(unread, first + 1), std::string::npos) << "one of the two fits beside the others'";
  EXPECT_EQ(fleet.find(most + unread), std::string::npos) << fleet.substr(first, 300);
}

TEST_F(FleetIdentity, OfAnotherMusterHostIsNotTakenForTheOthers) {
  const fs::path tree = run_.path() / "tree", own = distDir() / "lib/muster";
  fs::create_directories(tree / "lib/muster/host");
  fs::create_directory_symlink(distDir() / "share", tree / "share");
  for (const char* name : {"plugins", "backends", "lib"})
    fs::create_directory_symlink(own / name, tree / "lib/muster" / name);
  const fs::path host = tree / "lib/muster/host/muster-host";
  fs::copy_file(own / "host/muster-host", host);
  std::ofstream(host, std::ios::app) << '\n';

  for (const char* name : {"n0", "n1"}) ASSERT_EQ(node(name[1] - '0', name).exitCode, 0);
  ASSERT_EQ(setenv("MUSTER_TREE", tree.c_str(), 1), 0);
  const auto other = node(2, "n2");
  unsetenv("MUSTER_TREE");
  ASSERT_EQ(other.exitCode, 0) << other.out << other.err;
  const Json binaries = parseJson(readWhole(folder("n2") / "record.json"))->at("tool").at("binaries");
  for (const char* name : {"muster", "muster-tls.so", "backend_sim.so"})
    EXPECT_TRUE(binaries.contains(name)) << name;
  EXPECT_EQ(binaries.at("muster-host"), sha256Hex(readWhole(host)));

  const auto result = run_.judge("n[0-2]\n");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("other limits: n2: muster-host sha256"));
  EXPECT_EQ(stateOf("n2"), "incomplete");
  EXPECT_EQ(stateOf("n0"), "accepted");
}

TEST_F(FleetIdentity, OfARejudgedRecordIsShownAndItCountsOnlyWhenAllowed) {
  ASSERT_EQ(node(0, "n0").exitCode, 0);
  ASSERT_EQ(node(1, "n1").exitCode, 0);
  const auto judge = [&](const fs::path& record, const std::string& out) {
    return runMuster({"judge", record.string(), "--out", (run_.path() / out).string()});
  };
  ASSERT_EQ(judge(folder("n1") / "record.json", "run/again").exitCode, 0);
  const auto refused = run_.judge("n[0-1]\n");
  EXPECT_EQ(refused.exitCode, 3) << refused.out << refused.err;
  EXPECT_THAT(refused.out, HasSubstr("again/record.json was re-evaluated on"));
  const auto allowed = run_.judge("n[0-1]\n", {"--allow-rejudged"});
  EXPECT_EQ(allowed.exitCode, 0) << allowed.out << allowed.err;
  EXPECT_EQ(run_.json()["nodes"][1]["records"][0]["path"], "again/record.json");
  EXPECT_TRUE(run_.json()["nodes"][1]["records"][0].contains("rejudged_from"));

  // A sample is edited, and the record judged again.
  Json edited = Json::parse(readWhole(folder("n1") / "record.json"));
  bool changed = false;
  for (Json& stage : edited["stages"])
    for (Json& measurement : stage["measurements"])
      if (stage["name"] == "gemm" && !changed && measurement.contains("rows") &&
          measurement["rows"].contains("samples")) {
        measurement["rows"]["samples"][0][0] = measurement["rows"]["samples"][0][0].get<double>() * 1.001;
        changed = true;
      }
  ASSERT_TRUE(changed);
  const auto file = run_.write("edited.json", edited.dump());
  fs::remove_all(folder("again"));
  ASSERT_EQ(judge(file, "run/again").exitCode, 0);
  const auto caught = run_.judge("n[0-1]\n", {"--allow-rejudged"});
  EXPECT_EQ(caught.exitCode, 1) << caught.out << caught.err;
  EXPECT_THAT(caught.out, ::testing::ContainsRegex(
                              "samples[ \n]+differ[ \n]+from[ \n]+those[ \n]+of[ \n]+n1/record.json"));

  // Neither profiles nor the history are made of it.
  const auto learned = runMuster({"baseline", "learn", (run_.path() / "run").string(), "--allow-simulated",
                                  "-o", (run_.path() / "x.toml").string()});
  EXPECT_EQ(learned.exitCode, 2) << learned.out;
  EXPECT_THAT(learned.err, HasSubstr("re-judged"));
  const auto kept =
      runMuster({"history", "add", "--db", (run_.path() / "h.db").string(), folder("again").string()});
  EXPECT_EQ(kept.exitCode, 3) << kept.out;
  EXPECT_THAT(kept.err, HasSubstr("not added: it was re-evaluated"));
}

}  // namespace
}  // namespace muster::testing
