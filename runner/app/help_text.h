// SPDX-License-Identifier: Apache-2.0
// The examples printed below the options by `muster COMMAND --help`.
#pragma once

namespace muster {

inline constexpr const char* kExamples = R"(
Examples:
  muster run plans/quickstart.toml                     test this machine's CPU, half a minute
  muster run plans/node-quick.toml --out /data/n17     test this node's GPUs, five minutes
  muster run plans/node-quick.toml --simulate plans/scenarios/h100x8-one-slow-gpu.toml
  muster run --resume /data/n17                        resume after a crash or Ctrl-C
  muster init acceptance                               write a plan for this machine
  muster check my-plan.lua                             list all errors with their locations
  muster explain plans/node-full.toml --sku h200-sxm   show its stages and limits
  muster judge record.json --sku my-sku.toml           re-evaluate stored samples
  muster baseline learn runs/first -o ours.toml        learn a SKU profile from this fleet
  muster slurm submit plans/node-full.toml --nodes all --out /shared/may    every node of a Slurm cluster
  muster k8s submit plans/node-full.toml --nodes all --image REF --out may  every GPU node of a Kubernetes cluster
  muster fleet runs/monday --expect nodes.txt          merge all nodes into one fleet verdict
  muster history add runs/monday                       add these runs to the history
  muster compare runs/before runs/after                what differs by more than the noise
  muster sign runs/monday --key supplier.key           sign a run or fleet directory
  muster verify runs/monday --key supplier.key.pub     verify it without trust in the signer
  muster plugins compute                               show a plugin's tests and metrics

`muster COMMAND --help` describes each command.

Exit codes: 0 accepted, 1 rejected, 2 invalid usage, plan or profile, 3 incomplete, 4 internal error,
5 no GPU and --no-gpu=skip, 130 interrupted before anything failed.)";

inline constexpr const char* kRunExamples = R"(
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

inline constexpr const char* kFleetExamples = R"(
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

inline constexpr const char* kCheckExamples = R"(
Exit code: 0 all plans are valid, 2 a plan has an error.

--json prints {"valid", "files", "errors", "warnings"}. Each error has the file, line, column and message; where the
error is about a value or a name also "found", "required" and "suggestion". In a Lua plan there is no column.
--schema prints a JSON Schema, with which editors complete and check TOML; with --plugins and --skus it has yours too.

Examples:
  muster check plans/*.toml plans/*.lua
  muster check --json my-plan.toml | jq '.errors[] | .file, .line, .message'
  generate-plan | muster check -
  muster check --schema plan --plugins mine/ > plan.json
  muster check my-plan.toml --set gemm.size=1024 --plugins mine/ --skus ours/)";

inline constexpr const char* kExplainExamples = R"(
Lists what the plan comes to: for each stage its test, ranks, cases and parameters, then each limit with where it is defined
and where its value comes from, then the metrics that no limit is about. A limit holds for those measurements of its metric
that carry its labels. The limits on devices that the inventory itself checks (their number, their match with the SKU) are not
listed. Durations ("about 30s") add up the sampling times of the parameters, and the time that patterns, training and
collectives take at the profile's rates; without a profile these have none. Starting processes and libraries comes on top.
Exit code: 0, or 2 if the plan has an error.

Examples:
  muster explain plans/node-full.toml --sku h100-sxm5-80gb
  muster explain plans/cluster.toml --sku h100-sxm5-80gb --nodes 16
  muster explain my-plan.toml --sku ours --skus ours/ --json)";

inline constexpr const char* kInitExamples = R"(
Writes plan.toml (stages) and site.toml (limits of this site; the plan includes it) and asks nothing. Files that are there
are not changed. The limits of the SKU profile apply as well. Then edit both, and look at them with `muster explain`.

Examples:
  muster init acceptance
  muster init acceptance --sku h100-sxm5-80gb --source "contract 4711" \
    --min 'compute.gemm_throughput{dtype=bf16}=620 TFLOP/s' --min 'memory.bandwidth{op=copy}=2.7 TB/s'
  muster init my-cpu --sku host)";

inline constexpr const char* kCaptureExamples = R"(
The scenario has the node's inventory without serial numbers, the rates of its best device, and how much slower each
other one was. Failures that a scenario cannot show are listed.

Examples:
  muster capture runs/n17/record.json --out n17.toml                  record what this node reached
  muster run plans/node-full.toml --simulate n17.toml                 try other limits on it, without the node)";

inline constexpr const char* kJudgeExamples = R"(
Writes a new record; the old one is not changed. The new record states its source record, the time and the tool version.
`muster fleet` accepts it only with --allow-rejudged. Exit code: that of the new verdict, see `muster --help`.

Examples:
  muster judge runs/n17/record.json                                   re-evaluate with the same limits
  muster judge runs/n17/record.json --sku ours.toml --out runs/n17-again
  muster judge runs/n17/record.json --waivers known.toml)";

inline constexpr const char* kImportExamples = R"(
Formats (--format): nccl-tests (the table on standard output, 2.17 or newer), nccl-tests-json (-J FILE), nvbandwidth
(--json), dcgm-diag (`dcgmi diag -j`), fio (--output-format=json), gpu-burn and gpu-fryer (standard output), superbench
(results-summary.jsonl), ocp (OCP Test & Validation 2.0, also Muster's own) and mllog (lines ":::MLLOG" of MLPerf training).
Values are compared with the limits of the SKU profile and the plan; the summary shows the tool's own result beside
Muster's. A value without a limit blocks acceptance: the shipped GPU profiles limit all_reduce at 8 GiB, and
all_gather, reduce_scatter and alltoall at 1 GiB, as the largest size and on all 8 GPUs of a node. The record is marked
IMPORTED and never counts as a run of a node: `fleet`, `history` and `baseline` do not accept it.

Exit code: as of a run, see `muster --help`; 2 also for a file that is damaged, ambiguous or of an unknown format.

Examples:
  muster import all_reduce.txt --sku h100-sxm5-80gb
  muster import nccl/*.json --sku h100-sxm5-80gb --out evidence
  muster import fio.json --sku host --plan storage-limits.toml)";

inline constexpr const char* kCompareExamples = R"(
Nodes are paired by name, devices by their place. With fewer than four nodes each pair of runs is compared as
`muster history compare` does: a metric is worse beyond 2% and beyond what its samples explain. With more, the spread of the
nodes' changes is the noise: listed are metrics that moved on the whole fleet by more than the noise and 2% (temperatures:
5 degrees), and nodes that moved otherwise than the others. The history, which knows more runs, is not needed.

Exit code: 0, or 1 if a metric got worse or an accepted node is no longer accepted.

Examples:
  muster compare runs/driver-570 runs/driver-580
  muster compare runs/n17/record.json runs/n17-again/record.json --json)";

}  // namespace muster
