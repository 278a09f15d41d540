// SPDX-License-Identifier: Apache-2.0
// Texts that any user of Slurm can give to a job (comments) or a node's reason can hold: line breaks and bars
// in them say nothing. Fakes of Slurm's tools print them as the real ones do.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "runner/slurm/rounds.h"
#include "runner/slurm/scheduler.h"
#include "runner/slurm/witness.h"
#include "tests/support/process.h"

namespace muster::slurm {
namespace {

namespace fs = std::filesystem;
using muster::testing::readWhole;
using muster::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMallory = 12345;
constexpr const char* kId = "plan-1";

/// squeue as it prints the formats that it is asked for: widths are bytes, and nothing is escaped.
constexpr const char* kSqueue = R"(#!/bin/bash
LC_ALL=C
for word; do
  case $word in --format=*) format=${word#--format=} ;; --Format=*) columns=${word#--Format=} ;; esac
done
job() { # NUMBER STATE USER NODES CODE COMMENT
  if [ -n "$columns" ]; then
    for column in ${columns//,/ }; do
      case $column in JobID:*) printf %20s "$1" ;; exit_code:*) printf %20s "$5" ;; *) printf %20s "$3" ;; esac
    done
    echo
    return
  fi
  local rest=$format
  while [[ $rest =~ ^([^%]*)%([0-9]*)([A-Za-z])(.*)$ ]]; do
    case ${BASH_REMATCH[3]} in
      F | A | i) text=$1 ;; T) text=$2 ;; U) text=$3 ;; S) text=1000 ;; e) text=2000 ;; N) text=$4 ;;
      r) text=None ;; k) text=$6 ;; *) exit 1 ;;
    esac
    local width=${BASH_REMATCH[2]}
    printf '%s' "${BASH_REMATCH[1]}"
    rest=${BASH_REMATCH[4]}
    if [ -n "$width" ]; then printf "%-$width.${width}s" "$text"; else printf '%s' "$text"; fi
  done
  echo
}
)";

class ForgedText : public ::testing::Test {
 protected:
  ForgedText() : path_(std::getenv("PATH")) {
    setenv("PATH", (folder_.path() / "bin").string().append(":" + path_).c_str(), 1);
    Submission submission;
    submission.id = kId;
    submission.created = 900;
    submission.planFile = "plan.toml";
    submission.nodes = {"n1", "n2"};
    auto made = RunStore::create(folder_.path() / "run", submission);
    EXPECT_TRUE(made.ok()) << made.error().text();
    run_.emplace_back(*made);
  }
  ~ForgedText() override { setenv("PATH", path_.c_str(), 1); }

  void tool(const std::string& name, const std::string& text) const {
    fs::permissions(folder_.write("bin/" + name, text), fs::perms(0755));
  }
  void put(const std::string& name, const std::string& text) const { folder_.write("run/" + name, text); }
  [[nodiscard]] std::string said(const std::string& name) const { return readWhole(folder_.path() / name); }
  [[nodiscard]] const RunStore& run() const { return run_.front(); }
  [[nodiscard]] const fs::path& folder() const { return folder_.path(); }

  /// A job as an argument list of job() above; the comment is any bytes but zero.
  static std::string job(int number, const std::string& state, int64_t user, const std::string& node,
                         int code, const std::string& comment) {
    std::string quoted;
    for (const char c : comment) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return fmt::format("job {} {} {} '{}' {} '{}'\n", number, state, user, node, code * 256, quoted);
  }

 private:
  TempDir folder_;
  std::string path_;
  std::vector<RunStore> run_;  // one
};

/// What mallory writes in the hope that it counts as a line about our job 7, for either format.
std::vector<std::string> forgeries() {
  const std::string now = "7|7|7|FAILED|" + std::to_string(geteuid()) + "|1000|2000|n2|";
  return {std::string("x\n7|7|7|FAILED|n2|None|") + kId,
          "x\n" + now + kId,
          std::string(kCommentWidth, ' ').append("\n") + now + kId,
          std::string(kCommentWidth - 1, 'x').append("\n") + now,
          "hello\nbroken",
          "\n",
          "|||||||||",
          "ünï|\n"};
}

TEST_F(ForgedText, OfAnotherUsersCommentChangesNoJobAndNoEnd) {
  put("claims/n1", "7 2026\n");
  put("exits/n1", "1\n");
  ASSERT_TRUE(run().append({JobKind::kArray, "7", 0, {}, 1}).ok());
  for (const std::string& comment : forgeries()) {
    // Slurm shows cancelled jobs before those that have ended.
    tool("squeue", kSqueue + job(3, "CANCELLED", kMallory, "", 0, comment) +
                       job(7, "FAILED", geteuid(), "n1", 1, kId) +
                       job(9, "COMPLETED", kMallory, "n2", 0, comment));
    const auto jobs = readJobs();
    ASSERT_TRUE(jobs.ok()) << comment << ": " << jobs.error().text();
    ASSERT_EQ(jobs->size(), 3u) << comment;
    EXPECT_EQ(jobs->at(0).user, kMallory);
    EXPECT_EQ(jobs->at(1).comment, kId) << comment;
    EXPECT_EQ(jobs->at(1).nodes, "n1");
    EXPECT_EQ(jobs->at(1).start, 1000);
    const auto witness = Witness::ask(run());
    ASSERT_TRUE(witness.ok()) << witness.error().text();
    EXPECT_EQ(witness->ofNode("n1").standing, NodeEnd::Standing::kConfirmed) << witness->ofNode("n1").why;
    EXPECT_EQ(witness->ofNode("n1").exitCode, 1);
  }
}

TEST_F(ForgedText, AClusterJobsExitCodeIsThatOfOneOfItsParts) {
  ASSERT_TRUE(run().append({JobKind::kCluster, "7", 0, {"n1", "n2"}, 1}).ok());
  tool("squeue", kSqueue + job(7, "FAILED", geteuid(), "n[1-2]", 3, kId));
  tool("scontrol", "#!/bin/sh\nprintf 'n1\\nn2\\n'\n");
  put("cluster.exit", "3\n");
  const auto end = [&](const std::string& node) {
    const auto witness = Witness::ask(run());
    EXPECT_TRUE(witness.ok()) << witness.error().text();
    return witness->ofCluster(node);
  };
  put("cluster_exits/n1", "3\n");
  put("cluster_exits/n2", "0\n");
  EXPECT_EQ(end("n1").exitCode, 3) << end("n1").why;
  EXPECT_EQ(end("n2").exitCode, 0) << end("n2").why;
  // Whoever failed says otherwise now: nobody can be believed.
  put("cluster_exits/n1", "0\n");
  for (const char* node : {"n1", "n2"}) {
    EXPECT_EQ(end(node).standing, NodeEnd::Standing::kContradicted);
    EXPECT_THAT(end(node).why, HasSubstr("job 7 ended with 3, and no part of it claims that"));
  }
  // A part without an exit code may be the one.
  fs::remove(run().folder() / "cluster_exits/n1");
  EXPECT_EQ(end("n2").exitCode, 0) << end("n2").why;
}

TEST_F(ForgedText, CancelsNoJobOfAnotherUserAndNoneFromBefore) {
  const auto user = static_cast<int64_t>(geteuid());
  tool("squeue", kSqueue + job(5, "PENDING", user, "", 0, kId) + job(6, "PENDING", kMallory, "", 0, kId) +
                     job(8, "PENDING", user, "", 0, kId) + job(9, "PENDING", kMallory, "", 0, kId) +
                     job(10, "RUNNING", kMallory, "n1", 0, "x\n6|6|6|PENDING||None|plan-1") +
                     job(11, "PENDING", user, "", 0, kId) + job(12, "PENDING", user, "", 0, "plan-2"));
  tool("sbatch", "#!/bin/sh\ncat >" + (folder() / "script").string() + "\necho \"$@\" >" +
                     (folder() / "options").string() + "\necho 8\n");
  tool("scancel", "#!/bin/sh\necho \"$@\" >" + (folder() / "cancelled").string() + "\n");
  put("scripts/fleet.sbatch", "#!/bin/bash\ntrue\n");
  Batch batch(run(), 1, {{JobKind::kArray, "4", 0, {}, 1}});
  ASSERT_TRUE(batch.sendFleet().ok());
  const Error error = batch.takeBack(Error{ErrorCode::kUsage, "refused", ""});
  EXPECT_EQ(said("cancelled"), "--quiet 11 8\n") << error.text();
}

/// sbatch may fail though Slurm has the job: it is the run's if it has claimed its node.
TEST_F(ForgedText, TakesAJobThatClaimedItsNodeAndCancelsWhatElseIsNotListed) {
  const auto user = static_cast<int64_t>(geteuid());
  ASSERT_TRUE(run().append({JobKind::kArray, "4", 1, {}, 1}).ok());
  const std::string others = job(4, "RUNNING", user, "n1", 0, kId) + job(6, "PENDING", kMallory, "", 0, kId) +
                             job(7, "RUNNING", kMallory, "n2", 0, kId) +
                             job(12, "PENDING", user, "", 0, "plan-2");
  tool("scancel", "#!/bin/sh\necho \"$@\" >>" + (folder() / "cancelled").string() + "\n");
  tool("squeue",
       kSqueue + others + job(9, "RUNNING", user, "n2", 0, kId) + job(10, "PENDING", user, "", 0, kId));
  put("claims/n2", "7 of mallory's\n");
  EXPECT_THAT(*takeStrays(run()), ::testing::IsEmpty());
  EXPECT_EQ(said("cancelled"), "--quiet 10 9\n");
  EXPECT_EQ(run().jobs()->size(), 1u);

  put("claims/n2", "9 now\n");
  put("attempts/nodes/n2.1/claim", "4 before\n");
  for (const char* state : {"RUNNING", "COMPLETED"}) {
    tool("squeue", kSqueue + others + job(9, state, user, "n2", 0, kId));
    EXPECT_EQ(takeStrays(run())->size(), state[0] == 'R' ? 1u : 0u) << state;
    ASSERT_EQ(run().jobs()->size(), 2u) << "listed once";
    EXPECT_EQ(run().jobs()->back().kind, JobKind::kPinned);
    EXPECT_EQ(run().jobs()->back().round, 2) << "for which its result was set aside";
    EXPECT_THAT(run().jobs()->back().nodes, ElementsAre("n2"));
  }
  // It runs, and will claim its node in a moment.
  tool("squeue", kSqueue + others + job(14, "RUNNING", user, "n1", 0, kId));
  EXPECT_THAT(*takeStrays(run()), ElementsAre("14"));
  EXPECT_EQ(said("cancelled"), "--quiet 10 9\n");
}

TEST_F(ForgedText, WhatSlurmRunsIsTheTextThatWasReadNotAPath) {
  tool("sbatch", "#!/bin/sh\ncat >" + (folder() / "script").string() + "\necho \"$@\" >" +
                     (folder() / "options").string() + "\necho 8\n");
  const std::string text = "#!/bin/bash\n" + std::string(1 << 20, '#') + "\n";
  put("scripts/fleet.sbatch", text);
  Batch batch(run(), 0, {});
  ASSERT_TRUE(batch.sendFleet().ok());
  EXPECT_EQ(said("script"), text);
  EXPECT_EQ(said("options"), "--parsable\n");
  fs::remove(run().script(JobKind::kFleet));
  fs::create_symlink(folder() / "script", run().script(JobKind::kFleet));
  EXPECT_FALSE(Batch(run(), 0, {}).sendFleet().ok());
}

TEST_F(ForgedText, TheUsersHabitsNeitherFilterNorFormatWhatIsRead) {
  tool("squeue",
       std::string("#!/bin/bash\n[ -z \"$SQUEUE_USERS\" ] && [ \"$SLURM_TIME_FORMAT\" = %s ] || exit 1\n") +
           (kSqueue + 12) + job(7, "FAILED", 0, "n1", 1, kId));
  setenv("SQUEUE_USERS", "alice", 1);
  setenv("SLURM_TIME_FORMAT", "relative", 1);
  const auto jobs = readJobs();
  unsetenv("SQUEUE_USERS");
  unsetenv("SLURM_TIME_FORMAT");
  ASSERT_TRUE(jobs.ok()) << jobs.error().text();
  EXPECT_EQ(jobs->size(), 1u);
}

std::string rowOf(const std::string& fields, std::string text, size_t width) {
  text.resize(width, ' ');
  return fields + text + "\n";
}

TEST(JobText, HoldsAsManyJobsAsSlurmHasWhateverTheirComments) {
  static const std::string kParts[] = {"\n", "|",
                                       "7",  "FAILED",
                                       " ",  "x",
                                       "n2", "\n7|7|7|FAILED|0|1|2|n2|",
                                       "ü",  std::string(kCommentWidth, '\n')};
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text;
    std::vector<std::string> comments;
    for (int number = 1; number <= 5; ++number) {
      std::string comment;
      for (unsigned parts = random() % 12; parts > 0; --parts)
        comment += kParts[random() % std::size(kParts)];
      comment = comment.substr(0, kCommentWidth);
      text += rowOf(fmt::format("{0}|{0}|{0}|COMPLETED|{1}|N/A|Unknown|n1|", number, kMallory), comment,
                    kCommentWidth);
      comments.push_back(comment.substr(0, comment.find_last_not_of(' ') + 1));
    }
    const auto jobs = parseJobs(text);
    ASSERT_TRUE(jobs.ok()) << text << jobs.error().text();
    ASSERT_EQ(jobs->size(), 5u) << text;
    for (size_t i = 0; i < 5; ++i) {
      ASSERT_EQ(jobs->at(i).number, std::to_string(i + 1));
      ASSERT_EQ(jobs->at(i).comment, comments[i]);
      ASSERT_EQ(jobs->at(i).start, 0);
    }
  }
}

TEST(JobText, RefusesAJobThatIsListedTwice) {
  const auto row = [](const std::string& fields) { return rowOf(fields, "", kCommentWidth); };
  EXPECT_FALSE(parseJobs(row("7|7|7|FAILED|0|1|2|n1|") + row("7|7|7|COMPLETED|0|1|2|n1|")).ok());
  EXPECT_FALSE(parseJobs(row("7|7|7_1|FAILED|0|1|2|n1|") + row("7|7|7_2|FAILED|0|1|2|n2|")).ok());
  // Tasks that never began are one job of Slurm's, shown as many.
  EXPECT_TRUE(parseJobs(row("7|7|7_1|CANCELLED|0|1|2||") + row("7|7|7_2|CANCELLED|0|1|2||")).ok());
  const std::string accounted = "7|7|0|FAILED|1:0|1|2|n1\n";
  EXPECT_TRUE(parseAccountedJobs(accounted, "").ok());
  EXPECT_FALSE(parseAccountedJobs(accounted + accounted, "").ok());
}

TEST(JobText, OfTheAccountingHasCommentsInColumns) {
  const auto row = [](const std::string& number, std::string comment) {
    comment.resize(kCommentWidth, ' ');
    return fmt::format("{:>20} {} \n", number, comment);
  };
  const auto jobs = parseAccountedJobs("7|7|1000|FAILED|1:0|1000|2000|n1\n8|8|0|COMPLETED|0:0|1000|2000|n2\n",
                                       row("7", "x\n                   8 plan-2") + row("8", "plan-1"));
  ASSERT_TRUE(jobs.ok()) << jobs.error().text();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ(jobs->at(0).end, 2000);
  EXPECT_TRUE(jobs->at(0).accounted);
  EXPECT_EQ(jobs->at(1).comment, "plan-1");
  EXPECT_FALSE(parseAccountedJobs("", row("7", "x") + "8").ok());
}

TEST(NodeText, OfAReasonChangesNoOtherNode) {
  const auto nodes =
      parseNodes(rowOf("n1|drained|(null)|root|", "bad\nn2|drained|(null)|root|x", kReasonWidth) +
                 rowOf("n2|idle|gpu:8|Unknown|", "none", kReasonWidth));
  ASSERT_TRUE(nodes.ok()) << nodes.error().text();
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ(nodes->at("n2").state, "idle");
  EXPECT_EQ(nodes->at("n1").reason.find('\n'), std::string::npos) << "one line, also in expect.txt";
  EXPECT_THAT(nodes->at("n1").reason, HasSubstr("n2|drained"));
}

}  // namespace
}  // namespace muster::slurm
