// SPDX-License-Identifier: Apache-2.0
// Memory kernels with non-temporal AVX2 stores, and portable ones (NEON on arm64); chosen at run time.
#include "kernels/host/stream_kernels.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::host {
namespace plain {

/// A register of every 64-bit processor: SSE2, NEON.
typedef double Pair __attribute__((vector_size(16)));

// O3, as O2 makes vectors of no loop whose length is known only at run time.
#define MUSTER_VECTORS __attribute__((optimize("O3")))

MUSTER_VECTORS double read(const double* a, size_t n) {
  Pair sum[8] = {};  // eight sums hide the latency of the additions
  size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t j = 0; j < 8; ++j) {
      Pair pair;
      std::memcpy(&pair, a + i + 2 * j, sizeof pair);
      sum[j] += pair;
    }
  for (size_t j = 1; j < 8; ++j) sum[0] += sum[j];
  double all = sum[0][0] + sum[0][1];
  for (; i < n; ++i) all += a[i];
  return all;
}
MUSTER_VECTORS void write(double* a, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] = kWriteValue;
}
MUSTER_VECTORS void copy(double* a, const double* b, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] = b[i];
}
MUSTER_VECTORS void triad(double* a, const double* b, const double* c, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] = b[i] + kTriadScalar * c[i];
}

}  // namespace plain

#if defined(__x86_64__)
#define MUSTER_AVX2 __attribute__((target("avx2,fma")))

namespace avx2 {

constexpr size_t kLanes = 4;              // 64-bit words of a register
constexpr size_t kReadStep = 8 * kLanes;  // eight sums hide the latency of the additions
constexpr size_t kStep = 4 * kLanes;      // two cache lines

MUSTER_AVX2 double read(const double* a, size_t n) {
  __m256d sum[8] = {};
  size_t i = 0;
  for (; i + kReadStep <= n; i += kReadStep)
    for (size_t j = 0; j < 8; ++j) sum[j] = _mm256_add_pd(sum[j], _mm256_load_pd(a + i + kLanes * j));
  for (size_t j = 1; j < 8; ++j) sum[0] = _mm256_add_pd(sum[0], sum[j]);
  double lanes[kLanes];
  _mm256_storeu_pd(lanes, sum[0]);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] + plain::read(a + i, n - i);
}

MUSTER_AVX2 void write(double* a, size_t n) {
  const __m256d value = _mm256_set1_pd(kWriteValue);
  size_t i = 0;
  for (; i + kStep <= n; i += kStep)
    for (size_t j = 0; j < kStep; j += kLanes) _mm256_stream_pd(a + i + j, value);
  _mm_sfence();
  plain::write(a + i, n - i);
}

MUSTER_AVX2 void copy(double* a, const double* b, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep)
    for (size_t j = 0; j < kStep; j += kLanes) _mm256_stream_pd(a + i + j, _mm256_load_pd(b + i + j));
  _mm_sfence();
  plain::copy(a + i, b + i, n - i);
}

MUSTER_AVX2 void triad(double* a, const double* b, const double* c, size_t n) {
  const __m256d scalar = _mm256_set1_pd(kTriadScalar);
  size_t i = 0;
  for (; i + kStep <= n; i += kStep)
    for (size_t j = 0; j < kStep; j += kLanes)
      _mm256_stream_pd(a + i + j,
                       _mm256_fmadd_pd(scalar, _mm256_load_pd(c + i + j), _mm256_load_pd(b + i + j)));
  _mm_sfence();
  plain::triad(a + i, b + i, c + i, n - i);
}

}  // namespace avx2
#endif

const StreamKernels& plainKernels() {
  static constexpr StreamKernels kernels = {"plain", plain::read, plain::write, plain::copy, plain::triad};
  return kernels;
}

const StreamKernels& streamKernels() {
#if defined(__x86_64__)
  static constexpr StreamKernels kernels = {"avx2", avx2::read, avx2::write, avx2::copy, avx2::triad};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernels;
#endif
  return plainKernels();
}

}  // namespace muster::host
