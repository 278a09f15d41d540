// SPDX-License-Identifier: Apache-2.0
// Small comfort over oneDNN: the engine of a program, memories over our own storage, reorders.
#pragma once

#include <dnnl.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/spec/network.h"
#include "runner/core/result.h"

namespace muster::host {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

/// The CPU and its queue. Work is done when execute() returns.
struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  int threads = 1;
};

/// A primitive with what it works on.
struct Step {
  dnnl::primitive primitive;
  Arguments arguments;
  void run(Engine& engine) const { primitive.execute(engine.stream, arguments); }
};

/// Row-major.
memory::desc plain(const Shape& shape, memory::data_type type = memory::data_type::f32);
/// Floats in whose room a description fits, padding included.
uint64_t floatsOf(const memory::desc& desc);
memory wrap(const Engine& engine, const memory::desc& desc, const void* data);
/// Copies between two layouts, or types, of one shape.
void reorder(Engine& engine, const memory::desc& fromDesc, const void* from, const memory::desc& toDesc,
             void* to);
Step reorderStep(const Engine& engine, const memory::desc& fromDesc, const void* from,
                 const memory::desc& toDesc, void* to);
/// What a description's order is: equal texts, equal orders.
std::string layoutText(const memory::desc& desc);
/// The widest instruction set that oneDNN uses on this processor, as it names it: "avx512_core_bf16".
const char* isaName();
/// Whether this processor multiplies bf16 in hardware and oneDNN uses that; kUnsupported says what it has
/// instead. Without the instructions oneDNN takes bf16 too, by slow detours.
Status hasBf16();
/// Scratch memory is ours: allocated once.
dnnl::primitive_attr userScratch();

}  // namespace muster::host
