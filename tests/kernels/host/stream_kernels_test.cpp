// SPDX-License-Identifier: Apache-2.0
// The memory kernels against plain loops, at sizes around every step of theirs, and not a word beyond the
// end.
#include "kernels/host/stream_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

namespace muster::host {
namespace {

struct Free {
  void operator()(double* pages) const { std::free(pages); }
};
using Pages = std::unique_ptr<double[], Free>;

constexpr size_t kGuard = 64;
constexpr double kUntouched = -7;

Pages makePages(size_t n) {
  const size_t bytes = (n + kGuard) * sizeof(double);
  Pages pages(static_cast<double*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
  for (size_t i = 0; i < n + kGuard; ++i) pages[i] = i < n ? static_cast<double>(i % 1000) : kUntouched;
  return pages;
}

class StreamKernelsOfEachSize : public ::testing::TestWithParam<std::pair<const StreamKernels*, size_t>> {
 protected:
  const StreamKernels& kernels_ = *GetParam().first;
  const size_t n_ = GetParam().second;
  Pages a_ = makePages(n_), b_ = makePages(n_), c_ = makePages(n_);

  /// a_[i] is wanted(i) everywhere, and nothing was written past the end.
  template <typename F>
  void expectTarget(F wanted) {
    for (size_t i = 0; i < n_; ++i) ASSERT_EQ(a_[i], wanted(i)) << i;
    for (size_t i = n_; i < n_ + kGuard; ++i) ASSERT_EQ(a_[i], kUntouched) << i;
  }
};

TEST_P(StreamKernelsOfEachSize, ReadSumsEveryWord) {
  double sum = 0;
  for (size_t i = 0; i < n_; ++i) sum += a_[i];
  EXPECT_EQ(kernels_.read(a_.get(), n_), sum);  // integers: every order gives the same sum
}

TEST_P(StreamKernelsOfEachSize, WriteSetsEveryWord) {
  kernels_.write(a_.get(), n_);
  expectTarget([](size_t) { return kWriteValue; });
}

TEST_P(StreamKernelsOfEachSize, CopyMovesEveryWord) {
  for (size_t i = 0; i < n_; ++i) b_[i] = 3 * static_cast<double>(i) + 1;
  kernels_.copy(a_.get(), b_.get(), n_);
  expectTarget([](size_t i) { return 3 * static_cast<double>(i) + 1; });
}

TEST_P(StreamKernelsOfEachSize, TriadCombinesEveryWord) {
  kernels_.triad(a_.get(), b_.get(), c_.get(), n_);
  expectTarget([this](size_t i) { return b_[i] + kTriadScalar * c_[i]; });
}

std::vector<std::pair<const StreamKernels*, size_t>> sizes() {
  std::vector<std::pair<const StreamKernels*, size_t>> all;
  for (const StreamKernels* kernels : {&streamKernels(), &plainKernels()})
    for (size_t n : {0, 1, 3, 15, 16, 17, 31, 32, 33, 63, 100, 512, 1001}) all.emplace_back(kernels, n);
  return all;
}

INSTANTIATE_TEST_SUITE_P(StreamKernels, StreamKernelsOfEachSize, ::testing::ValuesIn(sizes()),
                         [](const auto& info) {
                           return std::string(info.param.first->name) + std::to_string(info.param.second) +
                                  "n" + std::to_string(info.index);
                         });

}  // namespace
}  // namespace muster::host
