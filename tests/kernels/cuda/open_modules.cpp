// SPDX-License-Identifier: Apache-2.0
// Opens the modules of a folder, as backend_cuda.so does on their first use, and says what came of each: a
// process of its own, since what it has once loaded stays. Usage: open-cuda-modules FOLDER
#include <cstdio>

#include "kernels/cuda/modules.h"

namespace {

template <typename Entry>
void say(const char* name, const muster::Result<const Entry*>& opened) {
  std::printf("%s: %s\n", name, opened.ok() ? "opened" : opened.error().text().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  muster::cuda::Modules modules(argv[1]);
  say("blas", modules.blas());
  say("dnn", modules.dnn());
  say("nccl", modules.nccl());
  return 0;
}
