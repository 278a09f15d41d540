// SPDX-License-Identifier: Apache-2.0
// See scenario.h.
#include "tests/fakes/nvml/scenario.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace {

[[noreturn]] void die(const std::string& why) {
  fprintf(stderr, "fake NVML: %s\n", why.c_str());
  _exit(99);
}

bool workHasBegun() {
  const char* file = getenv(kWorkVariable);
  return file != nullptr && access(file, F_OK) == 0;
}

bool fits(const Line& line, int gpu) {
  return (line.gpu < 0 || line.gpu == gpu) && (!line.working || workHasBegun());
}

/// The rest of a line without white space around it, and whether its last word is "working".
std::string rest(std::istringstream& words, bool& working) {
  std::string text, word;
  while (words >> word) text += (text.empty() ? "" : " ") + word;
  const std::string mark = " working";
  working = text.size() > mark.size() && text.ends_with(mark);
  if (working) text.erase(text.size() - mark.size());
  return text;
}

}  // namespace

namespace {
Scenario current;  // of the last nvmlInit_v2()
}

const Scenario& Scenario::loaded() {
  return current;
}

void Scenario::load() {
  current = [] {
    const char* path = getenv(kScenarioVariable);
    if (path == nullptr) die(std::string(kScenarioVariable) + " names no scenario");
    std::ifstream file(path);
    if (!file) die(std::string("cannot read ") + path);
    Scenario made;
    for (std::string raw; std::getline(file, raw);) {
      std::istringstream words(raw.substr(0, raw.find('#')));
      std::string word;
      if (!(words >> word)) continue;
      Line line;
      if (word == "gpu") {
        words >> word;
        if (word != "*") line.gpu = std::stoi(word);
        words >> word;
      }
      line.key = word;
      std::string function;
      if (word == "call") words >> function;
      line.value = rest(words, line.working);
      if (line.value.empty()) die("not understood: " + raw);
      if (!function.empty())
        made.calls_.emplace_back(line, function);
      else if (line.gpu < 0 && !raw.starts_with("gpu"))
        made.facts_[line.key] = line.value;
      else
        made.lines_.push_back(line);
    }
    return made;
  }();
}

std::string Scenario::fact(const std::string& key, const std::string& otherwise) const {
  const auto found = facts_.find(key);
  return found == facts_.end() ? otherwise : found->second;
}

std::string Scenario::text(int gpu, const std::string& key, const std::string& otherwise) const {
  std::string found = otherwise;
  for (const Line& line : lines_)
    if (line.key == key && fits(line, gpu)) found = line.value;
  return found;
}

double Scenario::number(int gpu, const std::string& key, double otherwise) const {
  const std::string found = text(gpu, key);
  return found.empty() ? otherwise : strtod(found.c_str(), nullptr);
}

std::string Scenario::behaviour(const std::string& function, int gpu) const {
  std::string found;
  for (const auto& [line, name] : calls_) {
    // "*" of one GPU is about what takes that GPU's handle.
    const bool named = name == function || (name == "*" && gpu >= 0);
    if (named && fits(line, gpu)) found = line.value;
  }
  return found;
}

std::vector<int> Scenario::xids(int gpu) const {
  std::vector<int> found;
  for (const Line& line : lines_)
    if (line.key == "xid" && fits(line, gpu)) found.push_back(std::stoi(line.value));
  return found;
}
