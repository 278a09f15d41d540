// SPDX-License-Identifier: Apache-2.0
// Feeds mutated bytes to one of targets.h:
//   bytes-mutate TARGET COUNT [SEED]    ends 1 when an input crashes it, hangs it, or comes to what must not
//   be bytes-mutate TARGET seeds FOLDER    writes the seeds as files, for libFuzzer
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runner/core/files.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {
namespace {

int usage() {
  std::fprintf(stderr,
               "usage: bytes-mutate TARGET COUNT [SEED], TARGET seeds FOLDER, or TARGET file FILE; targets:");
  for (const Target& target : targets()) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  return 2;
}

int writeSeeds(const Target& target, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : target.samples().seeds) {
    std::ofstream file(folder / ("seed" + std::to_string(number++)), std::ios::binary);
    file << seed << std::flush;
    if (!file) return 1;
  }
  return 0;
}

int checkFile(const Target& target, const char* path) {
  const Result<std::string> input = readFile(path);
  if (!input.ok()) std::fprintf(stderr, "%s\n", input.error().text().c_str());
  return input.ok() && runMutations(target.name, {*input}, {}, 0, 1, target.check) ? 0 : 1;
}

}  // namespace
}  // namespace muster::testing

int main(int argc, char** argv) {
  using namespace muster::testing;
  if (argc < 3) return usage();
  for (const Target& target : targets()) {
    if (std::strcmp(target.name, argv[1]) != 0) continue;
    if (std::strcmp(argv[2], "seeds") == 0) return argc == 4 ? writeSeeds(target, argv[3]) : usage();
    if (std::strcmp(argv[2], "file") == 0) return argc == 4 ? checkFile(target, argv[3]) : usage();
    const Samples samples = target.samples();
    const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    const bool good =
        runMutations(target.name, samples.seeds, samples.words, std::atol(argv[2]), seed, target.check);
    return good ? 0 : 1;
  }
  return usage();
}
