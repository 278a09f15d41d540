// SPDX-License-Identifier: Apache-2.0
// The ring plugin: forms the group, holds rounds until no question is open, names culprits.
#include <fmt/format.h>

#include <memory>

#include "kernels/loading/open_device.h"
#include "plugins/ring/describe.h"
#include "plugins/ring/report.h"
#include "plugins/ring/solver/leaf_switches.h"
#include "plugins/sdk/group_store.h"
#include "plugins/sdk/test_case.h"
#include "runner/core/units.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::ring {
namespace {

constexpr size_t kRoundsOfARing = 3;  ///< that open one, at most; more are a tournament

Result<Topology> readTopology(const std::string& path, const Members& members) {
  if (path.empty()) return Topology();
  MUSTER_TRY(const std::string text, readPublicFile(path));
  return leafSwitches(text, path, members.names);
}

/// The result of all rounds, the same for every rank of the group.
struct Outcome {
  explicit Outcome(RoundLog rounds) : log(std::move(rounds)) { findings.log = &log; }
  Outcome(const Outcome&) = delete;
  Outcome& operator=(const Outcome&) = delete;

  RoundLog log;
  Findings findings;
  std::vector<double> pauses;
};

/// The last outcome that this process computed, and all that it is a function of. Simulated ranks of a node
/// follow each other in one process, and each would compute the same again.
struct Known {
  std::string key;
  std::shared_ptr<const Outcome> outcome;
};

Known& known() {
  static Known last;
  return last;
}

/// What is the same for all ranks of a node, the scenario's text with it.
std::string groupText(Json context) {
  for (const char* own : {"rank", "local_rank", "device"}) context.erase(own);
  const auto scenario = readFile(context.value("scenario", ""));
  return dumpJson(context) + (scenario.ok() ? *scenario : "");
}

class RingSession : public sdk::Session {
 public:
  RingSession(const sdk::Host& host, const Json& context, Place place, OpenDevice device)
      : host_(host),
        store_(host),
        group_(groupText(context)),
        place_(std::move(place)),
        device_(std::move(device)) {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    MUSTER_TRY(const Params params, sdk::readParams<Params>(*input.params));
    MUSTER_TRY(const auto communicator, formGroup(params));
    MUSTER_TRY(const Members members, gatherMembers(place_, *communicator));
    if (members.count() < 2)
      return Error{ErrorCode::kUnsupported,
                   "a ring needs at least two nodes or two ranks; this group has one", ""};
    MUSTER_TRY(Topology topology, readTopology(params.topology, members));
    MUSTER_TRY(const auto meter, Meter::prepare(*device_.device, *communicator, members, params.meter));
    const std::string key =
        communicator->isSteady() ? fmt::format("{}\n{}\n{}", formed_, group_, dumpJson(caseJson)) : "";
    std::shared_ptr<const Outcome> outcome;
    if (place_.rank != 0 && !key.empty() && known().key == key) {  // rank 0 speaks for the group
      outcome = known().outcome;
      for (const double seconds : outcome->pauses) meter->pause(seconds);
    } else {
      MUSTER_TRY(outcome, measure(*meter, members, std::move(topology), params));
      known() = {key, outcome};
    }
    return reportFindings(host_, members, *communicator, outcome->findings, device_.device->now());
  }

 private:
  Result<std::shared_ptr<const Outcome>> measure(Meter& meter, const Members& members, Topology topology,
                                                 const Params& params) {
    const auto outcome = std::make_shared<Outcome>(
        RoundLog(members.count(), std::move(topology), meter.lanes(), params.coverage));
    RoundLog& log = outcome->log;
    Findings& findings = outcome->findings;
    log.setMachines(members.machines);
    MUSTER_CHECK_OK(holdRounds(meter, log, findings.figures));
    MUSTER_CHECK_OK(visitAgain(meter, log, findings.figures, params.confirm));
    findings.culprits = solve(log);
    findings.resolution = resolutionOf(log);
    doubtInNoise(findings.resolution, findings.culprits);
    outcome->pauses = meter.pauses();
    return std::shared_ptr<const Outcome>(outcome);
  }

  Result<std::unique_ptr<Communicator>> formGroup(const Params& params) {
    CommunicatorSpec spec;
    spec.name = fmt::format("ring{}", formed_++);
    spec.rank = place_.rank;
    spec.size = place_.worldSize;
    spec.timeout = params.timeout;
    spec.interface = params.interface;
    return device_.backend->communicator(*device_.device, spec, store_);
  }

  Status holdRounds(Meter& meter, RoundLog& log, std::vector<PairFigures>& figures) {
    const size_t opening = log.opening().size();
    note(
        fmt::format("{} rounds measure {}, the pairs of a round at the same time; what is slow is measured "
                    "again in further rounds",
                    opening, coverageText(openingPairs(log), log.nodes())));
    const double begun = device_.device->now();
    for (Round round = nextRound(log); !round.empty(); round = nextRound(log)) {
      if (host_.cancelled()) return Error{ErrorCode::kTimeout, "the ring was cancelled", ""};
      const int number = log.rounds();
      const auto done = static_cast<double>(number) / static_cast<double>(opening);
      host_.progress(done < 1 ? done : -1, fmt::format("round {}: {} pairs", number + 1, round.size()));
      MUSTER_CHECK_OK(meter.hold({number, 0}, round, log, figures));
      MUSTER_CHECK_OK(remeasure(meter, log, figures));
      if (number == 0 && opening > kRoundsOfARing)
        note(
            fmt::format("the first of {} rounds took {}: expect {} for all of them", opening,
                        formatQuantity(device_.device->now() - begun, "s"),
                        formatQuantity(static_cast<double>(opening) * (device_.device->now() - begun), "s")));
    }
    return {};
  }

  /// For the group: rank 0 says it.
  void note(const std::string& text) {
    if (place_.rank == 0) host_.log(MUSTER_LOG_INFO, text);
  }

  /// Inconclusive pairs are remeasured before the round ends: both nodes are there, and it saves a round.
  Status remeasure(Meter& meter, RoundLog& log, std::vector<PairFigures>& figures) {
    Turn turn{log.rounds() - 1, 1};
    for (Round pairs = pairsToRemeasure(log); !pairs.empty(); pairs = pairsToRemeasure(log), ++turn.look) {
      if (host_.cancelled()) return Error{ErrorCode::kTimeout, "the ring was cancelled", ""};
      host_.progress(-1, fmt::format("round {}: remeasuring {} pairs", turn.round + 1, pairs.size()));
      MUSTER_CHECK_OK(meter.hold(turn, pairs, log, figures));
    }
    return {};
  }

  /// What is about to be named is measured at later times too, beside healthy pairs: a load that passes is no
  /// fault.
  Status visitAgain(Meter& meter, RoundLog& log, std::vector<PairFigures>& figures, double seconds) {
    for (auto rounds = nextVisit(log); !rounds.empty(); rounds = nextVisit(log)) {
      if (host_.cancelled()) return Error{ErrorCode::kTimeout, "the ring was cancelled", ""};
      const int visit = log.visitsHeld();
      host_.progress(-1, fmt::format("confirmation {}: remeasuring slow pairs", visit + 1));
      const double after = visitTime(visit, seconds);
      meter.pause(after - (visit > 0 ? visitTime(visit - 1, seconds) : 0));
      for (size_t i = 0; i < rounds.size(); ++i)
        MUSTER_CHECK_OK(meter.hold({static_cast<int>(i), 0, visit, after}, rounds[i], log, figures));
    }
    return {};
  }

  sdk::Host host_;
  sdk::HostStore store_;
  std::string group_;
  Place place_;
  OpenDevice device_;
  int formed_ = 0;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(Place place, placeOf(context));
  MUSTER_TRY(OpenDevice device, openDevice(context));
  return std::unique_ptr<sdk::Session>(
      std::make_unique<RingSession>(host, context, std::move(place), std::move(device)));
}

}  // namespace
}  // namespace muster::ring

MUSTER_DEFINE_PLUGIN("ring", "1.0.0", muster::ring::describe(), muster::ring::openSession,
                     MUSTER_PLUGIN_IN_TURN)
