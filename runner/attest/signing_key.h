// SPDX-License-Identifier: Apache-2.0
// Ed25519 keys (RFC 8032) by libsodium, as PEM files that OpenSSL and other tools read and write too.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster::attest {

inline constexpr size_t kSignatureBytes = 64;

/// The key that verifies.
struct PublicKey {
  std::array<unsigned char, 32> bytes{};

  /// How envelopes name it: the SHA-256 of its bytes.
  [[nodiscard]] std::string id() const;
  /// Whether `signature` is by this key's secret half, over exactly these bytes.
  [[nodiscard]] bool verifies(std::string_view message, std::string_view signature) const;
};

/// The key that signs. Its memory is wiped when it goes.
class SecretKey {
 public:
  explicit SecretKey(const std::array<unsigned char, 32>& seed);
  SecretKey(SecretKey&& other) noexcept;
  SecretKey(const SecretKey&) = delete;
  SecretKey& operator=(const SecretKey&) = delete;
  ~SecretKey();

  [[nodiscard]] PublicKey publicKey() const;
  [[nodiscard]] std::string sign(std::string_view message) const;  ///< kSignatureBytes

 private:
  std::array<unsigned char, 64> key_{};  ///< seed and public key, as libsodium takes them
};

/// Reads a PEM file "PRIVATE KEY" (PKCS #8). kUsage for other keys, and for a file that others can read.
Result<SecretKey> readSecretKey(const std::filesystem::path& path);
/// Reads a PEM file "PUBLIC KEY".
Result<PublicKey> readPublicKey(const std::filesystem::path& path);

/// Makes a key pair: `path`, which only its owner can read, and `path`.pub. Neither may exist.
Result<PublicKey> makeKeyPair(const std::filesystem::path& path);

/// Base64 (RFC 4648) with padding. Reading refuses whatever writing does not give.
std::string base64(std::string_view bytes);
Result<std::string> fromBase64(std::string_view text);

}  // namespace muster::attest
