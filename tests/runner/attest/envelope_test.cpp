// SPDX-License-Identifier: Apache-2.0
// Envelopes: several signers, other types and other writings.
#include "runner/attest/envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::attest {
namespace {

using ::testing::HasSubstr;

SecretKey keyOf(unsigned char number) {
  std::array<unsigned char, 32> seed{};
  seed.fill(number);
  return SecretKey(seed);
}

Envelope signedEnvelope() {
  Envelope envelope{R"({"a":1})", {}};
  EXPECT_TRUE(envelope.sign(keyOf(1)).ok());
  return envelope;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  const auto envelope = parseEnvelope(text);
  return envelope.ok() ? "" : envelope.error().text();
}

// The example of the DSSE protocol's definition has other type and body; its rule is the same.
TEST(Envelope, SignsTypeAndLengthsWithThePayload) {
  EXPECT_EQ(signedBytes("hello world"), "DSSEv1 28 application/vnd.in-toto+json 11 hello world");
}

TEST(Envelope, IsSignedByEachOfItsSigners) {
  Envelope envelope = signedEnvelope();
  EXPECT_TRUE(envelope.sign(keyOf(2)).ok());
  EXPECT_TRUE(envelope.sign(keyOf(2)).ok());
  EXPECT_EQ(envelope.signatures.size(), 2U);
  const auto read = parseEnvelope(envelopeText(envelope));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_TRUE(read->isSignedBy(keyOf(1).publicKey()));
  EXPECT_TRUE(read->isSignedBy(keyOf(2).publicKey()));
  EXPECT_FALSE(read->isSignedBy(keyOf(3).publicKey()));
}

TEST(Envelope, CountsNoSignatureOfAnotherPayloadOrKey) {
  Envelope other = signedEnvelope();
  other.payload += " ";
  EXPECT_FALSE(other.isSignedBy(keyOf(1).publicKey()));
  Envelope swapped = signedEnvelope();
  swapped.signatures.front().keyId = keyOf(2).publicKey().id();
  EXPECT_FALSE(swapped.isSignedBy(keyOf(1).publicKey()));
  EXPECT_FALSE(swapped.isSignedBy(keyOf(2).publicKey()));
}

TEST(Envelope, RefusesOtherTypesAndOtherWritings) {
  const std::string text = envelopeText(signedEnvelope());
  EXPECT_EQ(refusal(text), "");
  EXPECT_THAT(refusal(replaced(text, "vnd.in-toto+json", "json")), HasSubstr("payloadType"));
  EXPECT_THAT(refusal(replaced(text, "\n \"payload\"", "\n  \"payload\"")),
              HasSubstr("is not as `muster sign` writes it"));
  EXPECT_THAT(refusal(replaced(text, "\"signatures\"", "\"more\": 1, \"signatures\"")), HasSubstr("byte "));
  EXPECT_THAT(refusal(replaced(text, "\n \"payload\"", "\n \"payload\": \"\",\n \"payload\"")),
              HasSubstr("defined twice"));
  const EnvelopeSignature one{"k", "s"};
  EXPECT_THAT(refusal(envelopeText({"{}", {one, one}})), HasSubstr("two signatures of key k"));
  EXPECT_THAT(refusal(envelopeText({"{}", {}})), HasSubstr("0 signatures"));
  EXPECT_THAT(refusal(envelopeText({"{}", std::vector<EnvelopeSignature>(17)})), HasSubstr("17 signatures"));
  for (const char* other : {"", "[]", "null", "{\"payloadType\": 1}", "{}"})
    EXPECT_NE(refusal(other), "") << other;
}

TEST(Envelope, RefusesEveryFlippedByteOrNoLongerCountsIt) {
  const std::string text = envelopeText(signedEnvelope());
  for (size_t at = 0; at < text.size(); ++at)
    for (const int mask : {1, 7, 32, 128}) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ mask);
      const auto read = parseEnvelope(flipped);
      EXPECT_FALSE(read.ok() && read->isSignedBy(keyOf(1).publicKey())) << at;
    }
}

}  // namespace
}  // namespace muster::attest
