// SPDX-License-Identifier: Apache-2.0
// `muster slurm submit` on a real Slurm: every node once, what is missing, what comes from outside.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "tests/slurm/slurm_run.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SlurmSubmit : public SlurmTest {};

TEST_F(SlurmSubmit, AcceptsFourNodesWithOneRecordEachAndOneFleetReport) {
  const fs::path run = newRun();
  const ProcessResult result = submit(quickPlan(), run, {"--simulate", healthy(), "--wait"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
  EXPECT_TRUE(fs::exists(run / "fleet" / "fleet.json"));
  EXPECT_TRUE(fs::exists(run / "fleet" / "fleet.html"));
  const ProcessResult status = slurm().muster({"status", run.string()});
  EXPECT_THAT(status.out, HasSubstr("4 nodes: 4 accepted\n"));
}

TEST_F(SlurmSubmit, CoversEveryNodeExactlyOnceInTwentyRepetitions) {
  for (int repetition = 0; repetition < 20; ++repetition) {
    const fs::path run = newRun();
    const ProcessResult result = submit(quickPlan(), run, {"--simulate", healthy(), "--wait"});
    ASSERT_EQ(result.exitCode, 0) << "repetition " << repetition << ": " << result.out << result.err;
    ASSERT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
    ASSERT_THAT(claimed(run), ElementsAre("node1", "node2", "node3", "node4"));
    int ran = 0;
    for (const auto& log : fs::directory_iterator(run / "logs"))
      ran += readWhole(log.path()).find("runs the plan") != std::string::npos ? 1 : 0;
    ASSERT_EQ(ran, 4) << "repetition " << repetition;
  }
}

TEST_F(SlurmSubmit, ReportsADrainedNodeAsMissingAtOnceAndLeavesItDrained) {
  slurm().set("node3", "DRAIN", "fan is broken");
  const fs::path run = newRun();
  const ProcessResult result = submit(quickPlan(), run, {"--simulate", healthy(), "--wait"});
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("missing: node3 (drained: fan is broken"));
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node4"));
  EXPECT_EQ(slurm().reason("node3"), "fan is broken");
  EXPECT_THAT(readWhole(run / "fleet" / "fleet.json"), HasSubstr("node3"));
}

TEST_F(SlurmSubmit, AsRootDoesNotFollowAnothersLink) {
  const TempDir his;
  const fs::path target = slurm().shared() / "roots";
  fs::create_directories(target);
  fs::create_symlink(target, his.path() / "link");
  ASSERT_EQ(lchown((his.path() / "link").c_str(), kOtherUser, kOtherUser), 0);
  const ProcessResult result =
      submit(quickPlan(), his.path() / "link" / "run", {"--simulate", healthy()}, "node1");
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr(fmt::format("the link to the output belongs to user {}", kOtherUser)));
  EXPECT_TRUE(fs::is_empty(target));
}

TEST_F(SlurmSubmit, FillsTheGapsThatOneNodeAtATimeLeaves) {
  // Each task meets the first node that is free, which is the same one again: the others are gaps.
  const fs::path run = newRun();
  const ProcessResult result =
      submit(quickPlan(), run, {"--simulate", healthy(), "--at-once", "1", "--wait"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
  EXPECT_THAT(readWhole(run / "jobs.jsonl"), HasSubstr("\"kind\":\"pinned\""));
}

class SlurmQuickstart : public SlurmTest {};

/// A folder with the shipped host profile as "shared-host", whose shares of the CPU's peak are a hundredth:
/// how much of this machine its other users leave us is not what is tested. All other limits stand as they
/// are.
fs::path sharedHostProfile(const fs::path& folder) {
  std::string text = readWhole(distDir() / "share" / "muster" / "plans" / "skus" / "host.toml");
  const auto replaceAll = [&](const std::string& from, const std::string& to) {
    int found = 0;
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()), ++found)
      text.replace(at, from.size(), to);
    return found;
  };
  EXPECT_EQ(replaceAll("name = \"host\"", "name = \"shared-host\""), 1);
  EXPECT_EQ(replaceAll("of_peak = \"30%\"", "of_peak = \"1%\""), 1) << "of f32 and f64";
  fs::create_directory(folder);
  std::ofstream(folder / "shared-host.toml") << text;
  return folder;
}

TEST_F(SlurmQuickstart, AcceptsFourNodesThatReallyWorkOneAfterTheOther) {
  const fs::path run = newRun();
  std::vector<std::string> more = {"--at-once", "1", "--wait", "--sku", "shared-host"};
  more.insert(more.end(), {"--skus", sharedHostProfile(slurm().shared() / "skus").string()});
  // The plan as it is but for its pace, which all four nodes of this one machine would have to wait for.
  for (const char* set :
       {"gemm.warmup=500ms", "gemm.min_time=500ms", "gemm.max_time=1s", "gemm-narrow.warmup=500ms",
        "gemm-narrow.min_time=500ms", "gemm-narrow.max_time=1s", "memory.warmup=200ms",
        "memory.min_time=300ms", "memory.max_time=500ms", "sustained.duration=2s", "pattern.bytes=64 MiB"})
    more.insert(more.end(), {"--set", set});
  const ProcessResult result =
      submit(distDir() / "share" / "muster" / "plans" / "quickstart.toml", run, more, "node[1-4]", 1400);
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  // Four nodes are two arrays here, each with a limit of its own: together they must keep to it as well.
  EXPECT_THAT(result.out, Not(HasSubstr("2 running")));
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
  EXPECT_TRUE(fs::exists(run / "fleet" / "fleet.html"));
}

TEST_F(SlurmSubmit, KeepsArraysBelowTheLargestSize) {
  // MaxArraySize is 4 here, so the highest index may be 3: four nodes are two arrays of three and one.
  const fs::path run = newRun();
  EXPECT_EQ(submit(quickPlan(), run, {"--simulate", healthy(), "--wait"}).exitCode, 0);
  const std::string jobs = readWhole(run / "jobs.jsonl");
  EXPECT_THAT(jobs, HasSubstr("\"kind\":\"array\",\"job\":"));
  EXPECT_THAT(jobs, HasSubstr("\"tasks\":3}"));
}

TEST_F(SlurmSubmit, NeverLetsSlurmRequeueATask) {
  const fs::path run = newRun();
  const ProcessResult result = slurm().muster(
      {"submit", waitingPlan(20).string(), "--nodes", "node[1-2]", "--out", run.string(), "--same-machine"},
      60, {{"SBATCH_REQUEUE", "1"}, {"SBATCH_PARTITION", "elsewhere"}});
  ASSERT_EQ(result.exitCode, 0) << result.out << result.err;
  const std::string jobs = slurm().command({"scontrol", "show", "job", "--oneliner"}).out;
  EXPECT_THAT(jobs, HasSubstr("Requeue=0"));
  EXPECT_THAT(jobs, Not(HasSubstr("Requeue=1")));
}

TEST_F(SlurmSubmit, ANodeWhosePowerWasCutIsMissingAndRunsNowhereElse) {
  const fs::path run = newRun();
  ASSERT_EQ(submit(waitingPlan(6), run).exitCode, 0);
  ASSERT_TRUE(within(60, [&] { return claimed(run).size() == 4; }));
  slurm().cutPower(2);
  const ProcessResult result = slurm().muster({"wait", run.string()});
  slurm().powerUp(2);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(ended(run), ElementsAre("node1", "node3", "node4"));
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, HasSubstr("node2                lost       job"));
  EXPECT_THAT(readWhole(run / "fleet" / "fleet.json"), HasSubstr("node2"));
}

TEST_F(SlurmSubmit, QuotesWhateverComesFromOutside) {
  const std::string name = "a.name_of:its-own@site+1=2/3";  // other characters are refused
  const fs::path run = slurm().shared() / "a run folder; touch pwned $(touch pwned) `touch pwned` #";
  const ProcessResult result =
      submit(quickPlan(), run, {"--simulate", healthy(), "--job-name", name, "--wait"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
  EXPECT_THAT(slurm().command({"squeue", "--noheader", "--states=all", "--format=%j"}).out,
              HasSubstr(name + "\n"));
  for (const fs::path& folder : {slurm().shared(), run, run / "logs"})
    EXPECT_FALSE(fs::exists(folder / "pwned")) << folder;
}

TEST_F(SlurmSubmit, RefusesWhatCannotBeSubmitted) {
  const auto refused = [](const ProcessResult& result, const std::string& why) {
    EXPECT_EQ(result.exitCode, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused(submit(quickPlan(), newRun(), {"--simulate", healthy()}, "node[1-3],nodo4"),
          "nodo4; did you mean \"node4\"?");
  refused(submit(quickPlan(), newRun(), {"--simulate", healthy()}, "node[1-"), "--nodes");
  refused(submit(quickPlan(), newRun(), {"--simulate", healthy()}, "../../etc"), "not a node name");
  refused(submit(quickPlan(), newRun(), {"--simulate", healthy(), "--partition", "mian"}), "mian");
  refused(submit(quickPlan(), newRun(), {"--simulate", healthy(), "--job-name", "two\nlines"}), "--job-name");
  for (const char* option : {"--account", "--reservation", "--qos", "--constraint", "--container-image"})
    refused(submit(quickPlan(), newRun(), {"--simulate", healthy(), option, "x\\' --uid=0 '", "--print"}),
            option);
  refused(submit(quickPlan(), slurm().shared() / "100%", {"--simulate", healthy()}), "'%'");
  refused(submit(quickPlan(), newRun(), {"--simulate", healthy(), "--set", "gemm.size=banana"}), "banana");
  EXPECT_THAT(slurm().command({"squeue", "--noheader"}).out, IsEmpty());
}

TEST_F(SlurmSubmit, RefusesAFolderThatAnotherUserOwnsOrCouldReplace) {
  const fs::path foreign = newRun(), above = newRun();
  for (const fs::path& folder : {foreign, above}) {
    fs::create_directory(folder);
    ASSERT_EQ(chown(folder.c_str(), kOtherUser, kOtherUser), 0);
  }
  const ProcessResult own = submit(quickPlan(), foreign, {"--simulate", healthy()});
  EXPECT_EQ(own.exitCode, 2) << own.out;
  EXPECT_THAT(own.err, HasSubstr("belongs to user 65534"));
  EXPECT_TRUE(fs::is_empty(foreign));
  const ProcessResult below = submit(quickPlan(), above / "run", {"--simulate", healthy()});
  EXPECT_EQ(below.exitCode, 2) << below.out;
  EXPECT_THAT(below.err, HasSubstr("belongs to user 65534"));
  EXPECT_THAT(slurm().command({"squeue", "--noheader"}).out, IsEmpty());
}

TEST_F(SlurmSubmit, WritesTheRealPathWhereOutIsALink) {
  const fs::path run = newRun(), link = newRun();
  fs::create_directory_symlink(slurm().shared(), link);
  const ProcessResult result =
      submit(quickPlan(), link / run.filename(), {"--simulate", healthy(), "--wait"}, "node1");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("run " + run.string() + ": "));
  EXPECT_THAT(readWhole(run / "scripts" / "node.sbatch"), Not(HasSubstr(link.string())));
}

TEST_F(SlurmSubmit, PrintsTheScriptsAndSubmitsNothing) {
  const fs::path run = newRun();
  const ProcessResult result =
      submit(quickPlan(), run, {"--simulate", healthy(), "--partition", "main", "--print"});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  for (const char* line :
       {"#SBATCH --exclusive\n", "#SBATCH --mem=0\n", "#SBATCH --no-requeue\n", "#SBATCH --partition=main\n"})
    EXPECT_THAT(result.out, HasSubstr(line));
  EXPECT_FALSE(fs::exists(run));
  EXPECT_THAT(slurm().command({"squeue", "--noheader"}).out, IsEmpty());
}

TEST_F(SlurmSubmit, RunsInsideAnApptainerImage) {
  // In place of the program that Debian 12 does not have: one that shows what it was asked for, then does it.
  const fs::path bin = slurm().shared() / "bin";
  fs::create_directories(bin);
  std::ofstream(bin / "apptainer")
      << "#!/bin/bash\nprintf 'in a container: %s\\n' \"$*\"\nwhile [[ $1 != */IMAGE.sif ]]; do shift; done\n"
         "shift\nexec \"$@\"\n";
  fs::permissions(bin / "apptainer", fs::perms(0755));
  const fs::path run = newRun();
  const fs::path image = bin / "IMAGE.sif";
  const std::string path = bin.string() + ":" + std::getenv("PATH");
  const ProcessResult result =
      slurm().muster({"submit", quickPlan().string(), "--nodes", "node[1-2]", "--out", run.string(),
                      "--simulate", healthy(), "--container-image", image.string(), "--container-muster",
                      (distDir() / "bin" / "muster").string(), "--container-mounts", "/a:/b", "--wait"},
                     120, {{"PATH", path}});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  std::string logs;
  for (const auto& log : fs::directory_iterator(run / "logs")) logs += readWhole(log.path());
  EXPECT_THAT(logs, HasSubstr(fmt::format("in a container: exec --bind {0}:{0} --bind /a:/b {1}",
                                          run.string(), image.string())));
}

/// Whoever can write to the folder in which somebody submits must not choose the image.
TEST_F(SlurmSubmit, TakesAReferenceForNoFileOfThisFolder) {
  const fs::path here = newRun();
  fs::create_directories(here / "registry.example/muster:1");
  fs::create_directories(here / "docker:/registry.example/muster");
  const auto imageOf = [&](const std::string& image, const std::string& runtime = "auto") {
    ProcessOptions options;
    options.folder = here;
    return runProcess({(distDir() / "bin/muster").string(), "slurm", "submit", quickPlan().string(),
                       "--nodes", "node[1-2]", "--out", newRun().string(), "--simulate", healthy(),
                       "--container-image", image, "--container-runtime", runtime, "--print"},
                      options);
  };
  EXPECT_THAT(imageOf("registry.example/muster:1").out,
              HasSubstr("--container-image=registry.example/muster:1"));
  EXPECT_THAT(imageOf("docker://registry.example/muster").out,
              HasSubstr("--container-image=docker://registry.example/muster"));
  EXPECT_THAT(imageOf("./registry.example/muster:1").out,
              HasSubstr((here / "registry.example/muster:1").string()));
  ASSERT_EQ(chown((here / "registry.example/muster:1").c_str(), kOtherUser, kOtherUser), 0);
  const ProcessResult foreign = imageOf("./registry.example/muster:1");
  EXPECT_EQ(foreign.exitCode, 2) << foreign.out;
  EXPECT_THAT(foreign.err, HasSubstr("the container image belongs to user"));
  // Apptainer takes everything without a scheme for a path, and whoever may write to a directory can put an
  // image there later.
  EXPECT_THAT(imageOf("docker://registry.example/muster", "apptainer").out,
              HasSubstr("docker://registry.example/muster"));
  EXPECT_THAT(imageOf("registry.example/muster:1", "apptainer").err,
              HasSubstr("the container image belongs to user"));
  EXPECT_THAT(imageOf("oci-archive:///shared/x.tar", "apptainer").err,
              HasSubstr("root cannot check whose an image of oci-archive is"));
  EXPECT_THAT(imageOf("later.sif").out, HasSubstr((here / "later.sif").string()));
  ASSERT_EQ(chown(here.c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_THAT(imageOf("later.sif").err, HasSubstr("the container image belongs to user"));
  EXPECT_THAT(imageOf("later", "apptainer").err, HasSubstr("the container image belongs to user"));
}

TEST_F(SlurmSubmit, RunsInsideAnImageByPyxis) {
  // Pyxis is a plugin of srun's. In its place: an srun that takes its options away, shows them and has the
  // real one do the rest, so that all other options are those of a real step.
  const fs::path bin = slurm().shared() / "pyxis";
  fs::create_directories(bin);
  std::ofstream(bin / "srun")
      << "#!/bin/bash\nrest=()\nfor word; do\n  case $word in --container-*|--no-container-*) echo "
         "\"pyxis: $word\" ;; *) rest+=(\"$word\") ;; esac\ndone\nexec /usr/bin/srun "
         "\"${rest[@]}\"\n";
  fs::permissions(bin / "srun", fs::perms(0755));
  const fs::path run = newRun();
  const ProcessResult result =
      slurm().muster({"submit", quickPlan().string(), "--nodes", "node[1-2]", "--out", run.string(),
                      "--simulate", healthy(), "--container-image", "registry#muster:1", "--container-muster",
                      (distDir() / "bin" / "muster").string(), "--container-mounts", "/a:/b:ro", "--wait"},
                     120, {{"PATH", bin.string() + ":" + std::getenv("PATH")}});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2"));
  std::string logs;
  for (const auto& log : fs::directory_iterator(run / "logs")) logs += readWhole(log.path());
  EXPECT_THAT(logs, HasSubstr("pyxis: --container-image=registry#muster:1\n"));
  EXPECT_THAT(logs, HasSubstr(fmt::format("pyxis: --container-mounts={0}:{0},/a:/b:ro\n", run.string())));
  EXPECT_THAT(logs, HasSubstr("pyxis: --no-container-entrypoint\n"));
}

}  // namespace
}  // namespace muster::testing
