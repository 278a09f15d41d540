// SPDX-License-Identifier: Apache-2.0
// Writes a profile as TOML.
#include "runner/sku/profile_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

constexpr int kDigits = 7;
constexpr double kLoss = 1e-9;

std::string list(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  parts.reserve(texts.size());
  for (const std::string& text : texts) parts.push_back(tomlText(text));
  return "[" + join(parts, ", ") + "]";
}

bool isBareKey(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return (std::isalnum(c) != 0 && c < 128) || c == '_' || c == '-';
  });
}

std::string tomlKey(const std::string& key) {
  return isBareKey(key) ? key : tomlText(key);
}

std::string quantity(double value, const std::string& unit) {
  const std::string text = exactQuantity(value, unit);
  // A bare number stands without quotes.
  return text.find_first_not_of("0123456789.eE+-") == std::string::npos ? text : tomlText(text);
}

std::string value(const Json& json) {
  if (json.is_string()) return tomlText(json.get<std::string>());
  if (!json.is_array()) return dumpJson(json);
  std::vector<std::string> parts;
  for (const Json& item : json) parts.push_back(value(item));
  return "[" + join(parts, ", ") + "]";
}

void writeHead(const Profile& p, std::string& out) {
  out += fmt::format("schema = 1\nname = {}\n{}device_count = {}\n\n[match]\nkind = {}\n", tomlText(p.name),
                     p.description.empty() ? "" : fmt::format("description = {}\n", tomlText(p.description)),
                     p.deviceCount, tomlText(p.match.kind));
  if (p.match.onlyByName) out += "only_by_name = true\n";
  if (!p.match.vendors.empty()) out += "vendors = " + list(p.match.vendors) + "\n";
  if (!p.match.products.empty()) out += "products = " + list(p.match.products) + "\n";
  if (!p.match.pciIds.empty()) out += "pci_ids = " + list(p.match.pciIds) + "\n";
  if (!p.match.names.empty()) out += "names = " + list(p.match.names) + "\n";
  if (p.match.memoryMin > 0) out += fmt::format("memory_min = {}\n", quantity(p.match.memoryMin, "B"));
  if (p.match.memoryMax > 0) out += fmt::format("memory_max = {}\n", quantity(p.match.memoryMax, "B"));
}

void writePeaks(const Profile& p, std::string& out) {
  if (p.peaks.empty()) return;
  const auto source = p.facts.find("peaks_source");
  out += fmt::format("\n[peaks]\nsource = {}\n",
                     tomlText(source == p.facts.end() ? "not stated" : source->second));
  for (const auto& [name, peak] : p.peaks)
    out += fmt::format("{} = {}\n", tomlKey(name),
                       quantity(peak, name.rfind("flops.", 0) == 0 ? "FLOP/s" : "B/s"));
}

void writeFacts(const Profile& p, std::string& out) {
  std::string lines;
  for (const auto& [name, fact] : p.facts)
    if (name != "peaks_source") lines += fmt::format("{} = {}\n", tomlKey(name), tomlText(fact));
  if (!lines.empty()) out += "\n[facts]\n" + lines;
}

void writeParams(const Profile& p, std::string& out) {
  for (const auto& [test, params] : p.stageParams) {
    out += fmt::format("\n[params.{}]\n", tomlText(test));
    for (const auto& [name, param] : params.items())
      out += fmt::format("{} = {}\n", tomlKey(name), value(param));
  }
}

std::string share(double value) {
  return fmt::format("{}", value);
}

/// The line of the check itself.
std::string check(const Expectation& e) {
  const std::string kind = checkKindName(e.kind);
  switch (e.kind) {
    case CheckKind::kMin:
    case CheckKind::kMax:
      return fmt::format("{} = {}\n", kind, quantity(e.limit, e.unit));
    case CheckKind::kBaseline:
      return fmt::format("baseline = {}\ntolerance = {}\n", quantity(e.limit, e.unit), share(e.tolerance));
    case CheckKind::kEquals:
      return fmt::format("equals = {}\n",
                         e.allowed.empty() ? quantity(e.limit, e.unit) : tomlText(e.allowed[0]));
    case CheckKind::kOneOf:
      return fmt::format("one_of = {}\n",
                         e.unit == "text" ? list(e.allowed) : "[" + join(e.allowed, ", ") + "]");
    case CheckKind::kContains:
    case CheckKind::kExcludes:
      return fmt::format("{} = {}\n", kind, list(e.allowed));
    case CheckKind::kWithin:
      return fmt::format("within = {}\nof = \"{}\"\n", share(e.tolerance),
                         e.peers == PeerGroup::kFleet ? "fleet" : "node");
    case CheckKind::kOfPeak:
    case CheckKind::kCvMax:
    case CheckKind::kDropMax:
      return fmt::format("{} = {}\n", kind, share(e.limit));
    case CheckKind::kPredicate:
      return "";  // a profile cannot hold one
  }
  return "";
}

void writeExpectation(const Expectation& e, std::string& out) {
  out += fmt::format("\n[[expect]]\nmetric = {}\n", tomlText(e.metric));
  for (const auto& [key, table] : {std::pair("where", &e.where), {"params", &e.params}}) {
    std::vector<std::string> values;
    for (const auto& [name, text] : *table) values.push_back(tomlKey(name) + " = " + tomlText(text));
    if (!values.empty()) out += fmt::format("{} = {{ {} }}\n", key, join(values, ", "));
  }
  out += check(e);
  if (e.statistic != "median") out += fmt::format("statistic = \"{}\"\n", e.statistic);
  if (e.warnBand > 0) out += fmt::format("warn_band = {}\n", share(e.warnBand));
  if (e.severity == Severity::kWarn) out += "severity = \"warn\"\n";
  out += fmt::format("source = {}\n", tomlText(e.source));
  if (!e.remedy.empty()) out += fmt::format("remedy = {}\n", tomlText(e.remedy));
}

}  // namespace

std::string tomlText(const std::string& text) {
  std::string out = "\"";
  for (const char c : validUtf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string exactQuantity(double value, const std::string& unit) {
  if (unit == "text" || unit.empty()) return fmt::format("{}", value);
  // Memory is sold in decimal gigabytes, though binary ones are usual elsewhere.
  if (unit == "B" && value >= 1e9 && std::fmod(value, 1e9) == 0) return fmt::format("{:.0f} GB", value / 1e9);
  std::string text = formatQuantity(value, unit, kDigits);
  const auto read = parseAs(text, unit);
  if (read.ok() && std::fabs(*read - value) <= kLoss * std::fabs(value)) return text;
  return fmt::format("{}", value);
}

std::string profileToml(const Profile& profile, const std::string& comment) {
  std::string out;
  for (const std::string& line : split(comment, '\n'))
    out += line.empty() ? "#\n" : "# " + validUtf8(line) + "\n";
  writeHead(profile, out);
  writePeaks(profile, out);
  writeFacts(profile, out);
  writeParams(profile, out);
  for (const Expectation& e : profile.expectations) writeExpectation(e, out);
  return out;
}

}  // namespace muster
