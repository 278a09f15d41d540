// SPDX-License-Identifier: Apache-2.0
// The series of many runs, read figure by figure in bounded memory.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reports/history/store/packed_figures.h"
#include "reports/history/trend.h"

namespace muster::history {

/// Streams the series of the selected runs. Nodes that shared a part are read together, each other node
/// alone. What is in memory at once: the runs without their figures (about 1 KB each), and `mostReadings`
/// values; a group of nodes that has more is read in passes. Series refer to runs, devices and figures of the
/// reader.
class SeriesReader {
 public:
  static constexpr size_t kMostReadings = 2'000'000;

  /// The selected runs; with a node, also what its parts measured in other nodes since the first of these.
  /// `without`: the number of a run to leave out.
  static Result<SeriesReader> open(Store& store, const Selection& selection, int64_t without = 0,
                                   size_t mostReadings = kMostReadings);

  /// Gives all series of one figure in one group of nodes, in every call to `take`.
  Status each(const std::function<void(const std::vector<Series>&)>& take);

 private:
  struct KeptRun {
    Run run;
    std::vector<const Device*> devices;  ///< by place; nullptr: not of the selection
    bool chosen = true;                  ///< else only for parts that a chosen run has
  };
  using Group = std::vector<const KeptRun*>;  ///< by time

  explicit SeriesReader(Store& store, const Selection& selection, size_t mostReadings)
      : store_(&store), selection_(selection), mostReadings_(mostReadings) {}
  Status readRuns(int64_t without);
  Status readDevices();
  std::vector<Group> groups() const;
  Result<size_t> passesFor(const Group& group);
  Status readGroup(const Group& group, size_t pass, size_t passes);
  Status readRun(const KeptRun& run, Statement& select, size_t pass, size_t passes);
  Status readLayout(int64_t layout, size_t devices);
  void give(const std::function<void(const std::vector<Series>&)>& take);

  Store* store_;
  Selection selection_;
  size_t mostReadings_;
  std::vector<FigureName> figures_;  ///< in the order in which they are given
  std::unordered_map<int64_t, size_t> figureByNumber_;
  std::deque<KeptRun> runs_;  ///< from the oldest to the newest
  std::set<Device> devices_;
  std::set<std::string> shared_;                ///< serials that two devices of one run have
  std::vector<std::vector<Reading>> readings_;  ///< of the present pass, by figure
  std::vector<size_t> present_;                 ///< the figures that have readings, in any order
  int64_t layout_ = 0;                          ///< that `places_` holds, with keys as indices of figures_
  size_t layoutDevices_ = 0;
  std::vector<FigurePlace> places_;
  std::vector<double> medians_;
};

}  // namespace muster::history
