// SPDX-License-Identifier: Apache-2.0
// Somebody on the same machine connects before a peer does and sends what Gloo would believe: nothing is read
// of it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "runner/system/files.h"
#include "tests/kernels/host_gloo/ranks.h"

namespace muster::testing {
namespace {

constexpr int kTrials = 60;   // in each, chance decides which of both ends waits for the other's connection
constexpr int kRefusals = 2;  // that are enough

/// Ports of the loopback address at which `pid` waits for connections.
std::set<int> listeningPorts(const std::string& pid) {
  std::set<std::string> sockets;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + pid + "/fd", gone))
    sockets.insert(std::filesystem::read_symlink(entry.path(), gone).string());
  std::set<int> ports;
  std::ifstream table("/proc/" + pid + "/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    std::array<char, 64> local{}, inode{};
    int state = 0;
    if (sscanf(line.c_str(), " %*d: %63s %*s %x %*s %*s %*s %*s %*s %63s", local.data(), &state,
               inode.data()) != 3)
      continue;
    if (state != 0x0a || sockets.count(fmt::format("socket:[{}]", inode.data())) == 0) continue;
    ports.insert(static_cast<int>(std::strtol(strchr(local.data(), ':') + 1, nullptr, 16)));
  }
  return ports;
}

/// Connects to `port` and sends messages of Gloo: 6 words of 8 bytes, lengths and offsets beyond everything.
Fd intrude(int port) {
  Fd stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return Fd();
  for (uint64_t opcode = 0; opcode < 6; ++opcode) {
    const std::array<uint64_t, 6> message = {4096, opcode, 1, 1ull << 40, 4048, 1ull << 40};
    if (send(stranger.get(), message.data(), sizeof message, MSG_NOSIGNAL) < 0) break;
  }
  return stranger;
}

/// Rank 1's store: when it has rank 0's address, a stranger connects there before rank 1 can.
class WatchedStore : public GroupStore {
 public:
  explicit WatchedStore(GroupStore& real) : real_(real) {}
  Status set(const std::string& key, std::string_view value) override { return real_.set(key, value); }
  Result<std::string> get(const std::string& key, double timeout) override {
    auto value = real_.get(key, timeout);
    if (key.find("/gloo/") == std::string::npos || !value.ok() || !strangers_.empty()) return value;
    const auto pid = real_.get("pid", timeout);
    if (pid.ok())
      for (const int port : listeningPorts(*pid)) strangers_.push_back(intrude(port));
    return value;
  }

 private:
  GroupStore& real_;
  std::vector<Fd> strangers_;
};

std::vector<std::string> formWithAStranger() {
  return runRanks(2, [](Rank& rank) -> std::string {
    rank.spec.timeout = 2;
    WatchedStore watched(rank.store);
    const bool first = rank.spec.rank == 0;
    if (first)
      if (Status told = rank.store.set("pid", std::to_string(getpid())); !told.ok())
        return told.error().text();
    auto joined = first ? rank.join() : rank.backend->communicator(*rank.device, rank.spec, watched);
    // Who leaves at once ends the group for the other one, which may not have joined it yet.
    if (Status told = rank.store.set(first ? "done0" : "done1", ""); !told.ok()) return told.error().text();
    (void)rank.store.get(first ? "done1" : "done0", 10);
    return problemOf(joined);
  });
}

TEST(Stranger, WhoConnectsFirstIsRefusedUnread) {
  int refused = 0;
  for (int trial = 0; trial < kTrials && refused < kRefusals; ++trial) {
    const auto words = formWithAStranger();
    if (words == std::vector<std::string>{"", ""}) continue;  // rank 0 was the one that connected
    ++refused;
    EXPECT_NE(words[0].find("did not prove that it belongs to the group"), std::string::npos)
        << words[0] << "; rank 1: " << words[1];
    EXPECT_EQ(words[1].find("signal"), std::string::npos) << words[1];
  }
  EXPECT_EQ(refused, kRefusals) << "no stranger came first";
}

}  // namespace
}  // namespace muster::testing
