// SPDX-License-Identifier: Apache-2.0
// See download.h.
#include "plugins/train/data/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <filesystem>
#include <vector>

#include "plugins/train/data/fetch.h"
#include "plugins/train/data/tar.h"
#include "runner/core/files.h"
#include "runner/core/units.h"

namespace muster::train {
namespace {

namespace fs = std::filesystem;

/// A file as its publisher offers it.
struct Published {
  std::string name;
  std::string md5;
  std::vector<std::string> members;  ///< that are taken out of it; empty: it is used as it is
};

struct Source {
  std::string url;  ///< of the folder
  std::vector<Published> files;
};

/// Addresses and checksums as the publishers give them: github.com/zalandoresearch/fashion-mnist and
/// cs.toronto.edu/~kriz/cifar.html.
Result<Source> sourceOf(const std::string& mode) {
  if (mode == "fashion-mnist")
    return Source{"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                  {{"train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", {}},
                   {"train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", {}},
                   {"t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", {}},
                   {"t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", {}}}};
  if (mode == "cifar10")
    return Source{"https://www.cs.toronto.edu/~kriz",
                  {{"cifar-10-binary.tar.gz",
                    "c32a1d4ab5d03f1284b67883e8d87530",
                    {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                     "data_batch_5.bin", "test_batch.bin"}}}};
  if (mode == "cifar100")
    return Source{
        "https://www.cs.toronto.edu/~kriz",
        {{"cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", {"train.bin", "test.bin"}}}};
  return Error{ErrorCode::kUsage,
               "download = true, and nobody may hand out data_mode \"" + mode +
                   "\" without asking; fetch it by hand and give data_dir",
               "download"};
}

/// One process at a time works on a folder; the lock goes with the descriptor.
Result<Fd> lockFolder(const fs::path& folder) {
  const fs::path path = folder / ".muster-download.lock";
  Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.valid()) return Error{ErrorCode::kIo, "cannot be made: " + errnoText(errno), path.string()};
  while (flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return Error{ErrorCode::kIo, "cannot be locked: " + errnoText(errno), path.string()};
  return lock;
}

bool complete(const Published& file, const fs::path& folder) {
  std::error_code ignored;
  if (file.members.empty()) return fs::exists(folder / file.name, ignored);
  for (const std::string& member : file.members)
    if (!fs::exists(folder / member, ignored)) return false;
  return true;
}

Status fetchOne(const sdk::Host& host, const Published& file, const std::string& url,
                const fs::path& folder) {
  const RemoteFile remote = {url + "/" + file.name, file.md5};
  const fs::path path = folder / file.name;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    host.log(MUSTER_LOG_INFO, fmt::format("fetching {} into {}", remote.url, folder.string()));
    MUSTER_CHECK_OK(fetchFile(remote, path, [&](uint64_t got, uint64_t wanted) {
      host.progress(wanted > 0 ? static_cast<double>(got) / static_cast<double>(wanted) : -1,
                    fmt::format("fetching {}, {}", file.name, formatQuantity(static_cast<double>(got), "B")));
      return !host.cancelled();
    }));
  }
  return file.members.empty() ? Status() : extractFiles(path, file.members, folder);
}

}  // namespace

Status fetchDataset(const sdk::Host& host, const DatasetSpec& spec, const std::string& url) {
  if (spec.mode == "synthetic") return {};
  MUSTER_TRY(Source source, sourceOf(spec.mode));
  if (spec.folder.empty())
    return Error{ErrorCode::kUsage, "download = true needs data_dir, the folder to put the files into",
                 "data_dir"};
  std::error_code error;
  fs::create_directories(spec.folder, error);
  if (error) return Error{ErrorCode::kIo, "cannot be made: " + error.message(), spec.folder};
  MUSTER_TRY(Fd lock, lockFolder(spec.folder));
  for (const Published& file : source.files)
    if (!complete(file, spec.folder))
      MUSTER_CHECK_OK(fetchOne(host, file, url.empty() ? source.url : url, spec.folder));
  return {};
}

}  // namespace muster::train
