// SPDX-License-Identifier: Apache-2.0
// Finds values in a text in one pass, however many they are and however alike.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace muster {

/// An Aho-Corasick automaton of the reversed values: it reads a text from its end, so it knows at each byte
/// which values begin there. Takes about 20 bytes per byte of the values.
class Matcher {
 public:
  static constexpr size_t kLong = 8;  ///< bytes from which a value is found also within a word

  explicit Matcher(const std::vector<std::string_view>& values = {});
  /// For each byte of `text`, the length of the longest value that begins there; 0: none does. A value of
  /// less than kLong bytes must be the whole of a word.
  [[nodiscard]] std::vector<uint32_t> lengthsIn(std::string_view text) const;

 private:
  struct Node {
    uint32_t child = 0, sibling = 0;  ///< 0: none
    uint32_t fail = 0;                ///< the node of the longest end of this node's bytes
    uint32_t longest = 0;             ///< length of the longest value of at least kLong bytes that ends here
    uint8_t shorter = 0;              ///< bit n: a value of n bytes ends here
    char byte = 0;
  };
  void add(std::string_view value);
  void link();
  [[nodiscard]] uint32_t childOf(uint32_t node, char byte) const;
  [[nodiscard]] uint32_t after(uint32_t node, char byte) const;

  std::vector<Node> nodes_;
  std::array<uint32_t, 256> first_{};  ///< children of the root by their byte
};

}  // namespace muster
