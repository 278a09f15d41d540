// SPDX-License-Identifier: Apache-2.0
// `muster slurm` where Slurm says no, or nothing: full queues, refused jobs, a controller that is away.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>

#include "tests/slurm/slurm_run.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// The controller asks job_submit.lua about every job; 2050 is what it answers itself beyond MaxSubmitJobs.
class SlurmLimits : public SlurmTest {
 protected:
  static constexpr const char* kLua = "JobSubmitPlugins=lua\n";
  static void SetUpTestSuite() { startCluster(kLua); }
  void SetUp() override {
    if (geteuid() == 0) slurm().answerJobs("");
    SlurmTest::SetUp();
  }
  static std::string queue() {
    return slurm().command({"squeue", "--noheader", "--array", "--format=%j %T"}).out;
  }
};

TEST_F(SlurmLimits, SubmitsNothingWhereTheQueueIsFull) {
  // Jobs that have ended count until Slurm forgets them, so the limit is set by those that are there.
  ASSERT_EQ(slurm().command({"sbatch", "--hold", "--job-name=other", "--wrap=true"}).exitCode, 0);
  const std::string known = slurm().command({"squeue", "--noheader", "--array", "--states=all"}).out;
  const auto count = std::count(known.begin(), known.end(), '\n');
  slurm().restartController(fmt::format("{}MaxJobCount={}\n", kLua, count + 2));
  const fs::path run = newRun();
  const ProcessResult result = submit(quickPlan(), run, {"--simulate", healthy()});
  const std::string queued = queue();
  slurm().restartController(kLua);
  EXPECT_EQ(result.exitCode, 2) << result.out;
  EXPECT_THAT(result.err,
              HasSubstr(fmt::format("Slurm accepts 2 more jobs (MaxJobCount is {}, and Slurm knows {} jobs)",
                                    count + 2, count)));
  EXPECT_THAT(result.err, HasSubstr("have that limit raised"));
  EXPECT_FALSE(fs::exists(run));
  EXPECT_THAT(queued, Not(HasSubstr("muster")));
}

TEST_F(SlurmLimits, TakesTurnsWhereFewJobsMayBeInTheQueue) {
  const fs::path run = newRun();
  const ProcessResult result =
      submit(quickPlan(), run, {"--simulate", healthy(), "--most-jobs", "3", "--wait"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("--most-jobs is 3: 2 of 4 nodes now, the others after them\n"));
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
  // Two tasks and the fleet job; after that one pinned job beside the fleet job that works and the one that
  // follows.
  EXPECT_THAT(readWhole(run / "jobs.jsonl"), ContainsRegex("\"kind\":\"array\".*\"tasks\":2}"));
  for (const auto& log : fs::directory_iterator(run / "logs"))
    EXPECT_THAT(readWhole(log.path()), Not(HasSubstr("pinned to each: node[")));
}

TEST_F(SlurmLimits, TakesBackWhatItSubmittedWhenALaterJobIsRefused) {
  slurm().answerJobs("if job_desc.dependency ~= nil then return 2050 end");
  const fs::path run = newRun();
  const ProcessResult refused = submit(waitingPlan(30), run);
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("submitting the fleet job"));
  EXPECT_THAT(refused.err, HasSubstr("Job violates accounting/QOS policy"));
  EXPECT_THAT(refused.err, HasSubstr("the jobs that had been submitted before are cancelled"));
  EXPECT_THAT(refused.err, HasSubstr("muster slurm resume"));
  EXPECT_TRUE(within(60, [] { return slurm().command({"squeue", "--noheader"}).out.empty(); })) << queue();
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, Not(HasSubstr("waiting")));

  EXPECT_THAT(refused.err, HasSubstr("--most-jobs N keeps below it"));

  // A second attempt does not cancel another user's job that has this run's id as its comment.
  const std::string id = Json::parse(readWhole(run / "slurm.json"))["id"];
  const std::string foreign = sbatchAsOtherUser({"--comment=" + id});
  const ProcessResult again = slurm().muster({"resume", run.string()});
  EXPECT_THAT(again.err, HasSubstr("the jobs that had been submitted before are cancelled"));
  EXPECT_THAT(slurm().command({"squeue", "--noheader", "--format=%A %T"}).out,
              HasSubstr(foreign + " PENDING\n"));
  EXPECT_EQ(slurm().command({"scancel", foreign}).exitCode, 0);
  EXPECT_TRUE(within(60, [] { return slurm().command({"squeue", "--noheader"}).out.empty(); })) << queue();

  // What is left is a run that can go on, with the jobs of before forgotten.
  slurm().answerJobs("");
  std::ofstream(run / "inputs" / "waiting-30.toml") << readWhole(waitingPlan(1));
  ASSERT_TRUE(
      within(60, [] { return slurm().state("node1") == "idle" && slurm().state("node4") == "idle"; }));
  const ProcessResult resumed = slurm().muster({"resume", run.string(), "--most-jobs", "4", "--wait"});
  EXPECT_EQ(resumed.exitCode, 0) << resumed.out << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("--most-jobs is 4: 3 of 4 nodes now, the others after them\n"));
  EXPECT_THAT(resumed.out, HasSubstr("retesting 4 nodes with the plan: node[1-4]\n"));
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
}

TEST_F(SlurmLimits, PinsAsManyJobsAsSlurmTakesAndTheOthersAfterThem) {
  // One node at a time leaves gaps (see FillsTheGaps...); the second job that is pinned to one is refused,
  // once.
  const std::string mark = (slurm().shared() / "pinned").string();
  slurm().answerJobs(
      fmt::format("if job_desc.req_nodes ~= nil then\n"
                  "  local mark = io.open('{0}', 'a+')\n"
                  "  local before = #mark:read('*a')\n"
                  "  mark:write('x')\n"
                  "  mark:close()\n"
                  "  if before == 1 then return 2050 end\n"
                  "end",
                  mark));
  const fs::path run = newRun();
  const ProcessResult result =
      submit(quickPlan(), run, {"--simulate", healthy(), "--at-once", "1", "--wait"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
  std::string logs;
  for (const auto& log : fs::directory_iterator(run / "logs")) logs += readWhole(log.path());
  EXPECT_THAT(logs, HasSubstr("1 of these were submitted: submitting the pinned job: "));
}

/// As for one that lacks what the jobs ask for since slurm.conf was changed: the others run all the same.
TEST_F(SlurmLimits, ANodeThatSlurmRefusesEveryJobForKeepsNoOtherNodeFromItsJob) {
  const auto refuse = [](const std::string& node) {
    slurm().answerJobs(
        fmt::format("if job_desc.array_inx ~= nil then job_desc.exc_nodes = 'node[2-4]' end\n"
                    "if job_desc.req_nodes == '{}' then return 2014 end",
                    node));
  };
  const char* refusal = "Requested node configuration is not available";
  refuse("node2");
  const fs::path gaps = newRun();
  const ProcessResult first =
      submit(quickPlan(), gaps, {"--simulate", healthy(), "--at-once", "1", "--wait"});
  EXPECT_EQ(first.exitCode, 3) << first.out << first.err;
  EXPECT_THAT(recorded(gaps), ElementsAre("node1", "node3", "node4"));
  std::string logs;
  for (const auto& log : fs::directory_iterator(gaps / "logs")) logs += readWhole(log.path());
  EXPECT_THAT(logs, ContainsRegex(fmt::format("no job for node2: .*{}", refusal)));
  EXPECT_THAT(slurm().muster({"resume", gaps.string()}).err, HasSubstr(refusal)) << "nothing else to do";

  slurm().answerJobs("");
  const fs::path sick = newRun();
  EXPECT_EQ(submitSick(sick, {1, 2}, "node[1-2]").exitCode, 1);
  refuse("node1");
  const ProcessResult again = slurm().muster({"resume", sick.string(), "--rejected", "--wait"});
  EXPECT_THAT(again.out, ContainsRegex(fmt::format("no job for node1: .*{}", refusal)));
  EXPECT_TRUE(fs::exists(sick / "attempts" / "nodes" / "node2.0" / "claim")) << "node2 ran again";
  EXPECT_FALSE(fs::exists(sick / "attempts" / "nodes" / "node1.0"));
  EXPECT_THAT(slurm().muster({"status", sick.string()}).out, ContainsRegex("node1 +rejected"));
}

TEST_F(SlurmLimits, FindsAJobThatSlurmTookThoughSbatchTimedOut) {
  // One node at a time leaves gaps; of the jobs pinned to them, the second one is taken without a word.
  const fs::path run = newRun(), bin = slurm().shared() / "late-sbatch";
  fs::create_directories(bin);
  const std::string path = std::getenv("PATH");
  for (const char* more : {"", "--hold"}) {  // it has claimed its node by then, or waits
    const fs::path each = run.string() + more, mark = each.string() + ".pinned";
    std::ofstream(bin / "sbatch") << fmt::format(
        "#!/bin/sh\nreal=$(PATH='{0}'; command -v sbatch)\ncase \"$*\" in *--nodelist=*)\n"
        "  echo x >>'{1}'\n  if [ $(wc -l <'{1}') = 2 ]; then\n    \"$real\" {2} \"$@\" >/dev/null\n"
        "    echo 'sbatch: error: Socket timed out on send/recv operation' >&2\n    exit 1\n  fi ;;\nesac\n"
        "exec \"$real\" \"$@\"\n",
        path, mark.string(), more);
    fs::permissions(bin / "sbatch", fs::perms(0755));
    const ProcessResult result =
        slurm().muster({"submit", quickPlan().string(), "--nodes", "node[1-4]", "--out", each.string(),
                        "--same-machine", "--simulate", healthy(), "--at-once", "1", "--wait"},
                       200, {{"PATH", bin.string() + ":" + path}});
    EXPECT_EQ(result.exitCode, 0) << more << result.out << result.err;
    std::string logs;
    for (const auto& log : fs::directory_iterator(each / "logs")) logs += readWhole(log.path());
    EXPECT_THAT(logs, HasSubstr("1 of these were submitted: submitting the pinned job: ")) << more;
    EXPECT_THAT(logs, HasSubstr("Socket timed out")) << more;
    if (*more != '\0') {  // on a busy machine also one that has not claimed its node yet
      EXPECT_THAT(logs, HasSubstr("cancelled jobs of this run that its jobs.jsonl does not list: "));
    }
    EXPECT_THAT(recorded(each), ElementsAre("node1", "node2", "node3", "node4"));
    EXPECT_TRUE(within(30, [] { return queue().empty(); })) << more << queue();
  }
}

TEST_F(SlurmLimits, SaysThatTheControllerIsAwayAndLeavesNothing) {
  slurm().stopController();
  const fs::path run = newRun();
  const ProcessResult result = submit(quickPlan(), run, {"--simulate", healthy()});
  slurm().startController();
  EXPECT_EQ(result.exitCode, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr("Slurm's controller does not answer `sinfo`"));
  EXPECT_THAT(result.err, HasSubstr("scontrol ping"));
  EXPECT_FALSE(fs::exists(run));
}

TEST_F(SlurmLimits, WaitsThroughARestartOfTheController) {
  const fs::path run = newRun();
  ASSERT_EQ(submit(waitingPlan(3), run).exitCode, 0);
  ASSERT_TRUE(within(60, [&] { return claimed(run).size() == 4; }));
  const fs::path said = slurm().shared() / "wait.out";
  const std::string muster = (distDir() / "bin" / "muster").string();
  auto waiting = std::async(std::launch::async, [&] {
    return slurm().command(
        {"sh", "-c", "exec \"$1\" slurm wait \"$2\" >\"$3\"", "sh", muster, run.string(), said.string()},
        150);
  });
  slurm().stopController();
  EXPECT_TRUE(within(60, [&] {
    return readWhole(said).find("does not answer, retrying") != std::string::npos;
  })) << readWhole(said);
  EXPECT_TRUE(within(60, [&] { return ended(run).size() == 4; })) << "the nodes go on by themselves";
  slurm().startController();
  EXPECT_EQ(waiting.get().exitCode, 0) << readWhole(said);
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
}

}  // namespace
}  // namespace muster::testing
