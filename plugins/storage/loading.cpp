// SPDX-License-Identifier: Apache-2.0
// Test "loading": many small files, read in shuffled order by several threads, as training reads its data.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/spec/pattern.h"
#include "plugins/sdk/test_case.h"
#include "plugins/storage/params.h"
#include "plugins/storage/scratch.h"
#include "plugins/storage/tests.h"
#include "runner/core/clock.h"

namespace muster::storage {
namespace {

constexpr uint64_t kFilesOfFolder = 1000;
constexpr const char* kHowDropped =
    "fdatasync, then posix_fadvise(DONTNEED) on each file; counted by mincore";

Error fileError(const std::string& what, const std::string& file, int error) {
  return {ErrorCode::kIo, fmt::format("cannot {}: {}", what, errnoText(error)), file};
}

/// What the files hold: the number of each, then a part of one random sequence that begins elsewhere in each
/// file, so that no file equals another and none can be compressed.
class Contents {
 public:
  Contents(uint64_t seed, uint64_t bytes) : seed_(seed), bytes_(bytes), words_(kOffsets + bytes / 8 + 1) {
    for (uint64_t i = 0; i < words_.size(); ++i) words_[i] = scatter(seed + i);
  }
  void fill(uint64_t file, std::vector<char>& out) const {
    out.resize(bytes_);
    std::memcpy(out.data(), part(file), bytes_);
    const uint64_t number = scatter(seed_ ^ file);
    std::memcpy(out.data(), &number, sizeof number);
  }
  [[nodiscard]] bool isRight(uint64_t file, const std::vector<char>& found, size_t length) const {
    const uint64_t number = scatter(seed_ ^ file);
    return length == bytes_ && std::memcmp(found.data(), &number, sizeof number) == 0 &&
           std::memcmp(found.data() + sizeof number, part(file) + sizeof number, bytes_ - sizeof number) == 0;
  }

 private:
  static constexpr uint64_t kOffsets = 1 << 20;
  [[nodiscard]] const char* part(uint64_t file) const {
    return reinterpret_cast<const char*>(words_.data() + scatter(file) % kOffsets);
  }
  uint64_t seed_, bytes_;
  std::vector<uint64_t> words_;
};

class LoadingCase {
 public:
  LoadingCase(const Site& site, const LoadingParams& params, const Scratch& scratch, uint64_t seed)
      : site_(site), params_(params), scratch_(scratch), seed_(seed), contents_(seed, params.fileSize) {}

  Status run() {
    Status status = measure();
    // By all threads: a rank whose runner died has two seconds to remove what it made.
    const Status removed = each(
        "removing",
        [this](uint64_t file, std::vector<char>&) -> Status {
          unlinkat(scratch_.fd(), nameOf(file).c_str(), 0);  // some may not have been made
          return {};
        },
        false);
    return status.ok() ? removed : status;
  }

 private:
  using Work = std::function<Status(uint64_t index, std::vector<char>& buffer)>;

  Status measure() {
    MUSTER_CHECK_OK(makeFolders());
    MUSTER_CHECK_OK(
        each("writing", [this](uint64_t file, std::vector<char>& buffer) { return write(file, buffer); }));
    MUSTER_CHECK_OK(each("dropping the page cache",
                         [this](uint64_t file, std::vector<char>& buffer) { return drop(file, buffer); }));
    shuffle();
    const double begin = systemClock().now();
    MUSTER_CHECK_OK(each("reading", [this](uint64_t place, std::vector<char>& buffer) {
      return read(order_[place], buffer);
    }));
    return report(systemClock().now() - begin);
  }

  [[nodiscard]] static std::string nameOf(uint64_t file) {
    return fmt::format("{}/{}", file / kFilesOfFolder, file);
  }

  Status makeFolders() const {
    for (uint64_t folder = 0; folder * kFilesOfFolder < params_.files; ++folder)
      if (mkdirat(scratch_.fd(), std::to_string(folder).c_str(), 0700) != 0)
        return fileError("make a folder", scratch_.shownPath(), errno);
    return {};
  }

  /// Does it once for each file, in several threads; stops at the first error, and when cancelled.
  Status each(const char* phase, const Work& work, bool mayStop = true) {
    std::atomic<uint64_t> next = 0;
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::condition_variable ended;
    int running = params_.threads;
    Status status;
    std::vector<std::thread> threads;
    for (int i = 0; i < params_.threads; ++i)
      threads.emplace_back([&] {
        std::vector<char> buffer;
        Status own;
        for (uint64_t index = next++; index < params_.files && own.ok() && !stop; index = next++)
          own = work(index, buffer);
        const std::lock_guard lock(mutex);
        if (status.ok()) status = own;
        stop = stop || !own.ok();
        --running;
        ended.notify_one();
      });
    {
      std::unique_lock lock(mutex);
      while (running > 0) {
        ended.wait_for(lock, std::chrono::milliseconds(100));
        const double done = static_cast<double>(std::min<uint64_t>(next, params_.files));
        site_.host.progress(done / static_cast<double>(params_.files), phase);
        if (!mayStop || stop || !site_.host.cancelled()) continue;
        stop = true;
        if (status.ok()) status = Error{ErrorCode::kTimeout, "cancelled", phase};
      }
    }
    for (std::thread& thread : threads) thread.join();
    return status;
  }

  Status write(uint64_t file, std::vector<char>& buffer) const {
    const std::string name = nameOf(file);
    const Fd fd(openat(scratch_.fd(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.valid()) return fileError("make a file", name, errno);
    contents_.fill(file, buffer);
    for (size_t done = 0; done < buffer.size();) {
      const ssize_t n = ::write(fd.get(), buffer.data() + done, buffer.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return fileError("write", name, n < 0 ? errno : ENOSPC);
      done += static_cast<size_t>(n);
    }
    return {};
  }

  /// Drops a file from the page cache, and counts what stays there all the same.
  Status drop(uint64_t file, std::vector<char>& pages) {
    const std::string name = nameOf(file);
    const Fd fd(openat(scratch_.fd(), name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return fileError("open", name, errno);
    // Only pages that are written back can be dropped.
    if (fdatasync(fd.get()) != 0) return fileError("flush", name, errno);
    if (const int error = posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED); error != 0)
      return fileError("drop from the page cache", name, error);
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    pages.assign((params_.fileSize + page - 1) / page, 0);
    void* map = mmap(nullptr, params_.fileSize, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (map == MAP_FAILED) return fileError("map", name, errno);
    const int failed =
        mincore(map, params_.fileSize, reinterpret_cast<unsigned char*>(pages.data())) == 0 ? 0 : errno;
    munmap(map, params_.fileSize);
    if (failed != 0) return fileError("look into the page cache", name, failed);
    cachedPages_ +=
        static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(), [](char p) { return (p & 1) != 0; }));
    allPages_ += pages.size();
    return {};
  }

  void shuffle() {
    order_.resize(params_.files);
    std::iota(order_.begin(), order_.end(), uint64_t{0});
    for (uint64_t i = params_.files - 1; i > 0; --i)
      std::swap(order_[i], order_[scatter(seed_ + i) % (i + 1)]);
  }

  Status read(uint64_t file, std::vector<char>& buffer) {
    const std::string name = nameOf(file);
    const Fd fd(openat(scratch_.fd(), name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return fileError("open", name, errno);
    buffer.resize(params_.fileSize + 1);  // a file that is too long shows
    const ssize_t length = readFully(fd.get(), buffer.data(), buffer.size());
    if (length < 0) return fileError("read", name, errno);
    if (!contents_.isRight(file, buffer, static_cast<size_t>(length))) ++wrong_;
    return {};
  }

  Status report(double seconds) const {
    const sdk::Host& host = site_.host;
    const double rate = static_cast<double>(params_.files) / seconds;
    MUSTER_CHECK_OK(host.fact("cache", kHowDropped));
    MUSTER_CHECK_OK(host.measurement("cached_share", "ratio",
                                     {static_cast<double>(cachedPages_) / static_cast<double>(allPages_)}));
    MUSTER_CHECK_OK(host.measurement("wrong_files", "count", {static_cast<double>(wrong_)}));
    MUSTER_CHECK_OK(host.measurement("file_rate", "count/s", {rate}));
    return host.measurement("file_bandwidth", "B/s", {rate * static_cast<double>(params_.fileSize)});
  }

  const Site& site_;
  const LoadingParams& params_;
  const Scratch& scratch_;
  uint64_t seed_;
  Contents contents_;
  std::vector<uint64_t> order_;
  std::atomic<uint64_t> cachedPages_ = 0, allPages_ = 0, wrong_ = 0;
};

Status simulate(Site& site, const LoadingParams& params) {
  const double rate = site.simulated->loadFiles(params.files, params.fileSize);
  const double now = site.simulated->now();
  const sdk::Host& host = site.host;
  MUSTER_CHECK_OK(reportMount(site, {"simulated", "simulated", "simulated"}));
  MUSTER_CHECK_OK(host.fact("cache", "simulated"));
  MUSTER_CHECK_OK(host.measurement("cached_share", "ratio", {0}, {}, now));
  MUSTER_CHECK_OK(host.measurement("wrong_files", "count", {0}, {}, now));
  MUSTER_CHECK_OK(host.measurement("file_rate", "count/s", {rate}, {}, now));
  return host.measurement("file_bandwidth", "B/s", {rate * static_cast<double>(params.fileSize)}, {}, now);
}

}  // namespace

Status runLoading(Site& site, const Json& caseJson) {
  MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
  MUSTER_TRY(const LoadingParams params, sdk::readParams<LoadingParams>(*input.params));
  if (site.simulated != nullptr) return simulate(site, params);
  MUSTER_TRY(const Scratch scratch, Scratch::make(site, params.directory));
  MUSTER_TRY(const Mount mount, mountOf(scratch.fd()));
  MUSTER_CHECK_OK(reportMount(site, mount));
  MUSTER_CHECK_OK(scratch.requireSpace(params.files * params.fileSize, params.files, params.keepFree));
  return LoadingCase(site, params, scratch, input.seed).run();
}

}  // namespace muster::storage
