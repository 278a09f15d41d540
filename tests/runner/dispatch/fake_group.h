// SPDX-License-Identifier: Apache-2.0
// Runs fake plugins through runGroup and the real muster-host, and gathers all that came back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/dispatch/supervisor.h"
#include "tests/support/process.h"

namespace muster::testing {

/// What one group came to.
struct GroupOutcome {
  std::vector<RankEnd> ends;
  std::vector<Json> frames;  ///< of all ranks, in order of arrival

  /// The frames of one type.
  [[nodiscard]] std::vector<Json> of(const std::string& type) const;
  /// State of the `case end` frames, by case.
  [[nodiscard]] std::map<int, std::string> caseStates() const;
};

/// A folder, a marker that all processes below inherit, and requests that name fakes.
class FakeGroup {
 public:
  FakeGroup();

  /// Adds a rank that runs `fake` ("crash") with the parameter `kind`, in `cases` cases.
  Json& add(const std::string& fake, int kind = 0, int cases = 1);
  GroupOutcome run();
  /// Runs what does not end before its deadline. A loaded machine may not even start a rank by then, so the
  /// deadline is four times longer each time until one was long enough for every rank to report progress.
  GroupOutcome runToDeadline();
  /// One rank of `fake`, run at once.
  GroupOutcome run(const std::string& fake, int kind = 0, int cases = 1);
  /// Processes of this group that are still there.
  [[nodiscard]] std::vector<int> left() const { return processesWith(marker_); }

  GroupOptions options;
  std::vector<RankSpec> ranks;
  [[nodiscard]] const TempDir& folder() const { return folder_; }
  [[nodiscard]] const std::string& marker() const { return marker_; }

 private:
  TempDir folder_;
  std::string marker_;
};

std::filesystem::path hostExecutable();
std::filesystem::path fakesDir();
std::filesystem::path fakeLibrary(const std::string& fake);

}  // namespace muster::testing
