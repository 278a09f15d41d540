// SPDX-License-Identifier: Apache-2.0
// Small comfort over oneDNN.
#include "kernels/host/nn/onednn.h"

#include <fmt/format.h>

namespace muster::host {

memory::desc plain(const Shape& shape) {
  memory::dims strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return {memory::dims(shape.begin(), shape.end()), memory::data_type::f32, strides};
}

uint64_t floatsOf(const memory::desc& desc) {
  return desc.get_size() / sizeof(float);
}

/// oneDNN's interface has no const: inputs are not written.
memory wrap(const Engine& engine, const memory::desc& desc, const float* data) {
  return {desc, engine.engine, const_cast<float*>(data)};
}

Step reorderStep(const Engine& engine, const memory::desc& fromDesc, const float* from,
                 const memory::desc& toDesc, float* to) {
  const dnnl::reorder::primitive_desc desc(engine.engine, fromDesc, engine.engine, toDesc);
  return {dnnl::reorder(desc),
          {{DNNL_ARG_FROM, wrap(engine, fromDesc, from)}, {DNNL_ARG_TO, wrap(engine, toDesc, to)}}};
}

void reorder(Engine& engine, const memory::desc& fromDesc, const float* from, const memory::desc& toDesc,
             float* to) {
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

bool isReference(const std::string& implementation) {
  return implementation.starts_with("ref") || implementation.starts_with("gemm");
}

dnnl::primitive_attr userScratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace muster::host
