// SPDX-License-Identifier: Apache-2.0
// What Slurm's tools complain of, in one line for people: fakes of sinfo and sbatch say it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runner/slurm/scheduler.h"
#include "tests/support/process.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Puts a `sinfo` before the real one that prints `complaint` and fails.
std::string complaintAbout(const std::string& complaint) {
  const muster::testing::TempDir folder;
  folder.write("said", complaint);
  const auto file =
      folder.write("sinfo", "#!/bin/sh\ncat '" + (folder.path() / "said").string() + "' >&2\nexit 1\n");
  std::filesystem::permissions(file, std::filesystem::perms(0755));
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  const auto nodes = readNodes();
  setenv("PATH", path.c_str(), 1);
  return nodes.ok() ? "" : nodes.error().text();
}

TEST(Complaint, OfManyLinesIsOneLineWithoutEscapes) {
  const std::string said = complaintAbout("sinfo: error: first\n\n  sinfo: fatal: second\r\n");
  EXPECT_THAT(said, HasSubstr("sinfo: error: first; sinfo: fatal: second"));
  EXPECT_THAT(said, Not(HasSubstr("\\")));
}

TEST(Complaint, NeverHoldsALineBreakWhateverAToolPrints) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::string text;
    static const char* const kParts[] = {"error", "\n", "\r\n", " ", "sbatch:", "\n\n", "\t", "x"};
    for (unsigned i = 0, next = seed; i < 12; ++i, next = next * 1103515245 + 12345)
      text += kParts[(next >> 16) % std::size(kParts)];
    const std::string said = complaintAbout(text + " end\nlast");
    EXPECT_THAT(said, Not(HasSubstr("\\n"))) << text;
    EXPECT_THAT(said, Not(HasSubstr("\n"))) << text;
    EXPECT_THAT(said, HasSubstr("last")) << text;
  }
}

}  // namespace
}  // namespace muster::slurm
