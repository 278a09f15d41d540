// SPDX-License-Identifier: Apache-2.0
// Computes the SHA-256 of a file in pieces.
#include "plugins/train/data/files/checksum.h"

#include <fmt/format.h>
#include <nettle/sha2.h>

#include <array>
#include <fstream>
#include <vector>

namespace muster::train {

Result<std::string> sha256OfFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::kIo, "cannot open", path.string()};
  sha256_ctx context{};
  sha256_init(&context);
  std::vector<char> chunk(1 << 20);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0)
    sha256_update(&context, static_cast<size_t>(file.gcount()),
                  reinterpret_cast<const uint8_t*>(chunk.data()));
  if (file.bad()) return Error{ErrorCode::kIo, "cannot be read to its end", path.string()};
  std::array<uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context, digest.size(), digest.data());
  std::string text;
  for (uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace muster::train
