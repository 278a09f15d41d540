// SPDX-License-Identifier: Apache-2.0
// One reader for the ring, which pairs nodes by leaf switch, and for the fleet, which blames switches.
#include "runner/hosts/topology_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/hosts/host_list.h"

namespace muster {
namespace {

constexpr size_t kMostMembers = 8 * kMaxHosts;  // a node may be in a rack, a pod and on several switches

/// A line before its host list is expanded.
struct Line {
  std::string name, list;
  bool switches = false;
};

Result<Line> switchLine(std::string_view text) {
  Line line;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      return Error{ErrorCode::kUsage,
                   fmt::format("found \"{}\"; expected \"SwitchName=NAME Nodes=LIST\" or \"NAME: LIST\"",
                               printable(word, 80)),
                   ""};
    const std::string key = lowerCase(word.substr(0, equals));
    if (key == "switchname") line.name = word.substr(equals + 1);
    if (key == "nodes") line.list = word.substr(equals + 1);
    line.switches = line.switches || key == "switches";
  }
  return line;
}

Result<Line> parseLine(std::string_view text) {
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return switchLine(text);
  return Line{std::string(trim(text.substr(0, colon))), std::string(trim(text.substr(colon + 1))), false};
}

/// The group of a line; without nodes where it has none.
Result<NodeGroup> groupOf(std::string_view text) {
  MUSTER_TRY(const Line line, parseLine(text));
  NodeGroup group{line.name, {}, 0};
  if (line.switches && line.list.empty()) return group;
  if (line.name.empty() || line.list.empty())
    return Error{ErrorCode::kUsage, "found neither \"SwitchName=NAME Nodes=LIST\" nor \"NAME: LIST\"", ""};
  MUSTER_TRY(group.nodes, expandHostList(line.list));
  return group;
}

}  // namespace

Result<std::vector<NodeGroup>> parseTopology(std::string_view text, const std::string& path) {
  std::vector<NodeGroup> groups;
  size_t number = 0, members = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    std::string plain = whole.substr(0, whole.find('#'));
    std::replace(plain.begin(), plain.end(), '\t', ' ');
    const std::string_view line = trim(plain);
    if (line.empty()) continue;
    auto group = groupOf(line);
    if (!group.ok()) {
      Error error = std::move(group).error();
      error.where = fmt::format("{}:{}", path, number);
      return error;
    }
    members += group->nodes.size();
    if (members > kMostMembers)
      return Error{ErrorCode::kUsage, fmt::format("the groups have more than {} members", kMostMembers),
                   fmt::format("{}:{}", path, number)};
    group->line = number;
    if (!group->nodes.empty()) groups.push_back(std::move(*group));
  }
  return groups;
}

}  // namespace muster
