// SPDX-License-Identifier: Apache-2.0
// Writes packed values and migrates older tables.
#include "reports/history/store/store_pack.h"

#include <limits>
#include <map>

#include "runner/system/files.h"

namespace muster::history {
namespace {

using Places = std::map<std::pair<std::string, std::string>, int>;  ///< by name and serial of a device

/// The devices of a run as its old rows name them, kept with their places.
Result<Places> packDevices(Statement& select, FigureWriter& writer, int64_t run) {
  Places places;
  select.bind(run);
  for (;;) {
    MUSTER_TRY(const bool more, select.row());
    if (!more) break;
    const std::string name = select.text(0), serial = select.text(1);
    const int place = static_cast<int>(places.size());
    places[{name, serial}] = place;
    MUSTER_CHECK_OK(writer.addDevice(run, place, name, serial));
  }
  select.reset();
  return places;
}

Status packRun(Statement& select, const Places& devices, FigureWriter& writer, int64_t run) {
  std::vector<FigurePlace> places;
  std::vector<FigureValues> values;
  select.bind(run);
  for (;;) {
    MUSTER_TRY(const bool more, select.row());
    if (!more) break;
    const auto device = devices.find({select.text(1), select.text(2)});
    places.push_back({select.integer(0), device == devices.end() ? -1 : device->second});
    const int64_t n = select.integer(3);
    if (n < 0 || n > std::numeric_limits<int>::max())
      return Error{ErrorCode::kProtocol,
                   "history: damaged: a number of samples cannot be; restore a copy of it", ""};
    values.push_back({select.number(4), select.number(5), static_cast<int>(n)});
  }
  select.reset();
  return writer.addFigures(run, places, values);
}

}  // namespace

Result<FigureWriter> FigureWriter::prepare(Database& database) {
  MUSTER_TRY(Statement device, database.prepare("INSERT INTO device VALUES (?,?,?,?)"));
  MUSTER_TRY(Statement layout,
             database.prepare("INSERT OR IGNORE INTO layout (sha256, places) VALUES (?,?)"));
  MUSTER_TRY(Statement find, database.prepare("SELECT number FROM layout WHERE sha256 = ?"));
  MUSTER_TRY(Statement figures, database.prepare("INSERT INTO figures VALUES (?,?,?,?,?)"));
  return FigureWriter(std::move(device), std::move(layout), std::move(find), std::move(figures));
}

Status FigureWriter::addDevice(int64_t run, int64_t place, std::string_view name, std::string_view serial) {
  return device_.bind(run).bind(place).bind(name).bind(serial).run();
}

Status FigureWriter::addFigures(int64_t run, const std::vector<FigurePlace>& places,
                                const std::vector<FigureValues>& values) {
  const PackedFigures packed = packFigures(places, values);
  const std::string digest = sha256Hex(packed.layout);
  MUSTER_CHECK_OK(layout_.bind(digest).bindBlob(packed.layout).run());
  MUSTER_TRY(const bool found, find_.bind(digest).row());
  if (!found) return Error{ErrorCode::kInternal, "the layout of a run's figures was not kept", ""};
  const int64_t layout = find_.integer(0);
  find_.reset();
  figures_.bind(run).bind(layout).bindBlob(packed.medians);
  return figures_.bindBlob(packed.counts).bindBlob(packed.cvs).run();
}

Status packOldFigures(Database& database) {
  MUSTER_TRY(FigureWriter writer, FigureWriter::prepare(database));
  MUSTER_TRY(Statement runs, database.prepare("SELECT number FROM run ORDER BY number"));
  MUSTER_TRY(
      Statement devices,
      database.prepare("SELECT DISTINCT device, serial FROM figure WHERE run = ?1 AND (device <> '' OR "
                       "serial <> '') UNION SELECT device, value FROM fact WHERE run = ?1 AND name = "
                       "'serial' AND device <> '' ORDER BY 1, 2"));
  MUSTER_TRY(Statement figures,
             database.prepare("SELECT key, device, serial, n, median, cv FROM figure WHERE run = ? ORDER BY "
                              "rowid"));
  for (;;) {
    MUSTER_TRY(const bool more, runs.row());
    if (!more) return {};
    const int64_t run = runs.integer(0);
    MUSTER_TRY(const Places places, packDevices(devices, writer, run));
    MUSTER_CHECK_OK(packRun(figures, places, writer, run));
  }
}

}  // namespace muster::history
