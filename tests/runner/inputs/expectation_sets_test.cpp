// SPDX-License-Identifier: Apache-2.0
// Named sets of expectations: whose fields count, which metrics are meant, and what is refused.
#include "runner/inputs/expectation_sets.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runner/core/toml/toml_document.h"

namespace muster::testing {
namespace {

struct Expanded {
  std::vector<ExpectationTable> tables;
  std::string problems;  ///< "pointer: message", one per line
};

Expanded expanded(const std::string& toml, const std::string& measured = "") {
  Expanded result;
  const auto document = TomlDocument::parse(toml, "sets.toml");
  EXPECT_TRUE(document.ok()) << document.error().text();
  ExpectationUser user;
  user.name = "compute.gemm";
  user.complain = [&](const std::string& pointer, const Mistake& mistake) {
    result.problems += pointer + ": " + mistake.message + "\n";
  };
  if (!measured.empty())
    user.measures = [&](const std::string& metric) {
      return ("," + measured + ",").find("," + metric + ",") != std::string::npos;
    };
  checkExpectationSets(document->root(), user.complain);
  result.tables = expandExpectations(document->root(), "/expect", user);
  return result;
}

/// The tables as JSON, one per line.
std::string tablesOf(const Expanded& expanded) {
  std::string text = expanded.problems;
  for (const ExpectationTable& one : expanded.tables) text += dumpJson(one.table) + "\n";
  return text;
}

TEST(ExpectationSets, AUseMayOverrideWhatTheSetSays) {
  const Expanded result = expanded(
      "expect = [\"steady\", { set = \"steady\", cv_max = 0.1, severity = \"fail\" }, { metric = \"c.time\", "
      "max = 1 }]\n"
      "[expectations.steady]\nmetric = \"c.rate\"\ncv_max = 0.05\nseverity = \"warn\"\n");
  EXPECT_EQ(tablesOf(result),
            "{\"metric\":\"c.rate\",\"cv_max\":0.05,\"severity\":\"warn\"}\n"
            "{\"metric\":\"c.rate\",\"cv_max\":0.1,\"severity\":\"fail\"}\n"
            "{\"metric\":\"c.time\",\"max\":1}\n");
  ASSERT_EQ(result.tables.size(), 3u);
  EXPECT_EQ(result.tables[0].limitPlace(), "/expectations/steady");
  EXPECT_EQ(result.tables[1].limitPlace(), "/expect/1");
  EXPECT_EQ(result.tables[1].placeOf("metric"), "/expectations/steady/metric");
  EXPECT_EQ(result.tables[1].placeOf("cv_max"), "/expect/1/cv_max");
  EXPECT_EQ(result.tables[1].placeOf("where.op"), "/expect/1/where");
  EXPECT_EQ(result.tables[1].number, 2u);
}

TEST(ExpectationSets, OfASetsMetricsThoseThatTheTestMeasuresAreMeant) {
  const std::string sets =
      "[[expectations.peers]]\nmetric = [\"c.rate\", \"m.rate\", \"c.best\"]\nwithin = 0.1\n"
      "[[expectations.peers]]\nmetric = \"m.latency\"\nwithin = 0.2\n";
  EXPECT_EQ(tablesOf(expanded("expect = [\"peers\"]\n" + sets, "c.rate,c.best,c.odd")),
            "{\"metric\":\"c.rate\",\"within\":0.1}\n{\"metric\":\"c.best\",\"within\":0.1}\n");
  EXPECT_EQ(tablesOf(expanded("expect = [\"peers\"]\n" + sets, "m.latency")),
            "{\"metric\":\"m.latency\",\"within\":0.2}\n");
  EXPECT_EQ(tablesOf(expanded("expect = [\"peers\"]\n" + sets, "t.loss")),
            "/expect/0: no metric of this set is measured by compute.gemm; the set is about c.rate, m.rate, "
            "c.best, "
            "m.latency\n");
  EXPECT_EQ(expanded("expect = [{ set = \"peers\", metric = \"t.loss\" }]\n" + sets, "c.rate").tables.size(),
            2u)
      << "a metric of the use itself is checked by its reader";
  EXPECT_EQ(expanded("expect = [\"peers\"]\n" + sets).tables.size(), 4u)
      << "a profile measures whatever there is";
}

TEST(ExpectationSets, AListOfMetricsIsOneExpectationOfEach) {
  EXPECT_EQ(tablesOf(expanded("expect = [{ metric = [\"a.x\", \"a.y\"], min = 1 }]\n")),
            "{\"metric\":\"a.x\",\"min\":1}\n{\"metric\":\"a.y\",\"min\":1}\n");
  EXPECT_EQ(tablesOf(expanded("expect = [{ metric = [], min = 1 }]\n")),
            "/expect/0/metric: metric: found an empty list; expected at least one metric\n");
  EXPECT_EQ(tablesOf(expanded("expect = [{ metric = [\"a.x\", \"a.x\"], min = 1 }]\n")),
            "/expect/0/metric/1: metric: \"a.x\" stands twice in this list; once is enough\n");
}

TEST(ExpectationSets, MayUseOthersButNotThemselves) {
  EXPECT_EQ(tablesOf(expanded("expect = [\"all\"]\n[[expectations.all]]\nset = \"base\"\nmin = 2\n"
                              "[[expectations.all]]\nmetric = \"a.y\"\nmin = 3\n[expectations.base]\nmetric "
                              "= \"a.x\"\nmin = 1\n")),
            "{\"metric\":\"a.x\",\"min\":2}\n{\"metric\":\"a.y\",\"min\":3}\n");
  EXPECT_EQ(
      tablesOf(expanded("expect = [\"a\"]\n[expectations.a]\nset = \"b\"\n[expectations.b]\nset = \"a\"\n")),
      "/expectations/b/set: the set \"a\" uses itself: a -> b -> a\n");
  EXPECT_EQ(tablesOf(expanded("expect = [\"a\"]\n[expectations.a]\nset = \"a\"\n")),
            "/expectations/a/set: the set \"a\" uses itself: a -> a\n");
}

TEST(ExpectationSets, RefuseWhatIsNoSet) {
  EXPECT_EQ(tablesOf(expanded("expect = [\"peer\"]\n[expectations.peers]\nmetric = \"a.x\"\nmin = 1\n")),
            "/expect/0: no set \"peer\" among [expectations]; did you mean \"peers\"?\n");
  EXPECT_EQ(tablesOf(expanded("expect = [\"peers\"]\n")),
            "/expect/0: no set \"peers\" among [expectations]; there is none\n");
  EXPECT_EQ(tablesOf(expanded("expect = [{ set = 3 }, 4]\n")),
            "/expect/0/set: set: found 3; expected the name of a set of [expectations]\n"
            "/expect/1: found 4; expected a table, or the name of a set of [expectations]\n");
  EXPECT_EQ(tablesOf(expanded("expect = []\nexpectations = 3\n")),
            "/expectations: expectations: found 3; expected a table of sets: [expectations.NAME]\n");
  EXPECT_EQ(tablesOf(expanded("expect = []\n[expectations]\n\"a b\" = { min = 1 }\nc = []\nd = [1]\n")),
            "/expectations/a b: expectations: found \"a b\"; expected a name of letters, digits, '_', '-' "
            "and '.', at most "
            "64 long\n/expectations/c: expectations.c: found an empty list; expected at least one table\n"
            "/expectations/d/0: expectations.d: found 1; expected a table\n");
  EXPECT_EQ(tablesOf(expanded("expect = []\n[expectations.unused]\nmetric = \"a.x\"\nmn = 1\n")),
            "/expectations/unused/mn: unknown key \"mn\" in an expectation; did you mean \"min\"?\n")
      << "also where nobody uses it";
}

/// Also where the last of them is empty.
TEST(ExpectationSets, DoublingInEachLevelIsBounded) {
  for (const char* last : {R"([{metric = "a.x", min = 1}])", "[]"}) {
    std::string text = "expect = [\"s0\"]\n[expectations]\n";
    for (int i = 0; i < 40; ++i)
      text += fmt::format("s{0} = [{{set = \"s{1}\"}}, {{set = \"s{1}\"}}]\n", i, i + 1);
    const Expanded result = expanded(text + "s40 = " + last + "\n");
    EXPECT_TRUE(result.tables.empty());
    EXPECT_THAT(
        result.problems,
        ::testing::HasSubstr("/expect/0: found more than 1000 expectations; expected at most 1000\n"));
  }
}

/// A text that no reader takes is not copied first, and neither are many that together fill the memory.
TEST(ExpectationSets, TextsAreBoundedBeforeTheyAreCopied) {
  const auto used = [](const std::string& more) {
    std::string text = "expect = [\"b\"]\n[expectations.a]\nmetric = [\"c.x\", \"c.y\"]\nmin = 1\n" + more;
    for (int i = 0; i < 500; ++i) text += "[[expectations.b]]\nset = \"a\"\n";
    return expanded(text);
  };
  EXPECT_EQ(used("source = \"" + std::string(4097, 's') + "\"\n").problems,
            "/expectations/a/source: `source` is longer than 4096 bytes\n");
  EXPECT_EQ(used("source = \"" + std::string(4096, 's') + "\"\n").tables.size(), 1000u);
  EXPECT_EQ(
      used("contains = [\"" + std::string(200'000, 'w') + "\"]\n").problems,
      "/expectations/a/contains: with it the expectations of this list take more than 32 MiB; shorten its "
      "sets, or use them less often\n");
}

/// What is read is written with one item for each, and must be read again.
TEST(ExpectationSets, ComeToNoMoreThanAListMayHave) {
  const auto items = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "[[expect]]\nmetric = [\"a.x\", \"a.y\"]\nmin = 1\n";
    return expanded(text);
  };
  EXPECT_EQ(items(500).tables.size(), 1000u);
  EXPECT_EQ(items(500).problems, "");
  EXPECT_EQ(items(501).problems, "/expect/500: found more than 1000 expectations; expected at most 1000\n");
}

/// Over generated documents: what comes out is what each use asks for, in order, field by field.
TEST(ExpectationSets, GiveWhatTheirUsersAskForInGeneratedDocuments) {
  std::mt19937 random(20261123);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::vector<std::string> fields = {"min", "max", "severity", "source", "remedy", "statistic"};
  for (int round = 0; round < 300; ++round) {
    Json sets = Json::object();
    const int count = 1 + below(4);
    for (int s = 0; s < count; ++s) {
      Json table = {{"metric", "a.m" + std::to_string(below(3))}};
      for (const std::string& field : fields)
        if (below(2) == 0) table[field] = field + std::to_string(s);
      if (s > 0 && below(2) == 0) table["set"] = "s" + std::to_string(below(s));
      sets["s" + std::to_string(s)] = table;
    }
    Json list = Json::array(), wanted = Json::array();
    for (int i = 0; i < 5; ++i) {
      const std::string set = "s" + std::to_string(below(count));
      Json own = {{"set", set}};
      if (below(2) == 0) own["source"] = "own";
      list.push_back(below(3) == 0 ? Json(set) : own);
      // The chain of sets from the innermost out, each over what came before.
      std::vector<Json> chain = {list.back().is_string() ? Json{{"set", set}} : own};
      while (chain.back().contains("set")) chain.push_back(sets[chain.back()["set"].get<std::string>()]);
      Json table = Json::object();
      for (auto it = chain.rbegin(); it != chain.rend(); ++it)
        for (const auto& [key, value] : it->items())
          if (key != "set") table[key] = value;
      wanted.push_back(table);
    }
    ExpectationUser user;
    user.complain = [](const std::string& pointer, const Mistake& mistake) {
      FAIL() << pointer << mistake.message;
    };
    const auto found = expandExpectations({{"expectations", sets}, {"expect", list}}, "/expect", user);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(Json::parse(wanted[i].dump()), Json::parse(found[i].table.dump())) << round;
  }
}

}  // namespace
}  // namespace muster::testing
