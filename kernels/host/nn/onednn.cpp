// SPDX-License-Identifier: Apache-2.0
// Small comfort over oneDNN.
#include "kernels/host/nn/onednn.h"

#include <fmt/format.h>

namespace muster::host {

memory::desc plain(const Shape& shape, memory::data_type type) {
  memory::dims strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return {memory::dims(shape.begin(), shape.end()), type, strides};
}

uint64_t floatsOf(const memory::desc& desc) {
  return (desc.get_size() + sizeof(float) - 1) / sizeof(float);
}

/// oneDNN's interface has no const: inputs are not written.
memory wrap(const Engine& engine, const memory::desc& desc, const void* data) {
  return {desc, engine.engine, const_cast<void*>(data)};
}

Step reorderStep(const Engine& engine, const memory::desc& fromDesc, const void* from,
                 const memory::desc& toDesc, void* to) {
  const dnnl::reorder::primitive_desc desc(engine.engine, fromDesc, engine.engine, toDesc);
  return {dnnl::reorder(desc),
          {{DNNL_ARG_FROM, wrap(engine, fromDesc, from)}, {DNNL_ARG_TO, wrap(engine, toDesc, to)}}};
}

void reorder(Engine& engine, const memory::desc& fromDesc, const void* from, const memory::desc& toDesc,
             void* to) {
  reorderStep(engine, fromDesc, from, toDesc, to).run(engine);
}

std::string layoutText(const memory::desc& desc) {
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  std::string text =
      fmt::format("{}:{}", static_cast<int>(desc.data.data_type), static_cast<int>(desc.data.format_kind));
  for (int i = 0; i < desc.data.ndims; ++i)
    text += fmt::format(" {}/{}*{}", desc.data.dims[i], desc.data.padded_dims[i], blocking.strides[i]);
  for (int i = 0; i < blocking.inner_nblks; ++i)
    text += fmt::format(" {}[{}]", blocking.inner_blks[i], blocking.inner_idxs[i]);
  return text;
}

const char* isaName() {
  using dnnl::cpu_isa;
  static constexpr std::pair<cpu_isa, const char*> kNames[] = {
      {cpu_isa::sse41, "sse41"},
      {cpu_isa::avx, "avx"},
      {cpu_isa::avx2, "avx2"},
      {cpu_isa::avx2_vnni, "avx2_vnni"},
      {cpu_isa::avx512_core, "avx512_core"},
      {cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
      {cpu_isa::avx512_core_bf16, "avx512_core_bf16"},
      {cpu_isa::avx512_core_amx, "avx512_core_amx"},
  };
  for (const auto& [isa, name] : kNames)
    if (isa == dnnl::get_effective_cpu_isa()) return name;
  return "no vector instructions that it knows";
}

Status hasBf16() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  if (isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("this processor does not train in bf16: oneDNN found {}, and needs AVX512_BF16 or "
                           "AMX for it; use f32",
                           isaName()),
               ""};
}

dnnl::primitive_attr userScratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace muster::host
