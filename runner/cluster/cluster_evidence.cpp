// SPDX-License-Identifier: Apache-2.0
// See cluster_evidence.h: what a node sees of its own ranks.
#include "runner/cluster/cluster_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "runner/core/text.h"
#include "runner/dispatch/frame_protocol.h"

namespace muster {
namespace {

constexpr double kRecent = 10;  // seconds over which looks count
constexpr size_t kFewestLooks = 4;

bool asleep(char state) {
  return state == 'S' || state == 'I';
}

}  // namespace

bool namesParts(std::string_view text) {
  return text.find("rank ") != std::string_view::npos || text.find("node ") != std::string_view::npos;
}

void NodeReport::take(std::vector<RankReport> said) {
  ranks = std::move(said);
  std::erase_if(ranks,
                [&](const RankReport& r) { return r.rank < firstRank || r.rank - firstRank >= rankCount; });
}

Json toJson(const RankReport& r) {
  Json runs = Json::array(), why = Json::array();
  for (const auto& [run, text] : r.caseFailures) {
    runs.push_back(run);
    why.push_back(text);
  }
  return {{"rank", r.rank},
          {"device", r.device},
          {"failure", r.failure},
          {"signal", r.signal},
          {"order", r.order},
          {"state", r.state == 0 ? std::string() : std::string(1, r.state)},
          {"state_for", r.stateFor},
          {"active", r.active},
          {"ended", r.ended},
          {"cases_ended", r.casesEnded},
          {"failed_runs", std::move(runs)},
          {"case_failures", std::move(why)}};
}

Result<RankReport> rankReportFromJson(const Json& json, const std::string& path) {
  RankReport report;
  JsonReader reader(json, path);
  std::string state;
  reader.read("rank", report.rank);
  reader.read("device", report.device);
  reader.read("failure", report.failure);
  reader.read("signal", report.signal);
  reader.read("order", report.order);
  reader.read("state", state);
  reader.read("state_for", report.stateFor);
  reader.read("active", report.active);
  reader.read("ended", report.ended);
  reader.read("cases_ended", report.casesEnded);
  std::vector<double> runs;
  std::vector<std::string> why;
  reader.read("failed_runs", runs);
  reader.read("case_failures", why);
  MUSTER_CHECK_OK(reader.status());
  if (!isPlainName(report.device)) report.device.clear();
  // What a library said follows a colon.
  if (namesParts(report.failure.substr(0, report.failure.find(": ")))) report.failure.insert(0, "failed: ");
  report.failure = reasonText(report.failure);
  for (size_t i = 0; i < std::min({runs.size(), why.size(), kMostCaseFailures}); ++i)
    if (runs[i] >= 0 && runs[i] <= INT_MAX)
      report.caseFailures.emplace(static_cast<int>(runs[i]), reasonText(why[i]));
  report.state = state.empty() ? '\0' : state[0];
  return report;
}

bool RankWatch::look(const std::vector<RankStatus>& statuses, double now) {
  bool began = false;
  std::vector<RankReport> before = std::move(reports_);
  reports_.clear();
  for (const RankStatus& status : statuses) {
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&](const RankReport& r) { return r.rank == status.rank; });
    RankReport report = old == before.end() ? RankReport{} : *old;
    report.rank = status.rank;
    report.device = status.device;
    began = began || (report.failure.empty() && !status.failure.empty());
    report.failure = status.failure;
    report.signal = status.signal;
    report.ended = status.ended;
    report.casesEnded = status.casesEnded;
    report.caseFailures = status.caseFailures;
    Track& track = tracks_[status.rank];
    if (track.state != status.state) track.since = now;
    track.state = status.state;
    if (status.state != 0) track.looks.emplace_back(now, !asleep(status.state));
    std::erase_if(track.looks, [&](const auto& look) { return look.first < now - kRecent; });
    report.state = status.state;
    report.stateFor = now - track.since;
    const auto active =
        std::count_if(track.looks.begin(), track.looks.end(), [](const auto& look) { return look.second; });
    if (track.looks.size() >= kFewestLooks)
      report.active = static_cast<double>(active) / static_cast<double>(track.looks.size());
    reports_.push_back(std::move(report));
  }
  return began;
}

void RankWatch::order(int64_t place) {
  for (RankReport& report : reports_)
    if (!report.failure.empty() && report.order == 0) report.order = place;
}

}  // namespace muster
