// SPDX-License-Identifier: Apache-2.0
// Changes texts at random, the same way for the same seed everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::testing {

/// Makes broken variants of a set of texts.
class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, std::vector<std::string> words, uint64_t seed)
      : seeds_(std::move(seeds)), words_(std::move(words)), state_(seed * 2 + 1) {}

  /// One of the seeds, changed in one to eight places.
  std::string next();

 private:
  uint64_t random();
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random() % bound); }
  void change(std::string& text);
  void changeLine(std::string& text);
  void splice(std::string& text);
  void changeNumber(std::string& text);

  std::vector<std::string> seeds_;
  std::vector<std::string> words_;
  uint64_t state_;
};

}  // namespace muster::testing
