// SPDX-License-Identifier: Apache-2.0
// Regular expressions by RE2, whose time grows with the length of the output alone, whatever a plan asks for.
#include <fmt/format.h>
#include <re2/re2.h>

#include <charconv>
#include <cmath>

#include "plugins/exec/values.h"
#include "runner/core/text.h"

namespace muster::exec {
namespace {

constexpr int64_t kMostMemory = 8 << 20;  // of a compiled expression and its automaton
constexpr size_t kMostMatches = 10'000;   // of one rule
constexpr const char* kValueGroup = "value";

RE2::Options options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  return options;
}

/// ^ and $ match at lines: outputs have lines.
RE2 compiled(const std::string& place) {
  return RE2("(?m:" + place + ")", options());
}

Result<double> numberFrom(const std::string& text, const ValueRule& rule) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number * rule.scale))
    return Error{ErrorCode::kProtocol,
                 fmt::format("found \"{}\"; expected a finite number", printable(text, 60)), ""};
  return number * rule.scale;
}

/// Adds what one match gave to the values of its rule.
Status takeMatch(const ValueRule& rule, LabelMap labels, const std::string& found, size_t first,
                 std::vector<Value>& values) {
  const bool text = std::string_view(rule.metric->unit) == "text";
  size_t at = first;
  while (at < values.size() && values[at].labels != labels) ++at;
  if (at < values.size() && text)
    return Error{ErrorCode::kProtocol, "more than one match, and a text has no further samples", ""};
  if (at == values.size())
    values.push_back({rule.name, rule.metric, std::move(labels), {}, text ? found : ""});
  if (text) return {};
  MUSTER_TRY(const double number, numberFrom(found, rule));
  values[at].samples.push_back(number);
  return {};
}

Status findAll(std::string_view output, const ValueRule& rule, std::vector<Value>& values) {
  const RE2 expression = compiled(rule.place);
  if (!expression.ok()) return checkRegex(rule.place);
  const size_t first = values.size();
  std::vector<re2::StringPiece> groups(static_cast<size_t>(expression.NumberOfCapturingGroups()) + 1);
  const re2::StringPiece whole(output.data(), output.size());
  size_t from = 0;
  for (size_t count = 0; from <= output.size(); ++count) {
    if (!expression.Match(whole, from, output.size(), RE2::UNANCHORED, groups.data(),
                          static_cast<int>(groups.size())))
      break;
    if (count == kMostMatches)
      return Error{ErrorCode::kProtocol, fmt::format("more than {} matches", kMostMatches), ""};
    LabelMap labels = rule.labels;
    std::string found;
    for (const auto& [name, group] : expression.NamedCapturingGroups()) {
      const std::string text(groups[static_cast<size_t>(group)]);
      if (name == kValueGroup)
        found = text;
      else if (!text.empty())
        labels[name] = text;
    }
    MUSTER_CHECK_OK(takeMatch(rule, std::move(labels), found, first, values));
    const auto end = static_cast<size_t>(groups[0].data() - output.data()) + groups[0].size();
    from = groups[0].empty() ? end + 1 : end;
  }
  if (values.size() > first) return {};
  return Error{ErrorCode::kProtocol, "its output has no match of " + printable(rule.place, 200), ""};
}

}  // namespace

Status checkRegex(const std::string& place) {
  const auto refuse = [&](const std::string& problem) {
    return Error{ErrorCode::kUsage, fmt::format("\"{}\" is refused: {}", printable(place, 120), problem),
                 "values"};
  };
  const RE2 expression = compiled(place);
  if (!expression.ok()) return refuse(printable(expression.error(), 200));
  const auto& groups = expression.NamedCapturingGroups();
  if (!groups.contains(kValueGroup)) return refuse("it has no group (?P<value>...)");
  for (const auto& [name, group] : groups)
    if (name != kValueGroup && !contains(valueLabels(), name))
      return refuse(fmt::format("its group \"{}\" is not a label{}; labels are {}", printable(name, 40),
                                didYouMean(name, valueLabels()), join(valueLabels(), ", ")));
  return {};
}

Result<std::vector<Value>> valuesByRegex(std::string_view output, const std::vector<ValueRule>& rules) {
  std::vector<Value> values;
  for (const ValueRule& rule : rules)
    MUSTER_CHECK_OK(findAll(output, rule, values).context("value " + rule.name));
  return values;
}

}  // namespace muster::exec
