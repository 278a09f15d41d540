// SPDX-License-Identifier: Apache-2.0
// Fleets with one forged record, and honest ones, for forgery.py.
//   forgery-fleets judge FORGED HONEST SEED     judges so many in this process; a line for each wrong verdict
//   forgery-fleets write FOLDER FORGED HONEST SEED     writes them for `muster fleet`, each into a folder
//   with
//                                                      run/, expect.txt and made.json
//   forgery-fleets runs COUNT SEED              forges so many run folders of Slurm; a line for each wrong
//   one
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "runner/core/json.h"
#include "runner/system/files.h"
#include "tests/reports/fleet/forgery.h"
#include "tests/slurm/forged_run.h"

namespace {

using muster::testing::MadeFleet;

/// Calls `take(fleet, seed)` for each.
template <typename F>
int each(uint64_t forged, uint64_t honest, uint64_t seed, F take) {
  for (uint64_t i = 0; i < forged; ++i) take(muster::testing::forgedFleet(seed + i), seed + i);
  for (uint64_t i = 0; i < honest; ++i) take(muster::testing::honestFleet(seed + i), seed + i);
  return 0;
}

int judge(uint64_t forged, uint64_t honest, uint64_t seed) {
  std::map<std::string, size_t> kinds;
  size_t wrong = 0;
  each(forged, honest, seed, [&](const MadeFleet& made, uint64_t number) {
    if (made.forged) ++kinds[made.kind];
    const std::string problem = muster::testing::wrongVerdict(made);
    if (problem.empty()) return;
    ++wrong;
    fmt::print("WRONG {} seed {} ({}): {}\n", made.forged ? "forged" : "honest", number, made.kind, problem);
  });
  for (const auto& [kind, count] : kinds) fmt::print("{:>6}  {}\n", count, kind);
  fmt::print("in process: {} forged of {} kinds, {} honest: {} wrong\n", forged, kinds.size(), honest, wrong);
  return wrong > 0 ? 1 : 0;
}

int write(const std::filesystem::path& folder, uint64_t forged, uint64_t honest, uint64_t seed) {
  bool written = true;
  const auto put = [&](const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    written = written && muster::writeFileAtomically(path, text, muster::Durable::kNo).ok();
  };
  each(forged, honest, seed, [&](const MadeFleet& made, uint64_t number) {
    const auto one = folder / fmt::format("{}-{}", made.forged ? "forged" : "honest", number);
    for (const auto& [path, text] : made.files) put(one / "run" / path, text);
    put(one / "expect.txt", made.expectText);
    put(one / "made.json", muster::dumpJson({{"kind", made.kind},
                                             {"forged", made.forged},
                                             {"arguments", made.arguments},
                                             {"to_name", made.toName}}));
  });
  return written ? 0 : 1;
}

int forgeRuns(uint64_t count, uint64_t seed) {
  const muster::testing::ForgedRuns runs;
  size_t wrong = 0;
  if (const std::string problem = runs.honest(); !problem.empty()) {
    ++wrong;
    fmt::print("WRONG honest run: {}\n", problem);
  }
  for (uint64_t i = 0; i < count; ++i) {
    const auto trial = runs.forge(seed + i);
    if (trial.problem.empty()) continue;
    ++wrong;
    fmt::print("WRONG run seed {} ({}): {}\n", seed + i, trial.kind, trial.problem);
  }
  fmt::print("runs on Slurm: {} forged in {} ways: {} wrong\n", count, muster::testing::ForgedRuns::kinds(),
             wrong);
  return wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  if (mode == "judge" && argc == 5) return judge(number(2), number(3), number(4));
  if (mode == "write" && argc == 6) return write(argv[2], number(3), number(4), number(5));
  if (mode == "runs" && argc == 4) return forgeRuns(number(2), number(3));
  fmt::print(
      stderr,
      "usage: forgery-fleets judge FORGED HONEST SEED | write FOLDER FORGED HONEST SEED | runs COUNT SEED\n");
  return 2;
}
