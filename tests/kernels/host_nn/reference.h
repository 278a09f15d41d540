// SPDX-License-Identifier: Apache-2.0
// Networks computed in f64 by plain loops, forward only: gradients are taken from it by finite differences.
// Uses nothing of the backend.
#pragma once

#include <vector>

#include "kernels/spec/network.h"

namespace muster::testing {

class Reference {
 public:
  explicit Reference(const Network& network);

  std::vector<std::vector<double>> parameters;  ///< in the order of Network::parameters()
  std::vector<std::vector<double>> values;      ///< by tensor; inputs are set by the test

  /// Computes every tensor; the loss. Batch statistics, as in training.
  double forward();
  /// Computes one layer from the values of its inputs; the loss where it is that, else 0.
  double compute(const Layer& layer);
  /// d loss / d parameter[index], by central differences; leaves everything as it was.
  double slope(int parameter, size_t index);

 private:
  void convolution(const Layer& layer);
  void batchNorm(const Layer& layer, std::vector<double>& y) const;
  void maxPool(const Layer& layer);
  void averagePool(const Layer& layer);
  void linear(const Layer& layer);
  void embedding(const Layer& layer);
  void layerNorm(const Layer& layer);
  void attention(const Layer& layer);
  double crossEntropy(const Layer& layer) const;

  [[nodiscard]] const std::vector<double>& of(Tensor tensor) const {
    return values[static_cast<size_t>(tensor.id)];
  }
  std::vector<double>& of(Tensor tensor) { return values[static_cast<size_t>(tensor.id)]; }
  [[nodiscard]] const std::vector<double>& parameter(int index) const {
    return parameters[static_cast<size_t>(index)];
  }

  const Network& network_;
};

}  // namespace muster::testing
