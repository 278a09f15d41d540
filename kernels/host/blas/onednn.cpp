// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication by oneDNN: its matmul primitive on plain row-major matrices.
#include <omp.h>

#include <dnnl.hpp>
#include <string_view>

#include "kernels/host/blas/multiplier.h"

namespace muster::host {
namespace {

using dnnl::memory;

struct Types {
  memory::data_type input;
  memory::data_type output;
};

Result<Types> typesOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return Types{memory::data_type::f32, memory::data_type::f32};
    case Dtype::kBf16:
      return Types{memory::data_type::bf16, memory::data_type::bf16};
    case Dtype::kI8:
      return Types{memory::data_type::s8, memory::data_type::s32};
    default:
      return Error{ErrorCode::kUnsupported,
                   std::string("oneDNN multiplies no ") + dtypeName(dtype) + " on a CPU", ""};
  }
}

dnnl::matmul::primitive_desc describe(const GemmSpec& spec, const Types& types, const dnnl::engine& engine) {
  const auto plain = memory::format_tag::ab;
  const dnnl::matmul::desc desc({{spec.m, spec.k}, types.input, plain},
                                {{spec.k, spec.n}, types.input, plain},
                                {{spec.m, spec.n}, types.output, plain});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // allocated once, not in every run
  return {desc, attributes, engine};
}

class OnednnMultiplier : public Multiplier {
 public:
  OnednnMultiplier(const GemmSpec& spec, const Types& types, int threads)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        description_(describe(spec, types, engine_)),
        matmul_(description_),
        a_(description_.src_desc(), engine_, DNNL_MEMORY_NONE),
        b_(description_.weights_desc(), engine_, DNNL_MEMORY_NONE),
        c_(description_.dst_desc(), engine_, DNNL_MEMORY_NONE),
        scratch_(description_.scratchpad_desc(), engine_),
        threads_(threads) {}

  Status run(const void* a, const void* b, void* c) override {
    try {
      a_.set_data_handle(const_cast<void*>(a));  // read only: oneDNN's interface has no const
      b_.set_data_handle(const_cast<void*>(b));
      c_.set_data_handle(c);
      matmul_.execute(
          stream_,
          {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}, {DNNL_ARG_SCRATCHPAD, scratch_}});
      stream_.wait();
      return {};
    } catch (const dnnl::error& failure) {
      return Error{ErrorCode::kInternal, std::string("oneDNN's matmul failed: ") + failure.what(), ""};
    }
  }

  [[nodiscard]] std::string kernel() const { return description_.impl_info_str(); }

  [[nodiscard]] std::string name() const override {
    const dnnl_version_t* v = dnnl_version();
    return "onednn " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch) + " " + kernel() + ", " + std::to_string(threads_) +
           (threads_ == 1 ? " thread" : " threads");
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul matmul_;
  memory a_, b_, c_, scratch_;
  int threads_;
};

/// Without VNNI, oneDNN adds products of bytes in 16 bits, in which they saturate: a sound processor would
/// seem to compute wrongly.
bool isExactInI8() {
  using dnnl::cpu_isa;
  const cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa != cpu_isa::sse41 && isa != cpu_isa::avx && isa != cpu_isa::avx2 && isa != cpu_isa::avx512_core;
}

Error noKernel(Dtype dtype, const std::string& reason) {
  return {
      ErrorCode::kUnsupported,
      std::string("oneDNN has no fast ") + dtypeName(dtype) + " matmul for this processor (" + reason + ")",
      ""};
}

}  // namespace

Result<std::unique_ptr<Multiplier>> makeOnednn(const GemmSpec& spec, int threads) {
  MUSTER_TRY(Types types, typesOf(spec.dtype));
  if (spec.dtype == Dtype::kI8 && !isExactInI8()) return noKernel(spec.dtype, "it has no VNNI");
  omp_set_num_threads(threads);
  try {
    auto made = std::make_unique<OnednnMultiplier>(spec, types, threads);
    if (std::string_view(made->kernel()).starts_with("ref"))
      return noKernel(spec.dtype, "only " + made->kernel());
    return std::unique_ptr<Multiplier>(std::move(made));
  } catch (const dnnl::error& failure) {
    if (failure.status == dnnl_unimplemented) return noKernel(spec.dtype, failure.what());
    return Error{ErrorCode::kIo, std::string("oneDNN cannot prepare this matmul: ") + failure.what(), ""};
  }
}

}  // namespace muster::host
