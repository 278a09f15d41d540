// SPDX-License-Identifier: Apache-2.0
// How a host's end is put into a state and one line for people.
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/dispatch/host_process.h"

namespace muster {

std::string signalName(int signal) {
  if (signal == 0) return "";
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string HostProcess::caseName(int index) const {
  if (job_.spec.request.is_object() && job_.spec.request.contains("cases"))
    for (const Json& entry : job_.spec.request["cases"])
      if (entry.is_object() && entry.value("index", -1) == index && entry.contains("case") &&
          entry["case"].is_string())
        return entry["case"];
  return fmt::format("{}", index);
}

RankEnd::State HostProcess::state() const {
  using State = RankEnd::State;
  if (!abandoned_.empty()) return State::kAbandoned;
  if (stop_ == StopReason::kTimeout || stop_ == StopReason::kHung) return State::kTimeout;
  if (stop_ == StopReason::kCancelled) return State::kCancelled;
  return reason().empty() ? State::kOk : State::kError;
}

std::string HostProcess::stopText() const {
  switch (stop_) {
    case StopReason::kTimeout:
      return "timed out after " + stopDetail_;
    case StopReason::kHung:
      return "made no progress for " + stopDetail_;
    case StopReason::kCancelled:
      return "was stopped because the run was cancelled";
    case StopReason::kPeer:
      return "was stopped because " + stopDetail_;
    default:
      return "";
  }
}

/// How the rank's process ended, whatever the runner wanted of it.
std::string HostProcess::endText() const {
  if (!rankExited_ && WIFSIGNALED(guardStatus_))
    return fmt::format("lost its supervisor, which was killed by {}", signalName(WTERMSIG(guardStatus_)));
  if (!protocol_.fatal().empty()) return "could not start: " + protocol_.fatal();
  if (!rankExited_)
    return fmt::format("has a supervisor that ended with code {} and no report", WEXITSTATUS(guardStatus_));
  if (signal_ != 0) return fmt::format("was killed by {} ({})", signalName(signal_), sigdescr_np(signal_));
  if (code_ != 0) return fmt::format("ended with exit code {}", code_);
  if (torn_) return "ended within a frame";
  if (job_.cases < 0) return protocol_.described() ? "" : "ended without describing itself";
  if (!protocol_.done())
    return "ended with exit code 0, but without `done`: the plugin ended its process (exit(), "
           "pthread_exit())";
  if (stop_ == StopReason::kAsked) return "";
  if (protocol_.casesCancelled() > 0) return "was told to stop by a signal that Muster did not send";
  if (protocol_.casesEnded() != job_.cases)
    return fmt::format("sent `done` after {} of {} cases", protocol_.casesEnded(), job_.cases);
  return "";
}

std::string HostProcess::reason() const {
  if (!violation_.empty()) return "violated the frame protocol: " + violation_;
  const std::string stopped = stopText();
  std::string ended = endText();
  if (!abandoned_.empty()) return stopped.empty() ? abandoned_ : stopped + ", and " + abandoned_;
  // That a stopped rank had to be killed is worth a word: it did not react to TERM.
  if (stop_ == StopReason::kAsked && signal_ == SIGKILL) return "did not stop on request and was killed";
  if (guardLost_)
    return (stopped.empty() ? "" : stopped + ", and ") + std::string("its supervisor hung and was killed");
  if (stopped.empty()) return ended;
  return signal_ == SIGKILL ? stopped + " and was killed" : stopped;
}

/// Where the rank was when it ended, as far as its frames tell.
std::string HostProcess::whereText() const {
  if (protocol_.openCase() >= 0)
    return fmt::format(" in case {}", printable(caseName(protocol_.openCase()), 120));
  if (job_.cases <= 0 || protocol_.done() || !protocol_.fatal().empty()) return "";
  if (protocol_.casesEnded() == job_.cases) return " after its last case, in close()";
  return protocol_.casesEnded() == 0 ? " before its first case, while the plugin was loaded or in open()"
                                     : "";
}

RankEnd HostProcess::end() const {
  RankEnd end;
  end.state = state();
  end.rank = job_.spec.rank;
  end.device = job_.spec.device;
  end.exitCode = code_;
  end.signal = signal_;
  end.lastProgress = protocol_.lastProgress();
  end.outputTail = output_.tail();
  end.outputDropped = output_.dropped();
  end.casesEnded = protocol_.casesEnded();
  end.rerun = shellCommand(job_.command);
  end.seconds = seconds_;
  end.forPeer = stop_ == StopReason::kPeer;
  if (end.state == RankEnd::State::kOk) return end;
  end.error = job_.who + " " + reason() + whereText();
  if (!end.lastProgress.empty())
    end.error += fmt::format("; last progress: {}", printable(end.lastProgress, 120));
  end.error += "; rerun it alone: " + end.rerun;
  return end;
}

}  // namespace muster
