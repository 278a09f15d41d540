// SPDX-License-Identifier: Apache-2.0
// Lists the files of each data set with their digests and downloads them.
#include "plugins/train/data/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "plugins/train/data/files/checksum.h"
#include "plugins/train/data/files/fetch.h"
#include "plugins/train/data/files/tar.h"
#include "runner/core/units.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::train {
namespace {

namespace fs = std::filesystem;

/// A file and the only content that it may have.
struct Known {
  std::string name;
  std::string sha256;
};

/// A file as its publisher offers it.
struct Published {
  Known file;
  std::vector<Known> members;  ///< that are taken out of it; empty: it is used as it is
};

struct Source {
  std::string url;  ///< of the folder
  std::vector<Published> files;
};

/// Addresses as the publishers give them: github.com/zalandoresearch/fashion-mnist and
/// cs.toronto.edu/~kriz/cifar.html. They publish MD5; these are the SHA-256 of the files that have it.
Result<Source> sourceOf(const std::string& mode) {
  if (mode == "fashion-mnist")
    return Source{
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        {{{"train-images-idx3-ubyte.gz", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
          {}},
         {{"train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
          {}},
         {{"t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
          {}},
         {{"t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
          {}}}};
  if (mode == "cifar10")
    return Source{
        "https://www.cs.toronto.edu/~kriz",
        {{{"cifar-10-binary.tar.gz", "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
          {{"data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
           {"data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
           {"data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
           {"data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
           {"data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
           {"test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}}}}};
  if (mode == "cifar100")
    return Source{
        "https://www.cs.toronto.edu/~kriz",
        {{{"cifar-100-binary.tar.gz", "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"},
          {{"train.bin", "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"},
           {"test.bin", "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"}}}}};
  return Error{ErrorCode::kUsage,
               "download = true, but data_mode \"" + mode +
                   "\" is not freely distributable; download it manually and give data_dir",
               "download"};
}

/// One process at a time works on a folder; the lock goes with the descriptor.
Result<Fd> lockFolder(const fs::path& folder) {
  const fs::path path = folder / "lock";
  MUSTER_TRY(Fd lock, openLockFile(path));
  while (flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return Error{ErrorCode::kIo, "cannot be locked: " + errnoText(errno), path.string()};
  return lock;
}

/// Whether the file is there; an error if it is another one. Nobody's file is removed.
Result<bool> isThere(const fs::path& folder, const Known& file) {
  const fs::path path = folder / file.name;
  // A plan is no way to look at other files: no link is followed, and only the expected digest is told.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) return false;
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Error{ErrorCode::kUsage, "it must be a regular file that can be read", path.string()};
  MUSTER_TRY(const std::string sha256, sha256OfFile(fmt::format("/proc/self/fd/{}", fd.get())));
  if (sha256 == file.sha256) return true;
  return Error{ErrorCode::kCorrupt,
               fmt::format("its SHA-256 is not {}; remove it to have it fetched, or use it as it is without "
                           "`download`",
                           file.sha256),
               path.string()};
}

Result<bool> complete(const Published& published, const fs::path& folder) {
  if (published.members.empty()) return isThere(folder, published.file);
  bool all = true;
  for (const Known& member : published.members) {
    MUSTER_TRY(const bool there, isThere(folder, member));
    all = all && there;
  }
  return all;
}

Status fetchOne(const sdk::Host& host, const Published& published, const std::string& url,
                const fs::path& folder) {
  const Known& file = published.file;
  const RemoteFile remote = {url + "/" + file.name, file.sha256};
  MUSTER_TRY(const bool there, isThere(folder, file));
  if (!there) {
    host.log(MUSTER_LOG_INFO, fmt::format("fetching {} into {}", remote.url, folder.string()));
    MUSTER_CHECK_OK(fetchFile(remote, folder / file.name, [&](uint64_t got, uint64_t wanted) {
      host.progress(wanted > 0 ? static_cast<double>(got) / static_cast<double>(wanted) : -1,
                    fmt::format("fetching {}, {}", file.name, formatQuantity(static_cast<double>(got), "B")));
      return !host.cancelled();
    }));
  }
  if (published.members.empty()) return {};
  std::vector<std::string> names;
  for (const Known& member : published.members) names.push_back(member.name);
  MUSTER_CHECK_OK(extractFiles(folder / file.name, names, folder));
  for (const Known& member : published.members) MUSTER_CHECK_OK(isThere(folder, member));
  return {};
}

}  // namespace

fs::path downloadFolder(const DatasetSpec& spec) {
  return fs::path(spec.folder) / ("muster-" + spec.mode);
}

Status fetchDataset(const sdk::Host& host, const DatasetSpec& spec, const std::string& url) {
  if (spec.mode == "synthetic") return {};
  MUSTER_TRY(Source source, sourceOf(spec.mode));
  if (spec.folder.empty())
    return Error{ErrorCode::kUsage, "download = true needs data_dir, the directory for the files",
                 "data_dir"};
  // A plan is no way to make directories anywhere with the rights of whoever runs it.
  std::error_code error;
  if (!fs::is_directory(spec.folder, error))
    return Error{ErrorCode::kUsage, "no such directory; make it first", "data_dir " + spec.folder};
  MUSTER_CHECK_OK(outputFolder(spec.folder));
  const fs::path folder = downloadFolder(spec);
  MUSTER_CHECK_OK(makeOwnSubfolder(folder, "download folder"));
  MUSTER_TRY(Fd lock, lockFolder(folder));
  for (const Published& file : source.files) {
    MUSTER_TRY(const bool there, complete(file, folder));
    if (!there) MUSTER_CHECK_OK(fetchOne(host, file, url.empty() ? source.url : url, folder));
  }
  return {};
}

}  // namespace muster::train
