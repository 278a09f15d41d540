// SPDX-License-Identifier: Apache-2.0
// The live line fits every terminal: one that wraps would be left behind at each redraw.
#include "runner/app/view/view.h"

#include <gtest/gtest.h>

#include "runner/app/node/node_run.h"
#include "runner/app/view/resume_command.h"
#include "runner/app/view/view_json.h"

namespace muster {
namespace {

/// Columns that UTF-8 text takes, all of its characters being one wide.
size_t columnsOf(const std::string& text) {
  size_t count = 0;
  for (const unsigned char c : text) count += (c & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

TEST(LiveLine, IsNarrowerThanEveryTerminal) {
  const std::string text(300, 'x');
  for (int columns = 4; columns <= 300; ++columns)
    for (const double fraction : {-1.0, 0.0, 0.5, 1.0, 7.0})
      EXPECT_LT(columnsOf(liveLine(fraction, text, columns, true)), static_cast<size_t>(columns)) << columns;
}

TEST(LiveLine, ShowsBarAndTextInFortyColumns) {
  EXPECT_EQ(liveLine(0.5, "12.3s of about 25s, 50%", 40, false), "      #####.....  12.3s of about 25s...");
}

TEST(LiveLine, IsAsciiWhereTheLocaleIsNotUtf8) {
  for (const char c : liveLine(0.3, "text", 80, false)) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  EXPECT_NE(liveLine(0.3, "text", 80, true).find("█"), std::string::npos);
}

TEST(JsonView, PrintsAsciiAlone) {
  const std::string text = "gpu\u009B31m \u202E 85 °C\x7f";
  ::testing::internal::CaptureStdout();
  makeJsonView()->note(text);
  const std::string line = ::testing::internal::GetCapturedStdout();
  for (const char c : line) EXPECT_LT(static_cast<unsigned char>(c), 0x7f) << line;
  EXPECT_EQ(Json::parse(line)["text"], text);
}

TEST(FinishedAt, IsNotMovedByAClockThatIsSet) {
  EXPECT_EQ(finishedAt(1000, 60, 1060, false), 1060);
  EXPECT_EQ(finishedAt(1000, 60, 100, false), 1060) << "set back";
  EXPECT_EQ(finishedAt(1000, 60, 9e8, false), 1060) << "set forward";
  EXPECT_EQ(finishedAt(1000, 60, 5000, true), 5000) << "it lay still between its two parts";
  EXPECT_EQ(finishedAt(1000, 60, 100, true), 1060) << "never before it began";
}

TEST(ResumeCommand, CanBeTypedIntoAShell) {
  Record record;
  EXPECT_EQ(resumeCommand(record, "/data/a b", {}), "muster run --resume '/data/a b'");
  record.nodeCount = 4;
  EXPECT_EQ(resumeCommand(record, "/data/run/node-0002", {}), "muster run --resume /data/run")
      << "every node is given the folder of all";
  record.nodeRank = 2;
  record.launcher = {{"kind", "flags"}, {"rendezvous", "n0:29400"}};
  EXPECT_EQ(resumeCommand(record, "/data/run/node-0002", {}),
            "muster run --resume /data/run --nnodes 4 --node-rank 2 --rendezvous n0:29400")
      << "no launcher says it again";
  record.node = "n2";
  record.command = {"muster", "run", "plan.toml", "--node-name", "n2"};
  EXPECT_EQ(resumeCommand(record, "/data/run/node-0002", {}),
            "muster run --resume /data/run --node-name n2 --nnodes 4 --node-rank 2 --rendezvous n0:29400");
  record.command.clear();
  record.simulated = true;
  EXPECT_EQ(resumeCommand(record, "/data/run/sim-node-0002", {}),
            "muster run --resume /data/run/sim-node-0002");
}

TEST(ResumeCommand, NamesTheFoldersWithPluginsWhichAJournalCannot) {
  EXPECT_EQ(resumeCommand({}, "/data/run", {"/our/plugins", "/my plugins"}),
            "muster run --resume /data/run --plugins /our/plugins --plugins '/my plugins'");
  EXPECT_EQ(resumeCommand({}, "/data/run", {"mine"}),
            "muster run --resume /data/run --plugins " + (std::filesystem::current_path() / "mine").string());
}

}  // namespace
}  // namespace muster
