// SPDX-License-Identifier: Apache-2.0
// Reads a file, decompressing it with zlib if needed.
#include "plugins/train/data/files/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "runner/system/files.h"

namespace muster::train {
namespace {

constexpr size_t kChunk = 1 << 20;

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};

/// Reads the next chunk onto `content`; true at the end of the file.
Result<bool> readChunk(gzFile_s* file, std::string& content, const std::string& where) {
  const size_t before = content.size();
  content.resize(before + kChunk);
  const int got = gzread(file, content.data() + before, kChunk);
  content.resize(before + static_cast<size_t>(std::max(0, got)));
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  // A file that is cut short gives its last good bytes first, and Z_BUF_ERROR with them.
  if (got < 0 || code == Z_BUF_ERROR)
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("damaged or truncated at byte {} of its decompressed content ({}); fetch it again",
                    content.size(), code == Z_BUF_ERROR ? "unexpected end of file" : text),
        where};
  return got == 0;
}

}  // namespace

Result<std::string> readMaybeGzip(const std::filesystem::path& path, uint64_t limit) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return Error{ErrorCode::kNotFound, "no such file", path.string()};
  std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) return Error{ErrorCode::kIo, "cannot open: " + errnoText(errno), path.string()};
  gzbuffer(file.get(), kChunk);
  std::string content;
  for (bool atEnd = false; !atEnd;) {
    MUSTER_TRY(atEnd, readChunk(file.get(), content, path.string()));
    if (content.size() > limit)
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("its content is larger than the {} bytes it can be; it is another file", limit),
          path.string()};
  }
  return content;
}

}  // namespace muster::train
