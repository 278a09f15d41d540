// SPDX-License-Identifier: Apache-2.0
// The DSSE envelope (Dead Simple Signing Envelope, v1) around a signed statement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/attest/signing_key.h"
#include "runner/core/result.h"

namespace muster::attest {

/// The payload type of in-toto statements. An envelope of another type is refused: a signature made for
/// another purpose must not count here.
inline constexpr const char* kPayloadType = "application/vnd.in-toto+json";

struct EnvelopeSignature {
  std::string keyId;      ///< a hint which key it is by; it is not signed
  std::string signature;  ///< raw bytes
};

struct Envelope {
  std::string payload;  ///< raw bytes, of kPayloadType
  std::vector<EnvelopeSignature> signatures;

  /// Signs the payload; a signature by the same key is replaced.
  Status sign(const SecretKey& key);
  /// Whether any of its signatures is by this key, under this key's id.
  [[nodiscard]] bool isSignedBy(const PublicKey& key) const;
};

/// The bytes that a DSSE signature is over (PAE).
std::string signedBytes(std::string_view payload);

/// The one text of an envelope.
std::string envelopeText(const Envelope& envelope);
/// Refuses envelopes of other types, unknown keys, more than 16 signatures, and texts that envelopeText()
/// does not give: the error names the first byte that differs.
Result<Envelope> parseEnvelope(std::string_view text);

/// The first byte in which two texts differ; npos: they are equal.
size_t firstDifference(std::string_view a, std::string_view b);

}  // namespace muster::attest
