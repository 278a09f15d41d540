// SPDX-License-Identifier: Apache-2.0
// A runner to be killed: runs the requests given as arguments in one group. group_driver MUSTER_HOST
// REQUEST...
#include <cstdio>

#include "runner/dispatch/supervisor.h"
#include "runner/system/files.h"

namespace muster {
namespace {

int drive(int argc, char** argv) {
  GroupOptions options;
  options.hostExecutable = argv[1];
  options.onFrame = [](const RankSpec&, const Json& frame) {
    std::printf("%s\n", dumpJson(frame).c_str());
    std::fflush(stdout);
  };
  std::vector<RankSpec> ranks;
  for (int i = 2; i < argc; ++i) {
    const Result<std::string> text = readFile(argv[i]);
    if (!text.ok()) return 1;
    const Result<Json> request = parseJson(*text);
    if (!request.ok()) return 1;
    ranks.push_back(
        {i - 2, "gpu" + std::to_string(i - 2), *request, std::string(argv[i]) + ".again", "", {}});
  }
  return runGroup(ranks, options).ok() ? 0 : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return argc < 3 ? 2 : muster::drive(argc, argv);
}
