// SPDX-License-Identifier: Apache-2.0
// Commands as a shell reads them.
#include "runner/core/shell.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster {
namespace {

TEST(ShellCommand, QuotesWords) {
  EXPECT_EQ(shellCommand({"/bin/muster-host", "--request", "/out/a.json"}),
            "/bin/muster-host --request /out/a.json");
  const std::vector<std::string> nasty{"printf", "%s|", "a b", "it's", "$(echo x)", "", "new\nline"};
  EXPECT_EQ(testing::runProcess({"/bin/sh", "-c", shellCommand(nasty)}).out,
            "a b|it's|$(echo x)||new\nline|");
}

TEST(ShellCommand, IsTakenApartAgain) {
  const std::vector<std::string> nasty{"printf", "%s|",       "a b", "it's", "$(echo x)",
                                       "",       "new\nline", "\\",  "'"};
  EXPECT_EQ(wordsOfCommand(shellCommand(nasty)), nasty);
  EXPECT_EQ(wordsOfCommand("'a b' 'c'"), (std::vector<std::string>{"a b", "c"}))
      << "redaction leaves such quotes";
  for (const char* other : {"", "a ", "a  b", " a", "a\\ b", "a;b", "\"a\"", "'a", "$(x)", "a\nb"})
    EXPECT_EQ(wordsOfCommand(other), std::nullopt) << other;
}

}  // namespace
}  // namespace muster
