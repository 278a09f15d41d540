// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/scripts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster::slurm {
namespace {

using muster::testing::runProcess;
using muster::testing::sourceDir;
using muster::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile = "x'; touch /nowhere; $(id) `id` \\ \"q\" *?~ #";

Submission sample() {
  Submission submission;
  submission.id = "plan-1";
  submission.planFile = "plan.toml";
  submission.nodes = {"n1", "n2"};
  submission.jobs.name = "muster-plan";
  submission.jobs.muster = "/opt/muster/bin/muster";
  submission.jobs.runtime = "none";
  return submission;
}

std::string script(const Submission& submission, const std::string& name) {
  const auto all = renderScripts(submission, "/shared/run", sourceDir() / "templates");
  EXPECT_TRUE(all.ok()) << all.error().text();
  for (const Script& one : *all)
    if (one.name == name) return one.text;
  ADD_FAILURE() << "no script " << name;
  return "";
}

TEST(ShellQuote, GivesTheShellExactlyTheText) {
  for (const std::string text : {"", "plain", "two words", "it's", kHostile, "-n", "a=b", "\xff\xfe"}) {
    const auto result = runProcess({"bash", "-c", "printf '%s|' " + shellQuote(text)});
    EXPECT_EQ(result.out, text + "|");
  }
}

TEST(Scripts, AreSoundShellWhateverTheValuesAre) {
  Submission submission = sample();
  submission.clusterStages = true;
  JobSettings& jobs = submission.jobs;
  jobs.name = jobs.partition = jobs.account = jobs.reservation = jobs.qos = jobs.constraint = jobs.image =
      kHostile;
  jobs.mounts = {kHostile};
  jobs.gpus = 8;
  submission.options = {"--set", kHostile};
  for (const char* runtime : {"none", "pyxis", "apptainer"})
    for (const char* scenario : {"", "scenario.toml"}) {
      jobs.runtime = runtime;
      submission.scenarioFile = scenario;
      const auto all =
          renderScripts(submission, std::string("/shared/") + kHostile, sourceDir() / "templates");
      ASSERT_TRUE(all.ok()) << all.error().text();
      for (const Script& one : *all) {
        const TempDir folder;
        const auto checked = runProcess({"bash", "-n", folder.write("script", one.text).string()});
        EXPECT_EQ(checked.exitCode, 0) << one.name << ": " << checked.err << one.text;
        EXPECT_THAT(one.text, Not(HasSubstr("{{")));
      }
    }
}

TEST(Scripts, AskForAWholeNodeAndNoRequeue) {
  Submission submission = sample();
  submission.jobs.gpus = 8;
  submission.jobs.minutes = 45;
  const std::string text = script(submission, "node.sbatch");
  for (const char* line :
       {"--nodes=1", "--exclusive", "--mem=0", "--no-requeue", "--gpus-per-node=8", "--time=45"})
    EXPECT_THAT(text, HasSubstr(std::string("#SBATCH ") + line + "\n"));
  EXPECT_THAT(text, Not(HasSubstr("--partition")));
  EXPECT_THAT(script(submission, "cluster.sbatch"), HasSubstr("#SBATCH --no-kill\n"));
}

TEST(Scripts, SplitTheScopesOnlyWhereThePlanHasBoth) {
  Submission submission = sample();
  EXPECT_THAT(script(submission, "node.sbatch"), Not(HasSubstr("--scope")));
  submission.clusterStages = true;
  EXPECT_THAT(script(submission, "node.sbatch"), HasSubstr("--scope device,node"));
  EXPECT_THAT(script(submission, "step.sh"), HasSubstr("--scope cluster"));
}

TEST(Scripts, StartMusterInsideTheContainer) {
  Submission submission = sample();
  submission.jobs.image = "registry/muster:1";
  submission.jobs.mounts = {"/data:/data"};
  submission.jobs.runtime = "pyxis";
  submission.clusterStages = true;
  const std::string container =
      "--container-image=registry/muster:1 --container-mounts=/shared/run:/shared/run,/data:/data";
  EXPECT_THAT(script(submission, "node.sbatch"), HasSubstr(container + " muster )"));
  EXPECT_THAT(script(submission, "cluster.sbatch"), HasSubstr(container));
  EXPECT_THAT(script(submission, "step.sh"), HasSubstr("launch=(muster )"));
  submission.jobs.runtime = "apptainer";
  submission.jobs.gpus = 8;
  EXPECT_THAT(script(submission, "node.sbatch"),
              HasSubstr("launch=(apptainer exec --bind /shared/run:/shared/run --bind /data:/data --nv "
                        "registry/muster:1 muster )"));
  EXPECT_THAT(script(submission, "cluster.sbatch"), Not(HasSubstr("--container-image")));
}

TEST(Scripts, RefuseLineBreaksInAnyValue) {
  Submission submission = sample();
  submission.jobs.account = "a\n#SBATCH --wrap=x";
  const auto all = renderScripts(submission, "/shared/run", sourceDir() / "templates");
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().code, ErrorCode::kUsage);
  EXPECT_EQ(all.error().where, "--account");
}

}  // namespace
}  // namespace muster::slurm
