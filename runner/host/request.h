// SPDX-License-Identifier: Apache-2.0
// What muster-host is asked to do, read from the request file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster {

/// One run() of the session.
struct HostCase {
  int index = 0;
  int repeat = 0;
  int attempt = 1;
  std::string json;  ///< the case_json of the ABI
};

/// A request: one plugin, one test, one rank, its cases in order.
struct HostRequest {
  std::string plugin;  ///< path of the library
  std::string test;
  std::string contextJson;  ///< the context_json of the ABI
  int rank = 0;
  int worldSize = 1;
  int groupRank = 0;  ///< among the ranks that talk to each other: alone in scope device, all in others
  int groupSize = 1;
  int store = -1;          ///< a connection to the group's store; -1: in a group of one, and when run by hand
  std::string device;      ///< id, for messages
  bool simulated = false;  ///< a scenario is named: time is virtual
  double virtualStart = 0;
  std::vector<HostCase> cases;
  std::filesystem::path artifactDir;  ///< empty: artifacts are refused
  std::vector<int> affinity;          ///< CPUs; empty: as inherited
  double grace = 2;                   ///< seconds between TERM and KILL
  double abandonAfter = 10;           ///< seconds that KILL is repeated before a survivor is abandoned
};

Result<HostRequest> readRequest(const std::filesystem::path& path);
Result<HostRequest> requestFromJson(const Json& json);

}  // namespace muster
