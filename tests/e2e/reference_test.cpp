// SPDX-License-Identifier: Apache-2.0
// The generated pages: the reference of plugins, and the schemas that `muster check --schema` prints.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "runner/core/json.h"
#include "runner/core/text.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

/// The rows of the page's tables: name and meaning.
std::vector<std::pair<std::string, std::string>> rowsOf(const std::string& page) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const std::string& line : split(page, '\n')) {
    if (!line.starts_with("| `")) continue;
    const size_t bar = line.rfind(" | ");
    rows.emplace_back(line.substr(3, line.find('`', 3) - 3), line.substr(bar + 3));
  }
  return rows;
}

/// MUSTER_WRITE_GOLDEN=1 writes it.
TEST(Reference, ThePageOfTheSourcesIsUpToDate) {
  const auto result = runMuster({"plugins", "--reference"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const auto path = sourceDir() / "plugins/REFERENCE.md";
  if (const char* write = std::getenv("MUSTER_WRITE_GOLDEN"); write != nullptr && *write == '1') {
    std::ofstream(path) << result.out;
    GTEST_SKIP() << "wrote " << path;
  }
  EXPECT_TRUE(result.out == readWhole(path))
      << path
      << " is out of date; write it with: build/dist/bin/muster plugins --reference > plugins/REFERENCE.md";
}

TEST(Reference, HasEveryTestParameterAndMetricWithAMeaning) {
  const std::string page = runMuster({"plugins", "--reference"}).out;
  const auto rows = rowsOf(page);
  for (const auto& [name, meaning] : rows) {
    EXPECT_EQ(meaning.find("No description"), std::string::npos) << name;
    EXPECT_GE(std::count(meaning.begin(), meaning.end(), ' '), 2) << name << ": " << meaning;
  }
  // Another command lists the same from the same plugins: "    NAME" for each parameter and metric.
  size_t listed = 0;
  const auto plugins = parseJson(runMuster({"plugins", "--json"}).out);
  ASSERT_TRUE(plugins.ok());
  for (const Json& plugin : *plugins) {
    for (const Json& test : plugin["tests"])
      EXPECT_NE(page.find("\n## " + plugin["name"].get<std::string>() + "." + test.get<std::string>() + "\n"),
                std::string::npos)
          << test;
    std::istringstream list(runMuster({"plugins", plugin["name"].get<std::string>()}).out);
    for (std::string line; std::getline(list, line);) {
      if (!line.starts_with("    ") || line[4] == ' ') continue;
      ++listed;
      const std::string name = line.substr(4, line.find(' ', 4) - 4);
      EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.first == name; }))
          << name;
    }
  }
  EXPECT_GE(listed, 400u);
  EXPECT_EQ(listed, rows.size());
}

TEST(Reference, OfOnePluginHasNoOther) {
  const auto result = runMuster({"plugins", "memory", "--reference"});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_NE(result.out.find("## memory.peer"), std::string::npos);
  EXPECT_EQ(result.out.find("## compute"), std::string::npos);
  EXPECT_EQ(runMuster({"plugins", "memry", "--reference"}).exitCode, 2);
  EXPECT_EQ(runMuster({"plugins", "--reference", "--json"}).exitCode, 2);
}

TEST(Reference, SchemasArePrintedAsTheyAreInstalled) {
  for (const std::string kind : {"plan", "profile", "scenario", "waivers"}) {
    const auto result = runMuster({"check", "--schema", kind});
    EXPECT_EQ(result.exitCode, 0) << result.err;
    EXPECT_TRUE(result.out == readWhole(distDir() / "share/muster/plans/schemas" / (kind + ".json"))) << kind;
  }
}

TEST(Reference, ASchemaHasTheUsersOwnPluginsAndProfiles) {
  const TempDir dir;
  const std::string mine = readWhole(distDir() / "share/muster/plans/skus/host.toml");
  std::string renamed = mine;
  renamed.replace(renamed.find("name = \"host\""), 13, "name = \"mine\"");
  dir.write("skus/mine.toml", renamed);
  copyIncluded("skus", dir.path() / "skus");
  const auto fakes = withFakes();
  const auto result = runMuster(
      std::vector<std::string>{"check", "--schema", "plan", "--skus", (dir.path() / "skus").string()} +
      fakes);
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_NE(result.out.find("\"mine\""), std::string::npos);
  EXPECT_NE(result.out.find("\"fake-crash\""), std::string::npos);
}

TEST(Reference, ASchemaOfAnUnknownKindAndACheckOfNothingAreRefused) {
  EXPECT_EQ(runMuster({"check", "--schema", "plans"}).exitCode, 2);
  EXPECT_EQ(runMuster({"check", "--schema", "plan", plan("quickstart.toml")}).exitCode, 2);
  const auto nothing = runMuster({"check"});
  EXPECT_EQ(nothing.exitCode, 2);
  EXPECT_NE(nothing.err.find("plans is required"), std::string::npos) << nothing.err;
}

}  // namespace
}  // namespace muster::testing
