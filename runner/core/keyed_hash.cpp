// SPDX-License-Identifier: Apache-2.0
// Computes SipHash with the key of this process.
#include "runner/core/keyed_hash.h"

#include <sys/auxv.h>

#include <bit>
#include <cstring>

namespace muster {
namespace {

/// As a little-endian machine has it in memory; Muster runs on no other.
uint64_t wordAt(std::string_view text, size_t at, size_t size = 8) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t word = 0;
  std::memcpy(&word, text.data() + at, size);
  return word;
}

/// `kEach` rounds for each word and `kLast` at the end; the names are those of the paper.
template <int kEach, int kLast>
uint64_t sipHash(const HashKey& key, std::string_view text) {
  uint64_t v0 = key.k0 ^ 0x736f6d6570736575u, v1 = key.k1 ^ 0x646f72616e646f6du;
  uint64_t v2 = key.k0 ^ 0x6c7967656e657261u, v3 = key.k1 ^ 0x7465646279746573u;
  const auto mix = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    v3 ^= word;
    mix(kEach);
    v0 ^= word;
  };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) take(wordAt(text, at));
  const size_t left = text.size() - at;
  take((left > 0 ? wordAt(text, at, left) : 0) | static_cast<uint64_t>(text.size()) << 56);
  v2 ^= 0xff;
  mix(kLast);
  return v0 ^ v1 ^ v2 ^ v3;
}

/// The 16 random bytes that the kernel gives each program: unlike a system call, no sandbox refuses them.
HashKey drawKey() {
  HashKey key;
  static_assert(sizeof key == 16);
  std::memcpy(&key, reinterpret_cast<const void*>(getauxval(AT_RANDOM)), sizeof key);
  return key;
}

}  // namespace

const HashKey& processHashKey() {
  static const HashKey kKey = drawKey();
  return kKey;
}

uint64_t sipHash13(const HashKey& key, std::string_view text) {
  return sipHash<1, 3>(key, text);
}
uint64_t sipHash24(const HashKey& key, std::string_view text) {
  return sipHash<2, 4>(key, text);
}

}  // namespace muster
