// SPDX-License-Identifier: Apache-2.0
// Ranks of a group as real processes of a test, with a store of files between them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/interfaces/backend.h"

namespace muster::testing {

/// A GroupStore in a folder that all ranks share.
class FileStore : public GroupStore {
 public:
  explicit FileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status set(const std::string& key, std::string_view value) override;
  Result<std::string> get(const std::string& key, double timeout) override;

 private:
  [[nodiscard]] std::filesystem::path fileOf(const std::string& key) const;
  std::filesystem::path folder_;
};

/// One rank of a test: cpu0 of the real host backend, and the store.
struct Rank {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Device> device;
  FileStore store;
  CommunicatorSpec spec;  ///< name, rank and size are set

  Result<std::unique_ptr<Communicator>> join() { return backend->communicator(*device, spec, store); }
};

/// What a rank says of itself: empty when all was well.
using RankBody = std::function<std::string(Rank& rank)>;

/// Runs `body` in `size` forked processes; their words in order. A rank that a signal ended says so; one that
/// runs for more than `timeout` seconds is killed.
std::vector<std::string> runRanks(int size, const RankBody& body, double timeout = 60);

/// "" of a value that is well, else the error's text.
template <typename T>
std::string problemOf(const T& result) {
  return result.ok() ? "" : result.error().text();
}

}  // namespace muster::testing
