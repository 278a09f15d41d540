// SPDX-License-Identifier: Apache-2.0
// Feeds mutated inputs to one of targets.h, as bytes-mutate (bytes) or documents-mutate (records and the
// like):
//   bytes-mutate TARGET COUNT [SEED]       ends 1 when an input crashes it, hangs it, or comes to what must
//   not be bytes-mutate TARGET seeds FOLDER       writes the seeds as files, for libFuzzer bytes-mutate
//   TARGET files FOLDER       checks the inputs that are kept there
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runner/system/files.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {
namespace {

int usage() {
  std::fprintf(stderr, "usage: TARGET COUNT [SEED], TARGET seeds FOLDER, or TARGET files FOLDER; targets:");
  for (const Target& target : targets()) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  return 2;
}

std::vector<std::string> seedsOf(const Samples& samples) {
  std::vector<std::string> seeds = samples.seeds;
  for (const Json& document : samples.documents) seeds.push_back(documentText(document, samples.format));
  return seeds;
}

int writeSeeds(const Target& target, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : seedsOf(target.samples())) {
    std::ofstream file(folder / ("seed" + std::to_string(number++)), std::ios::binary);
    file << seed << std::flush;
    if (!file) return 1;
  }
  return 0;
}

int checkFiles(const Target& target, const char* folder) {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Result<std::string> input = readFile(entry.path());
    if (!input.ok()) std::fprintf(stderr, "%s\n", input.error().text().c_str());
    if (!input.ok()) return 1;
    inputs.push_back(*input);
  }
  return runMutations(target.name, inputs, {}, 0, target.check) ? 0 : 1;
}

int hunt(const Target& target, long count, uint64_t seed) {
  const Samples samples = target.samples();
  const std::vector<std::string> seeds = seedsOf(samples);
  Mutator bytes(seeds, samples.words, seed);
  DocumentMutator documents(samples.documents, samples.format, seed);
  const auto next = [&] { return samples.documents.empty() ? bytes.next() : documents.next(); };
  return runMutations(target.name, seeds, next, count, target.check) ? 0 : 1;
}

}  // namespace
}  // namespace muster::testing

int main(int argc, char** argv) {
  using namespace muster::testing;
  if (argc < 3) return usage();
  for (const Target& target : targets()) {
    if (std::strcmp(target.name, argv[1]) != 0) continue;
    if (std::strcmp(argv[2], "seeds") == 0) return argc == 4 ? writeSeeds(target, argv[3]) : usage();
    if (std::strcmp(argv[2], "files") == 0) return argc == 4 ? checkFiles(target, argv[3]) : usage();
    return hunt(target, std::atol(argv[2]), argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  }
  return usage();
}
