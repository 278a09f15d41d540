// SPDX-License-Identifier: Apache-2.0
// What a communicator offers beside prepared collectives: gradients, exchanges, maxima, proof of transport.
#include <gtest/gtest.h>

#include "kernels/host/buffer.h"
#include "tests/kernels/host_gloo/ranks.h"

namespace muster::testing {
namespace {

float* floats(Buffer& buffer) {
  return reinterpret_cast<float*>(host::bytesOf(buffer));
}

/// The first of several problems.
std::string firstOf(std::initializer_list<std::string> problems) {
  for (const std::string& problem : problems)
    if (!problem.empty()) return problem;
  return "";
}

/// What the first rank that was not well says, of a formed group of `size` ranks of which each runs `body`
/// and then meets the others; "" when all were well.
std::string problemOnRanks(int size, const std::function<std::string(Rank&, Communicator&)>& body) {
  const auto words = runRanks(size, [&](Rank& rank) -> std::string {
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    return firstOf({body(rank, **group), problemOf((*group)->barrier())});
  });
  for (size_t rank = 0; rank < words.size(); ++rank)
    if (!words[rank].empty()) return "rank " + std::to_string(rank) + ": " + words[rank];
  return words.size() == static_cast<size_t>(size) ? "" : "a rank is missing";
}

TEST(Communicator, SumsPartsOfABufferInTheBackground) {
  const auto body = [](Rank& rank, Communicator& group) -> std::string {
    constexpr uint64_t kCount = 3000;
    auto buffer = rank.device->allocate(kCount * sizeof(float));
    if (!buffer.ok()) return buffer.error().text();
    float* values = floats(**buffer);
    for (uint64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(rank.spec.rank + 1);
    for (uint64_t first : {2000u, 1000u}) {  // as gradients come: the last ones first
      const Status queued = group.allReduce(**buffer, first, 1000, Dtype::kF32, ReduceOp::kSum);
      if (!queued.ok()) return queued.error().text();
    }
    if (Status joined = group.join(); !joined.ok()) return joined.error().text();
    for (uint64_t i = 0; i < kCount; ++i)
      if (values[i] != (i < 1000 ? static_cast<float>(rank.spec.rank + 1) : 6.0f))
        return "element " + std::to_string(i) + " is " + std::to_string(values[i]);
    return "";
  };
  EXPECT_EQ(problemOnRanks(3, body), "");
}

TEST(Communicator, BroadcastsFromAnyRoot) {
  const auto body = [](Rank& rank, Communicator& group) -> std::string {
    auto buffer = rank.device->allocate(4096);
    if (!buffer.ok()) return buffer.error().text();
    floats(**buffer)[7] = static_cast<float>(rank.spec.rank);
    const std::string problem = problemOf(group.broadcast(**buffer, 4096, 2));
    return problem.empty() && floats(**buffer)[7] != 2 ? "not the root's" : problem;
  };
  EXPECT_EQ(problemOnRanks(3, body), "");
}

TEST(Communicator, ExchangesBothWaysAndOneWay) {
  const auto body = [](Rank& rank, Communicator& group) -> std::string {
    const int peer = 1 - rank.spec.rank;
    auto mine = rank.device->allocate(4096), theirs = rank.device->allocate(4096);
    if (!mine.ok() || !theirs.ok()) return "no memory";
    floats(**mine)[1023] = static_cast<float>(10 + rank.spec.rank);
    const std::string both = problemOf(group.exchange(peer, **mine, 4096, **theirs, 4096));
    if (!both.empty() || floats(**theirs)[1023] != static_cast<float>(10 + peer)) return "both ways: " + both;
    floats(**theirs)[1] = 0;
    floats(**mine)[1] = 5;
    const bool sends = rank.spec.rank == 0;
    const std::string one = problemOf(group.exchange(peer, **mine, sends ? 8 : 0, **theirs, sends ? 0 : 8));
    return !one.empty() || floats(**theirs)[1] != (sends ? 0.0f : 5.0f) ? "one way: " + one : "";
  };
  EXPECT_EQ(problemOnRanks(2, body), "");
}

TEST(Communicator, KnowsTheLargestOfEachRanksValues) {
  const auto body = [](Rank& rank, Communicator& group) -> std::string {
    const double own = rank.spec.rank;
    const auto largest = group.maxOverRanks({own, -own, 0.25});
    if (!largest.ok()) return largest.error().text();
    return *largest == std::vector<double>{2, 0, 0.25} ? "" : "something else";
  };
  EXPECT_EQ(problemOnRanks(3, body), "");
}

TEST(Communicator, ProvesWhichInterfaceCarriedItsBytes) {
  const auto body = [](Rank& rank, Communicator& group) -> std::string {
    constexpr uint64_t kBytes = 4 << 20;
    auto buffer = rank.device->allocate(kBytes);
    if (!buffer.ok()) return buffer.error().text();
    const int peer = 1 - rank.spec.rank;
    auto other = rank.device->allocate(kBytes);
    const std::string problem = problemOf(group.exchange(peer, **buffer, kBytes, **other, kBytes));
    const auto uses = group.transports();
    if (!problem.empty() || !uses.ok()) return problem + problemOf(uses);
    for (const TransportUse& use : *uses)
      if (use.evidence.rfind("lo: tx_bytes +", 0) == 0)
        return use.transport == "socket" && use.bytes >= kBytes ? "" : use.transport + " " + use.evidence;
    return "lo carried nothing";
  };
  EXPECT_EQ(problemOnRanks(2, body), "");
}

TEST(Communicator, TimesWhatItIsGiven) {
  const auto body = [](Rank& rank, Communicator& group) -> std::string {
    bool ran = false;
    const auto seconds = group.time([&]() -> Status {
      ran = true;
      return {};
    });
    (void)rank;
    return seconds.ok() && ran && *seconds >= 0 ? "" : "it did not";
  };
  EXPECT_EQ(problemOnRanks(1, body), "");
}

TEST(Communicator, RefusesWhatCannotBe) {
  const auto body = [](Rank& rank, Communicator& group) -> std::string {
    CollectiveSpec spec;
    const std::string empty = problemOf(group.collective(spec));
    spec.count = 1;
    spec.dtype = Dtype::kFp8E4m3;
    const std::string type = problemOf(group.collective(spec));
    spec.op = CollectiveOp::kBroadcast;
    spec.dtype = Dtype::kF32;
    spec.root = 1;
    const std::string root = problemOf(group.collective(spec));
    spec.op = CollectiveOp::kAllToAll;
    spec.inPlace = true;
    const std::string place = problemOf(group.collective(spec));
    auto buffer = rank.device->allocate(4096);
    const std::string range = problemOf(group.allReduce(**buffer, 1000, 100, Dtype::kF32, ReduceOp::kSum));
    const std::string peer = problemOf(group.exchange(0, **buffer, 1, **buffer, 1));
    const bool all = empty.find("no elements") != std::string::npos &&
                     type.find("no fp8_e4m3") != std::string::npos &&
                     root.find("no root 1 in a group of 1") != std::string::npos &&
                     place.find("no form in place") != std::string::npos &&
                     range.find("needs 4400 bytes, but the buffer has 4096") != std::string::npos &&
                     peer.find("has no peer 0") != std::string::npos;
    return all ? "" : empty + "\n" + type + "\n" + root + "\n" + place + "\n" + range + "\n" + peer;
  };
  EXPECT_EQ(problemOnRanks(1, body), "");
}

TEST(Communicator, ListsInterfacesWhereTheWantedOneIsNot) {
  const auto words = runRanks(1, [](Rank& rank) -> std::string {
    rank.spec.interface = "nosuch0";
    return problemOf(rank.join());
  });
  EXPECT_NE(words[0].find("\"nosuch0\""), std::string::npos) << words[0];
  EXPECT_NE(words[0].find("lo (127.0.0.1)"), std::string::npos) << words[0];
}

TEST(Communicator, TalksThroughTheAddressThatWasNamed) {
  const auto words = runRanks(2, [](Rank& rank) -> std::string {
    rank.spec.interface = "127.0.0.1";
    auto group = rank.join();
    if (!group.ok()) return group.error().text();
    const std::string problem = problemOf((*group)->barrier());
    return problem.empty() ? (*group)->implementation() : problem;
  });
  EXPECT_EQ(words[0], "gloo 0.5.0 tcp on lo (127.0.0.1)");
}

}  // namespace
}  // namespace muster::testing
