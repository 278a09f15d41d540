// SPDX-License-Identifier: Apache-2.0
// TOML files that include others: what wins, in which order, with which places; hostile files.
#include "runner/inputs/toml_input.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>

#include "tests/support/process.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = 1 << 20;

/// The document as JSON, or the problem without the folder's path.
std::string rootOf(const TempDir& folder, const std::string& name = "plan.toml") {
  const fs::path path = folder.path() / name;
  auto input = InputText::of(readWhole(path), path, kMostBytes, InputText::From::kDisk);
  if (!input.ok()) return input.error().message;
  const auto document = readTomlInput(*input);
  std::string text =
      document.ok() ? dumpJson(document->root()) : document.error().where + ": " + document.error().message;
  for (size_t at; (at = text.find(folder.path().string() + "/")) != std::string::npos;)
    text.erase(at, folder.path().string().size() + 1);
  if (document.ok()) {
    // The frozen text gives the same, and nothing is read for it.
    const std::string frozen = input->frozen();
    auto again = InputText::of(frozen, "/nonexistent/plan.toml", kMostBytes, InputText::From::kFrozen);
    EXPECT_TRUE(again.ok()) << again.error().text();
    if (again.ok()) {
      const auto thawed = readTomlInput(*again);
      EXPECT_TRUE(thawed.ok());
      if (thawed.ok()) {
        EXPECT_EQ(thawed->root(), document->root());
      }
      EXPECT_EQ(again->frozen(), frozen);
    }
  }
  return text;
}

TEST(TomlInput, WhatIncludesLiesOverWhatIsIncluded) {
  TempDir folder;
  folder.write(
      "plan.toml",
      "include = [\"a.toml\", \"sub/b.toml\"]\nname = \"p\"\n[t]\nx = 1\n[[stage]]\nname = \"own\"\n");
  folder.write("a.toml", "name = \"a\"\n[t]\nx = 2\ny = 2\nlist = [1]\n[[stage]]\nname = \"of a\"\n");
  folder.write("sub/b.toml",
               "schema = 1\ninclude = [\"c.toml\"]\n[t]\ny = 3\nlist = [2]\n[[stage]]\nname = \"of b\"\n");
  folder.write("sub/c.toml", "[t]\nz = 4\n");
  EXPECT_EQ(rootOf(folder),
            "{\"name\":\"p\",\"t\":{\"x\":1,\"y\":3,\"list\":[2],\"z\":4},"
            "\"stage\":[{\"name\":\"of a\"},{\"name\":\"of b\"},{\"name\":\"own\"}],\"schema\":1}");
}

TEST(TomlInput, ASetAsATableIsAListOfOne) {
  const std::string below = "metric = \"below\"\n", over = "metric = \"over\"\n";
  for (const char* a : {"[expectations.s]\n", "[[expectations.s]]\n"})
    for (const char* b : {"[expectations.s]\n", "[[expectations.s]]\n"}) {
      TempDir folder;
      folder.write("plan.toml", "include = [\"a.toml\"]\n" + (a + over));
      folder.write("a.toml", b + below);
      const bool tables = std::string(a) == b && std::string(a).find("[[") == std::string::npos;
      EXPECT_EQ(rootOf(folder), tables ? R"({"expectations":{"s":{"metric":"over"}}})"
                                       : R"({"expectations":{"s":[{"metric":"below"},{"metric":"over"}]}})");
    }
}

TEST(TomlInput, ValuesKeepTheirPlaces) {
  TempDir folder;
  folder.write("plan.toml", "include = [\"a.toml\"]\n[t]\nx = 1\n[[stage]]\nname = \"own\"\n");
  folder.write("a.toml", "[t]\n\nx = 2\ny = 2\n[[stage]]\nname = \"of a\"\n");
  const fs::path path = folder.path() / "plan.toml";
  auto input = InputText::of(readWhole(path), path, kMostBytes, InputText::From::kDisk);
  const auto document = readTomlInput(*input);
  ASSERT_TRUE(document.ok());
  const std::string top = folder.path().string();
  EXPECT_EQ(document->place("/t/x"), top + "/plan.toml:3:1");
  EXPECT_EQ(document->place("/t/y"), top + "/a.toml:4:1");
  EXPECT_EQ(document->place("/stage/0/name"), top + "/a.toml:6:1");
  EXPECT_EQ(document->place("/stage/1/name"), top + "/plan.toml:5:1");
}

TEST(TomlInput, AFileThatIsIncludedTwiceCountsOnce) {
  TempDir folder;
  folder.write("plan.toml", "include = [\"a.toml\", \"b.toml\", \"a.toml\"]\n");
  folder.write("a.toml", "include = [\"c.toml\"]\n");
  folder.write("b.toml", "include = [\"c.toml\"]\n");
  folder.write("c.toml", "[[stage]]\nname = \"once\"\n");
  EXPECT_EQ(rootOf(folder), "{\"stage\":[{\"name\":\"once\"}]}");
}

TEST(TomlInput, RefusesCyclesNamingTheChain) {
  TempDir folder;
  folder.write("plan.toml", "include = [\"a.toml\"]\n");
  folder.write("a.toml", "\ninclude = [\"b.toml\"]\n");
  folder.write("b.toml", "include = [\"a.toml\"]\n");
  EXPECT_EQ(rootOf(folder), "b.toml:1:12: include: a.toml includes itself: a.toml -> b.toml -> a.toml");
  folder.write("a.toml", "include = [\"a.toml\"]\n");
  EXPECT_EQ(rootOf(folder), "a.toml:1:12: include: a.toml includes itself: a.toml -> a.toml");
  folder.write("a.toml", "include = [\"plan.toml\"]\n");
  EXPECT_EQ(rootOf(folder), "plan.toml:1:12: include: a.toml includes itself: a.toml -> plan.toml -> a.toml");
}

TEST(TomlInput, RefusesPathsThatLeadElsewhere) {
  TempDir folder, other;
  other.write("secret.toml", "name = \"secret\"\n");
  for (const std::string path : {"../secret.toml", "/etc/passwd", "a/../../b.toml", "./a.toml", "",
                                 "a//b.toml", ".hidden.toml", "-x.toml", "a b.toml", "~/a.toml"}) {
    folder.write("plan.toml", "include = [\"" + path + "\"]\n");
    EXPECT_NE(rootOf(folder).find("expected a path of plain names below the folder of this file"),
              std::string::npos)
        << path;
  }
  fs::create_symlink(other.path() / "secret.toml", folder.path() / "link.toml");
  folder.write("plan.toml", "include = [\"link.toml\"]\n");
  EXPECT_NE(rootOf(folder).find("link.toml is a link to "), std::string::npos) << rootOf(folder);
  fs::create_directory_symlink(other.path(), folder.path() / "there");
  folder.write("plan.toml", "include = [\"there/secret.toml\"]\n");
  EXPECT_NE(rootOf(folder).find("expected a file below"), std::string::npos) << rootOf(folder);
  // As a ConfigMap of Kubernetes has them: links to files below the same folder.
  folder.write("data/site.toml", "name = \"site\"\n");
  fs::create_symlink("data/site.toml", folder.path() / "site.toml");
  folder.write("plan.toml", "include = [\"site.toml\"]\n");
  EXPECT_EQ(rootOf(folder), "{\"name\":\"site\"}");
}

TEST(TomlInput, RefusesWhatIsNoFileOfThisKind) {
  TempDir folder;
  const auto problem = [&](const std::string& include, const std::string& text = "") {
    folder.write("plan.toml", "include = " + include + "\n");
    if (!text.empty()) folder.write("a.toml", text);
    return rootOf(folder);
  };
  EXPECT_EQ(problem("3"),
            "plan.toml:1:1: include: found 3; expected a list of paths, such as [\"site.toml\"]");
  EXPECT_EQ(problem("[3]"), "plan.toml:1:12: include: found 3; expected a path in quotes");
  EXPECT_EQ(problem("[\"a.toml\"]"),
            "plan.toml:1:12: include: cannot read a.toml: No such file or directory");
  EXPECT_EQ(problem("[\"a.lua\"]"), "plan.toml:1:12: include: found \"a.lua\"; expected a TOML file, .toml");
  EXPECT_NE(problem("[\"a.toml\"]", "x = \n").find("a.toml:1:"), std::string::npos);
  EXPECT_EQ(problem("[\"a.toml\"]", "schema = 2\n"),
            "a.toml:1:1: schema: found 2; expected 1 in an included file, or none");
  EXPECT_NE(problem("[\"a.toml\"]", "# \xff\n").find("a.toml:1:"), std::string::npos);
  EXPECT_NE(problem("[\"a.toml\"]", std::string(kMostBytes + 1, '#')).find("cannot read a.toml"),
            std::string::npos);
  fs::create_directory(folder.path() / "d.toml");
  EXPECT_NE(problem("[\"d.toml\"]").find("cannot read d.toml"), std::string::npos);
}

TEST(TomlInput, IsBounded) {
  TempDir folder;
  const auto name = [](int i) { return "f" + std::to_string(i) + ".toml"; };
  for (int i = 0; i < 20; ++i) folder.write(name(i), "include = [\"" + name(i + 1) + "\"]\n");
  folder.write(name(20), "");
  folder.write("plan.toml", "include = [\"" + name(0) + "\"]\n");
  EXPECT_EQ(rootOf(folder), "f7.toml:1:12: include: files include each other more than 8 levels deep");
  folder.write("plan.toml", "include = [\"" + name(13) + "\"]\n");
  EXPECT_EQ(rootOf(folder), "{}") << "eight levels are fine";
  std::string list;
  for (int i = 0; i < 65; ++i) {
    folder.write("w" + std::to_string(i) + ".toml", "");
    list += "\"w" + std::to_string(i) + ".toml\",";
  }
  folder.write("plan.toml", "include = [" + list + "]\n");
  EXPECT_NE(rootOf(folder).find("more than 64 files are included"), std::string::npos) << rootOf(folder);
  std::string half = "x = '''";
  half += std::string(kMostBytes / 2, ' ') + "'''\n";
  folder.write("a.toml", half);
  folder.write("b.toml", half);
  folder.write("plan.toml", "include = [\"a.toml\", \"b.toml\"]\n");
  EXPECT_NE(rootOf(folder).find("more than 1048576 bytes in all"), std::string::npos) << rootOf(folder);
  std::string keys;
  for (int i = 0; i < 600; ++i) keys += "k" + std::to_string(i) + " = 1\n";
  folder.write("a.toml", keys);
  folder.write(
      "plan.toml", "include = [\"a.toml\"]\n" + [&] {
        std::string more;
        for (int i = 0; i < 600; ++i) more += "o" + std::to_string(i) + " = 1\n";
        return more;
      }());
  EXPECT_NE(rootOf(folder).find("a table has more than 1000 keys"), std::string::npos);
}

TEST(TomlInput, ReadsNothingForATextThatIsNotFrozen) {
  TempDir folder;
  folder.write("a.toml", "name = \"a\"\n");
  auto input = InputText::of("include = [\"a.toml\"]\n", folder.path() / "plan.toml", kMostBytes,
                             InputText::From::kFrozen);
  ASSERT_TRUE(input.ok());
  const auto document = readTomlInput(*input);
  ASSERT_FALSE(document.ok());
  EXPECT_NE(document.error().message.find("a.toml is not part of this text"), std::string::npos);
}

/// Over generated trees of files: the document is what laying the files over each other by hand gives.
TEST(TomlInput, MergesGeneratedTreesAsTheReadmeSays) {
  std::mt19937 random(20261123);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 60; ++round) {
    TempDir folder;
    const int count = 2 + below(6);
    std::vector<std::vector<int>> includes(static_cast<size_t>(count));
    std::vector<std::map<std::string, int>> values(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      std::string text = "include = [";
      for (int j = i + 1; j < count; ++j)
        if (below(3) == 0) {
          includes[static_cast<size_t>(i)].push_back(j);
          text += "\"f" + std::to_string(j) + ".toml\",";
        }
      text += "]\n[t]\n";
      for (const char* key : {"a", "b", "c", "d"})
        if (below(2) == 0) {
          values[static_cast<size_t>(i)][key] = 10 * i + below(10);
          text += std::string(key) + " = " + std::to_string(values[static_cast<size_t>(i)][key]) + "\n";
        }
      text += "[[stage]]\nname = \"s" + std::to_string(i) + "\"\n";
      folder.write(i == 0 ? "plan.toml" : "f" + std::to_string(i) + ".toml", text);
    }
    // Depth first, each file once; a file comes after those that it includes, so the last one to say a value
    // wins.
    std::vector<int> order;
    std::set<int> seen = {0};
    const std::function<void(int)> visit = [&](int i) {
      for (const int j : includes[static_cast<size_t>(i)])
        if (seen.insert(j).second) visit(j);
      order.push_back(i);
    };
    visit(0);
    std::map<std::string, int> wanted;
    std::string stages;
    for (const int i : order) {
      for (const auto& [key, value] : values[static_cast<size_t>(i)]) wanted[key] = value;
      stages += " s" + std::to_string(i);
    }
    const fs::path path = folder.path() / "plan.toml";
    auto input = InputText::of(readWhole(path), path, kMostBytes, InputText::From::kDisk);
    const auto document = readTomlInput(*input);
    ASSERT_TRUE(document.ok()) << document.error().text();
    std::map<std::string, int> found;
    for (const auto& [key, value] : document->root()["t"].items()) found[key] = value.get<int>();
    EXPECT_EQ(found, wanted) << round;
    std::string foundStages;
    for (const Json& stage : document->root()["stage"]) foundStages += " " + stage["name"].get<std::string>();
    EXPECT_EQ(foundStages, stages) << round;
  }
}

}  // namespace
}  // namespace muster::testing
