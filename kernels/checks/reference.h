// SPDX-License-Identifier: Apache-2.0
// How far a matrix product may be from its high-precision reference before it is wrong. Shared by every
// backend.
#pragma once

#include <cstdint>

#include "kernels/interfaces/device.h"
#include "kernels/interfaces/ops.h"

namespace muster {

/// Unit round-off of a floating-point type: 2^-p for p significant bits. 0 for integers, which are exact.
double unitRoundoff(Dtype dtype);

/// How a unit that multiplies matrices adds up, as far as its errors go.
struct Summation {
  double unit = 0;        ///< largest relative error of one addition
  int64_t width = 0;      ///< 0: each addition rounds; else so many products are added at once, and cut off
  double inputError = 0;  ///< relative error that inputs suffer on the way in

  /// IEEE arithmetic of a type: every addition rounds to nearest. Integers are exact.
  static Summation rounding(Dtype accumulator);
  /// NVIDIA's tensor cores for an input type. They align the products of one step and cut them off with the
  /// sum (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330,
  /// 2021): errors have one sign and grow with k, not with its root. fp8 keeps about 14 bits on Hopper
  /// (DeepSeek-V3, arXiv:2412.19437, section 3.3.2). tf32 reads the upper 11 bits of an f32's significand.
  /// f64 rounds.
  static Summation tensorCore(Dtype input);
};

/// The error model of one product of N(0,1) matrices with inner dimension k.
///
/// Each element is a sum whose partial sums grow as sqrt(j), so k rounding errors of at most u * sqrt(j),
/// independent and of mean zero, add up to about u * k / sqrt(6): the probabilistic bound of Higham and Mary,
/// "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5), 2019, with lambda =
/// kSafety. As a share of sqrt(k), the size of a typical element, that is kSafety * u * sqrt(k). Storing a
/// narrow result adds half a unit in its last place: |element| * u of the output type, which is subtracted
/// from the error before it is compared.
class ErrorModel {
 public:
  /// Lambda. The expected error is about 0.4 u sqrt(k): 8 leaves a factor of 20, and still is 4e-5 for f32 at
  /// k = 8192.
  static constexpr double kSafety = 8;

  ErrorModel(Dtype accumulator, Dtype output, int64_t k);
  /// Sums that are cut off: on the way to an element of `kLargest` sigma its partial sums are half of it on
  /// average, and each of k / width steps cuts off up to 2 units of that. Errors of the inputs, of one sign
  /// too, make up to twice that share of the element.
  ErrorModel(const Summation& summation, Dtype output, int64_t k);

  static constexpr double kLargest = 5;

  /// Allowed error as a share of sqrt(k); 0: exact.
  [[nodiscard]] double bound() const { return bound_; }
  /// |computed - reference| beyond the output's rounding, as a share of sqrt(k). NaN or infinity give
  /// infinity.
  [[nodiscard]] double deviation(long double computed, long double reference) const;

 private:
  double bound_;
  double output_;
  double scale_;
};

/// Collects the elements of one check.
class ReferenceCheck {
 public:
  explicit ReferenceCheck(const ErrorModel& model) : model_(model) { error_.bound = model.bound(); }
  void add(int64_t row, int64_t column, long double computed, long double reference);
  [[nodiscard]] const ReferenceError& result() const { return error_; }

 private:
  ErrorModel model_;
  ReferenceError error_;
};

}  // namespace muster
