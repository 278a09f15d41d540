// SPDX-License-Identifier: Apache-2.0
// The parameters of this plugin's tests.
#pragma once

#include "kernels/interfaces/storage.h"
#include "plugins/sdk/params.h"

namespace muster::storage {

/// What the tests that fill a directory of their own have.
struct CommonParams {
  std::string directory;
  uint64_t keepFree = 0;

  void declareCommon(sdk::ParamTable& param) {
    param("directory", directory, "",
          "directory to test; its files go into a new subdirectory, which is removed at the end. Empty: in "
          "the run folder");
    param("keep_free", keepFree, "B", "10 GiB", {"16 MiB"},
          "space that must stay free in the file system; a test that would leave less does not start");
  }
};

struct FioParams : CommonParams {
  StorageLoad load;
  std::string pattern;
  uint64_t size = 0;
  bool direct = true;
  double timeLimit = 0;

  void declare(sdk::ParamTable& param) {
    declareCommon(param);
    param("pattern", pattern, "read", {"read", "write", "randread", "randwrite"},
          "sequential or random reads or writes");
    param("block_size", load.blockSize, "B", "1 MiB", {"4 KiB", "64 MiB"}, "size of one operation");
    param("queue_depth", load.queueDepth, 32, {1, 1024}, "operations under way at once, with direct I/O");
    param("size", size, "B", "4 GiB", {"1 MiB"}, "size of the file");
    param("duration", load.seconds, "s", "20s", {"1s", "24h"}, "length of the measurement");
    param("direct", direct, true,
          "bypass the page cache (O_DIRECT); false: rates are partly those of the host's memory");
    param("time_limit", timeLimit, "s", "5m", {"1s", "24h"},
          "timeout of each run of fio, in addition to the measurement's duration; set the stage's timeout "
          "above it");
  }
  Status complete() {
    load.writes = pattern.ends_with("write");
    load.random = pattern.starts_with("rand");
    if (size % load.blockSize == 0) return {};
    return Error{ErrorCode::kUsage, "must be a multiple of `block_size`", "params.size"};
  }
};

struct LoadingParams : CommonParams {
  uint64_t files = 0;
  uint64_t fileSize = 0;
  int threads = 0;

  void declare(sdk::ParamTable& param) {
    declareCommon(param);
    param("files", files, 10000, {1, 10000000}, "number of files");
    param("file_size", fileSize, "B", "128 KiB", {"8 B", "64 MiB"}, "size of each file");
    param("threads", threads, 8, {1, 256}, "threads that write, and then read in shuffled order");
  }
};

struct SharedParams {
  std::string directory;
  uint64_t size = 0;
  double visibleWithin = 0;
  bool locks = true;

  void declare(sdk::ParamTable& param) {
    param(
        "directory", directory, "",
        "shared directory, the same on all nodes; files go into a new subdirectory, which is removed at the "
        "end");
    param("size", size, "B", "1 MiB", {"8 B", "64 MiB"}, "size of each node's file");
    param("visible_within", visibleWithin, "s", "30s", {"100ms", "1h"},
          "time after which every node must see what the others have written");
    param("locks", locks, true, "test that fcntl locks exclude other nodes");
  }
};

}  // namespace muster::storage
