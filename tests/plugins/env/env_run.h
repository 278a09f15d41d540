// SPDX-License-Identifier: Apache-2.0
// One test of the installed env plugin, run by the installed muster-host as the runner does.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "tests/support/process.h"

namespace muster::testing {

/// One sample of a measurement frame.
struct EnvMeasurement {
  std::string metric;
  std::map<std::string, std::string> labels;
  double value = 0;
  std::string text;
  double time = 0;
};

/// What a run left.
struct EnvResult {
  std::vector<EnvMeasurement> measurements;
  std::string state;    ///< of the case: ok, error ...
  std::string message;  ///< of the case
  bool done = false;
  std::map<std::string, std::string> artifacts;  ///< name -> content
  std::string output;                            ///< everything, for messages of a failed test

  [[nodiscard]] std::vector<EnvMeasurement> of(const std::string& metric) const;
  /// The only measurement of a metric; a failed expectation when there is not exactly one.
  [[nodiscard]] EnvMeasurement one(const std::string& metric) const;
};

/// How to run it.
struct EnvOptions {
  std::string backend = "host";
  std::string scenario;
  Json params = Json::object();  ///< over the defaults of describe(), written as in a plan
  Json device;                   ///< of the rank; null: none
  int worldSize = 1;
  std::string counters;  ///< of the stage before
  std::vector<std::string>
      wrapper;  ///< command that runs muster-host: timeout, a shell in a control group ...
};

EnvResult runEnv(const std::string& test, const EnvOptions& options = {});

}  // namespace muster::testing
