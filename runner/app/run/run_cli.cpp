// SPDX-License-Identifier: Apache-2.0
// The options of `muster run`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "runner/app/input/shared_options.h"
#include "runner/app/run/run_options.h"
#include "runner/core/duration.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/hosts/host_list.h"
#include "runner/record/record_mac.h"

namespace muster {
namespace {

constexpr const char* kRunExamples = R"(
Writes record.json, report.html and junit.xml into the run directory.
Ctrl-C stops cleanly and saves finished work (exit 130, or 1 if something had failed); continue with
`muster run --resume DIR`. SIGTERM does the same, and so does closing the terminal unless the command was started
with `nohup`.

Examples:
  muster run plans/node-full.toml --out runs/n17 --strict
  muster run plans/quickstart.toml --set gemm.size=1024 --set gemm.timeout=2m
  muster run plans/node-quick.toml --simulate plans/scenarios/h100x8-healthy.toml --nodes 4
  muster run plans/cluster.toml --scope device,node    run cluster stages in another job
  muster run plans/node-full.toml --only gemm --device gpu5    measure a finding again
  muster run plans/node-full.toml --out runs/n17 --budget 20m  in slices: then --resume runs/n17 --budget 20m

A partial run (--only, --device) exits with 1 if a requirement was not met, else with 3: it never accepts a node.
Prerequisites are left out unless --only names them. With --device, limits relative to other devices are not judged,
and one device alone has more power and cooling than all together, so a pass does not disprove a finding.
With --budget, a stage is started only if its timeout ends before; stages keep their order. A run with stages left
exits with 3 (1 if something failed), names them and the command that resumes it.

On several nodes: start one `muster run` per node, all with the same MUSTER_TOKEN in the environment. Slurm,
Kubernetes, Open MPI and torchrun are detected; without them, give the options:
  muster run plans/cluster.toml --nnodes 4 --node-rank 2 --rendezvous node-0:29400)";

/// Adds the options of a run over several nodes.
void addPlace(CLI::App* run, RunArguments& a) {
  run->add_option("--nnodes", a.run.nodeCount, "number of nodes in this run")->check(CLI::Range(1, 65536));
  run->add_option("--node-rank", a.run.nodeRank, "rank of this node, from 0")->check(CLI::Range(0, 65535));
  run->add_option("--node-name", a.run.nodeName, "node name in the record (default: host name)")
      ->type_name("NAME");
  run->add_option("--node-names", a.nodeNames, "names of all simulated nodes of --nnodes, in rank order")
      ->type_name("HOSTLIST");
  addFleetId(run, a.run.fleetId, "ID of the fleet run this run belongs to");
  run->add_option("--record-key", a.recordKey,
                  "this node's key file; signs the record with a MAC that `muster fleet` verifies")
      ->type_name("FILE");
  run->add_option("--rendezvous", a.run.rendezvous,
                  "host[:port] of node 0's rendezvous store (default port: derived from MUSTER_TOKEN)")
      ->type_name("HOST:PORT");
  run->add_option("--arrival", a.arrival,
                  "how long a cluster stage waits for all nodes to join (default: the stage's timeout)")
      ->type_name("DURATION");
  run->add_option("--lost-after", a.lostAfter, "declare a node lost after this long without a heartbeat")
      ->type_name("DURATION")
      ->capture_default_str();
}

}  // namespace

CLI::App* addRun(CLI::App& app, RunArguments& a) {
  CLI::App* run = app.add_subcommand("run", "run a plan on this node and check the results");
  run->add_option("plan", a.run.plan, "plan file (.toml or .lua)");
  run->add_option("--out", a.run.out, "run directory (default: ./muster-PLAN-HOST-TIME)")->type_name("DIR");
  run->add_option("--resume", a.run.resume,
                  "resume the interrupted run in DIR; if a plan is given and DIR holds no run, start one")
      ->type_name("DIR");
  addSets(run, a.run.sets);
  run->add_option("--sku", a.run.sku, "SKU profile to use instead of the plan's; auto: match the devices");
  run->add_option("--simulate", a.run.scenario, "use the simulated devices of this scenario, in virtual time")
      ->type_name("SCENARIO");
  run->add_option("--nodes", a.run.nodes, "number of simulated nodes, with --simulate")
      ->check(CLI::Range(1, 100000));
  addWaivers(run, a.run.waivers);
  addPlace(run, a);
  run->add_option("--scope", a.run.scopes, "run only stages of these scopes: device, node, cluster")
      ->delimiter(',')
      ->check(CLI::IsMember({"device", "node", "cluster"}));
  run->add_option("--only", a.run.selection.stages,
                  "run only these stages, without their prerequisites; partial runs never accept")
      ->type_name("STAGE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  run->add_option(
         "--device", a.run.selection.devices,
         "run stages of scope device only on these devices, for example gpu5; other stages are left out")
      ->type_name("DEVICE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  run->add_option("--budget", a.budget,
                  "start no stage whose timeout would end after this time; continue with --resume")
      ->type_name("DURATION");
  run->add_option("--seed", a.run.seed, "seed for all generated data")
      ->capture_default_str()
      ->each([&a](const std::string&) { a.run.seedGiven = true; })
      ->check([](const std::string& text) {  // CLI11 reads -1 as the largest number
        const bool whole = text.find_first_not_of("0123456789") == std::string::npos;
        return whole ? std::string() : "expected a whole number, 0 or more, found " + printable(text, 40);
      });
  run->add_flag("--strict", a.run.strict, "measurements without a limit block acceptance");
  run->add_option("--no-gpu", a.noGpu, "result on a node without a GPU: fail (exit 3) or skip (exit 5)")
      ->check(CLI::IsMember({"fail", "skip"}))
      ->capture_default_str();
  run->add_option("--plugins", a.run.pluginFolders,
                  "directory with additional plugins; a resumed run needs the same ones named again")
      ->type_name("DIR")
      ->allow_extra_args(false);
  addSkuFolders(run, a.run.skuFolders);
  run->add_flag("--json", a.json, "print events as JSON, one object per line");
  run->add_flag("--plain", a.plain, "print plain lines even on a terminal");
  run->footer(kRunExamples);
  return run;
}

Result<RunOptions> runOptionsFrom(RunArguments a) {
  a.run.view = a.json ? ViewKind::kJson : a.plain ? ViewKind::kPlain : ViewKind::kAuto;
  a.run.noGpuSkip = a.noGpu == "skip";
  if (a.run.nodes > 1 && a.run.scenario.empty())
    return Error{ErrorCode::kUsage, "--nodes applies to simulated nodes; add --simulate SCENARIO", ""};
  if (!a.run.nodeName.empty() && !isPlainName(a.run.nodeName))
    return Error{
        ErrorCode::kUsage,
        fmt::format("--node-name \"{}\": expected letters, digits, '-', '_' and '.', at most 64 long",
                    printable(a.run.nodeName, 80)),
        ""};
  if (!a.nodeNames.empty()) {
    MUSTER_TRY(a.run.nodeNames, expandHostList(a.nodeNames).context("--node-names"));
  }
  if (!a.recordKey.empty()) {
    if (a.run.nodes > 1)
      return Error{
          ErrorCode::kUsage,
          "--record-key holds the key of one node, but --nodes simulates several; remove one of them", ""};
    MUSTER_TRY(a.run.recordKey, readKey(a.recordKey).context("--record-key"));
  }
  if (!a.arrival.empty()) {
    MUSTER_TRY(a.run.arrival, parseDuration(a.arrival).context("--arrival"));
  }
  if (!a.budget.empty()) {
    constexpr DurationRange kBudget = {1, 1e9, "a duration of 1s or more, for example 20m"};
    MUSTER_TRY(a.run.budget, parseDuration(a.budget, kBudget).context("--budget"));
  }
  constexpr DurationRange kLost = {1, 1e9, "a duration of 1s or more, for example 10s"};
  MUSTER_TRY(a.run.lostAfter, parseDuration(a.lostAfter, kLost).context("--lost-after"));
  if (!a.run.out.empty() && !a.run.resume.empty())
    return Error{ErrorCode::kUsage, "give either --out (a new run) or --resume (an interrupted one)", ""};
  return std::move(a.run);
}

}  // namespace muster
