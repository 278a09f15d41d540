// SPDX-License-Identifier: Apache-2.0
// Finds, decodes and decompresses the record in a pod's log.
#include "runner/kube/record_log.h"

#include <fmt/format.h>
#include <nettle/base64.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster::kube {
namespace {

constexpr std::string_view kBegin = "#muster-record ";
constexpr std::string_view kEnd = "#muster-record-end";
constexpr size_t kMostHeadBytes = 1000;    // of the line that announces a record
constexpr size_t kMostRecord = 16u << 20;  // bytes; as much as `muster fleet` reads

Error invalid(const std::string& what) {
  return Error{ErrorCode::kProtocol, "the pod's log " + what, ""};
}

/// Where the last line begins that starts so.
size_t lastLine(std::string_view log, std::string_view start) {
  for (size_t at = log.rfind(start); at != std::string_view::npos; at = log.rfind(start, at - 1)) {
    if (at == 0 || log[at - 1] == '\n') return at;
  }
  return std::string_view::npos;
}

Result<std::string> decoded(std::string_view text) {
  base64_decode_ctx context;
  base64_decode_init(&context);
  std::string bytes(BASE64_DECODE_LENGTH(text.size()), '\0');
  size_t size = bytes.size();
  if (base64_decode_update(&context, &size, reinterpret_cast<uint8_t*>(bytes.data()), text.size(),
                           text.data()) == 0 ||
      base64_decode_final(&context) == 0)
    return invalid("holds a record that is not valid base64");
  bytes.resize(size);
  return bytes;
}

Result<std::string> decompressed(std::string& bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return Error{ErrorCode::kInternal, "zlib failed", ""};
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::array<char, 65536> block{};
  int state = Z_OK;
  while (state == Z_OK && text.size() <= kMostRecord) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = block.size();
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(block.data(), block.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END) return invalid("holds a record that cannot be decompressed");
  return text;
}

}  // namespace

Result<LoggedRecord> recordInLog(std::string_view log) {
  const size_t begin = lastLine(log, kBegin);
  if (begin == std::string_view::npos) return invalid("holds no record");
  const size_t body = log.find('\n', begin);
  const size_t end = log.find(kEnd, begin);
  if (body == std::string_view::npos || end == std::string_view::npos || log[end - 1] != '\n')
    return invalid("ends within its record");
  const std::string_view head = log.substr(begin + kBegin.size(), body - begin - kBegin.size());
  const auto words = split(head.substr(0, kMostHeadBytes), ' ');
  if (head.size() > kMostHeadBytes || words.size() != 3) return invalid("announces a record in another form");
  LoggedRecord record;
  record.node = words[0];
  const auto [last, failure] =
      std::from_chars(words[1].data(), words[1].data() + words[1].size(), record.exitCode);
  if (failure != std::errc() || last != words[1].data() + words[1].size())
    return invalid("announces a record without an exit code");
  MUSTER_TRY(std::string bytes, decoded(log.substr(body, end - body)));
  MUSTER_TRY(record.text, decompressed(bytes));
  if (sha256Hex(record.text) != words[2]) return invalid("holds a record with another digest than it says");
  return record;
}

}  // namespace muster::kube
