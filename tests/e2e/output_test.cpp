// SPDX-License-Identifier: Apache-2.0
// What is printed and where it goes: a full disk behind standard output, terminals, standard input, and what
// a record says of libraries that the environment brings in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "runner/core/text.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOutputPlan = R"(schema = 1
name = "short"
[[stage]]
name = "gemm"
plugin = "compute"
test = "gemm"
timeout = "2m"
[stage.params]
size = 8192
dtype = "bf16"
)";

/// `muster ARGS` as a shell starts it, with `redirection` behind it.
ProcessResult shell(const std::vector<std::string>& arguments, const std::string& redirection,
                    const ProcessOptions& options = {}) {
  return runProcess(std::vector<std::string>{"bash", "-c", "exec \"$0\" \"$@\" " + redirection,
                                             (distDir() / "bin" / "muster").string()} +
                        arguments,
                    options);
}

/// The same on a terminal of its own.
ProcessResult onTerminal(const std::vector<std::string>& arguments,
                         std::map<std::string, std::string> environment = {}) {
  std::string command = (distDir() / "bin" / "muster").string();
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  environment.emplace("TERM", "xterm-256color");
  ProcessOptions options;
  options.environment = std::move(environment);
  return runProcess({"script", "--quiet", "--return", "--command", command, "/dev/null"}, options);
}

class Output : public ::testing::Test {
 protected:
  Output() : plan_(dir_.write("plan.toml", kOutputPlan).string()) {}
  [[nodiscard]] std::vector<std::string> simulated(const std::string& out) const {
    return {"run", plan_, "--simulate", scenario("h100x8-healthy"), "--out", (dir_.path() / out).string()};
  }
  TempDir dir_;
  std::string plan_;
};

/// What everybody may write to is nobody's run. A group may share one that is not root's.
TEST_F(Output, IsNeverEverybodysWhateverTheUmask) {
  const std::vector<std::pair<std::string, mode_t>> cases = {
      {"000", 0755}, {"022", 0755}, {"027", 0750}, {"077", 0700}, {"002", geteuid() == 0 ? 0755 : 0775}};
  for (const auto& [mask, expected] : cases) {
    TempDir dir;
    const auto run =
        runProcess({"bash", "-c", "umask " + mask + "; exec \"$0\" \"$@\"",
                    (distDir() / "bin" / "muster").string(), "run", plan("node-quick.toml"), "--simulate",
                    scenario("h100x8-healthy"), "--out", (dir.path() / "run").string()});
    ASSERT_EQ(run.exitCode, 0) << run.out << run.err;
    for (const auto& entry : fs::recursive_directory_iterator(dir.path())) {
      struct stat info {};
      ASSERT_EQ(lstat(entry.path().c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0777 & ~expected, 0u) << entry.path() << " with umask " << mask;
      if (entry.path().filename() == "run") {
        EXPECT_EQ(info.st_mode & 0777, expected) << mask;
      }
    }
  }
}

/// A record, a plan and a profile that hold terminal escapes wherever they hold text, and are refused for it
/// or for what else is wrong with them.
TEST_F(Output, NoErrorBringsItsEscapesToTheTerminal) {
  ASSERT_EQ(runMuster(simulated("made")).exitCode, 0);
  const fs::path file = dir_.path() / "made" / "record.json";
  Json record = Json::parse(readWhole(file));
  const std::string escape = "\x1b]0;x\x07\x1b[2J";
  record["stages"].back()["name"] = escape;
  record["stages"].back()["evidence"]["state"] = 1;
  const std::string odd = dir_.write("odd/record.json", record.dump()).string();
  record["acceptance"] = escape;
  const std::string refused = dir_.write("refused/record.json", record.dump()).string();
  const std::string nodes = dir_.write("nodes.txt", "sim-node-0000\n").string();
  const std::string plan =
      dir_.write("odd.toml", "schema = 1\nname = \"x\"\n[[stage]]\nname = \"\\u001b[2J\"\n").string();
  const std::string profile = dir_.write("sku.toml", "schema = 1\n\"\\u001b[2J\" = 1\n").string();
  ProcessOptions options;
  options.environment["MUSTER_HISTORY"] = (dir_.path() / "history.sqlite").string();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"judge", odd},
                                             {"judge", refused},
                                             {"judge", escape},
                                             {"judge", file.string(), "--sku", profile},
                                             {"report", refused},
                                             {"history", "add", refused},
                                             {"baseline", "learn", (dir_.path() / "refused").string(), "-o",
                                              (dir_.path() / "new.toml").string()},
                                             {"fleet", (dir_.path() / "refused").string(), "--expect", nodes},
                                             {"fleet", escape, "--expect", nodes},
                                             {"check", plan},
                                             {"run", plan},
                                             {"run", plan_, escape},
                                             {"skus", escape},
                                             {"plugins", escape}}) {
    const ProcessResult result = runMuster(arguments, options);
    EXPECT_NE(result.exitCode, 0) << arguments[0] << " " << arguments[1];
    for (const char c : result.out + result.err)
      ASSERT_TRUE(static_cast<unsigned char>(c) >= ' ' || c == '\n')
          << arguments[0] << ": " << printable(result.out + result.err, 4000);
  }
}

constexpr const char* kEscape = "\x1b]0;x\x07\x1b[2J\x1b[Hall nodes accepted";

void expectNoEscapes(const ProcessResult& result) {
  for (const char c : result.out + result.err)
    ASSERT_TRUE(static_cast<unsigned char>(c) >= ' ' || c == '\n')
        << printable(result.out + result.err, 4000);
}

/// A run on Slurm as its user could leave it.
std::string slurmRun(const TempDir& dir, const std::string& name) {
  Json run = {{"schema", 1},
              {"id", name},
              {"created", 1.0},
              {"plan_name", "p"},
              {"plan_file", "p.toml"},
              {"plan_sha256", ""},
              {"scenario_file", ""},
              {"nodes", {"n1"}},
              {"options", Json::array()},
              {"fleet_options", Json::array()},
              {"node_stages", true},
              {"cluster_stages", false}};
  run["jobs"] = {{"name", ""},
                 {"partition", ""},
                 {"account", ""},
                 {"reservation", ""},
                 {"qos", ""},
                 {"constraint", ""},
                 {"runtime", "none"},
                 {"image", ""},
                 {"mounts", Json::array()},
                 {"container_muster", ""},
                 {"muster", ""},
                 {"minutes", 1},
                 {"gap_minutes", 1},
                 {"at_once", 0},
                 {"gpus", 0}};
  dir.write("runs/" + name + "/slurm.json", run.dump());
  return (dir.path() / "runs" / name).string();
}

TEST_F(Output, NoListingBringsEscapesToTheTerminal) {
  std::string profile = readWhole(plan("skus/h100-sxm5-80gb.toml"));
  const size_t at = profile.find("description = \"");
  ASSERT_NE(at, std::string::npos);
  profile.insert(at + 15, "\\u001b[2J");
  profile.replace(profile.find("h100-sxm5-80gb"), 14, "odd");
  copyIncluded("skus", dir_.path() / "skus");
  dir_.write("skus/odd.toml", profile);
  const auto skus = runMuster({"skus", "--skus", (dir_.path() / "skus").string()});
  EXPECT_EQ(skus.exitCode, 0) << skus.err;
  EXPECT_THAT(skus.out, HasSubstr("\\x1b[2J"));
  expectNoEscapes(skus);

  const std::string run = slurmRun(dir_, "one");
  const auto report = [&](const std::string& node) {
    const Json said = {{"nodes", {{{"node", node}, {"state", "rejected"}, {"reason", kEscape}}}}};
    dir_.write("runs/one/fleet/fleet.json", said.dump());
    dir_.write("runs/one/fleet.exit", "0\n");
    return runMuster({"slurm", "wait", run});
  };
  const auto escapes = report(kEscape), elsewhere = report("../../x"), known = report("n1");
  EXPECT_THAT(escapes.err, HasSubstr("is not a node name"));
  EXPECT_THAT(elsewhere.err, HasSubstr("is not a node name"));
  EXPECT_THAT(known.out, HasSubstr("\\x1b[2J"));
  for (const auto* result : {&escapes, &elsewhere, &known}) expectNoEscapes(*result);
}

/// What the user of one run puts into its folder must not keep root from removing those of others.
TEST_F(Output, CleaningGoesOnAfterARunThatCannotBeRead) {
  slurmRun(dir_, "a-odd");
  slurmRun(dir_, "b-drainer");
  slurmRun(dir_, "c-done");
  dir_.write("runs/a-odd/jobs.jsonl", "{\"kind\":");
  dir_.write("runs/b-drainer/drained.jsonl",
             Json({{"action", "drain"}, {"node", kEscape}, {"reason", "r"}}).dump());
  fs::permissions(dir_.write("bin/squeue", "#!/bin/sh\n"), fs::perms(0755));
  ProcessOptions options;
  options.environment["PATH"] = (dir_.path() / "bin").string() + ":" + std::getenv("PATH");
  const auto clean = runMuster(
      {"slurm", "clean", (dir_.path() / "runs").string(), "--older-than", "0s", "--apply"}, options);
  EXPECT_EQ(clean.exitCode, 3) << clean.err;
  EXPECT_THAT(clean.out, HasSubstr("a-odd: kept: "));
  EXPECT_THAT(clean.out, HasSubstr("c-done: removed"));
  EXPECT_FALSE(fs::exists(dir_.path() / "runs/c-done"));
  EXPECT_TRUE(fs::exists(dir_.path() / "runs/a-odd"));
  EXPECT_TRUE(fs::exists(dir_.path() / "runs/b-drainer"));
  expectNoEscapes(clean);
}

TEST_F(Output, EachCommandThatCannotPrintSaysSoAndFails) {
  const std::string record = (dir_.path() / "made" / "record.json").string();
  ASSERT_EQ(runMuster(simulated("made")).exitCode, 0);
  const fs::path fleet = dir_.path() / "fleet";
  fs::create_directories(fleet);
  fs::copy(dir_.path() / "made", fleet / "made");
  const std::string nodes = dir_.write("nodes.txt", "sim-node-0000\n").string();
  ProcessOptions options;
  options.environment["MUSTER_HISTORY"] = (dir_.path() / "history.sqlite").string();
  ASSERT_EQ(runMuster({"history", "add", record}, options).exitCode, 0);
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"--version"},
      {"run", "--help"},
      simulated("plain") + std::vector<std::string>{"--plain"},
      simulated("json") + std::vector<std::string>{"--json"},
      {"check", plan_},
      {"judge", record},
      {"judge", record, "--out", (dir_.path() / "again").string()},
      {"report", record},
      {"report", record, "--out", (dir_.path() / "report").string()},
      {"plugins"},
      {"plugins", "env"},
      {"plugins", "--json"},
      {"skus"},
      {"skus", "h100-sxm5-80gb"},
      {"completion", "bash"},
      {"fleet", fleet.string(), "--expect", nodes},
      {"history", "list"},
      {"slurm", "submit", plan_, "--simulate", scenario("h100x8-healthy"), "--nodes", "n[1-2]", "--print"}};
  for (const auto& command : commands) {
    const ProcessResult plain = shell(command, ">/dev/null", options);
    ASSERT_EQ(plain.exitCode, 0) << command[0] << ": " << plain.err;
    for (const char* made : {"plain", "json", "again"})
      if ((command.front() == "run" && command.back() == "--" + std::string(made)) ||
          command.back() == (dir_.path() / made).string())
        fs::remove_all(dir_.path() / made);
    const ProcessResult full = shell(command, ">/dev/full", options);
    EXPECT_EQ(full.exitCode, 4) << command[0] << " " << command.back();
    EXPECT_THAT(full.err, HasSubstr("muster: cannot write to standard output")) << command[0];
    EXPECT_THAT(full.err, Not(HasSubstr("internal fault"))) << command[0];
  }
  // The record is whole all the same: what it holds is what was accepted.
  EXPECT_EQ(recordIn(dir_.path() / "plain").acceptance, Acceptance::kAccepted);
  EXPECT_EQ(recordIn(dir_.path() / "json").acceptance, Acceptance::kAccepted);
  EXPECT_EQ(recordIn(dir_.path() / "again").acceptance, Acceptance::kAccepted);
}

TEST_F(Output, AVerdictOtherThanAcceptedKeepsItsExitCodeWhenItCannotBePrinted) {
  const ProcessResult full = shell({"run", plan_, "--simulate", scenario("h100x8-one-slow-gpu"), "--plain",
                                    "--out", (dir_.path() / "slow").string()},
                                   ">/dev/full");
  EXPECT_EQ(full.exitCode, 1) << full.err;
  EXPECT_THAT(full.err, HasSubstr("muster: cannot write to standard output"));
}

TEST_F(Output, AReaderThatHasSeenEnoughIsNotAFailure) {
  const ProcessResult result =
      runProcess({"bash", "-c", "set -o pipefail; \"$0\" \"$@\" | head -n 1; exit ${PIPESTATUS[0]}",
                  (distDir() / "bin" / "muster").string(), "run", plan_, "--simulate",
                  scenario("h100x8-healthy"), "--plain", "--out", (dir_.path() / "head").string()});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("standard output")));
}

TEST_F(Output, PlainHasNoControlSequencesOnATerminal) {
  const auto plain = onTerminal(simulated("plain") + std::vector<std::string>{"--plain"});
  EXPECT_EQ(plain.exitCode, 0) << plain.out;
  EXPECT_THAT(plain.out, HasSubstr("gemm"));
  EXPECT_THAT(plain.out, Not(HasSubstr("\x1b")));
  // Where they are not asked away, they are there: the test would see them.
  EXPECT_THAT(onTerminal(simulated("live")).out, HasSubstr("\x1b[32m"));
  EXPECT_THAT(onTerminal(simulated("json") + std::vector<std::string>{"--json"}).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(onTerminal(simulated("dumb"), {{"TERM", "dumb"}}).out, Not(HasSubstr("\x1b")));
  const std::string noColour = onTerminal(simulated("no-colour"), {{"NO_COLOR", "1"}}).out;
  EXPECT_THAT(noColour, Not(HasSubstr("m\x1b"))) << "the bar is redrawn, without colours";
  EXPECT_THAT(noColour, Not(HasSubstr("\x1b[32m")));
  const std::string record = (dir_.path() / "plain" / "record.json").string();
  const std::vector<std::vector<std::string>> others = {
      {"check", plan_}, {"judge", record}, {"report", record}, {"plugins"}, {"skus"}};
  for (const auto& command : others)
    EXPECT_THAT(onTerminal(command).out, Not(HasSubstr("\x1b"))) << command[0];
}

TEST_F(Output, ChecksAPlanFromStandardInput) {
  const auto check = [](const std::string& text) {
    ProcessOptions options;
    options.input = text;
    return runMuster({"check", "-"}, options);
  };
  const ProcessResult toml = check(kOutputPlan);
  EXPECT_EQ(toml.exitCode, 0) << toml.err;
  EXPECT_EQ(toml.out, "standard input: valid: plan short, 1 stage, 1 case\n");
  const ProcessResult lua = check(
      "local size = 8192\nreturn plan{ schema = 1, name = 'short', stage{ name = 'gemm', plugin = 'compute', "
      "test = 'gemm', params = { size = size } } }\n");
  EXPECT_EQ(lua.exitCode, 0) << lua.err;
  const ProcessResult bad = check("schema = 1\nname = short\n");
  EXPECT_EQ(bad.exitCode, 2);
  EXPECT_THAT(bad.err,
              HasSubstr("stdin.toml:2:8: not valid TOML: name: found short; expected a text in quotes"));
  EXPECT_THAT(bad.err, HasSubstr("standard input: 1 error\n"));
  EXPECT_EQ(check("").exitCode, 2);
  EXPECT_THAT(check("return 3\n").err, HasSubstr("stdin.lua:1: the plan returns number"));
  const ProcessResult run = runMuster({"run", "-", "--out", (dir_.path() / "no").string()});
  EXPECT_EQ(run.exitCode, 2);
  EXPECT_THAT(run.err, HasSubstr("only `muster check` reads a plan from standard input"));
}

TEST_F(Output, APreloadedLibraryIsTold) {
  const std::string library = "/lib/x86_64-linux-gnu/libm.so.6";
  if (!fs::exists(library)) GTEST_SKIP() << library << " is not there";
  ProcessOptions options;
  options.environment = {{"LD_PRELOAD", library}, {"LD_LIBRARY_PATH", "/nowhere"}};
  const ProcessResult result =
      runMuster(simulated("preloaded") + std::vector<std::string>{"--plain"}, options);
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("warning: LD_PRELOAD=" + library));
  const auto environment = recordIn(dir_.path() / "preloaded").environment;
  EXPECT_EQ(environment.at("LD_PRELOAD"), library);
  EXPECT_EQ(environment.at("LD_LIBRARY_PATH"), "/nowhere");
  EXPECT_THAT(readWhole(dir_.path() / "preloaded" / "report.html"), HasSubstr("LD_PRELOAD"));
  EXPECT_THAT(runMuster(simulated("plain") + std::vector<std::string>{"--plain"}).out,
              Not(HasSubstr("LD_PRELOAD")));
}

TEST_F(Output, ScriptsForSlurmArePrintedWithoutSlurm) {
  // Expected message on a machine without a controller, on two lines.
  const fs::path sinfo =
      dir_.write("bin/sinfo",
                 "#!/bin/sh\necho 'sinfo: error: no controller' >&2\necho "
                 "'slurm_load_partitions: Unable to contact slurm controller' >&2\nexit 1\n");
  fs::permissions(sinfo, fs::perms(0755));
  ProcessOptions options;
  options.environment = {{"PATH", sinfo.parent_path().string() + ":" + std::getenv("PATH")}};
  const auto print = [&](std::vector<std::string> more) {
    return runMuster(std::vector<std::string>{"slurm", "submit", plan_, "--print"} + more, options);
  };
  const ProcessResult listed = print({"--nodes", "gpu[1-3]", "--partition", "batch"});
  EXPECT_EQ(listed.exitCode, 0) << listed.err;
  for (const char* part : {"#### node.sbatch\n", "#SBATCH --partition=batch\n", "#### fleet.sbatch\n",
                           "#### unknown, because Slurm does not answer (",
                           "the GPUs per node: `submit` adds", "#### nothing was submitted\n"})
    EXPECT_THAT(listed.out, HasSubstr(part));
  EXPECT_THAT(listed.out, HasSubstr("sinfo: error: no controller; slurm_load_partitions: Unable"));
  const ProcessResult all = print({"--nodes", "all", "--simulate", scenario("h100x8-healthy")});
  EXPECT_EQ(all.exitCode, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("--nnodes NODE_COUNT "));
  EXPECT_THAT(all.out, HasSubstr("the nodes that --nodes all stands for; NODE_COUNT is their number\n"));
  EXPECT_THAT(print({"--nodes", "gpu[1-3]", "--gpus-per-node", "8"}).out, Not(HasSubstr("GPUs per node")));
  // Also where Slurm is not even installed.
  options.environment["PATH"] = "/nonexistent";
  EXPECT_EQ(print({"--nodes", "gpu[1-3]"}).exitCode, 0);
  const ProcessResult submitted = runMuster(
      {"slurm", "submit", plan_, "--nodes", "gpu1", "--out", (dir_.path() / "run").string()}, options);
  EXPECT_EQ(submitted.exitCode, 2) << "only --print does without Slurm";
  EXPECT_FALSE(fs::exists(dir_.path() / "run"));
}

TEST_F(Output, RootWritesNothingWhereAnotherUserCouldLeadIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  ASSERT_EQ(runMuster(simulated("made")).exitCode, 0);
  const std::string record = (dir_.path() / "made" / "record.json").string();
  const fs::path target = dir_.path() / "target", his = dir_.path() / "his";
  fs::create_directories(target);
  fs::create_directories(his);
  fs::copy(dir_.path() / "made", his / "run", fs::copy_options::recursive);
  fs::create_symlink(target, his / "link");
  fs::create_symlink(target / "h.sqlite", his / "h.sqlite");
  for (const fs::path& path : {his, his / "run"}) ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  const std::string link = (his / "link").string(), next = link + "/new", run = (his / "run").string();
  const std::string nodes = dir_.write("nodes.txt", "node-0000\n").string();
  const std::vector<std::vector<std::string>> writers = {
      simulated("his/link"),
      simulated("his/link/new"),
      {"report", record, "--out", link},
      {"judge", record, "--out", next},
      {"fleet", run, "--expect", nodes},
      {"fleet", (dir_.path() / "made").string(), "--expect", nodes, "--out", next},
      {"history", "add", "--db", (his / "h.sqlite").string(), record}};
  for (const auto& writer : writers) {
    const ProcessResult result = runMuster(writer);
    EXPECT_EQ(result.exitCode, 2) << writer[0] << result.out;
    EXPECT_THAT(result.err, HasSubstr("refused: the folder above")) << writer[0];
    EXPECT_THAT(result.err, HasSubstr("belongs to user 12345")) << writer[0];
    EXPECT_TRUE(fs::is_empty(target)) << writer[0];
  }
  EXPECT_THAT(runMuster({"fleet", run, "--expect", nodes}).err,
              HasSubstr("choose another folder with --out"));
  EXPECT_FALSE(fs::exists(his / "run" / "fleet.json"));
}

TEST_F(Output, SubmitRefusesWhateverEachNodeWouldRefuse) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    const ProcessResult result = runMuster(
        std::vector<std::string>{"slurm", "submit", plan_, "--nodes", "gpu[1-3]", "--print"} + more);
    EXPECT_EQ(result.exitCode, 2) << result.out.substr(0, 300);
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  const std::string broken = dir_.write("broken.toml", "schema = 1\nname = \"x\"\ndevise = 3\n").string();
  refused({"--simulate", broken}, broken + ":");
  refused({"--simulate", dir_.write("empty.toml", "").string()}, "empty.toml: it is empty");
  refused({"--simulate", (dir_.path() / "none.toml").string()}, "none.toml");
  refused({"--waivers", dir_.write("waivers.toml", "schema = 1\nwaver = 3\n").string()}, "waver");
  refused({"--topology", dir_.write("topology.conf", "nonsense\n").string()}, "topology.conf:1");
}

}  // namespace
}  // namespace muster::testing
