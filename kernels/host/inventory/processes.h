// SPDX-License-Identifier: Apache-2.0
// Who keeps the processors busy beside us: CPU time of every process between two looks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/host/inventory/cpu.h"
#include "kernels/host/inventory/root.h"

namespace muster {

/// CPU time of a process so far in seconds, by its pid; nothing when it is gone or the clock cannot tell.
using ProcessClock = std::function<std::optional<double>(int)>;

/// The kernel's own clock of every process, which counts in nanoseconds.
std::optional<double> processCpuSeconds(int pid);

/// What happened between two looks.
struct CpuUse {
  double seconds = 0;   ///< between them
  double busiest = 0;   ///< share of one CPU (2: two CPUs) of the foreign process that used most; 0: none did
  std::string process;  ///< "stress-ng(123)"; empty: none
  std::string text;     ///< "stress-ng (pid 123) on cpu 1"
  double foreign = 0;   ///< CPUs' worth that all foreign processes used on the processors we may use
  double waited = 0;    ///< largest share of the time that a thread of ours waited for a processor
  double unseen =
      0;  ///< CPUs' worth of busy time, without interrupts, that no process seen at both looks accounts for
  double steal = 0;        ///< share of the machine's CPU time that the hypervisor gave to others
  double utilization = 0;  ///< busy share of the machine's CPU time
};

/// Looks at /proc again and again. Foreign is every process but ourselves, our ancestors, and what descends
/// from the outermost `muster` or `muster-host` among these. Every share is a lower bound: a short burst is
/// taken off, else a daemon that wakes for a moment would look busy in a short look. That is 5 ms where the
/// clock tells, and one tick (10 ms) where only /proc/PID/stat does, so for the children that ended.
class CpuWatch {
 public:
  /// `allowed`: the processors we may use; empty: all.
  CpuWatch(Root root, int self, ProcessClock clock, std::vector<int> allowed = {});

  /// The use since the last call; nothing at the first one, nor so shortly after it that nothing could be
  /// told (8 ms with the clock, 15 ms with ticks; the first one then counts on). An error when /proc does not
  /// show other users' processes.
  Result<std::optional<CpuUse>> look();

 private:
  struct Process {
    int parent = 0;
    uint64_t ticks = 0;             ///< its own
    uint64_t reaped = 0;            ///< of its children that ended, and of theirs
    std::optional<double> seconds;  ///< its own, from the clock
    int cpu = 0;
    bool kernel = false;
    std::string name;
  };
  using Key = std::pair<int, uint64_t>;  ///< pid and start time: a pid may be used again
  using Table = std::map<Key, Process>;

  Result<Table> readProcesses() const;
  struct Use {
    uint64_t own = 0;
    uint64_t children = 0;  ///< that ended meanwhile
    std::optional<double> seconds;
    [[nodiscard]] double busySeconds() const;  ///< with the burst taken off
  };

  /// Ticks that each process and its ended children used since the last look.
  std::map<Key, Use> ticksUsed(const Table& now) const;
  /// What we knew of processes that ended since the last look, by the nearest ancestor that is left: an ended
  /// child takes its whole life into its parent's `reaped`, so this much of it is not new.
  std::map<int, uint64_t> knownOfEnded(const Table& now) const;
  /// Processes of ours: ourselves, our ancestors, and the descendants of the outermost muster among them.
  struct OwnProcesses {
    std::set<int> all;
    std::set<int> run;  ///< the outermost muster and its descendants
  };
  [[nodiscard]] OwnProcesses ownOf(const Table& now) const;
  CpuUse compare(const Table& now, const CpuTimes& times, const std::set<int>& own, double seconds) const;
  /// Seconds that each thread of these processes has waited for a processor so far.
  [[nodiscard]] std::map<int, double> readWaits(const std::set<int>& processes) const;
  /// The longest wait of a thread since the last look, in seconds.
  [[nodiscard]] double longestWait(const std::map<int, double>& waits) const;
  static bool parseStat(std::string_view text, uint64_t& started, Process& process);

  Root root_;
  int self_;
  ProcessClock clock_;
  std::vector<int> allowed_;
  std::map<int, double> waits_;  ///< by thread
  Table last_;
  CpuTimes lastTimes_;
  double lastLook_ = -1;
};

}  // namespace muster
