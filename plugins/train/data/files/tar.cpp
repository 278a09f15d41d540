// SPDX-License-Identifier: Apache-2.0
// See tar.h. A member is a header of 512 bytes and its content, padded to 512 (POSIX.1-1988 ustar).
#include "plugins/train/data/files/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "plugins/train/data/files/gzip.h"
#include "runner/system/files.h"

namespace muster::train {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kLargest = 1ULL << 30;

/// An octal number of a header; none where it is no number.
std::optional<uint64_t> octal(std::string_view field) {
  uint64_t value = 0;
  bool any = false;
  for (char c : field) {
    if (c == '\0' || c == ' ') {
      if (any) break;
      continue;
    }
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(c - '0');
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

struct Member {
  std::string name;  ///< last component
  uint64_t size = 0;
  bool isFile = false;
};

Result<Member> readHeader(std::string_view block, uint64_t offset, const std::string& where) {
  const auto size = octal(block.substr(124, 12));
  const auto sum = octal(block.substr(148, 8));
  uint64_t actual = 0;
  for (size_t i = 0; i < kBlock; ++i)
    actual += i >= 148 && i < 156 ? static_cast<uint64_t>(' ') : static_cast<unsigned char>(block[i]);
  if (!size || !sum || *sum != actual)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("at byte {}: no header of a tar archive; fetch it again", offset), where};
  std::string name(block.substr(0, 100));
  name.resize(std::min(name.find('\0'), name.size()));
  return Member{name.substr(name.rfind('/') + 1), *size, block[156] == '0' || block[156] == '\0'};
}

}  // namespace

Status extractFiles(const std::filesystem::path& archive, const std::vector<std::string>& names,
                    const std::filesystem::path& folder) {
  MUSTER_TRY(std::string content, readMaybeGzip(archive, kLargest));
  std::vector<std::string> missing = names;
  for (uint64_t at = 0; at + kBlock <= content.size() && content[at] != '\0';) {
    const std::string_view all = content;
    MUSTER_TRY(Member member, readHeader(all.substr(at, kBlock), at, archive.string()));
    at += kBlock;
    if (member.size > content.size() - at)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("at byte {}: it ends inside {} of {} bytes; fetch it again", content.size(),
                               member.name, member.size),
                   archive.string()};
    const auto wanted = std::find(missing.begin(), missing.end(), member.name);
    if (member.isFile && wanted != missing.end()) {
      MUSTER_CHECK_OK(writeFileAtomically(folder / member.name, all.substr(at, member.size), Durable::kNo));
      missing.erase(wanted);
    }
    at += (member.size + kBlock - 1) / kBlock * kBlock;
  }
  if (missing.empty()) return {};
  return Error{ErrorCode::kCorrupt, fmt::format("it lacks {}; fetch it again", fmt::join(missing, ", ")),
               archive.string()};
}

}  // namespace muster::train
