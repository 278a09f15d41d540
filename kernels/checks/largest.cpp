// SPDX-License-Identifier: Apache-2.0
// See largest.h. A maximum is one of the values that were put in: what shows that a value is intact can lie
// in the value itself, in bits that decide between equals only.
#include "kernels/checks/largest.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/checks/collective_values.h"

namespace muster {
namespace {

constexpr uint64_t kSeal = (1ull << 20) - 1;
constexpr double kMostTold = 0x1p1000;  ///< sums of 2^23 such values are finite

uint64_t valueBits(double value) {
  return std::bit_cast<uint64_t>(value) & ~kSeal;
}

/// `place`: its index, so that a value of another place is not intact either.
double sealed(double value, size_t place) {
  const uint64_t bits = valueBits(value);
  return std::bit_cast<double>(bits | (scatter(scatter(bits) ^ place) & kSeal));
}

double opened(double value) {
  return std::bit_cast<double>(valueBits(value));
}

/// Leaves the sealed maximum in `values`; whether it is intact.
Result<bool> reduce(std::vector<double>& values, const Maximum& maximum) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = sealed(values[i], i);
  const std::vector<double> own = values;
  MUSTER_CHECK_OK(maximum(values));
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]) || values[i] < own[i] || values[i] != sealed(values[i], i)) return false;
  return true;
}

}  // namespace

Error damagedOnItsWay(bool here) {
  // In the words that a fleet looks for (reports/fleet/read/cause.cpp).
  return {ErrorCode::kCorrupt,
          "values that all ranks exchange do not arrive as they were sent, from a rank that cannot be told: "
          "memory or a link of one of them changes data",
          here ? "arrived damaged here" : "arrived well here, damaged at another rank"};
}

Result<std::vector<double>> largestOverRanks(const std::vector<double>& values, const Maximum& maximum) {
  for (const double value : values)
    if (!std::isfinite(value))
      return Error{ErrorCode::kCorrupt,
                   fmt::format("a value of this rank is {}; ranks exchange finite values only", value), ""};
  std::vector<double> largest = values;
  if (values.empty()) return largest;
  MUSTER_TRY(const bool intact, reduce(largest, maximum));
  std::vector<double> damaged = {intact ? 0.0 : 1.0};
  MUSTER_TRY(const bool heard, reduce(damaged, maximum));
  if (!heard || opened(damaged[0]) != 0) return damagedOnItsWay(!intact || !heard);
  for (double& value : largest) value = opened(value);
  return largest;
}

Result<std::vector<double>> gatherOverRanks(Communicator& communicator, const std::vector<double>& values,
                                            const std::vector<bool>& own) {
  MUSTER_TRY(std::vector<double> all, communicator.maxOverRanks(values));
  bool intact = true;
  for (size_t i = 0; i < values.size(); ++i)
    intact = intact && all[i] <= kMostTold && (!own[i] || opened(all[i]) == opened(values[i]));
  MUSTER_TRY(const std::vector<double> changed, communicator.maxOverRanks({intact ? 0.0 : 1.0}));
  if (changed[0] != 0) return damagedOnItsWay(!intact);
  return all;
}

}  // namespace muster
