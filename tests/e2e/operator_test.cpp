// SPDX-License-Identifier: Apache-2.0
// What happens to a person at the command line: mistyped words, closed terminals, full disks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "runner/core/json.h"
#include "runner/core/text.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

void expectRefused(const ProcessResult& result, const std::string& said) {
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr(said));
}

/// `muster run` of a healthy simulated node, as words of a shell; the tree's `muster` is $0.
std::string simulatedRun(const fs::path& out) {
  return "\"$0\" run " + plan("node-quick.toml") + " --simulate " + scenario("h100x8-healthy") + " --out " +
         out.string();
}

ProcessResult shell(const std::string& script, const char* options = "-c") {
  return runProcess({"bash", options, script, (distDir() / "bin/muster").string()});
}

void expectWholeJournal(const fs::path& folder) {
  std::ifstream journal(folder / "journal.jsonl");
  size_t lines = 0;
  for (std::string line; std::getline(journal, line); ++lines)
    EXPECT_TRUE(parseJson(line).ok()) << "no line of a journal: " << line.substr(0, 100);
  EXPECT_GT(lines, 1u);
}

TEST(Operator, IsToldTheNearestCommandAndOption) {
  expectRefused(runMuster({"runn", "plan.toml"}),
                "muster: there is no command \"runn\"; did you mean \"run\"?");
  expectRefused(runMuster({}), "muster: command missing; expected one of run, check,");
  expectRefused(runMuster({"history", "lst"}),
                "muster history: there is no command \"lst\"; did you mean \"list\"?");
  expectRefused(runMuster({"run", "plan.toml", "--ot", "x"}),
                "muster run: there is no option --ot; did you mean \"--out\"?");
  expectRefused(runMuster({"run", "plan.toml", "other.toml"}), "muster run: unexpected \"other.toml\"");
  expectRefused(runMuster({"check"}), "muster check: plans is required; see `muster check --help`");
  expectRefused(runMuster({"skus", "h100"}), "available: a100-pcie-40gb, ");
}

TEST(Operator, IsNotTakenForSayingNothingByAnEmptyValue) {
  for (const char* option : {"--simulate", "--waivers", "--sku", "--out", "--resume"})
    expectRefused(runMuster({"run", plan("node-quick.toml"), option, ""}),
                  std::string("muster run: ") + option + " has an empty value");
}

TEST(Operator, CannotGiveANegativeSeed) {
  expectRefused(runMuster({"run", plan("node-quick.toml"), "--seed", "-1"}),
                "expected a whole number, 0 or more");
}

TEST(Operator, IsToldByCheckWhatRunWouldRefuse) {
  TempDir dir;
  const auto file = dir.write("plan.toml",
                              "schema = 1\nname = \"x\"\nbackend = \"host\"\nsku = \"hots\"\n\n"
                              "[[stage]]\nname = \"a\"\nplugin = \"env\"\ntest = \"health\"\n");
  const std::string said = "plan.toml:4:1: sku: no SKU profile \"hots\"; did you mean \"host\"?";
  expectRefused(runMuster({"check", file.string()}), said);
  const auto out = dir.path() / "run";
  expectRefused(runMuster({"run", file.string(), "--out", out.string()}), said);
  expectRefused(runMuster({"run", plan("quickstart.toml"), "--sku", "hots", "--out", out.string()}),
                "--sku: no SKU profile \"hots\"");
  EXPECT_FALSE(fs::exists(out));
}

TEST(Operator, FindsNoRunFolderOfAScenarioThatIsWrong) {
  TempDir dir;
  const auto file = dir.write("scenario.toml", "schema = 1\nname = \"x\"\nsede = 1\n");
  const auto out = dir.path() / "run";
  const auto result =
      runMuster({"run", plan("node-quick.toml"), "--simulate", file.string(), "--out", out.string()});
  expectRefused(result, file.string() + ":1:1: `devices` is missing\n");
  expectRefused(result, file.string() + ":3:1: unknown key \"sede\"");
  EXPECT_FALSE(fs::exists(out));
}

TEST(Operator, MayCloseStandardInputOutputAndError) {
  TempDir dir;
  const auto result = shell(simulatedRun(dir.path() / "run") + " <&- >&- 2>&-");
  EXPECT_EQ(result.exitCode, 0);
  expectWholeJournal(dir.path() / "run");
  EXPECT_EQ(runMuster({"run", "--resume", (dir.path() / "run").string()}).exitCode, 0);
}

TEST(Operator, IsToldAboutAWriteThatFailedAndCanGoOn) {
  TempDir dir;
  const auto out = dir.path() / "run";
  const auto cut = shell("ulimit -f 40; " + simulatedRun(out));  // KiB a file
  EXPECT_EQ(cut.exitCode, 4) << cut.signal;
  EXPECT_THAT(cut.err, HasSubstr("EFBIG"));
  EXPECT_THAT(cut.err, HasSubstr("resume with `muster run --resume " + out.string() + "`"));
  const auto resumed = runMuster({"run", "--resume", out.string()});
  EXPECT_EQ(resumed.exitCode, 0) << resumed.out << resumed.err;
  EXPECT_EQ(recordIn(out).acceptance, Acceptance::kAccepted);
}

/// Sends a signal to a run once its stage has begun; `before` comes before the command. What this test itself
/// ignores (under `nohup`, say) the run would ignore too, so each case says what it starts from.
ProcessResult signalled(const TempDir& dir, const std::string& plan, const std::string& before,
                        const std::string& signal) {
  const auto file = dir.write("plan.toml", plan);
  const auto out = dir.path() / "run";
  return shell(before + " \"$0\" run " + file.string() + " --out " + out.string() + " --plugins " +
                   withFakes()[1] + " & pid=$!; for i in $(seq 600); do [ -e " +
                   (out / "requests/trial.rank0.attempt1.json").string() +
                   " ] && break; sleep 0.05; done; kill -" + signal + " $pid; wait $pid",
               "-mc");  // background jobs of a plain sh ignore SIGINT
}

TEST(Operator, WhoseTerminalIsClosedFindsARecord) {
  TempDir dir;
  const auto result = signalled(dir, fakePlan("fake-hang", "60s"), "env --default-signal=HUP", "HUP");
  EXPECT_EQ(result.exitCode, 130) << result.out << result.err;
  EXPECT_EQ(recordIn(dir.path() / "run").acceptance, Acceptance::kInterrupted);
}

TEST(Operator, WhoSaidNohupIsNotInterruptedByTheTerminal) {
  TempDir dir;
  const auto result = signalled(dir, fakePlan("fake-ok", "60s", "[stage.params]\nkind = 1500\n"),
                                "env --ignore-signal=HUP", "HUP");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_EQ(recordIn(dir.path() / "run").acceptance, Acceptance::kAccepted);
}

TEST(Operator, WhoInterruptsIsHeardAndToldHowToGoOn) {
  TempDir dir;
  const auto result = signalled(dir, fakePlan("fake-hang", "60s"), "env --default-signal=INT", "INT");
  EXPECT_EQ(result.exitCode, 130);
  EXPECT_THAT(result.err, HasSubstr("muster: interrupted: stopping ranks"));
  EXPECT_THAT(result.out, HasSubstr("resume with muster run --resume " + (dir.path() / "run").string() +
                                    " --plugins " + withFakes()[1] + "\n"));
}

TEST(Operator, CannotChangeARunByResumingIt) {
  TempDir dir;
  const auto out = (dir.path() / "run").string();
  ASSERT_EQ(shell(simulatedRun(out) + " --seed 7").exitCode, 0);
  const std::vector<std::string> resume = {"run", "--resume", out};
  expectRefused(runMuster(resume + std::vector<std::string>{"--strict"}), "do not include --strict");
  expectRefused(runMuster(resume + std::vector<std::string>{"--scope", "node", "--seed", "8"}),
                "do not include --seed, --scope");
  expectRefused(runMuster(resume + withFakes()), "its --plugins are others");
  EXPECT_EQ(runMuster(resume + std::vector<std::string>{"--seed", "7"}).exitCode, 0)
      << "the same may be said";
}

TEST(Operator, DoesNotRunInFoldersThatAnotherUserMade) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder to another user";
  TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  for (const char* name : {"artifacts", "requests", "output", "artifacts/muster:inventory"}) {
    const auto out = dir.path() / ("run-" + std::string(name).substr(0, 3) + std::to_string(strlen(name)));
    std::filesystem::create_directories(out / name);
    ASSERT_EQ(chown((out / name).c_str(), 65534, 65534), 0);
    const auto refused = shell(simulatedRun(out));
    EXPECT_NE(refused.exitCode, 0) << name;
    EXPECT_THAT(refused.out + refused.err, HasSubstr("belongs to user 65534")) << name;
    EXPECT_TRUE(std::filesystem::is_empty(out / name)) << name;
  }
}

TEST(Operator, IsOfferedEveryOptionByTheShell) {
  const auto complete = [](const std::string& words, int at) {
    const auto result = shell("source <(\"$0\" completion bash); COMP_WORDS=(" + words +
                              "); COMP_CWORD=" + std::to_string(at) + "; _muster; echo ${COMPREPLY[@]}");
    EXPECT_EQ(result.err, "");
    return std::string(trim(result.out));
  };
  EXPECT_EQ(complete("muster run --wai", 2), "--waivers");
  EXPECT_EQ(complete("muster run --lost", 2), "--lost-after");
  EXPECT_EQ(complete("muster history add --d", 3), "--db");
  EXPECT_EQ(complete("muster run --no-gpu s", 3), "skip");
  EXPECT_EQ(complete("muster baseline le", 2), "learn");
  TempDir dir;
  dir.write("with space/plan.toml", "");
  EXPECT_EQ(complete("muster run \"" + dir.path().string() + "/wi\"", 2),
            dir.path().string() + "/with space");
}

TEST(Operator, IsToldWhichFileJudgeWants) {
  TempDir dir;
  const auto out = dir.path() / "run";
  ASSERT_EQ(shell(simulatedRun(out)).exitCode, 0);
  for (const char* command : {"judge", "report"})
    expectRefused(runMuster({command, out.string()}), "give its record, " + (out / "record.json").string());
  expectRefused(runMuster({"judge", (out / "record.json").string(), "--sku", "h100-sxm5-80gb"}),
                "for this name, " + plan("skus/h100-sxm5-80gb.toml"));
}

TEST(Operator, WhoMayNotReadAFileIsNotAnInternalFault) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  TempDir dir;
  chmod(dir.path().c_str(), 0755);
  const auto file = dir.write("record.json", "{}");
  chmod(file.c_str(), 0600);
  expectRefused(runProcess({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                            (distDir() / "bin/muster").string(), "judge", file.string()}),
                "EACCES");
}

TEST(Operator, IsToldThatANodeHasNoHistory) {
  TempDir dir;
  const auto out = dir.path() / "run", database = dir.path() / "history.sqlite";
  ASSERT_EQ(shell(simulatedRun(out)).exitCode, 0);
  ASSERT_EQ(runMuster({"history", "add", out.string(), "--db", database.string()}).exitCode, 0);
  expectRefused(runMuster({"history", "trend", "--node", "n71", "--db", database.string()}),
                "no run of n71 in the history");
  EXPECT_EQ(runMuster({"history", "trend", "--node", "sim-node-0000", "--db", database.string()}).exitCode,
            0);
}

}  // namespace
}  // namespace muster::testing
