// SPDX-License-Identifier: Apache-2.0
// Comparisons of one thread's share of a buffer: bits against bits, and words against their pattern.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/interfaces/device.h"

namespace muster::host {

/// Compares elements in [begin, end) bytes of two buffers; an element that is NaN is wrong even where both
/// agree. `begin` and `end` fall on elements. kFp4 (two a byte) is compared as bytes.
Mismatch compareElements(const std::byte* a, const std::byte* b, Dtype dtype, uint64_t begin, uint64_t end);

/// Fills or checks bytes [begin, end) of a buffer with the words of a pattern; `begin` falls on a word, `end`
/// need not.
void fillPattern(std::byte* data, const PatternPart& part, uint64_t begin, uint64_t end);
Mismatch checkPattern(const std::byte* data, const PatternPart& part, uint64_t begin, uint64_t end);

/// Sum of a scattered function of each word and its place in bytes [begin, end): shares of a buffer add up to
/// the same in any order. `begin` falls on a word; a last word that is cut short is filled with zeros.
uint64_t hashWords(const std::byte* data, uint64_t begin, uint64_t end);

/// The whole of consecutive parts: counts add up, the first mismatch wins.
Mismatch merge(const std::vector<Mismatch>& parts);

}  // namespace muster::host
