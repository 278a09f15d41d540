// SPDX-License-Identifier: Apache-2.0
// Builds a profile from learned limits.
#include "runner/sku/learned_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

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
      : base_(base), input_(input), learned_(learned), options_(options), provenance_(provenance) {
    for (const LearnedLimit& limit : learned.limits) isLearned_.insert(limit.group);
  }

  LearnedProfile build() {
    out_.profile = base_;
    out_.profile.expectations.clear();
    out_.profile.path.clear();
    for (const auto& [at, limit] : loosest()) out_.profile.expectations.push_back(expectation(*limit));
    for (const Expectation& e : base_.expectations) takeOver(e);
    writeFacts();
    return std::move(out_);
  }

 private:
  using Place = std::pair<std::string, Labels>;

  /// One limit for each metric and labels: where several stages measure it, the one that spares them all.
  [[nodiscard]] std::map<Place, const LearnedLimit*> loosest() const {
    std::map<Place, const LearnedLimit*> chosen;
    for (const LearnedLimit& limit : learned_.limits) {
      const LearnGroup& group = input_.groups[limit.group];
      const LearnedLimit*& at = chosen[{group.metric, group.where}];
      if (at == nullptr || end(limit, group.direction) < end(*at, group.direction)) at = &limit;
    }
    return chosen;
  }

  /// Where it begins to fail, signed so that less is looser.
  static double end(const LearnedLimit& limit, Direction direction) {
    return direction == Direction::kLower ? -limit.value * (1 + limit.tolerance)
                                          : limit.value * (1 - limit.tolerance);
  }

  [[nodiscard]] Expectation expectation(const LearnedLimit& limit) const {
    const LearnGroup& group = input_.groups[limit.group];
    Expectation e;
    e.metric = group.metric;
    e.where = group.where;
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

  /// An expectation of the base goes when all figures of this run that it judges have a learned limit.
  void takeOver(const Expectation& e) {
    const LearnedLimit* successor = nullptr;
    for (size_t i = 0; i < input_.groups.size(); ++i) {
      const LearnGroup& group = input_.groups[i];
      if (group.metric != e.metric || !labelsMatch(group.where, e.where)) continue;
      if (!isBound(e, group.direction) || isLearned_.count(i) == 0) {
        successor = nullptr;
        break;
      }
      for (const LearnedLimit& limit : learned_.limits)
        if (limit.group == i) successor = &limit;
    }
    if (successor == nullptr) {
      out_.profile.expectations.push_back(e);
      return;
    }
    noteReplaced(e, *successor);
  }

  void noteReplaced(const Expectation& e, const LearnedLimit& limit) {
    const LearnGroup& group = input_.groups[limit.group];
    const std::string labels = labelsText(e.where);
    const std::string what = e.metric + (labels.empty() ? "" : " " + labels);
    out_.replaced.push_back(what + ": " + e.text());
    const double before = boundFigure(e, base_, group.direction);
    const Expectation now = expectation(limit);
    const double after = boundFigure(now, base_, group.direction);
    const bool looser = group.direction == Direction::kLower ? after > before : after < before;
    if (looser)
      out_.looser.push_back(fmt::format("{}: {} in place of {}", what, boundText(now, base_, group.direction),
                                        boundText(e, base_, group.direction)));
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
  std::set<size_t> isLearned_;
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

double widestTolerance(const LearnGroup& group, const Profile& base) {
  double widest = group.widest;
  if (base.facts.count(kLearnedFact) > 0) return widest;
  for (const Expectation& e : base.expectations)
    if (e.metric == group.metric && e.kind == CheckKind::kBaseline && labelsMatch(group.where, e.where))
      widest = std::min(widest, e.tolerance);
  return widest;
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

std::string boundText(const Expectation& e, const Profile& profile, Direction direction) {
  const double figure = boundFigure(e, profile, direction);
  if (!std::isfinite(figure)) return e.text();
  const bool most =
      e.kind == CheckKind::kMax || (e.kind == CheckKind::kBaseline && direction == Direction::kLower);
  return fmt::format("{} {}", most ? "at most" : "at least", formatQuantity(figure, e.unit));
}

}  // namespace muster
