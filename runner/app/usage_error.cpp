// SPDX-License-Identifier: Apache-2.0
// Formats command line errors and detects empty values.
#include "runner/app/usage_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "runner/core/text.h"

namespace muster {
namespace {

/// The innermost command that was named, and how it is typed: "muster history add".
struct NamedCommand {
  const CLI::App* app;
  std::string words = "muster";
};

NamedCommand named(const CLI::App& app) {
  NamedCommand found{&app};
  for (auto inner = app.get_subcommands(); !inner.empty(); inner = found.app->get_subcommands()) {
    found.app = inner.front();
    found.words += " " + found.app->get_name();
  }
  return found;
}

std::vector<std::string> commandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> optionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The word behind `named` on the command line that should have been a command; empty: there is none.
std::string wordInPlaceOfCommand(const NamedCommand& named, int argc, const char* const* argv) {
  const auto depth = std::count(named.words.begin(), named.words.end(), ' ') + 1;
  const std::string word = depth < argc ? argv[depth] : "";
  return word.starts_with("-") ? "" : word;
}

std::string commandText(const NamedCommand& named, int argc, const char* const* argv) {
  const std::vector<std::string> known = commandsOf(*named.app);
  const std::string word = wordInPlaceOfCommand(named, argc, argv);
  const std::string what = word.empty() ? "command missing"
                                        : fmt::format("there is no command \"{}\"{}", printable(word, 80),
                                                      didYouMean(word, known));
  return fmt::format("{}: {}; expected one of {}", named.words, what, join(known, ", "));
}

/// Words that nothing of the command takes; of options the mistyped name, and not also the value behind it.
std::string extraText(const NamedCommand& named, const std::vector<std::string>& words) {
  const auto option =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("-"); });
  if (option == words.end())
    return fmt::format("{}: unexpected \"{}\"", named.words, printable(words.front(), 200));
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("{}: there is no option {}{}", named.words, printable(name, 80),
                     didYouMean(name, optionsOf(*named.app)));
}

}  // namespace

std::string usageText(const CLI::App& app, const CLI::Error& error, int argc, const char* const* argv) {
  const NamedCommand command = named(app);
  std::string text;
  const auto extra = command.app->remaining();
  const bool lacksCommand =
      command.app->get_require_subcommand_min() > 0 && command.app->get_subcommands().empty();
  if (lacksCommand && (extra.empty() || !extra.back().starts_with("-")))
    text = commandText(command, argc, argv);
  else if (!extra.empty())
    // CLI11 keeps them in the order in which it gave them up.
    text = extraText(command, extra);
  else
    text = fmt::format("{}: {}", command.words, error.what());
  return fmt::format("{}; see `{} --help`", text, command.words);
}

std::string emptyValueText(const CLI::App& app) {
  const NamedCommand command = named(app);
  for (const CLI::Option* option : command.app->get_options()) {
    if (option->count() == 0 || option->get_expected_max() == 0 || option->get_positional()) continue;
    const auto& values = option->results();
    if (std::any_of(values.begin(), values.end(), [](const std::string& value) { return value.empty(); }))
      return fmt::format("{}: {} has an empty value; give one, or omit the option", command.words,
                         option->get_name());
  }
  return "";
}

}  // namespace muster
