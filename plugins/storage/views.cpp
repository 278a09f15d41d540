// SPDX-License-Identifier: Apache-2.0
// See views.h.
#include "plugins/storage/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runner/core/text.h"

namespace muster::storage {
namespace {

constexpr size_t kMostNames = 8;

/// What it says of who saw it, and of whose file it is; the other nodes follow.
struct Words {
  const char* seeing;
  const char* seen;
};
const std::map<Sight, Words> kWords = {
    {Sight::kMissing, {"does not see the file of", "its file is not seen by"}},
    {Sight::kStale, {"sees an old version of the file of", "its file is seen in an old version by"}},
    {Sight::kWrong, {"sees wrong contents in the file of", "its file is seen with wrong contents by"}},
    {Sight::kUnreadable, {"cannot read the file of", "its file cannot be read by"}},
    {Sight::kTorn,
     {"saw neither version of a file that was replaced, of", "neither version of its file was seen by"}},
    {Sight::kLocked, {"gets locks that are held by", "its locks do not exclude"}},
};

std::string namesOf(const std::vector<NodeView>& nodes, const std::vector<int>& which) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(which.size(), kMostNames); ++i)
    names.push_back(nodes[static_cast<size_t>(which[i])].name);
  if (which.size() > kMostNames) names.push_back(fmt::format("{} more", which.size() - kMostNames));
  return join(names, ", ");
}

/// The differences that are left to explain.
class Differences {
 public:
  explicit Differences(const std::vector<NodeView>& nodes) : nodes_(nodes) {}

  [[nodiscard]] Sight sight(int node, int of) const {
    return static_cast<Sight>(nodes_[static_cast<size_t>(node)].sights[static_cast<size_t>(of)]);
  }
  [[nodiscard]] bool isOpen(int node, int of) const {
    return explained.count(node) == 0 && explained.count(of) == 0 && sight(node, of) != Sight::kSame &&
           (sight(node, of) == Sight::kTorn) == torn;
  }
  /// How many differences are laid to `node`. While a file is replaced one node alone reads it: that is laid
  /// to both.
  [[nodiscard]] int count(int node) const {
    int found = 0;
    for (int other = 0; other < size(); ++other) {
      if (isOpen(node, other) && (torn || othersSeeing(node, other) >= 0)) ++found;
      if (isOpen(other, node) && (torn || othersSeeing(other, node) <= 0 || seesOneOtherwise(other))) ++found;
    }
    return found;
  }
  [[nodiscard]] int size() const { return static_cast<int>(nodes_.size()); }
  /// The nodes that most differences are laid to; none where nothing is left.
  [[nodiscard]] std::vector<int> worst() const {
    int most = 1;
    std::vector<int> nodes;
    for (int node = 0; node < size(); ++node) {
      const int found = count(node);
      if (found > most) nodes.clear();
      most = std::max(most, found);
      if (found == most) nodes.push_back(node);
    }
    return nodes;
  }

  /// What `node` sees, and what others see of it, in words.
  [[nodiscard]] std::string text(int node) const {
    std::vector<std::string> parts;
    std::map<Sight, std::vector<int>> seen, shown;
    std::vector<int> elsewhere;
    const std::string& mount = nodes_[static_cast<size_t>(node)].mount;
    for (int other = 0; other < size(); ++other) {
      if (isOpen(node, other)) seen[sight(node, other)].push_back(other);
      if (isOpen(other, node)) shown[sight(other, node)].push_back(other);
      if ((isOpen(node, other) || isOpen(other, node)) && nodes_[static_cast<size_t>(other)].mount != mount)
        elsewhere.push_back(other);
    }
    for (const auto& [sight, others] : seen)
      parts.push_back(fmt::format("{} {}", kWords.at(sight).seeing, namesOf(nodes_, others)));
    for (const auto& [sight, others] : shown)
      parts.push_back(fmt::format("{} {}", kWords.at(sight).seen, namesOf(nodes_, others)));
    if (!elsewhere.empty())
      parts.push_back(fmt::format("its directory is {}, that of {} is {}", mount,
                                  nodes_[static_cast<size_t>(elsewhere[0])].name,
                                  nodes_[static_cast<size_t>(elsewhere[0])].mount));
    return join(parts, "; ");
  }

  std::set<int> explained;  ///< nodes that are blamed already
  bool torn = false;        ///< whether what was seen during replacements is what is left, or all else

 private:
  /// Whether it sees the file of one other node alone otherwise than most do: that one can have changed its
  /// file while this node looked.
  [[nodiscard]] bool seesOneOtherwise(int node) const {
    int files = 0;
    for (int of = 0; of < size(); ++of)
      if (isOpen(node, of) && othersSeeing(node, of) > 0) ++files;
    return files == 1;
  }
  /// Of the nodes beside both, how many more see the file of `of` as it is than otherwise.
  [[nodiscard]] int othersSeeing(int node, int of) const {
    int more = 0;
    for (int other = 0; other < size(); ++other) {
      if (other == node || other == of || explained.contains(other)) continue;
      const bool isSame = sight(other, of) == Sight::kSame || sight(other, of) == Sight::kTorn;
      more += isSame ? 1 : -1;
    }
    return more;
  }

  const std::vector<NodeView>& nodes_;
};

/// Whether `directory` is in another mount for `node` than for `other`. Nodes can mount one directory in
/// different ways (NFS by two names, or its server itself): they have the same inode number then. That of a
/// mount's top tells nothing, because file systems of one type have the same.
bool isMountedOtherwise(const NodeView& node, const NodeView& other) {
  const bool hasOtherRoot = !node.root.empty() && !other.root.empty() && node.root != other.root;
  const bool isTop = node.parent == node.root || other.parent == other.root;
  const bool isSame = !node.parent.empty() && node.parent == other.parent && !isTop;
  return (node.mount != other.mount || hasOtherRoot) && !isSame;
}

/// Whether most of the other nodes have another mount.
bool isElsewhere(const std::vector<NodeView>& nodes, const NodeView& node) {
  const auto others = std::count_if(nodes.begin(), nodes.end(),
                                    [&](const NodeView& other) { return isMountedOtherwise(node, other); });
  return others > 1 && 2 * static_cast<size_t>(others) > nodes.size() - 1;
}

std::vector<NodeFault> blameByViews(const std::vector<NodeView>& nodes) {
  std::vector<NodeFault> faults;
  Differences left(nodes);
  for (int i = 0; i < left.size(); ++i) {
    const NodeView& node = nodes[static_cast<size_t>(i)];
    if (node.problem.empty()) continue;
    const bool told = !node.isCommon || isElsewhere(nodes, node);
    faults.push_back(
        {i,
         node.problem + (told ? "" : " (whether this node or another one there is at fault cannot be told)"),
         told});
    left.explained.insert(i);
  }
  for (const bool torn : {false, true}) {
    left.torn = torn;
    for (auto worst = left.worst(); !worst.empty(); worst = left.worst()) {
      std::string open;
      if (worst.size() > 1)
        open = fmt::format(" (which of {} is at fault cannot be told)", namesOf(nodes, worst));
      else if (torn)
        open = " (whether this node or one of those is at fault cannot be told)";
      for (const int node : worst) faults.push_back({node, left.text(node) + open, open.empty()});
      left.explained.insert(worst.begin(), worst.end());
    }
  }
  return faults;
}

/// Whether two nodes met in different directories though both have the same mount.
bool areParted(const NodeView& one, const NodeView& other) {
  return !one.entered.empty() && !other.entered.empty() && one.entered != other.entered &&
         !isMountedOtherwise(one, other);
}

/// What shows that somebody replaced the directory while nodes were there; empty: nothing does.
std::string replacement(const std::vector<NodeView>& nodes) {
  std::vector<int> moved;
  std::map<std::string, std::vector<int>> parted;  // by inode number
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeView& node = nodes[i];
    if (node.moved) moved.push_back(static_cast<int>(i));
    if (std::any_of(nodes.begin(), nodes.end(), [&](const auto& other) { return areParted(node, other); }))
      parted[node.entered].push_back(static_cast<int>(i));
  }
  std::vector<std::string> parts;
  for (const auto& [inode, which] : parted) {
    if (parts.size() == kMostNames) break;
    parts.push_back(fmt::format("{} met in inode {}", namesOf(nodes, which), inode));
  }
  if (!moved.empty())
    parts.push_back(fmt::format("the directory of {} was renamed or replaced", namesOf(nodes, moved)));
  return join(parts, "; ");
}

}  // namespace

std::vector<NodeFault> blame(const std::vector<NodeView>& nodes) {
  std::vector<int> changed;
  for (size_t node = 0; node < nodes.size(); ++node)
    if (nodes[node].changed) changed.push_back(static_cast<int>(node));
  std::vector<NodeFault> faults = blameByViews(nodes);
  const std::string replaced = replacement(nodes);
  if (faults.empty() || (changed.empty() && replaced.empty())) return faults;
  for (NodeFault& fault : faults) {
    fault.told = false;
    if (!changed.empty())
      fault.text +=
          fmt::format(" (another node or program changed the files of {}; whose fault it is cannot be told)",
                      namesOf(nodes, changed));
  }
  if (!replaced.empty())
    faults.insert(faults.begin(),
                  {kAllNodes,
                   replaced + " (by another node or program, or `directory` is not shared; whose fault it is "
                              "cannot be told): find out who else writes there, then run this stage again",
                   false});
  return faults;
}

}  // namespace muster::storage
