// SPDX-License-Identifier: Apache-2.0
// Writes the Markdown page of `muster plugins --reference`.
#include "runner/app/prepare/plugin_reference.h"

#include <fmt/format.h>

#include <vector>

#include "runner/core/text.h"
#include "runner/metrics/params.h"

namespace muster {
namespace {

constexpr const char* kHead = R"(# Reference: tests, parameters and metrics

Written by `muster plugins --reference` from the plugins' own descriptions. Do not edit it: change the description in the plugin,
then write this file again.

- A **parameter** is set in `[stage.params]` or varied in `[stage.matrix]` of a plan. A quantity is a text with a unit, such as
  `"5s"` or `"1 GiB"`, or a number in the unit given here.
- A **metric** is limited in `[[stage.expect]]` of a plan or `[[expect]]` of a SKU profile; its labels are the keys of `where`.
  Every metric also has the label `device`. *Better* says which direction is better.
- A **built-in limit** holds in every plan. An **informational** metric needs no limit. All others block acceptance under
  `--strict` if nothing limits them.
)";

/// Text of a plugin inside of a table cell: nothing in it is Markdown or HTML.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : printable(text, std::string::npos)) {
    if (std::string_view("\\|<*`[").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out.empty() ? "–" : out;
}

/// Text that a user copies. A backquote would end it, and a bar the cell.
std::string code(const std::string& text) {
  return text.find_first_of("`|") == std::string::npos ? "`" + printable(text, std::string::npos) + "`"
                                                       : cell(text);
}

std::string codes(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) parts.push_back(code(text));
  return parts.empty() ? "–" : join(parts, ", ");
}

/// A description of plugins is a phrase; in the page it stands among sentences.
std::string sentence(std::string text) {
  if (text.empty()) return "No description.";
  if (text.back() != '.') text += '.';
  return text;
}

std::string typeText(const ParamSpec& param) {
  if (param.type != ParamType::kList) return paramTypeName(param.type);
  return fmt::format("list of {}", paramTypeName(param.itemType));
}

/// The default as a plan writes it.
std::string asWritten(const ParamSpec& param) {
  return param.type == ParamType::kQuantity ? '"' + defaultText(param) + '"' : defaultText(param);
}

std::string paramRow(const ParamSpec& param) {
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(param.name), typeText(param),
                     code(asWritten(param)), cell(param.unit),
                     param.oneOf.empty() ? cell(rangeText(param)) : codes(param.oneOf),
                     cell(sentence(param.summary)));
}

std::string seriesText(Series series) {
  if (series == Series::kNone) return "";
  return " Sampled over time: limits also hold in its worst time interval.";
}

std::string metricText(const MetricSpec& metric) {
  std::string text = sentence(metric.summary);
  if (metric.informational) text += " Informational.";
  if (metric.optional) text += " Not available on all machines.";
  if (metric.leader) text += " Reported by rank 0 for its group.";
  if (!metric.backends.empty()) text += fmt::format(" Only on backend {}.", join(metric.backends, ", "));
  text += seriesText(metric.series);
  if (!metric.peak.empty()) text += fmt::format(" Theoretical peak: {}.", metric.peak);
  for (const Expectation& limit : metric.standing) {
    text += fmt::format(" Built-in limit: {}", limit.text());
    text += limit.severity == Severity::kWarn ? " (warning)." : ".";
  }
  return text;
}

std::string betterText(Direction direction) {
  return direction == Direction::kNone ? "–" : directionName(direction);
}

std::string metricRow(const std::string& plugin, const MetricSpec& metric) {
  return fmt::format("| {} | {} | {} | {} | {} |\n", code(plugin + "." + metric.name), cell(metric.unit),
                     betterText(metric.direction), codes(metric.labels), cell(metricText(metric)));
}

std::string testSection(const PluginSpec& plugin, const TestSpec& test) {
  std::string text = fmt::format("\n## {}.{}\n\n{}\n\nBackends: {}. Scopes: {}.\n", plugin.name, test.name,
                                 cell(sentence(test.summary)), join(test.backends, ", "), test.scopesText());
  if (test.params.empty()) text += "\nNo parameters.\n";
  if (!test.params.empty())
    text += "\n| parameter | type | default | unit | range | meaning |\n|---|---|---|---|---|---|\n";
  for (const ParamSpec& param : test.params) text += paramRow(param);
  if (test.metrics.empty()) return text + "\nNo metrics.\n";
  text += "\n| metric | unit | better | labels | meaning |\n|---|---|---|---|---|\n";
  for (const MetricSpec& metric : test.metrics) text += metricRow(plugin.name, metric);
  return text;
}

/// The part of a link that GitHub makes of a heading: letters in lower case, without dots.
std::string anchor(const std::string& heading) {
  std::string out;
  for (const char c : lowerCase(heading))
    if (c != '.') out += c;
  return out;
}

std::string contentsLine(const PluginSpec& plugin) {
  std::vector<std::string> links;
  for (const TestSpec& test : plugin.tests)
    links.push_back(fmt::format("[{0}](#{1})", test.name, anchor(plugin.name + "." + test.name)));
  return fmt::format("- `{}`: {}\n", plugin.name, join(links, ", "));
}

}  // namespace

std::string pluginReference(const Catalog& catalog, const std::string& plugin) {
  std::string contents, sections;
  for (const auto& [name, spec] : catalog.plugins) {
    if (!plugin.empty() && name != plugin) continue;
    contents += contentsLine(spec);
    for (const TestSpec& test : spec.tests) sections += testSection(spec, test);
  }
  return kHead + ("\n" + contents) + sections;
}

}  // namespace muster
