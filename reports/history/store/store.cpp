// SPDX-License-Identifier: Apache-2.0
// See store.h: opening, the tables' versions, and adding a run. Reading is in store_read.cpp.
#include "reports/history/store/store.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <set>

#include "reports/fleet/read/name_table.h"
#include "reports/fleet/read/parameter_reader.h"
#include "reports/history/store/store_pack.h"
#include "runner/core/json.h"
#include "runner/system/files.h"

namespace muster::history {
namespace {

constexpr int64_t kApplication = 0x4d555354;  // "MUST"

/// A version of the tables; the file's user_version says how many it has had.
struct Version {
  const char* make;                                 ///< statements
  Status (*convert)(Database& database) = nullptr;  ///< moves what is kept
  const char* drop = "";                            ///< statements after that
};

const Version kVersions[] = {{R"(
CREATE TABLE run (
  number INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL, node TEXT NOT NULL,
  started REAL NOT NULL, finished REAL NOT NULL, plan TEXT NOT NULL, plan_sha256 TEXT NOT NULL,
  profile TEXT NOT NULL, profile_sha256 TEXT NOT NULL, backend TEXT NOT NULL, simulated INTEGER NOT NULL,
  scenario TEXT NOT NULL, acceptance TEXT NOT NULL, exit_code INTEGER NOT NULL, tool TEXT NOT NULL,
  path TEXT NOT NULL, added REAL NOT NULL);
CREATE INDEX run_of_node ON run (node, started);
CREATE TABLE figure_key (
  number INTEGER PRIMARY KEY, stage TEXT NOT NULL, case_id TEXT NOT NULL, metric TEXT NOT NULL,
  unit TEXT NOT NULL, labels TEXT NOT NULL, direction TEXT NOT NULL,
  UNIQUE (stage, case_id, metric, unit, labels, direction));
CREATE TABLE figure (
  run INTEGER NOT NULL REFERENCES run, key INTEGER NOT NULL REFERENCES figure_key, device TEXT NOT NULL,
  serial TEXT NOT NULL, n INTEGER NOT NULL, median REAL NOT NULL, cv REAL NOT NULL);
CREATE INDEX figure_of_run ON figure (run);
CREATE TABLE fact (run INTEGER NOT NULL REFERENCES run, device TEXT NOT NULL, name TEXT NOT NULL,
  value TEXT NOT NULL);
CREATE INDEX fact_of_run ON fact (run);
CREATE TABLE deviation (run INTEGER NOT NULL REFERENCES run, outcome TEXT NOT NULL, stage TEXT NOT NULL,
  metric TEXT NOT NULL, device TEXT NOT NULL, detail TEXT NOT NULL);
CREATE INDEX deviation_of_run ON deviation (run);
)"},
                             {R"(
CREATE TABLE fleet (
  number INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, path TEXT NOT NULL, acceptance TEXT NOT NULL,
  simulated INTEGER NOT NULL, plan TEXT NOT NULL, plan_sha256 TEXT NOT NULL, started REAL NOT NULL,
  finished REAL NOT NULL, added REAL NOT NULL);
CREATE TABLE fleet_node (fleet INTEGER NOT NULL REFERENCES fleet, node TEXT NOT NULL, state TEXT NOT NULL);
CREATE INDEX fleet_of_node ON fleet_node (node);
CREATE INDEX node_of_fleet ON fleet_node (fleet);
CREATE INDEX figure_of_part ON figure (serial);
)"},
                             // One row of figures for each run: packed_figures.h. Medians stand first, as
                             // trends read nothing else.
                             {R"(
CREATE TABLE device (
  run INTEGER NOT NULL REFERENCES run, place INTEGER NOT NULL, name TEXT NOT NULL, serial TEXT NOT NULL,
  PRIMARY KEY (run, place)) WITHOUT ROWID;
CREATE INDEX device_of_part ON device (serial);
CREATE TABLE layout (number INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, places BLOB NOT NULL);
CREATE TABLE figures (
  run INTEGER PRIMARY KEY REFERENCES run, layout INTEGER NOT NULL, medians BLOB NOT NULL,
  counts BLOB NOT NULL, cvs BLOB NOT NULL);
CREATE TABLE pruned (sha256 TEXT PRIMARY KEY) WITHOUT ROWID;
)",
                              packOldFigures, "DROP TABLE figure"},
                             // Parameters of stages, as one object by name, which runs of one plan share.
                             {R"(
CREATE TABLE parameters (number INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE run_parameters (run INTEGER PRIMARY KEY REFERENCES run, parameters INTEGER NOT NULL);
)"}};
constexpr int64_t kNewest = std::size(kVersions);

/// Makes `version` of the tables out of the one before.
Status upgrade(Database& database, const Version& version) {
  MUSTER_CHECK_OK(database.execute(version.make));
  if (version.convert != nullptr) MUSTER_CHECK_OK(version.convert(database));
  return database.execute(version.drop);
}

Result<int64_t> pragma(Database& database, const std::string& name) {
  MUSTER_TRY(Statement statement, database.prepare("PRAGMA " + name));
  MUSTER_TRY(const bool found, statement.row());
  return found ? statement.integer(0) : 0;
}

/// Every object of the database, as the statement that made it.
Result<std::set<std::string>> schemaOf(Database& database) {
  std::set<std::string> objects;
  MUSTER_TRY(Statement statement, database.prepare("SELECT type, name, sql FROM sqlite_master"));
  for (;;) {
    MUSTER_TRY(const bool more, statement.row());
    if (!more) return objects;
    objects.insert(fmt::format("{} {} {}", statement.text(0), statement.text(1), statement.text(2)));
  }
}

const fleet::DeviceIdentity* deviceAt(const fleet::NodeSummary& node, int index) {
  return index < 0 || static_cast<size_t>(index) >= node.devices.size()
             ? nullptr
             : &node.devices[static_cast<size_t>(index)];
}

}  // namespace

Result<std::filesystem::path> defaultHistory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string path = variable("MUSTER_HISTORY"); !path.empty()) return std::filesystem::path(path);
  if (const std::string state = variable("XDG_STATE_HOME"); !state.empty())
    return std::filesystem::path(state) / "muster/history.sqlite";
  if (const std::string home = variable("HOME"); !home.empty())
    return std::filesystem::path(home) / ".local/state/muster/history.sqlite";
  return Error{ErrorCode::kUsage, "MUSTER_HISTORY and HOME are not set; give the history file with --db", ""};
}

Result<Store> Store::open(const std::filesystem::path& path, Access access) {
  MUSTER_TRY(Database database, Database::open(path, access));
  Store store(std::move(database));
  // One look at the file, beside a process that may be making it.
  MUSTER_CHECK_OK(store.database_.execute("BEGIN"));
  MUSTER_TRY(const int64_t known, store.checkedVersion(access));
  MUSTER_CHECK_OK(store.database_.execute("COMMIT"));
  if (known == kNewest) return store;
  if (access == Access::kRead) return open(path, Access::kWrite);
  MUSTER_CHECK_OK(store.bringUpToDate().context(
      known == 0 ? "making the history"
                 : fmt::format("bringing this history from version {} to {}", known, kNewest)));
  return store;
}

/// How many versions the tables have had. A file from elsewhere may have a view without end in a table's
/// place, or triggers: what is not exactly as Muster makes it is not read.
Result<int64_t> Store::checkedVersion(Access access) {
  MUSTER_TRY(const int64_t known, pragma(database_, "user_version"));
  MUSTER_TRY(const int64_t application, pragma(database_, "application_id"));
  MUSTER_TRY(const int64_t tables, pragma(database_, "schema_version"));
  const std::string where = database_.path().string();
  if (application != kApplication && (known != 0 || tables != 0 || access == Access::kRead))
    return Error{ErrorCode::kUsage,
                 "this file is not a Muster history and was not changed; give another file with --db", where};
  if (known > kNewest)
    return Error{ErrorCode::kUsage,
                 fmt::format("this history has version {} and this Muster knows {}: it was written by a "
                             "newer version; use that version",
                             known, kNewest),
                 where};
  MUSTER_TRY(Database own, Database::open(":memory:", Access::kWrite));
  for (int64_t version = 0; version < known; ++version) MUSTER_CHECK_OK(upgrade(own, kVersions[version]));
  MUSTER_TRY(const auto wanted, schemaOf(own));
  MUSTER_TRY(const auto found, schemaOf(database_));
  if (known >= 0 && found == wanted) return known;
  return Error{ErrorCode::kUsage,
               "its tables are not those of a Muster history, and it was not changed; restore a backup, or "
               "give another file with --db and add the runs again",
               where};
}

Status Store::bringUpToDate() {
  MUSTER_TRY(Transaction transaction, Transaction::begin(database_));
  // Another process may have done it while this one waited.
  MUSTER_TRY(const int64_t now, pragma(database_, "user_version"));
  if (now >= kNewest) return {};
  for (int64_t version = now; version < kNewest; ++version)
    MUSTER_CHECK_OK(upgrade(database_, kVersions[version]));
  MUSTER_CHECK_OK(database_.execute(
      fmt::format("PRAGMA user_version = {}; PRAGMA application_id = {}", kNewest, kApplication)));
  return transaction.commit();
}

Result<bool> Store::add(const fleet::NodeSummary& node, const fleet::FleetNames& names, double now) {
  MUSTER_TRY(Transaction transaction, Transaction::begin(database_));
  MUSTER_TRY(Statement known,
             database_.prepare("SELECT 1 FROM run WHERE sha256 = ?1 UNION ALL SELECT 1 FROM pruned WHERE "
                               "sha256 = ?1"));
  MUSTER_TRY(const bool there, known.bind(node.sha256).row());
  known.reset();
  if (there) return false;
  MUSTER_CHECK_OK(insertRun(node, now));
  const int64_t run = database_.lastInsert();
  MUSTER_CHECK_OK(insertFigures(node, names, run));
  MUSTER_CHECK_OK(insertRest(node, names, run));
  MUSTER_CHECK_OK(transaction.commit());
  return true;
}

Status Store::insertRun(const fleet::NodeSummary& node, double now) {
  MUSTER_TRY(
      Statement insert,
      database_.prepare("INSERT INTO run (sha256, run_id, node, started, finished, plan, plan_sha256, "
                        "profile, profile_sha256, backend, simulated, scenario, acceptance, exit_code, "
                        "tool, path, added) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  insert.bind(node.sha256).bind(node.runId).bind(node.node).bind(node.started).bind(node.finished);
  insert.bind(node.planName).bind(node.planSha256).bind(node.profileName).bind(node.profileSha256);
  insert.bind(node.backend).bind(int64_t{node.simulated}).bind(node.scenario).bind(nameOf(node.acceptance));
  insert.bind(int64_t{node.exitCode}).bind(node.toolVersion).bind(node.path).bind(now);
  return insert.run();
}

Result<int64_t> Store::keyNumber(const fleet::FigureKey& key) {
  const std::string labels = labelsText(key.labels), direction = directionName(key.direction);
  const auto bindAll = [&](Statement& statement) -> Statement& {
    return statement.bind(key.stage)
        .bind(key.caseId)
        .bind(key.metric)
        .bind(key.unit)
        .bind(labels)
        .bind(direction);
  };
  MUSTER_TRY(Statement insert, database_.prepare("INSERT OR IGNORE INTO figure_key (stage, case_id, metric, "
                                                 "unit, labels, direction) VALUES (?,?,?,?,?,?)"));
  MUSTER_CHECK_OK(bindAll(insert).run());
  MUSTER_TRY(Statement select,
             database_.prepare("SELECT number FROM figure_key WHERE stage = ? AND case_id = ? AND metric = ? "
                               "AND unit = ? AND labels = ? AND direction = ?"));
  MUSTER_TRY(const bool found, bindAll(select).row());
  if (!found) return Error{ErrorCode::kInternal, "a figure's key was not kept", database_.path().string()};
  return select.integer(0);
}

Status Store::insertFigures(const fleet::NodeSummary& node, const fleet::FleetNames& names, int64_t run) {
  MUSTER_TRY(FigureWriter writer, FigureWriter::prepare(database_));
  for (size_t i = 0; i < node.devices.size(); ++i)
    MUSTER_CHECK_OK(
        writer.addDevice(run, static_cast<int64_t>(i), node.devices[i].id, node.devices[i].serial));
  std::vector<FigurePlace> places;
  std::vector<FigureValues> values;
  std::map<uint32_t, int64_t> keys;
  for (const fleet::Figure& item : node.figures) {
    if (keys.count(item.key) == 0) {
      MUSTER_TRY(keys[item.key], keyNumber(names.figures[item.key]));
    }
    places.push_back({keys[item.key], deviceAt(node, item.device) == nullptr ? -1 : item.device});
    values.push_back({double{item.median}, double{item.cv}, item.n});
  }
  return writer.addFigures(run, places, values);
}

Status Store::insertRest(const fleet::NodeSummary& node, const fleet::FleetNames& names, int64_t run) {
  MUSTER_TRY(Statement fact, database_.prepare("INSERT INTO fact VALUES (?,?,?,?)"));
  Json parameters = Json::object();
  for (const fleet::Fact& item : node.facts) {
    if (names.texts[item.name].starts_with(fleet::kStageFact)) {
      parameters[names.texts[item.name]] = names.texts[item.value];
      continue;
    }
    const fleet::DeviceIdentity* device = deviceAt(node, item.device);
    fact.bind(run).bind(device == nullptr ? "" : device->id);
    MUSTER_CHECK_OK(fact.bind(names.texts[item.name]).bind(names.texts[item.value]).run());
  }
  for (const fleet::DeviceIdentity& device : node.devices)
    if (!device.serial.empty())
      MUSTER_CHECK_OK(fact.bind(run).bind(device.id).bind("serial").bind(device.serial).run());
  if (!parameters.empty()) MUSTER_CHECK_OK(insertParameters(dumpJson(parameters), run));
  MUSTER_TRY(Statement deviation, database_.prepare("INSERT INTO deviation VALUES (?,?,?,?,?,?)"));
  for (const fleet::DeviationSummary& item : node.deviations) {
    deviation.bind(run).bind(outcomeName(item.outcome)).bind(names.texts[item.stage]);
    MUSTER_CHECK_OK(deviation.bind(names.texts[item.metric]).bind(item.device).bind(item.detail).run());
  }
  return {};
}

Status Store::insertParameters(const std::string& facts, int64_t run) {
  const std::string digest = sha256Hex(facts);
  MUSTER_TRY(Statement keep,
             database_.prepare("INSERT OR IGNORE INTO parameters (sha256, facts) VALUES (?,?)"));
  MUSTER_CHECK_OK(keep.bind(digest).bind(facts).run());
  MUSTER_TRY(Statement refer, database_.prepare("INSERT INTO run_parameters SELECT ?, number FROM parameters "
                                                "WHERE sha256 = ?"));
  return refer.bind(run).bind(digest).run();
}

}  // namespace muster::history
