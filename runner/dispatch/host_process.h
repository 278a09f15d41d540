// SPDX-License-Identifier: Apache-2.0
// One muster-host under supervision: reads its pipes, keeps to the protocol, stops it, and says how it ended.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner/dispatch/frame_lines.h"
#include "runner/dispatch/frame_protocol.h"
#include "runner/dispatch/output_keeper.h"
#include "runner/dispatch/start_host.h"
#include "runner/dispatch/supervisor.h"

namespace muster {

/// One muster-host to start: what it is called in messages, and how.
struct HostJob {
  RankSpec spec;
  std::string who;                   ///< "rank 3 (gpu3)"
  std::vector<std::string> command;  ///< without --supervised: as a person would type it
  int cases = 0;                     ///< how many must end; -1: it has none (describe)
  std::vector<HostJob> after;        ///< what the same process does then, in this order
};

/// Why the runner ended a host before it was done.
enum class StopReason { kNone, kAsked, kTimeout, kHung, kCancelled, kPeer, kProtocol };

/// A running or ended muster-host. Nothing here blocks, except the destructor of one that is still running.
class HostProcess {
 public:
  using OnFrame = std::function<void(const RankSpec&, const Json&)>;

  static Result<std::unique_ptr<HostProcess>> start(HostJob job, double grace, OnFrame onFrame);
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  /// Its descriptors that are still worth waiting for.
  void appendPollFds(std::vector<pollfd>& fds) const;
  /// Takes what has arrived, notices the end, and goes on with a stop that takes too long.
  void service();
  /// Asks the guard to end everything; the first reason stands. Without effect once the rank has ended by
  /// itself.
  void stop(StopReason reason, std::string detail = "");
  /// The same without any grace: for ranks that wait for a peer that is gone.
  void stopAtOnce(StopReason reason, std::string detail);
  /// How it stands now.
  [[nodiscard]] RankStatus status() const;
  /// What it has gone without for longer than `limits` allow; empty: nothing, or it has ended.
  [[nodiscard]] std::string hang(const HangLimits& limits);

  [[nodiscard]] bool ended() const { return ended_; }
  /// Whether its guard has closed its report, so that its exit is a moment away.
  [[nodiscard]] bool closing() const { return !ended_ && !host_.report.valid(); }
  /// Whether it is already known that it will not end well.
  [[nodiscard]] bool failing() const;
  /// Why, in a few words without its name; empty when it ended well.
  [[nodiscard]] std::string reason() const;
  [[nodiscard]] std::string whereText() const;
  [[nodiscard]] const HostJob& job() const { return job_; }
  /// How it ended; only once ended() is true. Of several ranks, the last that its process had to do with.
  [[nodiscard]] RankEnd end() const;
  /// How the ranks before that one ended.
  [[nodiscard]] const std::vector<RankEnd>& endsBefore() const { return endsBefore_; }
  /// Whether the process started that rank: it sent a frame, or the process failed.
  [[nodiscard]] bool begun() const {
    return begun_ || !rankExited_ || code_ != 0 || signal_ != 0 || stop_ != StopReason::kNone;
  }

 private:
  HostProcess(HostJob job, double grace, OnFrame onFrame);
  void readFrames(size_t limit);
  void readOutput(size_t limit);
  void readReport();
  void takeFrame(std::string_view line);
  void goOn();
  void takeReport(std::string_view line);
  void breakProtocol(const std::string& what);
  void warn(const std::string& text);
  void checkGuard();
  void checkPatience();
  void stopWith(int signal, StopReason reason, std::string detail);
  void finish();
  [[nodiscard]] std::string stopText() const;
  [[nodiscard]] std::string endText() const;
  [[nodiscard]] RankEnd::State state() const;
  [[nodiscard]] std::string caseName(int index) const;

  HostJob job_;
  double grace_;
  double abandonAfter_ = 10;
  OnFrame onFrame_;
  SpawnedHost host_;
  FrameLines lines_;
  FrameLines reportLines_;
  FrameProtocol protocol_;
  OutputKeeper output_;

  std::vector<RankEnd> endsBefore_;
  bool begun_ = false;  ///< the rank has sent a frame

  StopReason stop_ = StopReason::kNone;
  std::string stopDetail_;
  std::string violation_;
  std::string abandoned_;  ///< what is known of a process that did not die
  double started_ = 0;
  double endingSince_ = -1;  ///< when the guard should have begun to clean up
  double lastSign_ = 0;      ///< when it last sent a frame, used CPU time or waited for a CPU or a disk
  double cpuSeconds_ = 0;    ///< that it had used then
  double cpuAtFrame_ = 0;    ///< that it had used at its last frame
  bool frameSince_ = true;   ///< it sent a frame since hang() last looked
  double seconds_ = 0;
  uint64_t frameBytes_ = 0;
  int code_ = 0;
  int signal_ = 0;
  int guardStatus_ = 0;
  pid_t rank_ = -1;  ///< the rank's process, once its guard has told
  bool rankExited_ = false;
  bool torn_ = false;
  bool guardLost_ = false;  ///< it did not end in its time and was killed
  bool ended_ = false;
};

/// Runs hosts side by side until all have ended; see runGroup.
Result<std::vector<std::unique_ptr<HostProcess>>> superviseHosts(std::vector<HostJob> jobs,
                                                                 const GroupOptions& options);

/// The job of one rank; writes its request file.
Result<HostJob> rankJob(const RankSpec& spec, const GroupOptions& options);

}  // namespace muster
