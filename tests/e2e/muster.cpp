// SPDX-License-Identifier: Apache-2.0
// See muster.h.
#include "tests/e2e/muster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>

namespace muster::testing {

ProcessResult runMuster(std::vector<std::string> arguments, const ProcessOptions& options) {
  arguments.insert(arguments.begin(), (distDir() / "bin" / "muster").string());
  return runProcess(arguments, options);
}

std::string plan(const std::string& name) {
  return (distDir() / "share/muster/plans" / name).string();
}

std::string scenario(const std::string& name) {
  return (distDir() / "share/muster/plans/scenarios" / (name + ".toml")).string();
}

void copyIncluded(const std::string& of, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::filesystem::copy(
      plan(of + "/common"), folder / "common",
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
}

std::filesystem::path writeScenario(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
  std::smatch found;
  for (std::string rest = text;
       std::regex_search(rest, found, std::regex("\\ninclude = \\[\"([^\"]+)\"\\]"));) {
    const std::string name = found[1].str();
    std::filesystem::copy_file(plan("scenarios/" + name), file.parent_path() / name,
                               std::filesystem::copy_options::skip_existing);
    rest = readWhole(plan("scenarios/" + name));
  }
  return file;
}

Record recordIn(const std::filesystem::path& folder) {
  auto record = readRecord(folder / "record.json");
  if (!record.ok()) {
    ADD_FAILURE() << record.error().text();
    return {};
  }
  return std::move(record).value();
}

const StageRecord& stageOf(const Record& record, const std::string& name) {
  for (const StageRecord& stage : record.stages)
    if (stage.name == name) return stage;
  ADD_FAILURE() << "no stage " << name;
  return record.stages.front();
}

std::vector<Verdict> verdictsOf(const Record& record, Outcome outcome) {
  std::vector<Verdict> found;
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      if (verdict.outcome == outcome) found.push_back(verdict);
  return found;
}

std::string fakePlan(const std::string& plugin, const std::string& timeout, const std::string& extra) {
  return "schema = 1\nname = \"fake\"\nsku = \"host\"\nbackend = \"host\"\n\n[[stage]]\nname = "
         "\"trial\"\nplugin = \"" +
         plugin + "\"\ntest = \"run\"\nscope = \"device\"\nranks = 1\ntimeout = \"" + timeout + "\"\n" +
         extra;
}

std::vector<std::string> withFakes() {
  // Some fakes hang in describe(), which is a test of its own and would cost each run here its deadline.
  static const TempDir folder;
  static const bool filled = [] {
    for (const char* name : {"children", "crash", "disobey", "end-badly", "exit-early", "fails", "flaky",
                             "fixed", "hang", "hang-term", "lies", "ok", "pair", "raw", "throws"})
      std::filesystem::copy_file(buildDir() / "tests/fakes" / (std::string("fake-") + name + ".so"),
                                 folder.path() / (std::string("fake-") + name + ".so"));
    return true;
  }();
  return filled ? std::vector<std::string>{"--plugins", folder.path().string()} : std::vector<std::string>{};
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace muster::testing
