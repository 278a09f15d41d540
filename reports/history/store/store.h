// SPDX-License-Identifier: Apache-2.0
// The history: what is kept of every run of every node, in one SQLite file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "reports/fleet/read/node_summary.h"
#include "reports/history/store/database.h"
#include "reports/history/store/kept_fleet.h"
#include "runner/metrics/measurement.h"

namespace muster::history {

/// One kept run.
struct Run {
  int64_t number = 0;  ///< in this history, from 1
  std::string sha256;  ///< of the record
  std::string runId;
  std::string node;
  double started = 0;  ///< seconds since 1970
  std::string plan;
  std::string planSha256;
  std::string profile;
  bool simulated = false;
  Acceptance acceptance = Acceptance::kIncomplete;
  std::string path;  ///< where the record lay when it was added
};

/// What a figure is of.
struct FigureName {
  int64_t number = 0;  ///< in this history
  std::string stage;
  std::string caseId;
  std::string metric;
  std::string unit;
  std::string labels;  ///< "dtype=bf16"
  Direction direction = Direction::kNone;
};

/// A device of a run: its place in the node, and the part that was there.
struct Device {
  std::string name;  ///< "gpu3"; empty: the node itself
  std::string serial;
  auto operator<=>(const Device&) const = default;
};

/// One figure of one run.
struct Point {
  FigureName figure;
  Device device;
  int n = 0;          ///< samples
  double median = 0;  ///< base unit
  double cv = 0;
};

/// A fact of the inventory, or a device's serial under the name "serial".
struct KeptFact {
  std::string device;  ///< empty: of the node
  std::string name;
  std::string value;
};

struct KeptDeviation {
  std::string outcome, stage, metric, device, detail;
};

/// Which runs: an empty field takes all.
struct Selection {
  std::string node;
  size_t newest = 0;  ///< number of newest runs to read; 0: all
};

/// A run as far as choosing what to keep needs it.
struct RunSummary {
  int64_t number = 0;
  std::string node;
  double started = 0;
  bool simulated = false;
  Acceptance acceptance = Acceptance::kIncomplete;
};

class Store {
 public:
  /// Opens the history, made by `muster history add`. Its tables are brought to this version; one of a newer
  /// Muster, and a database of another program, is refused and left as it is.
  static Result<Store> open(const std::filesystem::path& path, Access access);

  /// Keeps a run. False when the same record (by its SHA-256) is there already. One transaction, also beside
  /// other writers.
  Result<bool> add(const fleet::NodeSummary& node, const fleet::FleetNames& names, double now);
  /// The same for a fleet that was judged, by the SHA-256 of its fleet.json.
  Result<bool> addFleet(const KeptFleet& fleet, double now);
  /// Fleets from the oldest to the newest, their nodes without records.
  Result<std::vector<KeptFleet>> fleets();
  /// The newest accepted fleet that has `node`, without its nodes; simulated and measured ones are kept
  /// apart. kNotFound: there is none.
  Result<KeptFleet> lastAcceptedFleet(const std::string& node, bool simulated);
  /// Runs from the oldest to the newest.
  Result<std::vector<Run>> runs(const Selection& selection);
  /// A run by its number, or by the beginning of its id or digest. An error if there is none, or several.
  Result<Run> find(const std::string& name);
  /// Accepted runs of `node` that were started before `before`, from the newest to the oldest.
  Result<std::vector<Run>> acceptedBefore(const std::string& node, double before, bool simulated);
  /// All that any run measured, by stage, case, metric and labels.
  Result<std::vector<FigureName>> figureNames();
  /// The devices of a run, by their places.
  Result<std::vector<Device>> devices(const Run& run);
  /// The figures of a run by stage, case, metric, labels and device. All runs of many: series_reader.h.
  Result<std::vector<Point>> pointsOf(const Run& run);
  /// The number of the list of figures and places that the run's values belong to, which runs share; 0: it
  /// has none.
  Result<int64_t> layoutOf(const Run& run);
  /// The numbers of the figures in a layout, one for each place; none in layout 0.
  Result<std::vector<int64_t>> figuresIn(int64_t layout);
  Result<std::vector<KeptFact>> facts(const Run& run);
  Result<std::vector<KeptDeviation>> deviations(const Run& run);
  /// Every run, in the order of their numbers.
  Result<std::vector<RunSummary>> summaries();
  /// Removes runs for good, each of them wholly or not at all, some in each transaction; what was removed
  /// stays known, so that add() does not bring it back. Calls `progress` with how many are gone.
  Status remove(const std::vector<int64_t>& runs, const std::function<void(size_t)>& progress);
  /// Gives free space of the file back to the disk. Needs as much free disk as the file then takes.
  Status compact();
  /// Size of the file in bytes.
  Result<uint64_t> size();

  Database& database() { return database_; }

 private:
  explicit Store(Database database) : database_(std::move(database)) {}
  Result<int64_t> checkedVersion(Access access);
  Status bringUpToDate();
  Status insertRun(const fleet::NodeSummary& node, double now);
  Status insertFigures(const fleet::NodeSummary& node, const fleet::FleetNames& names, int64_t run);
  Status insertRest(const fleet::NodeSummary& node, const fleet::FleetNames& names, int64_t run);
  Status insertParameters(const std::string& facts, int64_t run);
  Result<int64_t> keyNumber(const fleet::FigureKey& key);

  Database database_;
};

/// $MUSTER_HISTORY, else $XDG_STATE_HOME/muster/history.sqlite, else ~/.local/state/muster/history.sqlite.
Result<std::filesystem::path> defaultHistory();

}  // namespace muster::history
