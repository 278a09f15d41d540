// SPDX-License-Identifier: Apache-2.0
// The direct calls. Nothing here uses Muster's kernels.
#include "tests/bench/direct.h"

#include <cblas.h>

#include <cstdlib>
#include <dnnl.hpp>
#include <random>
#include <unordered_map>
#include <vector>

namespace muster::bench {
namespace {

using dnnl::memory;

double flops(int64_t n) {
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
}

template <typename T>
std::vector<T> randomMatrix(int64_t n, unsigned seed) {
  std::vector<T> matrix(static_cast<size_t>(n * n));
  std::minstd_rand generator(seed);
  std::normal_distribution<float> normal;
  for (T& element : matrix) element = static_cast<T>(normal(generator));
  return matrix;
}

/// Row-major operands of one multiplication.
template <typename T>
struct Matrices {
  explicit Matrices(int64_t n)
      : a(randomMatrix<T>(n, 1)), b(randomMatrix<T>(n, 2)), c(static_cast<size_t>(n * n)) {}
  std::vector<T> a, b, c;
};

memory::data_type typeOf(Dtype dtype) {
  return dtype == Dtype::kBf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// A loop body that owns its operands.
template <typename F>
std::unique_ptr<Direct> direct(const char* name, int64_t n, F once) {
  return std::make_unique<Direct>(Direct{name, std::move(once), flops(n)});
}

}  // namespace

std::unique_ptr<Direct> directOnednn(Dtype dtype, int64_t n) {
  if (dtype != Dtype::kF32 && dtype != Dtype::kBf16) return nullptr;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const memory::desc plain({n, n}, typeOf(dtype), memory::format_tag::ab);
  const memory::desc f32({n, n}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul matmul(dnnl::matmul::primitive_desc({plain, plain, plain}, engine));
  const dnnl::stream stream(engine);
  const std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(plain, engine)},
                                                     {DNNL_ARG_WEIGHTS, memory(plain, engine)},
                                                     {DNNL_ARG_DST, memory(plain, engine)}};
  for (const auto& [argument, seed] : {std::pair{DNNL_ARG_SRC, 1u}, {DNNL_ARG_WEIGHTS, 2u}}) {
    std::vector<float> values = randomMatrix<float>(n, seed);
    memory source(f32, engine, values.data());
    memory target = arguments.at(argument);
    dnnl::reorder(source, target).execute(stream, source, target);
  }
  return direct("oneDNN matmul", n, [=] {
    matmul.execute(stream, arguments);
    dnnl::stream(stream).wait();
  });
}

std::unique_ptr<Direct> directOpenblas(Dtype dtype, int64_t n) {
  const auto size = static_cast<blasint>(n);
  if (dtype == Dtype::kF32)
    return direct("OpenBLAS sgemm", n, [size, m = std::make_shared<Matrices<float>>(n)] {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, m->a.data(), size,
                  m->b.data(), size, 0, m->c.data(), size);
    });
  if (dtype == Dtype::kF64)
    return direct("OpenBLAS dgemm", n, [size, m = std::make_shared<Matrices<double>>(n)] {
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, m->a.data(), size,
                  m->b.data(), size, 0, m->c.data(), size);
    });
  return nullptr;
}

std::unique_ptr<Direct> streamCopy(uint64_t bytes) {
  const auto n = static_cast<int64_t>(bytes / sizeof(double));
  const std::shared_ptr<double[]> a(
      new double[static_cast<size_t>(n)]);  // untouched: the threads touch it first
  const std::shared_ptr<double[]> b(new double[static_cast<size_t>(n)]);
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) {
    a[i] = 0;
    b[i] = static_cast<double>(i);
  }
  const auto once = [a, b, n] {
    double* to = a.get();
    const double* from = b.get();
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  };
  return std::make_unique<Direct>(Direct{"STREAM copy", once, 2.0 * static_cast<double>(bytes)});
}

}  // namespace muster::bench
