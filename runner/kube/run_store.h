// SPDX-License-Identifier: Apache-2.0
// A run on Kubernetes as its folder keeps it. The folder belongs to who submits; no pod sees it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/kube/objects.h"
#include "runner/system/files.h"

namespace muster::kube {

/// What a run is: written before its first object.
struct Submission {
  std::string id;
  std::string release;  ///< names of objects begin with it
  double created = 0;   ///< seconds since 1970
  Cluster cluster;
  std::string planName;
  std::string planFile;  ///< its name in inputs/
  bool simulated = false;
  bool together = false;           ///< the plan has stages of scope cluster: all nodes run it together
  Request gpus;                    ///< of each pod
  std::vector<std::string> nodes;  ///< every node that must have a record
  std::vector<std::string> fleetOptions;
  std::vector<std::string> valueFiles;  ///< names in inputs/
};

/// How a node's last pod ended, and where its record went.
struct NodeResult {
  std::string pod;  ///< empty: none since `round`, whose result was set aside
  int round = 0;
  int exitCode = -1;    ///< as Kubernetes says
  std::string problem;  ///< why there is no record that counts; empty: there is one
};

/// The folder of one run:
///   k8s.json inputs/          what was asked for      rounds/1.json        the chart's values of each round
///   run.key                   signs records           results/NODE.json    how the node's pod ended
///   records/NODE/record.json  from the pod's log, and its pages (collect)
///   attempts/NODE.1/          what was set aside of that round; NODE.1-2 ...: of its further pods
///   expect.txt fleet/         for and from `muster fleet`
class RunStore {
 public:
  /// Makes the folder of a new run; refuses one that is not empty.
  static Result<RunStore> create(const std::filesystem::path& folder, const Submission& submission);
  static Result<RunStore> open(const std::filesystem::path& folder);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const Submission& submission() const { return submission_; }
  [[nodiscard]] std::filesystem::path record(const std::string& node) const {
    return folder_ / "records" / node / "record.json";
  }
  [[nodiscard]] std::filesystem::path runKey() const { return folder_ / "run.key"; }
  /// Keeps other processes away; kUsage while one is at work.
  Result<Fd> lock() const;

  /// The number of the last round; 0 before the first.
  [[nodiscard]] int lastRound() const;
  [[nodiscard]] Result<Json> values(int round) const;
  /// Keeps the values of a round, without its keys and token: whoever is given the run's directory reads
  /// them.
  Status keepValues(int round, const Json& values) const;
  /// Takes a round back of which no object exists.
  void dropRound(int round) const;

  /// Nothing where the node has none.
  [[nodiscard]] Result<NodeResult> result(const std::string& node) const;
  /// Keeps a result, and its record if it has one.
  Status keep(const std::string& node, const NodeResult& result, const std::string& record) const;
  /// Moves a node's result and record to attempts/; from then on only pods of later rounds count.
  Status setAside(const std::string& node, int round) const;

 private:
  RunStore(std::filesystem::path folder, Submission submission)
      : folder_(std::move(folder)), submission_(std::move(submission)) {}
  [[nodiscard]] std::filesystem::path resultFile(const std::string& node) const {
    return folder_ / "results" / (node + ".json");
  }
  std::filesystem::path folder_;
  Submission submission_;
};

}  // namespace muster::kube
