// SPDX-License-Identifier: Apache-2.0
// Small comfort over oneDNN: the engine of a program, memories over our own storage, reorders.
#pragma once

#include <dnnl.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/network.h"

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

/// f32 of this shape, row-major.
memory::desc plain(const Shape& shape);
/// Floats that a description takes, padding included.
uint64_t floatsOf(const memory::desc& desc);
memory wrap(const Engine& engine, const memory::desc& desc, const float* data);
/// Copies between two layouts of one shape.
void reorder(Engine& engine, const memory::desc& fromDesc, const float* from, const memory::desc& toDesc,
             float* to);
Step reorderStep(const Engine& engine, const memory::desc& fromDesc, const float* from,
                 const memory::desc& toDesc, float* to);
/// What a description's order is: equal texts, equal orders.
std::string layoutText(const memory::desc& desc);
/// Whether oneDNN took its slow reference code.
bool isReference(const std::string& implementation);
/// Scratch memory is ours: allocated once.
dnnl::primitive_attr userScratch();

}  // namespace muster::host
