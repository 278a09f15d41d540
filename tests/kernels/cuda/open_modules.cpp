// SPDX-License-Identifier: Apache-2.0
// Opens what a folder holds of the cuda backend, and prints a line for each of what came of it: a process of
// its own, since what it has once loaded stays. Usage: open-cuda-modules FOLDER modules|node
#include <cstdio>
#include <string>

#include "kernels/cuda/modules.h"
#include "kernels/interfaces/backend.h"

namespace {

template <typename T>
void say(const char* name, const muster::Result<T>& opened) {
  std::printf("%s: %s\n", name, opened.ok() ? "opened" : opened.error().text().c_str());
}

/// As backend_cuda.so does on their first use.
int openModules(const std::string& folder) {
  muster::cuda::Modules modules(folder);
  say("blas", modules.blas());
  say("dnn", modules.dnn());
  say("nccl", modules.nccl());
  return 0;
}

/// What the env plugin reads, and the device that the other ones open.
int openNode(const std::string& folder) {
  muster::BackendOptions options;
  options.folder = folder;
  const auto backend = muster::loadBackend("cuda", options);
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.error().text().c_str());
    return 1;
  }
  auto inventory = (*backend)->inventory();
  if (inventory.ok()) {
    say("inventory", (*inventory)->devices());
    const auto node = (*inventory)->node();
    if (!node.ok()) return 1;
    for (const auto& [name, value] : (*node)["software"].items())
      std::printf("software %s: %s\n", name.c_str(), value.get<std::string>().c_str());
  } else {
    say("inventory", inventory);
  }
  say("device", (*backend)->open("gpu0"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return std::string(argv[2]) == "node" ? openNode(argv[1]) : openModules(argv[1]);
}
