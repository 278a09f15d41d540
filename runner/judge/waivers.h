// SPDX-License-Identifier: Apache-2.0
// Waivers: known failures that somebody has taken responsibility for, until a date. Pure: text in, verdicts
// out.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runner/metrics/verdict.h"

namespace muster {

/// One waiver. It covers failures of one metric in one stage, on one node or one part.
struct Waiver {
  std::string stage;
  std::string metric;  ///< "compute.gemm_throughput"
  Labels where;        ///< only verdicts that carry these labels
  std::string device;  ///< "gpu3"; empty: any of the node
  std::string serial;  ///< of the device, wherever it is plugged in; empty: any
  std::string node;    ///< host name; empty only beside a serial
  std::string reason;
  std::string approver;
  std::string expires;  ///< "2026-12-31": good until that day ends, UTC
  std::string at;       ///< file:line:column of its definition

  /// "gemm compute.gemm_throughput on n17 gpu3 (dtype=bf16)".
  [[nodiscard]] std::string text() const;
};

/// A waiver file, with its text and digest for the record.
constexpr size_t kMostWaivers = 1000;  ///< of one file or record

struct Waivers {
  std::string path;
  std::string sha256;  ///< filled in by whoever read the file
  std::string text;
  std::vector<Waiver> list;
};

/// Reads a waiver file's text; `file` stands in messages. Every mistake is in the one kUsage error, each with
/// file:line:column: unknown keys with the nearest name, missing ones, dates that are none, waivers that are
/// expired at `now` (seconds since 1970), and two of the same.
Result<Waivers> parseWaivers(std::string_view text, const std::string& file, double now);

/// What a failure is about, to be looked up among waivers. For a fleet as for a node.
struct WaiverTarget {
  std::string node;
  std::string stage;
  std::string metric;
  std::string device;
  std::string serial;
  Labels labels;
};
bool covers(const Waiver& waiver, const WaiverTarget& target);
/// The first waiver that covers `target`, or nullptr.
const Waiver* coveringWaiver(const std::vector<Waiver>& waivers, const WaiverTarget& target);

/// Who a record is about.
struct WaivedNode {
  std::string name;
  std::map<std::string, std::string> serials;  ///< device id -> serial
};

/// Turns the fail and flaky verdicts that a waiver covers into waived ones, and keeps `accounting` in step.
/// An error (it could not be measured) is never covered.
void applyWaivers(const std::vector<Waiver>& waivers, const WaivedNode& node, std::vector<Verdict>& verdicts,
                  Accounting& accounting);

/// What became of one waiver on a node.
enum class WaiverState {
  kApplied,         ///< it covers at least one failure
  kUnexpectedPass,  ///< what it names was measured and met
  kUndecided,       ///< its stage did not run here, or ended in errors
  kUnmatched,       ///< its stage ran and nothing it names was judged: an error
  kElsewhere,       ///< it is about another node or a part that is not here
};
constexpr std::array<const char*, 5> namesOf(WaiverState) {
  return {"applied", "unexpected pass", "undecided", "unmatched", "elsewhere"};
}

struct WaiverUse {
  WaiverState state = WaiverState::kElsewhere;
  size_t covered = 0;  ///< failures that it covers
  size_t passed = 0;   ///< verdicts it names that were met
  std::string detail;  ///< one line for people
};

/// The verdicts of one stage and whether it ran here.
struct StageVerdicts {
  std::string stage;
  bool ran = false;
  const std::vector<Verdict>* verdicts = nullptr;
};

/// What became of each waiver, in their order. Call it after applyWaivers().
std::vector<WaiverUse> waiverUses(const std::vector<Waiver>& waivers, const WaivedNode& node,
                                  const std::vector<StageVerdicts>& stages);

/// The JSON Schema of a waiver file.
Json waiversSchema();

}  // namespace muster
