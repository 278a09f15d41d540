// SPDX-License-Identifier: Apache-2.0
// Sending several measurements in a row.
#pragma once

#include <string>
#include <vector>

#include "plugins/train/tests.h"

namespace muster::train {

/// Sends measurements until one is refused.
class Teller {
 public:
  explicit Teller(const Bench& bench) : bench_(bench), now_(bench.device.now()) {}
  Teller& number(const char* metric, const char* unit, double value) {
    return samples(metric, unit, {value});
  }
  Teller& samples(const char* metric, const char* unit, const std::vector<double>& values) {
    if (status_.ok()) status_ = bench_.host.measurement(metric, unit, values, {}, now_);
    return *this;
  }
  Teller& text(const char* metric, const std::string& value) {
    if (status_.ok()) status_ = bench_.host.fact(metric, value);
    return *this;
  }
  [[nodiscard]] Status status() const { return status_; }

 private:
  const Bench& bench_;
  double now_;
  Status status_;
};

}  // namespace muster::train
