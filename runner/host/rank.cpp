// SPDX-License-Identifier: Apache-2.0
// Runs the cases of one rank, or describes its plugin.
#include "runner/host/rank.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>

#include "runner/core/names.h"
#include "runner/core/text.h"
#include "runner/host/callbacks.h"
#include "runner/host/plugin_library.h"
#include "runner/system/files.h"

namespace muster {
namespace {

std::atomic<bool> cancelled{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set by a signal handler");

void watchForTermination() {
  struct sigaction action {};
  action.sa_handler = [](int) { cancelled.store(true); };
  // No SA_RESTART: a plugin that waits in a system call gets EINTR and a chance to look at cancelled().
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

int fatal(FrameWriter& frames, const Error& error) {
  const Status status = frames.write({{"type", "fatal"}, {"message", error.text()}});
  // fputs and not fmt::print, which throws where the plugin has closed stderr.
  std::fputs(fmt::format("muster-host: {}\n", error.text()).c_str(), stderr);
  if (!status.ok()) std::fputs(fmt::format("muster-host: {}\n", status.error().text()).c_str(), stderr);
  return 1;
}

Status bindToCpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return {};
  const int highest = *std::max_element(cpus.begin(), cpus.end());
  cpu_set_t* set = CPU_ALLOC(highest + 1);
  const size_t bytes = CPU_ALLOC_SIZE(highest + 1);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, set);
  const int failed = sched_setaffinity(0, bytes, set);
  const int reason = errno;
  CPU_FREE(set);
  if (failed != 0)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cannot bind to CPUs {}: {}; does the container's cpuset hold them?",
                             fmt::join(cpus, ","), errnoText(reason)),
                 ""};
  return {};
}

/// How a case ended, as its frame says it.
enum class CaseState { kOk, kError, kUnsupported, kCancelled };
constexpr std::array<const char*, 4> namesOf(CaseState) {
  return {"ok", "error", "unsupported", "cancelled"};
}

/// Result of a call of the plugin.
struct Call {
  int status = MUSTER_OK;
  std::string thrown;  ///< an exception crossed the border
};

/// Calls into the plugin. C plugins cannot throw and the SDK catches all, so an exception is the plugin's
/// error.
template <typename F>
Call callPlugin(F call) {
  try {
    return {call(), ""};
  } catch (const std::exception& e) {
    return {MUSTER_ERROR, fmt::format("a C++ exception left the plugin: {}", e.what())};
  } catch (const abi::__forced_unwind&) {
    throw;  // pthread_exit() of the rank's own thread: it must not be swallowed
  } catch (...) {
    return {MUSTER_ERROR, "a C++ exception of unknown type left the plugin"};
  }
}

/// The plugin's session through all its cases.
class Session {
 public:
  Session(const HostRequest& request, FrameWriter& frames, PluginLibrary library)
      : request_(request),
        frames_(frames),
        library_(std::move(library)),
        callbacks_(request, frames, cancelled) {}

  Status run() {
    const muster_plugin_ops& ops = *library_.ops;
    void* session = nullptr;
    const Call opened =
        callPlugin([&] { return ops.open(callbacks_.table(), request_.contextJson.c_str(), &session); });
    const Problem problem = callbacks_.takeProblem();
    for (const HostCase& entry : request_.cases) {
      if (cancelled.load()) break;
      MUSTER_CHECK_OK(stateOf(opened, problem) == CaseState::kOk ? runCase(entry, session)
                                                                 : failCase(entry, opened, problem));
    }
    if (opened.status == MUSTER_OK) close(session);
    // What it printed is its own, not that of the rank which follows in this process.
    std::fflush(stdout);
    std::fflush(stderr);
    Json done{{"type", "done"}, {"cases", ended_}};
    if (request_.simulated) done["virtual_end"] = callbacks_.virtualEnd();
    return frames_.write(done);
  }

 private:
  Status runCase(const HostCase& entry, void* session) {
    MUSTER_CHECK_OK(callbacks_.beginCase(entry));
    const Call call = callPlugin([&] { return library_.ops->run(session, entry.json.c_str()); });
    return endCase("run()", call, callbacks_.takeProblem());
  }

  /// A case that cannot run because open() failed: it begins and ends, so that the runner sees why.
  Status failCase(const HostCase& entry, const Call& opened, const Problem& problem) {
    MUSTER_CHECK_OK(callbacks_.beginCase(entry));
    return endCase("open()", opened, problem);
  }

  Status endCase(const char* function, const Call& call, const Problem& problem) {
    ++ended_;
    std::string message = problem.message;
    if (!call.thrown.empty()) message = call.thrown;
    if (!problem.refused.empty()) message = problem.refused;
    const CaseState state = stateOf(call, problem);
    if (message.empty() && state == CaseState::kCancelled) message = "it was told to stop before it finished";
    if (message.empty() && call.status != MUSTER_OK)
      message = fmt::format("{} of plugin {} returned {} and gave no reason", function,
                            library_.identity.name, statusName(call.status));
    if (call.status == MUSTER_CANCELLED && !cancelled.load())
      message = fmt::format("{} returned \"cancelled\" without a request to stop", function);
    if (call.status == MUSTER_OK && problem.refused.empty() && !problem.said.empty())
      message = fmt::format("{} returned MUSTER_OK, but had called error(): {}", function, problem.said);
    if (state == CaseState::kOk) message.clear();
    Json end = {{"state", nameOf(state)}, {"message", message}, {"remedy", problem.remedy}};
    if (call.thrown.empty() && problem.refused.empty() && call.status == MUSTER_PEER_FAILED)
      end["peer"] = true;
    return frames_.endCase(std::move(end));
  }

  static CaseState stateOf(const Call& call, const Problem& problem) {
    if (!problem.refused.empty() || !call.thrown.empty()) return CaseState::kError;
    if (call.status == MUSTER_OK) return problem.said.empty() ? CaseState::kOk : CaseState::kError;
    if (call.status == MUSTER_UNSUPPORTED) return CaseState::kUnsupported;
    if (call.status == MUSTER_CANCELLED && cancelled.load()) return CaseState::kCancelled;
    return CaseState::kError;
  }

  static std::string statusName(int status) {
    switch (status) {
      case MUSTER_ERROR:
        return "MUSTER_ERROR";
      case MUSTER_UNSUPPORTED:
        return "MUSTER_UNSUPPORTED";
      case MUSTER_CANCELLED:
        return "MUSTER_CANCELLED";
      case MUSTER_BAD_PARAMETER:
        return "MUSTER_BAD_PARAMETER";
      case MUSTER_PEER_FAILED:
        return "MUSTER_PEER_FAILED";
      default:
        return fmt::format("the unknown status {}", status);
    }
  }

  void close(void* session) {
    const Call call = callPlugin([&] {
      library_.ops->close(session);
      return MUSTER_OK;
    });
    const Problem problem = callbacks_.takeProblem();
    for (const std::string& text : {call.thrown, problem.refused, problem.message})
      if (!text.empty()) callbacks_.log(MUSTER_LOG_WARNING, "in close(): " + text);
  }

  const HostRequest& request_;
  FrameWriter& frames_;
  PluginLibrary library_;
  HostCallbacks callbacks_;
  int ended_ = 0;
};

Result<Json> description(const PluginLibrary& library) {
  const char* text = nullptr;
  const Call call = callPlugin([&] {
    text = library.ops->describe();
    return MUSTER_OK;
  });
  if (!call.thrown.empty()) return Error{ErrorCode::kProtocol, call.thrown, library.identity.path};
  if (text == nullptr) return Error{ErrorCode::kProtocol, "describe() returned NULL", library.identity.path};
  const size_t length = strnlen(text, kMaxFrameBytes);
  if (length == kMaxFrameBytes)
    return Error{ErrorCode::kProtocol, "describe() returned more than 1 MiB", library.identity.path};
  return parseJson(std::string_view(text, length)).context(library.identity.path + ": describe()");
}

}  // namespace

int runRanks(const std::vector<Result<HostRequest>>& requests, FrameWriter& frames) {
  watchForTermination();
  for (const Result<HostRequest>& request : requests) {
    if (!request.ok()) return fatal(frames, request.error());
    const Status bound = bindToCpus(request->affinity);
    if (!bound.ok()) return fatal(frames, bound.error());
    Result<PluginLibrary> library = PluginLibrary::load(request->plugin);
    if (!library.ok()) return fatal(frames, library.error());
    const bool inTurn = (library->identity.flags & MUSTER_PLUGIN_IN_TURN) != 0;
    // Never freed: a thread that the plugin leaves running may still call back while we exit.
    static std::vector<Session*>& sessions = *new std::vector<Session*>;
    sessions.push_back(new Session(*request, frames, std::move(*library)));
    if (const Status status = sessions.back()->run(); !status.ok()) return fatal(frames, status.error());
    if (!inTurn) break;
  }
  return 0;
}

int describePlugin(const std::string& path, FrameWriter& frames) {
  Result<PluginLibrary> library = PluginLibrary::load(path);
  if (!library.ok()) return fatal(frames, library.error());
  Result<Json> text = description(*library);
  if (!text.ok()) return fatal(frames, text.error());
  const Status status = frames.write({{"type", "describe"},
                                      {"name", library->identity.name},
                                      {"version", library->identity.version},
                                      {"description", *text}});
  return status.ok() ? 0 : fatal(frames, status.error());
}

}  // namespace muster
