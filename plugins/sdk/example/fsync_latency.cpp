// SPDX-License-Identifier: Apache-2.0
// A complete Muster plugin in C++: how long does a small write to a folder take until it is on the disk?
// plugins/README.md says how it is built and run outside of Muster's sources.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "plugins/sdk/params.h"
#include "plugins/sdk/test_case.h"

namespace {

using muster::Error;
using muster::ErrorCode;
using muster::Json;
using muster::Result;
using muster::Status;

/// What a plan may set. The host checks plans against this, so each value is there and in its range.
struct Params {
  std::string folder;
  uint64_t block = 0;  ///< bytes
  int samples = 0;

  void declare(muster::sdk::ParamTable& param) {
    param("folder", folder, "/tmp", "where to write");
    param("block", block, "B", "4 KiB", {"1 B", "1 GiB"}, "bytes of one write");
    param("samples", samples, 50, {2, 100000}, "writes to time");
  }
};

constexpr const char* kFsync = R"({
  "name": "fsync",
  "summary": "Time until a small write to a folder is on the disk",
  "backends": ["host", "cuda"],
  "scopes": ["device", "node"],
  "metrics": [
    {"name": "latency", "unit": "s", "direction": "lower", "labels": ["folder"],
     "summary": "time of one write and its fsync"}]
})";

std::string describe() {
  return muster::sdk::describe({{kFsync, muster::sdk::describeParams<Params>()}});
}

/// An open file that has no name, so that nothing of it is left however the test ends.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& folder) {
    std::string path = folder + "/fsync-latency-XXXXXX";
    fd_ = mkstemp(path.data());
    if (fd_ >= 0) unlink(path.c_str());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  /// Writes `data` to the beginning of the file and waits until the disk has it.
  [[nodiscard]] bool commit(const std::vector<char>& data) const {
    return pwrite(fd_, data.data(), data.size(), 0) == static_cast<ssize_t>(data.size()) && fsync(fd_) == 0;
  }

 private:
  int fd_ = -1;
};

Error failure(const std::string& what, const std::string& next) {
  return {ErrorCode::kIo, what + ": " + std::strerror(errno) + "; " + next, ""};
}

class FsyncSession : public muster::sdk::Session {
 public:
  explicit FsyncSession(const muster::sdk::Host& host) : host_(host) {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const muster::sdk::CaseInput input, muster::sdk::readCase(caseJson));
    MUSTER_TRY(const Params params, muster::sdk::readParams<Params>(*input.params));
    const ScratchFile file(params.folder);
    if (!file.valid())
      return failure("cannot make a file in " + params.folder, "let `folder` name one that may be written");
    const std::vector<char> data(params.block, 'm');
    std::vector<double> seconds;
    for (int i = 0; i < params.samples; ++i) {
      if (host_.cancelled()) return Error{ErrorCode::kTimeout, "it was cancelled", ""};
      const auto start = std::chrono::steady_clock::now();
      if (!file.commit(data))
        return failure("cannot write to " + params.folder, "look at the disk and its space");
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      host_.progress((i + 1.0) / params.samples, "writing");
    }
    // The label is a parameter of the case: the host fills it in.
    return host_.measurement("latency", "s", seconds);
  }

 private:
  muster::sdk::Host host_;
};

/// The context names test, device, rank and group; this plugin has one test and needs no device.
Result<std::unique_ptr<muster::sdk::Session>> openSession(const muster::sdk::Host& host, const Json&) {
  return std::unique_ptr<muster::sdk::Session>(std::make_unique<FsyncSession>(host));
}

}  // namespace

MUSTER_DEFINE_PLUGIN("fsync-latency", "1.0.0", describe(), openSession)
