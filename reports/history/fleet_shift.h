// SPDX-License-Identifier: Apache-2.0
// Two fleets beside each other: figures that moved on all nodes, and nodes that moved otherwise.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reports/history/store/store.h"

namespace muster::history {

/// A figure that moved over the whole fleet. Of a node counts the median of its devices.
struct Shift {
  FigureName figure;
  size_t nodes = 0;
  double before = 0, after = 0;  ///< medians of all nodes; base unit
  double change = 0;             ///< median of the nodes' changes: a share, of temperatures degrees
  double noise = 0;              ///< how far the median of as many healthy nodes may move, likewise
  bool worse = false;
};

/// A node whose figure moved otherwise than those of the other nodes, or a device otherwise than the others
/// of its node.
struct OddNode {
  std::string node;
  std::string device;  ///< empty: the node as a whole
  FigureName figure;
  double before = 0, after = 0;
  double change = 0, usual = 0;  ///< as in Shift; `usual` is that of the others
  bool worse = false;            ///< than the others
};

struct FleetShifts {
  std::vector<Shift> shifts;  ///< worsened first, the largest first
  std::vector<OddNode> odd;   ///< likewise
  size_t alike = 0;           ///< figures that did not move beyond the noise
  size_t tooFew = 0;  ///< figures that are zero, or that fewer than kLeastShiftNodes nodes have on both sides
  std::set<int64_t> few;  ///< the numbers of the latter: their runs can only be compared one by one
  std::vector<FigureName> onlyBefore, onlyAfter;  ///< figures that no node has on the other side
};

/// Of fewer, one odd node of the usual noise could not be told from chance.
inline constexpr size_t kLeastShiftNodes = 8;

/// Takes nodes one after another. The spread of the nodes' changes holds what differs from run to run. First,
/// nodes that lie beyond it are set apart: of 16 and more by the median absolute deviation; of fewer, up to
/// half of them at a time, by Student's limit for the best division into two. Then a figure moved if the
/// median of the others exceeds his limit for their mean, and 2% (5 degrees). Devices are judged likewise
/// beside the others of their node, of which there must be four. One false finding is expected in a hundred
/// comparisons of healthy fleets.
class ShiftFinder {
 public:
  /// The runs of one node one after another.
  void add(const std::string& node, const std::vector<Point>& before, const std::vector<Point>& after);
  [[nodiscard]] FleetShifts finish() const;

 private:
  struct DeviceChange {
    const std::string* device = nullptr;  ///< of devices_
    double before = 0, after = 0;
  };
  struct NodeChange {
    std::string node;
    double before = 0, after = 0;
    std::vector<DeviceChange> devices;
  };
  struct Moved {
    FigureName figure;
    std::vector<NodeChange> nodes;
    bool before = false, after = false;  ///< a node has it on this side
    size_t onBoth = 0;                   ///< nodes that have it on both sides
    std::string last;                    ///< of these, the one that was taken last
  };
  static bool isJudged(const Moved& moved);
  static void judgeNodes(const Moved& moved, double p, FleetShifts& out);
  static void judgeDevices(const Moved& moved, double p, FleetShifts& out);
  std::set<std::string> devices_;     ///< their names
  std::map<int64_t, Moved> figures_;  ///< by their numbers in the store
};

}  // namespace muster::history
