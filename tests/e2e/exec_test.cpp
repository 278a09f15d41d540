// SPDX-License-Identifier: Apache-2.0
// An operator's program in whole runs: the example of plugins/README.md, and programs that misbehave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// The example plan of plugins/README.md, its programs in another directory.
std::string exampleStage(const fs::path& programs) {
  const std::string text = readWhole(sourceDir() / "plugins/README.md");
  const size_t section = text.find("\n## exec\n");
  const size_t begin = text.find("    [[stage]]", section);
  const size_t end = text.find("\n\n", begin);
  std::string stage = text.substr(begin, end - begin) + "\n";
  constexpr std::string_view kDocumented = "/opt/checks";
  const size_t at = stage.find(kDocumented);
  if (at == std::string::npos) ADD_FAILURE() << "no example in plugins/README.md: " << stage;
  return stage.replace(at, kDocumented.size(), programs.string());
}

class Exec : public ::testing::Test {
 protected:
  /// Runs the example with a program of this body.
  ProcessResult run(const std::string& body, const std::string& extra = "") {
    const fs::path program = programs_.write("bin/disk-check", "#!/bin/sh\n" + body);
    fs::permissions(program, fs::perms(0755));
    const auto plan =
        dir_.write("plan.toml", "schema = 1\nname = \"disk\"\nsku = \"host\"\nbackend = \"host\"\n" +
                                    exampleStage(programs_.path() / "bin") + extra);
    ProcessOptions options;
    options.environment = environment_;
    return runMuster({"run", plan.string(), "--out", out().string()}, options);
  }
  [[nodiscard]] fs::path out() const { return dir_.path() / "run"; }

  TempDir programs_;
  TempDir dir_;
  std::map<std::string, std::string> environment_ = {
      {"MUSTER_EXEC_DIR", (programs_.path() / "bin").string()}};
};

std::string printed(const std::string& rate) {
  return "echo '{\"read\": {\"rate\": " + rate +
         "}, \"write\": {\"rate\": 1500}, \"disk\": {\"model\": \"X-1\"}}'\n";
}

TEST_F(Exec, TheDocumentedExampleIsJudged) {
  const auto result = run(printed("3500") + "echo note >&2\n");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const Record record = recordIn(out());
  const StageRecord& stage = record.stages.back();
  EXPECT_EQ(stage.name, "disk");
  std::map<std::string, std::string> artifacts;
  for (const ArtifactRecord& artifact : stage.artifacts)
    artifacts[artifact.name] = readWhole(out() / artifact.path);
  EXPECT_THAT(artifacts.at("stdout.txt"), HasSubstr("\"rate\": 3500"));
  EXPECT_EQ(artifacts.at("stderr.txt"), "note\n");
  // The write rate and the model have no limit, and the record says so.
  EXPECT_EQ(verdictsOf(record, Outcome::kUnjudged).size(), 2u);
  EXPECT_FALSE(fs::exists(out() / "artifacts/disk/rank0.work"));
}

TEST_F(Exec, AMissedLimitRejects) {
  // So slow that no other work on this machine explains it.
  const auto result = run(printed("1"));
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("1 MB/s, required at least 3 GB/s"));
  EXPECT_THAT(result.out, HasSubstr("nvme smart-log"));
}

TEST_F(Exec, NoFailureOfTheProgramPasses) {
  struct Row {
    std::string body, said;
  };
  const std::vector<Row> rows = {
      {printed("3500") + "exit 1\n", "it ended with exit code 1; expected 0"},
      {printed("3500") + "kill -SEGV $$\n", "ended by signal 11"},
      {printed("NaN"), "not valid JSON"},
      {printed("\"fast\""), "found a text; expected a number"},
      {"echo '{}'\n", "has nothing at /read/rate"},
      {"", "not valid JSON"},
      {printed("3500") + "head -c 2000000 /dev/zero\n", "printed more than 1024 KiB"}};
  for (const Row& row : rows) {
    fs::remove_all(out());
    const auto result = run(row.body);
    EXPECT_EQ(result.exitCode, 3) << row.body << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr(row.said)) << row.body;
  }
}

/// Who hands over a plan must not choose which programs run.
TEST_F(Exec, NothingRunsWithoutTheOperatorsWord) {
  const std::string mark = (dir_.path() / "ran").string();
  environment_.clear();
  const auto unset = run("touch " + mark + "\n");
  EXPECT_EQ(unset.exitCode, 3) << unset.out << unset.err;
  EXPECT_THAT(unset.out, HasSubstr("MUSTER_EXEC_DIR is not set"));
  fs::remove_all(out());
  environment_ = {{"MUSTER_EXEC_DIR", dir_.path().string()}};
  const auto elsewhere = run("touch " + mark + "\n");
  EXPECT_EQ(elsewhere.exitCode, 3) << elsewhere.out << elsewhere.err;
  EXPECT_THAT(elsewhere.out, HasSubstr("it is not in"));
  EXPECT_FALSE(fs::exists(mark));
}

}  // namespace
}  // namespace muster::testing
