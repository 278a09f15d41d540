// SPDX-License-Identifier: Apache-2.0
// The programs that Slurm calls on its nodes, run as Slurm does, on a real Slurm.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>

#include "tests/slurm/slurm_run.h"
#include "tests/support/access_list.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kNodes[] = {"node1", "node2", "node3", "node4"};

class SlurmHooks : public SlurmTest {
 protected:
  void TearDown() override {
    if (geteuid() == 0) slurm().configure("");
  }
  /// Writes the hooks for a plan; returns their folder. They keep their results in keep/.
  static fs::path write(const fs::path& plan, const std::string& time = "45s", fs::path keep = {}) {
    static int number = 0;
    const fs::path folder = slurm().shared() / fmt::format("hooks-{}", ++number);
    if (keep.empty()) keep = folder / "keep";
    const ProcessResult result = slurm().muster(
        {"hooks", plan.string(), "--out", folder.string(), "--keep", keep.string(), "--time", time});
    EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
    return folder;
  }
  /// What became of each call of a hook on a node.
  static std::string calls(const fs::path& hooks, const std::string& kind, const std::string& node) {
    return readWhole(hooks / "keep" / kind / node / "calls.log");
  }
  /// Has slurmd call a hook before (Prolog) or after (Epilog) each job.
  static void around(const char* when, const fs::path& hook) {
    slurm().configure(fmt::format("{}={}\nPrologFlags=Alloc\nPrologEpilogTimeout=60\n", when, hook.string()));
  }
  /// Has slurmd call it every other second on nodes without a job.
  static void whenIdle(const fs::path& hook) {
    slurm().configure(fmt::format("HealthCheckProgram={}\nHealthCheckInterval=2\nHealthCheckNodeState=IDLE\n",
                                  hook.string()));
  }
  static int job(const std::string& node) {
    return slurm().command({"srun", "--nodes=1", "--nodelist=" + node, "true"}, 90).exitCode;
  }
  /// A product of matrices that no machine does as fast as this plan wants.
  static fs::path impossiblePlan(const std::string& more = "") {
    const fs::path plan =
        slurm().shared() / fmt::format("impossible-{}.toml", std::hash<std::string>()(more));
    std::ofstream(plan)
        << "schema = 1\nname = \"hook\"\nsku = \"host\"\nbackend = \"host\"\n[[stage]]\nname = \"gemm\"\n"
           "plugin = \"compute\"\ntest = \"gemm\"\ntimeout = \"40s\"\n[stage.params]\nsize = 128\ndtype = "
           "\"f32\"\nwarmup = \"10ms\"\nmin_time = \"50ms\"\nmax_time = \"100ms\"\n[[stage.expect]]\n"
           "metric = \"compute.gemm_throughput\"\nmin = \"900000 TFLOP/s\"\nsource = \"this test\"\n"
        << more;
    return plan;
  }
  /// The same, and then as long a wait as a job takes to begin and to end. It is rejected either way.
  static fs::path longImpossiblePlan(int seconds) {
    return impossiblePlan(
        fmt::format("[[stage]]\nname = \"long\"\nplugin = \"env\"\ntest = \"health\"\nscope = \"node\"\n"
                    "ranks = 1\ntimeout = \"1m\"\n[stage.params]\nidle_window = \"{}s\"\n"
                    "kernel_log = \"optional\"\n",
                    seconds));
  }
  /// What a health check of node1 says that rejects it, where `happens` while it is at work.
  static std::string saidAbout(const fs::path& hooks, const std::function<void()>& happens) {
    for (int round = 0; round < 5; ++round) {  // on a busy machine it may happen too late
      auto check =
          std::async(std::launch::async, [&] { return call(hooks / "health_check.sh", "node1").exitCode; });
      EXPECT_TRUE(within(60, [&] { return fs::exists(hooks / "keep/health_check/node1/run"); }));
      happens();
      const bool inTime = check.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
      EXPECT_EQ(check.get(), 0);
      if (inTime) return calls(hooks, "health_check", "node1");
      slurm().tidy();
      fs::remove_all(hooks / "keep");
    }
    ADD_FAILURE() << "the checks ended too early";
    return "";
  }
  static ProcessResult call(const fs::path& hook, const std::string& node) {
    return slurm().command({hook.string()}, 60, {{"SLURMD_NODENAME", node}});
  }
};

TEST_F(SlurmHooks, DrainARejectedNodeWithOurReason) {
  const fs::path hooks = write(impossiblePlan());
  for (const char* kind : {"health_check", "prolog", "epilog"}) {
    slurm().tidy();
    EXPECT_EQ(call(hooks / (std::string(kind) + ".sh"), "node1").exitCode, 0)
        << "a hook that fails makes Slurm drain without our reason";
    EXPECT_EQ(slurm().state("node1"), "drained") << readWhole(hooks / "keep" / kind / "node1" / "log");
    EXPECT_EQ(fs::status(hooks / "keep" / "node1.lock").permissions(), fs::perms(0600))
        << "who can read it can hold it, and nothing is checked";
    EXPECT_THAT(calls(hooks, kind, "node1"), HasSubstr("rejected: drained\n"));
    EXPECT_THAT(slurm().reason("node1"), StartsWith(fmt::format("muster: {}: rejected", kind)));
  }
}

/// Somebody used up the numbers of processes. Root has no limit on them, so the hook runs as another user.
TEST_F(SlurmHooks, DoNotFailWhereNoProcessCanBeStarted) {
  const fs::path hooks = write(quickPlan());
  for (const char* kind : {"health_check", "prolog", "epilog"}) {
    const std::string text = readWhole(hooks / (std::string(kind) + ".sh"));
    const ProcessResult result = slurm().command({"setpriv", "--reuid=54321", "--clear-groups", "bash", "-c",
                                                  "ulimit -u 0; eval \"$1\"", "hook", text},
                                                 60, {{"SLURMD_NODENAME", "node1"}});
    EXPECT_EQ(result.exitCode, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("fork"));
  }
}

TEST_F(SlurmHooks, SeeAllOfANodeWhateverAJobAskedFor) {
  const fs::path hooks = write(impossiblePlan());
  const ProcessResult result =
      slurm().command({(hooks / "prolog.sh").string()}, 60,
                      {{"SLURMD_NODENAME", "node1"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"NCCL_DEBUG", "INFO"}});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  const std::string record = readWhole(hooks / "keep/prolog/node1/run/record.json");
  EXPECT_THAT(record, HasSubstr("\"environment\""));
  EXPECT_THAT(record, Not(HasSubstr("CUDA_VISIBLE_DEVICES")));
  EXPECT_THAT(record, Not(HasSubstr("NCCL_DEBUG")));
}

TEST_F(SlurmHooks, NeverDrainOnASimulatedVerdict) {
  const fs::path hooks = write(quickPlan());
  const std::string muster = (distDir() / "bin" / "muster").string();
  const std::string slow = (distDir() / "share/muster/plans/scenarios/h100x8-one-slow-gpu.toml").string();
  const fs::path simulating = hooks / "simulating";
  std::ofstream(simulating) << "#!/bin/sh\nexec " << muster << " \"$@\" --simulate " << slow << "\n";
  fs::permissions(simulating, fs::perms(0755));
  for (const char* kind : {"health_check", "prolog", "epilog"}) {
    const fs::path hook = hooks / (std::string(kind) + ".sh");
    std::string text = readWhole(hook);
    const size_t at = text.find("muster=");
    text.replace(at, text.find('\n', at) - at, "muster=" + simulating.string());
    std::ofstream(hook) << text;
    EXPECT_EQ(call(hook, "node1").exitCode, 0);
    EXPECT_EQ(slurm().state("node1"), "idle");
    EXPECT_THAT(calls(hooks, kind, "node1"), HasSubstr("rejected, and NOT drained: "))
        << readWhole(hooks / "keep" / kind / "node1" / "log");
  }
}

TEST_F(SlurmHooks, CheckNothingWhereAnotherUserCouldRedirectWhatRootWrites) {
  const fs::path hooks = write(impossiblePlan());
  const fs::path precious = slurm().shared() / "precious";
  std::ofstream(precious) << "kept\n";
  fs::create_directories(hooks / "keep" / "prolog" / "node1");
  const auto checksNothing = [&](const fs::path& open) {
    fs::permissions(open, fs::perms(0777));
    const ProcessResult result = call(hooks / "prolog.sh", "node1");
    EXPECT_EQ(result.exitCode, 0);
    EXPECT_THAT(result.err, HasSubstr("others than root can write to " + open.string()));
    EXPECT_EQ(readWhole(precious), "kept\n");
    EXPECT_EQ(slurm().state("node1"), "idle");
    fs::permissions(open, fs::perms(0755));
  };
  checksNothing(hooks / "keep" / "prolog");
  // The lock is not where a link leads the results of one kind.
  fs::create_symlink(precious, hooks / "keep" / "node1.lock");
  fs::rename(hooks / "keep" / "prolog", hooks / "elsewhere");
  fs::create_directory_symlink(hooks / "elsewhere", hooks / "keep" / "prolog");
  checksNothing(hooks / "keep");
}

/// What is missing in a folder like /tmp, another user could make, with links in it.
TEST_F(SlurmHooks, CheckNothingWhereAnotherUserCouldMakeTheFolderFirst) {
  const fs::path sticky = slurm().shared() / "sticky";
  const fs::path hooks = write(impossiblePlan(), "45s", sticky / "keep");
  fs::create_directories(sticky);
  fs::permissions(sticky, fs::perms(01777));
  const ProcessResult result = call(hooks / "prolog.sh", "node1");
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_THAT(result.err, HasSubstr("others than root can write to " + sticky.string()));
  EXPECT_TRUE(fs::is_empty(sticky));
  fs::create_directories(sticky / "keep");
  EXPECT_EQ(call(hooks / "prolog.sh", "node1").exitCode, 0);
  EXPECT_EQ(slurm().state("node1"), "drained") << "nobody else can replace what root has there";
}

/// Under a default ACL the umask does not count.
TEST_F(SlurmHooks, CheckNothingWhereADefaultAclLetsAnotherUserWrite) {
  const fs::path hooks = write(impossiblePlan());
  if (!allow(hooks, kOtherUser, kDefaultList)) GTEST_SKIP() << kNoLists;
  const ProcessResult result = call(hooks / "prolog.sh", "node1");
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_THAT(result.err, HasSubstr("by its default ACL: nothing was checked; run setfacl -k on it"));
  EXPECT_EQ(slurm().state("node1"), "idle");
  for (const char* made : {"keep", "keep/prolog", "keep/prolog/node1"}) {
    const fs::perms mode = fs::status(hooks / made).permissions();
    EXPECT_EQ(mode & fs::perms(0022), fs::perms::none) << made << " could hold another user's link";
  }
  EXPECT_TRUE(fs::is_empty(hooks / "keep/prolog/node1"));
  // As it is said where they are written; the list is handed down.
  for (const fs::path& keep : {hooks / "new", hooks / "keep"}) {
    const ProcessResult written = slurm().muster(
        {"hooks", impossiblePlan().string(), "--out", newRun().string(), "--keep", keep.string()});
    EXPECT_EQ(written.exitCode, 2) << keep;
    EXPECT_THAT(written.err, HasSubstr("by its default ACL; run setfacl -k on it")) << keep;
  }
}

TEST_F(SlurmHooks, LeaveAnAcceptedNodeAndOneThatSomebodyDrained) {
  const fs::path good = write(waitingPlan(1)), bad = write(impossiblePlan());
  EXPECT_EQ(call(good / "health_check.sh", "node1").exitCode, 0);
  EXPECT_EQ(slurm().state("node1"), "idle") << readWhole(good / "keep" / "health_check" / "node1" / "log");
  EXPECT_THAT(calls(good, "health_check", "node1"), HasSubstr("accepted\n"));
  slurm().set("node2", "DRAIN", "being repaired");
  EXPECT_EQ(call(bad / "health_check.sh", "node2").exitCode, 0);
  EXPECT_EQ(slurm().reason("node2"), "being repaired");
  EXPECT_THAT(calls(bad, "health_check", "node2"), HasSubstr("rejected; the node is drained already\n"));
}

/// Its work slows the node down.
TEST_F(SlurmHooks, AHealthCheckDrainsNoNodeWhereAJobBegan) {
  const fs::path hooks = write(longImpossiblePlan(10));
  const std::string said = saidAbout(hooks, [] {
    (void)slurm().command(
        {"sbatch", "--nodelist=node1", "--exclusive", "--output=/dev/null", "--wrap=sleep 60"});
    EXPECT_TRUE(within(60, [] { return slurm().state("node1") == "allocated"; })) << slurm().logs();
  });
  (void)slurm().command({"scancel", "--quiet", "--user=root"});
  EXPECT_THAT(said,
              HasSubstr("rejected, and NOT drained: a job began during the check (the node is allocated)"))
      << readWhole(hooks / "keep/health_check/node1/log");
  EXPECT_THAT(slurm().state("node1"), Not(HasSubstr("drain"))) << slurm().reason("node1");
}

TEST_F(SlurmHooks, AHealthCheckDrainsNoNodeWhereAJobBeganAndHasEnded) {
  const fs::path hooks = write(longImpossiblePlan(10));
  const std::string said = saidAbout(hooks, [] {
    // Longer than a second, by which Slurm tells when the last job ended: that of the test before, perhaps.
    EXPECT_EQ(slurm().command({"srun", "--nodes=1", "--nodelist=node1", "sleep", "2"}, 90).exitCode, 0)
        << slurm().logs();
  });
  EXPECT_THAT(said, HasSubstr("rejected, and NOT drained: a job began during the check (the node is idle)"));
  EXPECT_EQ(slurm().state("node1"), "idle");
}

/// Whatever Slurm tells: these run only where there is a job.
TEST_F(SlurmHooks, AHealthCheckDrainsNoNodeWhereAPrologOrEpilogFoundItAtWork) {
  for (const char* kind : {"prolog", "epilog"}) {
    const fs::path hooks = write(longImpossiblePlan(4));
    const std::string said =
        saidAbout(hooks, [&] { EXPECT_EQ(call(hooks / (std::string(kind) + ".sh"), "node1").exitCode, 0); });
    EXPECT_THAT(said, HasSubstr("rejected, and NOT drained: a job began during the check")) << kind;
    EXPECT_EQ(slurm().state("node1"), "idle");
    // It concerned that check alone, and another health check is no job.
    EXPECT_THAT(saidAbout(hooks, [&] { (void)call(hooks / "health_check.sh", "node1"); }),
                HasSubstr("rejected: drained\n"));
    slurm().tidy();
  }
}

TEST_F(SlurmHooks, SlurmdsHealthCheckDrainsEachNodeThatItRejects) {
  const fs::path hooks = write(impossiblePlan());
  whenIdle(hooks / "health_check.sh");
  EXPECT_TRUE(within(90, [] {
    return std::all_of(std::begin(kNodes), std::end(kNodes),
                       [](const char* node) { return slurm().state(node) == "drained"; });
  })) << slurm().logs();
  for (const char* node : kNodes)
    EXPECT_THAT(slurm().reason(node), StartsWith("muster: health_check: rejected")) << node;
}

TEST_F(SlurmHooks, SlurmdsPrologLetsTheJobGoOnAndDrainsTheNodeThatItRejects) {
  const fs::path hooks = write(impossiblePlan());
  around("Prolog", hooks / "prolog.sh");
  EXPECT_EQ(job("node1"), 0) << slurm().logs();
  EXPECT_THAT(slurm().reason("node1"), StartsWith("muster: prolog: rejected")) << slurm().logs();
  EXPECT_TRUE(within(60, [] { return slurm().state("node1") == "drained"; }));
  EXPECT_EQ(slurm().state("node2"), "idle");
}

TEST_F(SlurmHooks, SlurmdsEpilogDrainsTheNodeThatItRejects) {
  const fs::path hooks = write(impossiblePlan());
  around("Epilog", hooks / "epilog.sh");
  EXPECT_EQ(job("node2"), 0) << slurm().logs();
  EXPECT_TRUE(within(60, [] { return slurm().state("node2") == "drained"; })) << slurm().logs();
  EXPECT_THAT(slurm().reason("node2"), StartsWith("muster: epilog: rejected"));
  EXPECT_EQ(slurm().state("node1"), "idle");
}

TEST_F(SlurmHooks, ACheckThatHangsEndsInTimeAndReports) {
  const fs::path hooks = write(waitingPlan(50), "5s");
  around("Prolog", hooks / "prolog.sh");
  EXPECT_EQ(job("node1"), 0) << slurm().logs();
  EXPECT_THAT(calls(hooks, "prolog", "node1"), HasSubstr("the plan did not end within 5 s: no verdict"));
  EXPECT_THAT(slurm().state("node1"), Not(HasSubstr("drain"))) << slurm().reason("node1");

  // Slurm begins the next health check while this one is at work.
  whenIdle(hooks / "health_check.sh");
  EXPECT_TRUE(within(90, [&] {
    const std::string said = calls(hooks, "health_check", "node2");
    return said.find("the plan did not end within 5 s") != std::string::npos &&
           said.find("still at work: nothing was checked") != std::string::npos;
  })) << calls(hooks, "health_check", "node2");
  EXPECT_THAT(slurm().state("node2"), Not(HasSubstr("drain")));
  EXPECT_THAT(slurm().logs(), Not(HasSubstr("health_check killed"))) << "Slurm had to end it";
}

TEST_F(SlurmHooks, WhatFailedBeforeTheTimeIsOverIsARejection) {
  const fs::path hooks = write(longImpossiblePlan(50), "10s");
  EXPECT_EQ(call(hooks / "epilog.sh", "node1").exitCode, 0);
  const fs::path kept = hooks / "keep/epilog/node1";
  EXPECT_THAT(readWhole(kept / "log"), HasSubstr("the run was interrupted (SIGTERM)"));
  EXPECT_THAT(calls(hooks, "epilog", "node1"), HasSubstr("rejected: drained\n")) << readWhole(kept / "log");
  EXPECT_EQ(slurm().state("node1"), "drained");
}

TEST_F(SlurmHooks, OfAnyKindRunOneAtATimeOnANode) {
  const fs::path hooks = write(waitingPlan(50), "10s");
  auto prolog = std::async(std::launch::async, [&] { return call(hooks / "prolog.sh", "node1"); });
  ASSERT_TRUE(within(10, [&] { return fs::exists(hooks / "keep/prolog/node1/run"); }));
  for (const char* kind : {"health_check", "epilog"}) {
    EXPECT_EQ(call(hooks / (std::string(kind) + ".sh"), "node1").exitCode, 0);
    EXPECT_THAT(calls(hooks, kind, "node1"), HasSubstr("still at work: nothing was checked"));
    EXPECT_FALSE(fs::exists(hooks / "keep" / kind / "node1" / "run"));
  }
  EXPECT_EQ(call(hooks / "epilog.sh", "node2").exitCode, 0);
  EXPECT_TRUE(fs::exists(hooks / "keep/epilog/node2/run")) << "another node";
  EXPECT_EQ(prolog.get().exitCode, 0);
  EXPECT_THAT(calls(hooks, "prolog", "node1"), HasSubstr("did not end within 10 s"));
  EXPECT_EQ(call(hooks / "epilog.sh", "node1").exitCode, 0);
  EXPECT_THAT(calls(hooks, "epilog", "node1"), HasSubstr("did not end within 10 s"));
}

TEST_F(SlurmHooks, ACheckThatHearsNoSignalIsEndedAllTheSame) {
  const fs::path hooks = write(waitingPlan(1), "5s");
  const fs::path deaf = slurm().shared() / "deaf";
  std::ofstream(deaf) << "#!/bin/bash\ntrap '' TERM\nexec sleep 300\n";
  fs::permissions(deaf, fs::perms(0755));
  std::string script = readWhole(hooks / "prolog.sh");
  const size_t at = script.find("\nmuster=") + 1;
  script.replace(at, script.find('\n', at) - at, "muster=" + deaf.string());
  std::ofstream(hooks / "prolog.sh") << script;
  EXPECT_EQ(call(hooks / "prolog.sh", "node1").exitCode, 0);
  EXPECT_THAT(calls(hooks, "prolog", "node1"), HasSubstr("the plan did not end within 5 s: no verdict"));
  EXPECT_EQ(slurm().state("node1"), "idle");
}

TEST_F(SlurmHooks, ItsOwnFaultsAreSaidAndNeverTheNodes) {
  const fs::path file = slurm().shared() / "no-folder";
  std::ofstream(file) << "x";
  const fs::path nowhere = write(impossiblePlan(), "45s", file);
  const ProcessResult unwritable = call(nowhere / "prolog.sh", "node1");
  EXPECT_EQ(unwritable.exitCode, 0);
  EXPECT_THAT(unwritable.err,
              HasSubstr("cannot make " + file.string() + "/prolog/node1: nothing was checked"));
  around("Prolog", nowhere / "prolog.sh");
  EXPECT_EQ(job("node1"), 0) << slurm().logs();
  EXPECT_THAT(slurm().state("node1"), Not(HasSubstr("drain")));

  const fs::path gone = write(waitingPlan(1));
  fs::rename(waitingPlan(1), slurm().shared() / "waiting-gone.toml");
  EXPECT_EQ(call(gone / "epilog.sh", "node2").exitCode, 0);
  EXPECT_THAT(calls(gone, "epilog", "node2"), HasSubstr("no verdict (exit 2)"));
  EXPECT_EQ(slurm().state("node2"), "idle");
}

TEST_F(SlurmHooks, AVerdictThatCannotReachTheControllerIsSaid) {
  const fs::path hooks = write(impossiblePlan(), "10s");
  slurm().stopController();
  const ProcessResult result = call(hooks / "health_check.sh", "node1");
  slurm().startController();
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_THAT(calls(hooks, "health_check", "node1"), HasSubstr("rejected, and NOT drained"));
  EXPECT_EQ(slurm().state("node1"), "idle");
}

/// Whoever can change one of these would have root do something else from then on.
TEST_F(SlurmHooks, AreWrittenOnlyForWhatNobodyElseCanChange) {
  const fs::path base = slurm().shared() / "trusted";
  fs::create_directories(base / "plans" / "common");
  fs::create_directories(base / "hooks");
  fs::create_directories(base / "keep");
  std::ofstream(base / "plans" / "plan.toml") << "include = [\"common/site.toml\"]\n"
                                              << readWhole(quickPlan());
  std::ofstream(base / "plans" / "common" / "site.toml") << "description = \"of this site\"\n";
  const auto hooks = [&] {
    return slurm().muster({"hooks", (base / "plans" / "plan.toml").string(), "--out",
                           (base / "hooks").string(), "--keep", (base / "keep" / "new").string()});
  };
  EXPECT_EQ(hooks().exitCode, 0) << hooks().err;
  std::vector<fs::path> parts = {distDir() / "share/muster/templates/slurm/verdict.mustache"};
  for (const char* part :
       {"plans/plan.toml", "plans/common/site.toml", "plans/common", "plans", "hooks", "keep", ""})
    parts.push_back(base / part);
  for (const fs::path& part : parts) {
    const fs::perms before = fs::status(part).permissions();
    fs::permissions(part, fs::perms(0777));
    const ProcessResult result = hooks();
    EXPECT_EQ(result.exitCode, 2) << part;
    EXPECT_THAT(result.err, HasSubstr("refused: the ")) << part;
    fs::permissions(part, before);
  }
  EXPECT_EQ(hooks().exitCode, 0);
}

TEST_F(SlurmHooks, TakeNoPlanFromALinkThatOthersCouldTurn) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder to another user";
  const fs::path his = slurm().shared() / "his";
  fs::create_directories(his);
  fs::create_symlink(quickPlan(), his / "plan.toml");
  ASSERT_EQ(chown(his.c_str(), 12345, 12345), 0);
  const ProcessResult result =
      slurm().muster({"hooks", (his / "plan.toml").string(), "--out", newRun().string()});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("the folder above the plan belongs to user 12345"));
}

TEST_F(SlurmHooks, RefuseATimeThatSlurmDoesNotGive) {
  const ProcessResult result =
      slurm().muster({"hooks", quickPlan().string(), "--out", newRun().string(), "--time", "55s"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("kills a HealthCheckProgram after 60 s"));
}

}  // namespace
}  // namespace muster::testing
