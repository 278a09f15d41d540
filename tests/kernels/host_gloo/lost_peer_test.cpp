// SPDX-License-Identifier: Apache-2.0
// A peer that is killed, stopped, missing or gone: an error for the others, never a hang.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/kernels/host_gloo/ranks.h"

namespace muster::testing {
namespace {

constexpr int kVictim = 1;

/// All-reduces until that fails; the error.
std::string reduceForEver(Rank& rank, Communicator& group) {
  auto buffer = rank.device->allocate(1 << 16);
  if (!buffer.ok()) return buffer.error().text();
  while (true) {
    Status status = group.allReduce(**buffer, 0, 1 << 14, Dtype::kF32, ReduceOp::kMax);
    if (status.ok()) status = group.join();
    if (!status.ok()) return status.error().text();
  }
}

/// Rank kVictim sends itself `signal` in the middle; what the others say.
std::vector<std::string> loseTo(int signal, double timeout) {
  return runRanks(3, [=](Rank& rank) -> std::string {
    rank.spec.timeout = timeout;
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    const std::string pid = std::to_string(getpid());
    if (rank.spec.rank == kVictim) {
      if (Status kept = rank.store.set("victim", pid); !kept.ok()) return kept.error().text();
      std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        kill(getpid(), signal);
      }).detach();
    }
    std::string problem = reduceForEver(rank, **group);
    if (signal == SIGSTOP) {  // a stopped process does not end by itself
      const auto victim = rank.store.get("victim", 5);
      if (victim.ok()) kill(std::stoi(*victim), SIGKILL);
    }
    return problem;
  });
}

void expectLost(const std::string& said, int rank) {
  EXPECT_NE(said.find("rank " + std::to_string(rank) + " of 3 lost its group in all_reduce"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("a peer ended or hangs"), std::string::npos) << said;
}

TEST(LostPeer, IsAnErrorForTheOthersWhenItIsKilled) {
  const auto words = loseTo(SIGKILL, 20);
  expectLost(words[0], 0);
  EXPECT_EQ(words[1], "ended by signal 9");
  expectLost(words[2], 2);
}

TEST(LostPeer, IsAnErrorForTheOthersWhenItIsStopped) {
  const auto words = loseTo(SIGSTOP, 1);
  expectLost(words[0], 0);
  EXPECT_EQ(words[1], "ended by signal 9");
  expectLost(words[2], 2);
}

/// Writes a header for data that nobody waits for to all its peers, as if it were Gloo's own.
void sendNonsense() {
  const std::array<uint64_t, 6> header = {sizeof header, 1, 0xdead, 0, uint64_t{1} << 40, 0};
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && peer.ss_family != AF_UNIX) {
      EXPECT_EQ(send(fd, header.data(), sizeof header, MSG_NOSIGNAL), sizeof header);
    }
  }
}

/// An exception on Gloo's own thread would end the process of whoever reads it, which would be blamed for
/// that.
TEST(LostPeer, EndsNobodyElseByWhatItSends) {
  const auto words = runRanks(3, [](Rank& rank) -> std::string {
    rank.spec.timeout = 10;
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    if (const Status met = (*group)->barrier(); !met.ok()) return met.error().text();
    if (rank.spec.rank != kVictim) {
      const std::string problem = reduceForEver(rank, **group);
      const Status told = rank.store.set("ended" + std::to_string(rank.spec.rank), "yes");
      return told.ok() ? problem : told.error().text();
    }
    sendNonsense();
    for (const char* other : {"ended0", "ended2"})
      if (auto ended = rank.store.get(other, 30); !ended.ok()) return ended.error().text();
    return "";
  });
  expectLost(words[0], 0);
  // Of both, who waits for rank 1 just then.
  EXPECT_NE((words[0] + words[2]).find("rank 1 sent what is no message"), std::string::npos)
      << words[0] << words[2];
  expectLost(words[2], 2);
}

TEST(LostPeer, IsNamedWhenItNeverComes) {
  const auto words = runRanks(3, [](Rank& rank) -> std::string {
    rank.spec.timeout = 0.5;
    if (rank.spec.rank == kVictim) return "";
    return problemOf(rank.join());
  });
  for (int rank : {0, 2})
    EXPECT_NE(words[static_cast<size_t>(rank)].find("forming group test: waiting for rank 1"),
              std::string::npos)
        << words[static_cast<size_t>(rank)];
}

TEST(LostPeer, LeavesNothingBehindForLaterCalls) {
  const auto words = runRanks(2, [](Rank& rank) -> std::string {
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    if (rank.spec.rank == kVictim) {
      if (auto joined = rank.store.get("joined", 30); !joined.ok()) return joined.error().text();
      raise(SIGKILL);
    }
    if (Status told = rank.store.set("joined", "yes"); !told.ok()) return told.error().text();
    const std::string first = problemOf((*group)->barrier());
    const std::string second = problemOf((*group)->maxOverRanks({1}));
    return first == second ? first : first + " / " + second;
  });
  EXPECT_NE(words[0].find("rank 0 of 2 lost its group in a barrier"), std::string::npos) << words[0];
  EXPECT_EQ(words[0].find(" / "), std::string::npos) << words[0];
}

TEST(LostPeer, IsAnErrorWhileTheGroupForms) {
  for (int turn = 0; turn < 40; ++turn) {  // it dies as soon as it has joined: the other often still connects
    const auto words = runRanks(2, [](Rank& rank) -> std::string {
      auto group = rank.join();
      if (rank.spec.rank == kVictim) raise(SIGKILL);
      return group.ok() ? problemOf((*group)->barrier()) : group.error().text();
    });
    ASSERT_NE(words[0].find("rank 0 of 2 lost its group in "), std::string::npos) << words[0];
  }
}

TEST(Abort, LetsGoOfAWaitAtOnce) {
  const auto words = runRanks(2, [](Rank& rank) -> std::string {
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    if (rank.spec.rank == 1) return problemOf(rank.store.get("released", 30));
    std::thread helper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      (*group)->abort();
    });
    const Status waited = (*group)->barrier();  // nobody else comes
    helper.join();
    if (Status told = rank.store.set("released", "yes"); !told.ok()) return told.error().text();
    return problemOf(waited);
  });
  EXPECT_NE(words[0].find("the group was aborted"), std::string::npos) << words[0];
  EXPECT_EQ(words[1], "");
}

TEST(Communicator, EndsWhileItsQueueWaitsForAPeer) {
  const auto words = runRanks(2, [](Rank& rank) -> std::string {
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    if (rank.spec.rank == 1) return problemOf(rank.store.get("released", 30));
    auto buffer = rank.device->allocate(4096);
    if (!buffer.ok()) return buffer.error().text();
    const Status queued = (*group)->allReduce(**buffer, 0, 1024, Dtype::kF32, ReduceOp::kSum);
    group->reset();
    if (Status told = rank.store.set("released", "yes"); !told.ok()) return told.error().text();
    return problemOf(queued);
  });
  for (const std::string& said : words) EXPECT_EQ(said, "");
}

TEST(Communicator, DeliversWhatItSentBeforeItEnds) {
  constexpr uint64_t kBytes = 8 << 20;
  const auto words = runRanks(2, [](Rank& rank) -> std::string {
    auto group = rank.join();
    auto buffer = rank.device->allocate(kBytes);
    if (!group.ok() || !buffer.ok()) return problemOf(group) + problemOf(buffer);
    if (rank.spec.rank == 0) {
      const Status sent = (*group)->exchange(1, **buffer, kBytes, **buffer, 0);
      group->reset();
      return problemOf(sent);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return problemOf((*group)->exchange(0, **buffer, 0, **buffer, kBytes));
  });
  for (const std::string& said : words) EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace muster::testing
