// SPDX-License-Identifier: Apache-2.0
// The options of `muster k8s`.
#include <CLI/CLI.hpp>

#include "runner/app/kube/kube_options.h"

namespace muster {
namespace {

constexpr const char* kExamples = R"(
Runs the plan in one pod per node. kubectl does the work with your kubeconfig; manifests come from the Helm chart in
share/muster/templates/helm/muster, by `helm template`. A plan with stages of scope cluster runs in pods that join each
other; any other plan runs on each node alone. Kubernetes never starts a pod again: that is what resume is for.

Examples:
  muster k8s verify --nodes all
  muster k8s submit plans/node-full.toml --nodes all --image registry.example/muster:0.1.0 --out runs/may --wait
  muster k8s submit plans/cluster.toml --nodes 'gpu[1-8]' --image ... --values site.yaml --controller JobSet
  muster k8s status runs/may
  muster k8s resume runs/may --wait
  muster k8s collect runs/may
  muster k8s render plans/node-quick.toml --kind preflight --values site.yaml > preflight.yaml
  muster k8s cleanup --older-than 7d --dry-run)";

void addCluster(CLI::App* command, KubeOptions& o) {
  command->add_option("--context", o.cluster.context, "context of the kubeconfig (default: the current one)")
      ->type_name("NAME");
  command->add_option("-n,--namespace", o.cluster.space, "namespace (default: the context's)")
      ->type_name("NAME");
}

void addNodes(CLI::App* command, KubeOptions& o, const char* help) {
  command->add_option("--nodes", o.nodes, help)->type_name("LIST");
  command->add_option("--gpu-resource", o.gpuResource, "name of the GPU resource")->capture_default_str();
}

void addChart(CLI::App* command, KubeOptions& o) {
  addSubmitInput(command, o);
  addCluster(command, o);
  command->add_option("--image", o.image, "image with muster; a version or digest, never latest")
      ->type_name("REF");
  command
      ->add_option("--values", o.valueFiles,
                   "file with more values of the chart; these options come after it")
      ->type_name("FILE")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false);
  command->add_option("--controller", o.controller, "what starts the pods of a cluster run (default: Job)")
      ->check(CLI::IsMember({"Job", "JobSet"}));
  command->add_option("--gpus", o.gpus, "GPUs per pod (default: all GPUs Kubernetes lists for the nodes)")
      ->check(CLI::Range(0, 1024));
  command->add_option("--time", o.time, "time limit of a pod (default: sum of the plan's timeouts)")
      ->type_name("DURATION");
}

CLI::App* addOnRun(CLI::App* k8s, KubeOptions& o, const char* name, const char* what) {
  CLI::App* command = k8s->add_subcommand(name, what);
  command->add_option("run", o.run, "run directory")->required();
  return command;
}

void addDryRun(CLI::App* command, KubeOptions& o) {
  auto* group = command->add_option_group("mode", "one is required");
  group->add_flag("--dry-run", o.dryRun, "print the actions; changes nothing");
  group->add_flag("--apply", o.apply, "perform the actions");
  group->require_option(1);
}

void addSubmit(CLI::App* k8s, KubeOptions& o) {
  CLI::App* submit = k8s->add_subcommand("submit", "run a plan on many nodes, one pod each");
  addChart(submit, o);
  addNodes(submit, o, "nodes to test: gpu[1-8],gpu200, or all with GPUs");
  submit->get_option("--nodes")->required();
  submit->add_option("--out", o.out, "run directory on this machine (default: ./muster-k8s-PLAN-TIME)")
      ->type_name("DIR");
  submit->add_flag("--wait", o.wait, "wait for all pods, then collect and return the fleet's exit code");
  submit->footer(kExamples);
}

void addRender(CLI::App* k8s, KubeOptions& o) {
  CLI::App* render = k8s->add_subcommand(
      "render", "print the manifests as plain YAML; changes nothing, and needs no cluster");
  addChart(render, o);
  addNodes(render, o, "nodes by name (default: any nodes, as many as nodeCount of the values)");
  render
      ->add_option("--kind", o.kind,
                   "node, cluster, scheduled or preflight (default: node or cluster, by the plan)")
      ->check(CLI::IsMember({"node", "cluster", "scheduled", "preflight"}));
  render->footer(kExamples);
}

void addVerify(CLI::App* k8s, KubeOptions& o) {
  CLI::App* verify = k8s->add_subcommand(
      "verify", "check nodes, device plugin, taints, RDMA and quotas, and say what to fix; changes nothing");
  addCluster(verify, o);
  addNodes(verify, o, "nodes to check (default: all but the control plane)");
  verify->add_option("--rdma-resource", o.rdmaResource, "RDMA resource that each node must offer")
      ->type_name("NAME");
  verify->add_option("--controller", o.controller, "controller that cluster runs will use")
      ->check(CLI::IsMember({"Job", "JobSet"}));
}

void addRelease(CLI::App* k8s, KubeOptions& o) {
  CLI::App* release =
      addOnRun(k8s, o, "release",
               "remove a node's preflight taint if its record accepts it; called by the preflight pod");
  addCluster(release, o);
  release->add_option("--node", o.nodeName, "the node")->required()->type_name("NAME");
  release->add_option("--taint", o.taint, "key of the taint")->capture_default_str();
  addDryRun(release, o);
}

Result<int> onRun(const KubeOptions& o) {
  MUSTER_TRY(const kube::RunStore run, kube::RunStore::open(o.run));
  return o.wait ? kubeWait(run) : kubeCollect(run);
}

}  // namespace

CLI::App* addKube(CLI::App& app, KubeOptions& o) {
  CLI::App* k8s = app.add_subcommand("k8s", "run a plan on many nodes through Kubernetes");
  k8s->require_subcommand(1);
  addRender(k8s, o);
  addVerify(k8s, o);
  addSubmit(k8s, o);
  addOnRun(k8s, o, "status", "show each node's progress; takes in records of pods that have ended");
  CLI::App* resume =
      addOnRun(k8s, o, "resume", "rerun the plan on nodes that are missing, lost or incomplete");
  resume->add_flag("--rejected", o.rejectedToo,
                   "also rerun rejected nodes, after a repair; old results are kept in attempts/");
  resume->add_flag("--wait", o.wait, "wait for all pods, then collect and return the fleet's exit code");
  addOnRun(k8s, o, "collect", "take in all records, write the fleet report and return its exit code")
      ->add_flag("--wait", o.wait, "wait for all pods first");
  CLI::App* cleanup = k8s->add_subcommand("cleanup", "remove objects of old runs; run directories stay");
  addCluster(cleanup, o);
  cleanup->add_option("--older-than", o.olderThan, "time since the last change, e.g. 7d")
      ->required()
      ->type_name("DURATION");
  addDryRun(cleanup, o);
  addRelease(k8s, o);
  k8s->footer(kExamples);
  return k8s;
}

Result<int> kubeCommand(const CLI::App& app, KubeOptions& o) {
  const std::string name = app.get_subcommands().front()->get_name();
  if (name == "render") return kubeRender(o);
  if (name == "verify") return kubeVerify(o);
  if (name == "submit") return kubeSubmit(o);
  if (name == "status") return kubeStatus(o);
  if (name == "resume") return kubeResume(o);
  if (name == "cleanup") return kubeCleanup(o);
  if (name == "release") return kubeRelease(o);
  return onRun(o);
}

}  // namespace muster
