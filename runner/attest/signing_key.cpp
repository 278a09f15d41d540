// SPDX-License-Identifier: Apache-2.0
// Reads, writes and uses Ed25519 keys.
#include "runner/attest/signing_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::attest {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxKeyBytes = 16384;
constexpr mode_t kPrivate = 0600;
/// What stands before the 32 bytes of an Ed25519 key in DER (RFC 8410): PKCS #8, and SubjectPublicKeyInfo.
constexpr std::string_view kSecretHead{"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20",
                                       16};
constexpr std::string_view kPublicHead{"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12};
constexpr std::string_view kSecretLabel = "PRIVATE KEY";
constexpr std::string_view kPublicLabel = "PUBLIC KEY";

/// One of the two kinds of PEM file.
struct KeyKind {
  std::string_view label;
  std::string_view head;
  const char* meant;  ///< for messages
};
constexpr KeyKind kSecret{kSecretLabel, kSecretHead,
                          "an Ed25519 private key, which `muster sign --new-key FILE` makes"};
constexpr KeyKind kPublic{kPublicLabel, kPublicHead,
                          "an Ed25519 public key (FILE.pub of `muster sign --new-key FILE`)"};

const unsigned char* bytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string pemText(const KeyKind& kind, std::string_view key) {
  return fmt::format("-----BEGIN {0}-----\n{1}\n-----END {0}-----\n", kind.label,
                     base64(std::string(kind.head) + std::string(key)));
}

Error wrongKey(const KeyKind& kind, const std::string& found, const fs::path& path) {
  return {ErrorCode::kUsage, fmt::format("{}; expected {}", found, kind.meant), path.string()};
}

/// "PRIVATE KEY" of a PEM text; empty: it is none.
std::string labelOf(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----";
  if (!text.starts_with(kBegin)) return "";
  text.remove_prefix(kBegin.size());
  return std::string(text.substr(0, text.find(kEnd)));
}

/// The 32 bytes of a key in a PEM text.
Result<std::array<unsigned char, 32>> keyIn(std::string_view text, const KeyKind& kind,
                                            const fs::path& path) {
  text = trim(text);
  const std::string label = labelOf(text);
  if (label.empty()) return wrongKey(kind, "is not a PEM file", path);
  if (label != kind.label) return wrongKey(kind, fmt::format("holds a \"{}\"", printable(label, 60)), path);
  const std::string begin = fmt::format("-----BEGIN {}-----", label),
                    end = fmt::format("-----END {}-----", label);
  if (text.size() < begin.size() + end.size() || !text.ends_with(end))
    return wrongKey(kind, "is truncated", path);
  std::string body(text.substr(begin.size(), text.size() - begin.size() - end.size()));
  std::erase_if(body, [](char c) { return c == '\n' || c == '\r'; });
  auto der = fromBase64(body);
  sodium_memzero(body.data(), body.size());
  std::array<unsigned char, 32> key{};
  const bool fits = der.ok() && der->starts_with(kind.head) && der->size() == kind.head.size() + key.size();
  if (fits) std::copy(der->end() - static_cast<std::ptrdiff_t>(key.size()), der->end(), key.begin());
  if (der.ok()) sodium_memzero(der->data(), der->size());
  if (!fits) return wrongKey(kind, "holds a key of another type", path);
  return key;
}

Status requireFree(const fs::path& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) return {};
  return Error{ErrorCode::kUsage, "exists already, and a key is never overwritten; choose another name",
               path.string()};
}

}  // namespace

std::string PublicKey::id() const {
  return sha256Hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
  return signature.size() == kSignatureBytes &&
         crypto_sign_verify_detached(bytesOf(signature), bytesOf(message), message.size(), bytes.data()) == 0;
}

SecretKey::SecretKey(const std::array<unsigned char, 32>& seed) {
  std::array<unsigned char, 32> ignored{};
  crypto_sign_seed_keypair(ignored.data(), key_.data(), seed.data());
}

SecretKey::SecretKey(SecretKey&& other) noexcept : key_(other.key_) {
  sodium_memzero(other.key_.data(), other.key_.size());
}

SecretKey::~SecretKey() {
  sodium_memzero(key_.data(), key_.size());
}

PublicKey SecretKey::publicKey() const {
  PublicKey key;
  std::copy(key_.begin() + 32, key_.end(), key.bytes.begin());
  return key;
}

std::string SecretKey::sign(std::string_view message) const {
  std::string signature(kSignatureBytes, '\0');
  crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr, bytesOf(message),
                       message.size(), key_.data());
  return signature;
}

Result<SecretKey> readSecretKey(const fs::path& path) {
  MUSTER_TRY(std::string text, readPrivateFile(path, kMaxKeyBytes));
  auto seed = keyIn(text, kSecret, path);
  sodium_memzero(text.data(), text.size());
  if (!seed.ok()) return std::move(seed).error();
  SecretKey key(*seed);
  sodium_memzero(seed->data(), seed->size());
  return key;
}

Result<PublicKey> readPublicKey(const fs::path& path) {
  auto text = readFile(path, kMaxKeyBytes);
  if (!text.ok()) return Error{ErrorCode::kUsage, text.error().message, path.string()};
  PublicKey key;
  MUSTER_TRY(key.bytes, keyIn(*text, kPublic, path));
  return key;
}

Result<PublicKey> makeKeyPair(const fs::path& path) {
  const fs::path open = path.string() + ".pub";
  MUSTER_CHECK_OK(requireFree(path));
  MUSTER_CHECK_OK(requireFree(open));
  if (sodium_init() < 0) return Error{ErrorCode::kInternal, "libsodium cannot start", path.string()};
  std::array<unsigned char, 32> seed{};
  randombytes_buf(seed.data(), seed.size());
  const PublicKey key = SecretKey(seed).publicKey();
  std::string pem = pemText(kSecret, {reinterpret_cast<const char*>(seed.data()), seed.size()});
  sodium_memzero(seed.data(), seed.size());
  // First, as it refuses folders where the private key would be another's.
  MUSTER_CHECK_OK(writeFileAtomically(
      open, pemText(kPublic, {reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()})));
  const auto file = openOwnFile(path, O_WRONLY | O_TRUNC, kPrivate);
  const Status written = file.ok() ? appendAndSync(file->get(), pem, path) : Status(file.error());
  sodium_memzero(pem.data(), pem.size());
  if (!written.ok()) unlink(open.c_str());
  MUSTER_CHECK_OK(written);
  return key;
}

std::string base64(std::string_view bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), bytesOf(bytes), bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // its NUL
  return text;
}

Result<std::string> fromBase64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  size_t size = 0;
  const char* end = nullptr;
  const int code =
      sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                        text.size(), nullptr, &size, &end, sodium_base64_VARIANT_ORIGINAL);
  const auto read = static_cast<size_t>(end == nullptr ? 0 : end - text.data());
  if (code != 0 || read != text.size())
    return Error{ErrorCode::kProtocol, fmt::format("is not base64 from its character {} on", read + 1), ""};
  bytes.resize(size);
  return bytes;
}

}  // namespace muster::attest
