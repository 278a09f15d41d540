// SPDX-License-Identifier: Apache-2.0
// See hosts.h.
#include "tests/cluster/hosts.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <iterator>
#include <sstream>
#include <stdexcept>

namespace muster::testing {
namespace {

constexpr int kAllTraffic = 1;  ///< htb class of what no filter takes out
constexpr int kFirstPeer = 16;  ///< htb class of what goes to host 0

/// Runs a command that must work.
void must(const std::vector<std::string>& command) {
  const ProcessResult result = runProcess(command);
  if (result.exitCode == 0) return;
  std::string text;
  for (const std::string& word : command) text += word + " ";
  throw std::runtime_error(text + "failed: " + result.err);
}

/// The same of a line of words.
void trafficControl(const std::string& line) {
  std::istringstream words(line);
  must({std::istream_iterator<std::string>(words), {}});
}

}  // namespace

std::string Hosts::whyNot() {
  if (geteuid() != 0) return "network namespaces need root";
  const std::string name = fmt::format("muster-try-{}", getpid());
  const ProcessResult made = runProcess({"ip", "netns", "add", name});
  if (made.exitCode != 0)
    return "`ip netns add` failed: " +
           (made.err.empty() ? std::string("iproute2 is not installed") : made.err);
  runProcess({"ip", "netns", "del", name});
  return "";
}

std::string Hosts::name(int host) {
  return fmt::format("n{}", host);
}

std::string Hosts::address(int host) {
  return fmt::format("10.77.0.{}", host + 1);
}

std::string Hosts::space(int host) const {
  return fmt::format("{}-n{}", prefix_, host);
}

std::string Hosts::hub() const {
  return prefix_ + "-hub";
}

Hosts::Hosts(int count) : count_(count), prefix_(fmt::format("muster-{}", getpid())) {
  must({"ip", "netns", "add", hub()});
  must({"ip", "-n", hub(), "link", "add", "br0", "type", "bridge"});
  must({"ip", "-n", hub(), "link", "set", "br0", "up"});
  for (int host = 0; host < count; ++host) addHost(host);
}

void Hosts::addHost(int host) {
  const std::string port = fmt::format("p{}", host);
  must({"ip", "netns", "add", space(host)});
  must(
      {"ip", "-n", hub(), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space(host)});
  must({"ip", "-n", hub(), "link", "set", port, "master", "br0", "up"});
  must({"ip", "-n", space(host), "addr", "add", address(host) + "/24", "dev", "eth0"});
  must({"ip", "-n", space(host), "link", "set", "lo", "up"});
  must({"ip", "-n", space(host), "link", "set", "eth0", "up"});
}

Hosts::~Hosts() {
  // A namespace lives on while processes do: none must be left, whatever a test came to.
  for (int host = 0; host < count_; ++host) {
    for (const int pid : processes(host, "")) kill(pid, SIGKILL);
    runProcess({"ip", "netns", "del", space(host)});
  }
  runProcess({"ip", "netns", "del", hub()});
}

std::string Hosts::remoteShell() const {
  return "#!/bin/sh\n# The last number of a host's address is its own plus one.\nhost=$((${1##*.} - "
         "1))\nshift\n"
         "exec nsenter --net=/run/netns/" +
         prefix_ + "-n$host unshare --uts sh -c \"hostname n$host && $*\"\n";
}

std::future<ProcessResult> Hosts::start(int host, const std::vector<std::string>& command,
                                        const ProcessOptions& options) {
  // Not `ip netns exec`: it mounts a new /sys, which shows no control groups.
  std::vector<std::string> all = {"nsenter", "--net=/run/netns/" + space(host), "unshare", "--uts", "sh",
                                  "-c",      "hostname \"$0\" && exec \"$@\"",  name(host)};
  all.insert(all.end(), command.begin(), command.end());
  return std::async(std::launch::async, [all, options] { return runProcess(all, options); });
}

void Hosts::setLink(int host, bool up) {
  // At the bridge, so that the host itself keeps its addresses and routes: packets just vanish.
  must({"ip", "-n", hub(), "link", "set", fmt::format("p{}", host), up ? "up" : "down"});
}

/// A class of the device's htb. The burst lets a sender that the scheduler kept waiting catch up what it
/// missed in up to 10 ms at 100 Mbit/s; hosts share the few cores of one machine, and that must not look like
/// a slow link.
void Hosts::shape(const std::string& space, const std::string& device, int shapeClass,
                  const std::string& rate) {
  trafficControl(
      fmt::format("tc -n {} class replace dev {} parent 1: classid 1:{:x} htb rate {} burst 128kb cburst "
                  "128kb quantum 60000",
                  space, device, shapeClass, rate));
}

void Hosts::limit(int host, const std::string& rate) {
  // htb and not tbf: tbf cannot treat one peer differently, and cuts large segments apart, which costs much
  // CPU.
  for (const auto& [where, device] :
       {std::pair{space(host), std::string("eth0")}, {hub(), fmt::format("p{}", host)}}) {
    const ProcessResult present = runProcess({"tc", "-n", where, "qdisc", "show", "dev", device});
    if (present.out.find("qdisc htb 1:") == std::string::npos)
      trafficControl(fmt::format("tc -n {} qdisc replace dev {} root handle 1: htb default {:x}", where,
                                 device, kAllTraffic));
    shape(where, device, kAllTraffic, rate);
  }
}

void Hosts::limitLink(int one, int other, const std::string& rate) {
  for (const auto& [from, to] : {std::pair{one, other}, {other, one}}) {
    const int shapeClass = kFirstPeer + to;
    shape(space(from), "eth0", shapeClass, rate);
    trafficControl(fmt::format(
        "tc -n {} filter replace dev eth0 parent 1: protocol ip prio 1 u32 match ip dst {}/32 flowid 1:{:x}",
        space(from), address(to), shapeClass));
  }
}

std::vector<int> Hosts::processes(int host, const std::string& text) const {
  std::istringstream lines(runProcess({"ip", "netns", "pids", space(host)}).out);
  std::vector<int> found;
  for (int pid = 0; lines >> pid;)
    if (readWhole(fmt::format("/proc/{}/cmdline", pid)).find(text) != std::string::npos) found.push_back(pid);
  return found;
}

}  // namespace muster::testing
