// SPDX-License-Identifier: Apache-2.0
// Finds the outliers of a fleet: devices and nodes that differ in a single metric, or in all of them
// together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runner/sku/learn.h"
#include "runner/sku/learn_parts.h"

namespace muster {
namespace {

constexpr int kMostRounds = 50;
/// Of all healthy figures together, so many are left out by mistake: a tenth of one.
constexpr double kMistakes = 0.1;
constexpr double kConfidence = 0.95;
/// While the outliers are still in, the window in the middle says nothing of tails: leave more room.
constexpr double kFirstRoom = 1.5;
/// Means over many figures have hardly any skew left; those of one device may keep what its figures share.
constexpr double kNodeRoom = 1;
constexpr double kDeviceRoom = 1.5;
/// A fit in the middle of n figures knows its sigma within about 1.1 / sqrt(n).
constexpr double kMiddleMargin = 2;
/// A score of fewer members is no reason to leave one out.
constexpr size_t kLeastScores = 8;
/// A device is put beside so many others of its node at the least: with one, nobody knows which of the two is
/// odd.
constexpr size_t kLeastOthers = 2;

/// Deviations from the centre in sigmas, larger is better.
struct Score {
  int node = 0;
  int device = -1;
  double sum = 0;
  double n = 0;
};

/// By node and device.
using Scores = std::map<std::pair<int, int>, Score>;

/// One search; units that are left out stay out, so it ends.
class Search {
 public:
  explicit Search(const LearnInput& input) : input_(input) {}

  std::vector<LeftOut> run() {
    for (const FitWindow window : {FitWindow::kMiddle, FitWindow::kMost}) {
      window_ = window;
      for (int round = 0; round < kMostRounds; ++round) {
        const size_t before = left_.size();
        lookOnce();
        if (left_.size() == before) break;
      }
    }
    return std::move(left_);
  }

 private:
  /// How many sigmas below the centre one of `n` healthy figures may lie, of this many kinds. A fit to few
  /// figures is uncertain, which is room too.
  [[nodiscard]] double room(const Spread& spread, size_t n, size_t kinds) const {
    const auto count = static_cast<double>(n);
    const double tail = kMistakes / (count * static_cast<double>(kinds));
    if (window_ == FitWindow::kMiddle) return kFirstRoom * fitMargin(n) * spread.reach(tail);
    return toleranceFactor(spread, tail, kConfidence, count, {});
  }

  static double fitMargin(size_t n) { return 1 + kMiddleMargin / std::sqrt(static_cast<double>(n)); }

  [[nodiscard]] bool isOut(int node, int device) const {
    return out_.count({node, -1}) > 0 || (device >= 0 && out_.count({node, device}) > 0);
  }

  void leaveOut(int node, int device, const std::string& what, double sigmas) {
    if (isOut(node, device)) return;
    out_.insert({node, device});
    left_.push_back({node, device,
                     fmt::format("{} is {:.1f} sigma {} the others", what, std::fabs(sigmas),
                                 sigmas < 0 ? "worse than" : "better than")});
  }

  /// Single figures first, then devices, then nodes: one broken GPU is no reason to leave out its node.
  void lookOnce() {
    Scores devices;
    Scores nodes;
    std::vector<std::pair<std::string, Scores>> means;
    const size_t before = left_.size();
    for (const LearnGroup& group : input_.groups) lookAt(group, devices, nodes, means);
    if (left_.size() > before) return;
    lookAtScores(devices, "its metrics combined", kDeviceRoom, 1);
    if (left_.size() > before) return;
    lookAtScores(besideNode(devices), "its metrics combined, compared with the other devices of its node,",
                 kDeviceRoom, 1);
    if (left_.size() > before) return;
    for (const auto& [what, scores] : means) lookAtScores(scores, what, kNodeRoom, input_.groups.size());
    lookAtScores(nodes, "the metrics of the node combined", kNodeRoom, 1);
  }

  void lookAt(const LearnGroup& group, Scores& devices, Scores& nodes,
              std::vector<std::pair<std::string, Scores>>& means) {
    std::vector<LearnFigure> kept;
    std::vector<double> values;
    for (const LearnFigure& figure : group.figures) {
      if (isOut(figure.node, figure.device)) continue;
      kept.push_back(figure);
      values.push_back(signedFigure(group, figure.value));
    }
    if (kept.size() < kLeastScores) return;
    const Spread spread = fitSpread(values, window_, spreadFloor(values));
    const double below = room(spread, kept.size(), input_.groups.size());
    // The good side is looked at too: who is far too fast was measured otherwise, or is another model.
    const double above = kFirstRoom * room({0, 1, 0}, kept.size(), input_.groups.size());
    Scores here;
    for (size_t i = 0; i < kept.size(); ++i) {
      const double u = (values[i] - spread.centre) / spread.sigma;
      const int node = kept[i].node;
      const int device = kept[i].device;
      if (u < -below || u > above) leaveOut(node, device, group.text(), u);
      if (device >= 0) add(devices[{node, device}], node, device, u);
      add(nodes[{node, -1}], node, -1, u);
      add(here[{node, -1}], node, -1, u);
    }
    if (here.size() < kept.size())
      means.emplace_back(group.text() + ", the mean of the node,", std::move(here));
  }

  static void add(Score& score, int node, int device, double u) {
    score.node = node;
    score.device = device;
    score.sum += u;
    ++score.n;
  }

  /// Each device's mean less that of the others of its node: what a node's devices have in common (a warm
  /// place, a slow fan) hides no single one of them then.
  static Scores besideNode(const Scores& devices) {
    std::map<int, Score> nodes;
    std::map<int, size_t> counts;
    for (const auto& [at, score] : devices) {
      nodes[score.node].sum += score.sum;
      nodes[score.node].n += score.n;
      ++counts[score.node];
    }
    Scores beside;
    for (const auto& [at, score] : devices) {
      if (counts[score.node] <= kLeastOthers) continue;
      const Score& node = nodes[score.node];
      const double others = (node.sum - score.sum) / (node.n - score.n);
      beside[at] = {score.node, score.device, score.sum / score.n - others, 1};
    }
    return beside;
  }

  /// Means over metrics; how much healthy ones have in common (a warmer rack, better silicon) shows in their
  /// own spread, so that nothing need be known of it.
  void lookAtScores(const Scores& scores, const std::string& what, double factor, size_t kinds) {
    std::vector<Score> kept;
    std::vector<double> values;
    for (const auto& [at, score] : scores) {
      if (isOut(score.node, score.device)) continue;
      kept.push_back(score);
      values.push_back(score.sum / score.n);
    }
    if (kept.size() < kLeastScores) return;
    const Spread spread = fitSpread(values, FitWindow::kMiddle, 1e-9);
    if (window_ == FitWindow::kMiddle) factor = kFirstRoom;
    const auto n = static_cast<double>(kept.size());
    const double below =
        factor * fitMargin(kept.size()) * spread.reach(kMistakes / (n * static_cast<double>(kinds)));
    for (size_t i = 0; i < kept.size(); ++i) {
      const double u = (values[i] - spread.centre) / spread.sigma;
      if (u < -below) leaveOut(kept[i].node, kept[i].device, what, u);
    }
  }

  const LearnInput& input_;
  FitWindow window_ = FitWindow::kMiddle;
  std::set<std::pair<int, int>> out_;
  std::vector<LeftOut> left_;
};

}  // namespace

std::vector<LeftOut> findOutliers(const LearnInput& input) {
  return Search(input).run();
}

}  // namespace muster
