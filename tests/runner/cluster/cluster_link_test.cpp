// SPDX-License-Identifier: Apache-2.0
// Nodes of one run inside this process: real store, real connections, each node on a thread of its own.
#include "runner/cluster/cluster_link.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <random>
#include <thread>

#include "runner/cluster/cluster_stage.h"
#include "runner/rendezvous/wire/store_key.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

const std::atomic<bool> kNotCancelled{false};

/// Nodes on free ports: node 0 tells its port to the others, as a launcher would.
class Nodes {
 public:
  explicit Nodes(int count) : count_(count) {}

  ClusterOptions options(int rank) const {
    ClusterOptions o;
    o.nodeRank = rank;
    o.nodeCount = count_;
    o.host = fmt::format("n{}", rank);
    o.store = {"127.0.0.1", port_};
    o.token = "a secret of these tests";
    o.identity = {{"plan", "aaaa"}, {"seed", "42"}};
    o.beat = 0.05;
    o.lostAfter = 1;
    o.cancelled = &kNotCancelled;
    return o;
  }

  ClusterLink& start(ClusterOptions options) {
    auto link = ClusterLink::start(options);
    if (!link.ok()) throw std::runtime_error(link.error().text());
    links_.push_back(std::move(*link));
    if (options.nodeRank == 0) port_ = links_.back()->storeAddress().port;
    return *links_.back();
  }

  void startAll() {
    for (int rank = 0; rank < count_; ++rank) start(options(rank));
    for (const auto& link : links_) ASSERT_TRUE(link->join(5).ok());
  }

  /// Runs `body` for every node that was started, each on a thread.
  template <typename T>
  std::vector<T> onEach(const std::function<T(ClusterLink&)>& body) {
    std::vector<std::future<T>> running;
    for (const auto& link : links_)
      running.push_back(std::async(std::launch::async, [&body, raw = link.get()] { return body(*raw); }));
    std::vector<T> results;
    for (auto& one : running) results.push_back(one.get());
    return results;
  }

  ClusterLink& first() { return *links_.front(); }
  void lose(size_t index) { links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(index)); }

 private:
  int count_;
  uint16_t port_ = 0;
  std::vector<std::unique_ptr<ClusterLink>> links_;
};

/// What a node sees of a round that something cut short in run `open` of 3.
RoundSight cutShortIn(size_t open) {
  RoundSight sight;
  for (size_t run = 0; run <= open; ++run) sight.begun.insert(run);
  for (size_t run = 0; run < open; ++run) sight.ended.insert(run);
  return sight;
}

/// A clock that others set forward: what a process that is stopped for so long sees of it.
class SetClock : public Clock {
 public:
  [[nodiscard]] double now() const override { return systemClock().now() + ahead.load(); }
  [[nodiscard]] double wallUnix() const override { return systemClock().wallUnix(); }
  std::atomic<double> ahead{0};
};

TEST(RunningTime, CountsNoStops) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    struct : Clock {
      [[nodiscard]] double now() const override { return at; }
      [[nodiscard]] double wallUnix() const override { return at; }
      double at = 100;
    } clock;
    RunningTime time(clock, 1);
    double ran = time.now(), longest = 0;
    for (int step = 0; step < 50; ++step) {
      const bool stops = random() % 5 == 0;
      const double gap =
          stops ? 1.5 + static_cast<double>(random() % 100) : static_cast<double>(random() % 100) / 100;
      clock.at += gap;
      ran += stops ? 1 : gap;
      if (stops) longest = std::max(longest, gap);
      EXPECT_NEAR(time.now(), ran, 1e-6);
    }
    EXPECT_NEAR(time.longestStop().seconds, longest, 1e-6);
    time.forget();
    EXPECT_EQ(time.longestStop().seconds, 0);
  }
}

/// Nobody is lost for the time in which who judges them was stopped.
TEST(ClusterLink, LosesNobodyWhileItIsStoppedItself) {
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
      EXPECT_TRUE(link.join(20).ok());
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
          lost += link.lost();
          if (rank == 0) lost += link.nodes()[1].silent ? "silent" : "";
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
TEST(ClusterLink, NamesItselfWhereItWasStoppedUntilTheOtherNodeGaveItUp) {
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
      EXPECT_TRUE(link.join(20).ok());
      ClusterStage stage(link, "walk", 100);
      EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
      stage.beginRound(1, 0);
      RoundSight sight = cutShortIn(0);
      if (link.options().nodeRank == 0) {
        clock.ahead = 5000;
        // It is heard of for long after that: it gave up this round, and not its run.
        for (int second = 0; later && second < 2000; ++second) {
          (void)link.nodes();
          clock.ahead = clock.ahead + 0.9;
        }
        while (link.nodes()[1].silent) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      } else {
        sight.lost = "node 1 (n1) lost node 0 (n0)";
      }
      return stage.endRound(sight, 1, 100).culprit;
    });
    for (const std::string& text : said)
      EXPECT_THAT(text, HasSubstr("node 0 (n0) did not run for 5000 s: it was stopped"));
  }
}

TEST(ClusterLink, GivesAllNodesNodeZerosDecision) {
  Nodes nodes(5);
  nodes.startAll();
  const auto sum = [](const ClusterLink::Answers& answers) {
    int total = 0;
    for (const auto& answer : answers) total += answer ? answer->get<int>() : -1000;
    return Json(total);
  };
  for (int question = 0; question < 20; ++question) {
    const auto all = nodes.onEach<Result<Json>>([&](ClusterLink& link) {
      return link.agree(fmt::format("q{}", question), link.options().nodeRank + question, 10, sum);
    });
    for (const auto& decision : all) {
      ASSERT_TRUE(decision.ok()) << decision.error().text();
      EXPECT_EQ(*decision, 10 + 5 * question);
    }
  }
}

/// Real connections: 127.0.0.0/8 is all of this machine's.
TEST(ClusterLink, IsServedAtTheGivenAddressAlone) {
  for (const int last : {1, 2}) {
    Nodes nodes(2);
    ClusterOptions options = nodes.options(0);
    options.store = {fmt::format("127.0.0.{}", last), 0};
    const StoreAddress served = nodes.start(options).storeAddress();
    EXPECT_EQ(served.host, options.store.host);
    for (const int other : {1, 2, 3}) {
      StoreClientOptions client;
      client.address = {fmt::format("127.0.0.{}", other), served.port};
      client.key = storeKey(options.token, "");
      client.who = "a test";
      EXPECT_EQ(StoreClient(client).connect(other == last ? 20 : 0.3).ok(), other == last) << last << other;
    }
  }
}

/// A client that may do whatever a runner may.
std::unique_ptr<StoreClient> hostileRunner(const ClusterLink& leader) {
  StoreClientOptions client;
  client.address = leader.storeAddress();
  client.prefix = "muster/";
  client.key = storeKey(leader.options().token, client.prefix);
  return std::make_unique<StoreClient>(client);
}

/// One that has the token may spoil the run for others; it must not end node 0's runner.
TEST(ClusterLink, OutlivesWhateverAPeerWithTheTokenSays) {
  Nodes nodes(3);
  ClusterLink& leader = nodes.start(nodes.options(0));
  ASSERT_TRUE(leader.join(5).ok());
  const auto hostile = hostileRunner(leader);
  const std::vector<std::string> junk = {
      "",
      "{",
      "[]",
      "7",
      "null",
      R"({"nonce": 7, "host": [], "identity": "x"})",
      R"({"leaves": {"ranks": -1}})",
      R"({"ranks": 2147483647, "start": {}})",
      R"({"ranks": [1], "cases": [7, {}]})",
      R"({"cases": 3})",
      R"({"nonce": "a", "host": "h", "identity": {"plan": 3}, "failures": [{"rank": []}]})",
      std::string(2u << 20, 'x')};
  int question = 0;
  for (const std::string& text : junk) {
    const std::string stage = fmt::format("walk{}", question++);
    for (const int rank : {0, 1, 2, 99}) {
      ASSERT_TRUE(hostile->set(fmt::format("status/{}", rank), text).ok());
      ASSERT_TRUE(hostile->set(fmt::format("status/{}/beat", rank), text).ok());
    }
    ASSERT_TRUE(hostile->set("status/x", text).ok());
    for (const char* topic : {"enter", "1/0/end", "retry/1", "leave"})
      for (const char* rank : {"1", "2", "77", "-1", "x"})
        ASSERT_TRUE(hostile->set(fmt::format("q/{}/{}/answer/{}", stage, topic, rank), text).ok());
    ClusterStage hit(leader, stage, 0.1);
    EXPECT_NE(hit.enter(1).kind, ClusterEntry::Kind::kGo);
    hit.beginRound(1, 0);
    (void)leader.nodes();
    EXPECT_FALSE(hit.endRound(cutShortIn(0), 2, 0).culprit.empty());
    (void)hit.retries(1, {"case"}, "");
    (void)hit.leave("");
  }
}

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
  EXPECT_TRUE(all.changes("ranks/", 0)->entries.empty());
  const StoreChanges left = all.changes("muster/q/", 0).value();
  for (const auto& [key, value] : left.entries)
    EXPECT_THAT(key, ::testing::AnyOf(::testing::EndsWith("/open"), ::testing::EndsWith("/decision"),
                                      ::testing::EndsWith("/read")));
}

TEST(ClusterLink, GivesEachNodeItsOwnPartOfADecision) {
  Nodes nodes(4);
  nodes.startAll();
  const auto decide = [](const ClusterLink::Answers& answers) {
    Json parts = Json::array();
    for (const auto& answer : answers) parts.push_back(*answer);
    return Json{{"all", 7}, {"parts", std::move(parts)}};
  };
  for (int question = 0; question < 3; ++question) {
    const auto all = nodes.onEach<Result<Json>>([&](ClusterLink& link) {
      return link.agree(fmt::format("q{}", question), fmt::format("of {}", link.options().nodeRank), 10,
                        decide);
    });
    for (int rank = 0; rank < 4; ++rank) {
      const auto& decision = all[static_cast<size_t>(rank)];
      ASSERT_TRUE(decision.ok()) << decision.error().text();
      EXPECT_EQ((*decision)["part"], fmt::format("of {}", rank));
      EXPECT_EQ((*decision)["all"], 7);
      EXPECT_FALSE(decision->contains("parts"));
    }
  }
}

TEST(ClusterLink, RefusesAWrongToken) {
  Nodes nodes(2);
  nodes.start(nodes.options(0));
  ClusterOptions wrong = nodes.options(1);
  wrong.token = "another secret";
  const Status joined = nodes.start(wrong).join(5);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, ErrorCode::kUsage);
  EXPECT_THAT(joined.error().text(), HasSubstr("cannot join the run"));
}

TEST(ClusterLink, NamesWhatDiffersWithBothValuesOnBothSides) {
  Nodes nodes(2);
  ClusterLink& leader = nodes.start(nodes.options(0));
  ClusterOptions other = nodes.options(1);
  other.identity[1].second = "43";
  const Status joined = nodes.start(other).join(5);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().text(),
            "node 1 (n1) has seed 43, and node 0 (n0) has 42; all nodes of a run must have the same");
  ClusterStage stage(leader, "walk", 3);
  const ClusterEntry entry = stage.enter(1);
  EXPECT_EQ(entry.kind, ClusterEntry::Kind::kError);
  EXPECT_EQ(entry.why, joined.error().text());
}

TEST(ClusterLink, RefusesASecondNodeUnderOneRank) {
  // Again and again, as the first may not have sent a heartbeat when the second comes.
  for (int round = 0; round < 8; ++round) {
    Nodes nodes(3);
    nodes.startAll();
    ClusterOptions twin = nodes.options(1);
    twin.host = "twin";
    const Status joined = nodes.start(twin).join(5);
    ASSERT_FALSE(joined.ok());
    EXPECT_THAT(joined.error().text(),
                HasSubstr("node rank 1 is already taken by host n1, and this is twin"));
  }
}

TEST(ClusterLink, LetsANodeComeBackUnderItsRank) {
  Nodes nodes(2);
  nodes.startAll();
  nodes.lose(1);
  EXPECT_TRUE(nodes.start(nodes.options(1)).join(5).ok());
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
      EXPECT_EQ(entry.why, "2 of 4 nodes did not arrive: node 2, node 3; look at their runs, or start them");
    }
  }
}

TEST(ClusterStage, SaysWhichNodesHaveFinishedAStageThatOthersHaveNot) {
  for (const std::set<int>& finished : {std::set<int>{0, 2}, {1, 2}, {0}}) {
    Nodes nodes(3);
    for (int rank = 0; rank < 3; ++rank) {
      ClusterOptions options = nodes.options(rank);
      if (finished.count(rank) > 0) options.finished = {{"walk", "pass"}};
      nodes.start(options);
    }
    std::string done, open;
    for (int rank = 0; rank < 3; ++rank) {
      std::string& list = finished.count(rank) > 0 ? done : open;
      list += fmt::format("{}node {} (n{}){}", list.empty() ? "" : ", ", rank, rank,
                          finished.count(rank) > 0 ? " (pass)" : "");
    }
    nodes.onEach<bool>([&](ClusterLink& link) {
      link.rollCall(10);
      if (finished.count(link.options().nodeRank) > 0) return true;
      const ClusterEntry entry = ClusterStage(link, "walk", 3600).enter(1);
      EXPECT_EQ(entry.kind, ClusterEntry::Kind::kError);
      EXPECT_THAT(entry.why, HasSubstr(fmt::format("it is on {}, and not on {};", done, open)));
      return true;
    });
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
      stage.decline("stage env came to fail");
      return ClusterEntry{ClusterEntry::Kind::kSkip,
                          fmt::format("node {0} (n{0}) does not take part: stage env came to fail", who), 0,
                          1};
    });
    for (const ClusterEntry& entry : entries) {
      EXPECT_EQ(entry.kind, ClusterEntry::Kind::kSkip);
      EXPECT_EQ(entry.why, fmt::format("node {0} (n{0}) does not take part: stage env came to fail", who));
    }
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

TEST(ClusterStage, TellsAllNodesOfADeadRankWhileTheRoundRunsAndContinuesWithUnstartedCases) {
  Nodes nodes(3);
  nodes.startAll();
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    const int rank = link.options().nodeRank;
    ClusterStage stage(link, "walk", 10);
    EXPECT_EQ(stage.enter(1).kind, ClusterEntry::Kind::kGo);
    stage.beginRound(1, 0);
    for (int turn = 0; turn < 500 && link.lost().empty(); ++turn) {
      link.report(
          {rank == 1 && turn > 5 ? statusOf(1, "was killed by SIGKILL (Killed)", SIGKILL) : statusOf(rank)});
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return stage.endRound(cutShortIn(1), 3, 10);
  });
  for (const RoundVerdict& verdict : verdicts) {
    EXPECT_EQ(verdict.culprit, "rank 1 (node 1 (n1)) was killed by SIGKILL (Killed)");
    EXPECT_EQ(verdict.failed, std::set<size_t>{1});
    EXPECT_TRUE(verdict.again);
  }
}

TEST(ClusterStage, NamesASilentNodeAndDoesNotStartAgain) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "walk", 10).enter(1); });
  nodes.lose(2);
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    ClusterStage stage(link, "walk", 10);
    stage.beginRound(1, 0);
    for (int turn = 0; turn < 500 && link.lost().empty(); ++turn) {
      link.report({statusOf(link.options().nodeRank)});
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

TEST(ClusterStage, SaysThatNodeZeroWasLost) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<ClusterEntry>([](ClusterLink& link) { return ClusterStage(link, "walk", 10).enter(1); });
  nodes.lose(0);
  const auto verdicts = nodes.onEach<RoundVerdict>([](ClusterLink& link) {
    ClusterStage stage(link, "walk", 10);
    stage.beginRound(1, 0);
    std::string lost;
    for (int turn = 0; turn < 500 && lost.empty(); ++turn) {
      lost = link.lost();
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

TEST(ClusterStage, IsLeftByAllOrFailsForAll) {
  Nodes nodes(3);
  nodes.startAll();
  const auto leave = [](const std::string& stage, int who, const std::string& faulty) {
    return [=](ClusterLink& link) {
      return ClusterStage(link, stage, 10).leave(link.options().nodeRank == who ? faulty : "");
    };
  };
  for (const std::string& found : nodes.onEach<std::string>(leave("first", 0, ""))) EXPECT_EQ(found, "");
  // What one node found is passed on to all.
  for (const std::string& found : nodes.onEach<std::string>(leave("second", 2, "rank 7 (node 2 (n2)) died")))
    EXPECT_EQ(found, "rank 7 (node 2 (n2)) died");
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
    ClusterLink::Answers answers(count);
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
