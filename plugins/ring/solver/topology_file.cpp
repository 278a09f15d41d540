// SPDX-License-Identifier: Apache-2.0
// Reads topology.conf: "SwitchName=leaf1 Nodes=node[001-016]", "SwitchName=spine Switches=leaf[1-4]".
#include "plugins/ring/solver/topology_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "runner/core/text.h"

namespace muster::ring {
namespace {

Error wrongList(std::string_view text, const std::string& what) {
  return {ErrorCode::kUsage,
          fmt::format("cannot read the host list \"{}\": {}; expected a form like node[001-016,020]",
                      printable(std::string(text)), what),
          ""};
}

/// Splits at commas outside of brackets.
std::vector<std::string_view> splitList(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return parts;
}

Result<uint64_t> number(std::string_view text, std::string_view whole) {
  uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || text.size() > 12)
    return wrongList(whole, fmt::format("\"{}\" is not a number", printable(std::string(text))));
  return value;
}

/// Appends prefix + number + suffix for each number of "001-016,020".
Status expandRanges(std::string_view prefix, std::string_view ranges, std::string_view suffix, size_t most,
                    std::vector<std::string>& out) {
  for (const std::string_view range : splitList(ranges)) {
    const size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    MUSTER_TRY(const uint64_t first, number(low, ranges));
    uint64_t last = first;
    if (dash != std::string_view::npos) {
      MUSTER_TRY(last, number(range.substr(dash + 1), ranges));
    }
    if (last < first) return wrongList(ranges, "a range that runs backwards");
    if (last - first >= most || out.size() + (last - first) >= most)
      return wrongList(ranges, fmt::format("more than {} names", most));
    for (uint64_t n = first; n <= last; ++n)
      out.push_back(fmt::format("{}{:0{}}{}", prefix, n, low.size(), suffix));
  }
  return {};
}

struct Line {
  std::map<std::string, std::string> values;  ///< keys in lower case
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Result<Line> parseLine(std::string_view text, const std::string& where) {
  Line line;
  std::string plain(text.substr(0, text.find('#')));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c == '\t' || c == '\r'; }, ' ');
  for (const std::string& word : split(plain, ' ')) {
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      return Error{
          ErrorCode::kUsage,
          fmt::format("found \"{}\", expected KEY=VALUE, as Slurm's topology.conf has it", printable(word)),
          where};
    line.values[lower(word.substr(0, equals))] = word.substr(equals + 1);
  }
  return line;
}

class Reader {
 public:
  Reader(const std::string& path, const std::vector<std::string>& nodes) : path_(path) {
    for (size_t i = 0; i < nodes.size(); ++i) index_[nodes[i]] = i;
    topology_.leafOf.assign(nodes.size(), -1);
  }

  Status take(std::string_view text, int number) {
    const std::string where = fmt::format("{}:{}", path_, number);
    MUSTER_TRY(const Line line, parseLine(text, where));
    const auto name = line.values.find("switchname");
    const auto hosts = line.values.find("nodes");
    if (hosts == line.values.end()) return {};
    if (name == line.values.end())
      return Error{ErrorCode::kUsage, "Nodes= without SwitchName=: which leaf is this?", where};
    auto expanded = expandHostList(hosts->second);
    if (!expanded.ok()) {
      Error error = std::move(expanded).error();
      error.where = where;
      return error;
    }
    const auto leaf = static_cast<int>(topology_.names.size());
    topology_.names.push_back(name->second);
    for (const std::string& host : *expanded) MUSTER_CHECK_OK(assign(host, leaf, where));
    return {};
  }

  Result<Topology> finish(const std::vector<std::string>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i)
      if (topology_.leafOf[i] < 0)
        return Error{ErrorCode::kUsage,
                     fmt::format("no leaf switch has node {}; add it to the Nodes= of its switch",
                                 printable(nodes[i])),
                     path_};
    return std::move(topology_);
  }

 private:
  Status assign(const std::string& host, int leaf, const std::string& where) {
    const auto it = index_.find(host);
    if (it == index_.end()) return {};  // not part of this run
    int& now = topology_.leafOf[it->second];
    if (now >= 0 && now != leaf)
      return Error{ErrorCode::kUsage,
                   fmt::format("node {} is on leaf {} and on {}; a node has one leaf", printable(host),
                               topology_.names[static_cast<size_t>(now)], topology_.names.back()),
                   where};
    now = leaf;
    return {};
  }

  const std::string& path_;
  std::map<std::string, size_t> index_;
  Topology topology_;
};

}  // namespace

Result<std::vector<std::string>> expandHostList(std::string_view text, size_t most) {
  std::vector<std::string> names;
  for (const std::string_view part : splitList(text)) {
    const size_t open = part.find('[');
    const size_t close = part.find(']');
    if (part.empty()) return wrongList(text, "an empty name");
    if (open == std::string_view::npos && close == std::string_view::npos) {
      if (names.size() >= most) return wrongList(text, fmt::format("more than {} names", most));
      names.emplace_back(part);
      continue;
    }
    if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
        part.find('[', open + 1) != std::string_view::npos)
      return wrongList(text, "brackets that do not pair up");
    MUSTER_CHECK_OK(expandRanges(part.substr(0, open), part.substr(open + 1, close - open - 1),
                                 part.substr(close + 1), most, names));
  }
  return names;
}

Result<Topology> parseTopology(std::string_view text, const std::string& path,
                               const std::vector<std::string>& nodes) {
  Reader reader(path, nodes);
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    MUSTER_CHECK_OK(reader.take(text.substr(0, end), ++number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish(nodes);
}

}  // namespace muster::ring
