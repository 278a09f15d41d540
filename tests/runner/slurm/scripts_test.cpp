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

/// What `bash -n` and shellcheck have against a script. SC2054 takes the commas of "--scope device,node" for
/// a mistake. breaks.
std::string complaints(const std::string& text) {
  const TempDir folder;
  const std::string file = folder.write("script", text).string();
  const auto parsed = runProcess({"bash", "-n", file});
  const auto checked =
      runProcess({"shellcheck", "--shell=bash", "--severity=warning", "--exclude=SC2054", file});
  EXPECT_GE(checked.exitCode, 0) << "shellcheck did not run";
  EXPECT_LE(checked.exitCode, 1) << "shellcheck did not run: " << checked.err;
  return parsed.err + checked.out;
}

TEST(Scripts, TellTheRunItsTimeLimit) {
  Submission submission = sample();
  submission.jobs.minutes = 90;
  for (const char* name : {"node.sbatch", "cluster.sbatch"}) {
    const std::string text = script(submission, name);
    EXPECT_THAT(text, HasSubstr("#SBATCH --time=90\n")) << name;
    EXPECT_THAT(text, HasSubstr("export MUSTER_JOB_MINUTES=90\n")) << name;
  }
}

/// A daemon or CI agent may have none: then every local user could rewrite exit codes.
TEST(Scripts, WriteNothingThatOthersMayWrite) {
  const std::string least = geteuid() == 0 ? "0022" : "0002";
  for (const char* name : {"node.sbatch", "cluster.sbatch", "step.sh", "fleet.sbatch"})
    for (const auto& [mask, kept] : {std::pair<std::string, std::string>{"000", least}, {"077", "0077"}}) {
      const std::string text = script(sample(), name);
      const std::string begin = text.substr(0, text.find("set -uo"));
      EXPECT_EQ(runProcess({"bash", "-c", "umask " + mask + "\n" + begin + "umask"}).out, kept + "\n")
          << name;
    }
}

TEST(Scripts, AreSoundShellWhateverTheValuesAre) {
  Submission submission = sample();
  submission.clusterStages = true;
  JobSettings& jobs = submission.jobs;
  jobs.muster = kHostile;
  jobs.image = "docker://x@nvcr.io#a/b:1 (2)~";
  jobs.constraint = "[a|b]&c*2!(d)";
  jobs.gpus = 8;
  jobs.nvidia = true;
  submission.options = {"--set", kHostile};
  for (const char* runtime : {"none", "pyxis", "apptainer", "singularity"})
    for (const char* scenario : {"", "scenario.toml"}) {
      jobs.runtime = runtime;
      submission.scenarioFile = scenario;
      const auto all = renderScripts(
          submission, runtime == std::string("none") ? "/shared/a $(id) `id` *?~ #" : "/shared/$(id)x",
          sourceDir() / "templates");
      ASSERT_TRUE(all.ok()) << all.error().text();
      for (const Script& one : *all) {
        EXPECT_EQ(complaints(one.text), "") << runtime << " " << one.name << ":\n" << one.text;
        EXPECT_THAT(one.text, Not(HasSubstr("{{")));
      }
    }
}

TEST(Scripts, HooksAreSoundShellWhateverTheValuesAre) {
  for (const char* kind : {"health_check", "prolog", "epilog"})
    for (const char* configuration : {"", kHostile}) {
      const auto text = renderHook(sourceDir() / "templates",
                                   {kind, kHostile, kHostile, kHostile, "/opt/slurm/bin", configuration, 45});
      ASSERT_TRUE(text.ok()) << text.error().text();
      EXPECT_EQ(complaints(*text), "") << *text;
      EXPECT_THAT(*text, Not(HasSubstr("{{")));
      EXPECT_EQ(text->find("SLURM_CONF") != std::string::npos, *configuration != '\0');
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
      "--container-image=registry/muster:1 --container-mounts=/shared/run:/shared/run,/data:/data "
      "--no-container-entrypoint";
  EXPECT_THAT(script(submission, "node.sbatch"), HasSubstr(container + " muster )"));
  EXPECT_THAT(script(submission, "cluster.sbatch"), HasSubstr(container));
  EXPECT_THAT(script(submission, "step.sh"), HasSubstr("launch=(muster )"));
  for (const std::string runtime : {"apptainer", "singularity"}) {
    submission.jobs.runtime = runtime;
    submission.jobs.nvidia = false;
    const std::string start =
        "launch=(" + runtime + " exec --bind /shared/run:/shared/run --bind /data:/data ";
    EXPECT_THAT(script(submission, "node.sbatch"), HasSubstr(start + "registry/muster:1 muster )"));
    submission.jobs.nvidia = true;  // whatever Slurm knows of the node's GPUs
    EXPECT_THAT(script(submission, "step.sh"), HasSubstr(start + "--nv registry/muster:1 muster )"));
    EXPECT_THAT(script(submission, "cluster.sbatch"), Not(HasSubstr("--container-image")));
  }
}

TEST(Scripts, RefuseMountsThatARuntimeCannotBeTold) {
  const auto refused = [](const char* runtime, const char* folder, const char* mount) {
    Submission submission = sample();
    submission.jobs.runtime = runtime;
    submission.jobs.image = "image.sif";
    submission.jobs.mounts = {mount};
    const auto all = renderScripts(submission, folder, sourceDir() / "templates");
    return all.ok() ? std::string() : all.error().where;
  };
  EXPECT_EQ(refused("apptainer", "/shared/my run", "/a b:/b:ro"), "");
  EXPECT_EQ(refused("pyxis", "/shared/my run", "/a:/b"), "--out")
      << "Enroot's table has blanks between its columns";
  EXPECT_EQ(refused("pyxis", "/shared/run", "/a b:/b"), "--container-mounts");
  EXPECT_EQ(refused("pyxis", "/shared/run", "/a:/b:ro+rprivate"), "");
  EXPECT_EQ(refused("apptainer", "/shared/a:b", "/a:/b"), "--out");
  EXPECT_EQ(refused("apptainer", "/shared/a,b", "/a:/b"), "--out");
  for (const char* mount : {"", "/a", ":/b", "/a:", "/a:/b:ro:x"})
    EXPECT_EQ(refused("apptainer", "/shared/run", mount), "--container-mounts") << mount;
  EXPECT_EQ(refused("none", "/shared/a:b, c", ""), "");
}

/// In front of a value that Slurm reads: each of these has ended a value and begun an option of its own.
TEST(Scripts, RefuseWhatCouldAddAnOption) {
  const std::pair<const char*, std::string JobSettings::*> fields[] = {
      {"--job-name", &JobSettings::name},
      {"--partition", &JobSettings::partition},
      {"--account", &JobSettings::account},
      {"--reservation", &JobSettings::reservation},
      {"--qos", &JobSettings::qos},
      {"--constraint", &JobSettings::constraint},
      {"--container-image", &JobSettings::image},
      {"--container-muster", &JobSettings::containerMuster}};
  for (const auto& [option, field] : fields)
    for (const char* value : {"a\n#SBATCH --wrap=x", "a\\", "a\\' --uid=0 '", "a' --uid=0", "a\" --uid=0",
                              "a\r", "a\t--uid=0", "a;id", "$(id)", "`id`", "a\x7f", "\xc2\xa0"}) {
      Submission submission = sample();
      submission.jobs.*field = value;
      const auto all = renderScripts(submission, "/shared/run", sourceDir() / "templates");
      ASSERT_FALSE(all.ok()) << option << " " << value;
      EXPECT_EQ(all.error().code, ErrorCode::kUsage);
      EXPECT_EQ(all.error().where, option);
    }
  for (const char* folder : {"/shared/a\\", "/shared/a'b", "/shared/\"a", "/shared/%j", "/shared/a\nb"}) {
    const auto all = renderScripts(sample(), folder, sourceDir() / "templates");
    EXPECT_TRUE(!all.ok() && all.error().where == "--out") << folder;
  }
}

}  // namespace
}  // namespace muster::slurm
