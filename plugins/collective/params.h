// SPDX-License-Identifier: Apache-2.0
// The parameters of a sweep.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/interfaces/communicator.h"
#include "plugins/sdk/params.h"

namespace muster::collective {

struct Params {
  void declare(sdk::ParamTable& param);
  Status complete();

  CollectiveSpec spec;          ///< without count and inPlace
  std::vector<uint64_t> sizes;  ///< bytes as asked for, rising
  std::vector<bool> inPlace;    ///< the placements to run
  int checks = 1;
  int warmup = 0;
  int iterations = 1;
  double sampleTime = 0;  ///< seconds
  uint64_t latencyTo = 0;
  int localComputeProbes = 0;
  std::string interface;
  std::map<std::string, std::string> settings;  ///< the fabric's, and what the plan adds
  bool graph = false;
  double callTimeout = 60;  ///< seconds

  /// As the plan says it; the fields above follow from these.
  double from = 0, to = 0, factor = 0;
  sdk::Names placements;
  std::string fabric, addedSettings;
};

/// Elements that make a collective of at most `bytes`, at least one (or one per rank).
uint64_t countFor(const CollectiveSpec& spec, uint64_t bytes, int ranks);

const char* placementName(bool inPlace);  ///< in_place, out_of_place

}  // namespace muster::collective
