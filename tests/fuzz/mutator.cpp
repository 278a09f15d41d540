// SPDX-License-Identifier: Apache-2.0
// See mutator.h.
#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <iterator>

namespace muster::testing {
namespace {

constexpr size_t kLargest = size_t{64} * 1024;

}  // namespace

/// xorshift64*: the standard's distributions differ between libraries, a run must not.
uint64_t Mutator::random() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return (state_ * 0x2545F4914F6CDD1Dull) >> 11;
}

std::string Mutator::next() {
  std::string text = seeds_[below(seeds_.size())];
  for (size_t changes = 1 + below(8); changes > 0; --changes) change(text);
  if (text.size() > kLargest) text.resize(kLargest);
  return text;
}

void Mutator::change(std::string& text) {
  const size_t at = below(text.size() + 1);
  switch (below(10)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(random());
      return;
    case 1:
      text.insert(at, 1, static_cast<char>(' ' + below(95)));
      return;
    case 2:
      text.erase(at, 1 + below(4));
      return;
    case 3:
      text.insert(at, words_[below(words_.size())]);
      return;
    case 4:
      text.insert(at, text.substr(below(text.size() + 1), below(200)));
      return;
    case 5:
      return splice(text);
    case 6:
      if (below(8) == 0) text.resize(at);
      return;
    case 7:
      return changeNumber(text);
    default:
      return changeLine(text);
  }
}

/// Drops, doubles or moves a line.
void Mutator::changeLine(std::string& text) {
  const size_t from = text.rfind('\n', below(text.size() + 1));
  const size_t start = from == std::string::npos ? 0 : from + 1;
  const size_t end = std::min(text.find('\n', start), text.size());
  const std::string line = text.substr(start, end - start) + "\n";
  const size_t kind = below(3);
  if (kind != 1) text.erase(start, std::min(line.size(), text.size() - start));
  if (kind == 0) return;
  const size_t target = text.find('\n', below(text.size() + 1));
  text.insert(target == std::string::npos ? text.size() : target + 1, line);
}

/// The rest of another seed in place of the rest of this one.
void Mutator::splice(std::string& text) {
  const std::string& other = seeds_[below(seeds_.size())];
  text = text.substr(0, below(text.size() + 1)) + other.substr(below(other.size() + 1));
}

void Mutator::changeNumber(std::string& text) {
  const size_t at = text.find_first_of("0123456789", below(text.size() + 1));
  if (at == std::string::npos) return;
  static const char* const kNumbers[] = {"0",   "-1",    "1e308", "99999999999999999999",
                                         "0.5", "10001", "nan",   "7"};
  const size_t end = std::min(text.find_first_not_of("0123456789.", at), text.size());
  text.replace(at, end - at, kNumbers[below(std::size(kNumbers))]);
}

}  // namespace muster::testing
