// SPDX-License-Identifier: Apache-2.0
// Picks the loops of the widest instruction set that this processor has.
#include "kernels/host/nn/loops/loops.h"

// The tables of one instruction set.
#define MUSTER_TABLES(isa)      \
  namespace muster::host::isa { \
  namespace f32 {               \
  extern const Loops kTable;    \
  }                             \
  namespace bf16 {              \
  extern const Loops kTable;    \
  }                             \
  }

MUSTER_TABLES(base)
#if defined(__x86_64__)
MUSTER_TABLES(avx2)
MUSTER_TABLES(avx512)
#endif

namespace muster::host {

std::vector<const Loops*> usableLoops(Element element) {
  const bool half = element == Element::kBf16;
  std::vector<const Loops*> usable;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    usable.push_back(half ? &avx512::bf16::kTable : &avx512::f32::kTable);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    usable.push_back(half ? &avx2::bf16::kTable : &avx2::f32::kTable);
#endif
  usable.push_back(half ? &base::bf16::kTable : &base::f32::kTable);
  return usable;
}

const Loops& loops(Element element) {
  return *usableLoops(element).front();
}

}  // namespace muster::host
