// SPDX-License-Identifier: Apache-2.0
// What a rank may say and in which order; see runner/host/README.md.
#pragma once

#include <map>
#include <set>
#include <string>

#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster {

/// Kept of one rank: why its cases failed.
inline constexpr size_t kMostCaseFailures = 16;

/// Follows the frames of one rank. A frame that is accepted has all its fields in the right types, so later
/// readers need not check them; its values may still be false.
class FrameProtocol {
 public:
  /// An error says what is wrong; after one, the stream is not to be trusted any more.
  Status accept(const Json& frame);

  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] bool described() const { return described_; }
  [[nodiscard]] int casesEnded() const { return static_cast<int>(endedCases_.size()); }
  [[nodiscard]] int casesCancelled() const { return cancelled_; }
  [[nodiscard]] int openCase() const { return openCase_; }  ///< -1: none
  [[nodiscard]] const std::string& lastProgress() const { return lastProgress_; }
  [[nodiscard]] const std::string& fatal() const { return fatal_; }
  /// Why cases failed that did not fail because of another rank, by their indices: the first of them.
  [[nodiscard]] const std::map<int, std::string>& caseFailures() const { return caseFailures_; }

 private:
  Status acceptCase(const Json& frame);
  Status acceptDone(const Json& frame);
  Status acceptProgress(const Json& frame);
  Status acceptMeasurement(const Json& frame);
  Status acceptArtifact(const Json& frame);
  Status inOpenCase(const Json& frame) const;

  std::set<int> endedCases_;
  std::string lastProgress_;
  std::string fatal_;
  std::map<int, std::string> caseFailures_;
  int openCase_ = -1;
  int cancelled_ = 0;
  bool done_ = false;
  bool described_ = false;
};

}  // namespace muster
