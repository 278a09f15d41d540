// SPDX-License-Identifier: Apache-2.0
// The reference page is one table row per parameter and metric, whatever a plugin's texts hold.
#include "runner/app/prepare/plugin_reference.h"

#include <gtest/gtest.h>

#include "runner/core/text.h"

namespace muster {
namespace {

Catalog catalogOf(const std::string& describe) {
  Catalog catalog;
  const auto json = parseJson(describe);
  EXPECT_TRUE(json.ok());
  const auto spec = pluginSpecFromDescribe("mine", *json);
  EXPECT_TRUE(spec.ok()) << spec.error().text();
  if (spec.ok()) catalog.plugins["mine"] = *spec;
  return catalog;
}

std::string rowOf(const std::string& page, const std::string& name) {
  for (const std::string& line : split(page, '\n'))
    if (line.starts_with("| `" + name + "` |")) return line;
  return "";
}

TEST(PluginReference, SaysTypeDefaultUnitRangeAndMeaning) {
  const std::string page =
      pluginReference(catalogOf(R"({"tests": [{"name": "t", "backends": ["host"], "scopes": ["device"],
    "params": [
      {"name": "time", "type": "quantity", "unit": "s", "default": "2s", "min": "1s", "max": "1h", "summary": "how long"},
      {"name": "ops", "type": "list", "items": "string", "default": ["a"], "one_of": ["a", "b"]}],
    "metrics": [{"name": "rate", "unit": "B/s", "direction": "higher", "labels": ["op"], "summary": "rate",
                 "informational": true, "standing": {"min": "1 GB/s"}}]}]})"));
  EXPECT_EQ(rowOf(page, "time"), "| `time` | quantity | `\"2s\"` | s | from 1s to 1h | how long. |");
  EXPECT_EQ(rowOf(page, "ops"), "| `ops` | list of string | `[\"a\"]` | – | `a`, `b` | No description. |");
  EXPECT_EQ(rowOf(page, "mine.rate"),
            "| `mine.rate` | B/s | higher | `op` | rate. Informational. Built-in limit: min 1 GB/s in every "
            "sample. |");
}

TEST(PluginReference, HostileTextsStayInTheirCells) {
  const std::string page =
      pluginReference(catalogOf(R"({"tests": [{"name": "t", "backends": ["host"], "scopes": ["device"],
    "params": [{"name": "p", "type": "string", "default": "`|x", "summary": "a | b\n# c <script> `d` \u001b[31m"}],
    "metrics": []}]})"));
  const std::string row = rowOf(page, "p");
  EXPECT_EQ(row.find('<', 0), row.find("\\<") + 1) << row;
  size_t bars = 0;
  for (size_t at = 0; at < row.size(); ++at)
    bars += row[at] == '|' && (at == 0 || row[at - 1] != '\\') ? 1 : 0;
  EXPECT_EQ(bars, 7u) << row;
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find("\n# c"), std::string::npos);
}

}  // namespace
}  // namespace muster
