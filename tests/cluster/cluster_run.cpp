// SPDX-License-Identifier: Apache-2.0
// See cluster_run.h.
#include "tests/cluster/cluster_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

std::string textOf(const WalkPlan& plan) {
  return fmt::format(R"(schema = 1
name = "walk"
sku = "auto"
backend = "host"

[[stage]]
name = "walk"
plugin = "fake-lockstep"
test = "run"
scope = "cluster"
ranks = 1
timeout = "{}"
{}
[stage.params]
steps = {}
work = {}
{}

[[stage]]
name = "after"
plugin = "fake-ok"
test = "run"
scope = "device"
ranks = 1
timeout = "30s"
)",
                     plan.timeout, plan.stage, plan.steps, plan.work, plan.more);
}

}  // namespace

const std::string kAfterStage =
    "[[stage]]\nname = \"after\"\nplugin = \"fake-ok\"\ntest = \"run\"\nscope = \"device\"\nranks = "
    "1\ntimeout = \"30s\"\n\n";

Json hostsAround(int hosts) {
  Json around;
  for (int host = 0; host < hosts; ++host)
    around.push_back({{"node_rank", host}, {"node", Hosts::name(host)}, {"first_rank", host}, {"ranks", 1}});
  return around;
}

std::string clusterWalk(const std::string& name, int steps, const std::string& timeout) {
  return fmt::format(
      "[[stage]]\nname = \"{}\"\nplugin = \"fake-lockstep\"\ntest = \"run\"\nscope = \"cluster\"\nranks = 1\n"
      "timeout = \"{}\"\n[stage.params]\nsteps = {}\n\n",
      name, timeout, steps);
}

ClusterRun::ClusterRun(int count, const WalkPlan& plan)
    : ClusterRun(count, textOf(plan), {"lockstep", "ok"}) {}

ClusterRun::ClusterRun(int count, std::string plan, const std::vector<std::string>& fakes)
    : planText(std::move(plan)),
      hosts(count),
      running_(static_cast<size_t>(count)),
      ended_(static_cast<size_t>(count)),
      ranks_(static_cast<size_t>(count)) {
  const fs::path plugins = dir_.path() / "plugins";
  fs::create_directories(plugins);
  for (const std::string& name : fakes)
    fs::copy_file(buildDir() / "tests/fakes" / fmt::format("fake-{}.so", name),
                  plugins / fmt::format("fake-{}.so", name));
}

fs::path ClusterRun::out(int host) const {
  return dir_.path() / fmt::format("out{}", host);
}

fs::path ClusterRun::folder(int host) const {
  return out(host) / fmt::format("node-{:04}", ranks_.at(static_cast<size_t>(host)));
}

void ClusterRun::start(int host, int rank, const std::vector<std::string>& more,
                       const ProcessOptions& options) {
  ranks_[static_cast<size_t>(host)] = rank;
  const fs::path plan = dir_.write(fmt::format("plan{}.toml", host), planText);
  std::vector<std::string> command = {plan, "--plugins", dir_.path() / "plugins", "--out", out(host)};
  command.insert(command.end(), more.begin(), more.end());
  launch(host, command, options);
}

void ClusterRun::resume(int host, const std::vector<std::string>& more) {
  std::vector<std::string> command = {"--resume", out(host), "--plugins", dir_.path() / "plugins"};
  command.insert(command.end(), more.begin(), more.end());
  launch(host, command);
}

void ClusterRun::launch(int host, const std::vector<std::string>& more, ProcessOptions options) {
  std::vector<std::string> command = {distDir() / "bin/muster",
                                      "run",
                                      "--lost-after",
                                      "3s",
                                      "--nnodes",
                                      std::to_string(hosts.count()),
                                      "--node-rank",
                                      std::to_string(ranks_[static_cast<size_t>(host)]),
                                      "--rendezvous",
                                      Hosts::address(0) + ":29400"};
  command.insert(command.begin(), wrapper.begin(), wrapper.end());
  command.insert(command.end(), more.begin(), more.end());
  options.environment["MUSTER_TOKEN"] = kToken;
  options.timeout = 90;
  running_[static_cast<size_t>(host)] = hosts.start(host, command, options);
}

void ClusterRun::startAll() {
  for (int host = 0; host < hosts.count(); ++host) start(host, host);
}

int ClusterRun::awaitRank(int host, const std::string& stage) {
  const std::string request = fmt::format("{}.rank{}.attempt1", stage, ranks_.at(static_cast<size_t>(host)));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  while (std::chrono::steady_clock::now() < end) {
    for (const int pid : hosts.processes(host, request)) {
      if (readWhole(fmt::format("/proc/{}/comm", pid)) != "muster-rank\n") continue;
      std::this_thread::sleep_for(std::chrono::seconds(1));
      return pid;
    }
    const auto& run = running_.at(static_cast<size_t>(host));
    if (!run || run->wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) break;
  }
  throw std::runtime_error(fmt::format("the walk did not start on host {}", host));
}

void ClusterRun::finish() {
  for (int host = 0; host < hosts.count(); ++host) finish(host);
}

void ClusterRun::finish(int host) {
  auto& running = running_[static_cast<size_t>(host)];
  if (running) ended_[static_cast<size_t>(host)] = running->get();
  running.reset();
}

void ClusterRun::signal(int host, int signal) const {
  for (const int pid : hosts.processes(host, "--node-rank")) kill(pid, signal);
}

void ClusterRun::seeOwnInterfaces() {
  const fs::path own = dir_.path() / "sys";
  fs::create_directories(own);
  wrapper = {
      "unshare",
      "--mount",
      "sh",
      "-c",
      fmt::format("mount -t sysfs own {0} && for part in class/net devices/virtual/net; do mount --bind "
                  "{0}/$part /sys/$part || exit 1; done && exec \"$@\"",
                  own.string()),
      "sh"};
}

ProcessResult ClusterRun::fleet() {
  const fs::path all = dir_.path() / "fleet";
  fs::create_directories(all);
  for (int host = 0; host < hosts.count(); ++host)
    fs::copy(folder(host), all / Hosts::name(host), fs::copy_options::recursive);
  const fs::path nodes = dir_.write("nodes.txt", fmt::format("n[0-{}]\n", hosts.count() - 1));
  return runProcess({distDir() / "bin/muster", "fleet", all, "--expect", nodes, "--same-machine"});
}

Json ClusterRun::fleetResult() const {
  return Json::parse(readWhole(dir_.path() / "fleet/fleet.json"));
}

std::map<std::string, std::string> ClusterRun::states() const {
  std::map<std::string, std::string> nodes;
  const Json fleet = fleetResult();
  for (const Json& node : fleet.at("nodes")) nodes[node.at("node")] = node.at("state");
  return nodes;
}

bool ClusterRun::nothingLeft(int host) const {
  for (int turn = 0; turn < 100; ++turn) {
    if (hosts.processes(host, "").empty()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

Record ClusterRun::record(int host) const {
  auto record = readRecord(folder(host) / "record.json");
  if (record.ok()) return std::move(*record);
  const auto& end = ended_.at(static_cast<size_t>(host));
  ADD_FAILURE() << record.error().text() << "\n" << (end ? end->out + end->err : "it was not started");
  return {};
}

StageRecord ClusterRun::stage(int host, const std::string& name) const {
  for (const StageRecord& stage : record(host).stages)
    if (stage.name == name) return stage;
  ADD_FAILURE() << "host " << host << " has no stage " << name;
  return {};
}

std::string ClusterRun::culprit(int host, const std::string& name) const {
  const Json group = stage(host, name).group;
  return group.is_object() ? group.value("culprit", "") : "";
}

std::string ClusterRun::details(int host, const std::string& name) const {
  std::string text;
  for (const Verdict& verdict : stage(host, name).verdicts) text += verdict.detail + "\n";
  return text;
}

}  // namespace muster::testing
