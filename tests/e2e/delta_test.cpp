// SPDX-License-Identifier: Apache-2.0
// Acceptance after a replacement, as a user does it: who must run again, what is merged, what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runner/system/files.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// What the fleet is accepted by here: a second for a node.
constexpr const char* kDeltaPlan = R"(schema = 1
name = "short"
sku = "auto"
backend = "cuda"
[[stage]]
name = "gemm"
plugin = "compute"
test = "gemm"
scope = "device"
timeout = "4m"
[stage.params]
size = 8192
dtype = "bf16"
)";
const std::string kNewSerial = "9999999999999";
constexpr const char* kRunBelow =
    "cannot be used: it is a run on Slurm or Kubernetes below the directory given: give it itself";

/// Three simulated nodes and their accepted fleet, made when the first test asks for it.
const fs::path& acceptedFleet() {
  static const TempDir folder;
  static const fs::path fleet = folder.path() / "fleet";
  static const bool made = [] {
    const auto planFile = folder.write("plan.toml", kDeltaPlan);
    const auto run = runMuster({"run", planFile.string(), "--simulate", scenario("h100x8-healthy"), "--nodes",
                                "3", "--out", fleet.string(), "--plain"});
    EXPECT_EQ(run.exitCode, 0) << run.out << run.err;
    const auto judged = runMuster(
        {"fleet", fleet.string(), "--expect", folder.write("nodes.txt", "sim-node-[0000-0002]\n").string()});
    EXPECT_EQ(judged.exitCode, 0) << judged.out << judged.err;
    return true;
  }();
  EXPECT_TRUE(made);
  return fleet;
}

std::string nodeName(int rank) {
  return "sim-node-000" + std::to_string(rank);
}

class Delta : public ::testing::Test {
 protected:
  Delta() { fs::copy(acceptedFleet(), accepted(), fs::copy_options::recursive); }
  [[nodiscard]] fs::path accepted() const { return dir_.path() / "accepted"; }
  [[nodiscard]] fs::path out() const { return dir_.path() / "out"; }

  /// Runs one node anew; in the record its gpu3 has `serial`, where one is given.
  std::string again(int rank, const std::string& serial = "", const std::string& scene = "h100x8-healthy",
                    const std::string& planText = kDeltaPlan, const std::string& folder = "again",
                    const std::vector<std::string>& more = {}) {
    const fs::path to = dir_.path() / folder / nodeName(rank);
    const auto run =
        runMuster(std::vector<std::string>{"run", dir_.write(folder + ".toml", planText).string(),
                                           "--simulate", scenario(scene), "--node-rank", std::to_string(rank),
                                           "--nnodes", "3", "--node-name", nodeName(rank), "--seed", "7",
                                           "--plain", "--out", to.string()} +
                  more);
    EXPECT_TRUE(run.exitCode == 0 || run.exitCode == 1) << run.out << run.err;
    for (int gpu = 0; gpu < 8; ++gpu)
      replaceIn(to / "record.json", serialIn(to, gpu),
                gpu == 3 && !serial.empty() ? serial : serialIn(accepted() / nodeName(rank), gpu));
    return (dir_.path() / folder).string();
  }
  static std::string serialIn(const fs::path& run, int gpu) {
    return Json::parse(
               readWhole(run / "record.json"))["inventory"]["devices"][static_cast<size_t>(gpu)]["serial"]
        .get<std::string>();
  }
  static void replaceIn(const fs::path& file, const std::string& from, const std::string& to) {
    std::string text = readWhole(file);
    ASSERT_FALSE(from.empty());
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    ASSERT_TRUE(writeFileAtomically(file, text).ok());
  }
  ProcessResult delta(const std::vector<std::string>& arguments) {
    return history(std::vector<std::string>{"delta"} + arguments);
  }
  /// The usual call: the runs in `again`, onto the accepted fleet, into `out`.
  ProcessResult merge(const std::string& runs, const std::vector<std::string>& more = {}) {
    return delta(std::vector<std::string>{runs, "--since", accepted().string(), "--out", out().string()} +
                 more);
  }
  ProcessResult history(const std::vector<std::string>& arguments) {
    ProcessOptions options;
    options.environment["MUSTER_HISTORY"] = (dir_.path() / "history.sqlite").string();
    options.environment["PATH"] = dir_.path().string();  // there is no Slurm to ask
    return runMuster(std::vector<std::string>{"history"} + arguments, options);
  }
  /// Makes the runs of nodes 0 and 1 those of a run on Slurm that lacks the record of node 2.
  fs::path onSlurm() {
    const fs::path run = dir_.path() / "runs" / "slurm";
    fs::create_directories(run / "records" / "nodes");
    again(0);
    fs::rename(again(1, kNewSerial), run / "records" / "nodes");
    for (int rank = 0; rank < 3; ++rank) {
      const std::string node = nodeName(rank), job = std::to_string(70 + rank);
      dir_.write("runs/slurm/claims/" + node, job + " 2026-11-21T03:10:26Z\n");
      dir_.write("runs/slurm/exits/" + node, rank == 2 ? "2\n" : "0\n");
      if (rank == 2) continue;
      Record record = recordIn(run / "records" / "nodes" / node);
      record.environment["SLURM_JOB_ID"] = job;
      EXPECT_TRUE(writeRecord(recordText(record), run / "records" / "nodes" / node / "record.json").ok());
    }
    Json jobs = {
        {"gpus", 0}, {"minutes", 60}, {"gap_minutes", 30}, {"at_once", 0}, {"mounts", Json::array()}};
    for (const char* text : {"name", "partition", "account", "reservation", "qos", "constraint", "runtime",
                             "image", "container_muster", "muster"})
      jobs[text] = "";
    const Json submission = {{"schema", 1},
                             {"id", "run"},
                             {"created", 1},
                             {"plan_name", "short"},
                             {"plan_file", "plan.toml"},
                             {"plan_sha256", ""},
                             {"scenario_file", "healthy.toml"},
                             {"nodes", {nodeName(0), nodeName(1), nodeName(2)}},
                             {"options", Json::array()},
                             {"fleet_options", Json::array()},
                             {"node_stages", true},
                             {"cluster_stages", false},
                             {"jobs", jobs}};
    dir_.write("runs/slurm/slurm.json", submission.dump());
    dir_.write("runs/slurm/jobs.jsonl", "");
    return run;
  }
  /// The same on Kubernetes, of the nodes `nodes`.
  fs::path onKubernetes(const std::vector<std::string>& nodes) {
    const fs::path run = dir_.path() / "runs" / "kube";
    if (!fs::exists(run)) {
      fs::create_directories(run / "rounds");
      again(0);
      fs::rename(again(1, kNewSerial), run / "records");
    }
    const Json submission = {{"schema", 1},
                             {"id", "run"},
                             {"release", "muster"},
                             {"created", 1},
                             {"context", ""},
                             {"namespace", "tests"},
                             {"plan_name", "short"},
                             {"plan_file", "plan.toml"},
                             {"simulated", true},
                             {"together", false},
                             {"nodes", nodes},
                             {"fleet_options", Json::array()},
                             {"value_files", Json::array()}};
    dir_.write("runs/kube/k8s.json", submission.dump());
    return run;
  }
  /// The nodes to retest after these runs.
  Json needing(const std::vector<std::string>& runs) {
    const auto said = delta(runs + std::vector<std::string>{"--since", accepted().string(), "--out",
                                                            out().string(), "--unconfirmed", "--json"});
    EXPECT_EQ(said.exitCode, 3) << said.out << said.err;
    const Json json = Json::parse(said.out, nullptr, false);
    return json.is_object() ? json["run_again"] : Json();
  }
  void expectRefused(const ProcessResult& result, int code, const std::string& part) {
    EXPECT_EQ(result.exitCode, code) << result.out << result.err;
    EXPECT_THAT(result.out + result.err, HasSubstr(part));
    EXPECT_FALSE(fs::exists(out() / "fleet.json"));
  }
  Json fleetJson() { return Json::parse(readWhole(out() / "fleet.json")); }
  TempDir dir_;
};

TEST_F(Delta, RefusesTheAcceptedFleetItselfAsASurvey) {
  const std::string why = "all of these records are already part of the accepted fleet in";
  const fs::path copy = dir_.path() / "copy";
  fs::copy(accepted(), copy, fs::copy_options::recursive);
  for (const fs::path& survey :
       {accepted(), accepted() / nodeName(1), copy, copy / nodeName(0) / "record.json"})
    expectRefused(delta({"--survey", survey.string(), "--since", accepted().string()}), 2, why);
  expectRefused(merge(copy.string()), 2, why);
}

TEST_F(Delta, TheHistoryTakesNoEditedFleet) {
  const Json fleet = Json::parse(readWhole(accepted() / "fleet.json"));
  const auto add = [&](const Json& edited) {
    EXPECT_TRUE(writeFileAtomically(accepted() / "fleet.json", edited.dump()).ok());
    return history({"add", accepted().string()});
  };
  Json edited = fleet;
  edited["nodes"][0]["records"][0]["sha256"] = std::string(64, 'a');
  expectRefused(add(edited), 3, "is missing, was changed, or was not added: not added");
  edited = fleet;
  std::swap(edited["nodes"][0]["records"], edited["nodes"][1]["records"]);
  expectRefused(add(edited), 3, "is of node sim-node-0001, not of sim-node-0000");
  // A node that was rejected, as an accepted one of the fleet.
  const fs::path slow = fs::path(again(0, "", "h100x8-one-slow-gpu")) / nodeName(0) / "record.json";
  fs::copy_file(slow, accepted() / nodeName(0) / "record.json", fs::copy_options::overwrite_existing);
  edited = fleet;
  edited["nodes"][0]["records"][0]["sha256"] = sha256Hex(readWhole(slow));
  expectRefused(add(edited), 3, "is rejected, but the fleet is accepted");
  EXPECT_THAT(history({"fleets"}).out, HasSubstr("no fleets"));
}

TEST_F(Delta, SurveySaysWhichNodesMustRunAgain) {
  // Of another plan: only its inventory counts.
  std::string look = kDeltaPlan;
  look.replace(look.find("short"), 5, "look");
  again(0, "", "h100x8-healthy", look, "survey");
  const std::string survey = again(1, kNewSerial, "h100x8-healthy", look, "survey");
  const auto result = delta({"--survey", survey, "--since", accepted().string()});
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("retest: sim-node-0001\n"));
  EXPECT_THAT(result.out, HasSubstr("muster slurm submit PLAN --nodes sim-node-0001"));
  EXPECT_THAT(result.out,
              HasSubstr("gpu3: " + serialIn(accepted() / nodeName(1), 3) + " replaced by " + kNewSerial));
  const auto json = delta({"--survey", survey, "--since", accepted().string(), "--json"});
  EXPECT_EQ(json.exitCode, 3);
  const Json said = Json::parse(json.out);
  EXPECT_EQ(said["run_again"], Json::array({nodeName(1)}));
  EXPECT_EQ(said["nodes"][1]["parts"][0]["after"], kNewSerial);
  // Run since then, but not under the plan of the acceptance: that is a survey and no run.
  expectRefused(merge(survey), 2, "of plan look");
  // With the run it is complete, and the survey agrees with it.
  EXPECT_EQ(merge(again(1, kNewSerial), {"--survey", survey}).exitCode, 0);
}

TEST_F(Delta, MergesTheReplacedNodeIntoTheAcceptedFleetAndSaysWhatIsFromWhere) {
  const std::string before = readWhole(accepted() / "fleet.json");
  const auto result = merge(again(1, kNewSerial));
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 unchanged, 1 taken from new runs"));
  EXPECT_THAT(result.out, HasSubstr("SIMULATED ACCEPTED"));
  const Json fleet = fleetJson();
  EXPECT_EQ(fleet["coverage"]["states"]["accepted"], 3);
  const Json& made = fleet["delta"];
  EXPECT_EQ(made["since_sha256"], sha256Hex(before));
  EXPECT_EQ(made["kept"], 2);
  ASSERT_EQ(made["nodes"].size(), 1u);
  EXPECT_EQ(made["nodes"][0]["node"], nodeName(1));
  EXPECT_THAT(made["nodes"][0]["changes"][0].get<std::string>(), HasSubstr(kNewSerial));
  EXPECT_EQ(fleet["nodes"][0]["records"][0]["path"], nodeName(0) + "/accepted/record.json");
  EXPECT_EQ(fleet["nodes"][1]["records"][0]["path"], nodeName(1) + "/rerun/record.json");
  EXPECT_EQ(fleet["nodes"][1]["serials"]["gpu3"], kNewSerial);
  const std::string html = readWhole(out() / "fleet.html");
  EXPECT_THAT(html, HasSubstr("Incremental re-acceptance: 1 of 3 nodes retested"));
  EXPECT_THAT(html, HasSubstr("replaced by " + kNewSerial));
  // The records are there, byte for byte, and judged as a fleet of their own they give the same.
  EXPECT_EQ(readWhole(out() / "records" / nodeName(0) / "accepted/record.json"),
            readWhole(accepted() / nodeName(0) / "record.json"));
  const auto judged = runMuster({"fleet", (out() / "records").string(), "--expect",
                                 dir_.write("nodes.txt", "sim-node-[0000-0002]\n").string(), "--out",
                                 (dir_.path() / "judged").string()});
  EXPECT_EQ(judged.exitCode, 0) << judged.out;
  EXPECT_EQ(Json::parse(readWhole(dir_.path() / "judged/fleet.json"))["records_sha256"],
            fleet["records_sha256"]);
  EXPECT_EQ(readWhole(accepted() / "fleet.json"), before) << "the accepted fleet is not changed";
}

TEST_F(Delta, TakesTheLastAcceptanceFromTheHistoryAndBuildsOnItsOwnResult) {
  const std::string first = again(1, kNewSerial, "h100x8-healthy", kDeltaPlan, "first");
  EXPECT_THAT(delta({first, "--out", out().string()}).err, HasSubstr("history add"));
  ASSERT_EQ(history({"add", accepted().string()}).exitCode, 0);
  EXPECT_THAT(history({"add", accepted().string()}).out, Not(HasSubstr("fleet")));
  ASSERT_EQ(delta({first, "--out", out().string()}).exitCode, 0);
  const auto added = history({"add", out().string()});
  EXPECT_THAT(added.out, HasSubstr("1 added, 2 already known"));
  EXPECT_THAT(added.out, HasSubstr("1 fleet added"));
  const auto fleets = history({"fleets"});
  EXPECT_THAT(fleets.out, HasSubstr("accepted     3 nodes, short"));
  EXPECT_EQ(Json::parse(history({"fleets", "--json"}).out).size(), 2u);

  // The next replacement, in another node: the first one's new part is what was accepted now.
  const std::string second = again(2, "8888888888888", "h100x8-healthy", kDeltaPlan, "second");
  const auto next = delta({second, "--out", (dir_.path() / "out2").string()});
  EXPECT_EQ(next.exitCode, 0) << next.out << next.err;
  const Json fleet = Json::parse(readWhole(dir_.path() / "out2/fleet.json"));
  EXPECT_EQ(fleet["nodes"][1]["serials"]["gpu3"], kNewSerial);
  EXPECT_EQ(fleet["nodes"][2]["serials"]["gpu3"], "8888888888888");
  EXPECT_EQ(fleet["delta"]["since"], out().string());
}

TEST_F(Delta, RejectsTheFleetWhoseReplacementIsSick) {
  const auto result = merge(again(0, kNewSerial, "h100x8-one-slow-gpu"));
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_EQ(fleetJson()["acceptance"], "rejected");
  EXPECT_THAT(result.out, HasSubstr("rejected sim-node-0000"));
  EXPECT_THAT(result.out, Not(HasSubstr("history add")));
  // A rejected fleet is nothing to build upon.
  const fs::path next = dir_.path() / "next";
  const auto upon = delta({again(1, "7777777777777", "h100x8-healthy", kDeltaPlan, "third"), "--since",
                           out().string(), "--out", next.string()});
  EXPECT_EQ(upon.exitCode, 2) << upon.out;
  EXPECT_THAT(upon.err, HasSubstr("this fleet is rejected; only an accepted fleet can be re-accepted"));
  EXPECT_FALSE(fs::exists(next));
}

TEST_F(Delta, WantsTheWaiversUnderWhichTheFleetWasAccepted) {
  // Node 0 has a known slow GPU, and the fleet was accepted with it.
  again(0, "", "h100x8-one-slow-gpu", kDeltaPlan, "slow");
  fs::remove_all(accepted() / nodeName(0));
  fs::copy(dir_.path() / "slow" / nodeName(0), accepted() / nodeName(0), fs::copy_options::recursive);
  const std::string waivers =
      dir_.write("waivers.toml",
                 "schema = 1\n[[waiver]]\nstage = \"gemm\"\nmetric = \"compute.gemm_throughput\"\nnode = "
                 "\"sim-node-0000\"\ndevice = \"gpu5\"\nreason = \"card on order\"\napprover = \"J. "
                 "Doe\"\nexpires = \"2099-12-31\"\n")
          .string();
  const auto judged = runMuster({"fleet", accepted().string(), "--waivers", waivers, "--expect",
                                 dir_.write("nodes.txt", "sim-node-[0000-0002]\n").string()});
  ASSERT_EQ(judged.exitCode, 0) << judged.out << judged.err;
  const std::string runs = again(1, kNewSerial);
  expectRefused(merge(runs), 2, "evaluated with the waivers of waivers.toml");
  const auto result = merge(runs, {"--waivers", waivers});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_EQ(fleetJson()["waivers"][0]["state"], "applied");
}

TEST_F(Delta, RefusesWhileANodeThatChangedWasNotRun) {
  // gpu3 of node 1 now holds a part that node 2 was accepted with.
  const std::string part = serialIn(accepted() / nodeName(2), 0);
  const std::string runs = again(1, part);
  const auto result = merge(runs);
  expectRefused(result, 3, "retest: sim-node-0002");
  EXPECT_THAT(result.out, HasSubstr("is now in sim-node-0001"));
  EXPECT_FALSE(fs::exists(out()));
  again(2);
  // Its own new record still claims the part: that cannot be.
  expectRefused(merge(runs), 3, "is now in sim-node-0001");
}

TEST_F(Delta, RefusesWhereAnUntouchedNodesRecordIsMissingOrWasEdited) {
  const std::string runs = again(1, kNewSerial);
  replaceIn(accepted() / nodeName(0) / "record.json", "\"seed\"", "\"seed\" ");
  expectRefused(merge(runs), 3, "retest: sim-node-0000");
  fs::remove_all(accepted() / nodeName(2));
  const auto result = merge(runs);
  expectRefused(result, 3, "retest: sim-node-0000,sim-node-0002");
  EXPECT_THAT(result.out, HasSubstr("sim-node-0002/record.json"));
  EXPECT_THAT(result.out, HasSubstr("is missing or was changed"));
}

TEST_F(Delta, RefusesWhatDoesNotBelongToTheAcceptance) {
  std::string otherPlan = kDeltaPlan;
  otherPlan.replace(otherPlan.find("8192"), 4, "4096");
  expectRefused(merge(again(1, kNewSerial, "h100x8-healthy", otherPlan, "plan")), 2, "of plan short");
  expectRefused(
      merge(again(1, kNewSerial, "h100x8-healthy", kDeltaPlan, "set", {"--set", "gemm.timeout=3m"})), 2,
      "--set \"gemm.timeout=3m\"");
  copyIncluded("skus", dir_.path() / "skus");
  dir_.write("skus/h100.toml", readWhole(plan("skus/h100-sxm5-80gb.toml")) + "\n# another text\n");
  expectRefused(merge(again(1, kNewSerial, "h100x8-healthy", kDeltaPlan, "profile",
                            {"--skus", (dir_.path() / "skus").string()})),
                2, "evaluated with profile h100-sxm5-80gb");
  const std::string renamed = again(1, kNewSerial, "h100x8-healthy", kDeltaPlan, "renamed");
  for (const char* space : {"", " "})
    replaceIn(fs::path(renamed) / nodeName(1) / "record.json",
              fmt::format("\"node\":{}\"sim-node-0001\"", space), "\"node\":\"other\"");
  expectRefused(merge(renamed), 2, "edited or truncated: run id");
  const fs::path foreign = dir_.path() / "foreign";
  const auto other =
      runMuster({"run", dir_.write("foreign.toml", kDeltaPlan).string(), "--simulate",
                 scenario("h100x8-healthy"), "--node-rank", "1", "--nnodes", "3", "--node-name", "other",
                 "--seed", "7", "--plain", "--out", (foreign / "other").string()});
  EXPECT_EQ(other.exitCode, 0) << other.out << other.err;
  expectRefused(merge(foreign.string()), 2, "node other is not in the accepted fleet");
  expectRefused(merge(accepted().string()), 2,
                "all of these records are already part of the accepted fleet in");
  dir_.write("before/record.json", readWhole(accepted() / nodeName(1) / "record.json") + "\n");
  expectRefused(merge((dir_.path() / "before").string()), 2, "before the node's accepted run ended");
  dir_.write("torn/sim-node-0001/record.json", "{\"schema\": 1, \"acc");
  expectRefused(merge((dir_.path() / "torn").string()), 2, "cannot be used");
}

TEST_F(Delta, RefusesAFleetThatIsNoneAndAFolderThatIsInUse) {
  const std::string runs = again(1, kNewSerial);
  expectRefused(delta({}), 2, "--survey DIR");
  expectRefused(delta({runs, "--since", accepted().string()}), 2, "--out");
  expectRefused(delta({runs, "--since", accepted().string(), "--out", accepted().string()}), 2,
                "is not empty");
  expectRefused(delta({runs, "--since", runs, "--out", out().string()}), 2, "no fleet.json");
  expectRefused(delta({(dir_.path() / "nothing").string(), "--out", out().string()}), 2, "nothing");
  const std::string whole = readWhole(accepted() / "fleet.json");
  dir_.write("accepted/fleet.json", whole.substr(0, whole.size() / 2));
  expectRefused(merge(runs), 2, "is not a fleet record");
  // The word of an acceptance that its nodes do not bear out.
  std::string edited = whole;
  const std::string state = "\"state\":\"accepted\"";
  ASSERT_NE(edited.rfind(state), std::string::npos);
  edited.replace(edited.rfind(state), state.size(), "\"state\":\"rejected\"");
  dir_.write("accepted/fleet.json", edited);
  expectRefused(merge(runs), 2, "says accepted, and node");
}

TEST_F(Delta, RefusesAFleetThatWasJudgedByAContract) {
  Json fleet = Json::parse(readWhole(accepted() / "fleet.json"));
  fleet["clauses"] = Json::array({{{"clause", "4.2"}}});
  ASSERT_TRUE(writeFileAtomically(accepted() / "fleet.json", fleet.dump()).ok());
  expectRefused(merge(again(1, kNewSerial)), 2, "judged by the requirements of a contract");
}

/// Records of a run on Kubernetes come through pods' logs: without their MACs they are nobody's.
TEST_F(Delta, TakesNoRecordOfARunOnKubernetesWithoutItsMac) {
  const fs::path run = dir_.path() / "kube";
  fs::create_directories(run / "records");
  fs::rename(fs::path(again(1, kNewSerial)) / nodeName(1), run / "records" / nodeName(1));
  ASSERT_TRUE(writeFileAtomically(run / "k8s.json", "{}").ok());
  ASSERT_TRUE(writeFileAtomically(run / "run.key", std::string(64, 'a') + "\n").ok());
  fs::permissions(run / "run.key", fs::perms::owner_read);
  const std::string why = "no MAC";
  const auto merged = merge(run.string());
  EXPECT_EQ(merged.exitCode, 2) << merged.out << merged.err;
  EXPECT_THAT(merged.out + merged.err, HasSubstr(why));
  EXPECT_FALSE(fs::exists(out() / "fleet.json"));
  const auto added = history({"add", run.string()});
  EXPECT_NE(added.exitCode, 0);
  EXPECT_THAT(added.out + added.err, HasSubstr(why));
  const auto judged = runMuster(
      {"fleet", (run / "records").string(), "--expect", dir_.write("one.txt", nodeName(1) + "\n").string()});
  EXPECT_EQ(judged.exitCode, 3) << judged.out;
  EXPECT_THAT(judged.out, HasSubstr(why));
}

TEST_F(Delta, WantsANodeRunAgainThatASlurmRunLeftWithoutARecord) {
  const fs::path run = onSlurm(), nodes = run / "records" / "nodes";
  expectRefused(merge(run.string(), {"--unconfirmed"}), 3,
                "sim-node-0002: the run in " + run.string() +
                    " left no record of it (exit 2): finish it with `muster slurm resume " + run.string());
  const fs::path link = dir_.path() / "link";
  fs::create_directory_symlink(run, link);
  for (const fs::path& named : {run, run / "records", nodes, link, link / "records"})
    EXPECT_EQ(needing({named.string()}), Json::array({nodeName(2)})) << named;
  expectRefused(merge(run.parent_path().string(), {"--unconfirmed"}), 2, kRunBelow);
  // Of a plan with stages of all nodes each has a second record.
  const std::string submission = readWhole(run / "slurm.json");
  dir_.write("runs/slurm/cluster_exits/" + nodeName(0), "4\n");
  replaceIn(run / "slurm.json", R"("cluster_stages":false)", R"("cluster_stages":true)");
  expectRefused(merge(run.string(), {"--unconfirmed"}), 3,
                "retest: sim-node-0000,sim-node-0001,sim-node-0002\n");
  EXPECT_THAT(merge(run.string(), {"--unconfirmed"}).out,
              HasSubstr("left no record of it (exit 4 in stages of scope cluster)"));
  dir_.write("runs/slurm/slurm.json", submission);
  // A run that left nothing at all.
  fs::rename(nodes, dir_.path() / "elsewhere");
  fs::create_directories(nodes);
  EXPECT_EQ(needing({run.string()}), Json::array({nodeName(0), nodeName(1), nodeName(2)}));
  EXPECT_THAT(delta({run.string(), "--out", out().string()}).err, HasSubstr("with --since"));
  fs::remove(nodes);
  fs::rename(dir_.path() / "elsewhere", nodes);
  // The other nodes alone.
  const auto merged = delta({(nodes / nodeName(0)).string(), (nodes / nodeName(1) / "record.json").string(),
                             "--since", accepted().string(), "--out", out().string(), "--unconfirmed"});
  EXPECT_EQ(merged.exitCode, 0) << merged.out << merged.err;
}

/// A node that leaves one among its own files speaks of nobody: neither are others tested again, nor is a
/// command printed that starts its scripts.
TEST_F(Delta, BelievesNoRunOnSlurmThatLiesInTheDirectoryOfANode) {
  const std::string plain = again(1, kNewSerial, "h100x8-healthy", kDeltaPlan, "plain");
  const fs::path run = onSlurm();
  fs::rename(run / "records" / "nodes", dir_.path() / "elsewhere");
  fs::create_directories(fs::path(plain) / nodeName(1) / "more" / "records" / "nodes" / nodeName(2));
  for (const char* name : {"slurm.json", "jobs.jsonl"})
    fs::rename(run / name, fs::path(plain) / nodeName(1) / "more" / name);
  dir_.write("plain/" + nodeName(1) + "/more/records/nodes/" + nodeName(2) + "/journal.jsonl", "");
  fs::rename(fs::path(plain) / nodeName(1) / "record.json", fs::path(plain) / "record.json");
  const auto result = merge(plain, {"--unconfirmed"});
  expectRefused(result, 2, kRunBelow);
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("slurm resume")));
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("retest: ")));
}

TEST_F(Delta, HoldsAJournalInASlurmRunAgainstTheNodeInWhoseDirectoryItIs) {
  const fs::path run = onSlurm();
  const std::string of2 = "runs/slurm/records/nodes/" + nodeName(2) + "/journal.jsonl";
  const std::string journal = readWhole(accepted() / nodeName(0) / "journal.jsonl");
  ASSERT_FALSE(journal.empty());
  for (const auto& [text, why] :
       {std::pair{journal, "claims to be of sim-node-0000, but is in the directory of sim-node-0002"},
        std::pair{std::string(), "its journal has no complete first line"},
        std::pair{std::string("{}\n"), "its journal cannot be read"}}) {
    dir_.write(of2, text);
    const auto result = merge(run.string(), {"--unconfirmed"});
    expectRefused(result, 3, "retest: sim-node-0002\n");
    EXPECT_THAT(result.out, HasSubstr(why));
    EXPECT_THAT(result.out, HasSubstr("records/nodes/sim-node-0002: "));
  }
  // Where no node writes, and outside of such a run, nobody can tell whose it is.
  const std::string other = "runs/slurm/records/nodes/other";
  dir_.write(other + "/journal.jsonl", journal);
  expectRefused(merge(run.string(), {"--unconfirmed"}), 2,
                other + " cannot be used: no job of this run writes a record here");
  const std::string plain = again(1, kNewSerial, "h100x8-healthy", kDeltaPlan, "plain");
  dir_.write("plain/" + nodeName(2) + "/journal.jsonl", "");
  expectRefused(merge(plain), 2,
                "plain/sim-node-0002 cannot be used: no record, and its journal has no complete first line");
}

TEST_F(Delta, WantsANodeRunAgainThatARunOnKubernetesLeftWithoutARecord) {
  const std::vector<std::string> all = {nodeName(0), nodeName(1), nodeName(2)};
  const fs::path run = onKubernetes(all);
  const auto expectWanted = [&](const std::string& why) {
    const auto result = merge(run.string(), {"--unconfirmed"});
    expectRefused(result, 3, "retest: sim-node-0002\n");
    EXPECT_THAT(result.out,
                HasSubstr("left no record of it (" + why + "): finish it with `muster k8s resume"));
  };
  expectWanted("no result was collected");
  dir_.write("runs/kube/results/" + nodeName(2) + ".json",
             R"({"pod": "p", "round": 1, "exit_code": 1, "problem": "the pod's log holds no record"})");
  expectWanted("exit 1: the pod's log holds no record");
  for (const fs::path& named : {run, run / "records"})
    EXPECT_EQ(needing({named.string()}), Json::array({nodeName(2)})) << named;
  expectRefused(merge(run.parent_path().string(), {"--unconfirmed"}), 2, kRunBelow);
  // Another node's record is none of it.
  fs::create_directory(run / "records" / nodeName(2));
  fs::copy_file(run / "records" / nodeName(0) / "record.json", run / "records" / nodeName(2) / "record.json");
  EXPECT_EQ(needing({run.string()}), Json::array({nodeName(2)}));
  fs::remove_all(run / "records" / nodeName(2));
  // One that cannot be used is named.
  dir_.write("runs/kube/records/" + nodeName(2) + "/record.json", "{");
  expectRefused(merge(run.string(), {"--unconfirmed"}), 2, "sim-node-0002/record.json cannot be used");
  fs::remove_all(run / "records" / nodeName(2));
  // A node outside the fleet does not affect its acceptance.
  onKubernetes({nodeName(0), nodeName(1), "spare"});
  const auto merged = merge(run.string(), {"--unconfirmed"});
  EXPECT_EQ(merged.exitCode, 0) << merged.out << merged.err;
}

}  // namespace
}  // namespace muster::testing
