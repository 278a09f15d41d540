// SPDX-License-Identifier: Apache-2.0
// See document_mutator.h.
#include "tests/fuzz/document_mutator.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace muster::testing {
namespace {

constexpr char kAgain = '\x01';  ///< ends a key that is written without it
constexpr size_t kMostAdded = 2000;
constexpr size_t kMostText = 100'000;
constexpr size_t kMostNested = 100;

using Members = std::vector<std::pair<std::string, Json>>;

Members membersOf(const Json& object) {
  Members members;
  for (const auto& [key, value] : object.items()) members.emplace_back(key, value);
  return members;
}

/// Keys must differ here, however they are written.
Json objectOf(Members members) {
  Json object = Json::object();
  for (auto& [key, value] : members) {
    while (object.contains(key)) key += kAgain;
    object[key] = std::move(value);
  }
  return object;
}

void writeToml(const Json& value, std::string& out) {
  if (value.is_null()) {
    out += "nan";
  } else if (value.is_object()) {
    out += "{ ";
    for (auto at = value.begin(); at != value.end(); ++at) {
      if (at != value.begin()) out += ", ";
      out += dumpJson(at.key()) + " = ";
      writeToml(at.value(), out);
    }
    out += " }";
  } else if (value.is_array()) {
    out += "[";
    for (const Json& item : value) {
      writeToml(item, out);
      out += ", ";
    }
    out += "]";
  } else {
    out += dumpJson(value);
  }
}

/// Tables of the first level and lists of tables as people write them, what is below inline.
std::string tomlText(const Json& document) {
  std::string out, tables;
  const auto addTable = [&](const std::string& head, const Json& table) {
    tables += head + "\n";
    for (const auto& [key, value] : table.items()) {
      tables += dumpJson(key) + " = ";
      writeToml(value, tables);
      tables += "\n";
    }
  };
  const auto isTable = [](const Json& item) { return item.is_object(); };
  for (const auto& [key, value] : document.items()) {
    if (value.is_object()) {
      addTable("[" + dumpJson(key) + "]", value);
    } else if (value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), isTable)) {
      for (const Json& item : value) addTable("[[" + dumpJson(key) + "]]", item);
    } else {
      out += dumpJson(key) + " = ";
      writeToml(value, out);
      out += "\n";
    }
  }
  return out + tables;
}

std::string linesText(const Json& document) {
  std::string out;
  for (const Json& line : document) out += dumpJson(line) + "\n";
  return out;
}

}  // namespace

std::string documentText(const Json& document, DocumentFormat format) {
  std::string text = format == DocumentFormat::kToml && document.is_object()       ? tomlText(document)
                     : format == DocumentFormat::kJsonLines && document.is_array() ? linesText(document)
                                                                                   : dumpJson(document);
  static const std::string kWritten = "\\u0001";
  for (size_t at = text.find(kWritten); at != std::string::npos; at = text.find(kWritten, at))
    text.erase(at, kWritten.size());
  return text;
}

/// xorshift64*, as in mutator.cpp.
uint64_t DocumentMutator::random() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return (state_ * 0x2545F4914F6CDD1Dull) >> 11;
}

std::string DocumentMutator::next() {
  Json document = documents_[below(documents_.size())];
  for (size_t changes = 1 + below(3); changes > 0; --changes) change(document);
  std::string text = documentText(document, format_);
  if (below(32) == 0) text.resize(below(text.size() + 1));
  return text;
}

Json& DocumentMutator::parentIn(Json& document) {
  Json* parent = &document;
  while (true) {
    std::vector<Json*> deeper;
    for (Json& child : *parent)
      if (child.is_structured() && !child.empty()) deeper.push_back(&child);
    if (deeper.empty() || below(4) == 0) return *parent;
    parent = deeper[below(deeper.size())];
  }
}

const Json& DocumentMutator::anyValue() {
  Json& parent = parentIn(documents_[below(documents_.size())]);
  if (parent.empty()) return parent;
  return *std::next(parent.begin(), static_cast<std::ptrdiff_t>(below(parent.size())));
}

Json DocumentMutator::oddValue() {
  static const std::vector<Json> kOdd = {nullptr,
                                         true,
                                         false,
                                         0,
                                         1,
                                         -1,
                                         2,
                                         0.5,
                                         1e308,
                                         -1e308,
                                         1e-320,
                                         std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max(),
                                         std::numeric_limits<uint64_t>::max(),
                                         int64_t{1} << 31,
                                         int64_t{1} << 53,
                                         100000,
                                         "",
                                         "x",
                                         "nan",
                                         "-inf",
                                         "1e999",
                                         "0 B",
                                         "../../etc/passwd",
                                         "/",
                                         std::string("a\0b", 3),
                                         "\x1b[31m\r\n",
                                         "\u202e\u2028",
                                         "<script>",
                                         "9999-99-99",
                                         std::string(70'000, 'x'),
                                         Json::array(),
                                         Json::object(),
                                         Json::array({nullptr}),
                                         Json::array({1, "x"}),
                                         Json::array({Json::object()}),
                                         Json::array({Json::array()}),
                                         Json{{"", nullptr}},
                                         Json{{"x", 1}},
                                         Json{{"n", 1000}, {"value", 1}},
                                         Json{{"n", -1}, {"value", "nan"}},
                                         Json{{"rows", Json::object()}},
                                         Json{{"rows", {{"rank", Json::array({0, 1})}}}}};
  return kOdd[below(kOdd.size())];
}

void DocumentMutator::change(Json& document) {
  Json& parent = parentIn(document);
  if (!parent.is_structured() || parent.empty() || below(64) == 0) return changeValue(document);
  const size_t at = below(parent.size());
  if (below(2) == 0) return changeMembers(parent, at);
  changeValue(*std::next(parent.begin(), static_cast<std::ptrdiff_t>(at)));
}

/// Deletes, duplicates, renames or moves the member `at`, or drops all behind it.
void DocumentMutator::changeMembers(Json& parent, size_t at) {
  Members members;
  if (parent.is_object())
    members = membersOf(parent);
  else
    for (Json& item : parent) members.emplace_back("", std::move(item));
  const auto place = members.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(6)) {
    case 0:
    case 1:
      members.erase(place);
      break;
    case 2: {
      auto copy = *place;
      if (below(2) == 0) copy.second = below(2) == 0 ? oddValue() : Json(anyValue());
      members.insert(members.begin() + static_cast<std::ptrdiff_t>(below(members.size() + 1)),
                     std::move(copy));
      break;
    }
    case 3:
      std::swap(*place, members[below(members.size())]);
      break;
    case 4:
      members.resize(at);
      break;
    default: {
      static const char* const kNames[] = {"",       "x",       "rows", "samples",
                                           "device", "\x1b[2J", "a.b",  "__proto__"};
      place->first = below(2) == 0 ? kNames[below(std::size(kNames))] : members[below(members.size())].first;
    }
  }
  if (parent.is_object()) {
    parent = objectOf(std::move(members));
    return;
  }
  parent = Json::array();
  for (auto& member : members) parent.push_back(std::move(member.second));
}

void DocumentMutator::changeValue(Json& value) {
  switch (below(6)) {
    case 0:
      value = Json(anyValue());
      return;
    case 1:
      for (size_t times = below(3) == 0 ? below(kMostNested) : 1; times > 0; --times)
        value = below(2) == 0 ? Json::array({std::move(value)}) : Json{{"x", std::move(value)}};
      return;
    case 2:
      return enlarge(value);
    case 3:
      if (value.is_string()) {
        value = value.get<std::string>().substr(0, below(value.get_ref<const std::string&>().size() + 1));
        return;
      }
      if (value.is_number()) {
        value = static_cast<int64_t>(below(100)) - 50;
        return;
      }
      [[fallthrough]];
    default:
      value = oddValue();
  }
}

void DocumentMutator::enlarge(Json& value) {
  const size_t more = below(4) == 0 ? kMostAdded : 1 + below(20);
  if (value.is_string()) {
    const std::string text = value.get<std::string>() + "x";
    std::string longer;
    while (longer.size() < std::min(kMostText, more * text.size())) longer += text;
    value = longer;
  } else if (value.is_array()) {
    const Json item = value.empty() ? oddValue() : value[below(value.size())];
    const size_t room = 1 + kMostText * 5 / (1 + dumpJson(item).size());
    for (size_t i = 0; i < std::min(more, room); ++i) value.push_back(item);
  } else if (value.is_object()) {
    for (size_t i = 0; i < more; ++i) value["x" + std::to_string(i)] = below(100);
  } else if (value.is_number()) {
    value = value.get<double>() * 1e15;
  } else {
    value = oddValue();
  }
}

}  // namespace muster::testing
