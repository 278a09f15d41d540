// SPDX-License-Identifier: Apache-2.0
// Runs a group of muster-host processes with deadlines.
#include "runner/dispatch/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "runner/core/clock.h"
#include "runner/core/units.h"
#include "runner/dispatch/host_process.h"
#include "runner/system/trust.h"

namespace muster {
namespace {

constexpr double kTick = 0.1;  // seconds
constexpr double kStatusPause = 0.25;
constexpr double kWakePause = 0.01;  // a wakeFd that nobody empties must not make us spin
constexpr mode_t kPrivate = 0600;

/// Requests are not fsynced: they matter to a person who reruns a rank, not to a resumed run.
Status writeRequest(const std::filesystem::path& path, const std::string& text) {
  MUSTER_TRY(const Fd file, openOwnFile(path, O_WRONLY | O_TRUNC, kPrivate));
  const ssize_t written = write(file.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size()))
    return Error{ErrorCode::kInternal, "cannot write the request: " + errnoText(written < 0 ? errno : ENOSPC),
                 path};
  return {};
}

/// The hosts of one group, from their start to the last end.
class Group {
 public:
  explicit Group(const GroupOptions& options) : options_(options), started_(systemClock().now()) {}

  Status start(std::vector<HostJob> jobs) {
    for (HostJob& job : jobs) {
      MUSTER_TRY(auto host, HostProcess::start(std::move(job), options_.grace, options_.onFrame));
      hosts_.push_back(std::move(host));
    }
    return {};
  }

  void run() {
    while (!allEnded()) {
      wait();
      // Before their ends are looked at: the signal that ended the run may have reached the ranks as well.
      if (options_.cancelled != nullptr && options_.cancelled->load()) stopAll(StopReason::kCancelled, "");
      for (const auto& host : hosts_) host->service();
      showStatus(false);
      stopWhereNeeded();
      tick();
    }
    if (!late_) showStatus(true);  // what they said last
  }

  std::vector<std::unique_ptr<HostProcess>> take() { return std::move(hosts_); }

 private:
  [[nodiscard]] bool allEnded() const {
    return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->ended(); });
  }

  void wait() {
    std::vector<pollfd> fds;
    for (const auto& host : hosts_) host->appendPollFds(fds);
    const double now = systemClock().now();
    double pause = std::clamp(std::min(lastTick_ + kTick, started_ + options_.timeout) - now, 0.001, kTick);
    // A guard that exits closes its report just before it can be waited for.
    const bool closing =
        std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->closing(); });
    if (closing) pause = 0.001;
    const bool listen = options_.wakeFd >= 0 && now >= wakeAgain_;
    if (listen) fds.push_back({options_.wakeFd, POLLIN, 0});
    if (!listen && options_.wakeFd >= 0) pause = std::min(pause, kWakePause);
    const int ready = poll(fds.data(), fds.size(), static_cast<int>(pause * 1000 + 0.999));
    woken_ = ready > 0 && listen && fds.back().revents != 0;
    if (woken_) wakeAgain_ = systemClock().now() + kWakePause;
  }

  void stopWhereNeeded() {
    if (!late_ && systemClock().now() >= started_ + options_.timeout) {
      late_ = true;
      showStatus(true);
    }
    if (late_) stopAll(StopReason::kTimeout, formatQuantity(options_.timeout, "s"));
    stopHung();
    if (options_.groupLost)
      if (const std::string why = options_.groupLost(); !why.empty())
        for (const auto& host : hosts_) host->stopAtOnce(StopReason::kPeer, why);
    if (!options_.failTogether) return;
    const auto culprit =
        std::find_if(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->failing(); });
    if (culprit != hosts_.end())
      stopAll(StopReason::kPeer, (*culprit)->job().who + " " + (*culprit)->reason());
  }

  void stopHung() {
    const double now = systemClock().now();
    if (now < lastLook_ + kStatusPause) return;
    lastLook_ = now;
    for (const auto& host : hosts_)
      if (const std::string hang = host->hang(options_.hang); !hang.empty())
        host->stop(StopReason::kHung, hang);
  }

  void stopAll(StopReason reason, const std::string& detail) {
    for (const auto& host : hosts_) host->stop(reason, detail);
  }

  void showStatus(bool now) {
    if (!options_.onStatus || (late_ && !now)) return;
    const auto failing =
        std::count_if(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->failing(); });
    const double time = systemClock().now();
    if (!now && failing == failing_ && time < lastStatus_ + kStatusPause) return;
    lastStatus_ = time;
    failing_ = failing;
    std::vector<RankStatus> all;
    all.reserve(hosts_.size());
    for (const auto& host : hosts_) all.push_back(host->status());
    options_.onStatus(all);
  }

  void tick() {
    const double now = systemClock().now();
    if (!woken_ && now < lastTick_ + kTick) return;
    lastTick_ = now;
    if (options_.onTick) options_.onTick(now - started_);
  }

  const GroupOptions& options_;
  double started_;
  double lastTick_ = 0;
  double lastStatus_ = 0;
  double lastLook_ = 0;
  std::ptrdiff_t failing_ = 0;
  bool late_ = false;
  double wakeAgain_ = 0;
  bool woken_ = false;
  std::vector<std::unique_ptr<HostProcess>> hosts_;
};

/// See GroupOptions::processes. Each process ends at least one more of the ranks.
Result<std::vector<RankEnd>> runInTurn(const std::vector<HostJob>& jobs, const GroupOptions& options) {
  std::vector<std::optional<RankEnd>> ends(jobs.size());
  const auto most = static_cast<size_t>(options.processes);
  while (true) {
    std::vector<size_t> left;
    for (size_t i = 0; i < jobs.size(); ++i)
      if (!ends[i]) left.push_back(i);
    if (left.empty()) break;
    std::vector<HostJob> firsts;
    std::vector<size_t> begins;
    for (size_t part = 0; part < std::min(most, left.size()); ++part) {
      begins.push_back(part * left.size() / std::min(most, left.size()));
      firsts.push_back(jobs[left[begins.back()]]);
      const size_t end = (part + 1) * left.size() / std::min(most, left.size());
      for (size_t i = begins.back() + 1; i < end; ++i) firsts.back().after.push_back(jobs[left[i]]);
    }
    MUSTER_TRY(const auto hosts, superviseHosts(std::move(firsts), options));
    for (size_t part = 0; part < hosts.size(); ++part) {
      size_t at = begins[part];
      for (const RankEnd& end : hosts[part]->endsBefore()) ends[left[at++]] = end;
      if (hosts[part]->begun() || at == begins[part]) ends[left[at]] = hosts[part]->end();
    }
  }
  std::vector<RankEnd> all;
  for (std::optional<RankEnd>& end : ends) all.push_back(std::move(*end));
  return all;
}

}  // namespace

Result<std::vector<std::unique_ptr<HostProcess>>> superviseHosts(std::vector<HostJob> jobs,
                                                                 const GroupOptions& options) {
  Group group(options);
  MUSTER_CHECK_OK(group.start(std::move(jobs)));
  group.run();
  return group.take();
}

Result<HostJob> rankJob(const RankSpec& spec, const GroupOptions& options) {
  HostJob job;
  job.spec = spec;
  if (!job.spec.request.contains("grace")) job.spec.request["grace"] = options.grace;
  job.who = spec.device.empty() ? fmt::format("rank {}", spec.rank)
                                : fmt::format("rank {} ({})", spec.rank, spec.device);
  job.command = {options.hostExecutable, "--request", spec.requestFile};
  job.cases = static_cast<int>(job.spec.request.contains("cases") ? job.spec.request["cases"].size() : 0);
  MUSTER_CHECK_OK(writeRequest(spec.requestFile, dumpJson(job.spec.request, 1) + "\n"));
  return job;
}

Result<std::vector<RankEnd>> runGroup(const std::vector<RankSpec>& ranks, const GroupOptions& options) {
  std::vector<HostJob> jobs;
  for (const RankSpec& spec : ranks) {
    MUSTER_TRY(HostJob job, rankJob(spec, options));
    jobs.push_back(std::move(job));
  }
  if (options.processes > 0) return runInTurn(jobs, options);
  MUSTER_TRY(const auto hosts, superviseHosts(std::move(jobs), options));
  std::vector<RankEnd> ends;
  ends.reserve(hosts.size());
  for (const auto& host : hosts) ends.push_back(host->end());
  return ends;
}

}  // namespace muster
