// SPDX-License-Identifier: Apache-2.0
// Index maps between PyTorch's orders and ours: each element has a place of its own, in the right row.
#include "kernels/cuda/dnn/device/layout.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace muster::cuda {
namespace {

TEST(Padding, GoesToTheNextMultiple) {
  EXPECT_EQ(padTo(0, 8), 0);
  EXPECT_EQ(padTo(1, 8), 8);
  EXPECT_EQ(padTo(8, 8), 8);
  EXPECT_EQ(padTo(9, 4), 12);
  EXPECT_EQ(padTo((int64_t{1} << 33) + 1, 128), (int64_t{1} << 33) + 128);
}

TEST(Images, GoFromNchwToPaddedNhwc) {
  const ImageShape s{2, 3, 4, 5, 8};
  int64_t index = 0;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t c = 0; c < s.c; ++c)
      for (int64_t h = 0; h < s.h; ++h)
        for (int64_t w = 0; w < s.w; ++w, ++index)
          ASSERT_EQ(nhwcOf(s, index), ((n * s.h + h) * s.w + w) * s.padded + c);
  EXPECT_EQ(s.elements(), 2 * 4 * 5 * 8);
}

TEST(Images, BeyondFourGibiElements) {
  const ImageShape s{300, 64, 512, 512, 64};
  const int64_t last = s.n * s.c * s.h * s.w - 1;
  ASSERT_GT(last, int64_t{1} << 32);
  EXPECT_EQ(nhwcOf(s, last), s.elements() - 1);
}

TEST(Filters, GoFromKcrsToPaddedKrsc) {
  const FilterShape f{5, 3, 7, 2, 8, 4};
  int64_t index = 0;
  std::set<int64_t> taken;
  for (int64_t k = 0; k < f.k; ++k)
    for (int64_t c = 0; c < f.c; ++c)
      for (int64_t r = 0; r < f.r; ++r)
        for (int64_t s = 0; s < f.s; ++s, ++index) {
          const int64_t at = krscOf(f, index);
          ASSERT_EQ(at, ((k * f.r + r) * f.s + s) * f.paddedC + c);
          ASSERT_LT(at, f.paddedElements());
          taken.insert(at);
        }
  EXPECT_EQ(static_cast<int64_t>(taken.size()), f.elements());
}

TEST(Filters, OfOnePixelAreMatrices) {
  const FilterShape f{16, 8, 1, 1, 16, 8};
  for (int64_t i = 0; i < f.elements(); ++i) ASSERT_EQ(krscOf(f, i), i);
}

TEST(Heads, LieApartInTheRightOrder) {
  const HeadShape s{2, 3, 4, 5};
  int64_t index = 0;
  for (int64_t part = 0; part < 3; ++part)
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t t = 0; t < s.t; ++t)
          for (int64_t i = 0; i < s.width; ++i, ++index)
            ASSERT_EQ(packedOf(s, 3, index), (((n * s.t + t) * 3 + part) * s.heads + h) * s.width + i);
}

}  // namespace
}  // namespace muster::cuda
