// SPDX-License-Identifier: Apache-2.0
// Nodes enter a stage together and agree on how it went.
#include "runner/cluster/cluster_stage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runner/core/text.h"
#include "runner/rendezvous/wire/store_key.h"
#include "tests/runner/cluster/cluster_nodes.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

/// What a stage leaves in node 0's store does not grow with the rounds, but for a few words for each.
TEST(ClusterStage, LeavesNoKeysOfItsRanksAndParts) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<bool>([](ClusterLink& link) {
    for (int stage = 0; stage < 3; ++stage) {
      ClusterStage walk(link, fmt::format("walk{}", stage), 20);
      EXPECT_EQ(walk.enter(2).kind, ClusterEntry::Kind::kGo);
      walk.beginRound(1, 0);
      StoreClient rank(walk.connectStore().value(), {});
      for (int key = 0; key < 10; ++key)
        EXPECT_TRUE(rank.set(fmt::format("{}/{}", link.options().nodeRank, key), "x").ok());
      RoundSight sight;
      sight.begun = sight.ended = {0};
      EXPECT_EQ(walk.endRound(sight, 1, 20).culprit, "");
      EXPECT_EQ(walk.leave(""), "");
    }
    return true;
  });
  StoreClientOptions client;
  client.address = nodes.first().storeAddress();
  client.key = storeKey(nodes.first().options().token, "");
  StoreClient all(client);
  const auto isThere = [&](const std::string& key) { return all.get(key, 0).ok(); };
  EXPECT_TRUE(isThere("muster/node-0/q/walk2/leave/decision"));
  EXPECT_TRUE(isThere("muster/q/walk2/leave/read"));
  for (int stage = 0; stage < 3; ++stage)
    for (int node = 0; node < 3; ++node) {
      for (int key = 0; key < 10; ++key)
        EXPECT_FALSE(isThere(fmt::format("ranks/walk{}/1/0/{}/{}", stage, node, key)));
      for (const char* question : {"enter", "1/0/end", "leave"}) {
        EXPECT_FALSE(isThere(fmt::format("muster/q/walk{}/{}/answer/{}", stage, question, node)));
        EXPECT_FALSE(isThere(fmt::format("muster/node-0/q/walk{}/{}/part/{}", stage, question, node)));
      }
    }
}

TEST(ClusterStage, NumbersRanksOverNodesOfDifferentSizes) {
  Nodes nodes(3);
  nodes.startAll();
  const auto entries = nodes.onEach<ClusterEntry>(
      [](ClusterLink& link) { return ClusterStage(link, "walk", 10).enter(link.options().nodeRank + 2); });
  for (const auto& [rank, first] : {std::pair{0, 0}, {1, 2}, {2, 5}}) {
    const ClusterEntry& entry = entries[static_cast<size_t>(rank)];
    EXPECT_EQ(entry.kind, ClusterEntry::Kind::kGo) << entry.why;
    EXPECT_EQ(entry.firstRank, first);
    EXPECT_EQ(entry.worldSize, 9);
  }
}

/// By the names that their records have, whatever the launcher calls them; of two with one name neither is
/// known.
TEST(ClusterStage, TellsEachNodeWhoIsAroundIt) {
  constexpr int kCount = 11;
  Nodes nodes(kCount);
  for (int rank = 0; rank < kCount; ++rank) {
    ClusterOptions options = nodes.options(rank);
    options.nodes.assign(kCount, "pod");
    if (rank == 8) options.host = "n7";
    nodes.start(options);
  }
  const auto entries =
      nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "walk", 10).enter(2); });
  using Names = std::map<int, std::string>;
  const auto around = [&](size_t rank) {
    Names names;
    for (const NodeAround& one : entries[rank].around) {
      names[one.nodeRank] = one.node;
      EXPECT_EQ(one.firstRank, 2 * one.nodeRank);
      EXPECT_EQ(one.ranks, 2);
    }
    return names;
  };
  EXPECT_EQ(around(0),
            (Names{{0, "n0"}, {1, "n1"}, {2, "n2"}, {3, "n3"}, {4, "n4"}, {9, "n9"}, {10, "n10"}}));
  EXPECT_EQ(around(5), (Names{{1, "n1"}, {2, "n2"}, {3, "n3"}, {4, "n4"}, {5, "n5"}, {6, "n6"}, {9, "n9"}}));
  EXPECT_EQ(around(10),
            (Names{{0, "n0"}, {1, "n1"}, {2, "n2"}, {3, "n3"}, {6, "n6"}, {9, "n9"}, {10, "n10"}}));
}

TEST(ClusterStage, NamesMissingNodesAndWaitsForThemOnlyOnce) {
  Nodes nodes(4);
  for (const int rank : {0, 1}) nodes.start(nodes.options(rank));
  for (const char* name : {"walk", "again"}) {
    // The second time would take an hour, were the missing ones waited for again.
    const double arrival = name == std::string("walk") ? 0.5 : 3600;
    const auto entries = nodes.onEach<ClusterEntry>(
        [&](ClusterLink& link) { return ClusterStage(link, name, arrival).enter(1); });
    for (const ClusterEntry& entry : entries) {
      EXPECT_EQ(entry.kind, ClusterEntry::Kind::kError);
      EXPECT_EQ(
          entry.why,
          "2 of 4 nodes did not arrive: node 2, node 3; look at their runs, or start them; if the run has "
          "fewer than 4 nodes, correct --nnodes");
    }
  }
}

TEST(ClusterStage, RunsWhatNobodyFinishedAfterANodeCameBack) {
  Nodes nodes(2);
  nodes.startAll();
  nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "walk", 10).enter(1); });
  nodes.lose(1);
  nodes.start(nodes.options(1));
  const auto again = nodes.onEach<ClusterEntry>([](ClusterLink& link) {
    if (link.options().nodeRank == 0) return ClusterEntry{};
    return ClusterStage(link, "walk", 10).enter(1);
  });
  EXPECT_EQ(again[1].kind, ClusterEntry::Kind::kError);
  EXPECT_THAT(again[1].why, HasSubstr("node 1 (n1) was started again in the middle of this stage"));
  const auto entries =
      nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "next", 10).enter(1); });
  for (const ClusterEntry& entry : entries) EXPECT_EQ(entry.kind, ClusterEntry::Kind::kGo) << entry.why;
}

TEST(ClusterStage, SkipsForAllWhatOneNodeDoesNotTakePartIn) {
  for (const int who : {0, 2}) {
    Nodes nodes(3);
    nodes.startAll();
    const auto entries = nodes.onEach<ClusterEntry>([&](ClusterLink& link) {
      ClusterStage stage(link, "walk", 10);
      if (link.options().nodeRank != who) return stage.enter(1);
      stage.decline("stage env has failed");
      return ClusterEntry{ClusterEntry::Kind::kSkip,
                          fmt::format("node {0} (n{0}) does not take part: stage env has failed", who), 0, 1};
    });
    for (const ClusterEntry& entry : entries) {
      EXPECT_EQ(entry.kind, ClusterEntry::Kind::kSkip);
      EXPECT_EQ(entry.why, fmt::format("node {0} (n{0}) does not take part: stage env has failed", who));
    }
  }
}

/// Who does not take part has finished the stage at once. The others learn why, whether they come before that
/// or after, and where node 0 has left by then.
TEST(ClusterStage, SkipsForAllWhatOneNodeHasSkippedBefore) {
  for (const auto& [who, leaves] : {std::pair{0, false}, {0, true}, {2, false}}) {
    Nodes nodes(3);
    nodes.startAll();
    const std::string why = fmt::format("node {0} (n{0}) does not take part: stage env has failed", who);
    nodes.onEach<bool>([&](ClusterLink& link) {
      if (link.options().nodeRank == who) {
        ClusterStage(link, "walk", 10).decline("stage env has failed");
        link.members().noteFinished("walk", "skip");
      }
      return true;
    });
    nodes.onEach<bool>([&](ClusterLink& link) {
      const std::string skipped = fmt::format("node {0} (n{0}) (skip)", who);
      for (int turn = 0; turn < 200; ++turn) {
        if (link.members().finishedWhere("walk").find(skipped) != std::string::npos) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      ADD_FAILURE() << "node " << link.options().nodeRank << " never knew";
      return false;
    });
    if (leaves) nodes.lose(0);
    const auto entries = nodes.onEach<ClusterEntry>([&](ClusterLink& link) {
      if (link.options().nodeRank == who) return ClusterEntry{ClusterEntry::Kind::kSkip, why, 0, 1};
      return ClusterStage(link, "walk", 10).enter(1);
    });
    EXPECT_EQ(entries.size(), leaves ? 2u : 3u);
    for (const ClusterEntry& entry : entries) {
      EXPECT_EQ(entry.kind, ClusterEntry::Kind::kSkip) << entry.why;
      EXPECT_EQ(entry.why, why);
    }
  }
}

TEST(ClusterStage, SkipsForAllWhatANodeHadDeclinedBeforeItWasStartedAgain) {
  for (const int who : {0, 2}) {
    Nodes nodes(3);
    for (int rank = 0; rank < 3; ++rank) {
      ClusterOptions options = nodes.options(rank);
      if (rank == who) {
        options.finished["walk"] = "skip";
        options.declined["walk"] = "stage env has failed";
      }
      nodes.start(options);
    }
    const auto entries = nodes.onEach<ClusterEntry>([&](ClusterLink& link) {
      EXPECT_TRUE(link.members().join(5).ok());
      link.members().rollCall(10);
      if (link.options().nodeRank == who) return ClusterEntry{ClusterEntry::Kind::kSkip, "", 0, 1};
      return ClusterStage(link, "walk", 10).enter(1);
    });
    for (const ClusterEntry& entry : entries) EXPECT_EQ(entry.kind, ClusterEntry::Kind::kSkip) << entry.why;
  }
}

/// Starts three nodes; `who` is interrupted once `cancelled` is true.
void startAll(Nodes& nodes, int who, std::atomic<bool>& cancelled) {
  for (int rank = 0; rank < 3; ++rank) {
    ClusterOptions options = nodes.options(rank);
    if (rank == who) options.cancelled = &cancelled;
    nodes.start(options);
  }
}

/// Also of a node that had come to the stage and waits there for others.
TEST(ClusterStage, IsOpenForAllWhereOneWasInterrupted) {
  for (const int who : {0, 1}) {
    Nodes nodes(3);
    std::atomic<bool> cancelled = false;
    startAll(nodes, who, cancelled);
    const auto entries = nodes.onEach<std::pair<ClusterEntry, StageEnding>>([&](ClusterLink& link) {
      EXPECT_TRUE(link.members().join(5).ok());
      if (link.options().nodeRank == 2) {  // the last one
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        cancelled = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(who == 0 ? 4000 : 1000));
      }
      ClusterStage stage(link, "walk", 20);
      ClusterEntry entry = stage.enter(1);
      return std::pair(std::move(entry), stage.ending());
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == who) continue;
      const auto& [entry, ending] = entries[static_cast<size_t>(rank)];
      EXPECT_NE(entry.kind, ClusterEntry::Kind::kGo);
      EXPECT_EQ(ending, StageEnding::kOpen) << who << " " << rank << ": " << entry.why;
      EXPECT_THAT(entry.why, HasSubstr(fmt::format("node {0} (n{0})", who)));
    }
  }
}

/// Who is interrupted learns as all others how a round ended that it had begun.
TEST(ClusterStage, EndsARoundOpenForAllUnlessMoreIsKnownThanAnInterruption) {
  for (const bool hasFailed : {false, true})
    for (const int who : {0, 1}) {
      Nodes nodes(3);
      std::atomic<bool> cancelled = false;
      startAll(nodes, who, cancelled);
      const auto endings = nodes.onEach<StageEnding>([&](ClusterLink& link) {
        const int self = link.options().nodeRank;
        EXPECT_TRUE(link.members().join(5).ok());
        ClusterStage stage(link, "walk", 20);
        EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
        stage.beginRound(1, 0);
        if (hasFailed && self == 2) {
          RankStatus dead;
          dead.rank = 2;
          dead.failure = "was killed by SIGKILL (Killed)";
          dead.signal = SIGKILL;
          stage.rounds().report({dead});
        }
        // The culprit is published by then, if one is.
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        if (self == who) cancelled = true;
        RoundSight sight;
        sight.begun = {0};
        sight.clean = false;
        sight.interrupted = self == who;
        const RoundVerdict verdict = stage.endRound(sight, 1, 20);
        EXPECT_EQ(stage.leave(verdict.culprit), verdict.culprit);
        EXPECT_THAT(verdict.culprit, HasSubstr(hasFailed ? "SIGKILL" : kInterrupted));
        return stage.ending();
      });
      for (const StageEnding ending : endings)
        EXPECT_EQ(ending, hasFailed ? StageEnding::kFinished : StageEnding::kOpen) << who;
    }
}

/// Who is interrupted waits for nobody that needs long to leave, and blames nobody.
TEST(ClusterStage, IsFinishedForAllWhereOneWasInterruptedOnceItsRanksHadEnded) {
  for (const int who : {0, 2}) {
    Nodes nodes(3);
    std::atomic<bool> cancelled = false;
    startAll(nodes, who, cancelled);
    const auto endings = nodes.onEach<StageEnding>([&](ClusterLink& link) {
      const int self = link.options().nodeRank;
      EXPECT_TRUE(link.members().join(5).ok());
      ClusterStage stage(link, "walk", 20);
      EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
      stage.beginRound(1, 0);
      RoundSight sight;
      sight.begun = sight.ended = {0};
      EXPECT_EQ(stage.endRound(sight, 1, 20).culprit, "");
      if (self == who) cancelled = true;
      if (self == 1) std::this_thread::sleep_for(std::chrono::seconds(8));
      EXPECT_EQ(stage.leave(""), "");
      return stage.ending();
    });
    for (const StageEnding ending : endings) EXPECT_EQ(ending, StageEnding::kFinished) << who;
  }
}

TEST(ClusterStage, TriesAgainWhatAnInterruptedNodeHasToo) {
  for (const int who : {0, 2}) {
    Nodes nodes(3);
    std::atomic<bool> cancelled = false;
    startAll(nodes, who, cancelled);
    const auto agreed = nodes.onEach<std::set<std::string>>([&](ClusterLink& link) {
      EXPECT_TRUE(link.members().join(5).ok());
      ClusterStage stage(link, "walk", 20);
      EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
      const bool isIt = link.options().nodeRank == who;
      if (isIt) cancelled = true;
      return stage.retries(1, isIt ? std::set<std::string>{"its"} : std::set<std::string>{}, "").value();
    });
    for (const auto& cases : agreed) EXPECT_EQ(cases, std::set<std::string>{"its"}) << who;
  }
}

/// While nobody is known whose failure may have ended the ranks of this node.
TEST(ClusterStage, SaysThatItWaitsForOthersUnlessSomethingFailed) {
  for (const bool hasFailed : {false, true}) {
    Nodes nodes(3);
    nodes.startAll();
    const auto calls = nodes.onEach<int>([&](ClusterLink& link) {
      const int self = link.options().nodeRank;
      EXPECT_TRUE(link.members().join(5).ok());
      ClusterStage stage(link, "walk", 20);
      EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
      stage.beginRound(1, 0);
      RoundSight sight;
      sight.begun = sight.ended = {0};
      if (self == 2) {
        if (hasFailed) {
          RankStatus dead;
          dead.rank = 2;
          dead.failure = "was killed by SIGKILL (Killed)";
          dead.signal = SIGKILL;
          stage.rounds().report({dead});
        }
        std::this_thread::sleep_for(std::chrono::seconds(6));
      }
      int count = 0;
      (void)stage.endRound(sight, 1, 20, [&] { ++count; });
      return count;
    });
    for (const int self : {0, 1}) EXPECT_EQ(calls[static_cast<size_t>(self)] > 0, !hasFailed) << self;
  }
}

/// Its new start is waited for, and takes part.
TEST(ClusterStage, IsNotDeclinedByAnEarlierStart) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<bool>([](ClusterLink& link) {
    if (link.options().nodeRank == 2) ClusterStage(link, "walk", 10).decline("its run was interrupted");
    return true;
  });
  nodes.lose(2);
  nodes.start(nodes.options(2));
  const auto entries = nodes.onEach<ClusterEntry>([](ClusterLink& link) {
    EXPECT_TRUE(link.members().join(5).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(link.options().nodeRank == 2 ? 1500 : 700));
    return ClusterStage(link, "walk", 10).enter(1);
  });
  for (const ClusterEntry& entry : entries) EXPECT_EQ(entry.kind, ClusterEntry::Kind::kGo) << entry.why;
}

/// It stays until the others have heard of it, also of one that starts later.
TEST(ClusterStage, IsNotLeftByANodeZeroThatDeclinedBeforeTheOthersKnow) {
  Nodes nodes(3);
  nodes.start(nodes.options(0));
  ClusterStage(nodes.first(), "walk", 10).decline("stage env has failed");
  nodes.first().members().noteFinished("walk", "skip");
  std::thread leaving([&] { nodes.first().agreement().awaitReaders(); });
  for (const int rank : {1, 2}) nodes.start(nodes.options(rank));
  const auto entries = nodes.onEach<ClusterEntry>([](ClusterLink& link) {
    if (link.options().nodeRank == 0) return ClusterEntry{ClusterEntry::Kind::kSkip, "", 0, 1};
    EXPECT_TRUE(link.members().join(5).ok());
    return ClusterStage(link, "walk", 10).enter(1);
  });
  leaving.join();
  for (const ClusterEntry& entry : entries) EXPECT_EQ(entry.kind, ClusterEntry::Kind::kSkip) << entry.why;
}

/// Whatever node 0 says: a program of that size would be started for each rank.
TEST(ClusterStage, IsNotEnteredInAnImpossiblePlace) {
  for (const auto& [world, first] : {std::pair{INT_MAX, 0}, {2, 2}, {0, 0}, {3, 1 << 30}}) {
    Nodes nodes(2);
    nodes.startAll();
    const auto entries = nodes.onEach<ClusterEntry>([&](ClusterLink& link) {
      ClusterStage stage(link, "walk", 5);
      if (link.options().nodeRank == 1) return stage.enter(1);
      const auto status = [&] {
        const auto hostile = hostileRunner(link);
        return statusFromText(hostile->get("status/1", 5).value()).value();
      }();
      const Json own = {{"first", first}, {"start", status.nonce}};
      link.agreement().decline("walk/enter", {{"world", world}, {"leader", "x"}, {"parts", {own, own}}});
      return ClusterEntry{};
    });
    EXPECT_EQ(entries[1].kind, ClusterEntry::Kind::kError);
    EXPECT_THAT(entries[1].why, HasSubstr("which cannot be"));
  }
}

TEST(ClusterStage, ShortensWhatOneNodeSaysToAll) {
  const std::string endless(900'000, 'A');
  Nodes nodes(3);
  nodes.startAll();
  const auto skipped = nodes.onEach<std::string>([&](ClusterLink& link) {
    ClusterStage stage(link, "walk", 10);
    if (link.options().nodeRank != 2) return stage.enter(1).why;
    stage.decline(endless);
    return std::string("AAA...");
  });
  const auto left = nodes.onEach<std::string>([&](ClusterLink& link) {
    const bool reports = link.options().nodeRank == 2;
    const std::string found = ClusterStage(link, "burn", 10).leave(reports ? endless : "");
    return reports ? "AAA..." : found;
  });
  for (const auto& texts : {skipped, left})
    for (const std::string& text : texts) {
      EXPECT_THAT(text, ::testing::EndsWith("AAA..."));
      EXPECT_LE(text.size(), kLongestReason);
    }
}

TEST(ClusterStage, TriesAgainWhatAnyNodeAsksFor) {
  Nodes nodes(3);
  nodes.startAll();
  const auto all = nodes.onEach<Result<std::set<std::string>>>([](ClusterLink& link) {
    std::set<std::string> mine;
    if (link.options().nodeRank > 0) mine.insert(fmt::format("case{}", link.options().nodeRank));
    return ClusterStage(link, "walk", 10).retries(1, mine, "");
  });
  for (const auto& cases : all) {
    ASSERT_TRUE(cases.ok()) << cases.error().text();
    EXPECT_EQ(*cases, (std::set<std::string>{"case1", "case2"}));
  }
}

TEST(ClusterStage, TriesNothingAgainOnceAComponentIsFaultyOrANodeLost) {
  for (const bool lost : {false, true}) {
    Nodes nodes(3);
    nodes.startAll();
    if (lost) nodes.lose(2);
    const auto all = nodes.onEach<Result<std::set<std::string>>>([&](ClusterLink& link) {
      const bool names = !lost && link.options().nodeRank == 1;
      return ClusterStage(link, "walk", 10).retries(1, {"case1"}, names ? "rank 1 (node 1 (n1)) died" : "");
    });
    for (const auto& cases : all) {
      ASSERT_TRUE(cases.ok()) << cases.error().text();
      EXPECT_TRUE(cases->empty());
    }
  }
}

/// A node that has seen all `runs` of a round end well.
RoundSight completeSight(size_t runs) {
  RoundSight sight;
  for (size_t run = 0; run < runs; ++run) {
    sight.begun.insert(run);
    sight.ended.insert(run);
  }
  return sight;
}

TEST(ClusterStage, FailsForAllOthersWhenANodeIsLostWhoseShareTheyDoNotWaitFor) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "burn", 10).enter(1); });
  nodes.lose(1);
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    ClusterStage stage(link, "burn", 10);
    stage.beginRound(1, 0);
    // All of the others' ranks end well before anybody misses the lost node.
    return stage.endRound(completeSight(2), 2, 10);
  });
  for (const RoundVerdict& verdict : verdicts) {
    EXPECT_THAT(verdict.culprit, HasSubstr("node 1 (n1) was lost"));
    EXPECT_EQ(verdict.failed, (std::set<size_t>{0, 1}));
    EXPECT_FALSE(verdict.again);
  }
}

/// What node 0 decides is written by whoever has taken it over.
TEST(ClusterStage, TakesNoRunFromNodeZeroThatItDoesNotHave) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "burn", 10).enter(1); });
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    ClusterStage stage(link, "burn", 10);
    stage.beginRound(1, 0);
    if (link.options().nodeRank > 0) return stage.endRound(completeSight(2), 2, 10);
    const auto told = link.agreement().ask("burn/1/0/end", Json::object(), 10, [](const auto&) {
      return Json{{"culprit", "a lie"}, {"failed", {1, 2, 3, 9999999999}}, {"ranks", {9999999999}}};
    });
    EXPECT_TRUE(told.ok());
    return RoundVerdict{"", {}, {1}, false};
  });
  for (const RoundVerdict& verdict : verdicts) EXPECT_EQ(verdict.failed, std::set<size_t>{1});
}

TEST(ClusterStage, IsLeftByAllOrFailsForAll) {
  Nodes nodes(3);
  nodes.startAll();
  const auto leave = [](const std::string& stage, int who, const std::string& faulty) {
    return [=](ClusterLink& link) {
      return ClusterStage(link, stage, 10).leave(link.options().nodeRank == who ? faulty : "");
    };
  };
  for (const std::string& found : nodes.onEach<std::string>(leave("first", 0, ""))) EXPECT_EQ(found, "");
  // What one node found is passed on to all, as its words.
  const auto told = nodes.onEach<std::string>(leave("second", 2, "node 1 (n1) lost node 0 (n0)"));
  for (const size_t other : {0, 1})
    EXPECT_EQ(told[other], "node 2 (n2) reports: node 1 (n1) lost node 0 (n0)");
  EXPECT_EQ(told[2], "node 1 (n1) lost node 0 (n0)");
  nodes.lose(2);
  for (const std::string& found : nodes.onEach<std::string>(leave("third", 0, "")))
    EXPECT_THAT(found, HasSubstr("node 2 (n2) was lost"));
  nodes.lose(0);
  for (const std::string& found : nodes.onEach<std::string>(leave("fourth", 0, "")))
    EXPECT_THAT(found, HasSubstr("node 1 (n1) lost node 0 (n0)"));
}

/// Rounds as they may happen: each node is lost, or says what it saw of each run and of its ranks' ends. A
/// round passes exactly when nobody is lost and everybody saw everything end well; else runs fail, and what
/// is not started again and did not fail was ended by every member.
TEST(RoundResult, PassesOnlyWhenEveryMemberReportedEveryRunAndEndedWithoutError) {
  std::mt19937 random(20261122);
  const auto chance = [&](int percent) { return static_cast<int>(random() % 100) < percent; };
  int passed = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const size_t runs = 1 + random() % 4;
    const size_t count = 2 + random() % 4;
    const int trouble = chance(50) ? 0 : 25;  // percent, of each single thing
    ClusterAgreement::Answers answers(count);
    bool good = true, complete = true;
    std::set<size_t> endedByAll = completeSight(runs).ended;
    for (size_t node = 0; node < count; ++node) {
      if (node > 0 && chance(trouble)) {
        good = complete = false;
        continue;
      }
      const RoundSight all = completeSight(runs);
      Json begun = all.begun, ended = all.ended;
      if (chance(trouble)) {
        const size_t open = random() % runs;
        begun = Json::array();
        ended = Json::array();
        for (size_t run = 0; run < open; ++run) ended.push_back(run);
        for (size_t run = 0; run <= open; ++run) begun.push_back(run);
        for (size_t run = open; run < runs; ++run) endedByAll.erase(run);
        good = false;
      }
      const bool late = chance(trouble / 5), clean = !chance(trouble / 5), interrupted = chance(trouble / 5);
      const std::string lost = chance(trouble / 5) ? "node 1 was lost" : "";
      good = good && !late && clean && !interrupted && lost.empty();
      answers[node] = Json{{"late", late},   {"interrupted", interrupted},
                           {"lost", lost},   {"clean", clean},
                           {"begun", begun}, {"ended", ended}};
    }
    const RoundResult result = roundResult(answers, runs);
    ASSERT_EQ(result.passed, good) << Json(trial);
    ASSERT_EQ(result.failed.empty(), good) << trial;
    ASSERT_FALSE(result.again && (good || !complete)) << trial;
    for (size_t run = 0; run < runs; ++run) {
      const bool counts = result.failed.count(run) == 0 && !result.again;
      ASSERT_TRUE(!counts || (complete && endedByAll.count(run) > 0)) << trial;
    }
    passed += good ? 1 : 0;
  }
  EXPECT_GT(passed, 500);
}

}  // namespace
}  // namespace muster::testing
