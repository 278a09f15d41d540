// SPDX-License-Identifier: Apache-2.0
// See matcher.h. A. V. Aho, M. J. Corasick: Efficient string matching, CACM 18 (1975).
#include "reports/redaction/matcher.h"

#include <cctype>
#include <numeric>
#include <queue>

namespace muster {
namespace {

bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool isWholeWord(std::string_view text, size_t at, size_t size) {
  const size_t end = at + size;
  return (at == 0 || !isWordCharacter(text[at - 1])) && (end == text.size() || !isWordCharacter(text[end]));
}

}  // namespace

Matcher::Matcher(const std::vector<std::string_view>& values) : nodes_(1) {
  nodes_.reserve(std::accumulate(values.begin(), values.end(), size_t{1},
                                 [](size_t sum, std::string_view value) { return sum + value.size(); }));
  for (const std::string_view value : values) add(value);
  link();
}

void Matcher::add(std::string_view value) {
  uint32_t node = 0;
  for (auto byte = value.rbegin(); byte != value.rend(); ++byte) {
    uint32_t next = childOf(node, *byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.sibling = nodes_[node].child, .byte = *byte});
      nodes_[node].child = next;
      if (node == 0) first_[static_cast<unsigned char>(*byte)] = next;
    }
    node = next;
  }
  if (value.size() >= kLong)
    nodes_[node].longest = static_cast<uint32_t>(value.size());
  else if (!value.empty())
    nodes_[node].shorter = static_cast<uint8_t>(1u << value.size());
}

void Matcher::link() {
  std::queue<uint32_t> nodes({0});
  for (; !nodes.empty(); nodes.pop()) {
    const uint32_t parent = nodes.front();
    for (uint32_t i = nodes_[parent].child; i != 0; i = nodes_[i].sibling) {
      Node& node = nodes_[i];
      if (parent != 0) node.fail = after(nodes_[parent].fail, node.byte);
      if (node.longest == 0) node.longest = nodes_[node.fail].longest;
      node.shorter |= nodes_[node.fail].shorter;
      nodes.push(i);
    }
  }
}

uint32_t Matcher::childOf(uint32_t node, char byte) const {
  if (node == 0) return first_[static_cast<unsigned char>(byte)];
  uint32_t child = nodes_[node].child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

uint32_t Matcher::after(uint32_t node, char byte) const {
  uint32_t next = childOf(node, byte);
  while (next == 0 && node != 0) {
    node = nodes_[node].fail;
    next = childOf(node, byte);
  }
  return next;
}

std::vector<uint32_t> Matcher::lengthsIn(std::string_view text) const {
  std::vector<uint32_t> lengths(text.size());
  uint32_t state = 0;
  for (size_t at = text.size(); at-- > 0;) {
    state = after(state, text[at]);
    const Node& node = nodes_[state];
    lengths[at] = node.longest;
    for (uint32_t size = kLong - 1; node.shorter != 0 && lengths[at] == 0 && size > 0; --size)
      if ((node.shorter >> size & 1) != 0 && isWholeWord(text, at, size)) lengths[at] = size;
  }
  return lengths;
}

}  // namespace muster
