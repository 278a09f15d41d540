// SPDX-License-Identifier: Apache-2.0
// Comparisons of one thread's share of a buffer.
#include "kernels/host/compare.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/spec/pattern.h"

namespace muster::host {
namespace {

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
Mismatch compareAs(const std::byte* a, const std::byte* b, NanRule rule, uint64_t begin, uint64_t end) {
  Mismatch found;
  for (uint64_t at = begin; at + sizeof(T) <= end; at += sizeof(T))
    compareElement(load<T>(a + at), load<T>(b + at), rule, at, found);
  return found;
}

}  // namespace

Mismatch compareElements(const std::byte* a, const std::byte* b, Dtype dtype, uint64_t begin, uint64_t end) {
  const NanRule rule = nanRule(dtype);
  switch (dtypeBits(dtype)) {
    case 64:
      return compareAs<uint64_t>(a, b, rule, begin, end);
    case 32:
      return compareAs<uint32_t>(a, b, rule, begin, end);
    case 16:
      return compareAs<uint16_t>(a, b, rule, begin, end);
    default:
      return compareAs<uint8_t>(a, b, rule, begin, end);
  }
}

void fillPattern(std::byte* data, const PatternPart& part, uint64_t begin, uint64_t end) {
  for (uint64_t at = begin; at < end; at += 8) {
    const uint64_t word = part.word(at / 8);
    std::memcpy(data + at, &word, std::min<uint64_t>(8, end - at));
  }
}

Mismatch checkPattern(const std::byte* data, const PatternPart& part, uint64_t begin, uint64_t end) {
  Mismatch found;
  for (uint64_t at = begin; at < end; at += 8) {
    const uint64_t expected = part.word(at / 8);
    uint64_t actual = expected;  // so that bytes past the end are equal
    std::memcpy(&actual, data + at, std::min<uint64_t>(8, end - at));
    compareWord(expected, actual, at, found);
  }
  return found;
}

uint64_t hashWords(const std::byte* data, uint64_t begin, uint64_t end) {
  uint64_t sum = 0;
  for (uint64_t at = begin; at < end; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, std::min<uint64_t>(8, end - at));
    sum += scatter(word ^ scatter(at));
  }
  return sum;
}

Mismatch merge(const std::vector<Mismatch>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Mismatch(), combine);
}

}  // namespace muster::host
