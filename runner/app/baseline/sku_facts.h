// SPDX-License-Identifier: Apache-2.0
// What the nodes of a SKU without a profile say of its devices and tests, and on what most of them agree.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/app/baseline/baseline_fleet.h"
#include "runner/record/record.h"

namespace muster {

/// What one node says that a new profile takes over.
struct SkuFacts {
  std::map<std::string, std::string>
      stated;              ///< by name: "PCI id", "peak flops.bf16", "size of compute.gemm"
  double memory = 0;       ///< bytes of the first device; 0: not stated
  std::string unreadable;  ///< why its inventory cannot be read; empty: it can

  /// With what another record of the node says, which has other stages.
  void add(SkuFacts other);
};

/// Share by which devices of one SKU may differ in memory: drivers keep a varying part for themselves.
inline constexpr double kMemoryRoom = 0.04;

/// Parameters of each test that figures depend on and that all its cases share, by "plugin.test".
std::map<std::string, Json> sharedParams(const Record& record);

/// Peaks of the devices, without those that each run derives from the network's own two.
std::map<std::string, double> devicePeaks(const Record& record);

SkuFacts skuFacts(const Record& record);

/// `facts`: of each node of `fleet`. Healthy nodes vote on each fact; a node that differs from their majority
/// becomes a misfit, its figures are taken out, and `fleet.example` becomes a node that says what most say.
/// Returns the bytes of memory of the first device in the middle of the fleet. Errors (kUsage): a fact
/// without a majority, or no node that says all of what most say.
Result<double> agreeOnSku(const std::vector<SkuFacts>& facts, FleetToLearn& fleet);

}  // namespace muster
