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

/// Which limits take each other's place: same metric, labels, and side.
std::string placeOf(const Expectation& e, Direction direction) {
  std::string side = checkKindName(e.kind);
  const bool low = e.kind == CheckKind::kMin || e.kind == CheckKind::kOfPeak;
  if (e.kind == CheckKind::kBaseline) side = direction == Direction::kLower ? "max" : "min";
  if (low) side = "min";
  const char* severity = e.severity == Severity::kWarn ? "warn" : "fail";
  return fmt::format("{}\n{}\n{}\n{}", e.metric, labelsText(e.where), side, severity);
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

LimitChange changeOf(const Expectation& a, const Profile& before, const Expectation& b, const Profile& after,
                     Direction direction) {
  LimitChange change;
  const std::string labels = labelsText(b.where);
  change.what = b.metric + (labels.empty() ? "" : " " + labels);
  change.before = boundText(a, before, direction);
  change.after = boundText(b, after, direction);
  const double from = boundFigure(a, before, direction);
  const double to = boundFigure(b, after, direction);
  const bool most =
      b.kind == CheckKind::kMax || (b.kind == CheckKind::kBaseline && direction == Direction::kLower);
  double moved = to - from;
  if (!std::isfinite(moved)) {  // of peers or of stability: their tolerance is what moves
    moved = (a.kind == CheckKind::kCvMax ? a.limit - b.limit : a.tolerance - b.tolerance);
    change.moved = moved;
  } else {
    change.moved = from == 0 ? std::nan("") : moved / std::fabs(from);
    if (most) moved = -moved;
  }
  change.change = moved > 0 ? Change::kTighter : moved < 0 ? Change::kLooser : Change::kOther;
  return change;
}

bool sameCheck(const Expectation& a, const Expectation& b) {
  return a.text() == b.text() && a.limit == b.limit && a.tolerance == b.tolerance && a.warnBand == b.warnBand;
}

}  // namespace

ProfileDiff diffProfiles(const Profile& before, const Profile& after,
                         const std::function<Direction(const std::string& metric)>& directionOf) {
  ProfileDiff diff;
  diff.facts = factsDiff(before, after);
  std::multimap<std::string, const Expectation*> old;
  for (const Expectation& e : before.expectations) old.emplace(placeOf(e, directionOf(e.metric)), &e);
  const auto alone = [&](const Expectation& e, const Profile& profile, Change change) {
    LimitChange limit;
    const std::string labels = labelsText(e.where);
    limit.change = change;
    limit.what = e.metric + (labels.empty() ? "" : " " + labels);
    (change == Change::kAdded ? limit.after : limit.before) = boundText(e, profile, directionOf(e.metric));
    limit.moved = std::nan("");
    diff.limits.push_back(limit);
  };
  for (const Expectation& e : after.expectations) {
    const Direction direction = directionOf(e.metric);
    const auto at = old.find(placeOf(e, direction));
    if (at == old.end()) {
      alone(e, after, Change::kAdded);
      continue;
    }
    const LimitChange change = changeOf(*at->second, before, e, after, direction);
    if (sameCheck(*at->second, e) && change.change == Change::kOther)
      ++diff.same;
    else
      diff.limits.push_back(change);
    old.erase(at);
  }
  for (const auto& [place, e] : old) alone(*e, before, Change::kRemoved);
  return diff;
}

}  // namespace muster
