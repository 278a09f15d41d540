// SPDX-License-Identifier: Apache-2.0
// `muster run`: a plan on this node, or on simulated ones.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

#include "runner/app/input/plan_input.h"
#include "runner/app/node/launch_position.h"
#include "runner/app/node/node_run.h"
#include "runner/app/node/partial_run.h"
#include "runner/app/node/run_budget.h"
#include "runner/app/node/waiver_input.h"
#include "runner/app/process/environment.h"
#include "runner/app/process/interrupt.h"
#include "runner/app/process/side_by_side.h"
#include "runner/app/run/run_options.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/inputs/toml_input.h"
#include "runner/judge/exit_code.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

fs::path defaultFolder(const Plan& plan) {
  std::string time = formatUtc(systemClock().wallUnix());
  time.erase(std::remove(time.begin(), time.end(), ':'), time.end());
  return fmt::format("muster-{}-{}-{}", plan.name, hostName(), time);
}

/// As node_start.cpp writes them into a journal; a last slash makes no difference.
std::vector<fs::path> absolutePaths(const std::vector<fs::path>& paths) {
  std::vector<fs::path> all;
  all.reserve(paths.size());
  for (const fs::path& path : paths) {
    fs::path absolute = fs::absolute(path).lexically_normal();
    all.push_back(absolute.has_filename() ? absolute : absolute.parent_path());
  }
  return all;
}

/// What was given beside --resume and differs from what the run was started with. Silence about it would be a
/// promise that is not kept: `--strict`, say, of a run that is not strict.
std::vector<std::string> givenOtherwise(const RunOptions& asked, const RunOptions& frozen) {
  std::vector<std::string> options;
  if (asked.seedGiven && asked.seed != frozen.seed) options.emplace_back("--seed");
  if (asked.strict && !frozen.strict) options.emplace_back("--strict");
  if (asked.noGpuSkip && !frozen.noGpuSkip) options.emplace_back("--no-gpu=skip");
  if (!asked.scopes.empty() && asked.scopes != frozen.scopes) options.emplace_back("--scope");
  const Selection &given = asked.selection, &kept = frozen.selection;
  if (!given.stages.empty() && given.stages != kept.stages) options.emplace_back("--only");
  if (!given.devices.empty() && given.devices != kept.devices) options.emplace_back("--device");
  if (!asked.skuFolders.empty() && absolutePaths(asked.skuFolders) != absolutePaths(frozen.skuFolders))
    options.emplace_back("--skus");
  return options;
}

/// Plugins are code: a journal, which others may have written, never says which ones are loaded. Fails unless
/// the command line names all that the run was started with, and no others.
Status checkPluginFolders(const std::vector<fs::path>& asked, const std::vector<std::string>& started) {
  const std::vector<fs::path> given = absolutePaths(asked);
  const std::vector<fs::path> wanted = absolutePaths({started.begin(), started.end()});
  std::vector<std::string> missing;
  for (const fs::path& path : wanted)
    if (std::find(given.begin(), given.end(), path) == given.end())
      missing.push_back(printable(path.string(), 200));
  if (!missing.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("this run was started with plugins from {}; plugins are never loaded because a "
                             "journal names them: if you trust them, repeat --plugins DIR for each",
                             join(missing, ", ")),
                 ""};
  if (given == wanted) return {};
  return Error{ErrorCode::kUsage,
               "a resumed run keeps its original options, and its --plugins are others, or in another order; "
               "repeat the original ones, or start a new run with --out",
               ""};
}

/// The options under which an interrupted run was started; what the user may still choose (the view) is kept.
Result<RunOptions> frozenOptions(const Json& run, const RunOptions& asked) {
  if (!asked.sets.empty() || !asked.sku.empty() || !asked.scenario.empty() || !asked.waivers.empty() ||
      asked.nodes != 1)
    return Error{ErrorCode::kUsage,
                 "a resumed run keeps its original options; --set, --sku, --simulate, --waivers and --nodes "
                 "require a new run",
                 ""};
  RunOptions options = asked;
  std::string plan, scenario;
  std::vector<std::string> plugins, skus;
  JsonReader reader(run, "journal.jsonl:1");
  reader.read("plan_path", plan);
  reader.read("sku", options.sku);
  reader.read("scenario", scenario);
  reader.read("sets", options.sets);
  reader.read("scopes", options.scopes);
  options.selection = {};
  reader.optional("only", options.selection.stages);
  reader.optional("devices", options.selection.devices);
  reader.read("plugin_folders", plugins);
  reader.read("sku_folders", skus);
  reader.read("seed", options.seed);
  reader.read("strict", options.strict);
  reader.read("no_gpu_skip", options.noGpuSkip);
  options.fleetId.clear();
  reader.optional("fleet_id", options.fleetId);
  reader.optional("node_names", options.nodeNames);
  MUSTER_CHECK_OK(reader.status());
  if (!asked.fleetId.empty() && asked.fleetId != options.fleetId)
    return Error{
        ErrorCode::kUsage,
        fmt::format(
            "--fleet-id is {}, but this run was started {}; resume it without --fleet-id, or start a new run",
            asked.fleetId, options.fleetId.empty() ? "with none" : "with " + printable(options.fleetId)),
        asked.resume.string()};
  options.plan = plan;
  options.scenario = scenario;
  MUSTER_CHECK_OK(checkPluginFolders(asked.pluginFolders, plugins).context(asked.resume.string()));
  options.skuFolders.assign(skus.begin(), skus.end());
  if (const auto other = givenOtherwise(asked, options); !other.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("a resumed run keeps its original options, which do not include {}; omit it, or "
                             "start a new run with --out",
                             join(other, ", ")),
                 asked.resume.string()};
  return options;
}

/// Fails when --resume is given a plan that is not the one the run was started with.
Status checkSamePlan(const fs::path& asked, const Json& run) {
  if (asked.empty()) return {};
  MUSTER_TRY(const std::string text, frozenPlanText(asked));
  if (sha256Hex(text) == run.value("plan_sha256", "")) return {};
  return Error{
      ErrorCode::kUsage,
      "the interrupted run was started with another plan; omit the plan, or start a new run with --out",
      asked.string()};
}

/// Fails where finished stages ran on a part of the devices, and the options say that all took part.
Status checkSameDevices(const Journal& journal, const Selection& selection) {
  if (!selection.devices.empty()) return {};
  for (const JournalStage& entry : journal.stages) {
    bool peersMissing = false;
    JsonReader(entry.stage.evidence, "evidence").optional("peers_missing", peersMissing);
    if (peersMissing)
      return Error{
          ErrorCode::kUsage,
          fmt::format("stage {} ran on a part of the devices (--device), and the journal's first line "
                      "names none: it was edited; start a new run with --out",
                      printable(entry.stage.name, 80)),
          "journal.jsonl"};
  }
  return {};
}

/// Fails where plan, waivers or scenario are no longer those that the run was started with.
Status checkFrozenInputs(const Json& run) {
  std::string scenario, file, digest;
  JsonReader reader(run, "journal.jsonl:1");
  const auto differs = [&](const char* what, const char* text, const char* sha256) {
    std::string content, wanted;
    reader.read(text, content);
    reader.read(sha256, wanted);
    const bool absent = content.empty() && wanted.empty();
    if (reader.ok() && !absent && sha256Hex(content) != wanted)
      reader.fail(Error{ErrorCode::kUsage, fmt::format("the digest of its {} differs from {}", what, sha256),
                        "journal.jsonl:1"});
  };
  differs("plan's text", "plan_text", "plan_sha256");
  differs("waivers", "waivers_text", "waivers_sha256");
  reader.read("scenario", scenario);
  reader.read("scenario_sha256", digest);
  MUSTER_CHECK_OK(reader.status());
  if (scenario.empty()) return {};
  MUSTER_TRY(file, frozenToml(scenario));
  if (sha256Hex(file) == digest) return {};
  return Error{ErrorCode::kUsage,
               "the interrupted run was started with another scenario; start a new run with --out", scenario};
}

/// Describes plugins and loads profiles: what every way of running needs.
/// Each rank needs several, and a stage that finds none in the middle of a run is an error of a healthy
/// machine.
Status checkDescriptors() {
  constexpr rlim_t kFewest = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kFewest) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("this process may open {} files, and a run needs at least {}: raise the limit with "
                  "`ulimit -n 1024`, or LimitNOFILE= of the service",
                  limit.rlim_cur, kFewest),
      ""};
}

Result<RunSetup> prepare(const RunOptions& options, RunView& view) {
  MUSTER_CHECK_OK(checkDescriptors());
  RunSetup setup;
  setup.options = &options;
  setup.view = &view;
  MUSTER_TRY(setup.tree, findTree());
  MUSTER_TRY(setup.catalog, describePlugins(setup.tree, options.pluginFolders, {}));
  MUSTER_TRY(setup.profiles, allProfiles(setup.tree, options.skuFolders, &setup.catalog));
  return setup;
}

/// Fails when --scope leaves nothing to run: an empty run is no success.
Status checkScopes(const Plan& plan, const RunOptions& options) {
  std::set<std::string> present;
  for (const Stage& stage : plan.stages) present.insert(nameOf(stage.scope));
  const auto& asked = options.scopes;
  if (asked.empty() || std::any_of(asked.begin(), asked.end(),
                                   [&](const std::string& scope) { return present.count(scope) > 0; }))
    return {};
  return Error{ErrorCode::kUsage,
               fmt::format("no stage of plan {} has a scope of --scope {}; its stages have {}", plan.name,
                           join(asked, ","), join({present.begin(), present.end()}, ", ")),
               plan.path.string()};
}

/// Fails before anything runs where a named profile is of the other kind, simulated or real, or for devices
/// that the backend does not have; one that is matched by the devices is looked at when they are known.
Status checkNamedProfile(const RunSetup& setup, const RunOptions& options) {
  const auto named = setup.profiles.find(requiredSku(setup.plan, options));
  if (named == setup.profiles.end()) return {};
  const Profile& profile = named->second;
  const bool simulated = !options.scenario.empty();
  const std::string kind = setup.plan.backend == "host" ? "cpu" : "gpu";
  if (!simulated && !profile.match.kind.empty() && profile.match.kind != kind)
    return wrongKind(profile, "backend " + setup.plan.backend, kind);
  return checkOrigin(profile, simulated);
}

/// Says what was detected, for the terminal.
void showPosition(const Launcher& position, RunView& view) {
  if (position.kind == LauncherKind::kNone) return;
  std::string text = fmt::format("node {} of {} ({}: {})", position.nodeRank, position.nodeCount,
                                 launcherName(position.kind), position.why);
  if (!position.store.host.empty()) text += ", rendezvous at " + position.store.text();
  view.note(text);
}

/// The run's end, where a launcher would end the runs of all other nodes with it.
void leave(const Launcher& position, const Plan& plan, ClusterLink* cluster, RunView& view) {
  if (!endsAllWithTheFirst(position)) return;
  if (cluster == nullptr)
    return view.note(
        "mpirun kills the runs on all other nodes when this one exits with a code other than 0; set "
        "MUSTER_TOKEN (mpirun -x MUSTER_TOKEN) so that the nodes wait for each other");
  double longest = 0;
  for (const Stage& stage : plan.stages) longest += stage.timeout * stage.attempts;
  if (!cluster->members().leaveTogether(longest))
    view.note(
        fmt::format("other nodes have not ended within {:.0f} s, which is more than the plan's stages "
                    "can take; this run ends without them",
                    longest));
}

/// How this node is called in its record.
std::string nodeName(const RunOptions& options) {
  return options.nodeName.empty() ? hostName() : options.nodeName;
}

Result<int> runResumed(const RunOptions& asked, RunView& view, const Launcher& position) {
  MUSTER_TRY(RunFolder folder, RunFolder::open(asked.resume));
  MUSTER_TRY(const Journal journal, folder.readJournal());
  MUSTER_CHECK_OK(checkSamePlan(asked.plan, journal.run));
  MUSTER_CHECK_OK(checkFrozenInputs(journal.run).context(asked.resume.string()));
  MUSTER_TRY(const RunOptions options, frozenOptions(journal.run, asked));
  MUSTER_CHECK_OK(checkSameDevices(journal, options.selection).context(asked.resume.string()));
  MUSTER_TRY(RunSetup setup, prepare(options, view));
  MUSTER_TRY(const PlanOptions planOptions, planOptionsFrom(options.sets, {}));  // the profile is frozen
  MUSTER_TRY(setup.plan, requirePlan(parsePlan(journal.run.value("plan_text", ""), options.plan,
                                               setup.catalog, planOptions)));
  MUSTER_TRY(setup.binaries, binaryDigests(setup.tree, backendOf(setup)));
  MUSTER_CHECK_OK(checkScopes(setup.plan, options));
  MUSTER_CHECK_OK(checkSelection(setup.plan, options));
  MUSTER_TRY(setup.waivers, waiversOf(journal.run));
  const std::string node = journal.run.value("node", nodeName(asked));
  const int rank = journal.run.value("node_rank", 0), count = journal.run.value("node_count", 1);
  MUSTER_CHECK_OK(checkBudget(setup.plan, options, count));
  if (options.scenario.empty() && (rank != position.nodeRank || count != position.nodeCount))
    return Error{ErrorCode::kUsage,
                 fmt::format("this run was node {} of {}, but was now started as node {} of {}; resume it "
                             "with the original rank, or start a new run with --out",
                             rank, count, position.nodeRank, position.nodeCount),
                 asked.resume.string()};
  if (!setup.options->scenario.empty() || node == nodeName(asked)) {
    MUSTER_TRY(const auto cluster, joinCluster(setup.plan, options, position, &journal));
    NodeRun run(setup, std::move(folder), {node, rank, count, launcherJson(position), cluster.get()});
    MUSTER_TRY(const Record record, run.run());
    leave(position, setup.plan, cluster.get(), view);
    return record.exitCode;
  }
  return Error{ErrorCode::kUsage,
               fmt::format("this run was started on {}, but this node is {}; resume it there",
                           printable(node), nodeName(asked)),
               asked.resume.string()};
}

/// One simulated node in its place among others: what a task of a job array does.
Result<int> runSimulatedNode(const RunSetup& setup, const RunOptions& options, const fs::path& out) {
  const int rank = options.nodeRank.value_or(0), count = options.nodeCount.value_or(1);
  if (rank >= count)
    return Error{ErrorCode::kUsage,
                 fmt::format("--node-rank {} is out of range for --nnodes {}", rank, count), ""};
  const auto& names = options.nodeNames;
  if (!names.empty() && names.size() != static_cast<size_t>(count))
    return Error{ErrorCode::kUsage,
                 fmt::format("--node-names has {} names; expected {} (--nnodes)", names.size(), count), ""};
  const std::string ranked =
      names.empty() ? fmt::format("sim-node-{:04}", rank) : names[static_cast<size_t>(rank)];
  const std::string name = options.nodeName.empty() ? ranked : options.nodeName;
  if (!names.empty() && name != ranked)
    return Error{
        ErrorCode::kUsage,
        fmt::format("--node-name is {}, but place {} of --node-names has {}", name, rank, printable(ranked)),
        ""};
  MUSTER_TRY(RunFolder folder, RunFolder::create(out));
  NodeRun run(setup, std::move(folder), {name, rank, count});
  MUSTER_TRY(const Record record, run.run());
  return record.exitCode;
}

Result<int> runSimulated(const RunSetup& setup, const RunOptions& options, const fs::path& out) {
  if (options.nodes == 1) return runSimulatedNode(setup, options, out);
  if (options.nodeRank || options.nodeCount || !options.nodeName.empty())
    return Error{ErrorCode::kUsage,
                 "--nodes simulates all nodes in this process; it cannot be combined with --nnodes, "
                 "--node-rank or --node-name",
                 ""};
  if (!options.nodeNames.empty())
    return Error{ErrorCode::kUsage, "--node-names requires --nnodes; --nodes names its nodes itself", ""};
  const auto runOne = [&](int rank) -> Result<int> {
    const std::string node = fmt::format("sim-node-{:04}", rank);
    MUSTER_TRY(RunFolder folder, RunFolder::create(out / node));
    NodeRun run(setup, std::move(folder), {node, rank, options.nodes});
    MUSTER_TRY(const Record record, run.run());
    return record.exitCode;
  };
  MUSTER_TRY(const std::vector<int> codes, runSideBySide(options.nodes, runOne));
  return std::accumulate(codes.begin(), codes.end(), static_cast<int>(kExitAccepted), worstExit);
}

/// Nodes of the run, simulated or real.
int nodesOf(const RunOptions& options, const Launcher& position) {
  if (options.scenario.empty()) return position.nodeCount;
  return std::max(options.nodes, options.nodeCount.value_or(1));
}

Result<int> runNew(const RunOptions& options, RunView& view, const Launcher& position) {
  if (!options.scenario.empty()) {
    MUSTER_CHECK_OK(frozenToml(options.scenario));
  }
  MUSTER_TRY(RunSetup setup, prepare(options, view));
  MUSTER_TRY(PlanOptions planOptions, planOptionsFrom(options.sets, setup.profiles));
  if (!options.sku.empty()) {
    MUSTER_CHECK_OK(checkSkuName(options.sku, setup.profiles));
    planOptions.skus.clear();  // the plan's own is not used
  }
  MUSTER_TRY(setup.plan, requirePlan(loadPlan(options.plan, setup.catalog, planOptions)));
  MUSTER_TRY(setup.binaries, binaryDigests(setup.tree, backendOf(setup)));
  MUSTER_CHECK_OK(checkScopes(setup.plan, options));
  MUSTER_CHECK_OK(checkSelection(setup.plan, options));
  MUSTER_CHECK_OK(checkBudget(setup.plan, options, nodesOf(options, position)));
  MUSTER_CHECK_OK(checkNamedProfile(setup, options));
  if (!options.waivers.empty()) {
    MUSTER_TRY(setup.waivers, readWaivers(options.waivers, systemClock().wallUnix()));
    MUSTER_CHECK_OK(checkAgainstPlan(setup.waivers, setup.plan, setup.catalog));
  }
  // A folder to resume is this node's own already.
  const fs::path out = !options.resume.empty() ? options.resume
                       : options.out.empty()   ? defaultFolder(setup.plan)
                                               : options.out;
  if (options.scenario.empty()) {
    MUSTER_TRY(const auto cluster, joinCluster(setup.plan, options, position));
    MUSTER_TRY(const fs::path own, options.resume.empty() ? nodeFolder(out, position) : out);
    MUSTER_TRY(RunFolder folder, RunFolder::create(own));
    NodeRun run(
        setup, std::move(folder),
        {nodeName(options), position.nodeRank, position.nodeCount, launcherJson(position), cluster.get()});
    MUSTER_TRY(const Record record, run.run());
    leave(position, setup.plan, cluster.get(), view);
    return record.exitCode;
  }
  return runSimulated(setup, options, out);
}

}  // namespace

Result<int> runCommand(const RunOptions& options) {
  installInterruptHandlers();
  const auto view = makeView(options.view, options.pluginFolders);
  MUSTER_TRY(const Launcher position, findLaunchPosition(options));
  showPosition(position, *view);
  if (!position.leadsNode()) {
    view->note(fmt::format("local rank {}: the process with local rank 0 runs the plan on this node",
                           position.localRank));
    return kExitAccepted;
  }
  RunOptions own = options;
  if (!own.resume.empty()) {
    MUSTER_TRY(own.resume, nodeFolder(own.resume, position));
  }
  if (!own.resume.empty() && RunFolder::holdsRun(own.resume)) return runResumed(own, *view, position);
  if (options.plan.empty())
    return Error{ErrorCode::kUsage,
                 options.resume.empty() ? "no plan given; try `muster run plans/quickstart.toml`"
                                        : "no run to resume in this directory, and no plan to start one",
                 options.resume.string()};
  return runNew(own, *view, position);
}

}  // namespace muster
