// SPDX-License-Identifier: Apache-2.0
// A folder whose files are signed or verified: listed and read without following any link, and without trust
// in who can change it meanwhile.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runner/attest/byte_locator.h"
#include "runner/core/result.h"
#include "runner/system/files.h"

namespace muster::attest {

/// Where the envelope lies in a signed folder.
inline constexpr const char* kEnvelopeName = "signature.dsse.json";

/// A file of the folder, as it was when it was listed.
struct FolderFile {
  std::string name;  ///< below the folder, with '/'
  uint64_t bytes = 0;
  struct stat seen {};
};

struct FolderList {
  std::vector<FolderFile> files;     ///< sorted by name; without the envelope and the working files
  std::vector<FolderFile> folders;   ///< sorted by name, with '/' at its end; "" is the folder itself
  std::vector<std::string> strange;  ///< "NAME is a symbolic link": what is neither a file nor a folder
  std::vector<std::string> working;  ///< what only the run itself needs: .lock, requests/, output/, its keys
};

/// SHA-256 and block sums of a file.
struct FileSums {
  std::string sha256;
  BlockSums blocks;
};

class Folder {
 public:
  static Result<Folder> open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Result<FolderList> list() const;
  /// The whole of a file of at most `limit` bytes.
  [[nodiscard]] Result<std::string> read(const std::string& name, uint64_t limit) const;
  /// Sums over the first `limit` bytes of a file, with blocks of `block` bytes.
  [[nodiscard]] Result<FileSums> sums(const std::string& name, uint64_t block, uint64_t limit) const;
  /// Where a file differs from the one that was signed, as far as can be told: "byte 17 is 0x31, signed was
  /// 0x30", "in bytes 4096 to 8191". `found` has the sums of this file with the blocks of the signed one,
  /// over one byte more at most.
  [[nodiscard]] std::string difference(const std::string& name, const FileSums& signedSums,
                                       const FileSums& found) const;
  /// The SHA-256 of what read() or sums() got of a file; empty: neither did, or not the same each time.
  [[nodiscard]] std::string readSha256(const std::string& name) const;
  /// What was read of each file, for another process; it is forgotten here.
  std::map<std::string, std::string> takeReads() const;
  /// Notes what was read of a file, here or in another process.
  void note(const std::string& name, const std::string& sha256) const;
  /// The first file or folder that is not any more what it was when it was listed, or a file of which other
  /// bytes were read the second time; empty: there is none.
  [[nodiscard]] std::string changedSince(const FolderList& list) const;

 private:
  Folder(std::filesystem::path path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  /// Opens a file below the folder; no part of its name may be a link.
  [[nodiscard]] Result<Fd> openFile(const std::string& name) const;
  [[nodiscard]] bool becomes(const std::string& name, uint64_t at, unsigned char byte,
                             const std::string& sha256) const;

  /// What was read so far, from any thread: what is judged must be what is hashed.
  struct Reads {
    std::mutex mutex;
    std::map<std::string, std::string> sha256;  ///< by file; empty: not the same each time
  };

  std::filesystem::path path_;
  Fd fd_;
  std::unique_ptr<Reads> reads_ = std::make_unique<Reads>();
};

}  // namespace muster::attest
