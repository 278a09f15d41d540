// SPDX-License-Identifier: Apache-2.0
// Which devices and nodes of a fleet are unlike the others: by a single figure, or by all of them together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runner/sku/learn.h"
#include "runner/sku/learn_parts.h"

namespace muster {
namespace {

constexpr int kMostRounds = 50;
/// Of all healthy figures of one kind, so many are left out by mistake: a tenth of one.
constexpr double kMistakes = 0.1;
/// While the outliers are still in, the window in the middle says nothing of tails: leave more room.
constexpr double kFirstRoom = 1.5;
/// A score of fewer members is no reason to leave one out.
constexpr size_t kLeastScores = 8;

/// Deviations from the centre in sigmas, larger is better.
struct Score {
  int node = 0;
  int device = -1;
  double sum = 0;
  double n = 0;
};

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
  /// How far below the centre figures of this spread may lie among `n`.
  [[nodiscard]] double room(const Spread& spread, size_t n) const {
    const double tail = kMistakes / static_cast<double>(n);
    return window_ == FitWindow::kMiddle ? kFirstRoom * spread.reach(tail) : spread.reach(tail);
  }

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

  void lookOnce() {
    std::map<std::pair<int, int>, Score> devices;
    std::map<int, Score> nodes;
    for (const LearnGroup& group : input_.groups) lookAt(group, devices, nodes);
    std::vector<Score> scores;
    for (const auto& [at, score] : devices) scores.push_back(score);
    lookAtScores(scores, "all that was measured of it, taken together,");
    scores.clear();
    for (const auto& [at, score] : nodes) scores.push_back(score);
    lookAtScores(scores, "all that was measured of the node, taken together,");
  }

  void lookAt(const LearnGroup& group, std::map<std::pair<int, int>, Score>& devices,
              std::map<int, Score>& nodes) {
    std::vector<LearnFigure> kept;
    std::vector<double> values;
    for (const LearnFigure& figure : group.figures) {
      if (isOut(figure.node, figure.device)) continue;
      kept.push_back(figure);
      values.push_back(signedFigure(group, figure.value));
    }
    if (kept.size() < kLeastScores) return;
    const Spread spread = fitSpread(values, window_, spreadFloor(values));
    const double below = room(spread, kept.size());
    // The good side is looked at too: who is far too fast was measured otherwise, or is another model.
    const double above = kFirstRoom * room({0, 1, 0}, kept.size());
    for (size_t i = 0; i < kept.size(); ++i) {
      const double u = (values[i] - spread.centre) / spread.sigma;
      const auto [node, device, value] = kept[i];
      if (u < -below || u > above) leaveOut(node, device, group.text(), u);
      if (device >= 0) add(devices[{node, device}], node, device, u);
      add(nodes[node], node, -1, u);
    }
  }

  static void add(Score& score, int node, int device, double u) {
    score.node = node;
    score.device = device;
    score.sum += u;
    ++score.n;
  }

  /// Means over metrics; how much healthy ones have in common (a warmer rack, better silicon) shows in their
  /// own spread, so that nothing need be known of it.
  void lookAtScores(const std::vector<Score>& scores, const std::string& what) {
    std::vector<Score> kept;
    std::vector<double> values;
    for (const Score& score : scores) {
      if (isOut(score.node, score.device)) continue;
      kept.push_back(score);
      values.push_back(score.sum / score.n);
    }
    if (kept.size() < kLeastScores) return;
    const Spread spread = fitSpread(values, window_, 1e-9);
    const double below = room(spread, kept.size());
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

std::vector<LeftOut> findUnlike(const LearnInput& input) {
  return Search(input).run();
}

}  // namespace muster
