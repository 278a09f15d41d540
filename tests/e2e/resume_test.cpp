// SPDX-License-Identifier: Apache-2.0
// Kill -9 at random moments: a resumed run ends as an undisturbed one would, and no process is left behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Several short stages, one of whose ranks starts a child in a session of its own.
constexpr const char* kResumePlan = R"(schema = 1
name = "resumable"
sku = "host"
backend = "host"

[[stage]]
name = "first"
plugin = "fake-ok"
test = "run"
ranks = 2
timeout = "30s"
[stage.params]
kind = 150
[[stage.expect]]
metric = "fake-ok.value"
min = "1"

[[stage]]
name = "second"
plugin = "fake-children"
test = "run"
ranks = 1
timeout = "30s"

[[stage]]
name = "third"
plugin = "fake-ok"
test = "run"
needs = ["first"]
ranks = 1
timeout = "30s"
[stage.params]
kind = 150
[[stage.expect]]
metric = "fake-ok.value"
max = "1"
)";

/// Outcomes by stage, which must not depend on when a run was killed.
std::vector<std::string> shape(const Record& record) {
  std::vector<std::string> lines;
  for (const StageRecord& stage : record.stages) {
    if (stage.name == "muster:run") continue;
    std::multiset<std::string> outcomes;
    for (const Verdict& verdict : stage.verdicts)
      // What telemetry saw of this machine's other processes differs from moment to moment.
      if (verdict.metric.rfind("env.", 0) != 0)
        outcomes.insert(std::string(outcomeName(verdict.outcome)) + " " + verdict.metric);
    std::string line = stage.name + " " + nameOf(stage.state);
    for (const std::string& outcome : outcomes) line += " | " + outcome;
    lines.push_back(line);
  }
  lines.push_back(nameOf(record.acceptance));
  return lines;
}

void expectNothingLeft(const std::string& marker) {
  for (int i = 0; i < 100 && !processesWith(marker).empty(); ++i) std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(processesWith(marker).empty()) << "processes of a killed run are still there";
}

TEST(Resume, EndsAsAnUndisturbedRunAfterKill9AtTwentyRandomMoments) {
  TempDir dir;
  const auto file = dir.write("plan.toml", kResumePlan);
  const auto command = [&](const fs::path& out) {
    return std::vector<std::string>{"run", file.string(), "--resume", out.string()} + withFakes();
  };
  const auto undisturbed = runMuster(command(dir.path() / "whole"));
  const auto wanted = shape(recordIn(dir.path() / "whole"));
  ASSERT_GE(wanted.size(), 5u) << undisturbed.out << undisturbed.err;

  std::mt19937 random(20261121);
  std::uniform_real_distribution<double> moment(0.005, 0.9);
  for (int i = 0; i < 20; ++i) {
    const fs::path out = dir.path() / ("run" + std::to_string(i));
    ProcessOptions options;
    const std::string marker = "MUSTER_TEST_RUN=" + out.string();
    options.environment["MUSTER_TEST_RUN"] = out.string();
    const std::string killer = "\"$@\" >/dev/null 2>&1 & pid=$!; sleep " + std::to_string(moment(random)) +
                               "; kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null; true";
    runProcess(std::vector<std::string>{"bash", "-c", killer, "killer", (distDir() / "bin/muster").string()} +
                   command(out),
               options);
    expectNothingLeft(marker);
    const auto resumed = runMuster(command(out), options);
    EXPECT_EQ(resumed.exitCode, undisturbed.exitCode) << "round " << i << "\n" << resumed.out << resumed.err;
    EXPECT_EQ(shape(recordIn(out)), wanted) << "round " << i;
    expectNothingLeft(marker);
  }
}

TEST(Resume, DoesNotRunFinishedStagesAgain) {
  TempDir dir;
  const auto file = dir.write("plan.toml", kResumePlan);
  const auto out = dir.path() / "run";
  const auto command = std::vector<std::string>{"run", file.string(), "--resume", out.string()} + withFakes();
  runMuster(command);
  const Record before = recordIn(out);
  fs::remove(out / "record.json");
  runMuster(command);
  const Record after = recordIn(out);
  ASSERT_GE(before.stages.size(), 4u);
  EXPECT_EQ(after.resumed, 1);
  for (size_t i = 0; i < before.stages.size(); ++i)
    EXPECT_EQ(after.stages[i].started, before.stages[i].started);
}

TEST(Resume, RefusesAnotherPlan) {
  TempDir dir;
  const auto file = dir.write("plan.toml", kResumePlan);
  const auto out = (dir.path() / "run").string();
  runMuster(std::vector<std::string>{"run", file.string(), "--out", out} + withFakes());
  const auto other = dir.write("other.toml", std::string(kResumePlan) + "# changed\n");
  const auto result = runMuster({"run", other.string(), "--resume", out});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_NE(result.err.find("was started with another plan"), std::string::npos) << result.err;
}

/// A run that was cut behind its inventory, and what somebody did to its folder meanwhile.
TEST(Resume, RefusesInputsThatWereChangedInBetween) {
  TempDir dir;
  const auto file = dir.write("plan.toml", kResumePlan);
  const fs::path whole = dir.path() / "whole";
  runMuster(std::vector<std::string>{"run", file.string(), "--out", whole.string()} + withFakes());
  const std::string lines = readWhole(whole / "journal.jsonl");
  const std::string journal = lines.substr(0, lines.find('\n', lines.find('\n') + 1) + 1);
  const auto resumed = [&](const std::string& name, const std::function<void(const fs::path&)>& change) {
    const fs::path out = dir.path() / name;
    fs::copy(whole, out, fs::copy_options::recursive);
    fs::remove(out / "record.json");
    std::ofstream(out / "journal.jsonl") << journal;
    change(out);
    return runMuster(std::vector<std::string>{"run", "--resume", out.string()} + withFakes());
  };
  ASSERT_TRUE(fs::exists(whole / "profile.toml"));
  EXPECT_NE(resumed("as-it-was", [](const fs::path&) {}).exitCode, 2);
  auto result = resumed("looser", [](const fs::path& out) {
    std::ofstream(out / "profile.toml", std::ios::app) << "# looser\n";
  });
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("SKU profile of the interrupted run was changed or removed"), std::string::npos)
      << result.err;
  result = resumed("without", [](const fs::path& out) { fs::remove(out / "profile.toml"); });
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  result = resumed("plan", [&](const fs::path& out) {
    std::string edited = journal;
    edited.replace(edited.find("ranks = 2"), 9, "ranks = 1");
    std::ofstream(out / "journal.jsonl") << edited;
  });
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
}

/// A plugin's library is loaded to be described: a folder that the journal alone names must not get that far.
TEST(Resume, LoadsNoPluginBecauseAJournalNamesIt) {
  TempDir dir;
  const auto file = dir.write("plan.toml", kResumePlan);
  const fs::path out = dir.path() / "run", strange = dir.path() / "strange", loaded = dir.path() / "loaded";
  const std::string fakes = withFakes()[1];
  runMuster(std::vector<std::string>{"run", file.string(), "--out", out.string()} + withFakes());
  fs::remove(out / "record.json");
  const std::string lines = readWhole(out / "journal.jsonl");
  const std::string journal = lines.substr(0, lines.find('\n', lines.find('\n') + 1) + 1);
  const auto resumed = [&](const std::string& named, const std::vector<std::string>& options) {
    std::string edited = journal;
    const size_t at = edited.find(fakes);
    EXPECT_NE(at, std::string::npos);
    std::ofstream(out / "journal.jsonl") << edited.replace(at, fakes.size(), named);
    ProcessOptions process;
    process.environment["FAKE_LOADED"] = loaded.string();
    return runMuster(std::vector<std::string>{"run", "--resume", out.string()} + options, process);
  };
  const auto expectRefused = [&](const ProcessResult& result, const std::string& part) {
    EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(loaded)) << "it was loaded";
    EXPECT_FALSE(fs::exists(out / "record.json"));
  };
  fs::create_directories(strange);
  fs::copy_file(buildDir() / "tests/fakes/fake-mark.so", strange / "fake-mark.so");
  expectRefused(resumed(strange.string(), {}), "was started with plugins from " + strange.string());
  expectRefused(resumed(strange.string(), withFakes()), "repeat --plugins DIR");
  expectRefused(resumed(fakes, {}), "was started with plugins from " + fakes);
  expectRefused(resumed(fakes, withFakes() + std::vector<std::string>{"--plugins", strange.string()}),
                "its --plugins are others");
  EXPECT_NE(resumed(fakes, {"--plugins", fakes + "/"}).exitCode, 2) << "the same folder, in other words";
  EXPECT_TRUE(fs::exists(out / "record.json"));
}

/// Makes the run in `out` one of another boot.
void reboot(const fs::path& out) {
  std::string journal = readWhole(out / "journal.jsonl");
  const std::string boot = recordIn(out).bootId;
  ASSERT_FALSE(boot.empty());
  const size_t at = journal.find(boot);
  ASSERT_NE(at, std::string::npos);
  journal.replace(at, boot.size(), "11111111-2222-3333-4444-555555555555");
  std::ofstream(out / "journal.jsonl", std::ios::binary) << journal;
}

TEST(Resume, FailsANodeThatRebootedInBetween) {
  TempDir dir;
  const auto file = dir.write("plan.toml", kResumePlan);
  const auto out = dir.path() / "run";
  const auto command = std::vector<std::string>{"run", file.string(), "--resume", out.string()} + withFakes();
  runMuster(command);
  reboot(out);
  const std::string journal = readWhole(out / "journal.jsonl");
  fs::resize_file(out / "journal.jsonl", journal.rfind('\n', journal.size() - 2) + 1);  // the last stage
  const auto result = runMuster(command);
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const auto fails = verdictsOf(recordIn(out), Outcome::kFail);
  ASSERT_FALSE(fails.empty());
  EXPECT_EQ(fails.back().metric, "run.boot_id");
}

/// Every file of a run folder, its text and when it was written.
std::map<std::string, std::pair<std::string, fs::file_time_type>> filesIn(const fs::path& folder) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[entry.path().string()] = {readWhole(entry.path()), entry.last_write_time()};
  return files;
}

TEST(Resume, OfARunThatEndedShowsItsRecordAndChangesNothing) {
  for (const char* scene : {"h100x8-healthy", "h100x8-one-slow-gpu"}) {
    TempDir dir;
    const auto out = dir.path() / "run";
    const auto first =
        runMuster({"run", plan("node-quick.toml"), "--simulate", scenario(scene), "--out", out.string()});
    reboot(out);
    const auto before = filesIn(out);
    for (int i = 0; i < 2; ++i) {
      const auto resumed = runMuster({"run", "--resume", out.string(), "--plain"});
      EXPECT_EQ(resumed.exitCode, first.exitCode) << resumed.out << resumed.err;
      EXPECT_NE(resumed.out.find("its result stands, and nothing runs again"), std::string::npos)
          << resumed.out;
      EXPECT_NE(resumed.out.find(first.exitCode == 0 ? "ACCEPTED" : "REJECTED"), std::string::npos)
          << resumed.out;
      EXPECT_TRUE(filesIn(out) == before);
    }
    // A run that was killed before it wrote its reports gets them, and nothing else.
    fs::remove(out / "report.html");
    EXPECT_EQ(runMuster({"run", "--resume", out.string()}).exitCode, first.exitCode);
    const std::string report = (out / "report.html").string(), record = (out / "record.json").string();
    EXPECT_EQ(readWhole(report), before.at(report).first);
    EXPECT_TRUE(filesIn(out).at(record) == before.at(record));
  }
}

TEST(Resume, DoesNotShowTheRecordOfAnEarlierStart) {
  TempDir dir;
  const auto out = dir.path() / "run";
  ASSERT_EQ(runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-healthy"), "--out",
                       out.string()})
                .exitCode,
            0);
  // A resumed run that was killed before it wrote its record.
  std::ofstream(out / "journal.jsonl", std::ios::app) << "{\"type\":\"start\"}\n";
  EXPECT_EQ(runMuster({"run", "--resume", out.string()}).exitCode, 0);
  EXPECT_EQ(recordIn(out).resumed, 2);
}

/// Runs `plan` with the fake that fails until it is fixed (tests/fakes/fixed.c), or resumes it, and
/// terminates it once the figure is out.
class UnfixedRun {
 public:
  explicit UnfixedRun(const std::string& extra)
      : plan_(dir_.write("plan.toml", fakePlan("fake-fixed", "60s",
                                               extra + "[[stage.expect]]\nmetric = \"fake-fixed.value\"\n"
                                                       "min = \"1\"\n"))) {}

  [[nodiscard]] fs::path out() const { return dir_.path() / "run"; }
  void fix() { dir_.write("fixed", ""); }
  /// The runs that follow are given a waiver for the figure.
  void waive() {
    char node[256] = {};
    gethostname(node, sizeof node - 1);
    const auto file =
        dir_.write("waivers.toml",
                   std::string("schema = 1\n[[waiver]]\nstage = \"trial\"\nmetric = \"fake-fixed.value\"\n") +
                       "node = \"" + node + "\"\nreason = \"known\"\napprover = \"J. Doe\"\n" +
                       "expires = \"2099-12-31\"\n");
    waivers_ = " --waivers " + file.string();
  }

  ProcessResult resume() {
    return runMuster({"run", "--resume", out().string(), "--plugins", withFakes()[1]}, options());
  }
  ProcessResult terminated(bool resumed) {
    const fs::path told = dir_.path() / "fixed.told";
    fs::remove(told);
    return stopped(resumed, "[ -e " + told.string() + " ]", "TERM");
  }
  /// Killed once the journal holds, once more, what it had failed.
  ProcessResult killed(bool resumed) {
    const auto before = resumed ? lines(readWhole(out() / "journal.jsonl"), kInterrupted) : 0;
    const std::string count =
        std::string("$(grep -c '") + kInterrupted + "' " + (out() / "journal.jsonl").string() + " 2>&1)";
    return stopped(resumed, "[[ " + count + " == " + std::to_string(before + 1) + " ]]", "KILL");
  }

 private:
  static constexpr const char* kInterrupted = "\"type\":\"interrupted\"";

  static int lines(const std::string& text, const std::string& with) {
    int count = 0;
    for (size_t at = text.find(with); at != std::string::npos; at = text.find(with, at + 1)) ++count;
    return count;
  }

  ProcessResult stopped(bool resumed, const std::string& when, const std::string& signal) {
    const std::string command =
        "\"$0\" run " + (resumed ? "--resume " : plan_.string() + waivers_ + " --out ") + out().string() +
        " --plugins " + withFakes()[1] + " & pid=$!; while kill -0 $pid && ! " + when +
        "; do sleep 0.05; done; kill -" + signal + " $pid; wait $pid";
    return runProcess({"bash", "-mc", command, (distDir() / "bin/muster").string()}, options());
  }

  [[nodiscard]] ProcessOptions options() const {
    ProcessOptions options;
    options.environment["FAKE_FIXED"] = (dir_.path() / "fixed").string();
    return options;
  }

  TempDir dir_;
  fs::path plan_;
  std::string waivers_;
};

TEST(Resume, DoesNotForgetWhatHadFailedBeforeTheInterruption) {
  UnfixedRun run("");
  const auto first = run.terminated(false);
  EXPECT_EQ(first.exitCode, 1) << first.out << first.err;
  EXPECT_NE(first.out.find("resume with muster run --resume"), std::string::npos) << first.out;
  const Record rejected = recordIn(run.out());
  EXPECT_EQ(rejected.acceptance, Acceptance::kRejected);
  EXPECT_NE(std::find(rejected.reasons.begin(), rejected.reasons.end(), "the run was interrupted"),
            rejected.reasons.end());
  EXPECT_EQ(run.terminated(true).exitCode, 1);

  run.fix();
  const auto last = run.resume();
  EXPECT_EQ(last.exitCode, 1) << last.out << last.err;
  const Record record = recordIn(run.out());
  EXPECT_TRUE(verdictsOf(record, Outcome::kFail).empty());
  const auto flaky = verdictsOf(record, Outcome::kFlaky);
  ASSERT_EQ(flaky.size(), 1u) << last.out;
  ASSERT_EQ(flaky[0].attempts.size(), 3u);
  EXPECT_EQ(flaky[0].attempts[0].outcome, Outcome::kFail);
  EXPECT_DOUBLE_EQ(flaky[0].attempts[1].observed, 0.5);
  EXPECT_EQ(flaky[0].attempts[2].outcome, Outcome::kPass);
}

TEST(Resume, DoesNotForgetWhatHadFailedBeforeItWasKilled) {
  UnfixedRun run("");
  EXPECT_EQ(run.killed(false).exitCode, 128 + SIGKILL);
  EXPECT_EQ(run.killed(true).exitCode, 128 + SIGKILL);
  run.fix();
  const auto last = run.resume();
  EXPECT_EQ(last.exitCode, 1) << last.out << last.err;
  const Record record = recordIn(run.out());
  const auto flaky = verdictsOf(record, Outcome::kFlaky);
  ASSERT_EQ(flaky.size(), 1u) << last.out;
  ASSERT_EQ(flaky[0].attempts.size(), 3u);
  EXPECT_DOUBLE_EQ(flaky[0].attempts[0].observed, 0.5);
  EXPECT_EQ(flaky[0].attempts[2].outcome, Outcome::kPass);
  std::string log;
  for (const StageRecord& stage : record.stages)
    for (const std::string& line : stage.log) log += stage.name + ": " + line + "\n";
  EXPECT_NE(log.find("what is known to have failed by then counts"), std::string::npos);
}

TEST(Resume, KnowsTheFirstAttemptOfAStageThatWasKilledInTheSecond) {
  UnfixedRun run("attempts = 2\nparams = { kind = 1 }\n");
  EXPECT_EQ(run.killed(false).exitCode, 128 + SIGKILL);
  run.fix();
  const auto last = run.resume();
  EXPECT_EQ(last.exitCode, 1) << last.out << last.err;
  EXPECT_EQ(verdictsOf(recordIn(run.out()), Outcome::kFlaky).size(), 1u) << last.out;
}

TEST(Resume, AcceptsAFailureBeforeTheInterruptionOnlyWhereThePlanAllowsFlaky) {
  UnfixedRun run("allow_flaky = true\n");
  EXPECT_EQ(run.terminated(false).exitCode, 1);
  run.fix();
  const auto resumed = run.resume();
  EXPECT_EQ(resumed.exitCode, 0) << resumed.out << resumed.err;
  EXPECT_EQ(verdictsOf(recordIn(run.out()), Outcome::kFlaky).size(), 1u);
}

TEST(Resume, KeepsNoFailureOfAKilledRunThatIsWaived) {
  UnfixedRun run("");
  run.waive();
  EXPECT_EQ(run.killed(false).exitCode, 128 + SIGKILL);
  const std::string journal = readWhole(run.out() / "journal.jsonl");
  const size_t at = journal.find("\"type\":\"interrupted\"");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(journal.find("\"outcome\":\"waived\"", at), std::string::npos);
  EXPECT_EQ(journal.find("\"outcome\":\"fail\"", at), std::string::npos) << "nobody is rejected for it";
  run.fix();
  const auto last = run.resume();
  EXPECT_EQ(last.exitCode, 0) << last.out << last.err;
  EXPECT_EQ(verdictsOf(recordIn(run.out()), Outcome::kWaived).size(), 1u) << "the first attempt's";
}

TEST(Resume, OfAHealthyStageThatWasInterruptedCountsNoAttempt) {
  TempDir dir;
  const auto file = dir.write("plan.toml", fakePlan("fake-ok", "60s", "[stage.params]\nkind = 1500\n"));
  const fs::path out = dir.path() / "run";
  const std::string command = "\"$0\" run " + file.string() + " --out " + out.string() + " --plugins " +
                              withFakes()[1] + " & pid=$!; while kill -0 $pid && [ ! -e " +
                              (out / "requests/trial.rank0.attempt1.json").string() +
                              " ]; do sleep 0.05; done; kill -TERM $pid; wait $pid";
  const auto first = runProcess({"bash", "-mc", command, (distDir() / "bin/muster").string()});
  EXPECT_EQ(first.exitCode, 130) << first.out << first.err;
  const auto resumed = runMuster({"run", "--resume", out.string(), "--plugins", withFakes()[1]});
  EXPECT_EQ(resumed.exitCode, 0) << resumed.out << resumed.err;
  for (const StageRecord& stage : recordIn(out).stages) EXPECT_EQ(stage.attempts, 1) << stage.name;
}

TEST(Resume, RefusesANodeWithOtherParts) {
  TempDir dir;
  const auto out = dir.path() / "run";
  const std::vector<std::string> resume = {"run", "--resume", out.string()};
  ASSERT_EQ(runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-healthy"), "--out",
                       out.string()})
                .exitCode,
            0);
  std::string journal = readWhole(out / "journal.jsonl");
  const std::string serial = recordIn(out).inventory["devices"][3]["serial"];
  const size_t at = journal.find(serial);
  ASSERT_NE(at, std::string::npos);
  std::ofstream(out / "journal.jsonl") << journal.replace(at, serial.size(), "1234567890123");
  fs::remove(out / "record.json");
  const auto refused = runMuster(resume);
  EXPECT_EQ(refused.exitCode, 2) << refused.out << refused.err;
  EXPECT_NE(refused.err.find("gpu3 serial: was 1234567890123, is " + serial), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("start a new run with --out"), std::string::npos) << refused.err;
  EXPECT_EQ(readWhole(out / "journal.jsonl").compare(0, journal.size(), journal), 0) << "nothing is lost";
}

TEST(Resume, OfASimulatedNodeWithAFaultGoesOn) {
  TempDir dir;
  const auto out = dir.path() / "run";
  ASSERT_EQ(runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-one-slow-gpu"), "--out",
                       out.string()})
                .exitCode,
            1);
  const auto wanted = shape(recordIn(out));
  const std::string journal = readWhole(out / "journal.jsonl");
  fs::resize_file(out / "journal.jsonl", journal.find('\n', journal.find('\n') + 1) + 1);
  EXPECT_EQ(runMuster({"run", "--resume", out.string()}).exitCode, 1);
  EXPECT_EQ(shape(recordIn(out)), wanted);
}

TEST(Resume, GoesOnBehindATruncatedLine) {
  TempDir dir;
  const auto file = dir.write("plan.toml", kResumePlan);
  const auto out = dir.path() / "run";
  const auto command = std::vector<std::string>{"run", file.string(), "--resume", out.string()} + withFakes();
  const auto whole = runMuster(command);
  const auto wanted = shape(recordIn(out));
  const auto size = fs::file_size(out / "journal.jsonl");
  fs::resize_file(out / "journal.jsonl", size - 100);
  const auto result = runMuster(command);
  EXPECT_EQ(result.exitCode, whole.exitCode) << result.out << result.err;
  EXPECT_EQ(shape(recordIn(out)), wanted);
}

}  // namespace
}  // namespace muster::testing
