// SPDX-License-Identifier: Apache-2.0
// `muster slurm submit`: from a plan and nodes to jobs.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "runner/app/slurm/slurm_options.h"
#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/inputs/toml_input.h"
#include "runner/record/record_mac.h"
#include "runner/slurm/node_names.h"
#include "runner/slurm/room.h"
#include "runner/slurm/rounds.h"
#include "runner/slurm/scripts.h"
#include "runner/system/files.h"
#include "runner/system/secret.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr const char* kWaivers = "waivers.toml";
constexpr const char* kTopology = "topology.conf";

/// `known` is empty where there is no Slurm to ask (--print).
Result<std::vector<std::string>> askedNodes(const std::string& list, const slurm::Nodes& known) {
  if (list != "all") return slurm::nodeNames(list).context("--nodes");
  std::vector<std::string> names;
  for (const auto& [name, node] : known) names.push_back(name);
  return names;
}

/// How many GPUs to ask for where the user did not say: a task that asks for none may be shown none.
Result<int> gpusOf(const std::vector<std::string>& nodes, const slurm::Nodes& known) {
  std::set<int> counts;
  for (const std::string& name : nodes)
    if (const auto node = known.find(name); node != known.end()) counts.insert(node->second.gpus);
  if (counts.size() == 1) return *counts.begin();
  std::vector<std::string> texts;
  texts.reserve(counts.size());
  for (const int count : counts) texts.push_back(std::to_string(count));
  return Error{ErrorCode::kUsage,
               fmt::format("these nodes have different numbers of GPUs in Slurm ({}); set --gpus-per-node, "
                           "or submit them separately",
                           join(texts, ", ")),
               "--nodes"};
}

/// "oci-archive" of "oci-archive:/shared/x.tar"; empty for paths.
std::string transportOf(const std::string& image) {
  const size_t colon = image.find(':');
  if (colon == std::string::npos) return "";
  const std::string word = image.substr(0, colon);
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos ? word : "";
}

/// Whether Apptainer fetches the image from a registry.
bool isRemote(const std::string& image) {
  static const std::set<std::string> kRegistries = {"docker", "oras", "library", "shub", "https"};
  const std::string transport = transportOf(image);
  return kRegistries.count(transport) > 0 && image.compare(transport.size(), 3, "://") == 0;
}

Status chooseRuntime(SlurmOptions& o) {
  slurm::JobSettings& jobs = o.jobs;
  jobs.runtime = "none";
  if (jobs.image.empty()) {
    if (o.runtime == "auto" && jobs.mounts.empty()) return {};
    return Error{ErrorCode::kUsage, "--container-runtime and --container-mounts need --container-image", ""};
  }
  // "registry/name:tag" is a reference, whatever folder of that name somebody left here. Only Apptainer and
  // Singularity take what has no scheme for a path.
  const std::string& text = jobs.image;
  const bool marked = text.starts_with("/") || text.starts_with("./") || text.starts_with("../") ||
                      text.ends_with(".sif") || text.ends_with(".sqsh");
  std::error_code error;
  const fs::path image(text);
  const bool file = marked && (image.extension() == ".sif" || fs::is_directory(image, error));
  jobs.runtime = o.runtime != "auto" ? o.runtime : file ? "apptainer" : "pyxis";
  if (!marked && (jobs.runtime == "pyxis" || isRemote(text))) return {};
  if (const std::string transport = transportOf(text); !marked && !transport.empty()) {
    if (geteuid() != 0) return {};
    return Error{
        ErrorCode::kUsage,
        fmt::format("root cannot check whose an image of {} is; name a .sif file or a directory", transport),
        "--container-image"};
  }
  // A relative path would be looked up where the job starts. The image may exist on the nodes only.
  jobs.image = fs::absolute(image).lexically_normal().string();
  if (geteuid() != 0) return {};  // who names a colleague's image trusts it
  MUSTER_TRY(const fs::path trusted, trustedTarget(image, "container image", Above::kAll));
  jobs.image = trusted.string();
  return {};
}

/// Fills all that `submission.id` and the run folder `out` do not depend on.
Status describe(SlurmOptions& o, const Plan& plan, const slurm::Nodes& known, const fs::path& out,
                slurm::Submission& submission) {
  submission.created = systemClock().wallUnix();
  submission.planName = plan.name;
  submission.planFile = inputName(o.plan, "plan" + o.plan.extension().string());
  submission.planSha256 = plan.sha256;
  if (!o.scenario.empty()) submission.scenarioFile = inputName(o.scenario, "scenario.toml");
  MUSTER_TRY(submission.nodes, askedNodes(o.nodes, known));
  submission.options = runOptions(o);
  submission.recordKeys = true;
  submission.fleetOptions = {"--fleet-id", submission.id};
  submission.options.insert(submission.options.end(), {"--fleet-id", submission.id});
  const auto addFile = [&](std::vector<std::string>& to, const char* option, const char* name) {
    to.insert(to.end(), {option, (out / "inputs" / name).string()});
  };
  if (!o.waivers.empty()) {
    addFile(submission.options, "--waivers", kWaivers);
    addFile(submission.fleetOptions, "--waivers", kWaivers);
  }
  if (!o.topology.empty()) addFile(submission.fleetOptions, "--topology", kTopology);
  for (const std::string& sku : o.nodeSkus)
    submission.fleetOptions.insert(submission.fleetOptions.end(), {"--node-sku", sku});
  if (o.sameMachine) submission.fleetOptions.push_back("--same-machine");
  if (o.unconfirmed) submission.fleetOptions.push_back("--unconfirmed");
  if (o.rejectOutliers) submission.fleetOptions.push_back("--reject-outliers");
  const auto inCluster = std::count_if(plan.stages.begin(), plan.stages.end(),
                                       [](const Stage& stage) { return stage.scope == Scope::kCluster; });
  submission.clusterStages = inCluster > 0;
  submission.nodeStages = static_cast<size_t>(inCluster) < plan.stages.size();
  slurm::JobSettings& jobs = o.jobs;
  if (jobs.name.empty()) jobs.name = "muster-" + plainNameOf(plan.name);
  jobs.minutes = minutesOf(plan);
  if (!o.time.empty()) {
    MUSTER_TRY(jobs.minutes, minutesFrom(o.time, "--time"));
  }
  MUSTER_TRY(jobs.gapMinutes, minutesFrom(o.gapWait, "--gap-wait"));
  jobs.nvidia = plan.backend == "cuda" && o.scenario.empty();
  if (jobs.gpus == 0 && jobs.nvidia && !known.empty()) {
    MUSTER_TRY(jobs.gpus, gpusOf(submission.nodes, known));
  }
  MUSTER_CHECK_OK(chooseRuntime(o));
  MUSTER_TRY(const fs::path folder, executableFolder());
  jobs.muster = (folder / "muster").string();
  submission.jobs = jobs;
  return {};
}

void sayMissing(const std::vector<std::pair<std::string, std::string>>& missing) {
  for (const auto& [node, why] : missing) printText("missing: {} ({})\n", node, why);
}

/// Says where Slurm may forget how a task ended before the fleet job asks: then its node does not count.
Status warnOfForgetting() {
  constexpr int kLongAge = 86400;  // seconds
  MUSTER_TRY(const auto configuration, slurm::readConfiguration());
  const auto valueOf = [&](const char* name) {
    const auto found = configuration.find(name);
    return found == configuration.end() ? std::string() : found->second;
  };
  const std::string storage = valueOf("AccountingStorageType"), age = valueOf("MinJobAge");
  const int seconds = std::atoi(age.c_str());
  if ((!storage.empty() && storage.find("none") == std::string::npos) || seconds == 0 || seconds >= kLongAge)
    return {};
  printText(
      "note: Slurm has no accounting and drops a job {} s after its end (MinJobAge): a node whose task ends "
      "earlier than that before the fleet job cannot be confirmed and does not count, unless --unconfirmed "
      "is given\n",
      seconds);
  return {};
}

/// Where the run is to lie, as it was named.
fs::path namedFolder(const SlurmOptions& o, const std::string& id) {
  const fs::path out =
      fs::absolute(o.out.empty() ? fs::path("muster-slurm-" + id) : o.out).lexically_normal();
  return out.has_filename() ? out : out.parent_path();
}

/// The same without links: one that somebody turns later leads nowhere else.
Result<fs::path> realFolder(const fs::path& named) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(named, error);
  if (!error) return real;
  return Error{ErrorCode::kUsage, "cannot find where it leads: " + error.message(), named.string()};
}

/// The nodes that Slurm knows. With --print there may be no Slurm to ask: then none, and why goes into
/// `problem`. That it has no such partition is an answer.
Result<slurm::Nodes> knownNodes(const SlurmOptions& o, std::string& problem) {
  auto known = slurm::readNodes(o.jobs.partition);
  if (known.ok() || !o.print || known.error().message.starts_with("partition ")) return known;
  problem = known.error().text();
  return slurm::Nodes();
}

/// What the scripts lack because there was no Slurm to ask.
void sayUnknown(const SlurmOptions& o, const slurm::Submission& submission, const std::string& problem) {
  printText("#### unknown, because Slurm does not answer ({}):\n", problem);
  if (o.nodes == "all")
    printText("####   the nodes that --nodes all stands for; NODE_COUNT is their number\n");
  if (submission.jobs.nvidia && submission.jobs.gpus == 0)
    printText("####   the GPUs per node: `submit` adds --gpus-per-node from Slurm\n");
  printText("####   which nodes are down or drained, how large an array may be, and how many jobs fit\n");
}

int showScripts(const SlurmOptions& o, const slurm::Submission& submission,
                const std::vector<slurm::Script>& scripts, size_t available, const std::string& problem) {
  for (const slurm::Script& script : scripts) {
    const bool cluster = script.name == "cluster.sbatch" || script.name == "step.sh";
    if ((cluster && !submission.clusterStages) || (script.name == "node.sbatch" && !submission.nodeStages))
      continue;
    printLines(fmt::format("#### {}\n{}\n", script.name, script.text));
  }
  if (!problem.empty())
    sayUnknown(o, submission, problem);
  else
    printText("#### {} of {} nodes are available\n", available, submission.nodes.size());
  printText("#### nothing was submitted\n");
  return 0;
}

Status writeFiles(const slurm::RunStore& run, const SlurmOptions& o, const Plan& plan,
                  const std::vector<slurm::Script>& scripts) {
  MUSTER_CHECK_OK(writeFileAtomically(run.input(run.submission().planFile), plan.text));
  if (!o.scenario.empty()) {
    MUSTER_TRY(const std::string text, frozenToml(o.scenario));
    MUSTER_CHECK_OK(writeFileAtomically(run.input(run.submission().scenarioFile), text));
  }
  const std::pair<const fs::path*, std::string> copies[] = {{&o.waivers, kWaivers}, {&o.topology, kTopology}};
  for (const auto& [from, name] : copies) {
    if (from->empty()) continue;
    MUSTER_TRY(const std::string text, readFile(*from));
    MUSTER_CHECK_OK(writeFileAtomically(run.input(name), text));
  }
  for (const slurm::Script& script : scripts)
    MUSTER_CHECK_OK(writeFileAtomically(run.folder() / "scripts" / script.name, script.text));
  return {};
}

/// A file of one line that nobody but its owner can read.
Status writeKey(const fs::path& path, const std::string& key) {
  MUSTER_TRY(const Fd file, openOwnFile(path, O_WRONLY | O_TRUNC, 0600));
  return appendAndSync(file.get(), key + "\n", path);
}

/// A key for the run and one for each node, by which records show whose they are.
Status writeKeys(const slurm::RunStore& run) {
  std::error_code error;
  fs::create_directory(run.nodeKey("").parent_path(), error);
  if (!error) fs::permissions(run.nodeKey("").parent_path(), fs::perms::owner_all, error);
  if (error)
    return Error{ErrorCode::kUsage, "cannot make it: " + error.message(),
                 run.nodeKey("").parent_path().string()};
  MUSTER_TRY(const std::string key, randomSecret());
  MUSTER_CHECK_OK(writeKey(run.runKey(), key));
  for (const std::string& node : run.submission().nodes)
    MUSTER_CHECK_OK(writeKey(run.nodeKey(node), nodeKeyOf(key, node)));
  return {};
}

}  // namespace

Result<int> slurmSubmit(SlurmOptions& o) {
  MUSTER_TRY(const RunSetup setup, checkedSetup(o));
  const Plan& plan = setup.plan;
  std::string problem;
  MUSTER_TRY(const slurm::Nodes known, knownNodes(o, problem));
  slurm::Submission submission;
  submission.id = newRunId(plan.name);
  const fs::path named = namedFolder(o, submission.id);
  MUSTER_TRY(const fs::path out, realFolder(named));
  MUSTER_CHECK_OK(describe(o, plan, known, out, submission));
  if (!o.scenario.empty()) MUSTER_CHECK_OK(checkScenario(o, setup, submission.nodes.size()));
  std::vector<std::pair<std::string, std::string>> missing;
  if (problem.empty()) {
    MUSTER_TRY(missing, slurm::unavailable(submission.nodes, known));
  }
  MUSTER_TRY(const auto scripts, slurm::renderScripts(submission, out, setup.tree.templates));
  sayMissing(missing);
  const size_t available = submission.nodes.size() - missing.size();
  if (o.print) return showScripts(o, submission, scripts, available, problem);
  if (!o.unconfirmed) MUSTER_CHECK_OK(warnOfForgetting());
  MUSTER_TRY(const slurm::QueueRoom room, slurm::askQueueRoom(submission.jobs, 0));
  MUSTER_CHECK_OK(slurm::checkRoom(room));
  MUSTER_TRY(const slurm::RunStore run, slurm::RunStore::create(out, submission, named));
  MUSTER_CHECK_OK(writeFiles(run, o, plan, scripts));
  MUSTER_CHECK_OK(writeKeys(run));
  {
    MUSTER_TRY(const Fd lock, run.lock());
    MUSTER_CHECK_OK(slurm::beginRun(run, known));
  }
  printText("run {}: {} of {} nodes submitted\n", run.folder().string(), available, submission.nodes.size());
  printText("follow it with: muster slurm status {}\n", slurm::shellQuote(run.folder().string()));
  std::fflush(stdout);
  return o.wait ? slurmWait(run) : Result<int>(0);
}

}  // namespace muster
