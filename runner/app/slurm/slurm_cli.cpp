// SPDX-License-Identifier: Apache-2.0
// The options of `muster slurm`.
#include <CLI/CLI.hpp>

#include "runner/app/slurm/slurm_options.h"
#include "runner/slurm/room.h"

namespace muster {
namespace {

constexpr const char* kSubmitExamples = R"(
Submits one array job with a task for each node, each of which runs the whole plan on its node, and a fleet job that
puts the records together. The run folder must be on a file system that all nodes share. Nodes that are down or
drained are reported as missing at once; nodes that no task met get a job of their own.

Examples:
  muster slurm submit plans/node-full.toml --nodes 'gpu[001-128]' --partition batch --out /shared/runs/may --wait
  muster slurm submit plans/cluster.toml --nodes all --partition batch --print
  muster slurm submit plans/node-full.toml --nodes all --container-image /shared/muster.sif
  muster slurm status /shared/runs/may
  muster slurm resume /shared/runs/may --wait
  muster slurm drain /shared/runs/may --dry-run)";

void addUnconfirmed(CLI::App* command, SlurmOptions& o) {
  command->add_flag("--unconfirmed", o.unconfirmed,
                    "believe the run folder about jobs that Slurm has forgotten (default: what Slurm cannot "
                    "confirm does not count)");
}

void addMostJobs(CLI::App* command, SlurmOptions& o) {
  command
      ->add_option("--most-jobs", o.jobs.mostJobs,
                   "at most so many jobs in the queue, where an account or QOS has a limit (default: what "
                   "MaxJobCount leaves)")
      ->check(CLI::Range(slurm::kLeastJobs, 1000000));
}

void addJobOptions(CLI::App* submit, SlurmOptions& o) {
  slurm::JobSettings& jobs = o.jobs;
  submit->add_option("--partition", jobs.partition, "partition to submit to");
  submit->add_option("--account", jobs.account, "account to charge");
  submit->add_option("--reservation", jobs.reservation, "reservation to run in");
  submit->add_option("--qos", jobs.qos, "quality of service");
  submit->add_option("--constraint", jobs.constraint, "features that nodes must have");
  submit->add_option("--job-name", jobs.name, "name of all jobs (default: muster-PLAN)")->type_name("NAME");
  submit
      ->add_option("--gpus-per-node", jobs.gpus,
                   "GPUs to ask for (default: what Slurm says that the nodes have)")
      ->check(CLI::Range(1, 1024));
  submit->add_option("--time", o.time, "time limit of a node (default: what the plan's timeouts come to)")
      ->type_name("DURATION");
  submit->add_option("--gap-wait", o.gapWait, "how long a job that is pinned to its node may wait for it")
      ->type_name("DURATION")
      ->capture_default_str();
  submit->add_option("--at-once", jobs.atOnce, "at most so many nodes at the same time (default: all)")
      ->check(CLI::Range(1, 65536));
  addMostJobs(submit, o);
  submit->add_option("--container-image", jobs.image, "run inside this image");
  submit
      ->add_option("--container-runtime", o.runtime, "auto: apptainer for .sif files and folders, else pyxis")
      ->check(CLI::IsMember({"auto", "pyxis", "apptainer", "singularity"}))
      ->capture_default_str();
  submit->add_option("--container-mounts", jobs.mounts, "FROM:TO[:FLAGS]; the run folder is always mounted")
      ->delimiter(',')
      ->allow_extra_args(false);
  submit->add_option("--container-muster", jobs.containerMuster, "the command inside the image")
      ->capture_default_str();
}

void addSubmit(CLI::App* slurm, SlurmOptions& o) {
  CLI::App* submit = slurm->add_subcommand("submit", "run a plan on many nodes and report on the fleet");
  submit->add_option("plan", o.plan, "plan file (.toml or .lua)")->required();
  submit->add_option("--nodes", o.nodes, "every node that must have a record: gpu[001-128],gpu200 or all")
      ->required()
      ->type_name("LIST");
  submit->add_option("--out", o.out, "run folder, shared by all nodes (default: ./muster-slurm-PLAN-TIME)")
      ->type_name("FOLDER");
  addJobOptions(submit, o);
  submit->add_option("--set", o.sets, "override: STAGE.PARAM=VALUE, STAGE.timeout=VALUE, sku=NAME ...")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  submit->add_option("--sku", o.sku, "profile to judge by, in place of the plan's");
  submit->add_option("--skus", o.skuFolders, "folder with more SKU profiles")
      ->type_name("FOLDER")
      ->allow_extra_args(false);
  submit->add_option("--plugins", o.pluginFolders, "folder with more plugins")
      ->type_name("FOLDER")
      ->allow_extra_args(false);
  submit->add_option("--simulate", o.scenario, "run on the simulated devices of a scenario")
      ->type_name("SCENARIO");
  submit->add_option("--seed", o.seed, "seed of all generated data")->capture_default_str();
  submit->add_flag("--strict", o.strict, "a measurement that no expectation covers blocks acceptance");
  submit->add_option("--waivers", o.waivers, "known failures that somebody answers for until a date")
      ->type_name("FILE");
  submit->add_option("--topology", o.topology, "who shares a switch or rack, for the fleet report")
      ->type_name("FILE");
  addNodeSkus(submit, o.nodeSkus);
  addSameMachine(submit, o.sameMachine);
  addUnconfirmed(submit, o);
  submit->add_flag("--reject-outliers", o.rejectOutliers, "the fleet rejects nodes that their peers name");
  submit->add_flag("--print", o.print,
                   "show the scripts and how they would be submitted, and submit nothing");
  submit->add_flag("--wait", o.wait, "wait for the fleet report and end with its exit code");
  submit->footer(kSubmitExamples);
}

CLI::App* addOnRun(CLI::App* slurm, SlurmOptions& o, const char* name, const char* what) {
  CLI::App* command = slurm->add_subcommand(name, what);
  command->add_option("run", o.run, "run folder")->required();
  return command;
}

void addDryRun(CLI::App* command, SlurmOptions& o) {
  auto* group = command->add_option_group("mode", "one of both");
  group->add_flag("--dry-run", o.dryRun, "say what would be done, and do nothing");
  group->add_flag("--apply", o.apply, "do it");
  group->require_option(1);
}

}  // namespace

CLI::App* addSlurm(CLI::App& app, SlurmOptions& o) {
  CLI::App* slurm = app.add_subcommand("slurm", "run a plan on many nodes through Slurm");
  slurm->require_subcommand(1);
  addSubmit(slurm, o);
  addOnRun(slurm, o, "status", "how far every node of a run is");
  CLI::App* resume =
      addOnRun(slurm, o, "resume", "run the plan on the nodes that are missing or could not be measured");
  resume->add_flag("--rejected", o.rejectedToo,
                   "also on rejected ones, after a repair; what they had is kept in attempts/");
  addMostJobs(resume, o);
  resume->add_flag("--wait", o.wait, "wait for the fleet report and end with its exit code");
  addOnRun(slurm, o, "wait", "wait for the fleet report and end with its exit code");
  CLI::App* drain =
      addOnRun(slurm, o, "drain", "drain rejected nodes, with a reason that begins with muster:");
  addUnconfirmed(drain, o);
  addDryRun(drain, o);
  addDryRun(addOnRun(slurm, o, "undrain", "give back what this run has drained, and nothing else"), o);
  CLI::App* clean = slurm->add_subcommand("clean", "remove old runs");
  clean->add_option("folder", o.run, "folder that holds run folders")->required();
  clean->add_option("--older-than", o.olderThan, "age since anything changed, e.g. 30d")
      ->required()
      ->type_name("DURATION");
  addDryRun(clean, o);
  CLI::App* hooks = slurm->add_subcommand(
      "hooks",
      "write a HealthCheckProgram, a Prolog and an Epilog that run a short plan within Slurm's limits");
  hooks->add_option("plan", o.plan, "short plan, where nodes see it too")->required();
  hooks->add_option("--out", o.out, "folder for the scripts")->required()->type_name("FOLDER");
  hooks->add_option("--time", o.hookTime, "end the plan after so long; at most 50s for a HealthCheckProgram")
      ->type_name("DURATION")
      ->capture_default_str();
  hooks->add_option("--keep", o.hookFolder, "folder on each node for the last two results")
      ->capture_default_str();
  addOnRun(slurm, o, "fill", "submit what is missing in this round; the fleet job calls it")->group("");
  return slurm;
}

namespace {

Result<int> dispatch(const CLI::App& slurm, SlurmOptions& o) {
  const std::string name = slurm.get_subcommands().front()->get_name();
  if (name == "submit") return slurmSubmit(o);
  if (name == "status") return slurmStatus(o);
  if (name == "resume") return slurmResume(o);
  if (name == "drain") return slurmDrain(o);
  if (name == "undrain") return slurmUndrain(o);
  if (name == "clean") return slurmClean(o);
  if (name == "hooks") return slurmHooks(o);
  if (name == "fill") return slurmFill(o);
  MUSTER_TRY(const slurm::RunStore run, slurm::RunStore::open(o.run));
  return slurmWait(run);
}

}  // namespace

Result<int> slurmCommand(const CLI::App& slurm, SlurmOptions& o) {
  Result<int> result = dispatch(slurm, o);
  if (result.ok() || result.error().code != ErrorCode::kTimeout) return result;
  // A controller that does not answer is no fault of Muster's: nothing was done (exit 2).
  return Error{ErrorCode::kUsage, result.error().message, result.error().where};
}

}  // namespace muster
