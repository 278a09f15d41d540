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
/// Two kinds of nodes are so many sigmas of one kind apart: of n healthy nodes, normal or with a tail of skew
/// 0.2, cut in two where they differ most, fewer than one in a thousand (simulated).
double apartOf(size_t n) {
  return 6 + 40 / static_cast<double>(n);
}
constexpr size_t kLeastOfAKind = 2;
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
  Search(const LearnInput& input, double mostSick) : input_(input), mostSick_(mostSick) {}

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
    std::vector<std::pair<std::string, Scores>> kinds;  // by metric, the nodes
    const size_t before = left_.size();
    for (const LearnGroup& group : input_.groups) lookAt(group, devices, nodes, kinds);
    if (left_.size() > before) return;
    for (const auto& [what, scores] : kinds) lookForTwoKinds(scores, what);
    lookForTwoKinds(nodes, "the metrics of the node combined,");
    if (left_.size() > before) return;
    lookAtScores(devices, "its metrics combined", kDeviceRoom, 1);
    if (left_.size() > before) return;
    lookAtScores(besideNode(devices), "its metrics combined, compared with the other devices of its node,",
                 kDeviceRoom, 1);
    if (left_.size() > before) return;
    for (const auto& [what, scores] : kinds)
      if (isMean(scores)) lookAtScores(scores, what, kNodeRoom, input_.groups.size());
    lookAtScores(nodes, "the metrics of the node combined", kNodeRoom, 1);
  }

  static bool isMean(const Scores& scores) {
    return std::any_of(scores.begin(), scores.end(), [](const auto& entry) { return entry.second.n > 1; });
  }

  void lookAt(const LearnGroup& group, Scores& devices, Scores& nodes,
              std::vector<std::pair<std::string, Scores>>& kinds) {
    LearnGroup left = group;
    std::vector<LearnFigure>& kept = left.figures;
    std::erase_if(kept, [&](const LearnFigure& figure) { return isOut(figure.node, figure.device); });
    if (kept.size() < kLeastScores) return;
    const std::vector<double> values = besidePlaces(left);
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
    kinds.emplace_back(group.text() + (isMean(here) ? ", the mean of the node," : ""), std::move(here));
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

  /// Several nodes that are slow alike are no outliers of the one distribution that they widen. Where too
  /// many are, nobody knows which kind is well.
  void lookForTwoKinds(const Scores& scores, const std::string& what) {
    std::vector<std::pair<double, int>> means;
    for (const auto& [at, score] : scores)
      if (!isOut(score.node, score.device)) means.emplace_back(score.sum / score.n, score.node);
    const auto kinds = twoKinds(means);
    if (!kinds || static_cast<double>(kinds->fewer.size()) > mostSick_ * static_cast<double>(means.size()))
      return;
    for (const int node : kinds->fewer)
      leaveOut(node, -1, what + " of one of two kinds of nodes,",
               kinds->worse ? -kinds->apart : kinds->apart);
  }

  const LearnInput& input_;
  double mostSick_;
  FitWindow window_ = FitWindow::kMiddle;
  std::set<std::pair<int, int>> out_;
  std::vector<LeftOut> left_;
};

}  // namespace

std::map<MeasuredPlace, double> placeMedians(const LearnGroup& group) {
  std::map<MeasuredPlace, std::pair<std::vector<double>, std::set<int>>> places;  // figures and nodes
  for (const LearnFigure& figure : group.figures) {
    auto& [values, nodes] = places[{figure.device, figure.place}];
    values.push_back(signedFigure(group, figure.value));
    nodes.insert(figure.node);
  }
  std::map<MeasuredPlace, double> medians;
  for (const auto& [place, measured] : places)
    if (measured.second.size() >= kLeastScores) medians[place] = medianOf(measured.first);
  return medians;
}

std::vector<double> besidePlaces(const LearnGroup& group) {
  std::vector<double> values;
  for (const LearnFigure& figure : group.figures) values.push_back(signedFigure(group, figure.value));
  const std::map<MeasuredPlace, double> medians = placeMedians(group);
  if (medians.size() < 2) return values;
  const double middle = medianOf(values);
  for (size_t i = 0; i < values.size(); ++i)
    if (const auto own = medians.find({group.figures[i].device, group.figures[i].place});
        own != medians.end())
      values[i] += middle - own->second;
  return values;
}

std::optional<NodeKinds> twoKinds(std::vector<std::pair<double, int>> nodes) {
  const size_t n = nodes.size();
  if (n < kLeastScores) return std::nullopt;
  std::sort(nodes.begin(), nodes.end());
  const double middle = nodes[n / 2].first;  // squares of small differences are exact
  std::vector<double> sums{0}, squares{0};
  for (const auto& [value, node] : nodes) {
    sums.push_back(sums.back() + value - middle);
    squares.push_back(squares.back() + (value - middle) * (value - middle));
  }
  const double floor = std::fabs(middle) * kSpreadFloor;
  NodeKinds kinds;
  size_t cut = 0;
  for (size_t k = kLeastOfAKind; k + kLeastOfAKind <= n; ++k) {
    const double low = sums[k] / static_cast<double>(k);
    const double high = (sums[n] - sums[k]) / static_cast<double>(n - k);
    const double within = squares[n] - sums[k] * low - (sums[n] - sums[k]) * high;
    const double sigma = std::max(std::sqrt(std::max(within, 0.0) / static_cast<double>(n - 2)), floor);
    if (sigma <= 0 || (high - low) / sigma <= kinds.apart) continue;
    kinds.apart = (high - low) / sigma;
    cut = k;
  }
  if (kinds.apart < apartOf(n)) return std::nullopt;
  kinds.worse = 2 * cut <= n;
  for (size_t i = kinds.worse ? 0 : cut; i < (kinds.worse ? cut : n); ++i)
    kinds.fewer.push_back(nodes[i].second);
  return kinds;
}

std::vector<LeftOut> findOutliers(const LearnInput& input, double mostSick) {
  return Search(input, mostSick).run();
}

}  // namespace muster
