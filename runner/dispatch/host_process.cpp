// SPDX-License-Identifier: Apache-2.0
// See host_process.h. A host has ended when its guard has: end-of-file is never waited for, an orphan may
// hold a pipe.
#include "runner/dispatch/host_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/dispatch/process_state.h"

namespace muster {
namespace {

constexpr size_t kPerTurn = 256u << 10;  // so that one flooding rank cannot starve the others
constexpr size_t kAtEnd = 4u << 20;      // a pipe holds less; a writer that lives on cannot keep us here
constexpr uint64_t kMaxFrameBytes = 256u << 20;  // of one rank in all
constexpr double kGuardSlack = 5;                // seconds a guard may take beyond its own times

/// Reads at most `limit` bytes of what is there; closes `fd` at end-of-file.
void readAvailable(Fd& fd, size_t limit, const std::function<void(std::string_view)>& take) {
  char buffer[65536];
  while (fd.valid() && limit > 0) {
    const ssize_t n = read(fd.get(), buffer, std::min(limit, sizeof buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    if (n == 0) return fd.reset();
    limit -= static_cast<size_t>(n);
    take(std::string_view(buffer, static_cast<size_t>(n)));
  }
}

}  // namespace

HostProcess::HostProcess(HostJob job, double grace, OnFrame onFrame)
    : job_(std::move(job)), grace_(grace), onFrame_(std::move(onFrame)), output_(job_.spec.outputFile) {
  if (job_.spec.request.is_object()) abandonAfter_ = job_.spec.request.value("abandon_after", abandonAfter_);
}

Result<std::unique_ptr<HostProcess>> HostProcess::start(HostJob job, double grace, OnFrame onFrame) {
  std::unique_ptr<HostProcess> process(new HostProcess(std::move(job), grace, std::move(onFrame)));
  process->started_ = systemClock().now();
  process->lastSign_ = process->started_;
  std::vector<std::string> command = process->job_.command;
  for (const HostJob& later : process->job_.after)
    command.insert(command.end(), {"--request", later.spec.requestFile});
  command.emplace_back("--supervised");
  Fd store;
  if (process->job_.spec.connectStore) {
    MUSTER_TRY(store, process->job_.spec.connectStore());
    command.emplace_back("--with-store");
  }
  MUSTER_TRY(process->host_, spawnHost(command, store).context("starting " + process->job_.who));
  return process;
}

HostProcess::~HostProcess() {
  if (ended_ || host_.pid < 0) return;
  // Only on the way out of an error of our own: nothing may be left, and nobody waits for a graceful end.
  kill(host_.pid, SIGKILL);
  killMarked(host_.marker);
  while (waitpid(host_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void HostProcess::appendPollFds(std::vector<pollfd>& fds) const {
  if (ended_) return;
  for (const Fd* fd : {&host_.frames, &host_.output, &host_.report})
    if (fd->valid()) fds.push_back({fd->get(), POLLIN, 0});
}

void HostProcess::service() {
  if (ended_) return;
  readFrames(kPerTurn);
  readOutput(kPerTurn);
  readReport();
  checkGuard();
  if (!ended_) checkPatience();
}

void HostProcess::readFrames(size_t limit) {
  readAvailable(host_.frames, limit, [&](std::string_view bytes) {
    frameBytes_ += bytes.size();
    if (!violation_.empty()) return;
    if (!lines_.feed(bytes, [&](std::string_view line) { takeFrame(line); }))
      breakProtocol(fmt::format("a frame is longer than {} bytes", FrameLines::kMaxLine));
    if (frameBytes_ > kMaxFrameBytes)
      breakProtocol(fmt::format("it sent more than {} bytes", kMaxFrameBytes));
  });
}

void HostProcess::readOutput(size_t limit) {
  readAvailable(host_.output, limit, [&](std::string_view bytes) { output_.add(bytes); });
}

void HostProcess::readReport() {
  readAvailable(host_.report, kPerTurn, [&](std::string_view bytes) {
    if (!reportLines_.feed(bytes, [&](std::string_view line) { takeReport(line); }))
      breakProtocol("the supervisor's report is too long");
  });
}

void HostProcess::takeFrame(std::string_view line) {
  if (!violation_.empty()) return;
  const Result<Json> frame = parseJson(line);
  if (!frame.ok())
    return breakProtocol(
        fmt::format("a frame is not JSON: {} in \"{}\"", frame.error().text(), printable(line, 80)));
  const Status status = protocol_.accept(*frame);
  if (!status.ok()) return breakProtocol(status.error().text());
  frameSince_ = begun_ = true;
  if (onFrame_) onFrame_(job_.spec, *frame);
  if (protocol_.done() && !job_.after.empty()) goOn();
}

/// With the next rank of the same process: for the one that is done, it has ended.
void HostProcess::goOn() {
  readOutput(kPerTurn);
  output_.finish();
  if (!output_.problem().empty()) warn(output_.problem());
  seconds_ = systemClock().now() - started_;
  // How the process ended may be known before its last frames are read: that is about its last rank.
  const bool exited = std::exchange(rankExited_, true);
  const int code = std::exchange(code_, 0), signal = std::exchange(signal_, 0);
  endsBefore_.push_back(end());
  rankExited_ = exited;
  code_ = code;
  signal_ = signal;
  begun_ = false;
  std::vector<HostJob> after = std::move(job_.after);
  job_ = std::move(after.front());
  job_.after.assign(std::make_move_iterator(after.begin() + 1), std::make_move_iterator(after.end()));
  protocol_ = FrameProtocol();
  output_ = OutputKeeper(job_.spec.outputFile);
  started_ = systemClock().now();
  frameBytes_ = 0;
}

void HostProcess::takeReport(std::string_view line) {
  const Result<Json> report = parseJson(line);
  if (!report.ok() || !report->is_object()) return breakProtocol("the supervisor's report is not JSON");
  JsonReader reader(*report, "report");
  std::string type;
  reader.read("type", type);
  if (type == "rank") {
    int pid = -1;
    reader.read("pid", pid);
    rank_ = pid;
  } else if (type == "exit") {
    reader.read("code", code_);
    reader.read("signal", signal_);
    rankExited_ = reader.ok();
    if (endingSince_ < 0) endingSince_ = systemClock().now();
  } else if (type == "abandoned") {
    int pid = 0;
    std::string name, state;
    reader.read("pid", pid);
    reader.read("name", name);
    reader.read("state", state);
    abandoned_ = fmt::format(
        "process {} ({}, state {}) did not end within {:g} s of SIGKILL; it is stuck in the kernel", pid,
        printable(name, 40), printable(state, 4), abandonAfter_);
  } else if (type == "left") {
    std::vector<std::string> names;
    reader.read("names", names);
    warn(fmt::format("{} left {} process(es) running when its rank ended: {}; they were stopped", job_.who,
                     names.size(), printable(join(names, ", "), 200)));
  } else {
    breakProtocol("the supervisor's report has an unknown type");
  }
  if (!reader.ok()) breakProtocol(reader.status().error().text());
}

void HostProcess::warn(const std::string& text) {
  if (onFrame_) onFrame_(job_.spec, {{"type", "log"}, {"level", "warning"}, {"text", text}});
}

void HostProcess::breakProtocol(const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = what;
  stop(StopReason::kProtocol);
}

void HostProcess::stop(StopReason reason, std::string detail) {
  stopWith(SIGTERM, reason, std::move(detail));
}

void HostProcess::stopAtOnce(StopReason reason, std::string detail) {
  stopWith(SIGQUIT, reason, std::move(detail));
}

void HostProcess::stopWith(int signal, StopReason reason, std::string detail) {
  if (ended_ || stop_ != StopReason::kNone || rankExited_) return;
  stop_ = reason;
  stopDetail_ = std::move(detail);
  endingSince_ = systemClock().now();
  kill(host_.pid, signal);
}

RankStatus HostProcess::status() const {
  RankStatus status;
  status.rank = job_.spec.rank;
  status.device = job_.spec.device;
  status.pid = rank_;
  status.casesEnded = protocol_.casesEnded();
  status.caseFailures = protocol_.caseFailures();
  status.lastProgress = protocol_.lastProgress();
  status.ended = ended_ || rankExited_;
  // What we did to it ourselves says nothing about the rank.
  if (failing() && (stop_ == StopReason::kNone || stop_ == StopReason::kProtocol)) {
    status.failure = reason();
    status.signal = signal_;
  }
  if (status.ended || rank_ <= 0) return status;
  if (const auto process = readProcessState(rank_); process.ok()) {
    status.state = process->state;
    status.cpuSeconds = process->cpuSeconds;
  }
  return status;
}

/// A rank that waits for a CPU or a disk is kept from its work: a busy machine is no reason to call it hung.
std::string HostProcess::hang(const HangLimits& limits) {
  if (limits.idle <= 0 || ended_ || rankExited_ || stop_ != StopReason::kNone) return "";
  const double now = systemClock().now();
  // Before the rank and after it, its guard is the one at work.
  auto process = readProcessState(rank_ > 0 ? rank_ : host_.pid);
  if (!process.ok() || process->state == 'Z') process = readProcessState(host_.pid);
  const double used = process.ok() ? process->cpuSeconds : cpuSeconds_;
  const bool kept = process.ok() && (process->state == 'R' || process->state == 'D');
  if (frameSince_) cpuAtFrame_ = used;
  if (frameSince_ || kept || used != cpuSeconds_) lastSign_ = now;
  frameSince_ = false;
  cpuSeconds_ = used;
  if (now - lastSign_ > limits.idle) return formatQuantity(limits.idle, "s");
  if (used - cpuAtFrame_ > limits.busy) return formatQuantity(limits.busy, "s") + " of CPU time";
  return "";
}

void HostProcess::checkGuard() {
  const pid_t pid = waitpid(host_.pid, &guardStatus_, WNOHANG);
  // ECHILD: somebody in this process ignores SIGCHLD, so its status is lost; only the supervisor's report
  // then counts.
  if (pid == host_.pid || (pid < 0 && errno == ECHILD)) finish();
}

/// A guard ends by itself in bounded time; one that does not was stopped or is stuck.
void HostProcess::checkPatience() {
  if (endingSince_ < 0 || systemClock().now() < endingSince_ + grace_ + abandonAfter_ + kGuardSlack) return;
  guardLost_ = true;
  kill(host_.pid, SIGKILL);
  if (!killMarked(host_.marker)) abandoned_ = "its supervisor did not end all processes in time";
  waitpid(host_.pid, &guardStatus_, WNOHANG);
  finish();
}

void HostProcess::finish() {
  readReport();
  readFrames(kAtEnd);
  readOutput(kAtEnd);
  torn_ = lines_.torn();
  // A guard that did not tell how its rank ended was killed itself: its rank dies with it, orphans are ours
  // to end.
  if (!rankExited_ && abandoned_.empty()) killMarked(host_.marker);
  output_.finish();
  if (!output_.problem().empty()) warn(output_.problem());
  host_.frames.reset();
  host_.output.reset();
  host_.report.reset();
  host_.lifeline.reset();
  seconds_ = systemClock().now() - started_;
  ended_ = true;
}

bool HostProcess::failing() const {
  if (ended_) return state() != RankEnd::State::kOk;
  return !violation_.empty() || !abandoned_.empty() || (rankExited_ && (code_ != 0 || signal_ != 0));
}

}  // namespace muster
