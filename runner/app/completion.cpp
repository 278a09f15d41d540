// SPDX-License-Identifier: Apache-2.0
// See completion.h. Commands and options are taken from the command line's own description.
#include "runner/app/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "runner/core/text.h"

namespace muster {
namespace {

/// What the shell needs to know of all commands.
struct Words {
  std::map<std::string, std::string> next;  ///< "history add": its options and commands
  std::vector<std::string> folders;         ///< "run --out": options whose value is a folder
  std::vector<std::string> files;           ///< ... a file
  std::vector<std::string> texts;           ///< ... something that only the user knows
  std::vector<std::string> groups;          ///< commands that have commands
};

std::vector<std::string>* valuesOf(const CLI::Option& option, Words& words) {
  const std::string type = option.get_type_name();
  if (type == "DIR" || type == "RUN") return &words.folders;
  return type == "FILE" || type == "SCENARIO" ? &words.files : &words.texts;
}

void collect(const CLI::App& app, const std::string& path, Words& words) {
  std::vector<std::string> next;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    next.push_back(command->get_name());
    collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), words);
  }
  if (!next.empty() && !path.empty()) words.groups.push_back(path);
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) {
      next.push_back("--" + name);
      if (option->get_expected_max() > 0) valuesOf(*option, words)->push_back(path + " --" + name);
    }
  words.next[path] = join(next, " ");
}

/// Patterns of a shell's `case`: "run --out"|"run --resume".
std::string patterns(const std::vector<std::string>& words) {
  return "\"" + join(words, "\"|\"") + "\"";
}

// %N are filled in; everything else is shell. `IFS` keeps paths with spaces whole, in bash and in zsh.
constexpr const char* kScript = R"bash(# completion for muster, bash: source <(muster completion bash)
# zsh: autoload -U +X bashcompinit && bashcompinit && source <(muster completion bash)
_muster() {
  local IFS=$'\n' cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= kind=names
  [ "$COMP_CWORD" -gt 1 ] && command=${COMP_WORDS[1]}
  case $command in
    %GROUPS%) [ "$COMP_CWORD" -gt 2 ] && command="$command ${COMP_WORDS[2]}" ;;
  esac
  case "$command $prev" in
    "run --scope") words="device node cluster" ;;
    "run --no-gpu") words="fail skip" ;;
    "run --sku"|"slurm submit --sku") words="auto $(muster skus 2>/dev/null | cut -d' ' -f1 | tr '\n' ' ')" ;;
    %FOLDERS%) kind=folders ;;
    %FILES%) kind=files ;;
    %TEXTS%) return ;;
    *)
      case $command in
%NEXT%
      esac
      case $command in
        plugins) words="$words $(muster plugins 2>/dev/null | sed '/^$/,$d' | cut -d' ' -f1 | tr '\n' ' ')" ;;
        skus) words="$words $(muster skus 2>/dev/null | cut -d' ' -f1 | tr '\n' ' ')" ;;
        completion) words="$words bash" ;;
        ""|%GROUPS%) ;;
        *) kind=files ;;
      esac ;;
  esac
  COMPREPLY=($(IFS=' '; compgen -W "$words" -- "$cur"))
  case $cur$kind in
    -*) ;;
    *folders) COMPREPLY+=($(compgen -d -- "$cur")); compopt -o filenames 2>/dev/null ;;
    *files) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null ;;
  esac
}
complete -F _muster muster
)bash";

void fill(std::string& script, const std::string& mark, const std::string& text) {
  for (size_t at = script.find(mark); at != std::string::npos; at = script.find(mark, at + text.size()))
    script.replace(at, mark.size(), text);
}

}  // namespace

std::string bashCompletion(const CLI::App& app) {
  Words words;
  collect(app, "", words);
  std::string next;
  for (const auto& [path, names] : words.next)
    next += fmt::format("{}        \"{}\") words=\"{}\" ;;", next.empty() ? "" : "\n", path, names);
  // These have answers of their own above.
  std::erase_if(words.texts, [](const std::string& option) {
    return option == "run --scope" || option == "run --no-gpu" || option == "run --sku" ||
           option == "slurm submit --sku";
  });
  std::string script = kScript;
  fill(script, "%GROUPS%", patterns(words.groups));
  fill(script, "%FOLDERS%", patterns(words.folders));
  fill(script, "%FILES%", patterns(words.files));
  fill(script, "%TEXTS%", patterns(words.texts));
  fill(script, "%NEXT%", next);
  return script;
}

}  // namespace muster
