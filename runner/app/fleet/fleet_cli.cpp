// SPDX-License-Identifier: Apache-2.0
// The options of `muster fleet`.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "runner/app/fleet/fleet_options.h"
#include "runner/app/input/shared_options.h"

namespace muster {
namespace {

constexpr const char* kFleetExamples = R"(
Reads every record.json in RUN and its subdirectories (other *.json where there is none). Reports one state for every
expected node: accepted, rejected, affected (fails only due to another component), incomplete, missing, down, drained,
stale (another plan or run) or quarantined (truncated or invalid record). Writes fleet.json and fleet.html.
The --expect file has one node list per line, optionally with the required SKU (default: that of most nodes) or the
scheduler's state:
  node[001-128]
  node[129-136] sku=h200-sxm
  node137 down Not responding
A node is not accepted if the same hardware or run also appears under another name, if its record was re-evaluated, or
if its profile, Muster build or plugins differ from most nodes of its SKU.

Exit code: 0 all expected nodes accepted, 1 at least one rejected, 3 none rejected but not all accepted.

Examples:
  muster fleet runs/monday --expect nodes.txt
  muster fleet runs/monday --expect-slurm --partition gpu --topology /etc/slurm/topology.conf --out /data/report
  muster fleet runs/monday --expect nodes.txt --plan plans/node-full.toml --reject-outliers
  muster fleet runs/monday --expect nodes.txt --sku h100-sxm5-80gb.toml --node-sku 'node[129-136]=h200-sxm'
  muster fleet runs/demo --expect nodes.txt --same-machine
  muster fleet runs/monday --expect nodes.txt --waivers known.toml)";

}  // namespace

CLI::App* addFleet(CLI::App& app, FleetCommandOptions& o) {
  CLI::App* fleet = app.add_subcommand("fleet", "merge node records into one fleet verdict");
  fleet->add_option("run", o.run, "parent of the nodes' run directories")->required()->type_name("DIR");
  fleet->add_option("--expect", o.expect, "file listing the nodes that must have a record")
      ->type_name("FILE");
  fleet->add_flag("--expect-slurm", o.expectSlurm, "expect every node known to Slurm");
  fleet->add_option("--partition", o.partition, "with --expect-slurm: only nodes of this partition")
      ->type_name("NAME");
  fleet->add_option("--plan", o.plan, "required plan (default: that of the newest run of many nodes)")
      ->type_name("FILE");
  fleet
      ->add_option("--topology", o.topology,
                   "nodes per switch or rack: Slurm's topology.conf, or lines \"NAME: NODES\"")
      ->type_name("FILE");
  fleet
      ->add_option("--acceptance", o.acceptance,
                   "document number, parties and owners for the first page; format: muster report --help")
      ->type_name("FILE");
  fleet
      ->add_option("--requirements", o.requirements,
                   "clauses that each node must meet; format: muster report --help")
      ->type_name("FILE");
  addFleetId(fleet, o.fleetId, "required fleet run ID (default: that of the newest run of many nodes)");
  addWaivers(fleet, o.waivers);
  fleet->add_option("--out", o.out, "directory for fleet.json and fleet.html (default: RUN)")
      ->type_name("DIR");
  fleet
      ->add_option("--sku", o.profiles,
                   "profile required for nodes of its SKU (default: the profile of most of them)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  fleet
      ->add_option("--record-key", o.recordKey,
                   "the run's key file; records without a valid MAC do not count")
      ->type_name("FILE");
  fleet
      ->add_option("--slurm-run", o.slurmRun,
                   "Slurm run of these records (default: the one they lie in); a record counts only if Slurm "
                   "confirms how its job ended")
      ->type_name("DIR");
  fleet->add_flag("--unconfirmed", o.unconfirmed,
                  "trust the run directory of a Slurm run for jobs that Slurm no longer knows");
  addNodeSkus(fleet, o.nodeSkus);
  addSameMachine(fleet, o.sameMachine);
  fleet->add_flag("--allow-rejudged", o.allowRejudged,
                  "also accept records that `muster judge` re-evaluated");
  fleet->add_flag("--many-runs", o.manyRuns,
                  "accept records of several runs and of any age (default: older ones are stale)");
  addRejectOutliers(fleet, o.rejectOutliers);
  fleet->footer(kFleetExamples);
  return fleet;
}

Result<FleetCommandOptions> parseFleetOptions(std::vector<std::string> arguments) {
  CLI::App app;
  FleetCommandOptions options;
  addFleet(app, options);
  arguments.insert(arguments.begin(), "fleet");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Error& error) {
    return Error{ErrorCode::kUsage, std::string("cannot read the options of `muster fleet`: ") + error.what(),
                 ""};
  }
  return options;
}

}  // namespace muster
