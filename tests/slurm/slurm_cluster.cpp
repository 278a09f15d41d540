// SPDX-License-Identifier: Apache-2.0
// See slurm_cluster.h.
#include "tests/slurm/slurm_cluster.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

constexpr double kStart = 60;  // seconds; a loaded machine takes long to start six daemons

std::string host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return std::string(name).substr(0, std::string(name).find('.'));
}

/// Ports of the loopback that nobody holds; all are held together, so that no two are the same.
std::vector<int> freePorts(int count) {
  std::vector<int> ports, sockets;
  for (int i = 0; i < count; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no free port");
    ports.push_back(ntohs(address.sin_port));
    sockets.push_back(fd);
  }
  for (const int fd : sockets) close(fd);
  return ports;
}

int parentOf(int pid) {
  const std::string status = readWhole(fmt::format("/proc/{}/status", pid));
  const size_t at = status.find("\nPPid:");
  return at == std::string::npos ? 0 : std::atoi(status.c_str() + at + 6);
}

void killAll(const std::vector<int>& pids) {
  for (const int pid : pids) kill(pid, SIGKILL);
}

}  // namespace

bool within(double seconds, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

SlurmCluster::SlurmCluster(int nodes, const std::string& extra)
    : shared_(folder_.path() / "shared"), nodes_(nodes) {
  // munge refuses a socket that others could not reach, or a folder that they could write to.
  fs::permissions(folder_.path(), fs::perms(0711));
  for (const char* name : {"run", "log", "state", "spool", "shared"})
    fs::create_directories(folder_.path() / name);
  for (int node = 1; node <= nodes; ++node)
    fs::create_directories(folder_.path() / "spool" / fmt::format("node{}", node));
  std::string key(128, '\0');
  std::random_device random;
  for (char& byte : key) byte = static_cast<char>(random());
  const fs::path keyFile = folder_.write("munge.key", key);
  fs::permissions(keyFile, fs::perms(0600));
  writeConfiguration(nodes, extra);
  answerJobs("");
  const std::string run = (folder_.path() / "run").string();
  start("munged", {"munged", "--foreground", "--socket=" + run + "/munge.sock",
                   "--key-file=" + keyFile.string(), "--pid-file=" + run + "/munged.pid",
                   "--seed-file=" + run + "/munge.seed", "--log-file=" + run + "/munged.log"});
  if (!within(kStart, [&] { return fs::exists(run + "/munge.sock"); }))
    throw std::runtime_error("munged did not start: " + logs());
  startController();
  for (int node = 1; node <= nodes; ++node) startNode(node);
  const auto allIdle = [&] {
    const std::string states = command({"sinfo", "--noheader", "--Node", "--format=%T"}).out;
    int idle = 0;
    for (size_t at = states.find("idle\n"); at != std::string::npos; at = states.find("idle\n", at + 1))
      ++idle;
    return idle == nodes_;
  };
  if (!within(kStart, allIdle)) {
    const std::string said = logs();
    stopAll();
    throw std::runtime_error("Slurm did not start: " + said);
  }
}

SlurmCluster::~SlurmCluster() {
  stopAll();
}

void SlurmCluster::writeConfiguration(int nodes, const std::string& extra) {
  const std::string root = folder_.path().string(), name = host();
  const std::vector<int> ports = freePorts(nodes + 1);
  std::string text = fmt::format(
      "ClusterName=muster-test\nSlurmctldHost={0}(127.0.0.1)\nSlurmctldPort={1}\nSlurmUser=root\nSlurmdUser="
      "root\n"
      "AuthType=auth/munge\nAuthInfo=socket={2}/run/munge.sock\nCredType=cred/munge\nMpiDefault=none\n"
      "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n"
      "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSchedulerType=sched/backfill\n"
      "SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval="
      "0\nReturnToService=1\n"
      "SlurmctldPidFile={2}/run/slurmctld.pid\nSlurmdPidFile={2}/run/slurmd-%n.pid\nSlurmdSpoolDir={2}/spool/"
      "%n\n"
      "StateSaveLocation={2}/state\nSlurmctldLogFile={2}/log/slurmctld.log\nSlurmdLogFile={2}/log/"
      "slurmd-%n.log\n"
      "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n"
      "SlurmdParameters=config_overrides\nMaxArraySize=4\nSlurmdTimeout=10\nTreeWidth=65533\nKillWait="
      "5\nJobRequeue=1\n",
      name, ports.back(), root);
  for (int node = 1; node <= nodes; ++node)
    text +=
        fmt::format("NodeName=node{0} NodeHostname={1} NodeAddr=127.0.0.1 Port={2} CPUs=2 RealMemory=1000\n",
                    node, name, ports[static_cast<size_t>(node - 1)]);
  text += "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
  configuration_ = text;
  folder_.write("slurm.conf", configuration_ + extra);
}

void SlurmCluster::start(const std::string& name, const std::vector<std::string>& argv) {
  const std::string log = (folder_.path() / "log" / (name + ".out")).string();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives a test that crashed
    if (std::freopen("/dev/null", "r", stdin) == nullptr ||
        std::freopen(log.c_str(), "a", stdout) == nullptr ||
        std::freopen(log.c_str(), "a", stderr) == nullptr)
      _exit(126);
    setenv("SLURM_CONF", (folder_.path() / "slurm.conf").c_str(), 1);
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  setpgid(pid, pid);
  daemons_.push_back({pid, name});
}

void SlurmCluster::startNode(int node) {
  const std::string name = fmt::format("node{}", node);
  start(name, {"slurmd", "-D", "-N", name, "-f", (folder_.path() / "slurm.conf").string()});
}

void SlurmCluster::answerJobs(const std::string& rule) const {
  const fs::path script = folder_.write(
      "job_submit.lua", "function slurm_job_submit(job_desc, part_list, submit_uid)\n" + rule +
                            "\nreturn slurm.SUCCESS\nend\n"
                            "function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)\n"
                            "return slurm.SUCCESS\nend\n");
  // The controller reads it again when it is newer than the one that it has read, which it knows to the
  // second.
  static int written = 0;
  fs::last_write_time(script, fs::file_time_type::clock::now() + std::chrono::seconds(2 * ++written));
}

pid_t SlurmCluster::slurmd(int node) const {
  const std::string name = fmt::format("node{}", node);
  const auto found = std::find_if(daemons_.begin(), daemons_.end(),
                                  [&](const Daemon& daemon) { return daemon.name == name; });
  return found == daemons_.end() ? -1 : found->pid;
}

void SlurmCluster::stopController() {
  stop("slurmctld", SIGTERM);
}

void SlurmCluster::startController() {
  start("slurmctld", {"slurmctld", "-D", "-f", (folder_.path() / "slurm.conf").string()});
  if (!within(kStart, [&] { return command({"scontrol", "ping"}).exitCode == 0; }))
    throw std::runtime_error("slurmctld did not start: " + logs());
  // It knows nothing of nodes that run until each has answered.
  const auto unknown = [&] {
    return command({"sinfo", "--noheader", "--Node", "--format=%T"}).out.find("unk") != std::string::npos;
  };
  if (slurmd(1) > 0 && !within(kStart, [&] { return !unknown(); }))
    throw std::runtime_error("nodes did not come back to a new slurmctld: " + logs());
}

void SlurmCluster::restartController(const std::string& extra) {
  stopController();
  folder_.write("slurm.conf", configuration_ + extra);
  startController();
}

void SlurmCluster::configure(const std::string& extra) {
  folder_.write("slurm.conf", configuration_ + extra);
  const ProcessResult result = command({"scontrol", "reconfigure"});
  if (result.exitCode != 0) throw std::runtime_error("scontrol reconfigure: " + result.err + logs());
}

void SlurmCluster::stop(const std::string& name, int signal) {
  const auto found = std::find_if(daemons_.begin(), daemons_.end(),
                                  [&](const Daemon& daemon) { return daemon.name == name; });
  if (found == daemons_.end()) return;
  kill(found->pid, signal);
  waitpid(found->pid, nullptr, 0);
  daemons_.erase(found);
}

void SlurmCluster::stopAll() {
  while (!daemons_.empty()) stop(daemons_.back().name, SIGKILL);
  // Jobs and their keepers have sessions of their own; all know this configuration, or run in this folder.
  within(10, [&] {
    const auto left = processesWith(folder_.path().string());
    killAll(left);
    return left.empty();
  });
}

std::string SlurmCluster::logs() const {
  std::string all;
  for (const auto& entry : fs::directory_iterator(folder_.path() / "log")) {
    const std::string text = readWhole(entry.path());
    all += entry.path().filename().string() + ": " + text.substr(text.size() > 600 ? text.size() - 600 : 0) +
           "\n";
  }
  return all;
}

ProcessResult SlurmCluster::command(const std::vector<std::string>& argv, double timeout,
                                    std::map<std::string, std::string> environment) const {
  environment["SLURM_CONF"] = (folder_.path() / "slurm.conf").string();
  return runProcess(
      argv, {.environment = std::move(environment), .input = "", .timeout = timeout, .folder = shared_});
}

ProcessResult SlurmCluster::muster(std::vector<std::string> arguments, double timeout,
                                   std::map<std::string, std::string> environment) const {
  arguments.insert(arguments.begin(), {(distDir() / "bin" / "muster").string(), "slurm"});
  return command(arguments, timeout, std::move(environment));
}

void SlurmCluster::set(const std::string& node, const std::string& state, const std::string& reason) const {
  std::vector<std::string> argv = {"scontrol", "update", "NodeName=" + node, "State=" + state};
  if (!reason.empty()) argv.push_back("Reason=" + reason);
  const ProcessResult result = command(argv);
  if (result.exitCode != 0) throw std::runtime_error("scontrol: " + result.err);
}

std::string SlurmCluster::state(const std::string& node) const {
  const std::string text = command({"sinfo", "--noheader", "--Node", "--nodes=" + node, "--format=%T"}).out;
  return text.substr(0, text.find('\n'));
}

std::string SlurmCluster::reason(const std::string& node) const {
  const std::string text = command({"sinfo", "--noheader", "--Node", "--nodes=" + node, "--format=%E"}).out;
  return text.substr(0, text.find('\n'));
}

void SlurmCluster::cutPower(int node) {
  const std::string name = fmt::format("node{}", node);
  stop(name, SIGKILL);
  // What runs for a job knows its node by name; its keeper, which would report the end, is the parent.
  std::vector<int> keepers, processes;
  for (const int pid : processesWith(folder_.path().string())) {
    const std::string environment = readWhole(fmt::format("/proc/{}/environ", pid));
    if (environment.find("SLURMD_NODENAME=" + name + std::string(1, '\0')) == std::string::npos) continue;
    processes.push_back(pid);
    const int parent = parentOf(pid);
    if (parent > 1 &&
        readWhole(fmt::format("/proc/{}/cmdline", parent)).find("slurmstepd") != std::string::npos)
      keepers.push_back(parent);
  }
  killAll(keepers);
  killAll(processes);
}

void SlurmCluster::powerUp(int node) {
  const std::string name = fmt::format("node{}", node);
  startNode(node);
  within(kStart, [&] { return state(name).find('*') == std::string::npos; });
}

void SlurmCluster::tidy() {
  const auto queueIsEmpty = [&] { return command({"squeue", "--noheader"}).out.empty(); };
  // A job that is ending by itself must not be cancelled: its node would wait for an answer to that for a
  // minute.
  if (!within(3, queueIsEmpty)) {
    (void)command({"scancel", "--quiet", "--state=PENDING", "--user=root"});
    (void)command({"scancel", "--quiet", "--state=RUNNING", "--user=root"});
    within(kStart, queueIsEmpty);
  }
  for (int node = 1; node <= nodes_; ++node) {
    const std::string name = fmt::format("node{}", node);
    int looks = 0;
    within(kStart, [&] {
      const std::string now = state(name);
      // With the queue empty, "mixed" is an old figure: the controller counts cores only when something
      // changes.
      if (now == "idle" || now == "mixed" || now == "allocated") return true;
      // On a loaded machine slurmd may take a minute to notice that a job's processes have gone.
      if (now == "completing" && ++looks == 30)
        (void)command({"scontrol", "update", "NodeName=" + name, "State=DOWN", "Reason=stuck"});
      if (now.find("drain") == 0 || now.find("down") == 0)
        (void)command({"scontrol", "update", "NodeName=" + name, "State=RESUME"});
      return false;
    });
  }
}

}  // namespace muster::testing
