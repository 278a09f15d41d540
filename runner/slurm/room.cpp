// SPDX-License-Identifier: Apache-2.0
// Computes how many more jobs Slurm accepts.
#include "runner/slurm/room.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "runner/core/text.h"
#include "runner/slurm/account_limits.h"

namespace muster::slurm {
namespace {

constexpr int kDefaultMaxJobCount = 10000;  // slurm.conf(5)

}  // namespace

Result<QueueRoom> queueRoom(const std::map<std::string, std::string>& configuration, size_t known) {
  int most = kDefaultMaxJobCount;
  if (const auto found = configuration.find("MaxJobCount"); found != configuration.end()) {
    const std::string& text = found->second;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), most);
    if (failure != std::errc() || end != text.data() + text.size())
      return Error{ErrorCode::kProtocol,
                   fmt::format("scontrol reports MaxJobCount = {}, expected a number", printable(text, 40)),
                   ""};
  }
  const int there = static_cast<int>(std::min<size_t>(known, static_cast<size_t>(std::max(most, 0))));
  return QueueRoom{most - there, fmt::format("MaxJobCount is {}, and Slurm knows {} jobs", most, known)};
}

Result<QueueRoom> askQueueRoom(const JobSettings& jobs, int own) {
  MUSTER_TRY(const auto configuration, readConfiguration());
  MUSTER_TRY(const auto known, readJobs());
  MUSTER_TRY(QueueRoom room, queueRoom(configuration, known.size()));
  if (const auto enforced = configuration.find("AccountingStorageEnforce");
      enforced != configuration.end() && enforced->second.find("limits") != std::string::npos) {
    MUSTER_TRY(const std::string limits, readAssociations());
    const auto account = accountRoom(limits, {geteuid(), jobs.account, jobs.partition, jobs.qos});
    if (account && account->jobs < room.jobs) room = *account;
  }
  const int left = std::max(jobs.mostJobs - own, 0);
  if (jobs.mostJobs > 0 && left < room.jobs)
    return QueueRoom{left, fmt::format("--most-jobs is {}", jobs.mostJobs)};
  return room;
}

Status checkRoom(const QueueRoom& room) {
  if (room.jobs >= kLeastJobs) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("Slurm accepts {} more jobs ({}), but a run needs at least {} at the same time; wait until "
                  "others have ended (for MaxJobCount: plus MinJobAge seconds), or have that limit raised",
                  room.jobs, room.why, kLeastJobs),
      ""};
}

}  // namespace muster::slurm
