// SPDX-License-Identifier: Apache-2.0
// A hash with a secret key, for tables whose keys come from files of others: nobody can prepare texts that
// all have one hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

struct HashKey {
  uint64_t k0 = 0;
  uint64_t k1 = 0;
};

/// Of this process, drawn by the kernel when it began. So hashes must reach no file and no other process.
const HashKey& processHashKey();

/// SipHash-1-3 as Rust's and Python's tables have it.
uint64_t sipHash13(const HashKey& key, std::string_view text);
/// SipHash-2-4, for which test vectors are published (Aumasson and Bernstein, "SipHash: a fast short-input
/// PRF", 2012).
uint64_t sipHash24(const HashKey& key, std::string_view text);

/// The hash of a text in this process.
inline uint64_t keyedHash(std::string_view text) {
  return sipHash13(processHashKey(), text);
}

/// The hasher of a standard table; with std::equal_to<> it finds a text by a view.
struct KeyedHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return keyedHash(text); }
};

}  // namespace muster
