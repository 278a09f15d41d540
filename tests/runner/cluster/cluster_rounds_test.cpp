// SPDX-License-Identifier: Apache-2.0
// Whom a round is lost to, and who is not lost.
#include "runner/cluster/cluster_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "runner/core/text.h"
#include "tests/runner/cluster/cluster_nodes.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

/// A clock that others set forward: what a process that is stopped for so long sees of it.
class SetClock : public Clock {
 public:
  [[nodiscard]] double now() const override { return systemClock().now() + ahead.load(); }
  [[nodiscard]] double wallUnix() const override { return systemClock().wallUnix(); }
  std::atomic<double> ahead{0};
};

/// Nobody is lost for the time in which who judges them was stopped.
TEST(ClusterRounds, LosesNobodyWhileItIsStoppedItself) {
  for (const int stopped : {0, 1}) {
    SetClock clock;  // outlives the nodes
    Nodes nodes(2);
    for (int rank = 0; rank < 2; ++rank) {
      ClusterOptions options = nodes.options(rank);
      options.lostAfter = 1000;  // however slow this machine is
      if (rank == stopped) options.clock = &clock;
      nodes.start(options);
    }
    const auto said = nodes.onEach<std::string>([&](ClusterLink& link) {
      EXPECT_TRUE(link.members().join(20).ok());
      const int rank = link.options().nodeRank;
      ClusterStage stage(link, "walk", 100);
      const ClusterEntry entry = stage.enter(1);
      EXPECT_EQ(entry.kind, ClusterEntry::Kind::kGo) << entry.why;
      stage.beginRound(1, 0);
      std::string lost;
      if (rank == stopped) {
        clock.ahead = 5000;
        // Before and after the next looks at the others.
        for (int turn = 0; turn < 20; ++turn) {
          lost += link.rounds().lost().text;
          if (rank == 0) lost += link.rounds().nodes()[1].silent ? "silent" : "";
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      }
      RoundSight sight;
      sight.begun = sight.ended = {0};
      sight.clean = true;
      return lost + stage.endRound(sight, 1, 100).culprit;
    });
    for (const std::string& text : said) EXPECT_EQ(text, "");
  }
}

/// The same stop, and the other node has given this one up and says so.
TEST(ClusterRounds, NamesItselfWhereItWasStoppedUntilTheOtherNodeGaveItUp) {
  for (const bool later : {false, true}) {
    SetClock clock;  // outlives the nodes
    Nodes nodes(2);
    for (int rank = 0; rank < 2; ++rank) {
      ClusterOptions options = nodes.options(rank);
      options.lostAfter = 1000;
      if (rank == 0) options.clock = &clock;
      nodes.start(options);
    }
    const auto said = nodes.onEach<std::string>([&](ClusterLink& link) {
      EXPECT_TRUE(link.members().join(20).ok());
      ClusterStage stage(link, "walk", 100);
      EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
      stage.beginRound(1, 0);
      RoundSight sight = cutShortIn(0);
      if (link.options().nodeRank == 0) {
        clock.ahead = 5000;
        // It is heard of for long after that: it gave up this round, and not its run.
        for (int second = 0; later && second < 2000; ++second) {
          (void)link.rounds().nodes();
          clock.ahead = clock.ahead + 0.9;
        }
        while (link.rounds().nodes()[1].silent) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      } else {
        sight.lost = "node 1 (n1) lost node 0 (n0)";
      }
      return stage.endRound(sight, 1, 100).culprit;
    });
    for (const std::string& text : said)
      EXPECT_THAT(text, HasSubstr("node 0 (n0) did not run for 5000 s: it was stopped"));
  }
}

RankStatus statusOf(int rank, const std::string& failure = "", int signal = 0) {
  RankStatus status;
  status.rank = rank;
  status.state = 'S';
  status.failure = failure;
  status.signal = signal;
  status.ended = signal != 0;
  return status;
}

/// This node's part of a stage until its round is lost: `status` is that of its rank, by turn.
template <typename Status>
void reportUntilLost(ClusterLink& link, ClusterStage& stage, const Status& status) {
  EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
  stage.beginRound(1, 0);
  for (int turn = 0; turn < 500 && link.rounds().lost().text.empty(); ++turn) {
    link.rounds().report({status(turn)});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(ClusterRounds, TellsAllNodesOfADeadRankWhileTheRoundRunsAndContinuesWithUnstartedCases) {
  Nodes nodes(3);
  nodes.startAll();
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    const int rank = link.options().nodeRank;
    ClusterStage stage(link, "walk", 10);
    reportUntilLost(link, stage, [&](int turn) {
      return rank == 1 && turn > 5 ? statusOf(1, "was killed by SIGKILL (Killed)", SIGKILL) : statusOf(rank);
    });
    return stage.endRound(cutShortIn(1), 3, 10);
  });
  for (const RoundVerdict& verdict : verdicts) {
    EXPECT_EQ(verdict.culprit, "rank 1 (node 1 (n1)) was killed by SIGKILL (Killed)");
    EXPECT_EQ(verdict.ranks, std::set<size_t>{1});
    EXPECT_EQ(verdict.failed, std::set<size_t>{1});
    EXPECT_TRUE(verdict.again);
  }
}

/// Rounds in which all ranks ended all runs, but that `missing`.
RoundSight endedAllBut(size_t runs, const std::set<size_t>& missing) {
  RoundSight sight;
  for (size_t run = 0; run < runs; ++run) {
    sight.begun.insert(run);
    if (missing.count(run) == 0) sight.ended.insert(run);
  }
  return sight;
}

/// Node 2 has no ranks, and those of the others do not end the second of their two cases.
TEST(ClusterRounds, LetANodeWithoutRanksGoWhereNothingIsLeftToStart) {
  Nodes nodes(3);
  nodes.startAll();
  const auto said = nodes.onEach<std::string>([](ClusterLink& link) {
    ClusterStage stage(link, "walk", 10);
    const bool idle = link.options().nodeRank == 2;
    const ClusterEntry entry = stage.enter(idle ? 0 : 1);
    EXPECT_EQ(entry.kind, ClusterEntry::Kind::kGo) << entry.why;
    EXPECT_EQ(entry.worldSize, 2);
    if (idle) return stage.attend({1, 1, 2, 600});
    stage.beginRound(1, 0);
    const RoundVerdict verdict = stage.endRound(endedAllBut(2, {1}), 2, 600);
    EXPECT_EQ(verdict.failed, std::set<size_t>{1});
    EXPECT_FALSE(verdict.again);
    return stage.leave(verdict.culprit);
  });
  for (const std::string& culprit : said)
    EXPECT_THAT(culprit, HasSubstr("the group's ranks did not all end"));
}

/// Two of three cases are tried again, twice each: the first time, then one of them alone.
TEST(ClusterRounds, KeepANodeWithoutRanksInStepThroughAttempts) {
  Nodes nodes(3);
  nodes.startAll();
  const auto said = nodes.onEach<std::string>([](ClusterLink& link) {
    ClusterStage stage(link, "walk", 10);
    const bool idle = link.options().nodeRank == 2;
    EXPECT_EQ(stage.enter(idle ? 0 : 1).kind, ClusterEntry::Kind::kGo);
    if (idle) return stage.attend({3, 2, 3, 600});
    std::set<std::string> cases = {"a", "b", "c"};
    for (int attempt = 1; attempt <= 3; ++attempt) {
      stage.beginRound(attempt, 0);
      const size_t runs = 2 * cases.size();
      EXPECT_EQ(stage.endRound(endedAllBut(runs, {}), runs, 600).culprit, "");
      cases.erase(cases.begin());
      if (attempt == 3) break;
      const auto agreed =
          stage.retries(attempt, link.options().nodeRank == 1 ? cases : std::set<std::string>(), "");
      EXPECT_EQ(agreed.ok() ? *agreed : std::set<std::string>(), cases);
    }
    return stage.leave("");
  });
  for (const std::string& culprit : said) EXPECT_EQ(culprit, "");
}

/// Node 2 lies by its own status.
TEST(ClusterRounds, BelievesANodeAboutItsOwnRanksAlone) {
  for (const int rank : {1, 2}) {
    Nodes nodes(3);
    nodes.startAll();
    nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "walk", 10).enter(1); });
    const auto hostile = hostileRunner(nodes.first());
    NodeStatus status = statusFromText(hostile->get("status/2", 5).value()).value();
    status.host = "n1";
    status.round = "walk/1/0";
    status.failures.resize(1);
    status.failures[0].rank = rank;
    status.failures[0].device = "cpu0";
    status.failures[0].failure = "was killed by SIGSEGV (Segmentation fault): rank 1 (cpu0 of node 1 (n1))";
    status.failures[0].signal = SIGSEGV;
    status.failures[0].order = 1;
    const auto verdicts = nodes.onEach<RoundVerdict>([&](ClusterLink& link) {
      ClusterStage stage(link, "walk", 10);
      stage.beginRound(1, 0);
      if (link.options().nodeRank == 0) {
        EXPECT_TRUE(hostile->set("status/2", statusText(status)).ok());
      }
      for (int turn = 0; turn < 100 && link.rounds().lost().text.empty(); ++turn)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      RoundSight sight;
      sight.begun = sight.ended = {0};
      sight.clean = link.rounds().lost().text.empty();
      return stage.endRound(sight, 1, 10);
    });
    for (const RoundVerdict& verdict : verdicts) {
      if (rank == 1) {
        EXPECT_EQ(verdict.culprit, "");
      } else {
        EXPECT_THAT(verdict.culprit, ::testing::StartsWith("rank 2 (cpu0 of node 2) was killed by SIGSEGV"));
        EXPECT_EQ(verdict.ranks, std::set<size_t>{2});
      }
    }
  }
}

/// The round's one run failed on all nodes, for what is `said`, and no rank is named.
void expectNothingCounts(const std::vector<RoundVerdict>& verdicts, const std::string& said) {
  for (const RoundVerdict& verdict : verdicts) {
    EXPECT_THAT(verdict.culprit, HasSubstr(said));
    EXPECT_TRUE(verdict.ranks.empty());
    EXPECT_EQ(verdict.failed, std::set<size_t>{0});
    EXPECT_FALSE(verdict.again);
  }
}

/// The requests of others are refused then, too: whoever fails first over that did nothing wrong.
TEST(ClusterRounds, NamesTheFullStoreWhereARankFillsIt) {
  Nodes nodes(3);
  nodes.startAll();
  const auto verdicts = nodes.onEach<RoundVerdict>([&](ClusterLink& link) {
    const int rank = link.options().nodeRank;
    ClusterStage stage(link, "walk", 60);
    EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
    stage.beginRound(1, 0);
    StoreClient store(stage.connectStore().value(), {});
    const std::string large(StoreClient::kMaxValue, 'x');
    for (int key = 0; rank == 2 && store.set(fmt::format("{}", key), large).ok(); ++key) EXPECT_LT(key, 1000);
    for (int turn = 0; turn < 3000 && link.rounds().lost().text.empty(); ++turn) {
      const bool refused = rank == 1 && !store.set("id", large).ok();
      link.rounds().report({statusOf(rank, refused ? "ended with exit code 1" : "")});
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_THAT(link.rounds().lost().text, HasSubstr("the store's memory for ranks is full"));
    RoundSight sight;
    sight.begun = sight.ended = {0};
    return stage.endRound(sight, 1, 60);
  });
  expectNothingCounts(verdicts, "the store's memory for ranks is full");
}

/// Which of the two is that rank nobody can tell: nothing of the round counts, whoever is first.
TEST(ClusterRounds, CountNothingWhereTwoSpokeInTheNameOfOneRank) {
  for (const bool liarIsFirst : {false, true}) {
    Nodes nodes(3);
    nodes.startAll();
    std::atomic<int> step = 0;
    const auto verdicts = nodes.onEach<RoundVerdict>([&](ClusterLink& link) {
      const int rank = link.options().nodeRank;
      ClusterStage stage(link, "walk", 60);
      EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
      stage.beginRound(1, 0);
      StoreClient store(stage.connectStore().value(), {});
      const int turn = rank == 1 ? liarIsFirst : rank == 2 ? !liarIsFirst : -1;
      while (turn >= 0 && step != turn) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (turn >= 0) {
        EXPECT_EQ(store.set("view/1", std::to_string(rank)).ok(), turn == 0);
      }
      step += turn >= 0 ? 1 : 0;
      while (step < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      RoundSight sight;
      sight.begun = sight.ended = {0};
      return stage.endRound(sight, 1, 60);
    });
    expectNothingCounts(verdicts, "two processes spoke in the name of one rank");
  }
}

/// It stands in each case of each node's record.
TEST(ClusterRounds, ShortensWhatANodeSaysOfItsRank) {
  Nodes nodes(3);
  nodes.startAll();
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    const int rank = link.options().nodeRank;
    ClusterStage stage(link, "walk", 10);
    reportUntilLost(link, stage, [&](int /*turn*/) {
      return statusOf(rank, rank == 1 ? "could not start: " + std::string(900'000, 'A') : "");
    });
    EXPECT_THAT(link.rounds().lost().text, HasSubstr("rank 1 (node 1 (n1)) could not start: AAAA"));
    EXPECT_LE(link.rounds().lost().text.size(), kLongestReason);
    return stage.endRound(cutShortIn(0), 1, 10);
  });
  for (const RoundVerdict& verdict : verdicts) {
    EXPECT_THAT(verdict.culprit, ::testing::EndsWith("AAA..."));
    EXPECT_LE(verdict.culprit.size(), kLongestReason);
    EXPECT_EQ(verdict.culprit, verdicts[0].culprit);
  }
}

TEST(ClusterRounds, NamesASilentNodeAndDoesNotStartAgain) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "walk", 10).enter(1); });
  nodes.lose(2);
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    ClusterStage stage(link, "walk", 10);
    stage.beginRound(1, 0);
    for (int turn = 0; turn < 500 && link.rounds().lost().text.empty(); ++turn) {
      link.rounds().report({statusOf(link.options().nodeRank)});
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return stage.endRound(cutShortIn(0), 3, 10);
  });
  for (const RoundVerdict& verdict : verdicts) {
    EXPECT_THAT(verdict.culprit, HasSubstr("node 2 (n2) was lost: no heartbeat for"));
    EXPECT_EQ(verdict.failed.size(), 3U);
    EXPECT_FALSE(verdict.again);
  }
}

TEST(ClusterRounds, SaysThatNodeZeroWasLost) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "walk", 10).enter(1); });
  nodes.lose(0);
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    ClusterStage stage(link, "walk", 10);
    stage.beginRound(1, 0);
    std::string lost;
    for (int turn = 0; turn < 500 && lost.empty(); ++turn) {
      lost = link.rounds().lost().text;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    RoundSight sight = cutShortIn(0);
    sight.lost = lost;
    return stage.endRound(sight, 1, 10);
  });
  EXPECT_THAT(verdicts.at(0).culprit, HasSubstr("node 1 (n1) lost node 0 (n0), which serves the store"));
  EXPECT_THAT(verdicts.at(1).culprit, HasSubstr("node 2 (n2) lost node 0 (n0), which serves the store"));
  for (const RoundVerdict& verdict : verdicts) EXPECT_EQ(verdict.failed, std::set<size_t>{0});
}

}  // namespace
}  // namespace muster::testing
