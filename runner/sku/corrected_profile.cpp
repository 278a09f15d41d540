// SPDX-License-Identifier: Apache-2.0
// Moves the limits of a profile to what machines measured, each with its provenance.
#include "runner/sku/corrected_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runner/core/majority.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/sku/learn_parts.h"

namespace muster {
namespace {

/// A bound that would move less than this stays.
constexpr double kSame = 0.01;
constexpr size_t kMostNodes = 4;
constexpr const char* kInPlaceOf = "; in place of ";

/// What the healthy nodes measured of one group.
struct Measured {
  const LearnGroup* group = nullptr;
  double value = 0;  ///< median over nodes of each one's median over devices: one figure for each node
  double bound = 0;  ///< of the base, for this group
  std::set<int> nodes{};
  size_t figures = 0;
  size_t samples = 0;

  [[nodiscard]] bool lower() const { return group->direction == Direction::kLower; }
  /// Below 1: the bound is missed.
  [[nodiscard]] double headroom() const { return lower() ? bound / value : value / bound; }
};

class Corrector {
 public:
  Corrector(const Profile& base, const LearnInput& input, double tolerance, const Provenance& provenance)
      : base_(base), input_(input), tolerance_(tolerance), provenance_(provenance) {}

  Result<CorrectedProfile> run() {
    MUSTER_CHECK_OK(checkFigures(input_));
    for (const LearnNode& node : input_.nodes) healthy_ += node.sick.empty() ? 1 : 0;
    if (healthy_ == 0)
      return refusal(
          fmt::format("no healthy node: {}: {}. Only a missed limit of the profile may be "
                      "corrected; repair the rest and run the plan again",
                      input_.nodes.front().name, input_.nodes.front().sick));
    out_.profile = base_;
    out_.profile.path.clear();
    for (Expectation& e : out_.profile.expectations) MUSTER_CHECK_OK(correct(e));
    auto& all = out_.profile.expectations;
    all.insert(all.end(), added_.begin(), added_.end());
    if (out_.corrections.empty() && out_.confirmed.empty())
      return refusal(
          fmt::format("no limit of profile {} was measured{}", base_.name,
                      notCounted_.empty() ? "" : " by most nodes; the first: " + *notCounted_.begin()));
    out_.notCounted.assign(notCounted_.begin(), notCounted_.end());
    writeFacts();
    return std::move(out_);
  }

 private:
  Status correct(Expectation& e) {
    MUSTER_TRY(const std::vector<Measured> all, judgedBy(e));
    if (all.empty()) {
      ++out_.kept;
      return {};
    }
    const Measured& weakest =
        *std::min_element(all.begin(), all.end(),
                          [](const Measured& a, const Measured& b) { return a.headroom() < b.headroom(); });
    if (weakest.headroom() < 1) {
      keepForOthers(e, all);
      move(e, weakest);
      return {};
    }
    // What was not measured may be slower: of a limit that holds for more, only the part that was is
    // tightened.
    bool moved = false;
    const Expectation before = e;
    for (const Measured& found : all) {
      if (isWeakestOfItsLabels(found, all) && tighter(before, found) > 1 + kSame) {
        if (found.group->where == before.where && found.group->params == before.params)
          move(e, found);
        else if (!isBoundElsewhere(before, found))
          move(narrowed(before, *found.group), found);
        else
          continue;
        moved = true;
      }
    }
    if (!moved)
      out_.confirmed.push_back(fmt::format("{}: {}; measured {}", name(e.metric, e.where),
                                           text(weakest, weakest.bound),
                                           formatQuantity(weakest.value, weakest.group->unit)));
    return {};
  }

  /// Before `e` moves: what meets it keeps it.
  void keepForOthers(const Expectation& e, const std::vector<Measured>& all) {
    for (const Measured& found : all) {
      const LearnGroup& group = *found.group;
      const bool same = group.where == e.where && group.params == e.params;
      if (!same && found.headroom() >= 1 && isWeakestOfItsLabels(found, all) && !isBoundElsewhere(e, found))
        narrowed(e, group);
    }
  }

  static std::string name(const std::string& metric, const Labels& where) {
    const std::string labels = labelsText(where);
    return metric + (labels.empty() ? "" : " " + labels);
  }

  [[nodiscard]] double toleranceOf(const Expectation& e) const {
    return e.kind == CheckKind::kBaseline ? e.tolerance : tolerance_;
  }

  [[nodiscard]] double boundBy(const Expectation& e, const Measured& found) const {
    return found.value * (found.lower() ? 1 + toleranceOf(e) : 1 - toleranceOf(e));
  }

  /// By how much the bound would be tighter than that of the base.
  [[nodiscard]] double tighter(const Expectation& e, const Measured& found) const {
    const double bound = boundBy(e, found);
    return found.lower() ? found.bound / bound : bound / found.bound;
  }

  static bool isWeakestOfItsLabels(const Measured& found, const std::vector<Measured>& all) {
    return std::none_of(all.begin(), all.end(), [&](const Measured& other) {
      return &other != &found && other.group->where == found.group->where &&
             (other.headroom() < found.headroom() ||
              (other.headroom() == found.headroom() && &other < &found));
    });
  }

  /// Whether another limit of the base is about these figures in particular.
  [[nodiscard]] bool isBoundElsewhere(const Expectation& e, const Measured& found) const {
    const LearnGroup& group = *found.group;
    return std::any_of(base_.expectations.begin(), base_.expectations.end(), [&](const Expectation& other) {
      const bool narrower =
          other.where.size() > e.where.size() || (e.params.empty() && !other.params.empty());
      return narrower && judges(other, group) && isBound(other, group.direction);
    });
  }

  static bool judges(const Expectation& e, const LearnGroup& group) {
    return e.metric == group.metric && labelsMatch(group.where, e.where) &&
           (e.params.empty() || e.params == group.params);
  }

  Expectation& narrowed(const Expectation& e, const LearnGroup& group) {
    added_.push_back(e);
    added_.back().where = group.where;
    added_.back().params = group.params;
    return added_.back();
  }

  /// Moves `e` to what was measured.
  void move(Expectation& e, const Measured& found) {
    const double bound = boundBy(e, found);
    const std::string before = text(found, found.bound);
    e.source = source(e, found, before);
    measuredBy_.insert(found.nodes.begin(), found.nodes.end());
    if (e.kind == CheckKind::kBaseline)
      e.limit = roundedFigure(found.value);
    else if (e.kind == CheckKind::kOfPeak)
      e.limit = std::floor(e.limit * bound / found.bound * 1e4) / 1e4;
    else
      e.limit = roundedFigure(bound);
    const std::string by = found.group->where == e.where ? "" : " by " + labelsText(found.group->where);
    out_.corrections.push_back({name(e.metric, e.where), before, text(found, bound),
                                formatQuantity(found.value, found.group->unit) + by, found.headroom() < 1});
  }

  static std::string text(const Measured& found, double bound) {
    return fmt::format("{} {}", found.lower() ? "at most" : "at least",
                       formatQuantity(bound, found.group->unit));
  }

  /// What `e` judges; nothing where it is no bound of something that was measured.
  [[nodiscard]] Result<std::vector<Measured>> judgedBy(const Expectation& e) {
    std::vector<Measured> all;
    if (e.statistic != "median") return all;
    for (size_t i = 0; i < input_.groups.size(); ++i) {
      const LearnGroup& group = input_.groups[i];
      if (!judges(e, group) || !isBound(e, group.direction)) continue;
      const Measured found = measured(group, e);
      if (found.figures == 0 || found.value <= 0 || !(found.bound > 0)) continue;
      if (!isMajority(found.nodes.size(), healthy_)) {
        notCounted_.insert(
            fmt::format("{}: {} of {} healthy nodes", group.text(), found.nodes.size(), healthy_));
        continue;
      }
      MUSTER_CHECK_OK(checkPossible(group, input_.physical[i], found.value));
      all.push_back(found);
    }
    return all;
  }

  [[nodiscard]] Measured measured(const LearnGroup& group, const Expectation& e) const {
    Measured found{&group};
    std::map<int, std::vector<double>> nodes;
    for (const LearnFigure& figure : group.figures) {
      if (!input_.nodes[static_cast<size_t>(figure.node)].sick.empty()) continue;
      nodes[figure.node].push_back(figure.value);
      ++found.figures;
      found.samples += figure.samples;
    }
    std::vector<double> medians;
    for (const auto& [node, values] : nodes) {
      found.nodes.insert(node);
      medians.push_back(medianOf(values));
    }
    // Of two in the middle the better one: a limit that half of the nodes meet is not contradicted.
    std::sort(medians.begin(), medians.end());
    if (!medians.empty()) found.value = medians[(medians.size() - (found.lower() ? 1 : 0)) / 2];
    found.bound = boundFor(e, base_, group);
    return found;
  }

  [[nodiscard]] std::string source(const Expectation& e, const Measured& found,
                                   const std::string& before) const {
    // A limit that was corrected before keeps saying what was shipped.
    const size_t at = e.source.find(kInPlaceOf);
    const std::string old = at == std::string::npos ? fmt::format("{}{} ({})", kInPlaceOf, before, e.source)
                                                    : e.source.substr(at);
    return fmt::format(
        "{}measured: {} on {}, {}, median of {}{} figures with {} samples in stage {} of plan {}; "
        "tolerance {}; {}; record sha256 {}{}",
        provenance_.scenario.empty() ? "" : "SIMULATED, ", formatQuantity(found.value, found.group->unit),
        nodesText(found.nodes), provenance_.date,
        found.nodes.size() == 1 ? "" : fmt::format("{} nodes' medians of ", found.nodes.size()),
        found.figures, found.samples, found.group->stage, provenance_.plan,
        e.kind == CheckKind::kBaseline ? "as shipped"
                                       : formatQuantity(tolerance_, "ratio") + " by --tolerance",
        provenance_.software, provenance_.records, old);
  }

  [[nodiscard]] std::string nodesText(const std::set<int>& nodes) const {
    std::vector<std::string> shown;
    for (const int node : nodes)
      if (shown.size() < kMostNodes) shown.push_back(input_.nodes[static_cast<size_t>(node)].name);
    if (nodes.size() > kMostNodes) shown.push_back(fmt::format("{} more", nodes.size() - kMostNodes));
    return join(shown, ", ");
  }

  void writeFacts() {
    auto& facts = out_.profile.facts;
    facts[kLearnedFact] =
        fmt::format("{} of its limits, measured on {} under plan {}, record sha256 {}",
                    out_.corrections.size(), nodesText(measuredBy_), provenance_.plan, provenance_.records);
    facts["learned_on"] = provenance_.date;
    facts["learned_with"] = provenance_.software;
    markSimulated(out_.profile, provenance_.scenario);
  }

  const Profile& base_;
  const LearnInput& input_;
  double tolerance_;
  const Provenance& provenance_;
  size_t healthy_ = 0;                ///< nodes
  std::set<int> measuredBy_;          ///< nodes whose figures moved a limit
  std::vector<Expectation> added_;    ///< parts of wider limits
  std::set<std::string> notCounted_;  ///< see CorrectedProfile
  CorrectedProfile out_;
};

}  // namespace

Result<CorrectedProfile> correctedProfile(const Profile& base, const LearnInput& input, double tolerance,
                                          const Provenance& provenance) {
  return Corrector(base, input, tolerance, provenance).run();
}

}  // namespace muster
