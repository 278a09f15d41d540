// SPDX-License-Identifier: Apache-2.0
// What stands below the options in `muster COMMAND --help`: help that teaches by example.
#pragma once

namespace muster {

inline constexpr const char* kExamples = R"(
Examples:
  muster run plans/quickstart.toml                     this machine's CPU, about a minute
  muster run plans/node-quick.toml --out /data/n17     this node's GPUs, five minutes
  muster run plans/node-quick.toml --simulate plans/scenarios/h100x8-one-slow-gpu.toml
  muster run --resume /data/n17                        go on after a crash or Ctrl-C
  muster check my-plan.lua                             every mistake with its place
  muster judge record.json --sku my-sku.toml           judge stored samples again
  muster baseline learn runs/first -o ours.toml        what this fleet can do becomes a SKU profile
  muster slurm submit plans/node-full.toml --nodes all --out /shared/may    every node of a Slurm cluster
  muster fleet runs/monday --expect nodes.txt          is every node of the fleet accepted?
  muster history add runs/monday                       keep these runs, to see what changes
  muster plugins compute                               what a plugin can test

`muster COMMAND --help` says more about each.

Exit codes: 0 accepted, 1 rejected, 2 bad usage, plan or profile, 3 incomplete, 4 internal fault,
5 no GPU and --no-gpu=skip, 130 interrupted.)";

inline constexpr const char* kRunExamples = R"(
Writes record.json, report.html and junit.xml into the run folder. Ctrl-C ends the run in order: what was
done is in the record (exit 130), and `muster run --resume FOLDER` goes on from there. SIGTERM does the same, and so
does a terminal that is closed, unless the command began with `nohup`.

Examples:
  muster run plans/node-full.toml --out runs/n17 --strict
  muster run plans/quickstart.toml --set gemm.size=1024 --set gemm.timeout=2m
  muster run plans/node-quick.toml --simulate plans/scenarios/h100x8-healthy.toml --nodes 4
  muster run plans/cluster.toml --scope device,node    leave cluster stages to another job

On several nodes: one `muster run` on each, with the same MUSTER_TOKEN in its environment. Slurm, Kubernetes,
Open MPI and torchrun are detected; elsewhere say it:
  muster run plans/cluster.toml --nnodes 4 --node-rank 2 --rendezvous node-0:29400)";

inline constexpr const char* kFleetExamples = R"(
Reads every record.json (and other *.json) below RUN, however deep, and accounts for every expected node: accepted,
rejected, incomplete, missing, down, drained, stale (another plan) or quarantined. Torn and hostile records are set
aside and named. Writes fleet.json and fleet.html. The file of nodes has one list per line, with the SKU that they must
be of (default: that of most nodes) and with what a scheduler says:
  node[001-128]
  node[129-136] sku=h200-sxm
  node137 down Not responding
A node is not accepted if its hardware or its run counts under another name too, if its record was re-judged, or if it
was judged by another profile, Muster build or plugin than most nodes of its SKU.

Exit code: 0 all expected nodes accepted, 1 one or more rejected, 3 none rejected but not all accepted.

Examples:
  muster fleet runs/monday --expect nodes.txt
  muster fleet runs/monday --expect-slurm --partition gpu --topology /etc/slurm/topology.conf --out /data/report
  muster fleet runs/monday --expect nodes.txt --plan plans/node-full.toml --reject-outliers
  muster fleet runs/monday --expect nodes.txt --sku h100-sxm5-80gb.toml --node-sku 'node[129-136]=h200-sxm'
  muster fleet runs/demo --expect nodes.txt --same-machine
  muster fleet runs/monday --expect nodes.txt --waivers known.toml)";

inline constexpr const char* kCheckExamples = R"(
Exit code: 0 all plans are good, 2 a plan has a mistake; nothing is run.

Examples:
  muster check plans/*.toml plans/*.lua
  generate-plan | muster check -
  muster check my-plan.toml --set gemm.size=1024 --plugins mine/ --skus ours/)";

inline constexpr const char* kJudgeExamples = R"(
The record itself is never changed. The new one says from which record, when and by what it was re-judged; `muster fleet`
takes it only with --allow-rejudged. Exit code: that of the new judgement, see `muster --help`.

Examples:
  muster judge runs/n17/record.json                                   the same expectations again
  muster judge runs/n17/record.json --sku ours.toml --out runs/n17-again
  muster judge runs/n17/record.json --waivers known.toml)";

inline constexpr const char* kReportExamples = R"(
Exit code: the record's own, see `muster --help`.

Examples:
  muster report runs/n17/record.json                   its summary
  muster report runs/n17/record.json --out for-customer)";

}  // namespace muster
