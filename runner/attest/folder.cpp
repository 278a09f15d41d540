// SPDX-License-Identifier: Apache-2.0
// Lists, reads and hashes the files of a folder.
#include "runner/attest/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <nettle/sha2.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <utility>

#include "runner/core/text.h"

namespace muster::attest {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostFiles = 1'000'000;
constexpr size_t kDeepest = 32;
constexpr int kReadOnly = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
/// Blocks beyond this are named as a whole, with no search for the one changed byte.
constexpr uint64_t kLargestSearched = 64ull << 20;

Error cannotRead(const std::string& name, int error) {
  return {error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUsage, "cannot read it: " + errnoText(error),
          name};
}

/// Bytes of an open file that are no holes, as far as its file system tells.
uint64_t dataBytes(int fd, uint64_t size) {
  constexpr int kMostPieces = 4096;
  uint64_t bytes = 0;
  off_t at = 0;
  for (int piece = 0; piece < kMostPieces; ++piece) {
    const off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return size;
    if (data < 0) break;
    at = lseek(fd, data, SEEK_HOLE);
    if (at < 0) return size;
    bytes += static_cast<uint64_t>(at - data);
  }
  return lseek(fd, 0, SEEK_SET) == 0 ? bytes : size;
}

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

/// Goes through a folder and all below it.
class Walk {
 public:
  Result<FolderList> below(int folder) {
    MUSTER_CHECK_OK(visit(folder, "", 0));
    leaveOutWorkingFiles();
    for (auto* part : {&list_.files, &list_.folders})
      std::sort(part->begin(), part->end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return std::move(list_);
  }

 private:
  Status visit(int folder, const std::string& prefix, size_t depth) {
    if (depth > kDeepest)
      return Error{ErrorCode::kUsage, fmt::format("folders are nested more than {} deep", kDeepest), prefix};
    Fd copy(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    OpenFolder entries(copy.valid() ? fdopendir(copy.get()) : nullptr);
    if (!entries) return cannotRead(prefix.empty() ? "." : prefix, errno);
    copy.release();
    FolderFile& own = list_.folders.emplace_back(FolderFile{prefix, 0, {}});
    if (fstat(folder, &own.seen) != 0) return cannotRead(prefix, errno);
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(entries.get());
      if (entry == nullptr && errno != 0) return cannotRead(prefix, errno);
      if (entry == nullptr) return {};
      const std::string name = entry->d_name;
      if (name != "." && name != "..") MUSTER_CHECK_OK(take(folder, name, prefix, depth));
    }
  }

  Status take(int folder, const std::string& name, const std::string& prefix, size_t depth) {
    FolderFile file{prefix + name, 0, {}};
    if (fstatat(folder, name.c_str(), &file.seen, AT_SYMLINK_NOFOLLOW) != 0)
      return cannotRead(file.name, errno);
    if (list_.files.size() >= kMostFiles)
      return Error{ErrorCode::kUsage, fmt::format("holds more than {} files", kMostFiles), ""};
    if (S_ISDIR(file.seen.st_mode)) {
      const Fd next(openat(folder, name.c_str(), kReadOnly | O_DIRECTORY));
      return next.valid() ? visit(next.get(), file.name + "/", depth + 1)
                          : Status(cannotRead(file.name, errno));
    }
    file.bytes = static_cast<uint64_t>(file.seen.st_size);
    if (!S_ISREG(file.seen.st_mode))
      list_.strange.push_back(fmt::format(
          "{} is {}", file.name, S_ISLNK(file.seen.st_mode) ? "a symbolic link" : "no regular file"));
    else if (file.name != kEnvelopeName)
      list_.files.push_back(std::move(file));
    return {};
  }

  /// What a run makes for itself: nothing that a report rests on, and keys that are nobody else's business.
  void leaveOutWorkingFiles() {
    // What marks the folder, and what is for the run alone in it; a name with '/' at its end is a folder.
    static const std::map<std::string_view, std::vector<std::string_view>> kWorking = {
        {"journal.jsonl", {".lock", "requests/", "output/"}},
        {"slurm.json", {".lock", "run.key", "keys/"}},
        {"k8s.json", {".lock", "run.key"}}};
    std::map<std::string_view, std::vector<std::string_view>> working;  // by the folder, with '/' at its end
    for (const FolderFile& file : list_.files) {
      const size_t base = file.name.rfind('/') + 1;  // npos + 1 is 0
      if (const auto at = kWorking.find(std::string_view(file.name).substr(base)); at != kWorking.end()) {
        auto& names = working[std::string_view(file.name).substr(0, base)];
        names.insert(names.end(), at->second.begin(), at->second.end());
      }
    }
    const auto isWorking = [&](std::string_view name) {
      // Below each of the folders that it is in.
      for (size_t below = 0;; below = name.find('/', below) + 1) {
        const std::string_view rest = name.substr(below);
        if (const auto at = working.find(name.substr(0, below)); at != working.end())
          for (const std::string_view own : at->second)
            if (own.ends_with('/') ? rest.starts_with(own) : rest == own) return true;
        if (rest.find('/') == std::string_view::npos) return false;
      }
    };
    std::vector<FolderFile> kept;
    for (const FolderFile& file : list_.files)
      if (isWorking(file.name))
        list_.working.push_back(file.name);
      else
        kept.push_back(file);
    list_.files = std::move(kept);
  }

  FolderList list_;
};

/// Calls `take(piece)` for the first `limit` bytes of an open file; 0 or errno.
template <typename F>
int eachPiece(int fd, uint64_t limit, F take) {
  std::vector<char> buffer(size_t{256} * 1024);
  while (limit > 0) {
    const ssize_t n = read(fd, buffer.data(), std::min<uint64_t>(limit, buffer.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? 0 : errno;
    take(std::string_view(buffer.data(), static_cast<size_t>(n)));
    limit -= static_cast<uint64_t>(n);
  }
  return 0;
}

class Sha256 {
 public:
  Sha256() { sha256_init(&context_); }
  void add(std::string_view bytes) {
    sha256_update(&context_, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
  }
  std::string hex() {
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&context_, sizeof digest, digest);
    std::string text;
    for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  sha256_ctx context_{};
};

std::string rangeText(const ByteRange& range) {
  return range.end - range.begin == 1 ? fmt::format("byte {}", range.begin)
                                      : fmt::format("bytes {} to {}", range.begin, range.end - 1);
}

}  // namespace

Result<Folder> Folder::open(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) return Folder(path, std::move(fd));
  return Error{ErrorCode::kUsage, fmt::format("{}; expected a run or fleet directory", errnoText(errno)),
               path.string()};
}

Result<FolderList> Folder::list() const {
  return Walk().below(fd_.get()).context(path_.string());
}

Result<Fd> Folder::openFile(const std::string& name) const {
  MUSTER_TRY(Fd file, openBelow(fd_.get(), name));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return cannotRead(name, errno);
  // Holes that cost their maker nothing could keep whoever reads them busy for years.
  constexpr uint64_t kSmall = 64 << 20, kMostTimes = 1000;
  const auto size = static_cast<uint64_t>(info.st_size);
  if (const uint64_t data = size > kSmall ? dataBytes(file.get(), size) : size; size / kMostTimes > data)
    return Error{
        ErrorCode::kUsage,
        fmt::format("has {} bytes, of which {} are no hole; no file of a run is so sparse", size, data),
        name};
  return file;
}

Result<std::string> Folder::read(const std::string& name, uint64_t limit) const {
  MUSTER_TRY(const Fd file, openFile(name));
  std::string content;
  const int error = eachPiece(file.get(), limit + 1, [&](std::string_view piece) { content += piece; });
  if (error != 0) return cannotRead(name, error);
  if (content.size() > limit)
    return Error{ErrorCode::kUsage, fmt::format("is larger than {} bytes, which is the maximum", limit),
                 name};
  note(name, sha256Hex(content));
  return content;
}

Result<FileSums> Folder::sums(const std::string& name, uint64_t block, uint64_t limit) const {
  MUSTER_TRY(const Fd file, openFile(name));
  Sha256 sha;
  BlockSummer blocks(block);
  const int error = eachPiece(file.get(), limit, [&](std::string_view piece) {
    sha.add(piece);
    blocks.add(piece);
  });
  if (error != 0) return cannotRead(name, error);
  FileSums sums{sha.hex(), blocks.sums()};
  if (sums.blocks.bytes < limit) note(name, sums.sha256);  // else of a part, as it may be
  return sums;
}

void Folder::note(const std::string& name, const std::string& sha256) const {
  const std::lock_guard lock(reads_->mutex);
  const auto [known, isFirst] = reads_->sha256.emplace(name, sha256);
  if (!isFirst && known->second != sha256) known->second.clear();
}

std::map<std::string, std::string> Folder::takeReads() const {
  const std::lock_guard lock(reads_->mutex);
  return std::exchange(reads_->sha256, {});
}

std::string Folder::readSha256(const std::string& name) const {
  const std::lock_guard lock(reads_->mutex);
  const auto found = reads_->sha256.find(name);
  return found == reads_->sha256.end() ? "" : found->second;
}

bool Folder::becomes(const std::string& name, uint64_t at, unsigned char byte,
                     const std::string& sha256) const {
  const auto file = openFile(name);
  if (!file.ok()) return false;
  Sha256 sha;
  uint64_t begin = 0;
  const int error = eachPiece(file->get(), UINT64_MAX, [&](std::string_view piece) {
    const bool here = at >= begin && at < begin + piece.size();
    if (here) {
      sha.add(piece.substr(0, at - begin));
      sha.add({reinterpret_cast<const char*>(&byte), 1});
      sha.add(piece.substr(at - begin + 1));
    } else {
      sha.add(piece);
    }
    begin += piece.size();
  });
  return error == 0 && sha.hex() == sha256;
}

std::string Folder::difference(const std::string& name, const FileSums& signedSums,
                               const FileSums& found) const {
  const BlockSums &then = signedSums.blocks, &now = found.blocks;
  const auto range = differingRange(then, now);
  const std::string where = range ? " in " + rangeText(*range) : "";
  if (now.bytes > then.bytes)
    return fmt::format("is longer than the {} bytes that were signed; it differs{}", then.bytes, where);
  if (now.bytes < then.bytes)
    return fmt::format("is {} bytes, signed were {}; it differs{}", now.bytes, then.bytes, where);
  if (!range) return "differs, in a way that its block sums do not show";
  const bool oneBlock = range->end - range->begin <= then.block;
  if (!oneBlock || then.block > kLargestSearched) return "differs" + where;
  const auto file = openFile(name);
  std::string block(range->end - range->begin, '\0');
  if (!file.ok() || pread(file->get(), block.data(), block.size(), static_cast<off_t>(range->begin)) !=
                        static_cast<ssize_t>(block.size()))
    return "differs" + where;
  for (const ChangedByte& change : singleChanges(block, then.sums[range->begin / then.block]))
    if (becomes(name, range->begin + change.at, change.from, signedSums.sha256))
      return fmt::format("byte {} is 0x{:02x}, signed was 0x{:02x}", range->begin + change.at,
                         static_cast<unsigned char>(block[change.at]), change.from);
  return "differs" + where;
}

std::string Folder::changedSince(const FolderList& list) const {
  for (const auto& [name, sha256] : reads_->sha256)
    if (sha256.empty()) return name;
  const auto now = this->list();
  if (!now.ok()) return now.error().text();
  const auto same = [](const FolderFile& a, const FolderFile& b) {
    const auto key = [](const struct stat& s) {
      return std::tuple(s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ctim.tv_sec,
                        s.st_ctim.tv_nsec);
    };
    return a.name == b.name && key(a.seen) == key(b.seen);
  };
  // Folders, too: one that was put in another's place and back left its files as they were.
  for (const auto part : {&FolderList::files, &FolderList::folders}) {
    const auto &then = list.*part, &found = (*now).*part;
    const auto [before, after] = std::mismatch(then.begin(), then.end(), found.begin(), found.end(), same);
    if (before != then.end()) return before->name.empty() ? "the directory" : before->name;
    if (after != found.end()) return after->name;
  }
  return "";
}

}  // namespace muster::attest
