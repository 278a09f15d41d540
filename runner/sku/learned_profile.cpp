// SPDX-License-Identifier: Apache-2.0
// Builds a profile from learned limits.
#include "runner/sku/learned_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/sku/learn_parts.h"

namespace muster {
namespace {

constexpr const char* kRemedy =
    "Compare with the other devices of the node and the fleet: clocks, power, temperature, ECC, link widths; "
    "measure it "
    "again alone, then swap its place";

double tolerance(const LearnedLimit& limit) {
  return std::ceil(limit.tolerance * 1e5) / 1e5;
}

std::string chanceText(double share) {
  return fmt::format("{:.2g}%", share * 100);
}

class Builder {
 public:
  Builder(const Profile& base, const LearnInput& input, const Learned& learned, const LearnOptions& options,
          const Provenance& provenance)
      : base_(base), input_(input), learned_(learned), options_(options), provenance_(provenance) {}

  LearnedProfile build() {
    out_.profile = base_;
    out_.profile.expectations.clear();
    out_.profile.path.clear();
    for (const auto& [place, limit] : loosest()) add(place, *limit);
    out_.learned = added_.size();
    for (const Expectation& e : base_.expectations) takeOver(e);
    writeFacts();
    return std::move(out_);
  }

 private:
  /// Metric, labels and parameters.
  using Place = std::tuple<std::string, Labels, Labels>;

  static bool judges(const LearnGroup& group, const LearnGroup& judged) {
    return judged.metric == group.metric && labelsMatch(judged.where, group.where) &&
           judged.params == group.params;
  }

  /// One limit for each place: of all groups that it judges, the one that spares them all.
  /// Nothing where one of those was not learned.
  [[nodiscard]] std::map<Place, const LearnedLimit*> loosest() {
    std::map<Place, const LearnedLimit*> chosen;
    for (const LearnedLimit& own : learned_.limits) {
      const LearnGroup& group = input_.groups[own.group];
      if (const LearnGroup* open = judgedButNotLearned(group)) {
        out_.unused.push_back(fmt::format("{}: its limit would judge {}, too, which was not learned",
                                          group.text(), open->text()));
        continue;
      }
      for (const LearnedLimit& limit : learned_.limits) {
        if (!judges(group, input_.groups[limit.group])) continue;
        const LearnedLimit*& at = chosen[{group.metric, group.where, group.params}];
        if (at == nullptr || end(limit, group.direction) < end(*at, group.direction)) at = &limit;
      }
    }
    return chosen;
  }

  /// A group that a limit of `group` judges, and for which nothing is known to be healthy. What no two
  /// healthy nodes measured says nothing of the others.
  [[nodiscard]] const LearnGroup* judgedButNotLearned(const LearnGroup& group) const {
    for (const auto& [index, why] : learned_.notLearned) {
      const LearnGroup& other = input_.groups[index];
      if (!judges(group, other)) continue;
      std::set<int> nodes;
      for (const LearnFigure& figure : other.figures)
        if (!std::binary_search(learned_.sick.begin(), learned_.sick.end(), figure.node))
          nodes.insert(figure.node);
      if (nodes.size() > 1) return &other;
    }
    return nullptr;
  }

  /// Where it begins to fail, signed so that less is looser.
  static double end(const LearnedLimit& limit, Direction direction) {
    return direction == Direction::kLower ? -limit.value * (1 + limit.tolerance)
                                          : limit.value * (1 - limit.tolerance);
  }

  /// The limit of `place`, unless the base has one that is stricter: healthy nodes meet that one, too.
  void add(const Place& place, const LearnedLimit& limit) {
    const LearnGroup& group = input_.groups[limit.group];
    const Expectation e = expectation(place, limit);
    const auto stricter =
        std::find_if(base_.expectations.begin(), base_.expectations.end(), [&](const Expectation& known) {
          return known.metric == e.metric && labelsMatch(e.where, known.where) &&
                 (known.params.empty() || known.params == e.params) && isBound(known, group.direction) &&
                 isStricter(boundFor(known, base_, group), boundFor(e, base_, group), group.direction);
        });
    if (stricter == base_.expectations.end()) {
      out_.profile.expectations.push_back(e);
      added_.push_back(&group);
    } else
      out_.unused.push_back(fmt::format("{}: {} would be looser than the base's {}", group.text(),
                                        boundText(e, base_, group.direction), stricter->text()));
  }

  [[nodiscard]] Expectation expectation(const Place& place, const LearnedLimit& limit) const {
    const LearnGroup& group = input_.groups[limit.group];
    Expectation e;
    std::tie(e.metric, e.where, e.params) = place;
    e.kind = CheckKind::kBaseline;
    e.unit = group.unit;
    e.limit = roundedFigure(limit.value);
    e.tolerance = tolerance(limit);
    e.source = source(limit, group);
    e.remedy = remedy(group);
    e.origin = "profile " + base_.name;
    return e;
  }

  [[nodiscard]] std::string source(const LearnedLimit& limit, const LearnGroup& group) const {
    return fmt::format(
        "{}learned: n = {} values of {} healthy nodes in stage {} of plan {}, sigma {}, skew {:.3f}; with "
        "{} "
        "confidence at most {} of healthy values miss it; a loss of {} is rejected with 99% probability; "
        "{}; {}; records sha256 {}",
        provenance_.scenario.empty() ? "" : "SIMULATED, ", limit.n, limit.nodes, group.stage,
        provenance_.plan, formatQuantity(limit.sigma, "ratio", 3), limit.skew,
        formatQuantity(options_.confidence, "ratio"), chanceText(learned_.tail),
        formatQuantity(limit.caught, "ratio", 3), provenance_.software, provenance_.date,
        provenance_.records);
  }

  [[nodiscard]] std::string remedy(const LearnGroup& group) const {
    for (const Expectation& e : base_.expectations)
      if (e.metric == group.metric && labelsMatch(group.where, e.where)) return e.remedy;
    for (const Expectation& e : base_.expectations)
      if (e.metric == group.metric) return e.remedy;
    return kRemedy;
  }

  /// A bound of the base goes where a learned one judges all that it judges, and is no looser.
  void takeOver(const Expectation& e) {
    for (size_t i = 0; i < added_.size(); ++i) {
      const Expectation& now = out_.profile.expectations[i];
      const LearnGroup& group = *added_[i];
      if (now.metric != e.metric || !labelsMatch(e.where, now.where) || now.params != e.params ||
          !isBound(e, group.direction) ||
          isStricter(boundFor(e, base_, group), boundFor(now, base_, group), group.direction))
        continue;
      const std::string labels = labelsText(e.where);
      out_.replaced.push_back(e.metric + (labels.empty() ? "" : " " + labels) + ": " + e.text());
      return;
    }
    out_.profile.expectations.push_back(e);
  }

  void writeFacts() {
    auto& facts = out_.profile.facts;
    facts[kLearnedFact] =
        fmt::format("{} nodes ({} left out partly or fully) under plan {}, records sha256 {}", learned_.used,
                    learned_.sick.size(), provenance_.plan, provenance_.records);
    facts["learned_on"] = provenance_.date;
    facts["learned_with"] = provenance_.software;
    facts["learned_for"] = fmt::format(
        "at most {} of healthy nodes rejected, with {} confidence for each limit",
        formatQuantity(options_.falseRejects, "ratio"), formatQuantity(options_.confidence, "ratio"));
    markSimulated(out_.profile, provenance_.scenario);
  }

  const Profile& base_;
  const LearnInput& input_;
  const Learned& learned_;
  const LearnOptions& options_;
  const Provenance& provenance_;
  std::vector<const LearnGroup*> added_;  ///< of the first expectations of the profile
  LearnedProfile out_;
};

/// Name of the peak that a metric with these labels is a share of, as plugins declare them.
double peakOf(const Expectation& e, const Profile& profile) {
  const auto dtype = e.where.find("dtype");
  const auto peak = profile.peaks.find(e.unit == "B/s"          ? "memory_bandwidth"
                                       : dtype == e.where.end() ? ""
                                                                : "flops." + dtype->second);
  return peak == profile.peaks.end() ? kNaN : peak->second;
}

}  // namespace

double roundedFigure(double value) {
  const double scale = std::pow(10, 5 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

bool isBound(const Expectation& e, Direction direction) {
  if (e.severity == Severity::kWarn || e.unit == "text") return false;
  if (e.kind == CheckKind::kBaseline || e.kind == CheckKind::kOfPeak) return true;
  return e.kind == (direction == Direction::kLower ? CheckKind::kMax : CheckKind::kMin);
}

void markSimulated(Profile& profile, const std::string& scenario) {
  if (scenario.empty()) {
    profile.facts.erase(kSimulatedFact);
    return;
  }
  profile.facts[kSimulatedFact] = "SIMULATED: learned from scenario " + scenario + ", no figure was measured";
  if (profile.description.rfind("SIMULATED", 0) != 0)
    profile.description = "SIMULATED: " + profile.description;
}

LearnedProfile learnedProfile(const Profile& base, const LearnInput& input, const Learned& learned,
                              const LearnOptions& options, const Provenance& provenance) {
  return Builder(base, input, learned, options, provenance).build();
}

double boundFigure(const Expectation& e, const Profile& profile, Direction direction) {
  switch (e.kind) {
    case CheckKind::kMin:
    case CheckKind::kMax:
      return e.limit;
    case CheckKind::kBaseline:
      return direction == Direction::kLower ? e.limit * (1 + e.tolerance) : e.limit * (1 - e.tolerance);
    case CheckKind::kOfPeak:
      return e.limit * peakOf(e, profile);
    default:
      return kNaN;
  }
}

double boundFor(const Expectation& e, const Profile& profile, const LearnGroup& group) {
  const auto peak = profile.peaks.find(group.peak);
  if (e.kind == CheckKind::kOfPeak) return peak == profile.peaks.end() ? kNaN : e.limit * peak->second;
  return boundFigure(e, profile, group.direction);
}

bool isStricter(double bound, double than, Direction direction) {
  return direction == Direction::kLower ? bound < than : bound > than;
}

std::string boundText(const Expectation& e, const Profile& profile, Direction direction) {
  const double figure = boundFigure(e, profile, direction);
  if (!std::isfinite(figure)) return e.text();
  const bool most =
      e.kind == CheckKind::kMax || (e.kind == CheckKind::kBaseline && direction == Direction::kLower);
  return fmt::format("{} {}", most ? "at most" : "at least", formatQuantity(figure, e.unit));
}

}  // namespace muster
