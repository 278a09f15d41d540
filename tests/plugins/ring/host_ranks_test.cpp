// SPDX-License-Identifier: Apache-2.0
// Rounds between real processes over Gloo: all ranks hold the same figures, and refuse a lopsided group
// alike.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plugins/ring/meter.h"
#include "plugins/ring/solver/solver.h"
#include "tests/kernels/host_gloo/ranks.h"

namespace muster::ring {
namespace {

/// Where rank `rank` is when every node has `perNode` ranks.
Place placeOf(int rank, int size, int perNode) {
  Place place;
  place.scope = "cluster";
  place.rank = rank;
  place.worldSize = size;
  place.localRank = rank % perNode;
  place.node = rank / perNode;
  place.localSize = std::min(perNode, size - place.node * perNode);
  place.nodes = (size + perNode - 1) / perNode;
  place.nodeName = fmt::format("a-host-with-a-rather-long-name-{}.example.org", place.node);
  return place;
}

/// Everything that this rank knows after the opening rounds and another look at the last pair.
Result<std::string> holdRounds(testing::Rank& self, int perNode) {
  MUSTER_TRY(const auto communicator, self.join());
  const Place place = placeOf(communicator->rank(), communicator->size(), perNode);
  MUSTER_TRY(const Members members, gatherMembers(place, *communicator));
  MeterOptions options;
  options.bytes = 64u << 10;
  options.samples = 3;
  MUSTER_TRY(const auto meter, Meter::prepare(*self.device, *communicator, members, options));
  RoundLog log(members.count(), {}, meter->lanes());
  std::vector<PairFigures> figures;
  const auto rounds = openingRounds(members.count(), {});
  for (size_t i = 0; i < rounds.size(); ++i)
    MUSTER_CHECK_OK(meter->hold({static_cast<int>(i), 0}, rounds[i], log, figures));
  const Round again = {rounds.back().back()};
  MUSTER_CHECK_OK(meter->hold({static_cast<int>(rounds.size()) - 1, 1}, again, log, figures));
  if (log.meetings().back().looks != 2) return std::string("the second look is no other round");
  std::string text = fmt::format("{} {} rails\n", fmt::join(members.names, ","), members.rails());
  for (const PairFigures& f : figures) {
    if (!(f.forward > 0 && f.backward > 0 && f.latency > 0)) return std::string("a figure is not positive");
    text += fmt::format("{}.{} {}-{} {}: {} {} {}\n", f.round, f.look, f.pair.a, f.pair.b, f.rail, f.forward,
                        f.backward, f.latency);
  }
  return text;
}

std::vector<std::string> runAll(int size, int perNode) {
  return testing::runRanks(size, [perNode](testing::Rank& self) {
    const auto told = holdRounds(self, perNode);
    return told.ok() ? *told : told.error().text();
  });
}

TEST(RingOverGloo, LetsAllRanksKnowTheSame) {
  const auto told = runAll(6, 2);
  ASSERT_EQ(told.size(), 6u);
  for (const std::string& words : told) EXPECT_EQ(words, told[0]);
  EXPECT_EQ(told[0].rfind("a-host-with-a-rather-long-name-0.example.org,", 0), 0u) << told[0];
  EXPECT_NE(told[0].find(" 2 rails\n"), std::string::npos);
  // Three nodes are three pairs, each on two rails alone and on both; one is looked at twice.
  EXPECT_EQ(std::count(told[0].begin(), told[0].end(), '\n'), 1 + 4 * 3);
}

TEST(RingOverGloo, PairsTheRanksOfOneNode) {
  const auto told = runAll(5, 5);
  for (const std::string& words : told) EXPECT_EQ(words, told[0]);
  EXPECT_EQ(told[0].rfind("rank0,rank1,rank2,rank3,rank4 1 rails\n", 0), 0u) << told[0];
  EXPECT_EQ(std::count(told[0].begin(), told[0].end(), '\n'), 1 + 6);
}

TEST(RingOverGloo, RefusesNodesWithDifferentNumbersOfRanks) {
  const auto told = testing::runRanks(5, [](testing::Rank& self) {
    const auto figures = holdRounds(self, 2);
    if (figures.ok()) return *figures;
    return (figures.error().code == ErrorCode::kPeer ? "another: " : "itself: ") + figures.error().text();
  });
  for (size_t rank = 0; rank < told.size(); ++rank) {
    EXPECT_EQ(told[rank].rfind(rank == 4 ? "itself: " : "another: ", 0), 0u) << told[rank];
    EXPECT_NE(told[rank].find("example.org has 1 ranks where others have 2"), std::string::npos)
        << told[rank];
    EXPECT_NE(told[rank].find("set `ranks` for the stage"), std::string::npos) << told[rank];
  }
}

/// A rank that says of itself that it is one of another node, or that its node has another number of ranks.
TEST(RingOverGloo, LetsNoRankTakeAPlaceOfAnothersNode) {
  using Lie = void (*)(Place&);
  for (const Lie lie :
       {+[](Place& place) { place.node = 1; }, +[](Place& place) { place.node = 9; },
        +[](Place& place) { place.localRank = 1; }, +[](Place& place) { place.localSize = 1; },
        +[](Place& place) { place.localSize = 3; },
        +[](Place& place) {
          place.node = 1;
          place.localRank = 2;
          place.localSize = 3;
        }}) {
    const auto told = testing::runRanks(6, [lie](testing::Rank& self) {
      const auto communicator = self.join();
      if (!communicator.ok()) return communicator.error().text();
      Place place = placeOf((*communicator)->rank(), (*communicator)->size(), 2);
      if (place.rank == 4) lie(place);
      const auto members = gatherMembers(place, **communicator);
      return members.ok() ? "accepted" : members.error().text();
    });
    for (const std::string& words : told)
      EXPECT_NE(words.find("a wrong place came from a rank that cannot be told"), std::string::npos) << words;
  }
}

/// What is no plain name would be read as more than one; what another node has would have it blamed.
TEST(RingOverGloo, CallsNodesByNumberWhoseNameIsNotTheirsAlone) {
  for (const std::string name :
       {"n1, x kind=node-rail", "a did not arrive: node 1 (n1)", "n0.example.org", "", "node-rank-1"})
    for (const std::string& words : testing::runRanks(3, [&](testing::Rank& self) {
           const auto communicator = self.join();
           if (!communicator.ok()) return communicator.error().text();
           Place place = placeOf((*communicator)->rank(), 3, 1);
           place.nodeName = place.rank == 2 ? name : fmt::format("n{}", place.rank);
           const auto members = gatherMembers(place, **communicator);
           return members.ok() ? fmt::format("{}", fmt::join(members->names, ",")) : members.error().text();
         }))
      EXPECT_EQ(words, name == "n0.example.org" ? "node-rank-0,n1,node-rank-2" : "n0,n1,node-rank-2");
}

}  // namespace
}  // namespace muster::ring
