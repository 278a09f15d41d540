// SPDX-License-Identifier: Apache-2.0
// Describes the changes between two profiles.
#include "runner/sku/profile_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/sku/learned_profile.h"

namespace muster {
namespace {

/// Which limits take each other's place: same metric, labels, parameters and side. Of several, those of one
/// severity.
std::string placeOf(const Expectation& e, Direction direction) {
  std::string side = checkKindName(e.kind);
  const bool low = e.kind == CheckKind::kMin || e.kind == CheckKind::kOfPeak;
  if (e.kind == CheckKind::kBaseline) side = direction == Direction::kLower ? "max" : "min";
  if (low) side = "min";
  return fmt::format("{}\n{}\n{}\n{}", e.metric, labelsText(e.where), labelsText(e.params), side);
}

const char* severityOf(const Expectation& e) {
  return e.severity == Severity::kWarn ? "warn" : "fail";
}

void compare(const char* what, const std::string& before, const std::string& after,
             std::vector<std::string>& out) {
  if (before == after) return;
  const auto shown = [](const std::string& text) {
    return text.empty() ? std::string("nothing") : printable(text, 160);
  };
  out.push_back(fmt::format("{}: {}, was {}", what, shown(after), shown(before)));
}

std::vector<std::string> factsDiff(const Profile& a, const Profile& b) {
  std::vector<std::string> out;
  compare("name", a.name, b.name, out);
  compare("description", a.description, b.description, out);
  compare("device_count", std::to_string(a.deviceCount), std::to_string(b.deviceCount), out);
  compare("match.kind", a.match.kind, b.match.kind, out);
  compare("match.pci_ids", join(a.match.pciIds, ", "), join(b.match.pciIds, ", "), out);
  compare("match.names", join(a.match.names, ", "), join(b.match.names, ", "), out);
  compare("match.vendors", join(a.match.vendors, ", "), join(b.match.vendors, ", "), out);
  compare("match.products", join(a.match.products, ", "), join(b.match.products, ", "), out);
  const auto flag = [](bool set) { return std::string(set ? "true" : "false"); };
  compare("match.only_by_name", flag(a.match.onlyByName), flag(b.match.onlyByName), out);
  const auto memory = [](const SkuMatch& m) {
    return formatQuantity(m.memoryMin, "B", 6) + " to " + formatQuantity(m.memoryMax, "B", 6);
  };
  compare("match.memory", memory(a.match), memory(b.match), out);
  const auto maps = [&](const char* group, const auto& x, const auto& y, auto text) {
    std::map<std::string, std::pair<std::string, std::string>> both;
    for (const auto& [name, value] : x) both[name].first = text(name, value);
    for (const auto& [name, value] : y) both[name].second = text(name, value);
    for (const auto& [name, values] : both)
      compare((std::string(group) + "." + name).c_str(), values.first, values.second, out);
  };
  maps("peaks", a.peaks, b.peaks, [](const std::string& name, double value) {
    return formatQuantity(value, name.rfind("flops.", 0) == 0 ? "FLOP/s" : "B/s", 6);
  });
  maps("facts", a.facts, b.facts, [](const std::string&, const std::string& value) { return value; });
  maps("params", a.stageParams, b.stageParams,
       [](const std::string&, const Json& value) { return dumpJson(value); });
  return out;
}

std::string whatOf(const Expectation& e) {
  const std::string labels = labelsText(e.where);
  const std::string params = e.params.empty() ? "" : " with " + printable(labelsText(e.params), 100);
  return e.metric + (labels.empty() ? "" : " " + labels) + params;
}

/// Every field that boundText does not show, or shows together with others.
std::vector<std::string> fieldsDiff(const Expectation& a, const Expectation& b) {
  std::vector<std::string> out;
  const auto share = [](double value) { return formatQuantity(value, "ratio", 6); };
  compare("check", checkKindName(a.kind), checkKindName(b.kind), out);
  compare("tolerance", share(a.tolerance), share(b.tolerance), out);
  compare("statistic", a.statistic, b.statistic, out);
  compare("warning band", share(a.warnBand), share(b.warnBand), out);
  compare("severity", severityOf(a), severityOf(b), out);
  compare("source", a.source, b.source, out);
  compare("remedy", a.remedy, b.remedy, out);
  return out;
}

LimitChange changeOf(const Expectation& a, const Profile& before, const Expectation& b, const Profile& after,
                     Direction direction) {
  LimitChange change;
  change.what = whatOf(b);
  change.before = boundText(a, before, direction);
  change.after = boundText(b, after, direction);
  change.fields = fieldsDiff(a, b);
  const double from = boundFigure(a, before, direction);
  const double to = boundFigure(b, after, direction);
  const bool most =
      b.kind == CheckKind::kMax || (b.kind == CheckKind::kBaseline && direction == Direction::kLower);
  double moved = to - from;
  if (!std::isfinite(moved)) {  // of peers or of stability: their tolerance is what moves
    moved = a.comparesStability() ? a.limit - b.limit : a.tolerance - b.tolerance;
    change.moved = moved;
  } else {
    change.moved = from == 0 ? std::nan("") : moved / std::fabs(from);
    if (most) moved = -moved;
  }
  // A limit that only warns rejects nothing; figures of two statistics cannot be compared.
  if (a.severity != b.severity)
    moved = b.severity == Severity::kWarn ? -1 : 1;
  else if (a.statistic != b.statistic)
    moved = 0;
  change.change = moved > 0 ? Change::kTighter : moved < 0 ? Change::kLooser : Change::kOther;
  return change;
}

/// Equal wherever they are written.
bool sameLimit(Expectation a, const Expectation& b) {
  a.origin = b.origin;
  a.at = b.at;
  return a == b;
}

}  // namespace

ProfileDiff diffProfiles(const Profile& before, const Profile& after,
                         const std::function<Direction(const std::string& metric)>& directionOf) {
  ProfileDiff diff;
  diff.facts = factsDiff(before, after);
  std::multimap<std::string, const Expectation*> old;
  for (const Expectation& e : before.expectations) old.emplace(placeOf(e, directionOf(e.metric)), &e);
  // The nearest takes the place: an equal one, else one of the same severity, else any.
  std::vector<const Expectation*> left;
  for (const Expectation& e : after.expectations) left.push_back(&e);
  const auto pair = [&](const auto& fits, const auto& found) {
    std::erase_if(left, [&](const Expectation* e) {
      const auto [begin, end] = old.equal_range(placeOf(*e, directionOf(e->metric)));
      const auto at = std::find_if(begin, end, [&](const auto& entry) { return fits(*entry.second, *e); });
      if (at == end) return false;
      found(*at->second, *e);
      old.erase(at);
      return true;
    });
  };
  const auto changed = [&](const Expectation& a, const Expectation& b) {
    diff.limits.push_back(changeOf(a, before, b, after, directionOf(b.metric)));
  };
  // A limit that is the same may move with its peak.
  const auto settled = [&](const Expectation& a, const Expectation& b) {
    const LimitChange change = changeOf(a, before, b, after, directionOf(b.metric));
    if (change.change == Change::kOther)
      ++diff.same;
    else
      diff.limits.push_back(change);
  };
  pair(sameLimit, settled);
  pair([](const Expectation& a, const Expectation& b) { return a.severity == b.severity; }, changed);
  pair([](const Expectation&, const Expectation&) { return true; }, changed);
  const auto alone = [&](const Expectation& e, const Profile& profile, Change change) {
    LimitChange limit;
    limit.change = change;
    limit.what = whatOf(e);
    (change == Change::kAdded ? limit.after : limit.before) =
        boundText(e, profile, directionOf(e.metric)) + (e.severity == Severity::kWarn ? " (only warns)" : "");
    limit.moved = std::nan("");
    diff.limits.push_back(limit);
  };
  for (const Expectation* e : left) alone(*e, after, Change::kAdded);
  for (const auto& [place, e] : old) alone(*e, before, Change::kRemoved);
  return diff;
}

}  // namespace muster
