// SPDX-License-Identifier: Apache-2.0
// The supervisor: starts muster-host processes, reads their frames, keeps deadlines and leaves nothing
// behind.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/metrics/states.h"
#include "runner/system/files.h"

namespace muster {

/// One muster-host to start.
struct RankSpec {
  int rank = 0;
  std::string device;                 ///< id, for messages
  Json request;                       ///< what muster-host gets; see runner/host/README.md
  std::filesystem::path requestFile;  ///< where the request is kept, so that the rank can be run again alone
  std::filesystem::path outputFile;   ///< captured stdout and stderr: first and last 8 MiB
  /// Makes a connection to the store of the rank's group, which only the rank gets; empty: it has none.
  std::function<Result<Fd>()> connectStore;
};

/// How a rank's process ended.
struct RankEnd {
  using State = RankOutcome;
  State state = State::kError;
  int rank = 0;
  std::string device;
  int exitCode = 0;
  int signal = 0;
  std::string error;  ///< one line that names rank, device, signal, last progress; empty when ok
  std::string lastProgress;
  std::string outputTail;  ///< last 4 KiB of stdout and stderr
  uint64_t outputDropped = 0;
  int casesEnded = 0;    ///< `case end` frames seen
  std::string rerun;     ///< command line that reruns this rank alone
  double seconds = 0;    ///< wall time
  bool forPeer = false;  ///< the supervisor stopped it because another rank of its group had failed
};

/// "SIGSEGV" of a signal's number; empty of 0.
std::string signalName(int signal);

/// How a running rank stands, seen from outside: nothing here is the plugin's word unless it says so.
struct RankStatus {
  int rank = 0;
  std::string device;
  int pid = -1;           ///< of its process; -1: not known yet
  char state = 0;         ///< of /proc: R, S, D (stuck in the kernel), T (stopped) ...; 0: not known
  double cpuSeconds = 0;  ///< used so far by its process
  bool ended = false;     ///< its process is gone
  std::string failure;    ///< why it will not end well, unless the runner stopped it; empty: nothing known
  int signal = 0;         ///< that ended it, with `failure`; 0: none
  int casesEnded = 0;     ///< `case end` frames seen
  /// The plugin's word: why cases failed that did not fail because of another rank, by their indices.
  std::map<int, std::string> caseFailures;
  std::string lastProgress;
};

/// When a rank that is not bound by wall time has hung: how long it may go without any frame. 0: not watched.
struct HangLimits {
  double idle = 0;  ///< seconds of wall time in which it sleeps and uses no CPU time either
  double busy = 0;  ///< seconds of CPU time
};

/// What a group of ranks is run with.
struct GroupOptions {
  std::filesystem::path hostExecutable;
  double timeout = 300;  ///< seconds of wall time for the whole group; infinity: none
  HangLimits hang;
  double grace = 2;  ///< seconds between TERM and KILL
  /// More than 0: the ranks do not talk to each other (they are simulated), so no more than so many processes
  /// at a time run them in turn. Those behind one that does not end well, or whose plugin wants a process for
  /// each, go on in another.
  int processes = 0;
  /// Node and cluster scope: once a rank dies, the others are stopped and end as kError that names it.
  bool failTogether = false;
  const std::atomic<bool>* cancelled = nullptr;  ///< set by SIGINT and SIGTERM
  /// Called for each well-formed frame of a rank (never for hostile ones: those end the rank as an error).
  /// The supervisor adds `log` frames of its own (processes left behind, output that could not be kept).
  std::function<void(const RankSpec&, const Json& frame)> onFrame;
  /// Called about ten times a second while ranks run, with the seconds so far.
  std::function<void(double)> onTick;
  /// Called about four times a second, once more when a rank begins to fail and right before ranks are
  /// stopped at the deadline, so that their last states are those of their own doing.
  std::function<void(const std::vector<RankStatus>&)> onStatus;
  /// Asked on each turn. A text that is not empty (a peer on another node was lost) kills all ranks at once,
  /// without a grace: they end as kError that says so.
  std::function<std::string()> groupLost;
  /// Signalled from outside the loop; wakes and runs onTick early. -1: none.
  int wakeFd = -1;
};

/// Runs all ranks of a group side by side and returns one end each, in the order given. Single-threaded: a
/// poll loop. An Error is returned only for our own faults (cannot fork, cannot write requests).
Result<std::vector<RankEnd>> runGroup(const std::vector<RankSpec>& ranks, const GroupOptions& options);

/// A helper rank that runs beside stages (telemetry): start it, poll its frames now and then, stop it.
class BackgroundRank {
 public:
  static Result<std::unique_ptr<BackgroundRank>> start(const RankSpec& spec, const GroupOptions& options);
  virtual ~BackgroundRank() = default;
  virtual void poll() = 0;     ///< reads what has arrived and calls onFrame; never blocks
  virtual RankEnd stop() = 0;  ///< asks it to end (TERM), kills it after the grace, returns how it ended
  [[nodiscard]] virtual bool running() const = 0;
  [[nodiscard]] virtual int fd() const = 0;  ///< becomes readable when frames arrive
};

}  // namespace muster
