// SPDX-License-Identifier: Apache-2.0
// Whole runs over several hosts: healthy, and with every kind of loss that one host can suffer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Cluster : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
  }
};

/// Far more steps than fit the deadline: only what a test does to the hosts ends it earlier.
WalkPlan endless(const std::string& timeout = "8s") {
  WalkPlan plan;
  plan.steps = 100000;
  plan.timeout = timeout;
  return plan;
}

/// The plan goes on: the stage after the one that was lost is there and passed on this host.
void expectGoesOn(const ClusterRun& run, int host) {
  EXPECT_NE(run.stage(host, "after").outcome, Outcome::kError) << run.details(host, "after");
  EXPECT_EQ(run.stage(host, "after").state, StageState::kRan);
}

/// The hosts all name one culprit, and it is this one.
void expectCulprit(const ClusterRun& run, const std::vector<int>& hosts, const std::string& who) {
  for (const int host : hosts) {
    EXPECT_THAT(run.culprit(host), HasSubstr(who)) << "host " << host;
    EXPECT_EQ(run.culprit(host), run.culprit(hosts[0]));
    EXPECT_THAT(run.details(host), HasSubstr(who)) << "host " << host;
    EXPECT_EQ(run.stage(host, "walk").outcome, Outcome::kError);
    EXPECT_EQ(run.ended(host).exitCode, 3) << run.ended(host).out << run.ended(host).err;
    expectGoesOn(run, host);
  }
}

TEST_F(Cluster, AcceptsHealthyHostsAsOneGroup) {
  ClusterRun run(4, {});
  run.startAll();
  run.finish();
  for (int host = 0; host < 4; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, 0) << run.ended(host).out << run.ended(host).err;
    const Record record = run.record(host);
    EXPECT_EQ(record.node, Hosts::name(host));
    EXPECT_EQ(record.nodeRank, host);
    EXPECT_EQ(record.nodeCount, 4);
    EXPECT_EQ(record.launcher.value("kind", ""), "flags");
    const StageRecord walk = run.stage(host, "walk");
    const std::string id = run.stage(0, "walk").group.value("id", "");
    EXPECT_EQ(id.size(), 16U);
    EXPECT_EQ(walk.group, Json({{"world_size", 4},
                                {"first_rank", host},
                                {"nodes", 4},
                                {"id", id},
                                {"around", hostsAround(4)},
                                {"culprit", ""}}));
    ASSERT_EQ(walk.ranks.size(), 1U);
    EXPECT_EQ(walk.ranks[0].rank, host);
    for (const Measurement& m : walk.measurements) {
      const bool world = m.metric == "fake-lockstep.world_size";
      if (!world && m.metric != "fake-lockstep.neighbour") continue;
      EXPECT_EQ(m.samples, std::vector<double>{world ? 4.0 : (host + 1) % 4}) << m.metric;
    }
    // The token is for the runner alone.
    for (const auto& file : std::filesystem::recursive_directory_iterator(run.folder(host)))
      EXPECT_THAT(readWhole(file.path()), Not(HasSubstr(ClusterRun::kToken))) << file.path();
  }
}

/// By the names that the others took down, whatever its record says instead.
TEST_F(Cluster, NamesAHostWhoseRecordLeftTheRun) {
  for (const bool leaves : {false, true}) {
    ClusterRun run(3, {});
    run.startAll();
    run.finish();
    if (leaves) {
      const std::filesystem::path path = run.folder(2) / "record.json";
      Json record = Json::parse(readWhole(path));
      for (Json& stage : record["stages"])
        if (stage.contains("group")) stage["group"]["id"] = "0123456789abcdef";
      std::ofstream(path) << record;
    }
    const ProcessResult fleet = run.fleet();
    EXPECT_EQ(fleet.exitCode, leaves ? 3 : 0) << fleet.out << fleet.err;
    EXPECT_THAT(run.states(), ::testing::ElementsAre(std::pair("n0", "accepted"), std::pair("n1", "accepted"),
                                                     std::pair("n2", leaves ? "incomplete" : "accepted")));
    EXPECT_EQ(
        fleet.out.find("no record of n2 tells of stage walk, in which n0, n1 met it") != std::string::npos,
        leaves)
        << fleet.out;
  }
}

TEST_F(Cluster, NamesARankThatWasKilled) {
  ClusterRun run(4, endless("60s"));
  run.startAll();
  kill(run.awaitRank(2), SIGKILL);
  run.finish();
  expectCulprit(run, {0, 1, 2, 3}, "of node 2 (n2)) was killed by SIGKILL");
}

TEST_F(Cluster, NamesARankThatWasStopped) {
  ClusterRun run(4, endless());
  run.startAll();
  kill(run.awaitRank(1), SIGSTOP);
  run.finish();
  expectCulprit(run, {0, 1, 2, 3}, "of node 1 (n1)) is stopped (state T");
}

TEST_F(Cluster, NamesARankThatIsTenTimesSlower) {
  WalkPlan plan = endless();
  plan.work = 0.3;  // its steps of 3 s are in full course when the 8 s are over
  plan.more = "slow_rank = 3";
  ClusterRun run(4, plan);
  run.startAll();
  run.finish();
  expectCulprit(run, {0, 1, 2, 3}, "of node 3 (n3)) is running while all others wait");
}

TEST_F(Cluster, TellsTheHostWhoseLinkWentDownFromTheOthers) {
  ClusterRun run(4, endless("60s"));
  run.startAll();
  run.awaitRank(3);
  run.hosts.setLink(3, false);
  run.finish();
  expectCulprit(run, {0, 1, 2}, "node 3 (n3) was lost: no heartbeat");
  expectCulprit(run, {3}, "node 3 (n3) lost node 0 (n0), which serves the store");
}

TEST_F(Cluster, TellsAllHostsThatNodeZeroIsCutOff) {
  ClusterRun run(4, endless("60s"));
  run.startAll();
  run.awaitRank(0);
  run.hosts.setLink(0, false);
  run.finish();
  expectCulprit(run, {0}, "node 0 (n0) lost every other node");
  for (const int host : {1, 2, 3})
    expectCulprit(run, {host}, fmt::format("node {0} (n{0}) lost node 0 (n0)", host));
}

TEST_F(Cluster, NamesANodeWhoseRunnerWasKilled) {
  ClusterRun run(4, endless("60s"));
  run.startAll();
  run.awaitRank(2);
  for (const int pid : run.hosts.processes(2, "--node-rank")) kill(pid, SIGKILL);
  run.finish();
  expectCulprit(run, {0, 1, 3}, "node 2 (n2) was lost: no heartbeat");
}

/// Ranks of a stress test work without each other: those of the other hosts end well, and before anybody
/// misses the host whose runner died.
TEST_F(Cluster, FailsAStressTestInWhichANodeDied) {
  ClusterRun run(3, R"(schema = 1
name = "stress"
sku = "auto"
backend = "host"

[[stage]]
name = "walk"
plugin = "compute"
test = "sustained"
scope = "cluster"
ranks = 1
timeout = "60s"
[stage.params]
size = 128
duration = "2s"
window = "500ms"

)" + kAfterStage,
                 {"ok"});
  run.startAll();
  run.awaitRank(1);
  run.signal(1, SIGKILL);
  run.finish();
  expectCulprit(run, {0, 2}, "node 1 (n1) was lost: no heartbeat");
  for (const int host : {0, 2}) {
    EXPECT_NE(run.record(host).acceptance, Acceptance::kAccepted);
    for (const Verdict& verdict : run.stage(host, "walk").verdicts)
      if (verdict.outcome == Outcome::kError) {
        EXPECT_EQ(verdict.device, "") << verdict.detail;
      }
  }
}

TEST_F(Cluster, NamesANodeThatNeverArrives) {
  ClusterRun run(4, {});
  for (const int host : {0, 1, 3}) run.start(host, host, {"--arrival", "4s"});
  run.finish();
  for (const int host : {0, 1, 3}) {
    EXPECT_EQ(run.ended(host).exitCode, 3) << run.ended(host).out << run.ended(host).err;
    EXPECT_THAT(run.details(host), HasSubstr("1 of 4 nodes did not arrive: node 2;"));
    expectGoesOn(run, host);
  }
}

TEST_F(Cluster, GoesOnWithoutNodeZero) {
  ClusterRun run(3, {});
  for (const int host : {1, 2}) run.start(host, host, {"--arrival", "4s"});
  run.finish();
  for (const int host : {1, 2}) {
    EXPECT_EQ(run.ended(host).exitCode, 3);
    EXPECT_THAT(run.details(host), AllOf(HasSubstr("node 0 did not answer at 10.77.0.1:29400 within")));
    expectGoesOn(run, host);
  }
}

TEST_F(Cluster, NamesANodeWithAnotherPlanAndBothDigests) {
  ClusterRun run(3, {});
  run.start(0, 0, {"--arrival", "10s"});
  run.start(1, 1, {"--arrival", "10s"});
  run.planText += "# another plan\n";
  run.start(2, 2, {"--arrival", "10s"});
  run.finish();
  EXPECT_EQ(run.ended(2).exitCode, 2) << run.ended(2).out;
  EXPECT_THAT(run.ended(2).err, AllOf(HasSubstr("node 2 (n2) has plan "), HasSubstr("and node 0 (n0) has ")));
  for (const int host : {0, 1}) {
    EXPECT_EQ(run.ended(host).exitCode, 3);
    EXPECT_THAT(run.details(host),
                AllOf(HasSubstr("node 2 (n2) has plan "), HasSubstr("and node 0 (n0) has ")));
  }
}

TEST_F(Cluster, RefusesASecondHostUnderOneRank) {
  ClusterRun run(3, endless("6s"));
  run.start(0, 0);
  run.start(1, 1);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  run.start(2, 1);
  run.finish();
  EXPECT_EQ(run.ended(2).exitCode, 2) << run.ended(2).out;
  EXPECT_THAT(run.ended(2).err, HasSubstr("node rank 1 is already taken by host n1, and this is n2"));
  EXPECT_THAT(run.details(0), HasSubstr("did not arrive: node 2"));
}

/// Connects to the rendezvous again and again, with text, with half of a TLS record, and with nothing.
constexpr const char* kStrangers = R"(
import socket, sys
held = []
while True:
    for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b""):
        try:
            held.append(socket.create_connection((sys.argv[1], 29400), 1))
            held[-1].sendall(text)
        except OSError:
            pass
    held = held[-300:]
)";

TEST_F(Cluster, IsNotDisturbedByStrangersAtItsRendezvous) {
  WalkPlan plan;
  plan.timeout = "60s";
  plan.steps = 150;
  ClusterRun run(3, plan);
  const auto strangers =
      run.hosts.start(2, {"/usr/bin/python3", "-c", kStrangers, Hosts::address(0), "strangers"});
  run.startAll();
  const int rank = run.awaitRank(0);
  for (int host = 0; host < 3; ++host)
    for (const int pid : run.hosts.processes(host, ""))
      if (const std::string name = readWhole(fmt::format("/proc/{}/comm", pid)); name.starts_with("muster")) {
        EXPECT_THAT(readWhole(fmt::format("/proc/{}/environ", pid)), Not(HasSubstr(ClusterRun::kToken)))
            << name;
      }
  EXPECT_GT(rank, 0);
  run.finish();
  for (const int pid : run.hosts.processes(2, "strangers")) kill(pid, SIGKILL);
  strangers.wait();
  for (int host = 0; host < 3; ++host)
    EXPECT_EQ(run.ended(host).exitCode, 0) << run.ended(host).out << run.ended(host).err;
  EXPECT_THAT(run.stage(0, "walk").log,
              Contains(AllOf(HasSubstr("the rendezvous turned away "), HasSubstr(" without TLS"))));
}

TEST_F(Cluster, SaysThatSomebodyElseHoldsTheRendezvous) {
  ClusterRun run(2, {});
  const TempDir dir;
  const std::string listening = dir.path() / "listening";
  const auto squatter = run.hosts.start(
      0, {"/usr/bin/python3", "-c",
          "import pathlib, socket, sys\ns = socket.create_server((sys.argv[1], 29400))\n"
          "pathlib.Path(sys.argv[2]).touch()\nwhile True: s.accept()[0].sendall(b'who are you?')",
          Hosts::address(0), listening});
  while (!std::filesystem::exists(listening)) {
    ASSERT_NE(squatter.wait_for(std::chrono::milliseconds(20)), std::future_status::ready);
  }
  for (const int host : {0, 1}) run.start(host, host, {"--arrival", "30s"});
  run.finish();
  for (const int pid : run.hosts.processes(0, listening)) kill(pid, SIGKILL);
  squatter.wait();
  EXPECT_THAT(run.ended(0).err,
              AllOf(HasSubstr("cannot listen on 10.77.0.1, port 29400"), HasSubstr("EADDRINUSE")));
  EXPECT_NE(run.ended(0).exitCode, 0);
  EXPECT_EQ(run.ended(1).exitCode, 2);
  EXPECT_THAT(run.ended(1).err, HasSubstr("the service there does not speak TLS"));
}

TEST_F(Cluster, TriesAgainOnAllHostsWhatFailedOnOne) {
  WalkPlan plan;
  plan.stage = "attempts = 2\nallow_flaky = true";
  plan.more = "fail_rank = 1";
  ClusterRun run(3, plan);
  run.startAll();
  run.finish();
  for (int host = 0; host < 3; ++host) {
    const StageRecord walk = run.stage(host, "walk");
    EXPECT_EQ(walk.attempts, 2) << "host " << host;
    EXPECT_EQ(walk.outcome, host == 1 ? Outcome::kFlaky : walk.outcome) << run.details(host);
    EXPECT_NE(walk.outcome, Outcome::kError) << run.details(host);
  }
}

/// Who has to wait for it gives up after a second: its own case, and no device, is what failed there.
WalkPlan failsInStep2(const std::string& more) {
  WalkPlan plan;
  plan.more = "fail_rank = 1\nfail_step = 2\n" + more;
  return plan;
}

TEST_F(Cluster, NamesARankWhoseCaseFailedAndNotThoseWhoLostItsGroup) {
  ClusterRun run(3, failsInStep2("patience = 1.0"));
  run.startAll();
  run.finish();
  const std::string who = "of node 1 (n1)) failed: it fails in its first attempt";
  expectCulprit(run, {0, 2}, who);
  EXPECT_THAT(run.culprit(1), HasSubstr(who));
  EXPECT_THAT(run.details(1), HasSubstr("it fails in its first attempt"));
  for (int host = 0; host < 3; ++host)
    for (const Verdict& verdict : run.stage(host, "walk").verdicts) {
      if (verdict.outcome == Outcome::kError) {
        EXPECT_EQ(verdict.device.empty(), host != 1) << "host " << host;
      }
    }
}

TEST_F(Cluster, NamesARankWhoseCaseFailedWhereTheOtherWaitsForItToTheEnd) {
  WalkPlan plan = failsInStep2("");
  plan.timeout = "5s";
  ClusterRun run(2, plan);
  run.startAll();
  run.finish();
  expectCulprit(run, {0, 1}, "of node 1 (n1)) failed: it fails in its first attempt");
}

TEST_F(Cluster, NamesNobodyWhereACaseFailsThatHurtsNoOtherRank) {
  WalkPlan plan;
  plan.more = "fail_rank = 1";  // after its last step
  ClusterRun run(3, plan);
  run.startAll();
  run.finish();
  for (int host = 0; host < 3; ++host) {
    EXPECT_EQ(run.culprit(host), "") << "host " << host;
    EXPECT_EQ(run.stage(host, "walk").outcome == Outcome::kError, host == 1) << run.details(host);
  }
}

TEST_F(Cluster, NamesNobodyWhereAllPassTheNextAttempt) {
  WalkPlan plan = failsInStep2("patience = 1.0");
  plan.stage = "attempts = 2\nallow_flaky = true";
  ClusterRun run(3, plan);
  run.startAll();
  run.finish();
  for (int host = 0; host < 3; ++host) {
    EXPECT_EQ(run.culprit(host), "") << "host " << host;
    EXPECT_NE(run.stage(host, "walk").outcome, Outcome::kError) << run.details(host);
  }
}

}  // namespace
}  // namespace muster::testing
