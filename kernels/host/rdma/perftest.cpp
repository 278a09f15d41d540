// SPDX-License-Identifier: Apache-2.0
// perftest as the engine of RDMA transfers, under supervision.
#include "kernels/host/rdma/perftest.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/host/inventory/root.h"
#include "kernels/host/rdma/perftest_output.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/system/trust.h"

namespace muster {

namespace {

constexpr double kLook = 0.02;   // seconds between looks at processes and at the wish to stop
constexpr double kAskTime = 10;  // seconds that --version and --help may take
constexpr double kLastWordsTime = 0.5;
constexpr size_t kMostOutput = 64u << 10;
constexpr int kPortAttempts = 3;  // another program may take a free TCP port before perftest does

const char* programName(RdmaMethod method) {
  return method == RdmaMethod::kWriteBandwidth ? "ib_write_bw" : "ib_send_lat";
}

std::string sideName(const RdmaTransfer& transfer, const char* side) {
  return fmt::format("{} ({} on {})", programName(transfer.method), side, transfer.portName());
}

/// A TCP port that was free a moment ago: perftest cannot choose one by itself.
Result<int> freeTcpPort() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  if (!socket.valid() || bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return Error{ErrorCode::kIo, "cannot find a free TCP port: " + errnoText(errno), ""};
  return ntohs(address.sin_port);
}

/// Whether something listens on a TCP port here. Asking the kernel's table, since a trial connection would be
/// taken for the client: perftest accepts exactly one.
bool listens(int tcpPort) {
  constexpr size_t kMostTable = 16u << 20;
  const std::string suffix = fmt::format(":{:04X}", tcpPort);
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const auto text = Root().text(table, kMostTable);
    if (!text.ok()) continue;
    for (const std::string& line : split(*text, '\n')) {
      // "   0: 00000000:4853 00000000:0000 0A ...": slot, local address, remote address, state; 0A listens.
      const size_t local = line.find(suffix + " ");
      if (local != std::string::npos && line.find(" 0A ") != std::string::npos && local < line.find(" 0A "))
        return true;
    }
  }
  return false;
}

Result<ChildProcess> startEngine(ProgramSpec program) {
  program.diesWithThread = true;
  program.oneOutput = true;
  program.mostOutput = kMostOutput;
  return ChildProcess::start(std::move(program));
}

/// Keeps the calling thread, and what it starts, on the processors of an RDMA device's NUMA node. Does
/// nothing where that node is not told or its processors are not for this process.
class NodeBinding {
 public:
  NodeBinding(const std::string& sysfs, const std::string& device) {
    const int64_t node = Root().integerOr(sysfs + "/class/infiniband/" + device + "/device/numa_node", -1);
    cpu_set_t near;
    CPU_ZERO(&near);
    for (const int cpu :
         parseCpuList(Root().factOr(fmt::format("{}/devices/system/node/node{}/cpulist", sysfs, node))))
      if (cpu < CPU_SETSIZE) CPU_SET(cpu, &near);
    bound_ = sched_getaffinity(0, sizeof before_, &before_) == 0 && CPU_COUNT(&near) > 0 &&
             sched_setaffinity(0, sizeof near, &near) == 0;
  }
  ~NodeBinding() {
    if (bound_) (void)sched_setaffinity(0, sizeof before_, &before_);
  }
  NodeBinding(const NodeBinding&) = delete;
  NodeBinding& operator=(const NodeBinding&) = delete;

 private:
  cpu_set_t before_{};
  bool bound_ = false;
};

/// ChildProcess::service, with the last words of one that printed too much.
Status look(ChildProcess& process, double seconds) {
  const Status status = process.service(seconds);
  if (status.ok()) return status;
  return Error{status.error().code, status.error().message + "; " + lastWords(process.out()), ""};
}

/// How it ended, unless by itself with code 0: "ib_write_bw was killed by signal 11 (SIGSEGV); it printed:
/// ...".
Status verdictOf(const ChildProcess& process) {
  if (process.exitCode() == 0) return {};
  const std::string how = process.signal() > 0 ? fmt::format("was killed by signal {} (SIG{})",
                                                             process.signal(), sigabbrev_np(process.signal()))
                                               : fmt::format("ended with code {}", process.exitCode());
  return Error{ErrorCode::kIo,
               fmt::format("{} {}; {}", process.program().shownName(), how, lastWords(process.out())), ""};
}

/// A killed process that stays is the worse news.
Status killed(ChildProcess& process, Error why) {
  const Status dead = process.kill();
  return dead.ok() ? std::move(why) : Status(dead);
}

/// Ends what has run for too long.
Status outOfTime(ChildProcess& process, const Patience& patience, double timeout) {
  const std::string& who = process.program().shownName();
  if (patience.wasCancelled()) return killed(process, {ErrorCode::kTimeout, who + " was cancelled", ""});
  return killed(process, {ErrorCode::kTimeout,
                          fmt::format("{} did not end within {:g} s and was killed; {}", who, timeout,
                                      lastWords(process.out())),
                          ""});
}

/// How processes ended that did not end well: the death by a signal first, since the other side's complaint
/// is often only its consequence.
Status verdictOf(const std::vector<ChildProcess*>& sides) {
  std::vector<std::string> texts;
  for (const ChildProcess* side : sides) {
    const Status verdict = side->ended() ? verdictOf(*side) : Status();
    if (verdict.ok()) continue;
    const std::string text = verdict.error().message;
    const bool bySignal = text.find(" was killed by signal ") != std::string::npos;
    texts.insert(bySignal ? texts.begin() : texts.end(), text);
  }
  if (texts.empty()) return {};
  return Error{ErrorCode::kIo, join(texts, " || "), ""};
}

/// Waits until all have ended well. Once one has not, the others get a moment to say why.
Status superviseSides(const std::vector<ChildProcess*>& sides, const Patience& patience, double timeout) {
  double failedAt = 0;
  while (true) {
    bool running = false;
    for (ChildProcess* side : sides) {
      MUSTER_CHECK_OK(look(*side, kLook / 2));
      running |= !side->ended();
    }
    Status verdict = verdictOf(sides);
    if (!running) return verdict;
    if (!verdict.ok() && failedAt == 0) failedAt = systemClock().now();
    const bool hadItsMoment = failedAt > 0 && systemClock().now() > failedAt + kLastWordsTime;
    if (!patience.over() && !hadItsMoment) continue;
    if (!verdict.ok()) return verdict;
    for (ChildProcess* side : sides)
      if (!side->ended()) return outOfTime(*side, patience, timeout);
  }
}

}  // namespace

std::vector<std::string> perftestArguments(const RdmaTransfer& transfer, int tcpPort, const std::string& host,
                                           bool dmaBuf) {
  std::vector<std::string> arguments = {"-d", transfer.device,
                                        "-i", std::to_string(transfer.port),
                                        "-p", std::to_string(tcpPort),
                                        "-s", std::to_string(transfer.bytes),
                                        "-S", std::to_string(transfer.serviceLevel),
                                        "-F"};
  const auto add = [&](std::vector<std::string> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  if (transfer.method == RdmaMethod::kWriteBandwidth)
    add({"--report_gbits", "-D", std::to_string(transfer.seconds), "-q",
         std::to_string(transfer.queuePairs)});
  else
    add({"-n", std::to_string(transfer.iterations)});
  if (transfer.method == RdmaMethod::kWriteBandwidth && transfer.bothWays) add({"-b"});
  if (transfer.gidIndex >= 0) add({"-x", std::to_string(transfer.gidIndex)});
  if (transfer.trafficClass >= 0) add({fmt::format("--tclass={}", transfer.trafficClass)});
  if (transfer.gpu >= 0) add({fmt::format("--use_cuda={}", transfer.gpu)});
  if (transfer.gpu >= 0 && dmaBuf) add({"--use_cuda_dmabuf"});
  if (!host.empty()) add({host});
  return arguments;
}

bool Patience::over() const {
  return systemClock().now() >= until || wasCancelled();
}

Patience Perftest::patience(double seconds) const {
  return {systemClock().now() + seconds, options_.cancelled};
}

Result<std::string> Perftest::program(RdmaMethod method) const {
  return trustedProgram(programName(method), options_.engineFolder, "perftest", "MUSTER_PERFTEST_DIR");
}

Result<std::string> Perftest::ask(const std::string& path, const char* option) const {
  MUSTER_TRY(ChildProcess process, startEngine({.command = {path, option}, .name = path + " " + option}));
  const Patience limit = patience(kAskTime);
  while (!process.ended() && !limit.over()) MUSTER_CHECK_OK(look(process, kLook));
  // perftest ends with code 0, 1, 10 or 11 after these, depending on its version.
  if (process.ended()) return process.out();
  return outOfTime(process, limit, kAskTime).error();
}

Result<std::string> Perftest::version(RdmaMethod method) const {
  MUSTER_TRY(const std::string path, program(method));
  MUSTER_TRY(const std::string text, ask(path, "--version"));
  constexpr std::string_view kBefore = "Version: ";
  const size_t at = text.find(kBefore);
  if (at == std::string::npos)
    return Error{ErrorCode::kProtocol,
                 fmt::format("{} --version printed no version; {}", path, lastWords(text)), ""};
  const std::string_view rest = std::string_view(text).substr(at + kBefore.size());
  return fmt::format("perftest {} ({})", printable(trim(rest.substr(0, rest.find('\n'))), 32), path);
}

Result<Perftest::Engine> Perftest::prepare(const RdmaTransfer& transfer) const {
  Engine engine;
  MUSTER_TRY(engine.path, program(transfer.method));
  if (transfer.gpu >= 0) {
    MUSTER_TRY(engine.dmaBuf, needsDmaBuf(engine.path));
  }
  return engine;
}

/// How this perftest reaches a GPU's memory on this node: through the module nvidia_peermem, else by DMA-BUF,
/// else not at all.
Result<bool> Perftest::needsDmaBuf(const std::string& path) const {
  MUSTER_TRY(const std::string help, ask(path, "--help"));
  if (help.find("--use_cuda") == std::string::npos)
    return Error{
        ErrorCode::kUnsupported,
        path +
            " is built without CUDA, so it cannot use a GPU's memory; build perftest with CUDA and name its "
            "folder in MUSTER_PERFTEST_DIR",
        ""};
  if (Root().exists(options_.sysfs + "/module/nvidia_peermem")) return false;
  if (help.find("--use_cuda_dmabuf") != std::string::npos) return true;
  return Error{ErrorCode::kUnsupported,
               "the kernel module nvidia_peermem is not loaded and " + path +
                   " is built without DMA-BUF, so it cannot use a GPU's memory; modprobe nvidia_peermem, or "
                   "build perftest with CUDA 11.7 or newer (--use_cuda_dmabuf in its help) and name its "
                   "folder in MUSTER_PERFTEST_DIR",
               ""};
}

/// Client and server alike: they spin on a processor, and their buffers lie where that one is. The GPU's
/// number is its place on the PCI bus.
Result<ChildProcess> Perftest::startSide(const RdmaTransfer& transfer, const Engine& engine, int tcpPort,
                                         const std::string& host) const {
  ProgramSpec program{.command = perftestArguments(transfer, tcpPort, host, engine.dmaBuf),
                      .name = sideName(transfer, host.empty() ? "server" : "client")};
  program.command.insert(program.command.begin(), engine.path);
  if (transfer.gpu >= 0) {
    program.without = {"CUDA_VISIBLE_DEVICES"};
    program.with = {"CUDA_DEVICE_ORDER=PCI_BUS_ID"};
  }
  const NodeBinding bound(options_.sysfs, transfer.device);
  return startEngine(std::move(program));
}

Result<Perftest::Server> Perftest::startServer(const RdmaTransfer& transfer, const Engine& engine,
                                               const Patience& patience) const {
  const std::string who = sideName(transfer, "server");
  for (int attempt = 1;; ++attempt) {
    MUSTER_TRY(const int tcpPort, freeTcpPort());
    MUSTER_TRY(ChildProcess process, startSide(transfer, engine, tcpPort, ""));
    while (!process.ended()) {
      if (patience.over()) return outOfTime(process, patience, transfer.timeout).error();
      MUSTER_CHECK_OK(look(process, kLook));
      if (!process.ended() && listens(tcpPort)) return Server{std::move(process), tcpPort};
    }
    const bool portWasTaken = process.out().find("listen to port") != std::string::npos;
    if (portWasTaken && attempt < kPortAttempts) continue;
    MUSTER_CHECK_OK(verdictOf(process));
    return Error{ErrorCode::kProtocol, who + " ended before a client came; " + lastWords(process.out()), ""};
  }
}

/// Runs the client, and its server beside it where that is here too, until all have ended.
Result<RdmaFigure> Perftest::runClient(const RdmaTransfer& transfer, const Engine& engine,
                                       const std::string& host, int tcpPort, ChildProcess* server,
                                       const Patience& patience) const {
  MUSTER_TRY(ChildProcess client, startSide(transfer, engine, tcpPort, host));
  std::vector<ChildProcess*> sides = {&client};
  if (server != nullptr) sides.push_back(server);
  MUSTER_CHECK_OK(superviseSides(sides, patience, transfer.timeout));
  return parsePerftest(transfer.method, client.out(), transfer.bytes);
}

Result<RdmaFigure> Perftest::loopback(const RdmaTransfer& transfer) const {
  MUSTER_TRY(const Engine engine, prepare(transfer));
  const Patience limit = patience(transfer.timeout);
  MUSTER_TRY(Server server, startServer(transfer, engine, limit));
  return runClient(transfer, engine, "127.0.0.1", server.tcpPort, &server.process, limit);
}

Status Perftest::serve(const RdmaTransfer& transfer, const std::function<Status(int)>& announce) const {
  MUSTER_TRY(const Engine engine, prepare(transfer));
  const Patience limit = patience(transfer.timeout);
  MUSTER_TRY(Server server, startServer(transfer, engine, limit));
  MUSTER_CHECK_OK(announce(server.tcpPort));
  while (!server.process.ended()) {
    if (limit.over()) return outOfTime(server.process, limit, transfer.timeout);
    MUSTER_CHECK_OK(look(server.process, kLook));
  }
  return verdictOf(server.process);
}

Result<RdmaFigure> Perftest::connect(const RdmaTransfer& transfer, const std::string& host,
                                     int tcpPort) const {
  MUSTER_TRY(const Engine engine, prepare(transfer));
  return runClient(transfer, engine, host, tcpPort, nullptr, patience(transfer.timeout));
}

}  // namespace muster
