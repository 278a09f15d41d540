// SPDX-License-Identifier: Apache-2.0
// Writes what a monitoring system keeps of a run: verdict, counts, margins, time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/formats/formats.h"
#include "runner/core/text.h"
#include "runner/record/findings/marks.h"

namespace muster {
namespace {

constexpr size_t kLongestLabel = 128;  ///< bytes
constexpr size_t kMostMargins = 200;   ///< series of one node
constexpr std::string_view kBlock = "# HELP ";

/// `text` as the value of a label.
std::string labelValue(const std::string& text) {
  std::string out;
  for (const char c : printable(text, kLongestLabel))
    out += c == '\\' || c == '"' ? std::string("\\") + c : std::string(1, c);
  return out;
}

/// name="value" pairs, with a comma before each but the first.
std::string labels(const std::vector<std::pair<const char*, std::string>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs)
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", name, labelValue(value));
  return out;
}

/// The series of one node: each metric is a block of its own.
class Page {
 public:
  explicit Page(const Record& record)
      : common_(labels({{"node", record.node},
                        {"plan", record.plan.name},
                        {"marks", std::string(trim(markPrefix(record)))}})) {}

  void block(const char* name, const char* help) {
    name_ = name;
    out_ += fmt::format("{}{} {}\n# TYPE {} gauge\n", kBlock, name, help, name);
  }
  void value(double value, const std::string& more = "") {
    out_ += fmt::format("{}{{{}{}{}}} {}\n", name_, common_, more.empty() ? "" : ",", more,
                        std::isnan(value) ? "NaN" : fmt::format("{}", value));
  }
  [[nodiscard]] std::string text() && { return std::move(out_); }

 private:
  std::string common_;
  std::string name_;
  std::string out_;
};

void addVerdict(Page& page, const Record& record) {
  page.block("muster_run_verdict", "How the node's last run ended: 1 for this verdict, 0 for the others.");
  for (const char* name : namesOf(Acceptance()))
    page.value(nameOf(record.acceptance) == std::string_view(name) ? 1 : 0, labels({{"verdict", name}}));
  page.block("muster_run_exit_code", "Exit code of the run; 0: accepted.");
  page.value(record.exitCode);
  page.block("muster_run_finished_timestamp_seconds", "When the run ended; its age is time() minus this.");
  page.value(record.finished);
  page.block("muster_run_info", "SKU profile and Muster build of the run.");
  page.value(1, labels({{"sku", record.profile.name}, {"build", record.buildId}}));
  page.block("muster_run_checks", "Check results of the run by outcome.");
  for (int i = 0; i < kOutcomeCount; ++i)
    page.value(static_cast<double>(record.accounting.counts[i]),
               labels({{"outcome", outcomeName(static_cast<Outcome>(i))}}));
}

using Margins = std::map<std::pair<std::string_view, std::string_view>, double>;

/// The least margin of each stage and metric.
Margins leastMargins(const Record& record) {
  Margins margins;
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts) {
      if (verdict.metric.empty() || !std::isfinite(verdict.margin)) continue;
      const auto [at, isNew] = margins.try_emplace(
          std::pair(std::string_view(stage.name), std::string_view(verdict.metric)), verdict.margin);
      if (!isNew) at->second = std::min(at->second, verdict.margin);
    }
  return margins;
}

void addMargins(Page& page, const Record& record) {
  const Margins margins = leastMargins(record);
  std::vector<std::pair<double, Margins::key_type>> nearest;
  for (const auto& [about, margin] : margins) nearest.emplace_back(margin, about);
  std::sort(nearest.begin(), nearest.end());
  const size_t shown = std::min(nearest.size(), kMostMargins);
  page.block("muster_margin_ratio", "Least distance to the limit as a share of it; negative: missed.");
  for (size_t i = 0; i < shown; ++i) {
    const auto& [margin, about] = nearest[i];
    page.value(margin, labels({{"stage", std::string(about.first)}, {"metric", std::string(about.second)}}));
  }
  page.block("muster_margins_left_out", "Metrics without a series in muster_margin_ratio.");
  page.value(static_cast<double>(nearest.size() - shown));
}

}  // namespace

std::string renderPrometheus(const Record& record, TextLimit& /*limit*/) {
  Page page(record);
  addVerdict(page, record);
  addMargins(page, record);
  return std::move(page).text();
}

std::string mergePrometheus(const std::vector<std::string>& texts) {
  // All series of a metric must stand together. Each text has the same blocks in the same order.
  std::vector<std::string> heads, bodies;
  for (const std::string& text : texts) {
    size_t block = 0;
    for (size_t at = 0; at < text.size(); ++block) {
      const size_t end =
          std::min(text.find(std::string("\n") + std::string(kBlock), at), text.size() - 1) + 1;
      const size_t head = text.find('\n', text.find('\n', at) + 1) + 1;
      if (block == heads.size()) {
        heads.push_back(text.substr(at, head - at));
        bodies.emplace_back();
      }
      bodies[block] += text.substr(head, end - head);
      at = end;
    }
  }
  std::string out;
  for (size_t i = 0; i < heads.size(); ++i) out += heads[i] + bodies[i];
  return out;
}

}  // namespace muster
