// SPDX-License-Identifier: Apache-2.0
// What one deviation speaks against: a device, a link, a rail of a node, a switch, or the node as a whole.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

constexpr size_t kWholeNode = 3;  ///< devices that fail alike before the node is to blame

/// The suspect that a deviation of `record` names, without evidence: by its labels `culprit` and `kind` where
/// a test finds the culprit itself, else by `a` and `b` or `peer` the link, else the device. Whether the
/// record has a say about the nodes that it names is for BlameTable.
Suspect culpritOf(const DeviationSummary& deviation, const NodeSummary& record);

/// The value of a label, or an empty text.
std::string labelOf(const DeviationSummary& deviation, const std::string& name);

/// The part of the record's own node that reports the deviation, whatever its labels say.
Suspect ownPart(const DeviationSummary& deviation, const NodeSummary& record);

/// The number of a node in the value of a label `peer`; -1: it is none.
int nodeNumber(const std::string& peer);
/// The number of the node that label `peer` names in a stage of several nodes, or an error "with node 3:
/// ..."; -1: none.
int peerNode(const DeviationSummary& deviation);

/// What the labels `culprit`, `a` and `b` name in the place of nodes.
std::vector<std::string> labelledNodes(const DeviationSummary& deviation);

/// Failures that more than half of a node's devices (three or more) have in common, one suspect each: then it
/// is the node, and naming each device would hide that. Takes them out of `failures`.
std::vector<Suspect> takeWholeNode(std::vector<const DeviationSummary*>& failures, const FleetNode& node,
                                   const FleetNames& names);

/// "fail: gemm, compute.gemm_throughput: gpu5 ...".
std::string deviationLine(const DeviationSummary& deviation, const FleetNames& names);

/// What one record has measured of the culprits that it names.
class CulpritFigures {
 public:
  CulpritFigures(const NodeSummary& record, const FleetNames& names);
  /// As deviationLine(), but with the bandwidth of the culprit beside that of the others, where the record
  /// has both: "28.8 of 48 GB/s, 60%".
  [[nodiscard]] std::string evidenceOf(const DeviationSummary& deviation) const;

 private:
  const FleetNames& names_;
  std::map<std::tuple<std::string, std::string, std::string>, double> medians_;  ///< metric, unit, culprit
};

/// What to do about the culprit that the deviation names.
std::string remedyOf(const DeviationSummary& deviation);

/// The name of the link between two nodes: "n1 - n2", whichever reports it.
std::string linkName(const std::string& a, const std::string& b);

/// The nodes that a suspect is about: one, both ends of a link, or none that it names.
std::vector<std::string> nodesOf(const Suspect& suspect);

/// Serial number of a device, else its UUID; empty where neither is known.
std::string serialOf(const NodeSummary* record, const std::string& device);

}  // namespace muster::fleet
