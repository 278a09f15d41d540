// SPDX-License-Identifier: Apache-2.0
// Waivers from the command line: they cover what they name, and say so; what they cannot cover stays as it
// is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runner/record/record_check.h"
#include "runner/system/files.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

/// One [[waiver]] on a simulated node's slow gpu5.
std::string waiver(const std::string& stage, const std::string& metric, const std::string& where,
                   const std::string& expires = "2099-12-31") {
  return "[[waiver]]\nstage = \"" + stage + "\"\nmetric = \"" + metric + "\"\n" + where +
         "\nreason = \"card on order\"\napprover = \"J. Doe\"\nexpires = \"" + expires + "\"\n";
}

const std::string kGpu5 = "node = \"sim-node-0000\"\ndevice = \"gpu5\"";
const std::string kHead = "schema = 1\n";
/// Everything that the slow GPU misses in node-quick.
const std::string kAll = kHead + waiver("gemm", "compute.gemm_throughput", kGpu5) +
                         waiver("gemm-fp8", "compute.gemm_throughput", kGpu5) +
                         waiver("sustained", "compute.sustained_throughput", kGpu5);

class Waiver : public ::testing::Test {
 protected:
  ProcessResult run(const std::string& waivers, const std::vector<std::string>& more = {},
                    const std::string& scene = "h100x8-one-slow-gpu") {
    write(waivers);
    return runMuster(std::vector<std::string>{"run", plan("node-quick.toml"), "--simulate", scenario(scene),
                                              "--waivers", file(), "--out", out()} +
                     more);
  }
  void write(const std::string& text) { dir_.write("waivers.toml", text); }
  std::string file() { return (dir_.path() / "waivers.toml").string(); }
  std::string out() { return (dir_.path() / "run").string(); }
  std::string stateOf(size_t i) { return nameOf(recordIn(out()).waivers.at(i).state); }
  TempDir dir_;
};

TEST_F(Waiver, CoversKnownFailuresAndIsSeen) {
  const auto result = run(kAll);
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("failures are waived"));
  EXPECT_THAT(result.out, HasSubstr("approved by J. Doe"));
  const Record record = recordIn(out());
  EXPECT_EQ(record.accounting.of(Outcome::kFail), 0u);
  EXPECT_GE(record.accounting.of(Outcome::kWaived), 3u);
  EXPECT_TRUE(record.accounting.balanced());
  EXPECT_EQ(record.waiverFile.text, kAll);
  EXPECT_EQ(record.waiverFile.sha256.size(), 64u);
  for (const auto& waived : record.waivers) EXPECT_EQ(waived.state, WaiverState::kApplied) << waived.detail;
  const std::string html = readFile(out() + "/report.html").value();
  EXPECT_THAT(html, HasSubstr("Active waivers"));
  EXPECT_THAT(html, HasSubstr(record.waiverFile.sha256));
}

TEST_F(Waiver, LeavesOtherFailuresAsTheyAre) {
  EXPECT_EQ(run(kHead + waiver("gemm", "compute.gemm_throughput", kGpu5)).exitCode, 1);
  EXPECT_GE(recordIn(out()).accounting.of(Outcome::kFail), 1u);
}

TEST_F(Waiver, OfAPassIsReportedAndBlocksNothing) {
  const auto result = run(kAll, {}, "h100x8-healthy");
  EXPECT_EQ(result.exitCode, 0) << result.out;
  EXPECT_EQ(stateOf(0), "unexpected pass");
  EXPECT_THAT(result.out, HasSubstr("unexpected pass"));
}

TEST_F(Waiver, ThatMatchesNothingIsAnError) {
  const auto result =
      run(kAll + waiver("gemm", "compute.gemm_throughput", "serial = \"1\"\nnode = \"sim-node-0000\""));
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_EQ(stateOf(3), "unmatched");
  EXPECT_THAT(result.out, HasSubstr("was it replaced?"));
}

TEST_F(Waiver, ThatIsExpiredStopsTheRunBeforeItBegins) {
  const auto result = run(kHead + waiver("gemm", "compute.gemm_throughput", kGpu5, "2026-01-01"));
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("waivers.toml:9:1: this waiver expired"));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(Waiver, NamesTheNearestStageAndMetric) {
  const auto result = run(kHead + waiver("gem", "compute.gemm_thruput", kGpu5));
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("did you mean \"gemm\"?"));
  EXPECT_THAT(result.err, HasSubstr("did you mean \"compute.gemm_throughput\"?"));
  EXPECT_THAT(result.err, HasSubstr("waivers.toml:2:1"));
}

TEST_F(Waiver, FileThatIsNotThereIsNoReasonToRunWithout) {
  const auto result = runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-healthy"),
                                 "--waivers", "/no/such.toml", "--out", out()});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("/no/such.toml"));
}

TEST_F(Waiver, IsAppliedWhenARecordIsJudgedAgain) {
  const auto sick = runMuster(
      {"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-one-slow-gpu"), "--out", out()});
  ASSERT_EQ(sick.exitCode, 1) << sick.out << sick.err;
  write(kHead + waiver("gemm", "compute.gemm_throughput", kGpu5));
  const std::string again = out() + "-again";
  const auto judged = runMuster({"judge", out() + "/record.json", "--waivers", file(), "--out", again});
  EXPECT_EQ(judged.exitCode, 3) << "the stages that needed gemm did not run, and stay so: " << judged.out;
  EXPECT_EQ(recordIn(again).accounting.of(Outcome::kFail), 0u);
  // Its own waivers are part of the record, so judging that one again gives the same.
  const auto third = runMuster({"judge", again + "/record.json", "--out", again + "2"});
  EXPECT_EQ(third.exitCode, 3) << third.out;
  EXPECT_EQ(recordIn(again + "2").accounting.counts, recordIn(again).accounting.counts);
}

/// Puts another text in place of all `from` in the run's journal, and takes its record away: as after a kill.
void changeJournal(const std::filesystem::path& run, const std::string& from, const std::string& to) {
  std::string text = readWhole(run / "journal.jsonl");
  size_t changed = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()), ++changed)
    text.replace(at, from.size(), to);
  EXPECT_GT(changed, 0u) << from;
  ASSERT_TRUE(writeFileAtomically(run / "journal.jsonl", text).ok());
  std::filesystem::remove(run / "record.json");
}

/// The same with only the journal's first `lines` left: the rest was not done yet.
void cutJournal(const std::filesystem::path& run, size_t lines) {
  const std::string text = readWhole(run / "journal.jsonl");
  size_t end = 0;
  for (size_t i = 0; i < lines; ++i) end = text.find('\n', end) + 1;
  ASSERT_TRUE(writeFileAtomically(run / "journal.jsonl", text.substr(0, end)).ok());
  std::filesystem::remove(run / "record.json");
}

TEST_F(Waiver, IsKeptByAResumedRunThoughTheFileHasChanged) {
  ASSERT_EQ(run(kAll).exitCode, 0);
  const Record whole = recordIn(out());
  // Only the inventory was done; the file now waives nothing, and is gone in the second round.
  for (const bool gone : {false, true}) {
    cutJournal(out(), 2);
    if (gone)
      std::filesystem::remove(file());
    else
      write(kHead);
    const auto resumed = runMuster({"run", "--resume", out()});
    EXPECT_EQ(resumed.exitCode, 0) << resumed.out << resumed.err;
    const Record record = recordIn(out());
    EXPECT_EQ(record.waiverFile.text, kAll);
    EXPECT_EQ(record.waiverFile.sha256, sha256Hex(kAll));
    for (const Outcome outcome : {Outcome::kWaived, Outcome::kFail, Outcome::kError, Outcome::kSkipped})
      EXPECT_EQ(record.accounting.of(outcome), whole.accounting.of(outcome)) << outcomeName(outcome);
    ASSERT_EQ(record.waivers.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(stateOf(i), "applied");
  }
}

TEST_F(Waiver, CannotBeAddedToARunThatWasStartedWithout) {
  const auto sick = runMuster(
      {"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-one-slow-gpu"), "--out", out()});
  ASSERT_EQ(sick.exitCode, 1) << sick.out << sick.err;
  cutJournal(out(), 2);
  write(kAll);
  const auto asked = runMuster({"run", "--resume", out(), "--waivers", file()});
  EXPECT_EQ(asked.exitCode, 2) << asked.out;
  EXPECT_THAT(asked.err, HasSubstr("--waivers"));
  EXPECT_THAT(asked.err, HasSubstr("new run"));
  EXPECT_EQ(runMuster({"run", "--resume", out()}).exitCode, 1);
  EXPECT_TRUE(recordIn(out()).waivers.empty());
}

/// Gives the waivers in a journal the digest that they have.
void bindWaivers(const std::string& folder) {
  const std::string journal = readWhole(folder + "/journal.jsonl");
  const Json head = Json::parse(journal.substr(0, journal.find('\n')));
  changeJournal(folder, head["waivers_sha256"].get<std::string>(),
                sha256Hex(head["waivers_text"].get<std::string>()));
}

TEST_F(Waiver, ThatExpiredMeanwhileHoldsByTheDayTheRunWasStarted) {
  ASSERT_EQ(run(kAll).exitCode, 0);
  const std::string journal = readWhole(out() + "/journal.jsonl");
  const Json head = Json::parse(journal.substr(0, journal.find('\n')));
  const std::string node = recordIn(out()).node;
  // As if it had been started on 2026-01-15 with waivers until the end of that month.
  changeJournal(out(), "2099-12-31", "2026-01-31");
  changeJournal(out(), "\"started\":" + head["started"].dump(), "\"started\":1768435200.0");
  changeJournal(out(), head["run_id"].get<std::string>(), runIdOf(node, 1768435200));
  bindWaivers(out());
  cutJournal(out(), 2);
  const auto resumed = runMuster({"run", "--resume", out()});
  EXPECT_EQ(resumed.exitCode, 0) << resumed.out << resumed.err;
  EXPECT_EQ(recordIn(out()).waivers.at(0).expires, "2026-01-31");
  EXPECT_EQ(stateOf(0), "applied");
  // A journal that says it was expired on the day of the start was tampered with.
  changeJournal(out(), "2026-01-31", "2026-01-14");
  const auto unbound = runMuster({"run", "--resume", out()});
  EXPECT_EQ(unbound.exitCode, 2) << unbound.out;
  EXPECT_THAT(unbound.err, HasSubstr("the digest of its waivers differs from waivers_sha256"));
  bindWaivers(out());
  const auto refused = runMuster({"run", "--resume", out()});
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("this waiver expired"));
  EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
}

TEST_F(Waiver, NeverCoversWhatCouldNotBeMeasured) {
  write(kHead + waiver("trial", "compute.gemm_throughput", "serial = \"S\"\nnode = \"here\""));
  const std::string crash = dir_.write("crash.toml", fakePlan("fake-crash")).string();
  const auto result = runMuster(
      std::vector<std::string>{"run", crash, "--waivers", file(), "--node-name", "here", "--out", out()} +
      withFakes());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_GE(recordIn(out()).accounting.of(Outcome::kError), 1u);
  EXPECT_EQ(recordIn(out()).accounting.of(Outcome::kWaived), 0u);
  EXPECT_EQ(stateOf(0), "undecided");
}

}  // namespace
}  // namespace muster::testing
