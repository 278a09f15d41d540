// SPDX-License-Identifier: Apache-2.0
// Evidence for the judge's tests, written as a story: a case ran on these devices and measured that.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runner/judge/judge.h"

namespace muster::testing {

inline const std::string kThroughput = "compute.gemm_throughput";
inline const std::string kDriver = "env.driver";

/// One stage of one case "gemm" that may report a throughput, a count, a temperature and a text.
class Story {
 public:
  Story() {
    evidence.stage = "gemm";
    declare("gemm");
  }

  Story& declare(const std::string& caseId, const Labels& labels = {}) {
    evidence.caseMetrics[caseId] = {kThroughput, kDriver, "compute.wrong", "env.temperature", "compute.copy"};
    evidence.caseLabels[caseId] = labels;
    return *this;
  }
  /// `rank` is bound to "gpu<rank>".
  Story& ends(int rank, CaseEnd::State state = CaseEnd::State::kOk, const std::string& message = "",
              int attempt = 1, const std::string& caseId = "gemm") {
    evidence.ends.push_back(
        {caseId, rank, gpu(rank), attempt, state, message, message.empty() ? "" : "mend it"});
    return *this;
  }
  Story& measures(int rank, std::vector<double> samples, const std::string& metric = kThroughput,
                  int attempt = 1, const std::string& caseId = "gemm") {
    Measurement m;
    m.metric = metric;
    m.unit = metric == kThroughput || metric == "compute.copy" ? (metric == kThroughput ? "FLOP/s" : "B/s")
             : metric == "env.temperature"                     ? "degC"
                                                               : "count";
    m.direction = m.unit == "FLOP/s" || m.unit == "B/s" ? Direction::kHigher : Direction::kLower;
    m.samples = std::move(samples);
    return measures(rank, std::move(m), attempt, caseId);
  }
  Story& says(int rank, const std::string& text, int attempt = 1) {
    Measurement m;
    m.metric = kDriver;
    m.unit = "text";
    m.text = text;
    return measures(rank, std::move(m), attempt, "gemm");
  }
  Story& measures(int rank, Measurement m, int attempt, const std::string& caseId) {
    m.rank = rank;
    m.device = gpu(rank);
    m.labels["device"] = m.device;
    m.attempt = attempt;
    m.caseId = caseId;
    evidence.measurements.push_back(std::move(m));
    return *this;
  }
  Story& expects(Expectation e) {
    evidence.expectations.push_back(std::move(e));
    return *this;
  }

  /// The judgement, with the identity that must hold for every one.
  [[nodiscard]] StageJudgement judge() const {
    StageJudgement judgement = judgeStage(evidence, context);
    EXPECT_TRUE(judgement.accounting.balanced());
    EXPECT_EQ(judgement.verdicts.size(), judgement.accounting.expected);
    return judgement;
  }
  /// The only verdict.
  [[nodiscard]] Verdict verdict() const {
    const auto judgement = judge();
    EXPECT_EQ(judgement.verdicts.size(), 1u) << outcomes();
    return judgement.verdicts.empty() ? Verdict{} : judgement.verdicts.front();
  }
  /// "pass fail error": the outcomes in order.
  [[nodiscard]] std::string outcomes() const {
    std::string text;
    for (const auto& v : judge().verdicts)
      text += (text.empty() ? "" : " ") + std::string(outcomeName(v.outcome));
    return text;
  }

  StageEvidence evidence;
  JudgeContext context;

 private:
  static std::string gpu(int rank) { return rank < 0 ? "" : "gpu" + std::to_string(rank); }
};

/// An expectation of the plan on the throughput.
inline Expectation expecting(CheckKind kind, double limit = 0) {
  Expectation e;
  e.metric = kThroughput;
  e.kind = kind;
  e.limit = limit;
  e.unit = "FLOP/s";
  e.origin = "plan";
  e.source = "measured on a healthy one";
  e.remedy = "Check the clocks";
  return e;
}

inline Expectation atLeast(double limit) {
  return expecting(CheckKind::kMin, limit);
}

inline Expectation expectingOf(const std::string& metric, const std::string& unit, CheckKind kind,
                               double limit = 0) {
  Expectation e = expecting(kind, limit);
  e.metric = metric;
  e.unit = unit;
  return e;
}

inline Expectation within(double tolerance, PeerGroup peers = PeerGroup::kNode) {
  Expectation e = expecting(CheckKind::kWithin);
  e.tolerance = tolerance;
  e.peers = peers;
  return e;
}

inline Expectation onText(CheckKind kind, std::vector<std::string> allowed) {
  Expectation e = expectingOf(kDriver, "text", kind);
  e.allowed = std::move(allowed);
  return e;
}

}  // namespace muster::testing
