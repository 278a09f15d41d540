// SPDX-License-Identifier: Apache-2.0
// Learns limits from the values of a fleet.
#include "runner/sku/learn.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/sku/learn_parts.h"

namespace muster {
namespace {

/// Healthy values lean no more to the bad side: a skew normal distribution comes to at most 0.17.
constexpr double kHealthySkew = 0.2;
constexpr double kSureCatch = 0.99;
constexpr double kWidest = 0.25;  // tolerance; a limit further away would catch nothing worth the name
/// Two places of all nodes this far apart, in sigmas of one place (medians of 8 nodes at 56 places differ by
/// 2), have no limit in common that is worth the name.
constexpr double kPlacesApart = 4;
constexpr double kPlacesShare = 0.02;  ///< nor where this share lies between them; less widens it by little
constexpr size_t kMostNamed = 5;

/// "n1 (gemm failed), n2, and 7 more"
std::string named(const LearnInput& input, const std::vector<int>& nodes, const std::vector<LeftOut>& left) {
  std::vector<std::string> parts;
  for (const int node : nodes) {
    if (parts.size() == kMostNamed) {
      parts.push_back(fmt::format("and {} more", nodes.size() - kMostNamed));
      break;
    }
    const LearnNode& at = input.nodes[static_cast<size_t>(node)];
    std::string why = at.sick;
    for (const LeftOut& out : left)
      if (why.empty() && out.node == node) why = out.why;
    parts.push_back(fmt::format("{} ({})", at.name, why));
  }
  return join(parts, "; ");
}

/// "n1, n2 and 7 more"
std::string namesOf(const LearnInput& input, const std::vector<int>& nodes) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(nodes.size(), kMostNamed); ++i)
    names.push_back(input.nodes[static_cast<size_t>(nodes[i])].name);
  return join(names, ", ") +
         (nodes.size() > kMostNamed ? fmt::format(" and {} more", nodes.size() - kMostNamed) : "");
}

size_t nodesOf(const LearnGroup& group) {
  std::set<int> nodes;
  for (const LearnFigure& figure : group.figures) nodes.insert(figure.node);
  return nodes.size();
}

/// Of a node's figures so many, evenly from the worst to the best.
std::vector<LearnFigure> fewer(std::vector<LearnFigure> figures, size_t count) {
  std::sort(figures.begin(), figures.end(), [](const LearnFigure& a, const LearnFigure& b) {
    return std::pair(a.value, a.device) < std::pair(b.value, b.device);
  });
  if (count == 1) return {figures[figures.size() / 2]};
  std::vector<LearnFigure> kept;
  for (size_t i = 0; i < count; ++i) kept.push_back(figures[i * (figures.size() - 1) / (count - 1)]);
  return kept;
}

/// No node outvotes the others by the number of its figures: it keeps no more than the node in the middle
/// has.
void balance(LearnGroup& group) {
  std::map<int, std::vector<LearnFigure>> nodes;
  for (const LearnFigure& figure : group.figures) nodes[figure.node].push_back(figure);
  std::vector<size_t> counts;
  for (const auto& [node, figures] : nodes) counts.push_back(figures.size());
  std::sort(counts.begin(), counts.end());
  if (counts.empty() || counts.back() == counts[counts.size() / 2]) return;
  const size_t most = counts[counts.size() / 2];
  group.figures.clear();
  for (auto& [node, figures] : nodes) {
    if (figures.size() > most) figures = fewer(std::move(figures), most);
    group.figures.insert(group.figures.end(), figures.begin(), figures.end());
  }
}

class Learner {
 public:
  Learner(const LearnInput& input, const LearnOptions& options) : input_(input), options_(options) {}

  Result<Learned> run() {
    MUSTER_CHECK_OK(checkFigures(input_));
    MUSTER_CHECK_OK(chooseHealthy());
    // A node is judged by as many figures as the fullest one has; each gets its share of the false alarms.
    learned_.tail = options_.falseRejects / std::max(1.0, figuresOfANode());
    for (size_t i = 0; i < input_.groups.size(); ++i) MUSTER_CHECK_OK(learnGroup(i));
    if (learned_.limits.empty())
      return refusal(fmt::format("no limit could be learned{}{}",
                                 learned_.notLearned.empty() ? "" : "; the first: ",
                                 learned_.notLearned.empty() ? "" : learned_.notLearned.front().second));
    return std::move(learned_);
  }

 private:
  Status chooseHealthy() {
    const size_t all = input_.nodes.size();
    if (all < options_.leastNodes)
      return refusal(
          fmt::format("{} nodes are too few to learn limits: required at least {}; run the plan on more "
                      "nodes of this SKU, or write the profile by hand",
                      all, options_.leastNodes));
    for (size_t i = 0; i < all; ++i)
      if (!input_.nodes[i].sick.empty()) out_.insert({static_cast<int>(i), -1});
    counted_ = input_.groups;
    dropOut();
    LearnInput rest{input_.nodes, {}, {}};
    for (LearnGroup& group : counted_) {
      balance(group);
      if (isMeasured(group)) rest.groups.push_back(group);
    }
    learned_.leftOut = findOutliers(rest, options_.mostSick);
    for (const LeftOut& left : learned_.leftOut) out_.insert({left.node, left.device});
    dropOut();
    std::set<int> sick;
    std::set<int> gone;
    for (const auto& [node, device] : out_) {
      sick.insert(node);
      if (device < 0) gone.insert(node);
    }
    learned_.sick.assign(sick.begin(), sick.end());
    learned_.used = all - gone.size();
    return checkHealth(all, sick.size());
  }

  [[nodiscard]] Status checkHealth(size_t all, size_t sick) const {
    const std::string who = named(input_, learned_.sick, learned_.leftOut);
    if (static_cast<double>(sick) > options_.mostSick * static_cast<double>(all))
      return refusal(fmt::format(
          "{} of {} nodes failed or are outliers, required at most {}: the healthy majority is unclear. They "
          "are: {}. Repair or remove them and run the plan again; if the limits they missed were wrong, "
          "re-evaluate the records with other limits first (`muster judge`)",
          sick, all, formatQuantity(options_.mostSick, "ratio"), who));
    if (all - sick < options_.leastNodes)
      return refusal(fmt::format(
          "{} of {} nodes are healthy, required at least {}; left out: {}. Run the plan on more nodes",
          all - sick, all, options_.leastNodes, who));
    return {};
  }

  void dropOut() {
    for (LearnGroup& group : counted_)
      std::erase_if(group.figures, [&](const LearnFigure& f) {
        return out_.count({f.node, -1}) > 0 || out_.count({f.node, f.device}) > 0;
      });
  }

  /// Whether enough nodes measured it for a limit.
  [[nodiscard]] bool isMeasured(const LearnGroup& group) const {
    return nodesOf(group) >= options_.leastNodes;
  }

  [[nodiscard]] double figuresOfANode() const {
    std::map<int, size_t> counts;
    size_t most = 0;
    for (const LearnGroup& group : counted_) {
      if (!isMeasured(group)) continue;
      for (const LearnFigure& figure : group.figures) most = std::max(most, ++counts[figure.node]);
    }
    return static_cast<double>(most);
  }

  void notLearned(size_t index, const std::string& why) { learned_.notLearned.emplace_back(index, why); }

  Status learnGroup(size_t index) {
    const LearnGroup& group = counted_[index];
    std::vector<double> values;
    std::vector<int> nodes;
    for (const LearnFigure& figure : group.figures) {
      values.push_back(signedFigure(group, figure.value));
      nodes.push_back(figure.node);
    }
    LearnedLimit limit;
    limit.group = index;
    limit.n = values.size();
    limit.nodes = nodesOf(group);
    if (limit.nodes < options_.leastNodes) {
      notLearned(index, fmt::format("{}: {} healthy nodes measured it, required at least {}", group.text(),
                                    limit.nodes, options_.leastNodes));
      return {};
    }
    const Spread spread = fitSpread(values, FitWindow::kMost, spreadFloor(values));
    if (spread.centre == 0) {
      notLearned(index, fmt::format("{}: zero on every node", group.text()));
      return {};
    }
    if (const auto kinds = twoKinds(nodeMeans(group))) {
      notLearned(index, fmt::format(
                            "{}: two kinds of nodes, {:.1f} sigma apart, and it is unclear which is healthy; "
                            "the fewer are {}: {}. Learn from one kind alone",
                            group.text(), kinds->apart, kinds->worse ? "worse" : "better",
                            namesOf(input_, kinds->fewer)));
      return {};
    }
    const Clustering clustering = clusteringOf(values, nodes);
    const double unsure = skewError(static_cast<double>(limit.n), clustering);
    const bool longTail = spread.skew > kHealthySkew + normalQuantile(options_.confidence) * unsure;
    if (const std::string apart = placesApart(group, longTail ? 0 : kPlacesShare * std::fabs(spread.centre));
        !apart.empty()) {
      notLearned(index, apart);
      return {};
    }
    if (longTail) {
      notLearned(index,
                 fmt::format("{}: some values are worse than the spread of the others explains (skew "
                             "{:.2f}, expected at most {}). The worst nodes are {}: check whether they "
                             "are faulty or of another kind",
                             group.text(), spread.skew, kHealthySkew, worstOf(group)));
      return {};
    }
    setLimit(limit, spread, clustering);
    MUSTER_CHECK_OK(checkPossible(group, input_.physical[index], limit.value));
    if (limit.tolerance > kWidest)
      notLearned(
          index,
          fmt::format("{}: healthy values vary by {} (one sigma) over {} nodes; a limit that accepts them "
                      "would be {} away, expected at most {}. Check for two kinds of nodes and the worst "
                      "({}), run the plan on more nodes, or measure longer",
                      group.text(), formatQuantity(limit.sigma, "ratio", 2), limit.nodes,
                      formatQuantity(limit.tolerance, "ratio", 2), formatQuantity(kWidest, "ratio", 2),
                      worstOf(group)));
    else
      learned_.limits.push_back(limit);
    return {};
  }

  /// Why no limit serves all places (GPUs, peers) of the nodes, which differ by more than `least` alike in
  /// all nodes; empty: one does.
  [[nodiscard]] std::string placesApart(const LearnGroup& group, double least) const {
    const std::map<MeasuredPlace, double> medians = placeMedians(group);
    if (medians.size() < 2) return "";
    const auto [worst, best] = std::minmax_element(
        medians.begin(), medians.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::vector<double> values = besidePlaces(group);
    const double gap = best->second - worst->second;
    const double sigma = fitSpread(values, FitWindow::kMost, spreadFloor(values)).sigma;
    if (gap <= std::max(least, kPlacesApart * sigma)) return "";
    return fmt::format(
        "{}: {} is worse than {} in all nodes alike, by {} ({:.1f} sigma), so one limit cannot fit both. "
        "Unless the machines are built so, check what the nodes have in common: slot, cable, cooling, BIOS",
        group.text(), placeText(group, worst->first), placeText(group, best->first),
        formatQuantity(gap / std::fabs(medianOf(values)), "ratio", 2), gap / sigma);
  }

  /// "gpu3 peer=gpu1"
  [[nodiscard]] std::string placeText(const LearnGroup& group, const MeasuredPlace& place) const {
    const auto at = std::find_if(group.figures.begin(), group.figures.end(), [&](const LearnFigure& f) {
      return MeasuredPlace{f.device, f.place} == place;
    });
    std::vector<std::string> parts;
    if (at->device >= 0)
      parts.push_back(input_.nodes[static_cast<size_t>(at->node)].devices[static_cast<size_t>(at->device)]);
    if (at->place >= 0) parts.push_back(input_.places[static_cast<size_t>(at->place)]);
    return parts.empty() ? "the node" : join(parts, " ");
  }

  static std::vector<std::pair<double, int>> nodeMeans(const LearnGroup& group) {
    std::map<int, std::pair<double, double>> sums;           // and numbers
    const std::vector<double> values = besidePlaces(group);  // a node may lack a place
    for (size_t i = 0; i < values.size(); ++i) {
      sums[group.figures[i].node].first += values[i];
      ++sums[group.figures[i].node].second;
    }
    std::vector<std::pair<double, int>> means;
    for (const auto& [node, sum] : sums) means.emplace_back(sum.first / sum.second, node);
    return means;
  }

  [[nodiscard]] std::string worstOf(const LearnGroup& group) const {
    auto means = nodeMeans(group);
    std::sort(means.begin(), means.end());
    std::vector<int> worst;
    for (size_t i = 0; i < std::min(means.size(), kMostNamed); ++i) worst.push_back(means[i].second);
    return namesOf(input_, worst);
  }

  void setLimit(LearnedLimit& limit, const Spread& spread, const Clustering& clustering) const {
    limit.value = std::fabs(spread.centre);
    limit.sigma = spread.sigma / limit.value;
    limit.skew = spread.skew;
    limit.tolerance = limit.sigma * toleranceFactor(spread, learned_.tail, options_.confidence,
                                                    static_cast<double>(limit.n), clustering);
    limit.caught = limit.tolerance + limit.sigma * normalQuantile(kSureCatch);
  }

  const LearnInput& input_;
  const LearnOptions& options_;
  std::set<std::pair<int, int>> out_;
  std::vector<LearnGroup> counted_;  ///< the groups of the input with the figures that count
  Learned learned_;
};

}  // namespace

Status checkFigures(const LearnInput& input) {
  for (const LearnGroup& group : input.groups) {
    for (const LearnFigure& figure : group.figures) {
      if (std::isfinite(figure.value) && figure.value >= 0) continue;
      return refusal(
          fmt::format("{} of {} is {}: a rate or a time is a number from zero up; this record is damaged, "
                      "take it out of the folder",
                      group.text(), input.nodes[static_cast<size_t>(figure.node)].name, figure.value));
    }
  }
  return {};
}

Status checkPossible(const LearnGroup& group, const PhysicalLimit& physical, double value) {
  const bool rate = group.direction == Direction::kHigher;
  if (physical.most <= 0 || !rate || value <= physical.most) return {};
  return refusal(
      fmt::format("{} is {}, above the physical limit {} ({}). The measurement or the peak in the profile "
                  "is wrong, and so would be the learned limit. Check both, then learn again",
                  group.text(), formatQuantity(value, group.unit), formatQuantity(physical.most, group.unit),
                  physical.source));
}

std::string LearnGroup::text() const {
  const std::string labels = labelsText(where);
  return fmt::format("{}{}{} in stage {}", metric, labels.empty() ? "" : " ", labels, stage);
}

Result<Learned> learnLimits(const LearnInput& input, const LearnOptions& options) {
  return Learner(input, options).run();
}

}  // namespace muster
