// SPDX-License-Identifier: Apache-2.0
// Builds the tables of values that peer comparison and distributions use.
#include "reports/fleet/assess/peer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "reports/fleet/blame/cluster_stages.h"
#include "reports/fleet/blame/culprit.h"
#include "reports/fleet/check/record_finding.h"
#include "runner/core/majority.h"
#include "runner/core/statistics.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

const std::string kNoDevice;  ///< stands for the node itself
constexpr size_t kBins = 24;
constexpr size_t kFewest = 8;        ///< devices that a metric is compared over
constexpr size_t kSparsest = 64;     ///< and one in so many has it: else the table is nearly empty
constexpr size_t kLeastHolders = 2;  ///< that have it: else one node would choose the figures of all

bool startsWith(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

/// What suffers together, by what the metric's plugin measures.
std::string classOf(const FigureKey& key) {
  if (startsWith(key.metric, "compute.") || startsWith(key.metric, "train.")) return "compute-bound";
  if (key.metric == "memory.bandwidth" || key.metric == "memory.latency") return "memory-bound";
  if (startsWith(key.metric, "memory.host") || startsWith(key.metric, "memory.device_to") ||
      startsWith(key.metric, "memory.peer") || startsWith(key.metric, "collective.") ||
      startsWith(key.metric, "ring.") || startsWith(key.metric, "rdma."))
    return "link-bound";
  return "";
}

/// Whether peers say something about a metric: what is judged or is heat, power or clocks; not how long a
/// test took, and not what a pair of nodes reached: either of them may be the slow one.
bool tells(const FigureKey& key) {
  if (key.metric == "env.temperature" || key.metric == "env.memory_temperature" ||
      key.metric == "env.power" || key.metric == "env.clock")
    return true;
  if (const auto peer = key.labels.find("peer"); peer != key.labels.end() && nodeNumber(peer->second) >= 0)
    return false;
  return !key.informational && key.unit != "ratio" && key.direction != Direction::kNone;
}

PeerMetric metricOf(const FigureKey& key) {
  PeerMetric metric;
  FigureKey shown = key;
  shown.labels.erase("peer");
  metric.name = shown.text();
  metric.unit = key.unit;
  metric.direction = key.direction;
  metric.metricClass = key.direction == Direction::kNone ? "" : classOf(key);
  if (key.unit == "degC") {
    metric.comparison = Comparison::kAbsolute;
    metric.floor = 1.0;
  }
  return metric;
}

/// What a record says of a figure beside its value: it decides how nodes are compared.
std::string answerOf(const FigureKey& key) {
  return fmt::format("{}\n{}\n{}", directionName(key.direction), key.informational ? "i" : "", key.peak);
}

/// The same for people: `gemm: compute.gemm_throughput (dtype=bf16) has the direction "higher" and ...`.
std::string answerText(const FigureKey& key) {
  FigureKey shown = key;
  shown.labels.erase("peer");
  return fmt::format("{} has the direction \"{}\" and {}{}", shown.text(), directionName(key.direction),
                     key.peak.empty() ? "no peak" : fmt::format("the peak \"{}\"", printable(key.peak, 80)),
                     key.informational ? ", and is informational" : "");
}

/// Keys that give one answer to one question, and whose records hold them.
struct Answer {
  uint32_t question = 0;
  uint32_t example = 0;  ///< of its keys, which differ in `peer`, the one with the least text
  size_t nodes = 0;
};

/// The figures of the nodes of one group. What they are of, without `peer`, is a question; direction, peak
/// and whether they are informational are the answer that a record gives to it. Each answer is a column of
/// its own, so that no record chooses how the values of the others are compared.
class GroupFigures {
 public:
  GroupFigures(const FleetRecords& records, const FleetNodes& nodes, const std::vector<size_t>& group)
      : records_(records), nodes_(nodes), group_(group) {
    numberAnswers();
    count();
  }

  [[nodiscard]] const std::vector<Answer>& answers() const { return answers_; }
  [[nodiscard]] uint32_t answerOfKey(uint32_t key) const { return answerOf_.at(key); }
  /// Whether peers say something about it.
  [[nodiscard]] bool isCompared(uint32_t answer) const { return tells(keyOf(answer)); }

  /// Names the nodes whose answers are not those of most nodes; they are not accepted.
  void addContradictions(FleetNodes& nodes, std::vector<RecordFinding>& findings) const {
    struct Contradicted {
      std::string text;  ///< of the first one
      size_t more = 0;
    };
    std::map<std::vector<size_t>, Contradicted> byNodes;
    for (auto& [answer, odd] : minorities()) {
      const std::string why =
          whyNoMajority(odd.size(), asked_[answers_[answer].question], answerText(keyOf(answer)));
      const auto [at, fresh] = byNodes.try_emplace(odd, Contradicted{why, 0});
      if (!fresh) ++at->second.more;
    }
    for (const auto& [odd, contradicted] : byNodes) {
      std::vector<std::string> names;
      for (const size_t n : odd) names.push_back(nodes[n].name);
      RecordFinding finding;
      finding.kind = FindingKind::kBinding;
      finding.text = fmt::format("{}: {}", shortNames(names), contradicted.text);
      if (contradicted.more > 0)
        finding.text += fmt::format("; so it is with {} more metric{}", contradicted.more,
                                    contradicted.more == 1 ? "" : "s");
      finding.next = "Compare the versions of Muster and its plugins, then run the plan again on these nodes";
      findings.push_back(settled(std::move(finding), odd, NodeState::kIncomplete, records_, nodes));
    }
  }

 private:
  [[nodiscard]] const FigureKey& keyOf(uint32_t answer) const {
    return records_.names->figures[answers_[answer].example];
  }

  void numberAnswers() {
    for (const size_t n : group_)
      for (const size_t r : nodes_[n].records)
        for (const Figure& figure : records_.nodes[r].figures) answerOf_.emplace(figure.key, 0);
    std::map<std::string, std::map<std::string, std::vector<uint32_t>>> byText;
    for (const auto& [number, none] : answerOf_) {
      const FigureKey& key = records_.names->figures[number];
      FigureKey shown = key;
      shown.labels.erase("peer");
      byText[fmt::format("{}\n{}\n{}", shown.text(), shown.caseId, shown.unit)][answerOf(key)].push_back(
          number);
    }
    for (const auto& [question, answers] : byText) {
      for (const auto& [text, keys] : answers) {
        // The numbers depend on the reading threads.
        const auto least = std::min_element(keys.begin(), keys.end(), [&](uint32_t a, uint32_t b) {
          return records_.names->figures.textOf(a) < records_.names->figures.textOf(b);
        });
        for (const uint32_t key : keys) answerOf_[key] = static_cast<uint32_t>(answers_.size());
        answers_.push_back({static_cast<uint32_t>(asked_.size()), *least, 0});
      }
      asked_.push_back(0);
    }
  }

  /// Each node has one vote for each answer that it gives, however many figures it has.
  void count() {
    std::vector<size_t> lastAnswer(answers_.size(), nodes_.size()), lastAsked(asked_.size(), nodes_.size());
    for (const size_t n : group_)
      for (const size_t r : nodes_[n].records)
        for (const Figure& figure : records_.nodes[r].figures) {
          const uint32_t number = answerOfKey(figure.key);
          Answer& answer = answers_[number];
          if (std::exchange(lastAnswer[number], n) != n) ++answer.nodes;
          if (std::exchange(lastAsked[answer.question], n) != n) ++asked_[answer.question];
        }
  }

  /// Answers without a majority, each with its nodes, where peers say something about the question.
  [[nodiscard]] std::map<uint32_t, std::vector<size_t>> minorities() const {
    std::vector<bool> compared(asked_.size());
    for (uint32_t i = 0; i < answers_.size(); ++i)
      if (isCompared(i)) compared[answers_[i].question] = true;
    std::map<uint32_t, std::vector<size_t>> found;
    for (uint32_t i = 0; i < answers_.size(); ++i)
      if (compared[answers_[i].question] && !isMajority(answers_[i].nodes, asked_[answers_[i].question]))
        found[i];
    for (const uint32_t answer : leadersAnswers(found)) found.erase(answer);
    if (found.empty()) return found;
    for (const size_t n : group_)
      for (const size_t r : nodes_[n].records)
        for (const Figure& figure : records_.nodes[r].figures) {
          const auto at = found.find(answerOfKey(figure.key));
          if (at != found.end() && (at->second.empty() || at->second.back() != n)) at->second.push_back(n);
        }
    return found;
  }

  /// What a group of nodes measured together is in the record of its first node alone: of `contested`
  /// answers, those that a first node gives, where no other first node gives another.
  [[nodiscard]] std::vector<uint32_t> leadersAnswers(
      const std::map<uint32_t, std::vector<size_t>>& contested) const {
    if (contested.empty()) return {};
    const std::set<uint32_t> overNodes = clusterStages(records_, nodes_);
    std::map<uint32_t, std::set<uint32_t>> given;  // by question
    for (const size_t n : group_)
      for (const size_t r : nodes_[n].records) {
        const NodeSummary& record = records_.nodes[r];
        if (record.nodeRank != 0 || record.nodeCount < 2) continue;
        std::set<std::string> stages;
        for (const StageSummary& stage : record.stages)
          if (overNodes.contains(stage.name)) stages.insert(records_.names->texts[stage.name]);
        for (const Figure& figure : record.figures) {
          const uint32_t answer = answerOfKey(figure.key);
          if (contested.contains(answer) && stages.contains(keyOf(answer).stage))
            given[answers_[answer].question].insert(answer);
        }
      }
    std::vector<uint32_t> known;
    for (const auto& [question, answers] : given)
      if (answers.size() == 1) known.push_back(*answers.begin());
    return known;
  }

  const FleetRecords& records_;
  const FleetNodes& nodes_;
  const std::vector<size_t>& group_;
  std::unordered_map<uint32_t, uint32_t> answerOf_;  ///< by number of the key
  std::vector<Answer> answers_;                      ///< in the order of their texts
  std::vector<size_t> asked_;                        ///< of each question, the nodes that answer it
};

class TableBuilder {
 public:
  TableBuilder(const FleetRecords& records, const FleetNodes& nodes, const std::vector<size_t>& group)
      : records_(records), nodes_(nodes), group_(group), figures_(records, nodes, group) {}

  [[nodiscard]] const GroupFigures& figures() const { return figures_; }

  [[nodiscard]] PeerTable table(const std::string& sku, bool nodeWide,
                                std::vector<std::string>& notes) const {
    PeerTable table;
    table.nodeWide = nodeWide;
    table.group.name = sku;
    table.nodes = group_;
    size_t rows = 0;
    for (const size_t i : group_) {
      PeerNode node{nodes_[i].name, {}};
      if (nodeWide)
        node.devices = {kNoDevice};
      else
        for (const DeviceIdentity& device : records_.nodes[nodes_[i].records.front()].devices)
          if (device.kind != "other") node.devices.push_back(device.id);
      rows += node.devices.size();
      table.group.nodes.push_back(std::move(node));
    }
    const Columns columns = columnsOf(table, rows);
    if (columns.sparse > 0)
      notes.push_back(
          fmt::format("{}: {} metric{} not compared: only one node, or fewer than one {} in {}, has {}", sku,
                      columns.sparse, columns.sparse == 1 ? " was" : "s were", nodeWide ? "node" : "device",
                      kSparsest, columns.sparse == 1 ? "it" : "them"));
    const size_t width = columns.answers.size();
    table.group.values.assign(rows * width, kNaN);
    double* at = table.group.values.data();
    for (size_t i = 0; i < group_.size(); ++i) {
      fill(nodes_[group_[i]], table.group.nodes[i].devices, columns, at);
      at += width * table.group.nodes[i].devices.size();
    }
    keepColumns(table, columns, rows);
    return table;
  }

 private:
  /// The answers that have a column.
  struct Columns {
    std::vector<int> ofAnswer;      ///< -1: none
    std::vector<uint32_t> answers;  ///< of each column
    size_t sparse = 0;              ///< answers that only one node has, or too few of many rows
  };

  /// Calls `visit(row of the node, answer, median)` for its figures of these devices.
  template <typename F>
  void eachFigure(const FleetNode& node, const std::vector<std::string>& devices, F visit) const {
    for (const size_t r : node.records) {
      const NodeSummary& record = records_.nodes[r];
      const auto rowOf = [&](const std::string& id) {
        return std::find(devices.begin(), devices.end(), id) - devices.begin();
      };
      const auto end = static_cast<std::ptrdiff_t>(devices.size());
      std::vector<std::ptrdiff_t> rows = {rowOf(kNoDevice)};
      for (const DeviceIdentity& device : record.devices) rows.push_back(rowOf(device.id));
      for (const Figure& figure : record.figures)
        if (const std::ptrdiff_t row = rows[static_cast<size_t>(figure.device + 1)]; row != end)
          visit(static_cast<size_t>(row), figures_.answerOfKey(figure.key), figure.median);
    }
  }

  /// The least number of values that a column of so many rows is made for. What the first rank alone reports
  /// for its whole group has no peers.
  static size_t fewestOf(size_t rows) { return rows < kFewest ? 1 : std::max(kFewest, rows / kSparsest); }

  /// Counted before the table is allocated: what only a few records hold would cost a value in every row.
  [[nodiscard]] Columns columnsOf(const PeerTable& table, size_t rows) const {
    std::vector<size_t> figures(figures_.answers().size());
    for (size_t i = 0; i < group_.size(); ++i)
      eachFigure(nodes_[group_[i]], table.group.nodes[i].devices,
                 [&](size_t, uint32_t answer, double) { ++figures[answer]; });
    Columns columns;
    columns.ofAnswer.assign(figures.size(), -1);
    for (uint32_t answer = 0; answer < figures.size(); ++answer) {
      if (!figures_.isCompared(answer)) continue;
      const bool ofOne = group_.size() > 1 && figures_.answers()[answer].nodes < kLeastHolders;
      if (figures[answer] < fewestOf(rows) || (rows >= kFewest && ofOne)) {
        if (figures[answer] >= kFewest) ++columns.sparse;
        continue;
      }
      columns.ofAnswer[answer] = static_cast<int>(columns.answers.size());
      columns.answers.push_back(answer);
    }
    return columns;
  }

  /// Writes the figures of one node, row by row. Pairs of one device become their median.
  void fill(const FleetNode& node, const std::vector<std::string>& devices, const Columns& columns,
            double* rows) const {
    const size_t width = columns.answers.size();
    std::map<size_t, std::vector<double>> several;
    eachFigure(node, devices, [&](size_t row, uint32_t answer, double median) {
      if (columns.ofAnswer[answer] < 0) return;
      const size_t cell = row * width + static_cast<size_t>(columns.ofAnswer[answer]);
      if (std::isnan(rows[cell])) {
        rows[cell] = median;
        return;
      }
      auto& list = several[cell];
      if (list.empty()) list.push_back(rows[cell]);
      list.push_back(median);
    });
    for (auto& [cell, list] : several) rows[cell] = medianOf(list);
  }

  /// Drops columns of too few devices, or whose median is not above zero.
  void keepColumns(PeerTable& table, const Columns& columns, size_t rows) const {
    const size_t width = columns.answers.size();
    std::vector<size_t> kept;
    std::vector<double> column;
    for (size_t c = 0; c < width; ++c) {
      column.clear();
      for (size_t r = 0; r < rows; ++r)
        if (const double x = table.group.values[r * width + c]; !std::isnan(x)) column.push_back(x);
      if (column.size() < fewestOf(rows) || !(medianOf(column) > 0)) continue;
      kept.push_back(c);
      table.keys.push_back(figures_.answers()[columns.answers[c]].example);
      table.group.metrics.push_back(metricOf(records_.names->figures[table.keys.back()]));
    }
    size_t to = 0;
    for (size_t r = 0; r < rows; ++r)
      for (const size_t c : kept) table.group.values[to++] = table.group.values[r * width + c];
    table.group.values.resize(to);
  }

  const FleetRecords& records_;
  const FleetNodes& nodes_;
  const std::vector<size_t>& group_;
  GroupFigures figures_;
};

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

Distribution describe(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  Distribution d;
  d.n = values.size();
  d.low = values.front();
  d.high = values.back();
  d.median = medianOf(values);
  d.q05 = quantile(values, 0.05);
  d.q95 = quantile(values, 0.95);
  d.bins.assign(kBins, 0);
  const double step = (d.high - d.low) / kBins;
  for (const double x : values)
    ++d.bins[step > 0 ? std::min(kBins - 1, static_cast<size_t>((x - d.low) / step)) : 0];
  for (double& x : values) x = std::fabs(x - d.median);
  d.spread = kMadToSigma * medianOf(values);
  return d;
}

}  // namespace

PeerTables peerTables(const FleetRecords& records, FleetNodes& nodes) {
  std::map<std::pair<std::string, size_t>, std::vector<size_t>> groups;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!nodes[i].records.empty() && nodes[i].devices > 0)
      groups[{nodes[i].sku, nodes[i].devices}].push_back(i);
  PeerTables made;
  for (const auto& [key, group] : groups) {
    const TableBuilder builder(records, nodes, group);
    builder.figures().addContradictions(nodes, made.findings);
    for (const bool nodeWide : {false, true}) {
      PeerTable table = builder.table(key.first, nodeWide, made.notes);
      if (!nodeWide || !table.keys.empty()) made.tables.push_back(std::move(table));
    }
  }
  return made;
}

namespace {

/// A figure and how far a device may stay behind it, as a share.
struct Wanted {
  double figure = 0;
  double tolerance = 0;

  /// The figure that is just good enough.
  [[nodiscard]] double edge(Direction direction) const {
    return direction == Direction::kLower ? figure * (1 + tolerance) : figure * (1 - tolerance);
  }
};

std::optional<Wanted> wantedBy(const Expectation& e, const FigureKey& key, const ProfileFigures& profile) {
  // What only warns does not say what a healthy device must reach.
  if (e.severity != Severity::kFail || e.metric != key.metric || !labelsMatch(key.labels, e.where))
    return std::nullopt;
  const bool higher = key.direction == Direction::kHigher;
  switch (e.kind) {
    case CheckKind::kMin:
      return higher ? std::optional(Wanted{e.limit, 0}) : std::nullopt;
    case CheckKind::kMax:
      return higher ? std::nullopt : std::optional(Wanted{e.limit, 0});
    case CheckKind::kBaseline:
      return Wanted{e.limit, e.tolerance};
    case CheckKind::kOfPeak: {
      const auto peak = profile.peaks.find(key.peak);
      return peak == profile.peaks.end() ? std::nullopt : std::optional(Wanted{e.limit * peak->second, 0});
    }
    default:
      return std::nullopt;  // peers, spread and texts are no figure
  }
}

/// The profile that most nodes of the table were judged by; nodes of one SKU may have had different editions.
const ProfileFigures* profileOf(const PeerTable& table, const FleetRecords& records,
                                const FleetOptions& options, const FleetNodes& nodes) {
  std::map<std::string, size_t> votes;
  for (const size_t node : table.nodes) ++votes[records.nodes[nodes[node].records.front()].profileSha256];
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end()) return nullptr;
  const auto found = options.profiles.find(most->first);
  return found == options.profiles.end() ? nullptr : &found->second;
}

}  // namespace

void addExpected(PeerTable& table, const FleetRecords& records, const FleetOptions& options,
                 const FleetNodes& nodes) {
  const ProfileFigures* profile = profileOf(table, records, options, nodes);
  if (profile == nullptr) return;
  for (size_t c = 0; c < table.keys.size(); ++c) {
    const FigureKey& key = records.names->figures[table.keys[c]];
    if (key.direction == Direction::kNone) continue;
    PeerMetric& metric = table.group.metrics[c];
    for (const Expectation& e : profile->expectations) {
      const std::optional<Wanted> wanted = wantedBy(e, key, *profile);
      if (!wanted || !(wanted->figure > 0)) continue;
      const Wanted now{metric.expected, metric.tolerance};
      const double stricter = wanted->edge(key.direction) - now.edge(key.direction);
      if (!std::isnan(now.figure) && (key.direction == Direction::kHigher ? stricter <= 0 : stricter >= 0))
        continue;
      metric.expected = wanted->figure;
      metric.tolerance = wanted->tolerance;
    }
  }
}

std::vector<Distribution> distributionsOf(const PeerTable& table, const FleetRecords& records) {
  std::vector<Distribution> all;
  const size_t width = table.keys.size();
  std::vector<double> values;
  for (size_t c = 0; c < width; ++c) {
    values.clear();
    for (size_t i = c; i < table.group.values.size(); i += width)
      if (!std::isnan(table.group.values[i])) values.push_back(table.group.values[i]);
    if (values.empty()) continue;
    Distribution d = describe(values);
    d.key = table.keys[c];
    d.name = table.group.metrics[c].name;
    d.sku = table.group.name;
    d.unit = records.names->figures[d.key].unit;
    d.direction = records.names->figures[d.key].direction;
    all.push_back(std::move(d));
  }
  return all;
}

void addWorstShares(const PeerTable& table, const std::vector<Distribution>& distributions,
                    FleetNodes& nodes) {
  const size_t width = table.keys.size();
  size_t row = 0;
  for (size_t n = 0; n < table.nodes.size(); ++n) {
    FleetNode& node = nodes[table.nodes[n]];
    for (const std::string& device : table.group.nodes[n].devices) {
      const double* values = table.group.values.data() + width * row++;
      for (size_t c = 0; c < width; ++c) {
        const PeerMetric& metric = table.group.metrics[c];
        // Heat, power and clocks follow the load; what counts here is how fast a node is.
        if (std::isnan(values[c]) || metric.metricClass.empty() || !(values[c] > 0)) continue;
        const double median = distributions[c].median;
        const double share = metric.direction == Direction::kLower ? median / values[c] : values[c] / median;
        if (node.worstShare <= share) continue;
        node.worstShare = share;
        node.worstFigure = (device.empty() ? "" : device + ", ") + metric.name;
      }
    }
  }
}

}  // namespace muster::fleet
