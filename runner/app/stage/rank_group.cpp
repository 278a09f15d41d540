// SPDX-License-Identifier: Apache-2.0
// Runs all ranks of one attempt and restarts those that die.
#include "runner/app/stage/rank_group.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "runner/app/process/interrupt.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

// How long a simulated rank computes says nothing about what it simulates, so no wall time bounds it.
constexpr double kSimulatedIdle = 20;

constexpr const char* kDeathRemedy =
    "Rerun this rank alone. If it recurs, check its output, dmesg and the GPU.";
constexpr const char* kPeerRemedy =
    "Check the component named here first: for a node its power, network and run output; for a rank its "
    "output and device. Then run the stage again.";

std::vector<CaseRun> runsOf(const Stage& stage, const std::vector<const Case*>& cases) {
  std::vector<CaseRun> runs;
  for (int repeat = 0; repeat < stage.repeat; ++repeat)
    for (const Case* c : cases) runs.push_back({c, repeat});
  return runs;
}

}  // namespace

HangLimits simulatedHang(const Stage& stage) {
  return {kSimulatedIdle, std::max(stage.timeout, kSimulatedIdle)};
}

RankGroup::RankGroup(const StageHere& here, const std::vector<const Case*>& cases, int attempt,
                     std::function<void()> onTick)
    : node_(here.node),
      progress_(here.progress),
      stage_(here.stage),
      plugin_(here.plugin),
      slots_(here.slots),
      place_(here.place),
      attempt_(attempt),
      onTick_(std::move(onTick)),
      collector_(here.plugin, here.test, runsOf(here.stage, cases), attempt) {
  const bool alone = here.stage.scope == Scope::kDevice;
  collector_.setGroup(alone ? 1 : here.place.worldSize, here.place.nodes);
}

double RankGroup::secondsLeft(double begin) const {
  if (node_.simulated()) return std::numeric_limits<double>::infinity();
  return begin + stage_.timeout - systemClock().now();
}

std::vector<size_t> RankGroup::pendingRuns(const RankSlot& slot) const {
  const std::set<size_t>& ended = collector_.endedRuns(slot.rank);
  std::vector<size_t> pending;
  for (size_t i = 0; i < collector_.runs().size(); ++i)
    if (ended.count(i) == 0) pending.push_back(i);
  return pending;
}

RankSpec RankGroup::specFor(const RankSlot& slot, int start) const {
  RankSpec spec;
  spec.rank = slot.rank;
  spec.device = slot.device;
  Json cases = Json::array();
  for (size_t index : pendingRuns(slot)) {
    const CaseRun& run = collector_.runs()[index];
    cases.push_back({{"index", index},
                     {"case", run.planned->id},
                     {"params", run.planned->params},
                     {"repeat", run.repeat},
                     {"attempt", attempt_},
                     {"seed", node_.seed}});
  }
  spec.request = {{"schema", 1},
                  {"plugin", plugin_.path},
                  {"test", stage_.test},
                  {"cases", std::move(cases)},
                  {"context", rankContext(node_, progress_, stage_, slot, place_)},
                  {"artifact_dir", (node_.folder / "artifacts" / stage_.name).string()}};
  if (slot.deviceJson.is_object() && slot.deviceJson.contains("cpus"))
    spec.request["affinity"] = slot.deviceJson["cpus"];
  const std::string name = fmt::format("{}.rank{}.attempt{}{}", stage_.name, slot.rank, attempt_,
                                       start == 0 ? "" : fmt::format(".restart{}", start));
  spec.requestFile = node_.folder / "requests" / (name + ".json");
  spec.outputFile = node_.folder / "output" / (name + ".txt");
  return spec;
}

void RankGroup::showProgress(double begin) {
  onTick_();
  if (!progress_.announced) return;
  node_.view->stageProgress(
      {systemClock().now() - begin, collector_.fraction(slots_.size()), collector_.lastProgress()});
}

void RankGroup::addSoFar(StageEvidence& evidence) const {
  const auto ends = collector_.caseEnds(slots_, CaseEnd::Cause::kCancelled);
  evidence.ends.insert(evidence.ends.end(), ends.begin(), ends.end());
  const auto& measured = collector_.measurements;
  evidence.measurements.insert(evidence.measurements.end(), measured.begin(), measured.end());
}

void RankGroup::failPending(const RankSlot& slot, const std::string& message, CaseEnd::Cause cause) {
  for (size_t index : pendingRuns(slot)) collector_.failRun(slot, index, message, "", cause);
}

bool RankGroup::grouped() const {
  return stage_.scope != Scope::kDevice && place_.worldSize > 1 && !node_.simulated();
}

/// Where one rank of a group can no longer run something, the others would wait for it in vain.
void RankGroup::keepInStep() {
  if (!grouped() || place_.cluster != nullptr) return;
  for (size_t index = 0; index < collector_.runs().size(); ++index) {
    const auto ended = std::find_if(slots_.begin(), slots_.end(), [&](const RankSlot& slot) {
      return collector_.endedRuns(slot.rank).count(index) > 0;
    });
    if (ended == slots_.end()) continue;
    for (const RankSlot& slot : slots_) {
      if (collector_.endedRuns(slot.rank).count(index) > 0) continue;
      const auto stopped = stopped_.find(slot.rank);  // maybe before it came to this case
      collector_.failRun(slot, index,
                         stopped != stopped_.end()
                             ? stopped->second
                             : fmt::format("rank {} of its group had already ended this case", ended->rank),
                         "", CaseEnd::Cause::kGroup);
    }
  }
}

/// How the ranks reach the group's store: of a group on this node alone, it is returned.
Result<std::unique_ptr<StoreServer>> RankGroup::serveStore(std::vector<RankSpec>& specs, int start) const {
  std::unique_ptr<StoreServer> server;
  if (place_.cluster == nullptr) {
    MUSTER_TRY(server, StoreServer::startLocal().context("serving the store of stage " + stage_.name));
  }
  const std::string prefix = fmt::format("{}/attempt{}.start{}/", stage_.name, attempt_, start);
  for (RankSpec& spec : specs)
    spec.connectStore = [this, prefix, raw = server.get()] {
      return raw == nullptr ? place_.cluster->connectStore() : raw->connect(prefix);
    };
  return server;
}

void RankGroup::keepEnd(const RankSlot& slot, const RankEnd& end, StageRecord& record) {
  record.ranks.push_back({slot.rank, slot.device, attempt_, end.state, end.exitCode, signalName(end.signal),
                          end.error, end.lastProgress, end.outputTail, end.rerun});
  if (end.state == RankEnd::State::kAbandoned && !slot.device.empty())
    progress_.quarantined[slot.device] =
        fmt::format("a process of stage {} could not be killed on it", stage_.name);
}

void RankGroup::watchPeers(GroupOptions& options, std::string& lost) {
  ClusterRounds& rounds = place_.cluster->rounds();
  options.onStatus = [&rounds](const std::vector<RankStatus>& all) { rounds.report(all); };
  options.groupLost = [&rounds, &lost] {
    if (lost.empty()) lost = rounds.lost().text;
    return lost;
  };
}

/// What an error of this rank comes from, once the group has named the `faulty`: whatever the others do then,
/// they do because of them.
CaseEnd::Cause RankGroup::causeOf(const RankEnd& end, const std::set<size_t>& faulty) const {
  if (faulty.contains(static_cast<size_t>(end.rank)) || end.state == RankEnd::State::kAbandoned)
    return CaseEnd::Cause::kOwn;
  const bool isOpen = place_.cluster->ending() == StageEnding::kOpen;
  return isOpen || node_.cancelled->load() ? CaseEnd::Cause::kCancelled : CaseEnd::Cause::kGroup;
}

void RankGroup::settleTogether(const std::vector<RankSlot>& slots, const std::vector<RankEnd>& ends,
                               const std::string& lost, double timeLeft, StageRecord& record) {
  RoundSight sight;
  sight.interrupted = node_.cancelled->load();
  sight.lost = lost;
  for (size_t run = 0; run < collector_.runs().size(); ++run) sight.ended.insert(run);
  for (size_t i = 0; i < slots.size(); ++i) {
    keepEnd(slots[i], ends[i], record);
    sight.late = sight.late || ends[i].state == RankEnd::State::kTimeout;
    sight.clean = sight.clean && ends[i].state == RankEnd::State::kOk;
    sight.hurt.merge(collector_.hurtRuns(slots[i].rank));
    const std::set<size_t>& ended = collector_.endedRuns(slots[i].rank);
    sight.begun.insert(ended.begin(), ended.end());
    if (const int open = collector_.openRun(slots[i].rank); open >= 0)
      sight.begun.insert(static_cast<size_t>(open));
    std::erase_if(sight.ended, [&](size_t run) { return ended.count(run) == 0; });
  }
  const RoundVerdict verdict = place_.cluster->endRound(sight, collector_.runs().size(), timeLeft, onTick_);
  finished_ = !verdict.again;
  if (verdict.culprit.empty()) return;
  // Where all ran to its end, another attempt may pass.
  if (verdict.failed.empty())
    failed_ = verdict.culprit;
  else
    nameFaulty(record, verdict.culprit);
  for (size_t i = 0; i < slots.size(); ++i) {
    const CaseEnd::Cause cause = causeOf(ends[i], verdict.ranks);
    std::string message = verdict.culprit;
    if (!ends[i].error.empty() && !ends[i].forPeer) message += "; here: " + ends[i].error;
    const char* remedy = cause == CaseEnd::Cause::kOwn ? kDeathRemedy : kPeerRemedy;
    for (const size_t run : verdict.failed) collector_.overrule(slots[i], run, message, remedy, cause);
    if (finished_) failPending(slots[i], message, cause);
    collector_.explain(slots[i], verdict.culprit, kPeerRemedy);
  }
}

/// A rank that was stopped because of another one did nothing wrong: it misses the run that it was in, and
/// goes on with the others. What it may have said about the end of that run is an echo of the stop.
void RankGroup::settleStopped(const RankSlot& slot, const RankEnd& end) {
  const std::set<size_t>& ended = collector_.endedRuns(slot.rank);
  const int open = collector_.openRun(slot.rank);
  stopped_[slot.rank] = end.error;
  const auto cause = CaseEnd::Cause::kGroup;
  if (open >= 0) {
    collector_.failRun(slot, static_cast<size_t>(open), end.error, kDeathRemedy, cause);
  } else if (!ended.empty() && collector_.wentWrong(slot.rank, *ended.rbegin())) {
    collector_.overrule(slot, *ended.rbegin(), end.error, kDeathRemedy, cause);
  }
}

void RankGroup::settle(const RankSlot& slot, const RankEnd& end, StageRecord& record) {
  keepEnd(slot, end, record);
  const int open = collector_.openRun(slot.rank);
  std::string message = end.error.empty() ? "the rank ended before the case finished" : end.error;
  const std::string why = interruptionText();
  if (end.state == RankEnd::State::kCancelled && !why.empty()) message += ": " + why;
  if (end.forPeer) return settleStopped(slot, end);
  const auto cause =
      end.state == RankEnd::State::kCancelled ? CaseEnd::Cause::kCancelled : CaseEnd::Cause::kOwn;
  if (open >= 0) {
    // The death belongs to the case that was open: none of its other repeats is tried in this attempt.
    const Case* dead = collector_.runs()[static_cast<size_t>(open)].planned;
    for (size_t index : pendingRuns(slot))
      if (collector_.runs()[index].planned == dead)
        collector_.failRun(slot, index, message, kDeathRemedy, cause);
  }
  if (end.state == RankEnd::State::kError && open >= 0) return;  // the rest gets another start
  failPending(slot, message, cause);
  // A bad end outside of a case belongs to no case: it invalidates all results of the rank.
  if (open < 0 && end.state != RankEnd::State::kOk && end.state != RankEnd::State::kCancelled)
    for (size_t i = 0; i < collector_.runs().size(); ++i) collector_.failRun(slot, i, message, kDeathRemedy);
}

Status RankGroup::runOnce(const std::vector<RankSlot>& slots, int start, double begin, StageRecord& record) {
  std::vector<RankSpec> specs;
  specs.reserve(slots.size());
  for (const RankSlot& slot : slots) specs.push_back(specFor(slot, start));
  if (place_.cluster != nullptr) place_.cluster->beginRound(attempt_, start);
  std::unique_ptr<StoreServer> store;
  if (grouped()) {
    MUSTER_TRY(store, serveStore(specs, start));
  }
  GroupOptions options;
  options.hostExecutable = node_.tree.hostExecutable;
  options.timeout = std::max(0.0, secondsLeft(begin));
  options.processes = node_.processes;
  if (node_.simulated()) options.hang = simulatedHang(stage_);
  options.failTogether = stage_.scope != Scope::kDevice;
  options.cancelled = node_.cancelled;
  options.onFrame = [&](const RankSpec& spec, const Json& frame) {
    collector_.take(slots_[static_cast<size_t>(spec.rank - place_.firstRank)], frame);
  };
  options.onTick = [&](double) { showProgress(begin); };
  std::string lost;
  if (place_.cluster != nullptr) watchPeers(options, lost);
  MUSTER_TRY(const std::vector<RankEnd> ends, runGroup(specs, options));
  if (place_.cluster != nullptr) {
    settleTogether(slots, ends, lost, std::max(0.0, secondsLeft(begin)), record);
    return {};
  }
  for (size_t i = 0; i < slots.size(); ++i) settle(slots[i], ends[i], record);
  return {};
}

Status RankGroup::run(StageRecord& record, StageEvidence& evidence) {
  const double begin = systemClock().now();
  for (const RankSlot& slot : slots_)
    if (const auto it = progress_.quarantined.find(slot.device); it != progress_.quarantined.end())
      failPending(slot, slot.device + " is quarantined: " + it->second);

  for (int start = 0;; ++start) {
    keepInStep();
    std::vector<RankSlot> waiting;
    for (const RankSlot& slot : slots_)
      if (!pendingRuns(slot).empty()) waiting.push_back(slot);
    if (waiting.empty() || finished_) break;
    const bool together = place_.cluster != nullptr;  // then only what all agreed on ends it
    if (!together && (node_.cancelled->load() || (start > 0 && secondsLeft(begin) <= 0))) {
      const bool cancelled = node_.cancelled->load();
      const std::string why = interruptionText();
      for (const RankSlot& slot : waiting)
        failPending(slot,
                    !cancelled    ? "the stage timed out"
                    : why.empty() ? "the run was interrupted"
                                  : why,
                    cancelled ? CaseEnd::Cause::kCancelled : CaseEnd::Cause::kOwn);
      break;
    }
    MUSTER_CHECK_OK(runOnce(waiting, start, begin, record));
  }

  if (node_.simulated()) {
    const double span = collector_.deviceTime - progress_.virtualNow;
    if (span > stage_.timeout)
      for (const RankSlot& slot : slots_)
        for (size_t i = 0; i < collector_.runs().size(); ++i)
          collector_.failRun(slot, i,
                             fmt::format("it took {} of simulated time; the timeout is {}",
                                         formatQuantity(span, "s"), formatQuantity(stage_.timeout, "s")));
    // A stage ends at its deadline, whatever time it reported: the next ones must not pay for a wrong figure.
    progress_.virtualNow += std::clamp(span, 0.0, stage_.timeout);
  }
  const auto ends = collector_.caseEnds(slots_);
  evidence.ends.insert(evidence.ends.end(), ends.begin(), ends.end());
  // Frames arrive as ranks happen to run; the record has them in the order of ranks.
  std::stable_sort(collector_.measurements.begin(), collector_.measurements.end(),
                   [](const Measurement& a, const Measurement& b) { return a.rank < b.rank; });
  std::move(collector_.measurements.begin(), collector_.measurements.end(),
            std::back_inserter(evidence.measurements));
  std::move(collector_.artifacts.begin(), collector_.artifacts.end(), std::back_inserter(record.artifacts));
  record.log.insert(record.log.end(), collector_.log.begin(), collector_.log.end());
  return {};
}

}  // namespace muster
