// SPDX-License-Identifier: Apache-2.0
// What becomes of a run on a real Slurm: nodes that go down, that are resumed, rejected, drained, given back;
// the stages of all nodes; cleaning up.
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

#include "runner/record/record.h"
#include "tests/slurm/slurm_run.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// What is handed over holds no key, and who has no Slurm derives the fleet from its records again: nothing
/// is left open but that the nodes are one machine.
void expectVerifiedButForOneMachine(const fs::path& run, int records) {
  const TempDir dir;
  const auto command = [](std::vector<std::string> words) {
    words.insert(words.begin(), (distDir() / "bin" / "muster").string());
    return runProcess(words);
  };
  const std::string key = (dir.path() / "key").string();
  ASSERT_EQ(command({"sign", "--new-key", key}).exitCode, 0);
  ASSERT_EQ(command({"sign", run.string(), "--key", key}).exitCode, 0);
  const fs::path handed = dir.path() / "handed";
  fs::copy(run, handed, fs::copy_options::recursive);
  for (const char* secret : {"run.key", "keys"}) EXPECT_GT(fs::remove_all(handed / secret), 0U) << secret;
  const ProcessResult result = command({"verify", handed.string(), "--key", key + ".pub"});
  EXPECT_EQ(result.exitCode, 3);
  EXPECT_THAT(result.out, HasSubstr(fmt::format("derived again from {} records, byte for byte", records)));
  std::vector<std::string> open;
  for (const std::string& line : split(result.out, '\n'))
    if (line.starts_with(" OPEN")) open.push_back(line);
  EXPECT_THAT(open, ElementsAre(HasSubstr("--same-machine"))) << result.out;
}

class SlurmResume : public SlurmTest {};
class SlurmDrain : public SlurmTest {};
class SlurmScope : public SlurmTest {};
class SlurmClean : public SlurmTest {};

/// One of eight simulated GPUs of the first node is slow.
std::string slowFirstNode() {
  return (distDir() / "share" / "muster" / "plans" / "scenarios" / "h100x8-one-slow-gpu.toml").string();
}

Json fleetOf(const fs::path& run) {
  return Json::parse(readWhole(run / "fleet" / "fleet.json"), nullptr, false);
}

TEST_F(SlurmResume, CompletesARunWhoseNodeWentDownInTheMiddle) {
  const fs::path run = newRun();
  ASSERT_EQ(submit(waitingPlan(6), run).exitCode, 0);
  ASSERT_TRUE(within(60, [&] { return claimed(run).size() == 4; }));
  slurm().set("node2", "DOWN", "somebody pulled the plug");
  const ProcessResult first = slurm().muster({"wait", run.string()});
  EXPECT_EQ(first.exitCode, 3) << first.out << first.err;
  EXPECT_THAT(first.out, ContainsRegex("node2 +(down|missing|incomplete|quarantined) "));
  // Slurm ends its processes: whether they still get to say so is a matter of luck.
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, ContainsRegex("node2 +(lost|failed) "));
  EXPECT_THAT(fleetOf(run).dump(), HasSubstr("node2"));
  const auto before = fs::last_write_time(run / "records" / "nodes" / "node1" / "record.json");

  slurm().set("node2", "RESUME");
  ASSERT_TRUE(within(60, [] { return slurm().state("node2") == "idle"; }));
  const ProcessResult second = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_EQ(second.exitCode, 0) << second.out << second.err;
  EXPECT_THAT(second.out, HasSubstr("retesting 1 nodes with the plan: node2\n"));
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
  EXPECT_EQ(fs::last_write_time(run / "records" / "nodes" / "node1" / "record.json"), before)
      << "node1 ran again";
  EXPECT_TRUE(fs::exists(run / "attempts" / "nodes" / "node2.0" / "claim"));
  expectVerifiedButForOneMachine(run, 4);
}

TEST_F(SlurmResume, RefusesWhileJobsOfTheRunAreAtWork) {
  const fs::path run = newRun();
  ASSERT_EQ(submit(waitingPlan(20), run).exitCode, 0);
  const ProcessResult result = slurm().muster({"resume", run.string()});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("still pending or running"));
}

/// Its scripts would write into the folder of the run, whose newer jobs it does not know.
TEST_F(SlurmResume, OfACopyTouchesNoJobOfTheRun) {
  const fs::path run = newRun(), copy = run.string() + "-copy";
  ASSERT_EQ(submit(waitingPlan(60), run).exitCode, 0);
  std::error_code vanished;  // files of the run come and go
  for (int tries = 0; tries == 0 || (vanished && tries < 20); ++tries) {
    fs::remove_all(copy);
    fs::copy(run, copy, fs::copy_options::recursive, vanished);
  }
  ASSERT_FALSE(vanished) << vanished.message();
  fs::remove(copy / "jobs.jsonl");
  const auto queue = [] {  // squeue sorts by state, too, and pending jobs begin meanwhile
    return slurm().command({"squeue", "--noheader", "--array", "--sort=i", "--format=%i"}).out;
  };
  const std::string before = queue();
  for (const char* command : {"resume", "fill"}) {
    const ProcessResult result = slurm().muster({command, copy.string()});
    EXPECT_EQ(result.exitCode, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr("copied or moved from " + run.string() + ","));
    EXPECT_EQ(queue(), before) << command;
  }
}

TEST_F(SlurmResume, LeavesARejectedNodeItsVerdict) {
  const fs::path run = newRun();
  ASSERT_EQ(submit(quickPlan(), run, {"--simulate", slowFirstNode(), "--wait"}, "node[1-2]").exitCode, 1);
  const ProcessResult again = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_EQ(again.exitCode, 1) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("no node to retest; the fleet report stays as it is\n"));
  // After a repair it runs again when asked for, and what it had is kept.
  const ProcessResult repaired = slurm().muster({"resume", run.string(), "--rejected", "--wait"});
  EXPECT_THAT(repaired.out, HasSubstr("retesting 1 nodes with the plan: node1\n"));
  EXPECT_TRUE(fs::exists(run / "attempts" / "nodes" / "node1.0" / "run" / "record.json"));
}

TEST_F(SlurmResume, ARoundThatDoesNotBeginTakesNoVerdictAway) {
  const fs::path run = newRun(), bin = slurm().shared() / "no-sbatch";
  EXPECT_EQ(submitSick(run, {1}, "node[1-2]").exitCode, 1);
  const std::string path = std::getenv("PATH");
  fs::create_directories(bin);
  for (const char* instead : {"echo 'sbatch: error: Invalid account' >&2; exit 1", "kill -KILL $PPID"}) {
    std::ofstream(bin / "sbatch") << "#!/bin/sh\n" << instead << "\n";
    fs::permissions(bin / "sbatch", fs::perms(0755));
    EXPECT_NE(slurm()
                  .muster({"resume", run.string(), "--rejected"}, 150, {{"PATH", bin.string() + ":" + path}})
                  .exitCode,
              0);
    if (std::string_view(instead).starts_with("kill")) {  // the next one puts the verdict back
      EXPECT_THAT(slurm().muster({"resume", run.string()}).out, HasSubstr("no node to retest"));
    }
    EXPECT_THAT(slurm().muster({"status", run.string()}).out, ContainsRegex("node1 +rejected"));
    EXPECT_THAT(slurm().muster({"drain", run.string(), "--dry-run"}).out,
                HasSubstr("node1: would be drained: muster: "));
  }
}

TEST_F(SlurmDrain, DrainsExactlyTheRejectedNodeAndGivesOnlyThatOneBack) {
  slurm().set("node4", "DRAIN", "muster: of somebody else's hand");
  const fs::path run = newRun();
  EXPECT_EQ(submitSick(run, {1}).exitCode, 1);

  const ProcessResult dry = slurm().muster({"drain", run.string(), "--dry-run"});
  EXPECT_THAT(dry.out, HasSubstr("node1: would be drained: muster: "));
  EXPECT_THAT(slurm().state("node1"), Not(HasSubstr("drain")));

  const ProcessResult applied = slurm().muster({"drain", run.string(), "--apply"});
  EXPECT_EQ(applied.exitCode, 0) << applied.err;
  EXPECT_EQ(slurm().state("node1"), "drained");
  EXPECT_THAT(slurm().reason("node1"), StartsWith("muster: sick-"));
  EXPECT_THAT(slurm().reason("node1"), HasSubstr("look fake-sick.value"));
  EXPECT_THAT(slurm().state("node2"), Not(HasSubstr("drain")));
  EXPECT_THAT(slurm().state("node3"), Not(HasSubstr("drain")));
  EXPECT_EQ(slurm().reason("node4"), "muster: of somebody else's hand");
  EXPECT_THAT(slurm().muster({"drain", run.string(), "--apply"}).out,
              HasSubstr("node1: not changed: is drained already"));

  const ProcessResult back = slurm().muster({"undrain", run.string(), "--apply"});
  EXPECT_THAT(back.out, HasSubstr("node1: given back")) << back.err;
  EXPECT_THAT(slurm().state("node1"), StartsWith("idle"));  // with a star until it has answered
  EXPECT_EQ(slurm().state("node4"), "drained");
}

TEST_F(SlurmDrain, DoesNotGiveBackANodeThatWentDownMeanwhile) {
  const fs::path run = newRun();
  EXPECT_EQ(submitSick(run, {1}, "node[1-2]").exitCode, 1);
  ASSERT_EQ(slurm().muster({"drain", run.string(), "--apply"}).exitCode, 0);
  const std::string reason = slurm().reason("node1");
  slurm().set("node1", "DOWN", reason);
  ASSERT_EQ(slurm().state("node1"), "drained") << "as Slurm shows a node that is both";
  ASSERT_EQ(slurm().reason("node1"), reason);
  EXPECT_THAT(slurm().muster({"undrain", run.string(), "--apply"}).out, HasSubstr("node1: given back"));
  EXPECT_THAT(slurm().state("node1"), StartsWith("down"));
}

TEST_F(SlurmDrain, RefusesASimulatedVerdict) {
  const fs::path run = newRun();
  ASSERT_EQ(submit(quickPlan(), run, {"--simulate", slowFirstNode(), "--wait"}, "node[1-2]").exitCode, 1);
  const std::vector<std::vector<std::string>> commands = {
      {"drain", "--dry-run"}, {"drain", "--apply"}, {"undrain", "--apply"}};
  for (const auto& command : commands) {
    const ProcessResult result = slurm().muster({command[0], run.string(), command[1]});
    EXPECT_EQ(result.exitCode, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr("SIMULATED: no hardware was measured"));
  }
  EXPECT_THAT(slurm().state("node1"), Not(HasSubstr("drain")));
  // Where the submission does not say so any more, no record that does counts.
  Json submission = Json::parse(readWhole(run / "slurm.json"));
  ASSERT_NE(submission["scenario_file"], "");
  submission["scenario_file"] = "";
  std::ofstream(run / "slurm.json") << submission.dump();
  const ProcessResult dry = slurm().muster({"drain", run.string(), "--dry-run"});
  EXPECT_EQ(dry.exitCode, 3) << dry.out << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("it is simulated, but the run was submitted without --simulate"));
  EXPECT_THAT(dry.out, Not(HasSubstr("would be drained")));
}

TEST_F(SlurmDrain, DrainsTheEndsOfABadLinkAndNotTheNodeThatReportsIt) {
  const fs::path run = newRun();
  const ProcessResult found = submitBadLink(run, 2, 3);
  EXPECT_EQ(found.exitCode, 1) << found.out << found.err;
  const std::string applied = slurm().muster({"drain", run.string(), "--apply"}).out;
  EXPECT_THAT(applied, HasSubstr("node1: not changed: not faulty itself: affected by link node2 - node3"));
  EXPECT_THAT(slurm().state("node1"), Not(HasSubstr("drain")));
  EXPECT_EQ(slurm().state("node2"), "drained") << applied;
  EXPECT_EQ(slurm().state("node3"), "drained");
  EXPECT_THAT(slurm().reason("node2"), HasSubstr("link node2 - node3"));
  EXPECT_THAT(slurm().state("node4"), Not(HasSubstr("drain")));
}

TEST_F(SlurmDrain, DrainsNoNodeForALinkThatAnotherOneAloneReports) {
  const fs::path run = newRun();
  EXPECT_EQ(submitBadLink(run, 2, 3, kNode1Alone).exitCode, 1);
  const std::string applied = slurm().muster({"drain", run.string(), "--apply"}).out;
  for (const char* end : {"node2", "node3"}) {
    EXPECT_THAT(applied, HasSubstr(std::string(end) + ": not changed: one end of link node2 - node3"));
    EXPECT_THAT(slurm().state(end), Not(HasSubstr("drain")));
  }
}

TEST_F(SlurmDrain, DrainsAnEndOfABadLinkThatIsIncompleteToo) {
  const fs::path run = newRun();
  EXPECT_EQ(submitBadLink(run, 2, 3, kFirstWithoutFigure).exitCode, 1);
  const std::string applied = slurm().muster({"drain", run.string(), "--apply"}).out;
  for (const char* end : {"node2", "node3"}) EXPECT_EQ(slurm().state(end), "drained") << applied;
  EXPECT_THAT(applied, Not(HasSubstr("disagree")));
}

TEST_F(SlurmDrain, DrainsANodeThatFailedByItselfThoughNoFindingNamesIt) {
  const fs::path run = newRun();
  EXPECT_EQ(submitSick(run, {1, 2, 3}).exitCode, 1);  // what most nodes fail is a finding of the fleet
  const std::string applied = slurm().muster({"drain", run.string(), "--apply"}).out;
  EXPECT_THAT(applied, Not(HasSubstr("not changed")));
  for (const char* node : {"node1", "node2", "node3"}) EXPECT_EQ(slurm().state(node), "drained") << node;
  EXPECT_THAT(slurm().state("node4"), Not(HasSubstr("drain")));
}

TEST_F(SlurmDrain, GoesOnWithTheOtherNodesWhereSlurmRefusesOne) {
  const fs::path run = newRun(), bin = slurm().shared() / "refusing";
  EXPECT_EQ(submitSick(run, {1, 2, 3}).exitCode, 1);
  const std::string path = std::getenv("PATH");
  fs::create_directories(bin);
  std::ofstream(bin / "scontrol") << "#!/bin/sh\ncase \"$*\" in\n*NodeName=node2*) echo 'slurm_update error: "
                                     "Invalid node state specified' >&2; exit 1 ;;\nesac\nPATH='"
                                  << path << "'\nexec scontrol \"$@\"\n";
  fs::permissions(bin / "scontrol", fs::perms(0755));
  const auto refusing = [&](const char* command) {
    return slurm().muster({command, run.string(), "--apply"}, 150, {{"PATH", bin.string() + ":" + path}});
  };

  const ProcessResult drained = refusing("drain");
  EXPECT_EQ(drained.exitCode, 2) << drained.out << drained.err;
  EXPECT_THAT(drained.out, HasSubstr("node1: drained: muster: sick-"));
  EXPECT_THAT(drained.out,
              ContainsRegex("node2: not changed: Slurm refused: .*Invalid node state specified"));
  EXPECT_THAT(drained.out, HasSubstr("node3: drained: muster: sick-"));
  EXPECT_THAT(drained.err, HasSubstr("not drained, because Slurm refused (see above): node2"));
  EXPECT_EQ(slurm().state("node1"), "drained");
  EXPECT_THAT(slurm().state("node2"), Not(HasSubstr("drain")));
  EXPECT_EQ(slurm().state("node3"), "drained");

  EXPECT_THAT(slurm().muster({"undrain", run.string(), "--dry-run"}).out, Not(HasSubstr("node2")));
  ASSERT_EQ(slurm().muster({"drain", run.string(), "--apply"}).exitCode, 0);
  const ProcessResult back = refusing("undrain");
  EXPECT_EQ(back.exitCode, 2) << back.out << back.err;
  EXPECT_THAT(back.out, HasSubstr("node1: given back: "));
  EXPECT_THAT(back.out, HasSubstr("node2: not changed: Slurm refused: "));
  EXPECT_THAT(back.out, HasSubstr("node3: given back: "));
  EXPECT_EQ(slurm().state("node2"), "drained");
  EXPECT_THAT(slurm().muster({"undrain", run.string(), "--apply"}).out, HasSubstr("node2: given back: "));
}

TEST_F(SlurmDrain, WritesAndActsOnlyInAFolderThatNobodyElseCouldPrepare) {
  const fs::path run = newRun(), precious = slurm().shared() / "precious-notes";
  EXPECT_EQ(submitSick(run, {1}).exitCode, 1);
  std::ofstream(precious) << "kept\n";
  fs::remove(run / ".lock");
  EXPECT_EQ(slurm().muster({"drain", run.string(), "--dry-run"}).exitCode, 0);
  EXPECT_FALSE(fs::exists(run / ".lock")) << "a dry run creates nothing";

  const auto refused = [&](const char* why) {
    const ProcessResult result = slurm().muster({"drain", run.string(), "--apply"});
    EXPECT_EQ(result.exitCode, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_EQ(readWhole(precious), "kept\n");
    EXPECT_THAT(slurm().state("node1"), Not(HasSubstr("drain")));
  };
  for (const char* name : {".lock", "drained.jsonl"}) {
    fs::remove(run / name);
    fs::create_symlink(precious, run / name);
    refused("refused: it is not a regular file");
    fs::remove(run / name);
    fs::create_hard_link(precious, run / name);
    refused("refused: it has 2 names (hard links)");
    fs::remove(run / name);
  }
  fs::permissions(run, fs::perms(0777));
  refused("refused: the run folder is writable by others");
  fs::permissions(run, fs::perms(0755));
  ASSERT_EQ(chown(run.c_str(), 12345, 12345), 0);
  refused("refused: the run folder belongs to user 12345");
  for (const char* command : {"undrain", "clean"}) {
    std::vector<std::string> words = {command, run.string(), "--apply"};
    if (std::string_view(command) == "clean") words.insert(words.end(), {"--older-than", "1h"});
    EXPECT_THAT(slurm().muster(words).err, HasSubstr("belongs to user 12345")) << command;
  }
  // Its scripts would run as root.
  const std::string jobs = readWhole(run / "jobs.jsonl");
  for (const char* command : {"resume", "fill"})
    EXPECT_THAT(slurm().muster({command, run.string()}).err, HasSubstr("belongs to user 12345")) << command;
  EXPECT_EQ(readWhole(run / "jobs.jsonl"), jobs);
}

TEST_F(SlurmDrain, LeavesANodeThatSomebodyElseDrainedSo) {
  const fs::path run = newRun();
  EXPECT_EQ(submitSick(run, {1}, "node[1-2]").exitCode, 1);
  slurm().set("node1", "DRAIN", "waiting for a spare part");
  const ProcessResult result = slurm().muster({"drain", run.string(), "--apply"});
  EXPECT_THAT(result.out,
              HasSubstr("node1: not changed: is drained already (drained: waiting for a spare part [root])"));
  EXPECT_EQ(slurm().reason("node1"), "waiting for a spare part");
  EXPECT_THAT(slurm().muster({"undrain", run.string(), "--apply"}).out,
              HasSubstr("no node is drained by this run"));
  EXPECT_EQ(slurm().state("node1"), "drained");
}

TEST_F(SlurmDrain, DoesNotGiveBackWhatSomebodyGaveAnotherReason) {
  const fs::path run = newRun();
  EXPECT_EQ(submitSick(run, {1}, "node[1-2]").exitCode, 1);
  ASSERT_EQ(slurm().muster({"drain", run.string(), "--apply"}).exitCode, 0);
  slurm().set("node1", "DRAIN", "being repaired");
  const ProcessResult back = slurm().muster({"undrain", run.string(), "--apply"});
  EXPECT_THAT(back.out, HasSubstr("node1: not changed: was not drained by this run"));
  EXPECT_EQ(slurm().state("node1"), "drained");
  EXPECT_THAT(slurm().muster({"undrain", run.string(), "--dry-run"}).out,
              HasSubstr("no node is drained by this run"))
      << "else `clean` would keep the run for ever";
  // Whoever may write into the run folder says that this was the run's own reason, and that node3 was its
  // too.
  slurm().set("node3", "DRAIN", "muster: another run: gemm");
  for (const std::string line : {R"({"action":"drain","node":"node1","reason":"being repaired"})",
                                 R"({"action":"drain","node":"node3","reason":"muster: another run: gemm"})"})
    std::ofstream(run / "drained.jsonl", std::ios::app) << line << "\n";
  const ProcessResult forged = slurm().muster({"undrain", run.string(), "--apply"});
  EXPECT_THAT(forged.out, HasSubstr("node1: not changed: was not drained by this run"));
  EXPECT_THAT(forged.out, HasSubstr("node3: not changed: is not a node of this run"));
  EXPECT_EQ(slurm().state("node1"), "drained");
  EXPECT_EQ(slurm().state("node3"), "drained");
}

TEST_F(SlurmScope, NamesASlowLinkOnceByTheSchedulersNamesOfItsEnds) {
  const fs::path plan = slurm().shared() / "ring.toml";
  std::ofstream(plan) << "schema = 1\nname = \"ring\"\nsku = \"auto\"\nbackend = \"cuda\"\n"
                         "[[stage]]\nname = \"ring\"\nplugin = \"ring\"\ntest = \"ring\"\n"
                         "scope = \"cluster\"\ntimeout = \"2m\"\n";
  const fs::path scenario =
      distDir() / "share" / "muster" / "plans" / "scenarios" / "h100x8-cluster-slow-link.toml";
  const fs::path run = newRun();
  const ProcessResult result = submit(plan, run, {"--simulate", scenario.string(), "--wait"});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const Json suspects = fleetOf(run)["suspects"];
  EXPECT_EQ(suspects.size(), 1u) << suspects.dump();
  EXPECT_THAT(suspects.dump(), AllOf(HasSubstr("node3 - node4"), Not(HasSubstr("node-rank"))));
}

TEST_F(SlurmScope, RunsStagesOfAllNodesAsOneGroupUnderSrun) {
  const fs::path plan = slurm().shared() / "together.toml";
  std::ofstream(plan)
      << "schema = 1\nname = \"together\"\nsku = \"host\"\nbackend = \"host\"\n"
         "[[stage]]\nname = \"health\"\nplugin = \"env\"\ntest = \"health\"\nscope = \"node\"\nranks = 1\n"
         "timeout = \"1m\"\n[stage.params]\nidle_window = \"1s\"\nkernel_log = \"optional\"\n"
         "[[stage]]\nname = \"reduce\"\nplugin = \"collective\"\ntest = \"sweep\"\nscope = "
         "\"cluster\"\nranks = 1\n"
         "timeout = \"2m\"\n[stage.params]\nfrom = \"8 B\"\nto = \"64 KiB\"\nfactor = 64\niterations = 3\n"
         "call_timeout = \"30s\"\n";
  const fs::path run = newRun();
  const ProcessResult result = submit(plan, run, {"--wait"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  for (int rank = 0; rank < 4; ++rank) {
    const auto record = readRecord(run / "records" / "cluster" / fmt::format("node{}", rank + 1) /
                                   fmt::format("node-{:04}", rank) / "record.json");
    ASSERT_TRUE(record.ok()) << record.error().text();
    EXPECT_EQ(record->nodeRank, rank);
    EXPECT_EQ(record->nodeCount, 4);
    EXPECT_EQ(record->launcher.value("kind", ""), "slurm");
    EXPECT_EQ(record->node, fmt::format("node{}", rank + 1));
    EXPECT_EQ(record->stages.back().group.value("world_size", 0), 4);
    EXPECT_THAT(recordText(*record), Not(HasSubstr("MUSTER_TOKEN")));
  }
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, HasSubstr("(cluster scope)      exit 0"));
  expectVerifiedButForOneMachine(run, 8);
}

/// A plan with nothing but a stage of all nodes, which takes a moment on simulated GPUs.
fs::path clusterPlan(const fs::path& folder) {
  const fs::path plan = folder / "only-cluster.toml";
  std::ofstream(plan) << "schema = 1\nname = \"only-cluster\"\nsku = \"auto\"\nbackend = \"cuda\"\n"
                         "[[stage]]\nname = \"ring\"\nplugin = \"ring\"\ntest = \"ring\"\n"
                         "scope = \"cluster\"\ntimeout = \"2m\"\n";
  return plan;
}

std::string healthyCluster() {
  return (distDir() / "share" / "muster" / "plans" / "scenarios" / "h100x8-cluster-healthy.toml").string();
}

TEST_F(SlurmScope, StatusOfAPlanWithOnlyClusterStagesIsThatOfItsNodes) {
  const fs::path run = newRun();
  const ProcessResult result =
      submit(clusterPlan(slurm().shared()), run, {"--simulate", healthyCluster(), "--wait"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const std::string status = slurm().muster({"status", run.string()}).out;
  EXPECT_THAT(status, HasSubstr("4 nodes: 4 accepted\n"));
  EXPECT_THAT(status, ContainsRegex("node2 +accepted +exit 0"));
  // All have their result: nothing runs again.
  const ProcessResult again = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_EQ(again.exitCode, 0) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("no node to retest; the fleet report stays as it is\n"));
  EXPECT_FALSE(fs::exists(run / "attempts" / "cluster.0"));
}

/// Whoever else's part ended otherwise: the job's own exit code is the greatest of all.
TEST_F(SlurmScope, ResumeKeepsARejectionInAJobThatAnotherNodeFailed) {
  const fs::path run = newRun();
  ASSERT_EQ(submitBadLink(run, 1, 2, kNode1Alone).exitCode, 1);
  ASSERT_EQ(readWhole(run / "cluster_exits" / "node1"), "1\n");
  std::ofstream(run / "cluster_exits" / "node3") << "137\n";
  std::ofstream(run / "cluster.exit") << "137\n";
  fs::remove_all(run / "records" / "cluster" / "node3");
  const ProcessResult again = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_THAT(
      again.out,
      HasSubstr("do not run again: something failed in them on node1; after a repair, use --rejected"));
  EXPECT_THAT(again.out, HasSubstr("no node to retest; the fleet report stays as it is\n"));
  EXPECT_NE(again.exitCode, 0) << again.out << again.err;
  EXPECT_FALSE(fs::exists(run / "attempts" / "cluster.0"));
  // The same where nothing but its journal says so: its job was killed.
  fs::remove(run / "cluster_exits" / "node1");
  fs::remove(run / "cluster.exit");
  fs::remove(run / "records" / "cluster" / "node1" / "node-0000" / "record.json");
  EXPECT_THAT(slurm().muster({"resume", run.string(), "--wait"}).out,
              HasSubstr("something failed in them on node1; after"));
  EXPECT_THAT(slurm().muster({"resume", run.string(), "--rejected", "--wait"}).out,
              HasSubstr("retesting 4 nodes with the cluster stages: node[1-4]\n"));
}

TEST_F(SlurmScope, ResumeRunsClusterStagesAgainWithANodeThatTheyMissed) {
  const fs::path plan = slurm().shared() / "both.toml";
  std::ofstream(plan) << readWhole(quickPlan()) << "[[stage]]\nname = \"ring\"\nplugin = \"ring\"\ntest = "
                      << "\"ring\"\nscope = \"cluster\"\ntimeout = \"2m\"\n";
  slurm().set("node4", "DOWN", "no power");
  const fs::path run = newRun();
  EXPECT_EQ(submit(plan, run, {"--simulate", healthyCluster(), "--wait"}).exitCode, 3);
  slurm().set("node4", "RESUME");
  ASSERT_TRUE(within(60, [] { return slurm().state("node4") == "idle"; }));
  const ProcessResult second = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_EQ(second.exitCode, 0) << second.out << second.err;
  EXPECT_THAT(second.out, HasSubstr("retesting 1 nodes with the plan: node4\n"));
  EXPECT_TRUE(fs::exists(run / "attempts" / "cluster.0" / "run" / "node1"));
  // What node2 is by now has met nobody.
  std::ofstream(run / "exits" / "node2") << "3\n";
  const ProcessResult third = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_EQ(third.exitCode, 0) << third.out << third.err;
  EXPECT_THAT(third.out, HasSubstr("retesting 1 nodes with the plan: node2\n"));
  EXPECT_TRUE(fs::exists(run / "attempts" / "cluster.1" / "run" / "node1"));
}

TEST_F(SlurmResume, RetestsANodeThatOnlyTheFleetRejected) {
  const fs::path plan = slurm().shared() / "relative.toml";
  std::ofstream(plan) << readWhole(quickPlan())
                      << "[[stage.expect]]\nmetric = \"compute.gemm_throughput\"\nof = \"fleet\"\nwithin = "
                      << "\"4%\"\n";
  const fs::path scenario = slurm().shared() / "slow-node2.toml";
  std::ofstream(scenario) << readWhole(healthy())
                          << "\n[[fault]]\nkind = \"slow\"\nnode = 1\ndevice = 3\nfactor = 0.93\n"
                          << "ops = [\"gemm\"]\n";
  const fs::path run = newRun();
  const ProcessResult first = submit(plan, run, {"--simulate", scenario.string(), "--wait"});
  ASSERT_EQ(first.exitCode, 1) << first.out << first.err;
  EXPECT_THAT(slurm().muster({"status", run.string()}).out,
              ContainsRegex("node2 +accepted +exit 0, rejected by the fleet"));
  const std::string report = readWhole(run / "fleet" / "fleet.json");
  const ProcessResult nobody = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_THAT(nobody.out, HasSubstr("no node to retest; the fleet report stays as it is\n"));
  EXPECT_EQ(nobody.exitCode, 1) << nobody.out << nobody.err;
  EXPECT_EQ(readWhole(run / "fleet" / "fleet.json"), report);
  EXPECT_THAT(slurm().muster({"resume", run.string(), "--rejected", "--wait"}).out,
              HasSubstr("retesting 1 nodes with the plan: node2\n"));
}

/// As where Slurm has forgotten its job, or its disk was full: no report could ever accept the run.
TEST_F(SlurmResume, RetestsANodeWhoseRecordDoesNotCount) {
  const fs::path run = newRun();
  ASSERT_EQ(submit(quickPlan(), run, {"--simulate", healthy(), "--wait"}, "node[1-2]").exitCode, 0);
  fs::resize_file(run / "records" / "nodes" / "node1" / "record.json", 100);
  fs::remove(run / "fleet.exit");  // a report that stands would stay
  const ProcessResult found = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_THAT(found.out, HasSubstr("retesting 0 nodes"));
  EXPECT_THAT(found.out, ContainsRegex("node1 +quarantined "));
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, ContainsRegex("node1 +accepted"));
  const ProcessResult again = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_THAT(again.out, HasSubstr("retesting 1 nodes with the plan: node1\n"));
  EXPECT_EQ(again.exitCode, 0) << again.out << again.err;
}

TEST_F(SlurmScope, ResumeRunsClusterStagesAgainWhereANodeWasMissing) {
  slurm().set("node4", "DOWN", "no power");
  const fs::path run = newRun();
  const ProcessResult first =
      submit(clusterPlan(slurm().shared()), run, {"--simulate", healthyCluster(), "--wait"});
  EXPECT_EQ(first.exitCode, 3) << first.out << first.err;
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, HasSubstr("4 nodes: 3 accepted, 1 missing\n"));
  slurm().set("node4", "RESUME");
  ASSERT_TRUE(within(60, [] { return slurm().state("node4") == "idle"; }));
  const ProcessResult second = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_EQ(second.exitCode, 0) << second.out << second.err;
  EXPECT_THAT(second.out, HasSubstr("retesting 4 nodes with the cluster stages: node[1-4]\n"));
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, HasSubstr("4 nodes: 4 accepted\n"));
  EXPECT_TRUE(fs::exists(run / "attempts" / "cluster.0" / "run"));
}

TEST_F(SlurmResume, SaysThatTheTimeLimitEndedTheRun) {
  const fs::path run = newRun();
  // Slurm tells the node half a minute before the end of this minute; the plan would take longer.
  ASSERT_EQ(submit(waitingPlan(58), run, {"--time", "1m"}, "node1").exitCode, 0);
  const ProcessResult result = slurm().muster({"wait", run.string()});
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const auto record = readRecord(run / "records" / "nodes" / "node1" / "record.json");
  ASSERT_TRUE(record.ok()) << record.error().text();
  EXPECT_EQ(record->acceptance, Acceptance::kInterrupted);
  const std::string text = recordText(*record);
  EXPECT_THAT(text, ContainsRegex("the time limit of Slurm job [0-9]+ .1m. ended the run"));
  EXPECT_THAT(text, Not(HasSubstr("told to stop")));
}

TEST_F(SlurmResume, SaysThatThereIsNoFleetReportWhereTheFleetJobCouldNotStart) {
  const fs::path run = newRun();
  ASSERT_EQ(submit(quickPlan(), run, {"--simulate", healthyCluster(), "--wait"}, "node1").exitCode, 0);
  // As on a node that does not see the folder that muster is in.
  std::string script = readWhole(run / "scripts" / "fleet.sbatch");
  ASSERT_NE(script.find("\nmuster="), std::string::npos);
  script.replace(script.find("\nmuster="), 8, "\nmuster=/nowhere");
  std::ofstream(run / "scripts" / "fleet.sbatch") << script;
  fs::remove(run / "fleet.exit");  // a report that stands would stay
  const ProcessResult result = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(
      result.out,
      HasSubstr("fleet report: none: the fleet job ended with 127: muster could not be started there"));
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, HasSubstr("fleet report: none: "));
}

TEST_F(SlurmClean, RemovesOldRunsOnlyWhenAskedTo) {
  const fs::path root = slurm().shared() / "runs";
  fs::create_directories(root / "not-a-run");
  ASSERT_EQ(submit(quickPlan(), root / "done", {"--simulate", slowFirstNode(), "--wait"}, "node2").exitCode,
            1);
  ASSERT_EQ(submit(waitingPlan(30), root / "alive", {}, "node3").exitCode, 0);
  const auto clean = [&](const char* age, const char* mode) {
    return slurm().muster({"clean", root.string(), "--older-than", age, mode}).out;
  };
  EXPECT_THAT(clean("1h", "--apply"), HasSubstr("done: kept: is not old enough"));
  EXPECT_THAT(clean("0s", "--dry-run"), HasSubstr("done: would be removed"));
  EXPECT_TRUE(fs::exists(root / "done" / "slurm.json"));
  const std::string said = clean("0s", "--apply");
  EXPECT_THAT(said, HasSubstr("done: removed"));
  EXPECT_THAT(said, HasSubstr("alive: kept: its jobs still wait or run"));
  const ProcessResult nested = submit(quickPlan(), root / "alive" / "again", {}, "node2");
  EXPECT_EQ(nested.exitCode, 2);
  EXPECT_THAT(nested.err, HasSubstr("it lies inside another run"));
  EXPECT_FALSE(fs::exists(root / "done"));
  EXPECT_TRUE(fs::exists(root / "alive" / "slurm.json"));
  EXPECT_TRUE(fs::exists(root / "not-a-run"));
}

TEST_F(SlurmClean, KeepsWhatIsNotItsOwnAndWhatItStillNeeds) {
  const fs::path root = slurm().shared() / "kept", elsewhere = slurm().shared() / "elsewhere";
  fs::create_directories(root / "foreign");
  std::ofstream(root / "foreign" / "slurm.json") << "{\"tool\": \"another\"}\n";
  ASSERT_EQ(submit(quickPlan(), elsewhere, {"--simulate", slowFirstNode(), "--wait"}, "node2").exitCode, 1);
  fs::create_directory_symlink(elsewhere, root / "link");
  EXPECT_EQ(submitSick(root / "drainer", {1}, "node1").exitCode, 1);
  ASSERT_EQ(slurm().muster({"drain", (root / "drainer").string(), "--apply"}).exitCode, 0);
  const auto clean = [&] {
    return slurm().muster({"clean", root.string(), "--older-than", "0s", "--apply"});
  };

  ASSERT_EQ(submit(quickPlan(), root / "outer", {"--simulate", slowFirstNode(), "--wait"}, "node2").exitCode,
            1);
  fs::create_directories(root / "outer" / "saved");
  fs::copy(elsewhere, root / "outer" / "saved" / "inner", fs::copy_options::recursive);
  fs::copy(elsewhere, root / "others", fs::copy_options::recursive);
  ASSERT_EQ(chown((root / "others").c_str(), 12345, 12345), 0);

  ASSERT_EQ(
      submit(quickPlan(), root / "mounted", {"--simulate", slowFirstNode(), "--wait"}, "node2").exitCode, 1);
  fs::create_directories(root / "mounted" / "data");
  ASSERT_EQ(mount(elsewhere.c_str(), (root / "mounted" / "data").c_str(), "", MS_BIND, ""), 0)
      << strerror(errno);

  ASSERT_EQ(submit(quickPlan(), root / "deep", {"--simulate", slowFirstNode(), "--wait"}, "node2").exitCode,
            1);
  fs::path below = root / "deep";
  for (int level = 0; level < 40; ++level) below /= "d";
  fs::create_directories(below);

  const ProcessResult kept = clean();
  EXPECT_EQ(umount2((root / "mounted" / "data").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(kept.exitCode, 3) << kept.err;
  EXPECT_THAT(kept.out, HasSubstr("mounted: kept: something is mounted inside it: "));
  EXPECT_THAT(kept.out, HasSubstr("outer: kept: another run lies inside it: "));
  EXPECT_THAT(kept.out, HasSubstr("others: kept: "));
  EXPECT_THAT(kept.out, HasSubstr("foreign: kept: "));
  EXPECT_THAT(kept.out, HasSubstr("drainer: kept: it drained node1"));
  EXPECT_THAT(kept.out, HasSubstr("it is more than 32 folders deep"));
  EXPECT_THAT(kept.out, Not(HasSubstr("link")));
  for (const fs::path& path :
       {root / "foreign" / "slurm.json", root / "drainer" / "slurm.json", elsewhere / "slurm.json",
        root / "outer" / "saved" / "inner" / "slurm.json", root / "others" / "slurm.json"})
    EXPECT_TRUE(fs::exists(path)) << path;

  // Given back, it may go; but not while Slurm cannot say whether its jobs run.
  ASSERT_EQ(slurm().muster({"undrain", (root / "drainer").string(), "--apply"}).exitCode, 0);
  slurm().stopController();
  const ProcessResult unsure = clean();
  slurm().startController();
  EXPECT_EQ(unsure.exitCode, 2) << unsure.out;
  EXPECT_TRUE(fs::exists(root / "drainer" / "slurm.json"));
  EXPECT_THAT(clean().out, HasSubstr("drainer: removed"));
  EXPECT_TRUE(fs::exists(elsewhere / "slurm.json"));
}

}  // namespace
}  // namespace muster::testing
