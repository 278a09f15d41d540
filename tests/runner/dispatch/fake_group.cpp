// SPDX-License-Identifier: Apache-2.0
// See fake_group.h.
#include "tests/runner/dispatch/fake_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace muster::testing {

std::filesystem::path hostExecutable() {
  return buildDir() / "runner" / "host" / "muster-host";
}
std::filesystem::path fakesDir() {
  return buildDir() / "tests" / "fakes";
}
std::filesystem::path fakeLibrary(const std::string& fake) {
  return fakesDir() / ("fake-" + fake + ".so");
}

std::vector<Json> GroupOutcome::of(const std::string& type) const {
  std::vector<Json> found;
  for (const Json& frame : frames)
    if (frame["type"] == type) found.push_back(frame);
  return found;
}

std::map<int, std::string> GroupOutcome::caseStates() const {
  std::map<int, std::string> states;
  for (const Json& frame : of("case"))
    if (frame["event"] == "end") states[frame["case"]] = frame["state"];
  return states;
}

FakeGroup::FakeGroup() {
  static int count = 0;
  marker_ = fmt::format("muster-fake-group-{}-{}", getpid(), ++count);
  setenv("MUSTER_TEST_MARKER", marker_.c_str(), 1);
  options.hostExecutable = hostExecutable();
  options.timeout = 60;
  options.grace = 0.2;
}

Json& FakeGroup::add(const std::string& fake, int kind, int cases) {
  const int rank = static_cast<int>(ranks.size());
  RankSpec spec;
  spec.rank = rank;
  spec.device = fmt::format("gpu{}", rank);
  spec.requestFile = folder_.path() / fmt::format("request {}.json", rank);
  spec.outputFile = folder_.path() / fmt::format("output{}.txt", rank);
  Json list = Json::array();
  for (int i = 0; i < cases; ++i)
    list.push_back({{"index", i},
                    {"case", fmt::format("run[n={}]", i)},
                    {"params", {{"kind", kind}, {"value", 1.5}}},
                    {"repeat", 0},
                    {"attempt", 1},
                    {"seed", 42}});
  spec.request = {
      {"schema", 1},
      {"plugin", fakeLibrary(fake)},
      {"test", "run"},
      {"cases", list},
      {"context",
       {{"backend", "host"}, {"rank", rank}, {"world_size", 1}, {"device", {{"id", spec.device}}}}},
      {"artifact_dir", folder_.path() / "artifacts"}};
  ranks.push_back(spec);
  return ranks.back().request;
}

GroupOutcome FakeGroup::run() {
  GroupOutcome outcome;
  const auto collect = options.onFrame;
  options.onFrame = [&](const RankSpec& spec, const Json& frame) {
    outcome.frames.push_back(frame);
    if (collect) collect(spec, frame);
  };
  Result<std::vector<RankEnd>> ends = runGroup(ranks, options);
  options.onFrame = collect;
  if (!ends.ok()) throw std::runtime_error(ends.error().text());
  outcome.ends = std::move(*ends);
  return outcome;
}

GroupOutcome FakeGroup::runToDeadline() {
  constexpr double kLongest = 120;
  for (options.timeout = 0.5;; options.timeout *= 4) {
    GroupOutcome outcome = run();
    const bool late = std::any_of(outcome.ends.begin(), outcome.ends.end(), [](const RankEnd& end) {
      return end.state == RankEnd::State::kTimeout && end.lastProgress.empty();
    });
    if (!late || options.timeout > kLongest) return outcome;
  }
}

GroupOutcome FakeGroup::run(const std::string& fake, int kind, int cases) {
  add(fake, kind, cases);
  return run();
}

}  // namespace muster::testing
