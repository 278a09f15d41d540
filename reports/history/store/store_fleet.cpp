// SPDX-License-Identifier: Apache-2.0
// See store.h: the fleets that were judged.
#include <fmt/format.h>

#include "reports/history/store/store.h"
#include "runner/core/text.h"

namespace muster::history {
namespace {

const std::string kFleetColumns =
    "fleet.number, fleet.sha256, fleet.path, fleet.acceptance, fleet.simulated, fleet.plan, "
    "fleet.plan_sha256, "
    "fleet.started, fleet.finished";

KeptFleet fleetAt(const Statement& row) {
  KeptFleet fleet;
  fleet.number = row.integer(0);
  fleet.sha256 = row.text(1);
  fleet.folder = row.text(2);
  fleet.acceptance = row.named(3, Acceptance::kIncomplete);
  fleet.simulated = row.integer(4) != 0;
  fleet.plan = row.text(5);
  fleet.planSha256 = row.text(6);
  fleet.started = row.number(7);
  fleet.finished = row.number(8);
  return fleet;
}

}  // namespace

Result<bool> Store::addFleet(const KeptFleet& fleet, double now) {
  MUSTER_TRY(Transaction transaction, Transaction::begin(database_));
  MUSTER_TRY(Statement known, database_.prepare("SELECT 1 FROM fleet WHERE sha256 = ?"));
  MUSTER_TRY(const bool there, known.bind(fleet.sha256).row());
  known.reset();
  if (there) return false;
  MUSTER_TRY(Statement insert,
             database_.prepare("INSERT INTO fleet (sha256, path, acceptance, simulated, plan, plan_sha256, "
                               "started, finished, added) VALUES (?,?,?,?,?,?,?,?,?)"));
  insert.bind(fleet.sha256)
      .bind(fleet.folder.string())
      .bind(nameOf(fleet.acceptance))
      .bind(int64_t{fleet.simulated});
  insert.bind(fleet.plan).bind(fleet.planSha256).bind(fleet.started).bind(fleet.finished).bind(now);
  MUSTER_CHECK_OK(insert.run());
  const int64_t number = database_.lastInsert();
  MUSTER_TRY(Statement member, database_.prepare("INSERT INTO fleet_node VALUES (?,?,?)"));
  for (const FleetMember& node : fleet.nodes)
    MUSTER_CHECK_OK(member.bind(number).bind(node.name).bind(nameOf(node.state)).run());
  MUSTER_CHECK_OK(transaction.commit());
  return true;
}

Result<std::vector<KeptFleet>> Store::fleets() {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT " + kFleetColumns + " FROM fleet ORDER BY finished, number"));
  MUSTER_TRY(Statement member,
             database_.prepare("SELECT node, state FROM fleet_node WHERE fleet = ? ORDER BY rowid"));
  std::vector<KeptFleet> found;
  for (;;) {
    MUSTER_TRY(const bool more, select.row());
    if (!more) return found;
    found.push_back(fleetAt(select));
    member.bind(found.back().number);
    for (;;) {
      MUSTER_TRY(const bool another, member.row());
      if (!another) break;
      found.back().nodes.push_back({member.text(0), member.named(1, fleet::NodeState::kMissing), {}, {}});
    }
    member.reset();
  }
}

Result<KeptFleet> Store::lastAcceptedFleet(const std::string& node, bool simulated) {
  MUSTER_TRY(Statement select,
             database_.prepare(
                 "SELECT " + kFleetColumns +
                 " FROM fleet WHERE acceptance = 'accepted' AND simulated = ? AND number IN (SELECT fleet "
                 "FROM fleet_node WHERE node = ?) ORDER BY finished DESC, number DESC LIMIT 1"));
  MUSTER_TRY(const bool found, select.bind(int64_t{simulated}).bind(node).row());
  if (found) return fleetAt(select);
  return Error{ErrorCode::kNotFound,
               fmt::format("history has no accepted{} fleet with node {}; keep one with `muster history add "
                           "DIR`, or give its directory with --since",
                           simulated ? " simulated" : "", printable(node, 80)),
               database_.path().string()};
}

}  // namespace muster::history
