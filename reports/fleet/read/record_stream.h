// SPDX-License-Identifier: Apache-2.0
// Records of many nodes, read fast and within bounds: what is torn or hostile is set aside and named.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/fleet/read/interrupted_run.h"
#include "reports/fleet/read/node_summary.h"
#include "runner/core/result.h"
#include "runner/record/record_check.h"

namespace muster::fleet {

/// What one record may cost. A real one of eight GPUs has 0.8 MB, 3,600 measurements of 150 figures and
/// 100,000 samples; that of a ring of 1,000 nodes on eight rails 24,000 figures, whose names take 15 MB.
struct ReadLimits {
  uint64_t bytes = 16ull << 20;
  size_t measurements = 50'000;
  uint64_t keyBytes = 32ull << 20;  ///< names and labels of figures, each counted once
  size_t verdicts = 100'000;
  size_t samples = 4'000'000;  ///< packed ones counted one by one
  size_t stages = 1'000;
  size_t expectations = 1'000;  ///< of one stage; a real one of eight GPUs has 50
  size_t devices = kMostInventoryDevices;
};

/// Who must have written a record.
struct RecordOrigin {
  std::string runKey;  ///< of which each node has its own (record_mac.h); empty: records need no MAC
  std::optional<uint32_t> owner;  ///< user id; files of others or with a second name are no records
};

/// Reads one record after another; keeps its buffers. One for each thread; the tables may be shared.
class RecordReader {
 public:
  explicit RecordReader(FleetNames& names, const ReadLimits& limits = {}, RecordOrigin origin = {});
  ~RecordReader();
  RecordReader(RecordReader&&) noexcept;
  RecordReader& operator=(RecordReader&&) noexcept;

  /// Reads the record at `path`. Errors are reasons for a quarantine: no regular file, larger than the limit,
  /// torn, another schema, names that lead out of the folder, figures that are no numbers, counts that
  /// contradict the verdicts. `directory`: in which the path was found, whose owner could turn a link on the
  /// way to what only the caller can read; empty: a person named it.
  Result<NodeSummary> read(const std::filesystem::path& path, const std::filesystem::path& directory = {});
  /// The same from memory.
  Result<NodeSummary> parse(std::string_view text);
  /// From now on records must come from there.
  void setOrigin(RecordOrigin origin);
  /// From now on figures have Figure::cv and Figure::compared, and the facts hold the parameters of the
  /// stages: what history and learning need, and a fleet does not.
  void keepSpreads();
  /// The node's name as far as the last record could be read; empty where it could not.
  [[nodiscard]] const std::string& lastNode() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Folders in which a run keeps what a resume set aside: nothing in them counts.
inline constexpr const char* kAttemptsFolder = "attempts";

/// All records under a folder.
struct FleetRecords {
  std::unique_ptr<FleetNames> names = std::make_unique<FleetNames>();
  std::vector<NodeSummary> nodes;               ///< in the order of their paths
  std::vector<Quarantined> quarantined;         ///< in the order of their paths
  std::vector<InterruptedRun> interruptedRuns;  ///< runs without a record, in the order of their paths
};

/// Who may write which record, where the launcher knows it: other records are set aside.
struct RecordRules {
  RecordOrigin origin;
  /// The node that a path below the folder belongs to; empty: no record of the run lies there. Unset: every
  /// path is as good as another.
  std::function<std::string(const std::filesystem::path&)> nodeAt;
  /// Why a record that lies with the node `node` does not count; a run that was cut has none (nullptr).
  std::function<Status(const std::string& node, const std::filesystem::path&, const NodeSummary*)> check;
};

/// Why a record at `path` that says it is of node `said` does not count.
Status checkPlace(const RecordRules& rules, const std::string& path, const std::string& said,
                  const NodeSummary* record);

/// The records under `folder`: every file named record.json, and other *.json in folders without one; not
/// followed: links, folders below a record or a journal, folders that begin with a dot. Sorted. An error if
/// `folder` cannot be read.
Result<std::vector<std::filesystem::path>> findRecords(const std::filesystem::path& folder);
/// The folders there of runs that wrote no record: they were interrupted, or are not finished.
Result<std::vector<std::filesystem::path>> findInterruptedRuns(const std::filesystem::path& folder);

/// One for each core that this process may use, at most 16: each thread holds a record and its parsed form.
int readerThreads();

/// Records by their numbers.
struct RecordSource {
  size_t count = 0;
  std::function<Result<NodeSummary>(RecordReader&, size_t)> read;
  std::function<std::string(size_t)> nameOf;
};

/// Reads all of them in `threads` threads, each with a reader of its own. What `waivers` cover is waived in
/// all of them.
FleetRecords readEach(const RecordSource& source, int threads, const ReadLimits& limits = {},
                      const std::vector<Waiver>& waivers = {}, const RecordRules& rules = {});

/// Reads all records under `folder` in `threads` threads. A record that cannot be read never stops the
/// others; only a folder that cannot be read is an error. With `rules.nodeAt`, records are also looked for
/// below a record, so that each that no job writes is named.
Result<FleetRecords> readFleet(const std::filesystem::path& folder, int threads = readerThreads(),
                               const ReadLimits& limits = {}, const std::vector<Waiver>& waivers = {},
                               const RecordRules& rules = {});

}  // namespace muster::fleet
