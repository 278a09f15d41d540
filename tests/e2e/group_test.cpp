// SPDX-License-Identifier: Apache-2.0
// Several ranks on one node: they meet in the stage's store, and each failure there says who waited for what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

/// What fake-pair does.
enum Kind { kExchange, kMissingKey, kDeadPeer, kAbsentPeer, kGiantKey, kGiantValue, kDeadOnce };

class Group : public ::testing::Test {
 protected:
  ProcessResult run(Kind kind, const std::string& extra = "") {
    const auto file = dir.write("plan.toml",
                                "schema = 1\nname = \"group\"\nsku = \"host\"\nbackend = \"host\"\n\n"
                                "[[stage]]\nname = \"trial\"\nplugin = \"fake-pair\"\ntest = \"run\"\n"
                                "scope = \"node\"\nranks = 3\ntimeout = \"40s\"\n" +
                                    extra + "[stage.params]\nkind = " + std::to_string(kind) +
                                    "\n[[stage.expect]]\nmetric = \"fake-pair.value\"\nmin = \"1\"\n");
    return runMuster(std::vector<std::string>{"run", file.string(), "--out", folder().string()} +
                     withFakes());
  }
  [[nodiscard]] std::filesystem::path folder() const { return dir.path() / "run"; }
  /// The texts of all verdicts of one outcome.
  [[nodiscard]] std::vector<std::string> texts(Outcome outcome) const {
    std::vector<std::string> all;
    for (const Verdict& verdict : verdictsOf(recordIn(folder()), outcome))
      all.push_back(verdict.caseId + ": " + verdict.detail);
    return all;
  }

  TempDir dir;
};

TEST_F(Group, ExchangesValuesOfAllSizesInEveryCase) {
  const ProcessResult result = run(kExchange, "repeat = 2\n[stage.matrix]\nvalue = [1.0, 2.0]\n");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  size_t figures = 0;
  for (const StageRecord& stage : recordIn(folder()).stages)
    for (const Measurement& measurement : stage.measurements) {
      if (measurement.metric != "fake-pair.value") continue;
      for (const double sample : measurement.samples) {
        EXPECT_EQ(sample, 1 + 2 + 3);
        ++figures;
      }
    }
  EXPECT_EQ(figures, 3u * 2 * 2) << "ranks, repeats, cases";
}

TEST_F(Group, NamesKeyRankAndSecondsOfAWaitInVain) {
  const ProcessResult result = run(kMissingKey);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(texts(Outcome::kError), Contains(AllOf(HasSubstr("rank 1 (cpu0) waited 0.3 s for store key"),
                                                     HasSubstr("nobody-sets-this"))));
}

TEST_F(Group, NamesTheDeadAndEndsTheOthers) {
  const ProcessResult result = run(kDeadPeer);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const std::vector<std::string> errors = texts(Outcome::kError);
  EXPECT_THAT(errors, Contains(HasSubstr("rank 1 (cpu0)")));
  for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr("SIGKILL"));
}

TEST_F(Group, NamesTheRankThatDidNotComeToABarrier) {
  const ProcessResult result = run(kAbsentPeer);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(texts(Outcome::kError),
              Contains(AllOf(HasSubstr("nobody came"), HasSubstr("2 of 3 ranks came, missing: 1"))));
}

TEST_F(Group, RefusesGiantKeysAndValues) {
  EXPECT_EQ(run(kGiantKey).exitCode, 3);
  EXPECT_THAT(texts(Outcome::kError), Contains(HasSubstr("has more than 512 bytes")));
  std::filesystem::remove_all(folder());
  EXPECT_EQ(run(kGiantValue).exitCode, 3);
  EXPECT_THAT(texts(Outcome::kError), Contains(HasSubstr("has 8388608 bytes, expected at most 4194304")));
}

TEST_F(Group, GoesOnInStepAfterADeath) {
  const ProcessResult result = run(kDeadOnce, "[stage.matrix]\nvalue = [1.0, 2.0, 3.0]\n");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(texts(Outcome::kPass), Contains(HasSubstr("[value=3]")).Times(3)) << "the case after the death";
  EXPECT_THAT(texts(Outcome::kError), Contains(AllOf(HasSubstr("[value=2]"), HasSubstr("SIGKILL"))));
}

TEST_F(Group, KeepsItsSecretOutOfEveryFile) {
  ASSERT_EQ(run(kExchange).exitCode, 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(readWhole(entry.path()).find("\"prefix\":\"trial/"), std::string::npos) << entry.path();
  }
}

TEST_F(Group, SaysThatARankRunByHandHasNoStore) {
  run(kMissingKey);
  const ProcessResult alone = runProcess({(distDir() / "lib/muster/host/muster-host").string(), "--request",
                                          (folder() / "requests/trial.rank1.attempt1.json").string()});
  EXPECT_THAT(alone.out,
              HasSubstr("rank 1 is one of a group of 3, and a rank that is started by hand has no store"));
  EXPECT_THAT(alone.out, HasSubstr("\"state\":\"error\""));
}

}  // namespace
}  // namespace muster::testing
