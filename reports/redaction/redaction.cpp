// SPDX-License-Identifier: Apache-2.0
// Replaces values in all texts of a record.
#include "reports/redaction/redaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "reports/redaction/addresses.h"
#include "runner/core/text.h"
#include "runner/hosts/host_list.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr int kMapSchema = 1;
constexpr size_t kLong = 8;  ///< bytes from which a value is replaced also within a word

bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// Whether `value`, found at `at`, is the whole of a word, or long enough to be no accident.
bool stands(std::string_view text, size_t at, const std::string& value) {
  if (value.size() >= kLong) return true;
  const size_t end = at + value.size();
  const bool begins = at == 0 || !isWordCharacter(text[at - 1]);
  return begins && (end == text.size() || !isWordCharacter(text[end]));
}

/// The end of the host list that holds the bracket at `at`, and its begin.
std::pair<size_t, size_t> listAround(const std::string& text, size_t at) {
  constexpr std::string_view kEnds = " \t\n\r\"'=;:/";
  const size_t before = text.find_last_of(kEnds, at);
  const size_t end = text.find_first_of(kEnds, at);
  return {before == std::string::npos ? 0 : before + 1, std::min(end, text.size())};
}

/// Whether the keys below `key` are of the node, a plugin or the user, not of the record's format.
bool isFreeForm(const std::string& key) {
  static const std::set<std::string> free = {"inventory", "launcher", "environment",
                                             "params",    "labels",   "group"};
  return free.count(key) > 0;
}

/// A text that changed has another digest.
void digestAnew(const std::string& before, Json& source) {
  const auto& text = source["text"].get_ref<const std::string&>();
  if (text != before) source["sha256"] = sha256Hex(text);
}

}  // namespace

Redaction::Name& Redaction::nameFor(Secret kind, const std::string& value) {
  const std::string key = lowerCase(value);
  const auto [at, fresh] = names_.try_emplace(key, Name{value, "", kind, ""});
  if (!fresh) return at->second.same.empty() ? at->second : names_.at(at->second.same);
  for (const std::string& other : otherWritings(value)) names_.try_emplace(other, Name{other, "", kind, key});
  return at->second;
}

void Redaction::add(Secret secret, const std::string& value) {
  if (rules_.count(secret) > 0 && value.size() >= 2) nameFor(secret, value);
}

Status Redaction::take(const Json& map) {
  JsonReader r(map, "map");
  int schema = 0;
  r.read("redaction_schema", schema);
  if (!r.ok()) return r.status();
  if (schema != kMapSchema)
    return Error{ErrorCode::kUsage, fmt::format("has schema {}; expected {}", schema, kMapSchema), ""};
  for (const char* kind : namesOf(Secret())) {
    std::map<std::string, std::string> values;
    r.optional(kind, values);
    for (const auto& [value, pseudonym] : values) {
      Name& known = nameFor(*fromName<Secret>(kind), value);
      if (!known.pseudonym.empty() && known.pseudonym != pseudonym)
        return Error{
            ErrorCode::kUsage,
            fmt::format("has two pseudonyms, {} and {}, for {} in two writings; use another map",
                        printable(known.pseudonym, 80), printable(pseudonym, 80), printable(value, 80)),
            ""};
      known.pseudonym = pseudonym;
    }
  }
  return r.status();
}

Json Redaction::toJson() const {
  Json map = {{"redaction_schema", kMapSchema}};
  for (const char* kind : namesOf(Secret())) map[kind] = Json::object();
  for (const auto& [key, name] : names_)
    if (name.same.empty()) map[nameOf(name.kind)][name.written] = name.pseudonym;
  return map;
}

const std::string& Redaction::pseudonymOf(const Name& name) const {
  return name.same.empty() ? name.pseudonym : names_.at(name.same).pseudonym;
}

Redaction::Names::const_iterator Redaction::valueAt(std::string_view text, size_t at) const {
  for (const size_t length : lengths_[static_cast<unsigned char>(text[at])]) {
    const auto found = names_.find(text.substr(at, length));
    if (found != names_.end() && stands(text, at, found->first)) return found;
  }
  return names_.end();
}

Status Redaction::name() {
  listed_ = 0;
  MUSTER_CHECK_OK(checkListed());
  std::set<std::string> taken;
  for (const auto& [key, name] : names_) {
    taken.insert(name.pseudonym);
    lengths_[static_cast<unsigned char>(key[0])].insert(key.size());
  }
  std::array<size_t, 5> numbers{};
  for (auto& [key, name] : names_) {
    if (!name.same.empty()) continue;
    // One that is a value itself, or holds one, would be replaced again.
    while (name.pseudonym.empty()) {
      size_t& number = numbers[static_cast<size_t>(name.kind)];
      const std::string next = fmt::format("{}{:04}", nameOf(name.kind), ++number);
      if (taken.insert(next).second && leftIn(next).empty()) name.pseudonym = next;
      if (number > 1'000'000)
        return Error{ErrorCode::kUsage,
                     fmt::format("no pseudonym is possible beside \"{}\"", printable(leftIn(next), 80)), ""};
    }
    if (!leftIn(name.pseudonym).empty())
      return Error{ErrorCode::kUsage,
                   fmt::format("the pseudonym {} is a name in these records; use another map",
                               printable(name.pseudonym, 80)),
                   ""};
  }
  return {};
}

std::string Redaction::leftIn(std::string_view whole) const {
  const std::string text = lowerCase(std::string(whole));
  for (size_t at = 0; at < text.size(); ++at)
    if (const auto found = valueAt(text, at); found != names_.end()) return found->second.written;
  return "";
}

Result<std::vector<std::string>> Redaction::hostsOf(std::string_view list) const {
  if (listed_ > kMostListedHosts) return checkListed().error();
  auto hosts = expandHostList(list);
  if (hosts.ok()) listed_ += hosts->size();
  return hosts;
}

Status Redaction::checkListed() const {
  if (listed_ <= kMostListedHosts && !tooMany_) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("the host lists of a record name more than {} hosts", kMostListedHosts), ""};
}

/// Host lists such as "n[17-20]" that hold a host are written out, so that its name can be found in them.
std::string Redaction::expanded(const std::string& text) const {
  std::string out = text;
  for (size_t at = out.find('['); at != std::string::npos; at = out.find('[', at + 1)) {
    const auto [begin, end] = listAround(out, at);
    const auto hosts = hostsOf(std::string_view(out).substr(begin, end - begin));
    const bool ours = hosts.ok() && std::any_of(hosts->begin(), hosts->end(), [&](const std::string& host) {
                        return names_.count(lowerCase(host)) > 0;
                      });
    if (!ours) continue;
    const std::string list = join(*hosts, ",");
    out.replace(begin, end - begin, list);
    at = begin + list.size();
  }
  return out;
}

std::string Redaction::replaced(const std::string& raw) const {
  const std::string text = expanded(raw), folded = lowerCase(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto found = valueAt(folded, at);
    out += found == names_.end() ? text.substr(at, 1) : pseudonymOf(found->second);
    at += found == names_.end() ? 1 : found->first.size();
  }
  return out;
}

Json Redaction::replaced(const Json& value, bool named) const {
  if (value.is_string()) return replaced(value.get_ref<const std::string&>());
  if (!value.is_structured()) return value;
  Json out = value.is_object() ? Json::object() : Json::array();
  for (const auto& [key, item] : value.items()) {
    const bool inside = named || isFreeForm(key);
    if (value.is_array())
      out.push_back(replaced(item, named));
    else
      out[named ? replaced(key) : key] = replaced(item, inside);
  }
  return out;
}

std::string Redaction::leftIn(const Json& value, bool named) const {
  if (value.is_string()) return leftIn(std::string_view(value.get_ref<const std::string&>()));
  // A number is left only where it is a whole value: a serial of digits.
  if (value.is_number())
    return names_.count(value.dump()) > 0 && value.dump().size() >= kLong ? value.dump() : "";
  if (!value.is_structured()) return "";
  for (const auto& [key, item] : value.items()) {
    if (std::string left = named && value.is_object() ? leftIn(std::string_view(key)) : ""; !left.empty())
      return left;
    if (std::string left = leftIn(item, named || (value.is_object() && isFreeForm(key))); !left.empty())
      return left;
  }
  return "";
}

Result<Record> Redaction::apply(const Record& record, const std::string& sha256) const {
  listed_ = 0;
  Json json = replaced(muster::toJson(record), false);
  MUSTER_CHECK_OK(checkListed());
  json.erase("mac");
  Json& run = json["run"];
  if (record.runId == runIdOf(record.node, record.started))
    run["id"] = runIdOf(run["node"].get<std::string>(), record.started);
  digestAnew(record.plan.text, json["plan"]);
  digestAnew(record.profile.text, json["profile"]);
  if (json.contains("waivers")) digestAnew(record.waiverFile.text, json["waivers"]);
  Json rules = Json::array();
  for (const Secret rule : rules_) rules.push_back(nameOf(rule));
  json["redacted"] = {{"from_sha256", sha256}, {"rules", rules}};
  auto read = recordFromJson(json);
  if (!read.ok())
    return std::move(read).error().context("a name to be replaced is also a word that the record needs");
  if (const std::string left = leftIn(muster::toJson(*read), false); !left.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("\"{}\" would be left in the record; nothing was written", printable(left, 80)),
                 ""};
  return read;
}

}  // namespace muster
