// SPDX-License-Identifier: Apache-2.0
// What a person reads about a TOML file that cannot be parsed: golden texts, and generated mistakes.
#include "runner/core/toml/toml_mistake.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runner/core/toml/toml_document.h"

namespace muster {
namespace {

std::string mistakeIn(const std::string& text) {
  const auto document = TomlDocument::parse(text, "plan.toml");
  return document.ok() ? "none" : document.error().text();
}

size_t countOf(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++count;
  return count;
}

TEST(TomlMistake, SaysWhatWasFoundAndWhatIsExpected) {
  const std::string value = "a text in quotes, a number, true, false, a list or a table";
  const std::pair<std::string, std::string> golden[] = {
      {"schema = 1\nname = node\n", "2:8: not valid TOML: name: found node; expected " + value +
                                        "; a text is written in quotes: name = \"node\""},
      {"timeout = 5m # minutes\n", "1:11: not valid TOML: timeout: found 5m; expected " + value +
                                       "; a text is written in quotes: timeout = \"5m\""},
      {"timeout = 5 m\n",
       "1:13: not valid TOML: found \"m\" after the value of timeout; expected the end of the line or a "
       "comment (#); a text is written in quotes: timeout = \"5 m\""},
      {"a = 01\n", "1:5: not valid TOML: a: found 01 (leading zeroes are prohibited); expected " + value +
                       "; a text is written in quotes: a = \"01\""},
      {"a = True\n", "1:5: not valid TOML: a: found True; expected true"},
      {"a = \u201cx\u201d\n", "1:5: not valid TOML: a: found \u201cx\u201d; expected straight quotes: \""},
      {"a = \n", "1:5: not valid TOML: a has no value; expected a = VALUE"},
      {"a = 1\nname\n", "2:1: not valid TOML: found \"name\"; expected KEY = VALUE"},
      {"a: 3\n", "1:1: not valid TOML: found \"a: 3\"; expected KEY = VALUE"},
      {"= 3\n", "1:1: not valid TOML: found \"= 3\"; expected KEY = VALUE, [TABLE] or a comment"},
      {"a = 1, b = 2\n",
       "1:6: not valid TOML: found \", b = 2\" after the value of a; expected the end of the line or a "
       "comment (#)"},
      {"a = 1\nname = \"node\nx = 1\n", "2:8: not valid TOML: the text that begins here has no closing \""},
      {"a = '''x\n\n", "1:5: not valid TOML: the text that begins here has no closing '''"},
      {"a = \"\\q\"\n",
       "1:7: not valid TOML: found a backslash that begins no escape sequence; expected \\\\ for a "
       "backslash, or the text in single quotes"},
      {"a = \"\x01\"\n", "1:6: not valid TOML: a text holds \"\\x01\"; expected no control characters"},
      {"a = [1, 2\nb = 3\n",
       "2:1: not valid TOML: found \"b = 3\" in a list, which begins at plan.toml:1:5; expected values with "
       "commas between them, then ]"},
      {"a = 1\nb = [}, 2]\n",
       "2:6: not valid TOML: found \"}, 2]\" in a list, which begins at plan.toml:2:5; expected values with "
       "commas between them, then ]"},
      {"a = {x = 1\n}\n",
       "1:11: not valid TOML: found the end of the line in an inline table, which begins at plan.toml:1:5; "
       "expected KEY = VALUE with commas between them and } on the same line"},
      {"[[stage]\nname = 1\n",
       "1:1: not valid TOML: found \"[[stage]\"; expected [NAME] for a table or [[NAME]] for one of a list"},
      {"[stage]]\n",
       "1:8: not valid TOML: found \"]\" after [stage]; expected the end of the line or a comment (#)"},
  };
  for (const auto& [text, message] : golden) EXPECT_EQ(mistakeIn(text), "plan.toml:" + message) << text;
}

TEST(TomlMistake, NamesTheFirstOfTwoDefinitions) {
  const std::string twice = "not valid TOML: the ";
  const std::pair<std::string, std::string> golden[] = {
      {"a = 1\nb = 2\na = 3\n", "3:1: " + twice + "key a is defined twice, first at plan.toml:1:1"},
      {"a = {x = 1, x = 2, y = 3}\n", "1:13: " + twice + "key x is defined twice, first at plan.toml:1:6"},
      {"[t]\na = 1\n# [t]\n[u]\n[t]\n",
       "5:1: " + twice + "table [t] is defined twice, first at plan.toml:1:1"},
      {"a = 1\na.b = 2\n", "2:1: " + twice + "key a.b is defined twice, first at plan.toml:1:1"},
      {"a.b = 1\na = 2\n", "2:1: " + twice + "key a is defined twice, first at plan.toml:1:1"},
      {"[a]\nb = 1\n[a.b]\n", "3:1: " + twice + "table [a.b] is defined twice, first at plan.toml:2:1"},
      {"a = {x = 1}\n[a.b]\ny = 1\n",
       "2:1: " + twice + "table [a.b] is defined twice, first at plan.toml:1:1"},
      {"[[s]]\n[s.p]\n[[s]]\n[s.p]\n[s.p]\n",
       "5:1: " + twice + "table [s.p] is defined twice, first at plan.toml:4:1"},
      {"s = \"\"\"\ns = 1\"\"\"\n\"s\" = 2\n",
       "3:1: " + twice + "key \"s\" is defined twice, first at plan.toml:1:1"},
  };
  for (const auto& [text, message] : golden)
    EXPECT_EQ(mistakeIn(text), "plan.toml:" + message + "; expected one definition") << text;
  EXPECT_EQ(mistakeIn("[[s]]\na = 1\n[s]\nb = 1\n"),
            "plan.toml:3:1: not valid TOML: the table [s] is defined twice, first at plan.toml:1:1; expected "
            "[[s]] for one more table of this list");
}

/// A valid document of random keys, values and tables, one statement a line, in `lines`.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  size_t below(size_t count) { return random_() % count; }

  std::string value(int depth = 0) {
    static const char* const kPlain[] = {"1",         "-2.5",     "true",       "\"text\"",
                                         "'a#b'",     "\"\\\"\"", "\"a = [1\"", "\"\"\"three\"\"\"",
                                         "\"é = 1\"", "[]",       "1e3",        "'''it's'''"};
    if (depth < 2 && below(5) == 0) return fmt::format("[{}, {}]", value(depth + 1), value(depth + 1));
    if (depth < 2 && below(5) == 0) return fmt::format("{{x = {}, \"y\" = {}}}", value(depth + 1), value(2));
    return kPlain[below(std::size(kPlain))];
  }

  /// Statements of one table, all with keys of their own; `begin` is the first one's number.
  void table(size_t begin) {
    const size_t count = 1 + below(5);
    for (size_t i = 0; i < count; ++i) {
      const std::string plain = fmt::format("k{}", begin + i);
      const std::string key = below(3) == 0 ? "\"" + plain + "\"" : below(3) == 0 ? plain + ".sub" : plain;
      lines.push_back(fmt::format("{}{} = {}{}", std::string(below(3), ' '), key, value(),
                                  below(4) == 0 ? " # k0 = 1" : ""));
      if (below(4) == 0) lines.push_back(below(2) == 0 ? "" : "# [k1]");
    }
  }

  void document() {
    table(0);
    for (size_t i = 0; i < 1 + below(3); ++i) {
      lines.push_back(below(2) == 0 ? fmt::format("[t{}.a]", i) : "[[list]]");
      table(0);
    }
  }

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }

  std::vector<std::string> lines;

 private:
  std::mt19937 random_;
};

bool isHeader(const std::string& line) {
  return line.starts_with("[");
}

TEST(TomlMistake, FindsBothPlacesOfAnyKeyThatIsDefinedTwice) {
  int tried = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Generator made(seed);
    made.document();
    ASSERT_EQ(mistakeIn(made.text()), "none") << made.text();
    // A key once more, on some line below it in the same table.
    const size_t first = made.below(made.lines.size());
    const std::string line = made.lines[first];
    if (line.find('=') == std::string::npos || line.starts_with("#") || isHeader(line)) continue;
    size_t last = first + 1;
    while (last < made.lines.size() && !isHeader(made.lines[last])) ++last;
    const size_t again = first + 1 + made.below(last - first);
    const size_t column = line.find_first_not_of(' ') + 1;
    made.lines.insert(made.lines.begin() + static_cast<long>(again),
                      line.substr(column - 1, line.find(" =") - column + 1) + " = 7");
    const std::string said = mistakeIn(made.text());
    EXPECT_TRUE(said.starts_with(fmt::format("plan.toml:{}:1: not valid TOML: the key ", again + 1)))
        << said << "\n"
        << made.text();
    EXPECT_NE(said.find(fmt::format(" is defined twice, first at plan.toml:{}:{};", first + 1, column)),
              std::string::npos)
        << said << "\n"
        << made.text();
    ++tried;
  }
  EXPECT_GT(tried, 200);
}

TEST(TomlMistake, SaysOfAnyDamageInPlainWordsWhatIsExpected) {
  int broken = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator made(seed);
    made.document();
    std::string text = made.text();
    const size_t at = made.below(text.size());
    static const char kOdd[] = "\"'[]{}=,.#\\\n x7";
    if (made.below(2) == 0)
      text.erase(at, 1);
    else
      text.insert(at, 1, kOdd[made.below(sizeof kOdd - 1)]);
    const auto document = TomlDocument::parse(text, "plan.toml");
    if (document.ok()) continue;
    ++broken;
    const std::string said = document.error().message;
    EXPECT_EQ(said.find("Error while parsing"), std::string::npos) << said << "\n" << text;
    EXPECT_EQ(said.find("saw "), std::string::npos) << said << "\n" << text;
    const bool closing = said.find("has no closing") != std::string::npos;
    EXPECT_EQ(countOf(said, "; expected "), closing ? 0u : 1u) << said << "\n" << text;
    const int line = std::stoi(document.error().where.substr(document.error().where.find(':') + 1));
    EXPECT_GE(line, 1);
    EXPECT_LE(line, std::count(text.begin(), text.end(), '\n') + 1) << said << "\n" << text;
  }
  EXPECT_GT(broken, 1000);
}

}  // namespace
}  // namespace muster
