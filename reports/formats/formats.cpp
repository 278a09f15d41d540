// SPDX-License-Identifier: Apache-2.0
// The tables of formats, and the lists of nodes.
#include "reports/formats/formats.h"

#include "reports/junit/junit.h"
#include "runner/core/text.h"

namespace muster {
namespace {

/// The names of the nodes that are accepted, or of all others.
std::vector<std::string> namesOf(const std::vector<NodeStanding>& nodes, bool accepted) {
  std::vector<std::string> names;
  for (const NodeStanding& node : nodes)
    if (node.accepted == accepted) names.push_back(node.name);
  return names;
}

/// "n3,n7", for `srun --exclude`.
std::string excludeList(const std::vector<NodeStanding>& nodes) {
  return join(namesOf(nodes, false), ",") + "\n";
}

/// A name per line, for `mpirun --hostfile` and `srun --nodelist`.
std::string hostFile(const std::vector<NodeStanding>& nodes) {
  std::string text;
  for (const std::string& name : namesOf(nodes, true)) text += name + "\n";
  return text;
}

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"ocp", ".ocp.jsonl", "OCP Test & Validation 2.0, one JSON object per line", renderOcp, nullptr, true},
      {"ctrf", ".ctrf.json", "Common Test Report Format, for CI systems", renderCtrf, nullptr, true},
      {"junit", ".junit.xml", "JUnit, as `muster run` writes it", renderJunit, nullptr, true},
      {"prometheus", ".prom", "text for node_exporter's textfile collector", renderPrometheus,
       mergePrometheus, true},
      {"csv", ".csv", "every sample, one per row", renderCsv, mergeCsv, false},
      {"markdown", ".md", "verdict and findings for a ticket", renderMarkdown, mergeMarkdown, false}};
  return all;
}

const std::vector<NodeListFormat>& nodeListFormats() {
  static const std::vector<NodeListFormat> all = {
      {"exclude", "nodes that are not accepted, separated by commas, for `srun --exclude`", excludeList},
      {"hostfile", "accepted nodes, one per line, for `mpirun --hostfile`", hostFile}};
  return all;
}

}  // namespace muster
