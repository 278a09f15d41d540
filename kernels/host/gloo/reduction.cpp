// SPDX-License-Identifier: Apache-2.0
// Reductions as plain loops, compiled for AVX2 with F16C and for any processor; chosen at run time.
#include "kernels/host/gloo/reduction.h"

#include "kernels/host/gloo/elements.h"

namespace muster::host {
namespace {

struct Sum {
  template <typename T>
  static T of(T a, T b) {
    return a + b;
  }
};
struct Prod {
  template <typename T>
  static T of(T a, T b) {
    return a * b;
  }
};
/// A NaN on either side is the result: it must not vanish in a comparison.
struct Min {
  template <typename T>
  static T of(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct Max {
  template <typename T>
  static T of(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

template <typename Element, typename Op>
[[gnu::always_inline]] inline void loop(void* c, const void* a, const void* b, size_t n) {
  auto* to = static_cast<typename Element::Stored*>(c);
  const auto* x = static_cast<const typename Element::Stored*>(a);
  const auto* y = static_cast<const typename Element::Stored*>(b);
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) to[i] = Element::store(Op::of(Element::load(x[i]), Element::load(y[i])));
}

template <typename Element, typename Op>
[[gnu::optimize("O3")]] void reducePlain(void* c, const void* a, const void* b, size_t n) {
  loop<Element, Op>(c, a, b, n);
}

#if defined(__x86_64__) && !defined(__clang__)  // clang 14 cannot ask for f16c
template <typename Element, typename Op>
[[gnu::optimize("O3"), gnu::target("avx2,f16c")]] void reduceAvx2(void* c, const void* a, const void* b,
                                                                  size_t n) {
  loop<Element, Op>(c, a, b, n);
}
#endif

template <typename Element, typename Op>
Reduction choose() {
#if defined(__x86_64__) && !defined(__clang__)
  static const bool wide = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("f16c") != 0;
  if (wide) return reduceAvx2<Element, Op>;
#endif
  return reducePlain<Element, Op>;
}

template <typename Element>
Reduction chooseOp(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return choose<Element, Sum>();
    case ReduceOp::kProd:
      return choose<Element, Prod>();
    case ReduceOp::kMin:
      return choose<Element, Min>();
    case ReduceOp::kMax:
      return choose<Element, Max>();
  }
  return nullptr;
}

}  // namespace

Result<Reduction> reductionFor(Dtype dtype, ReduceOp op) {
  Reduction found = nullptr;
  withElement(dtype, [&](auto element) { found = chooseOp<decltype(element)>(op); });
  if (found != nullptr) return found;
  return Error{ErrorCode::kUnsupported,
               std::string("the host does not reduce ") + dtypeName(dtype) + ", only f64, f32, f16, bf16, i8",
               reduceOpName(op)};
}

void divideByRanks(void* data, Dtype dtype, uint64_t count, int ranks) {
  withElement(dtype, [&](auto element) {
    using Element = decltype(element);
    auto* values = static_cast<typename Element::Stored*>(data);
    using Value = decltype(Element::load(values[0]));
    const auto divisor = static_cast<Value>(ranks);
    for (uint64_t i = 0; i < count; ++i) values[i] = Element::store(Element::load(values[i]) / divisor);
  });
}

}  // namespace muster::host
