// SPDX-License-Identifier: Apache-2.0
// The options of `muster slurm`.
#include <CLI/CLI.hpp>

#include "runner/app/slurm/slurm_options.h"
#include "runner/slurm/room.h"

namespace muster {
namespace {

constexpr const char* kSubmitExamples = R"(
Submits one array job with one task per node, which runs the plan on that node, and a fleet job, which merges the
records. The run directory must be on a file system shared by all nodes. Nodes that are down or drained are reported at
once; nodes that got no array task get a job of their own.

Examples:
  muster slurm submit plans/node-full.toml --nodes 'gpu[001-128]' --partition batch --out /shared/runs/may --wait
  muster slurm submit plans/cluster.toml --nodes all --partition batch --print
  muster slurm submit plans/node-full.toml --nodes all --container-image /shared/muster.sif
  muster slurm status /shared/runs/may
  muster slurm resume /shared/runs/may --wait
  muster slurm drain /shared/runs/may --dry-run)";

void addUnconfirmed(CLI::App* command, SlurmOptions& o) {
  command->add_flag(
      "--unconfirmed", o.unconfirmed,
      "trust the run directory for jobs Slurm no longer knows (default: unconfirmed results do not count)");
}

void addMostJobs(CLI::App* command, SlurmOptions& o) {
  command
      ->add_option("--most-jobs", o.jobs.mostJobs,
                   "maximum jobs in the queue, if an account or QOS has a limit (default: from MaxJobCount)")
      ->check(CLI::Range(slurm::kLeastJobs, 1000000));
}

void addJobOptions(CLI::App* submit, SlurmOptions& o) {
  slurm::JobSettings& jobs = o.jobs;
  submit->add_option("--partition", jobs.partition, "partition to submit to");
  submit->add_option("--account", jobs.account, "account to charge");
  submit->add_option("--reservation", jobs.reservation, "reservation to run in");
  submit->add_option("--qos", jobs.qos, "quality of service");
  submit->add_option("--constraint", jobs.constraint, "required node features");
  submit->add_option("--job-name", jobs.name, "name of all jobs (default: muster-PLAN)")->type_name("NAME");
  submit
      ->add_option("--gpus-per-node", jobs.gpus,
                   "GPUs to request per node (default: all GPUs Slurm lists for the nodes)")
      ->check(CLI::Range(1, 1024));
  submit->add_option("--time", o.time, "time limit per node (default: sum of the plan's timeouts)")
      ->type_name("DURATION");
  submit->add_option("--gap-wait", o.gapWait, "how long a job for one specific node waits for that node")
      ->type_name("DURATION")
      ->capture_default_str();
  submit->add_option("--at-once", jobs.atOnce, "maximum nodes tested concurrently (default: all)")
      ->check(CLI::Range(1, 65536));
  addMostJobs(submit, o);
  submit->add_option("--container-image", jobs.image, "run in this container image");
  submit
      ->add_option("--container-runtime", o.runtime,
                   "container runtime; auto: apptainer for .sif files and directories (named from /, ./ or "
                   "../), otherwise pyxis")
      ->check(CLI::IsMember({"auto", "pyxis", "apptainer", "singularity"}))
      ->capture_default_str();
  submit
      ->add_option("--container-mounts", jobs.mounts,
                   "additional mounts FROM:TO[:FLAGS]; the run directory is always mounted")
      ->delimiter(',')
      ->allow_extra_args(false);
  submit->add_option("--container-muster", jobs.containerMuster, "path of muster inside the image")
      ->capture_default_str();
}

void addSubmit(CLI::App* slurm, SlurmOptions& o) {
  CLI::App* submit = slurm->add_subcommand("submit", "run a plan on many nodes and write a fleet report");
  submit->add_option("--nodes", o.nodes, "nodes to test: gpu[001-128],gpu200 or all")
      ->required()
      ->type_name("LIST");
  submit->add_option("--out", o.out, "run directory, shared by all nodes (default: ./muster-slurm-PLAN-TIME)")
      ->type_name("DIR");
  addJobOptions(submit, o);
  addSubmitInput(submit, o);
  addUnconfirmed(submit, o);
  submit->add_flag("--print", o.print, "print the job scripts and submit commands; submits nothing");
  submit->add_flag("--wait", o.wait, "wait for the fleet report and return its exit code");
  submit->footer(kSubmitExamples);
}

CLI::App* addOnRun(CLI::App* slurm, SlurmOptions& o, const char* name, const char* what) {
  CLI::App* command = slurm->add_subcommand(name, what);
  command->add_option("run", o.run, "run directory")->required();
  return command;
}

void addDryRun(CLI::App* command, SlurmOptions& o) {
  auto* group = command->add_option_group("mode", "one is required");
  group->add_flag("--dry-run", o.dryRun, "print the actions; changes nothing");
  group->add_flag("--apply", o.apply, "perform the actions");
  group->require_option(1);
}

}  // namespace

CLI::App* addSlurm(CLI::App& app, SlurmOptions& o) {
  CLI::App* slurm = app.add_subcommand("slurm", "run a plan on many nodes through Slurm");
  slurm->require_subcommand(1);
  addSubmit(slurm, o);
  addOnRun(slurm, o, "status", "show each node's progress");
  CLI::App* resume = addOnRun(slurm, o, "resume", "rerun the plan on nodes that are missing or incomplete");
  resume->add_flag("--rejected", o.rejectedToo,
                   "also rerun rejected nodes, after a repair; old results are kept in attempts/");
  addMostJobs(resume, o);
  resume->add_flag("--wait", o.wait, "wait for the fleet report and return its exit code");
  addOnRun(slurm, o, "wait", "wait for the fleet report and return its exit code");
  CLI::App* drain =
      addOnRun(slurm, o, "drain", "drain rejected nodes, with a reason that starts with muster:");
  addUnconfirmed(drain, o);
  addDryRun(drain, o);
  addDryRun(addOnRun(slurm, o, "undrain", "undrain only the nodes this run drained"), o);
  CLI::App* clean = slurm->add_subcommand("clean", "remove old runs");
  clean->add_option("directory", o.run, "parent of run directories")->required();
  clean->add_option("--older-than", o.olderThan, "time since the last change, e.g. 30d")
      ->required()
      ->type_name("DURATION");
  addDryRun(clean, o);
  CLI::App* hooks = slurm->add_subcommand(
      "hooks",
      "write HealthCheckProgram, Prolog and Epilog scripts that run a short plan within Slurm's time limits");
  hooks->add_option("plan", o.plan, "short plan, on a path that exists on all nodes")->required();
  hooks->add_option("--out", o.out, "directory for the scripts")->required()->type_name("DIR");
  hooks->add_option("--time", o.hookTime, "time limit of the plan; at most 50s for a HealthCheckProgram")
      ->type_name("DURATION")
      ->capture_default_str();
  hooks->add_option("--keep", o.hookFolder, "directory on each node for the last two results")
      ->capture_default_str();
  addOnRun(slurm, o, "fill", "submit jobs for missing nodes; called by the fleet job")->group("");
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
  // An unreachable controller is not an internal error: nothing was done (exit 2).
  return Error{ErrorCode::kUsage, result.error().message, result.error().where};
}

}  // namespace muster
