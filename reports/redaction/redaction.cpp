// SPDX-License-Identifier: Apache-2.0
// Replaces values in all texts of a record.
#include "reports/redaction/redaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reports/redaction/addresses.h"
#include "runner/core/text.h"
#include "runner/hosts/host_list.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr int kMapSchema = 1;

/// How many numbers the range at `at` has ("1-3": 3); `at` moves to its end.
uint64_t rangeAt(std::string_view list, size_t& at) {
  const auto number = [&] {
    uint64_t value = 0;
    for (; at < list.size() && list[at] >= '0' && list[at] <= '9'; ++at)
      value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(list[at] - '0'), 1'000'000'000);
    return value;
  };
  const uint64_t from = number();
  if (at >= list.size() || list[at] != '-') return 1;
  ++at;
  return std::max(number(), from) - from + 1;
}

/// The bytes by which a host list grows at most when it is written out. Also of one that turns out to be none
/// once many of its hosts are written: "n[1-65536]]".
uint64_t growthOf(std::string_view list) {
  constexpr uint64_t kDigits = 9;  // of a number at most
  uint64_t bytes = 0, hosts = 1, length = sizeof(std::string);
  for (size_t at = 0; at < list.size(); ++at) {
    if (list[at] == ',') {
      bytes += (std::exchange(hosts, 1) - 1) * std::exchange(length, sizeof(std::string));
    } else if (list[at] != '[') {
      ++length;
    } else {
      uint64_t choices = 0;
      do choices += rangeAt(list, ++at);
      while (at < list.size() && list[at] == ',');
      hosts = std::min<uint64_t>(hosts * choices, kMaxHosts);
      length += kDigits;
    }
  }
  return bytes + (hosts - 1) * length;
}

/// The begin and end of the host list that holds the bracket at `at`.
std::pair<size_t, size_t> listAround(const std::string& text, size_t at) {
  constexpr std::string_view kEnds = " \t\n\r\"'=;:/";
  const size_t before = text.find_last_of(kEnds, at);
  const size_t end = text.find_first_of(kEnds, at);
  return {before == std::string::npos ? 0 : before + 1, std::min(end, text.size())};
}

/// Whether the keys below `key` are of the node, a plugin or the user, not of the record's format.
bool isFreeForm(const std::string& key) {
  // The last two have case ids as keys, which hold values of a matrix: paths with names.
  static const std::set<std::string> free = {"inventory", "launcher", "environment",  "params",
                                             "labels",    "group",    "case_metrics", "case_labels"};
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
  if (rules_.count(secret) > 0 && value.size() >= 2) nameFor(secret, value).given = true;
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
      known.given = known.given || known.kind != Secret::kWord;
    }
  }
  return r.status();
}

Json Redaction::toJson() const {
  Json map = {{"redaction_schema", kMapSchema}};
  // Appended: finding a key in an ordered object goes through all of them.
  std::map<std::string, Json::object_t> kinds;
  for (const auto& [key, name] : names_)
    if (name.same.empty()) kinds[nameOf(name.kind)].emplace_back(name.written, name.pseudonym);
  for (const char* kind : namesOf(Secret())) map[kind] = std::move(kinds[kind]);
  return map;
}

size_t Redaction::wordsLeftOut() const {
  return static_cast<size_t>(std::count_if(names_.begin(), names_.end(), [](const auto& entry) {
    return entry.second.same.empty() && !entry.second.given;
  }));
}

const Redaction::Name& Redaction::mainOf(const Name& name) const {
  return name.same.empty() ? name : names_.at(name.same);
}

bool Redaction::isReplaced(std::string_view value) const {
  const auto found = names_.find(value);
  return found != names_.end() && mainOf(found->second).given;
}

Status Redaction::name() {
  if (tooMany_) return tooManyListed();
  std::set<std::string> taken;
  std::vector<std::string_view> values;
  for (const auto& [key, name] : names_) {
    taken.insert(name.pseudonym);
    if (mainOf(name).given) values.push_back(key);
  }
  matcher_ = Matcher(values);
  std::array<size_t, 5> numbers{};
  for (auto& [key, name] : names_) {
    if (!name.same.empty() || !name.given) continue;
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
  const auto lengths = matcher_.lengthsIn(text);
  const auto found = std::find_if(lengths.begin(), lengths.end(), [](uint32_t length) { return length > 0; });
  if (found == lengths.end()) return "";
  return names_.at(text.substr(static_cast<size_t>(found - lengths.begin()), *found)).written;
}

Result<std::vector<std::string>> Redaction::hostsOf(std::string_view list) const {
  listed_ += growthOf(list);
  if (listed_ > kMostListed) return tooManyListed();
  return expandHostList(list);
}

Error Redaction::tooManyListed() {
  return {
      ErrorCode::kUsage,
      fmt::format("the host lists of a record name too many hosts: written out they take more than {} MiB, "
                  "or hosts that only lists name more than {} MiB",
                  kMostListed >> 20, kMostKept >> 20),
      ""};
}

/// Host lists such as "n[17-20]" that hold a host are written out, so that its name can be found in them.
std::string Redaction::expanded(const std::string& text) const {
  std::string out;
  size_t done = 0;
  for (size_t at = text.find('['); at != std::string::npos; at = text.find('[', done)) {
    const auto [begin, end] = listAround(text, at);
    const std::string list = text.substr(begin, end - begin);
    const auto hosts = hostsOf(list);
    const bool ours = hosts.ok() && std::any_of(hosts->begin(), hosts->end(), [&](const std::string& host) {
                        return isReplaced(lowerCase(host));
                      });
    out.append(text, done, begin - done) += ours ? join(*hosts, ",") : list;
    done = end;
  }
  return out.append(text, done);
}

std::string Redaction::replaced(const std::string& raw) const {
  const std::string text = expanded(raw), folded = lowerCase(text);
  const auto lengths = matcher_.lengthsIn(folded);
  std::string out;
  for (size_t at = 0; at < text.size(); at += std::max(lengths[at], 1u)) {
    if (lengths[at] == 0)
      out += text[at];
    else
      out += mainOf(names_.at(folded.substr(at, lengths[at]))).pseudonym;
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
    return isReplaced(value.dump()) && value.dump().size() >= Matcher::kLong ? value.dump() : "";
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
  if (listed_ > kMostListed) return tooManyListed();
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
  if (const size_t size = recordText(*read).size(); size > kMaxRecordBytes)
    return Error{ErrorCode::kUsage,
                 fmt::format("the redacted record would have {} bytes; a record has at most {}", size,
                             kMaxRecordBytes),
                 ""};
  return read;
}

}  // namespace muster
