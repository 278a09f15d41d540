// SPDX-License-Identifier: Apache-2.0
// Writes, reads and signs DSSE envelopes.
#include "runner/attest/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/core/json.h"

namespace muster::attest {
namespace {

constexpr size_t kMostSignatures = 16;

Result<EnvelopeSignature> signatureFromJson(const Json& json, const std::string& path) {
  EnvelopeSignature one;
  std::string text;
  JsonReader reader(json, path);
  reader.read("keyid", one.keyId);
  reader.read("sig", text);
  MUSTER_CHECK_OK(reader.status());
  MUSTER_TRY(one.signature, fromBase64(text).context(path + ".sig"));
  return one;
}

/// Of two signatures under one id, one could be anything.
Status requireOneOfEach(const std::vector<EnvelopeSignature>& signatures) {
  std::set<std::string> ids;
  for (const EnvelopeSignature& one : signatures)
    if (!ids.insert(one.keyId).second)
      return Error{ErrorCode::kProtocol,
                   fmt::format("it has two signatures of key {}", printable(one.keyId, 80)), ""};
  return {};
}

/// Any other writing of the same envelope is refused too, so that no byte of the file is without meaning.
Status requireOwnText(std::string_view text, const Envelope& envelope) {
  const size_t at = firstDifference(text, envelopeText(envelope));
  if (at == std::string_view::npos) return {};
  return Error{ErrorCode::kProtocol, fmt::format("byte {} is not as `muster sign` writes it", at), ""};
}

}  // namespace

size_t firstDifference(std::string_view a, std::string_view b) {
  if (a == b) return std::string_view::npos;
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(at - a.begin());
}

std::string signedBytes(std::string_view payload) {
  const std::string_view type = kPayloadType;
  return fmt::format("DSSEv1 {} {} {} {}", type.size(), type, payload.size(), payload);
}

Status Envelope::sign(const SecretKey& key) {
  const std::string id = key.publicKey().id();
  std::erase_if(signatures, [&](const EnvelopeSignature& one) { return one.keyId == id; });
  if (signatures.size() >= kMostSignatures)
    return Error{
        ErrorCode::kUsage,
        fmt::format("it has {} signatures already, which is the maximum; remove the file to sign anew",
                    signatures.size()),
        ""};
  signatures.push_back({id, key.sign(signedBytes(payload))});
  return {};
}

bool Envelope::isSignedBy(const PublicKey& key) const {
  const std::string bytes = signedBytes(payload);
  return std::any_of(signatures.begin(), signatures.end(), [&](const EnvelopeSignature& one) {
    return one.keyId == key.id() && key.verifies(bytes, one.signature);
  });
}

std::string envelopeText(const Envelope& envelope) {
  std::string text = fmt::format("{{\n \"payloadType\": {},\n \"payload\": {},\n \"signatures\": [",
                                 dumpJson(kPayloadType), dumpJson(base64(envelope.payload)));
  const char* separator = "\n  ";
  for (const EnvelopeSignature& one : envelope.signatures) {
    text += separator + dumpJson(Json{{"keyid", one.keyId}, {"sig", base64(one.signature)}});
    separator = ",\n  ";
  }
  return text + "\n ]\n}\n";
}

Result<Envelope> parseEnvelope(std::string_view text) {
  MUSTER_TRY(const Json json, parseJson(text));
  Envelope envelope;
  std::string type, payload;
  JsonReader reader(json, "envelope");
  reader.read("payloadType", type);
  reader.read("payload", payload);
  MUSTER_CHECK_OK(reader.status());
  if (type != kPayloadType)
    return Error{ErrorCode::kProtocol,
                 fmt::format("its payloadType is \"{}\"; expected \"{}\"", printable(type, 80), kPayloadType),
                 ""};
  MUSTER_TRY(envelope.payload, fromBase64(payload).context("envelope.payload"));
  reader.each("signatures", [&](const Json& item, const std::string& path) -> Status {
    MUSTER_TRY(EnvelopeSignature one, signatureFromJson(item, path));
    envelope.signatures.push_back(std::move(one));
    return {};
  });
  MUSTER_CHECK_OK(reader.status());
  if (envelope.signatures.empty() || envelope.signatures.size() > kMostSignatures)
    return Error{
        ErrorCode::kProtocol,
        fmt::format("it has {} signatures; expected 1 to {}", envelope.signatures.size(), kMostSignatures),
        ""};
  MUSTER_CHECK_OK(requireOneOfEach(envelope.signatures));
  MUSTER_CHECK_OK(requireOwnText(text, envelope));
  return envelope;
}

}  // namespace muster::attest
