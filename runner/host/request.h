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

/// Where the store of the rank's group is. Told over a descriptor and never kept in a file: it holds a
/// secret.
struct StoreAccess {
  std::string address;  ///< host:port
  std::string prefix;   ///< of all keys of the group
  std::string key;      ///< opens the store for keys of that prefix
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
  std::optional<StoreAccess> store;  ///< shared by the group; none in a group of one, and when run by hand
  std::string device;                ///< id, for messages
  bool simulated = false;            ///< a scenario is named: time is virtual
  double virtualStart = 0;
  std::vector<HostCase> cases;
  std::filesystem::path artifactDir;  ///< empty: artifacts are refused
  std::vector<int> affinity;          ///< CPUs; empty: as inherited
  double grace = 2;                   ///< seconds between TERM and KILL
  double abandonAfter = 10;           ///< seconds that KILL is repeated before a survivor is abandoned
};

Result<HostRequest> readRequest(const std::filesystem::path& path);
Result<HostRequest> requestFromJson(const Json& json);

/// Reads what the runner writes to the descriptor: {"address", "prefix", "key"}.
Result<StoreAccess> storeAccessFromJson(const Json& json);
Result<StoreAccess> readStoreAccess(int fd);

}  // namespace muster
