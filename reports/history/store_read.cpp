// SPDX-License-Identifier: Apache-2.0
// See store.h: what is read back of the history.
#include <fmt/format.h>

#include <algorithm>

#include "reports/history/store.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster::history {
namespace {

const std::string kRunColumns =
    "run.number, run.sha256, run.run_id, run.node, run.started, run.plan, run.plan_sha256, run.profile, "
    "run.simulated, run.acceptance, run.path";
constexpr int kRunColumnCount = 11;
const std::string kPoints =
    "SELECT " + kRunColumns +
    ", figure.device, figure.serial, k.stage, k.case_id, k.metric, k.unit, k.labels, k.direction, figure.n, "
    "figure.median, figure.cv FROM figure JOIN run ON run.number = figure.run JOIN figure_key k ON k.number "
    "= "
    "figure.key ";
const std::string kPointOrder =
    " ORDER BY run.started, run.number, k.stage, k.case_id, k.metric, k.labels, "
    "figure.device";

Run runAt(const Statement& row) {
  Run run;
  run.number = row.integer(0);
  run.sha256 = row.text(1);
  run.runId = row.text(2);
  run.node = row.text(3);
  run.started = row.number(4);
  run.plan = row.text(5);
  run.planSha256 = row.text(6);
  run.profile = row.text(7);
  run.simulated = row.integer(8) != 0;
  run.acceptance = row.text(9);
  run.path = row.text(10);
  return run;
}

Point pointAt(const Statement& row) {
  constexpr int kAt = kRunColumnCount;
  Point point;
  point.run = runAt(row);
  point.device = row.text(kAt);
  point.serial = row.text(kAt + 1);
  point.stage = row.text(kAt + 2);
  point.caseId = row.text(kAt + 3);
  point.metric = row.text(kAt + 4);
  point.unit = row.text(kAt + 5);
  point.labels = row.text(kAt + 6);
  const auto direction = directionFromName(row.text(kAt + 7));
  if (direction.ok()) point.direction = *direction;
  point.n = static_cast<int>(row.integer(kAt + 8));
  point.median = row.number(kAt + 9);
  point.cv = row.number(kAt + 10);
  return point;
}

/// Every row of `statement` as `make(row)` gives it.
template <typename T, typename F>
Result<std::vector<T>> all(Statement& statement, F make) {
  std::vector<T> out;
  for (;;) {
    MUSTER_TRY(const bool more, statement.row());
    if (!more) return out;
    out.push_back(make(statement));
  }
}

int64_t limitOf(const Selection& selection) {
  return selection.newest == 0 ? -1 : static_cast<int64_t>(selection.newest);
}

}  // namespace

Result<std::vector<Run>> Store::runs(const Selection& selection) {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT " + kRunColumns +
                               " FROM run WHERE ?1 = '' OR node = ?1 ORDER BY started DESC, number DESC "
                               "LIMIT ?2"));
  select.bind(selection.node).bind(limitOf(selection));
  MUSTER_TRY(auto found, all<Run>(select, runAt));
  std::reverse(found.begin(), found.end());
  return found;
}

Result<Run> Store::find(const std::string& name) {
  std::string text = name;
  if (!text.empty() && text.front() == '#') text.erase(0, 1);
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT " + kRunColumns +
                               " FROM run WHERE CAST(number AS TEXT) = ?1 OR (length(?1) >= 6 AND "
                               "(substr(run_id, 1, length(?1)) = ?1 OR substr(sha256, 1, length(?1)) = ?1)) "
                               "ORDER BY number LIMIT 3"));
  select.bind(text);
  MUSTER_TRY(const auto found, all<Run>(select, runAt));
  if (found.size() == 1) return found.front();
  if (found.empty())
    return Error{ErrorCode::kNotFound,
                 fmt::format("history has no run \"{}\"; `muster history list` shows their numbers and ids",
                             printable(name, 80)),
                 database_.path().string()};
  return Error{ErrorCode::kUsage,
               fmt::format("\"{}\" begins the id of several runs, #{} and #{} among them; give a number",
                           printable(name, 80), found[0].number, found[1].number),
               database_.path().string()};
}

Result<Run> Store::lastAccepted(const std::string& node, double before, bool simulated) {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT " + kRunColumns +
                               " FROM run WHERE node = ? AND started < ? AND simulated = ? AND acceptance = "
                               "'accepted' ORDER BY started DESC, number DESC LIMIT 1"));
  select.bind(node).bind(before).bind(int64_t{simulated});
  MUSTER_TRY(const auto found, all<Run>(select, runAt));
  if (!found.empty()) return found.front();
  return Error{
      ErrorCode::kNotFound,
      fmt::format("history has no accepted run of {} before {}", printable(node, 80), formatUtc(before)),
      database_.path().string()};
}

Result<std::vector<Point>> Store::points(const Selection& selection) {
  MUSTER_TRY(
      Statement select,
      database_.prepare("WITH ranked AS (SELECT number, started, row_number() OVER (PARTITION BY simulated "
                        "ORDER BY started DESC, number DESC) AS place FROM run WHERE ?1 = '' OR node = ?1), "
                        "chosen AS (SELECT number, started FROM ranked WHERE ?2 < 0 OR place <= ?2), part AS "
                        "(SELECT DISTINCT serial FROM "
                        "figure WHERE ?1 <> '' AND serial <> '' AND run IN (SELECT number FROM chosen)) " +
                        kPoints +
                        "WHERE run.number IN (SELECT number FROM chosen) OR (figure.serial IN (SELECT "
                        "serial FROM part) AND run.started >= (SELECT min(started) FROM chosen))" +
                        kPointOrder));
  select.bind(selection.node).bind(limitOf(selection));
  return all<Point>(select, pointAt);
}

Result<std::vector<Point>> Store::pointsOf(const Run& run) {
  MUSTER_TRY(Statement select, database_.prepare(kPoints + "WHERE run.number = ?" + kPointOrder));
  select.bind(run.number);
  return all<Point>(select, pointAt);
}

Result<std::vector<KeptFact>> Store::facts(const Run& run) {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT device, name, value FROM fact WHERE run = ? ORDER BY "
                               "device, name, value"));
  select.bind(run.number);
  return all<KeptFact>(select, [](const Statement& row) {
    return KeptFact{row.text(0), row.text(1), row.text(2)};
  });
}

Result<std::vector<KeptDeviation>> Store::deviations(const Run& run) {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT outcome, stage, metric, device, detail FROM deviation WHERE run = ? "
                               "ORDER BY rowid"));
  select.bind(run.number);
  return all<KeptDeviation>(select, [](const Statement& row) {
    return KeptDeviation{row.text(0), row.text(1), row.text(2), row.text(3), row.text(4)};
  });
}

}  // namespace muster::history
