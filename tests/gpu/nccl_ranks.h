// SPDX-License-Identifier: Apache-2.0
// Ranks of an NCCL group as processes of a test: this program again, each with its place in its environment.
// A rank tells what it found in words; the case that started it looks at them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/interfaces/backend.h"

namespace muster::gpu {

/// A key-value store in a folder that all ranks share.
class FolderStore : public GroupStore {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status set(const std::string& key, std::string_view value) override;
  Result<std::string> get(const std::string& key, double timeout) override;

 private:
  [[nodiscard]] std::filesystem::path fileOf(std::string key) const;
  std::filesystem::path folder_;
};

/// One rank: its place, the first GPU, the store, and what its group is formed with.
struct Rank {
  int rank = 0;
  int size = 0;
  std::unique_ptr<Device> device;
  FolderStore store;
  CommunicatorSpec spec;

  Result<std::unique_ptr<Communicator>> join();
};

/// What a rank does; its words, "" when all was well.
using RankBody = std::function<std::string(Rank& me)>;
using Roles = std::map<std::string, RankBody>;

/// Which case of this program plays a rank: it is disabled, so that only ranks run it.
struct Stage {
  std::string filter;  ///< of Google Test: "NcclRank.DISABLED_Plays"
};

/// Ends this rank's process with its words, tearing nothing down: so the runner ends ranks that lost a peer.
[[noreturn]] void endWith(const std::string& words);

/// Plays the role of this process, which play() started.
void playRole(const Roles& roles);

/// Starts `ranks` processes in a role; the words of each, in order. One that ended before it had words says
/// how: "ended by signal 9", "ended without a word"; "took too long" after `timeout` seconds. `variables` of
/// some ranks are added to their environments.
std::vector<std::string> play(const Stage& stage, const std::string& role, int ranks,
                              const std::map<int, std::map<std::string, std::string>>& variables = {},
                              double timeout = 240);

/// "" of what is well, else the error's text.
template <typename T>
std::string problemOf(const T& result) {
  return result.ok() ? "" : result.error().text();
}

}  // namespace muster::gpu
