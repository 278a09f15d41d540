// SPDX-License-Identifier: Apache-2.0
// SipHash: the published test vectors; and the hash of this process.
#include "runner/core/keyed_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

/// The key 00 01 .. 0f of the reference implementation (https://github.com/veorq/SipHash).
constexpr HashKey kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

/// 00 01 02 .., as the vectors have it.
std::string message(size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(i);
  return text;
}

TEST(SipHash, GivesThePublishedValues) {
  // vectors.h there, in the order of the message's length.
  EXPECT_EQ(sipHash24(kKey, message(0)), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(sipHash24(kKey, message(1)), 0x74f839c593dc67fdu);
  EXPECT_EQ(sipHash24(kKey, message(7)), 0xab0200f58b01d137u);
  EXPECT_EQ(sipHash24(kKey, message(8)), 0x93f5f5799a932462u);
  EXPECT_EQ(sipHash24(kKey, message(15)), 0xa129ca6149be45e5u);  // also in the paper's appendix
  EXPECT_EQ(sipHash24(kKey, message(63)), 0x958a324ceb064572u);
}

TEST(SipHash, OfFewerRoundsGivesThoseOfRust) {
  // library/coretests/tests/hash/sip.rs of https://github.com/rust-lang/rust, test_siphash_1_3.
  EXPECT_EQ(sipHash13(kKey, message(0)), 0xabac0158050fc4dcu);
  EXPECT_EQ(sipHash13(kKey, message(1)), 0xc9f49bf37d57ca93u);
}

TEST(KeyedHash, IsTheSameInOneProcessAndDependsOnItsKey) {
  EXPECT_EQ(KeyedHash()("compute.gemm"), KeyedHash()(std::string("compute.gemm")));
  EXPECT_EQ(keyedHash("compute.gemm"), sipHash13(processHashKey(), "compute.gemm"));
  const HashKey other = {processHashKey().k0 ^ 1, processHashKey().k1};
  EXPECT_NE(keyedHash("compute.gemm"), sipHash13(other, "compute.gemm"));
  EXPECT_NE(processHashKey().k0, 0u);
}

}  // namespace
}  // namespace muster
