// SPDX-License-Identifier: Apache-2.0
// Theoretical peaks of CPU cores, from their instruction set and clock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/host/inventory/cpu.h"

namespace muster {

/// Operations that one core can finish in a cycle, by dtype name ("f32" -> 64). A dtype that the core has no
/// instruction for is left out.
///
/// f32 = 2 (a fused multiply-add is two) x 2 (pipes) x lanes of a register (16 AVX-512, 8 AVX2, 4 NEON); f64
/// is half of it. AMD's family 25 (Zen 4) runs a 512-bit instruction as two halves, so it counts as AVX2
/// does. AVX without FMA has one adder and one multiplier. bf16 is twice f32 with AVX512-BF16 and 1024 with
/// AMX (a 16x16x32 tile product in 16 cycles); i8 is four times f32 with VNNI and 2048 with AMX. Sources:
/// Intel 64 and IA-32 Optimization Reference Manual (AMX, VNNI), AMD Software Optimization Guides for
/// families 19h and 1Ah.
std::map<std::string, double> operationsPerCycle(const CpuModel& model);

/// "flops.<dtype>" of `cores` cores at `clockHz`.
std::map<std::string, double> cpuPeaks(const CpuModel& model, int cores, double clockHz);

/// The instruction sets that matter here, widest last: "avx2 fma avx512f avx512_bf16".
std::string isaText(const CpuModel& model);

}  // namespace muster
