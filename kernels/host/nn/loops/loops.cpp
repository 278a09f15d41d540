// SPDX-License-Identifier: Apache-2.0
// Picks the loops of the widest instruction set that this processor has.
#include "kernels/host/nn/loops/loops.h"

namespace muster::host {

namespace base {
extern const Loops kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Loops kTable;
}
namespace avx512 {
extern const Loops kTable;
}
#endif

std::vector<const Loops*> usableLoops() {
  std::vector<const Loops*> usable;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    usable.push_back(&avx512::kTable);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) usable.push_back(&avx2::kTable);
#endif
  usable.push_back(&base::kTable);
  return usable;
}

const Loops& loops() {
  static const Loops& widest = *usableLoops().front();
  return widest;
}

}  // namespace muster::host
