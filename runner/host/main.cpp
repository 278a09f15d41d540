// SPDX-License-Identifier: Apache-2.0
// muster-host: loads one plugin and runs one test for one rank, or describes the plugin. See README.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/build_info.h"
#include "runner/host/abi_version.h"
#include "runner/host/frame_writer.h"
#include "runner/host/guard.h"
#include "runner/host/rank.h"
#include "runner/host/request.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr const char* kHelp =
    R"(muster-host loads one plugin and runs one test for one rank. `muster run` starts it; to look at a failure, you can too.

  muster-host --describe PLUGIN.so   print what the plugin offers
  muster-host --request FILE         run the request in FILE again; its frames go to stdout, one JSON object per line,
                                     the plugin's own output goes to stderr
  muster-host --version | --help

Option:
  --supervised   as the runner starts it: frames to descriptor 3, lifeline on 4, the supervisor's report to 5; several
                 --request run one after the other
  --with-store   descriptor 6 is a connection to the store of the rank's group. Without it a rank of several cannot talk
                 to the others, whose store ended with their stage: run the stage again to see them together

Exit code: 0 once all cases have ended (each frame says how), 1 when the plugin could not be loaded, 2 on wrong usage,
125 when a process below did not die, 128 + N when signal N ended the rank.
)";

constexpr int kFrameFd = 3;
constexpr int kLifelineFd = 4;
constexpr int kReportFd = 5;
constexpr int kStoreFd = 6;
constexpr int kUsageExit = 2;

struct Arguments {
  bool supervised = false;
  bool withStore = false;
  std::string describe;
  std::vector<std::string> requests;
};

/// The exit code of what needs no plugin (--help, --version, wrong usage), or -1 and the arguments.
int parseArguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--request") arguments.requests.emplace_back();
    std::string* value = word == "--describe"  ? &arguments.describe
                         : word == "--request" ? &arguments.requests.back()
                                               : nullptr;
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kHelp);
      return 0;
    }
    if (word == "--version") {
      fmt::print("muster-host {} (build {}), plugin ABI {}.{}\n", toolVersion(), buildId(), hostAbiMajor(),
                 hostAbiMinor());
      return 0;
    }
    if (word == "--supervised") {
      arguments.supervised = true;
    } else if (word == "--with-store") {
      arguments.withStore = true;
    } else if (value != nullptr && i + 1 < argc && value->empty()) {
      *value = argv[++i];
    } else {
      fmt::print(stderr, "muster-host: cannot use argument \"{}\"; see muster-host --help\n", word);
      return kUsageExit;
    }
  }
  if (arguments.describe.empty() == arguments.requests.empty() ||
      (arguments.requests.size() > 1 && !arguments.supervised)) {
    fmt::print(
        stderr,
        "muster-host: expected either --describe PLUGIN.so or one --request FILE; see muster-host --help\n");
    return kUsageExit;
  }
  return -1;
}

/// The descriptor for frames, out of the way of the plugin and closed in whatever it executes.
int frameDescriptor(bool supervised) {
  const int source = supervised ? kFrameFd : STDOUT_FILENO;
  const int moved = fcntl(source, F_DUPFD_CLOEXEC, 10);
  if (supervised) {
    close(kFrameFd);
  } else {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // what the plugin prints must not stand between the frames
  }
  return moved;
}

int work(const Arguments& arguments, const std::vector<Result<HostRequest>>& requests) {
  FrameWriter frames(frameDescriptor(arguments.supervised));
  if (!arguments.describe.empty()) return describePlugin(arguments.describe, frames);
  return runRanks(requests, frames);
}

/// The requests, and the connection to the store, which whatever a rank executes does not get.
std::vector<Result<HostRequest>> requestsOf(const Arguments& arguments) {
  std::vector<Result<HostRequest>> requests;
  for (const std::string& path : arguments.requests) requests.push_back(readRequest(path));
  if (!arguments.withStore) return requests;
  const int store = fcntl(kStoreFd, F_DUPFD_CLOEXEC, 10);
  if (store >= 0) close(kStoreFd);
  for (Result<HostRequest>& request : requests)
    if (store < 0)
      request = Error{
          ErrorCode::kIo,
          fmt::format("--with-store needs descriptor {} to be open: the runner does that", kStoreFd), ""};
    else if (request.ok())
      request->store = store;
  return requests;
}

int run(int argc, char** argv) {
  Arguments arguments;
  const int early = parseArguments(argc, argv, arguments);
  if (early >= 0) return early;
  GuardOptions options;
  if (arguments.supervised) {
    for (const int fd : {kFrameFd, kLifelineFd, kReportFd})
      if (fcntl(fd, F_GETFD) < 0) {
        fmt::print(stderr, "muster-host: --supervised needs descriptor {} to be open: the runner does that\n",
                   fd);
        return kUsageExit;
      }
    options.lifeline = kLifelineFd;
    options.report = kReportFd;
  }
  const std::vector<Result<HostRequest>> requests = requestsOf(arguments);
  if (!requests.empty() && requests.front().ok()) {
    options.forRank = requests.front()->store;
    options.grace = requests.front()->grace;
    options.abandonAfter = requests.front()->abandonAfter;
  }
  return runGuarded(options, [&] { return work(arguments, requests); });
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::run(argc, argv);
}
