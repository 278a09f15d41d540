// SPDX-License-Identifier: Apache-2.0
// Reads the series of many runs in passes of bounded memory.
#include "reports/history/series_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "runner/core/text.h"

namespace muster::history {
namespace {

/// Sets of nodes that grow together.
class NodeSets {
 public:
  size_t of(const std::string& node) {
    const auto [at, isNew] = numbers_.try_emplace(node, parents_.size());
    if (isNew) parents_.push_back(at->second);
    return root(at->second);
  }
  void join(size_t a, size_t b) { parents_[std::max(root(a), root(b))] = std::min(root(a), root(b)); }
  size_t root(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<size_t> parents_;
};

constexpr const char* kChosen =
    "WITH ranked AS (SELECT number, started, row_number() OVER (PARTITION BY simulated ORDER BY started "
    "DESC, "
    "number DESC) AS place FROM run WHERE ?1 = '' OR node = ?1), chosen AS (SELECT number, started FROM "
    "ranked "
    "WHERE ?2 < 0 OR place <= ?2) ";

}  // namespace

Result<SeriesReader> SeriesReader::open(Store& store, const Selection& selection, int64_t without,
                                        size_t mostReadings) {
  SeriesReader reader(store, selection, mostReadings);
  MUSTER_TRY(reader.figures_, store.figureNames());
  for (size_t i = 0; i < reader.figures_.size(); ++i) reader.figureByNumber_[reader.figures_[i].number] = i;
  reader.readings_.resize(reader.figures_.size());
  MUSTER_CHECK_OK(reader.readRuns(without));
  MUSTER_CHECK_OK(reader.readDevices());
  return reader;
}

Status SeriesReader::readRuns(int64_t without) {
  const std::string part =
      "SELECT DISTINCT serial FROM device WHERE ?1 <> '' AND serial <> '' AND run IN (SELECT number FROM "
      "chosen)";
  MUSTER_TRY(
      Statement select,
      store_->database().prepare(
          std::string(kChosen) +
          "SELECT number, node, started, simulated, number IN (SELECT number FROM "
          "chosen) FROM run WHERE number <> ?3 AND (number IN (SELECT number FROM chosen) OR (number IN "
          "(SELECT run FROM device WHERE serial IN (" +
          part + ")) AND started >= (SELECT min(started) FROM chosen))) ORDER BY started, number"));
  const auto newest = static_cast<int64_t>(selection_.newest);
  select.bind(selection_.node).bind(newest == 0 ? int64_t{-1} : newest).bind(without);
  for (;;) {
    MUSTER_TRY(const bool more, select.row());
    if (!more) return {};
    KeptRun kept;
    kept.run.number = select.integer(0);
    kept.run.node = select.text(1);
    kept.run.started = select.number(2);
    kept.run.simulated = select.integer(3) != 0;
    kept.chosen = select.integer(4) != 0;
    runs_.push_back(std::move(kept));
  }
}

/// Of runs that were not chosen only those parts that a chosen one has.
Status SeriesReader::readDevices() {
  std::set<std::string> parts;
  MUSTER_TRY(Statement select,
             store_->database().prepare("SELECT name, serial FROM device WHERE run = ? ORDER BY place"));
  for (const bool chosen : {true, false}) {
    for (KeptRun& kept : runs_) {
      if (kept.chosen != chosen) continue;
      std::set<std::string> serials;
      select.bind(kept.run.number);
      for (;;) {
        MUSTER_TRY(const bool more, select.row());
        if (!more) break;
        Device device{select.text(0), select.text(1)};
        if (!device.serial.empty() && !serials.insert(device.serial).second) shared_.insert(device.serial);
        if (chosen) parts.insert(device.serial);
        const bool follow = chosen || (!device.serial.empty() && parts.count(device.serial) > 0 &&
                                       shared_.count(device.serial) == 0);
        kept.devices.push_back(follow ? &*devices_.insert(std::move(device)).first : nullptr);
      }
      select.reset();
    }
  }
  return {};
}

/// Runs whose nodes are connected by parts that they had.
std::vector<SeriesReader::Group> SeriesReader::groups() const {
  NodeSets sets;
  std::map<std::string_view, size_t> nodeOfPart;
  for (const KeptRun& kept : runs_) {
    const size_t node = sets.of(kept.run.node);
    for (const Device* device : kept.devices) {
      if (device == nullptr || device->serial.empty() || shared_.count(device->serial) > 0) continue;
      const auto [at, isNew] = nodeOfPart.try_emplace(device->serial, node);
      if (!isNew) sets.join(at->second, node);
    }
  }
  std::map<size_t, Group> found;
  for (const KeptRun& kept : runs_) found[sets.of(kept.run.node)].push_back(&kept);
  std::vector<Group> out;
  out.reserve(found.size());
  for (auto& [root, group] : found) out.push_back(std::move(group));
  return out;
}

/// In how many passes over its runs a group is read.
Result<size_t> SeriesReader::passesFor(const Group& group) {
  MUSTER_TRY(Statement select,
             store_->database().prepare("SELECT length(medians) / 4 FROM figures WHERE run = ?"));
  size_t readings = 0;
  for (const KeptRun* kept : group) {
    MUSTER_TRY(const bool found, select.bind(kept->run.number).row());
    readings += found ? static_cast<size_t>(select.integer(0)) : 0;
    select.reset();
  }
  return std::clamp<size_t>(readings / mostReadings_ + 1, 1, std::max<size_t>(figures_.size(), 1));
}

Status SeriesReader::each(const std::function<void(const std::vector<Series>&)>& take) {
  for (const Group& group : groups()) {
    MUSTER_TRY(const size_t passes, passesFor(group));
    for (size_t pass = 0; pass < passes; ++pass) {
      MUSTER_CHECK_OK(readGroup(group, pass, passes));
      give(take);
    }
  }
  return {};
}

Status SeriesReader::readGroup(const Group& group, size_t pass, size_t passes) {
  MUSTER_TRY(Statement select,
             store_->database().prepare("SELECT layout, medians FROM figures WHERE run = ?"));
  for (const KeptRun* kept : group) {
    MUSTER_CHECK_OK(readRun(*kept, select, pass, passes));
    select.reset();
  }
  return {};
}

Status SeriesReader::readRun(const KeptRun& kept, Statement& select, size_t pass, size_t passes) {
  MUSTER_TRY(const bool found, select.bind(kept.run.number).row());
  if (!found) return {};
  static const Device kNode;
  const std::string which = fmt::format("run #{} of {}", kept.run.number, printable(kept.run.node, 64));
  MUSTER_CHECK_OK(readLayout(select.integer(0), kept.devices.size()).context(which));
  MUSTER_CHECK_OK(unpackValues(select.blob(1), places_.size(), medians_).context(which));
  for (size_t i = 0; i < places_.size(); ++i) {
    const auto figure = static_cast<size_t>(places_[i].key);
    if (figure % passes != pass || figure >= figures_.size() || !std::isfinite(medians_[i])) continue;
    const Device* device = kept.chosen ? &kNode : nullptr;
    if (places_[i].device >= 0) device = kept.devices[static_cast<size_t>(places_[i].device)];
    if (device == nullptr) continue;
    if (readings_[figure].empty()) present_.push_back(figure);
    readings_[figure].push_back({&kept.run, device, medians_[i]});
  }
  return {};
}

/// Successive runs of a group mostly have one layout.
Status SeriesReader::readLayout(int64_t layout, size_t devices) {
  if (layout == layout_ && devices == layoutDevices_) return {};
  MUSTER_TRY(Statement select, store_->database().prepare("SELECT places FROM layout WHERE number = ?"));
  MUSTER_TRY(const bool found, select.bind(layout).row());
  if (!found) return damagedFigures("the figures");
  MUSTER_TRY(places_, unpackLayout(select.blob(0), devices));
  for (FigurePlace& place : places_) {
    const auto at = figureByNumber_.find(place.key);
    place.key = at == figureByNumber_.end() ? -1 : static_cast<int64_t>(at->second);
  }
  layout_ = layout;
  layoutDevices_ = devices;
  return {};
}

void SeriesReader::give(const std::function<void(const std::vector<Series>&)>& take) {
  std::sort(present_.begin(), present_.end());
  for (const size_t i : present_) {
    auto series = seriesOf(figures_[i], readings_[i], shared_);
    readings_[i].clear();
    // Of other nodes only the parts that were once in this one.
    if (!selection_.node.empty())
      std::erase_if(series, [&](const Series& one) {
        return std::none_of(one.runs.begin(), one.runs.end(),
                            [&](const Run* run) { return run->node == selection_.node; });
      });
    if (!series.empty()) take(series);
  }
  present_.clear();
}

}  // namespace muster::history
