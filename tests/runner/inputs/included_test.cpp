// SPDX-License-Identifier: Apache-2.0
// Frozen texts: they give back what went in, and a change of them is noticed.
#include "runner/inputs/included.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "runner/system/files.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

constexpr uint64_t kLimit = 1 << 20;

TEST(InputText, FreezesEveryKindOfTextAndGivesItBack) {
  TempDir folder;
  for (const std::string extension : {".toml", ".lua"})
    for (const std::string own : {"", "x = 1", "x = 1\n", "x = 1\r\n", "\n\n"})
      for (const std::string included :
           {"", "\n", "a", "a\n", "a\n\nb\n", "#| a\n", "\n#:included b.toml\n", "é\r\n"}) {
        folder.write("sub/a.toml", included);
        auto input = InputText::of(own, folder.path() / ("plan" + extension), kLimit, InputText::From::kDisk);
        ASSERT_TRUE(input.ok());
        EXPECT_EQ(input->frozen(), own) << "nothing is included yet";
        ASSERT_TRUE(input->include("sub/a.toml").ok());
        auto again = InputText::of(input->frozen(), "plan" + extension, kLimit, InputText::From::kFrozen);
        ASSERT_TRUE(again.ok()) << again.error().text();
        EXPECT_EQ(again->own(), own);
        ASSERT_EQ(again->files().size(), 1u);
        EXPECT_EQ(again->files()[0].path, "sub/a.toml");
        EXPECT_EQ(again->files()[0].text, included);
        EXPECT_EQ(again->files()[0].sha256, sha256Hex(included));
        EXPECT_EQ(again->frozen(), input->frozen());
      }
}

TEST(InputText, NoticesEveryChangeOfAFrozenFile) {
  TempDir folder;
  folder.write("a.toml", "min = 1\nmax = 2\n");
  auto input = InputText::of("own = 1\n", folder.path() / "plan.toml", kLimit, InputText::From::kDisk);
  ASSERT_TRUE(input.ok() && input->include("a.toml").ok());
  const std::string frozen = input->frozen();
  const size_t begin = frozen.find("#:included");
  int noticed = 0, harmless = 0;
  for (size_t i = begin; i < frozen.size(); ++i) {
    std::string changed = frozen;
    changed[i] = changed[i] == '7' ? '8' : '7';
    const auto again = InputText::of(changed, "plan.toml", kLimit, InputText::From::kFrozen);
    if (!again.ok())
      ++noticed;
    else if (again->files().empty() || again->files()[0].path != "a.toml")
      ++harmless;  // it is no included file any more, or that of another name: including a.toml fails
    else
      ADD_FAILURE() << changed;
  }
  EXPECT_GT(noticed, 80);
  EXPECT_LT(harmless, 20);
}

/// Messages quote what stands in a file.
TEST(InputText, IncludesNoFileThatIsMoreSecretThanItself) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
  TempDir folder;
  const auto plan = folder.write("plan.toml", "x = 1\n");
  const auto secret = folder.write("secret.toml", "password = 1\n");
  const auto included = [&] {
    return InputText::of("x = 1\n", plan, kLimit, InputText::From::kDisk)->include("secret.toml").ok();
  };
  std::filesystem::permissions(secret, std::filesystem::perms(0600));
  EXPECT_TRUE(included()) << "both are of one user";
  ASSERT_EQ(chown(plan.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(included());
  std::filesystem::permissions(secret, std::filesystem::perms(0644));
  EXPECT_TRUE(included());
}

}  // namespace
}  // namespace muster::testing
