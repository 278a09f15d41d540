// SPDX-License-Identifier: Apache-2.0
// See store.h: what is read back of the history.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "reports/history/store/packed_figures.h"
#include "reports/history/store/store.h"
#include "runner/core/clock.h"
#include "runner/core/json.h"
#include "runner/core/text.h"

namespace muster::history {
namespace {

const std::string kRunColumns =
    "run.number, run.sha256, run.run_id, run.node, run.started, run.plan, run.plan_sha256, run.profile, "
    "run.simulated, run.acceptance, run.path";
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
  run.acceptance = row.named(9, Acceptance::kIncomplete);
  run.path = row.text(10);
  return run;
}

/// What the figures of one run may take in memory: those of eight GPUs take two megabytes.
constexpr size_t kMostPointBytes = size_t{256} << 20;

size_t bytesOf(const Point& p) {
  const FigureName& f = p.figure;
  return sizeof p + f.stage.size() + f.caseId.size() + f.metric.size() + f.unit.size() + f.labels.size() +
         p.device.name.size() + p.device.serial.size();
}

FigureName figureAt(const Statement& row) {
  FigureName figure{row.integer(0), row.text(1), row.text(2), row.text(3), row.text(4), row.text(5), {}};
  const auto direction = directionFromName(row.text(6));
  if (direction.ok()) figure.direction = *direction;
  return figure;
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
                 fmt::format("no run \"{}\" in the history; `muster history list` shows numbers and ids",
                             printable(name, 80)),
                 database_.path().string()};
  return Error{ErrorCode::kUsage,
               fmt::format("\"{}\" matches the id of several runs, such as #{} and #{}; give a number",
                           printable(name, 80), found[0].number, found[1].number),
               database_.path().string()};
}

Result<std::vector<Run>> Store::acceptedBefore(const std::string& node, double before, bool simulated) {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT " + kRunColumns +
                               " FROM run WHERE node = ? AND started < ? AND simulated = ? AND acceptance = "
                               "'accepted' ORDER BY started DESC, number DESC"));
  select.bind(node).bind(before).bind(int64_t{simulated});
  return all<Run>(select, runAt);
}

Result<std::vector<FigureName>> Store::figureNames() {
  MUSTER_TRY(
      Statement select,
      database_.prepare("SELECT number, stage, case_id, metric, unit, labels, direction FROM figure_key "
                        "ORDER BY stage, case_id, metric, labels, number"));
  return all<FigureName>(select, figureAt);
}

Result<std::vector<Device>> Store::devices(const Run& run) {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT name, serial FROM device WHERE run = ? ORDER BY place"));
  select.bind(run.number);
  return all<Device>(select, [](const Statement& row) { return Device{row.text(0), row.text(1)}; });
}

Result<std::vector<Point>> Store::pointsOf(const Run& run) {
  MUSTER_TRY(const auto devices, this->devices(run));
  MUSTER_TRY(const auto names, figureNames());
  std::map<int64_t, const FigureName*> byNumber;
  for (const FigureName& name : names) byNumber[name.number] = &name;
  MUSTER_TRY(
      Statement select,
      database_.prepare("SELECT layout.places, figures.medians, figures.cvs, figures.counts FROM figures "
                        "JOIN layout ON layout.number = figures.layout WHERE run = ?"));
  MUSTER_TRY(const bool found, select.bind(run.number).row());
  std::vector<Point> points;
  if (!found) return points;
  const std::string which = fmt::format("run #{} of {}", run.number, printable(run.node, 64));
  MUSTER_TRY(const auto places, unpackLayout(select.blob(0), devices.size()).context(which));
  std::vector<double> medians, cvs;
  MUSTER_CHECK_OK(unpackValues(select.blob(1), places.size(), medians).context(which));
  MUSTER_CHECK_OK(unpackValues(select.blob(2), places.size(), cvs).context(which));
  MUSTER_TRY(const auto counts, unpackCounts(select.blob(3), places.size()));
  size_t bytes = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto name = byNumber.find(places[i].key);
    if (name == byNumber.end()) continue;
    const auto place = static_cast<size_t>(places[i].device);
    points.push_back(
        {*name->second, places[i].device < 0 ? Device{} : devices[place], counts[i], medians[i], cvs[i]});
    // Each point has copies of the texts.
    bytes += bytesOf(points.back());
    if (bytes > kMostPointBytes)
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("the figures of run {} take more than {} MiB", run.number, kMostPointBytes >> 20),
          database_.path().string()};
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    const auto key = [](const Point& p) {
      return std::tie(p.figure.stage, p.figure.caseId, p.figure.metric, p.figure.labels, p.device.name);
    };
    return key(a) < key(b);
  });
  return points;
}

Result<int64_t> Store::layoutOf(const Run& run) {
  MUSTER_TRY(Statement select, database_.prepare("SELECT layout FROM figures WHERE run = ?"));
  MUSTER_TRY(const bool found, select.bind(run.number).row());
  return found ? select.integer(0) : 0;
}

Result<std::vector<int64_t>> Store::figuresIn(int64_t layout) {
  MUSTER_TRY(Statement select, database_.prepare("SELECT places FROM layout WHERE number = ?"));
  MUSTER_TRY(const bool found, select.bind(layout).row());
  std::vector<int64_t> figures;
  if (!found) return figures;
  MUSTER_TRY(const auto places, unpackLayout(select.blob(0), std::numeric_limits<int>::max()));
  for (const FigurePlace& place : places) figures.push_back(place.key);
  return figures;
}

Result<std::vector<KeptFact>> Store::facts(const Run& run) {
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT device, name, value FROM fact WHERE run = ? ORDER BY "
                               "device, name, value"));
  select.bind(run.number);
  MUSTER_TRY(auto facts, all<KeptFact>(select, [](const Statement& row) {
               return KeptFact{row.text(0), row.text(1), row.text(2)};
             }));
  MUSTER_TRY(Statement shared,
             database_.prepare("SELECT facts FROM parameters JOIN run_parameters ON parameters.number = "
                               "run_parameters.parameters WHERE run = ?"));
  MUSTER_TRY(const bool found, shared.bind(run.number).row());
  if (!found) return facts;
  MUSTER_TRY(const Json parameters, parseJson(shared.text(0)).context(database_.path().string()));
  if (parameters.is_object())
    for (const auto& [name, value] : parameters.items())
      if (value.is_string()) facts.push_back({"", name, value.get<std::string>()});
  return facts;
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
