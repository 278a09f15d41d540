// SPDX-License-Identifier: Apache-2.0
// Reads node keys, and computes and verifies the MAC of a record.
#include "runner/record/record_mac.h"

#include <fmt/format.h>
#include <nettle/memops.h>

#include "runner/core/text.h"
#include "runner/system/secret.h"
#include "runner/system/trust.h"

namespace muster {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kMacDigits = 64;
/// How a record's text ends without a MAC, and what stands before and after the digits of one.
constexpr std::string_view kEnd = "\n}\n";
constexpr std::string_view kBefore = ",\n \"mac\": \"";
constexpr std::string_view kAfter = "\"\n}\n";

}  // namespace

std::string nodeKeyOf(const std::string& runKey, const std::string& node) {
  return hexText(hmacSha256(runKey, "muster record key\n" + node));
}

Result<std::string> readKey(const std::filesystem::path& path) {
  MUSTER_TRY(const std::string text, readPrivateFile(path, 4 * kKeyBytes));
  const std::string key(trim(text));
  if (key.size() != 2 * kKeyBytes || key.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Error{ErrorCode::kUsage, "is not a record key; expected 64 hexadecimal digits", path.string()};
  return key;
}

std::string macOf(const Record& record, const std::string& nodeKey) {
  return hexText(hmacSha256(nodeKey, recordText(record)));
}

Status checkMac(std::string_view text, const std::string& nodeKey) {
  const size_t tail = kBefore.size() + kMacDigits + kAfter.size();
  if (text.size() <= tail || !text.ends_with(kAfter) ||
      text.substr(text.size() - tail, kBefore.size()) != kBefore)
    return Error{ErrorCode::kProtocol,
                 "it has no MAC, which each node of this run writes: another program wrote it", ""};
  const std::string_view found = text.substr(text.size() - tail + kBefore.size(), kMacDigits);
  const std::string expected =
      hexText(hmacSha256(nodeKey, std::string(text.substr(0, text.size() - tail)) += kEnd));
  if (memeql_sec(found.data(), expected.data(), kMacDigits) != 0) return {};
  return Error{ErrorCode::kProtocol,
               "its MAC is not by its node's key: it was changed after the run, or is of another run or node",
               ""};
}

}  // namespace muster
