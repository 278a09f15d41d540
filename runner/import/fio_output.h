// SPDX-License-Identifier: Apache-2.0
// What fio --output-format=json prints, read strictly: for `muster import` and for the storage plugin.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster {

/// What a job did in one direction.
struct FioDirection {
  double bytes = 0;
  double runtime = 0;     ///< seconds, of the thread that took longest
  double bandwidth = 0;   ///< B/s
  double operations = 0;  ///< per second
  double total = 0;       ///< operations; 0: the job did nothing in this direction
  uint64_t shortOnes = 0, dropped = 0;
  std::optional<double> latency;  ///< seconds, mean of completion latencies; nullopt: none was measured
  std::map<std::string, double> percentiles;  ///< of these, by fio's names: "99.000000", if asked for
};

struct FioJob {
  std::string name;
  std::map<std::string, std::string> options;  ///< its own as written; those without a value are not reported
  double runtime = 0;   ///< seconds, summed over the threads that are reported as this job
  int error = 0;        ///< errno that ended it, or the first one where it went on; 0: none
  uint64_t errors = 0;  ///< failed operations of a job that goes on after errors (continue_on_error)
  std::map<std::string, FioDirection> directions;  ///< read, write and trim; all of them as mixed
};

struct FioOutput {
  std::string version;
  std::map<std::string, std::string> options;  ///< of each job that has no other of this name
  std::vector<FioJob> jobs;
};

/// Errors say the place in the JSON, without a dot before it: "jobs[0].read".
Result<FioOutput> readFioOutput(const Json& json);

}  // namespace muster
