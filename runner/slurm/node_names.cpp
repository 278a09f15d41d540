// SPDX-License-Identifier: Apache-2.0
// Expands and compresses lists of node names.
#include "runner/slurm/node_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "runner/core/text.h"
#include "runner/hosts/host_list.h"

namespace muster::slurm {
namespace {

constexpr size_t kMaxDigits = 9;  // what fits a number comfortably; longer ones stay text

/// A name that ends with digits: what is before them, how many, their value.
struct Numbered {
  std::string stem;
  size_t width = 0;
  unsigned long value = 0;
};

Numbered numbered(const std::string& name) {
  size_t at = name.size();
  while (at > 0 && std::isdigit(static_cast<unsigned char>(name[at - 1])) != 0 &&
         name.size() - at < kMaxDigits)
    --at;
  if (at == name.size()) return {name, 0, 0};
  return {name.substr(0, at), name.size() - at, std::stoul(name.substr(at))};
}

/// "001-003,7" of sorted values, each `width` digits long.
std::string ranges(const std::vector<unsigned long>& values, size_t width) {
  std::vector<std::string> parts;
  for (size_t first = 0; first < values.size();) {
    size_t last = first;
    while (last + 1 < values.size() && values[last + 1] == values[last] + 1) ++last;
    parts.push_back(last == first ? fmt::format("{:0{}}", values[first], width)
                                  : fmt::format("{:0{}}-{:0{}}", values[first], width, values[last], width));
    first = last + 1;
  }
  return join(parts, ",");
}

}  // namespace

Result<std::vector<std::string>> nodeNames(std::string_view list) {
  MUSTER_TRY(const auto expanded, expandHostList(list));
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const std::string& name : expanded) {
    if (!isPlainName(name))
      return Error{ErrorCode::kUsage,
                   fmt::format("\"{}\" is not a node name; expected letters, digits, '-', '_' and '.'",
                               printable(name, 80)),
                   ""};
    if (seen.insert(name).second) names.push_back(name);
  }
  return names;
}

std::string shortList(std::vector<std::string> names) {
  std::map<std::pair<std::string, size_t>, std::vector<unsigned long>> groups;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    const Numbered parts = numbered(name);
    groups[{parts.stem, parts.width}].push_back(parts.value);
  }
  std::vector<std::string> parts;
  for (auto& [key, values] : groups) {
    const auto& [stem, width] = key;
    std::sort(values.begin(), values.end());
    if (width == 0)
      parts.push_back(stem);
    else if (values.size() == 1)
      parts.push_back(stem + fmt::format("{:0{}}", values.front(), width));
    else
      parts.push_back(fmt::format("{}[{}]", stem, ranges(values, width)));
  }
  return join(parts, ",");
}

}  // namespace muster::slurm
