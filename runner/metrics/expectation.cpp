// SPDX-License-Identifier: Apache-2.0
// Formats expectations and converts them from and to JSON.
#include "runner/metrics/expectation.h"

#include <fmt/format.h>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/metrics/expectation_reader.h"

namespace muster {
namespace {

constexpr CheckKind kCheckKinds[] = {CheckKind::kMin,      CheckKind::kMax,      CheckKind::kEquals,
                                     CheckKind::kOneOf,    CheckKind::kContains, CheckKind::kExcludes,
                                     CheckKind::kBaseline, CheckKind::kWithin,   CheckKind::kOfPeak,
                                     CheckKind::kCvMax,    CheckKind::kDropMax,  CheckKind::kPredicate};

const char* peerGroupName(PeerGroup peers) {
  return peers == PeerGroup::kNode ? "node" : "fleet";
}

std::string quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  parts.reserve(texts.size());
  for (const auto& text : texts) parts.push_back("\"" + printable(text) + "\"");
  return join(parts, ", ");
}

std::string checkText(const Expectation& e) {
  const auto quantity = [&](double value) { return formatQuantity(value, e.unit); };
  const auto share = [](double value) { return formatQuantity(value, "ratio"); };
  const bool isBool = e.unit == "bool";  // nothing is below no, nor above yes
  switch (e.kind) {
    case CheckKind::kMin:
      return (isBool && e.limit == 1 ? "" : "min ") + quantity(e.limit);
    case CheckKind::kMax:
      return (isBool && e.limit == 0 ? "" : "max ") + quantity(e.limit);
    case CheckKind::kEquals:
      return "equals " + (e.allowed.empty() ? quantity(e.limit) : quoted(e.allowed));
    case CheckKind::kOneOf:
      return "one of " + quoted(e.allowed);
    case CheckKind::kContains:
      return "contains " + quoted(e.allowed);
    case CheckKind::kExcludes:
      return "contains none of " + quoted(e.allowed);
    case CheckKind::kBaseline:
      return fmt::format("baseline {} with tolerance {}", quantity(e.limit), share(e.tolerance));
    case CheckKind::kWithin:
      return fmt::format("within {} of the {} median", share(e.tolerance), peerGroupName(e.peers));
    case CheckKind::kOfPeak:
      return fmt::format("at least {} of the peak", share(e.limit));
    case CheckKind::kCvMax:
      return "coefficient of variation at most " + share(e.limit);
    case CheckKind::kDropMax:
      return fmt::format("no drop of more than {} at any time", share(e.limit));
    case CheckKind::kPredicate:
      return "predicate of the plan";
  }
  return "";
}

template <typename T>
void put(Json& json, const char* key, const T& value, const T& usual) {
  if (value != usual) json[key] = value;
}

void putNumber(Json& json, const char* key, double value) {
  if (value != 0) json[key] = numberToJson(value);
}

void readKind(JsonReader& r, Expectation& e) {
  std::string name;
  r.read("kind", name);
  if (!r.ok()) return;
  std::vector<std::string> names;
  for (const CheckKind kind : kCheckKinds) {
    names.emplace_back(checkKindName(kind));
    if (name == names.back()) {
      e.kind = kind;
      return;
    }
  }
  r.fail("kind", fmt::format("\"{}\" is not a kind of expectation; expected one of {}", printable(name, 40),
                             join(names, ", ")));
}

void readPeers(JsonReader& r, Expectation& e) {
  std::string name = "node";
  r.optional("peers", name);
  if (name != "node" && name != "fleet")
    r.fail("peers", fmt::format("found \"{}\"; expected node or fleet", printable(name, 40)));
  e.peers = name == "fleet" ? PeerGroup::kFleet : PeerGroup::kNode;
}

void readSeverity(JsonReader& r, Expectation& e) {
  std::string name = "fail";
  r.optional("severity", name);
  if (name != "fail" && name != "warn")
    r.fail("severity", fmt::format("found \"{}\"; expected fail or warn", printable(name, 40)));
  e.severity = name == "warn" ? Severity::kWarn : Severity::kFail;
}

}  // namespace

const char* checkKindName(CheckKind kind) {
  switch (kind) {
    case CheckKind::kMin:
      return "min";
    case CheckKind::kMax:
      return "max";
    case CheckKind::kEquals:
      return "equals";
    case CheckKind::kOneOf:
      return "one_of";
    case CheckKind::kContains:
      return "contains";
    case CheckKind::kExcludes:
      return "excludes";
    case CheckKind::kBaseline:
      return "baseline";
    case CheckKind::kWithin:
      return "within";
    case CheckKind::kOfPeak:
      return "of_peak";
    case CheckKind::kCvMax:
      return "cv_max";
    case CheckKind::kDropMax:
      return "drop_max";
    case CheckKind::kPredicate:
      return "predicate";
  }
  return "";
}

std::string Expectation::text() const {
  const bool ignored = comparesStability() || kind == CheckKind::kPredicate || unit == "text";
  if (statistic == "median" || ignored) return checkText(*this);
  if (statistic == checkKindName(kind))
    return checkText(*this) + " in every sample";  // min of min, max of max
  return fmt::format("{} of all samples: {}", statistic, checkText(*this));
}

Json toJson(const Expectation& e) {
  const Expectation usual;
  Json json = {{"metric", e.metric}, {"kind", checkKindName(e.kind)}};
  if (!e.where.empty()) json["where"] = e.where;
  putNumber(json, "limit", e.limit);
  put(json, "unit", e.unit, usual.unit);
  putNumber(json, "tolerance", e.tolerance);
  if (e.peers != usual.peers) json["peers"] = peerGroupName(e.peers);
  if (!e.allowed.empty()) json["allowed"] = e.allowed;
  put(json, "predicate", e.predicate, usual.predicate);
  put(json, "statistic", e.statistic, usual.statistic);
  putNumber(json, "warn_band", e.warnBand);
  if (e.severity == Severity::kWarn) json["severity"] = "warn";
  put(json, "source", e.source, usual.source);
  put(json, "remedy", e.remedy, usual.remedy);
  put(json, "origin", e.origin, usual.origin);
  put(json, "at", e.at, usual.at);
  return json;
}

Result<Expectation> expectationFromJson(const Json& json, const std::string& path) {
  Expectation e;
  JsonReader r(json, path);
  r.read("metric", e.metric);
  readKind(r, e);
  r.optional("where", e.where);
  r.optional("limit", e.limit);
  r.optional("unit", e.unit);
  r.optional("tolerance", e.tolerance);
  readPeers(r, e);
  r.optional("allowed", e.allowed);
  r.optional("predicate", e.predicate);
  r.optional("statistic", e.statistic);
  r.optional("warn_band", e.warnBand);
  readSeverity(r, e);
  r.optional("source", e.source);
  r.optional("remedy", e.remedy);
  r.optional("origin", e.origin);
  r.optional("at", e.at);
  if (const std::string key = overlongKey(e); r.ok() && !key.empty())
    r.fail(key.c_str(), fmt::format("is longer than the {} bytes that are read", kMostExpectationText));
  if (!r.ok()) return r.status().error();
  return e;
}

}  // namespace muster
