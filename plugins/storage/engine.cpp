// SPDX-License-Identifier: Apache-2.0
// See engine.h.
#include "plugins/storage/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/system/child_process.h"
#include "runner/system/trust.h"

namespace muster::storage {
namespace {

constexpr double kLook = 0.1;    // seconds between looks at fio and at the wish to stop
constexpr double kAskTime = 10;  // seconds that --version may take
constexpr size_t kMostOutput = 16u << 20;

std::string lastWords(const ChildProcess& fio) {
  constexpr size_t kTail = 300;
  const std::string_view said = trim(fio.err().empty() ? fio.out() : fio.err());
  if (said.empty()) return "it printed nothing";
  return "it printed last: " + printable(said.substr(said.size() - std::min(said.size(), kTail)));
}

ProgramSpec programOf(const std::string& path, std::vector<std::string> arguments) {
  ProgramSpec spec{.command = std::move(arguments), .name = path};
  spec.command.insert(spec.command.begin(), path);
  spec.without = {""};  // every name begins with that
  spec.with = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
  spec.diesWithThread = true;
  spec.mostOutput = kMostOutput;
  return spec;
}

/// How fio ended its only job, where that is not by moving data without an error.
Result<FioJob> jobIn(const ChildProcess& fio) {
  if (fio.signal() != 0)
    return Error{ErrorCode::kIo,
                 fmt::format("fio was killed by signal {} (SIG{}); {}", fio.signal(),
                             sigabbrev_np(fio.signal()), lastWords(fio)),
                 ""};
  // Its notes stand before the JSON.
  const size_t begin = fio.out().find('{');
  const auto json = parseJson(begin == std::string::npos ? "" : std::string_view(fio.out()).substr(begin));
  if (!json.ok())
    return Error{
        ErrorCode::kProtocol,
        fmt::format("fio ended with code {} and without its JSON; {}", fio.exitCode(), lastWords(fio)), ""};
  const auto output = readFioOutput(*json);
  if (!output.ok()) return output.error();
  if (output->jobs.size() != 1)
    return Error{ErrorCode::kProtocol, fmt::format("fio reports {} jobs; expected 1", output->jobs.size()),
                 ""};
  const FioJob& job = output->jobs.front();
  if (job.error != 0 && job.error != EILSEQ && job.errors == 0)
    return Error{ErrorCode::kIo,
                 fmt::format("fio ended with error {} ({}); {}", job.error,
                             strerrordesc_np(job.error) == nullptr ? "unknown" : strerrordesc_np(job.error),
                             lastWords(fio)),
                 ""};
  if (fio.exitCode() != 0 && job.error == 0)
    return Error{ErrorCode::kProtocol,
                 fmt::format("fio ended with code {}; {}", fio.exitCode(), lastWords(fio)), ""};
  return job;
}

}  // namespace

Result<Engine> Engine::find(const Site& site, const FioParams& params, const Scratch& scratch) {
  Engine engine(site, params, scratch);
  const char* folder = std::getenv("MUSTER_FIO_DIR");
  auto path = trustedProgram("fio", folder == nullptr ? "" : folder, "fio", "MUSTER_FIO_DIR");
  if (!path.ok() && path.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kUnsupported, path.error().message, path.error().where};
  if (!path.ok()) return path.error();
  engine.path_ = *path;
  MUSTER_TRY(const ChildProcess asked, runProgram(programOf(engine.path_, {"--version"}), kAskTime));
  const std::string_view version = trim(asked.out());
  if (!version.starts_with("fio-"))
    return Error{ErrorCode::kProtocol, "fio --version printed no version; " + lastWords(asked), engine.path_};
  engine.version_ = fmt::format("{} ({})", printable(version, 32), engine.path_);
  return engine;
}

Result<Engine::Run> Engine::run(const std::string& phase, const std::string& direction,
                                std::vector<std::string> more, double seconds) const {
  std::vector<std::string> arguments = {"--name=data",
                                        "--filename=data",
                                        "--output-format=json",
                                        fmt::format("--size={}", params_.size),
                                        fmt::format("--bs={}", params_.load.blockSize),
                                        "--fallocate=none",
                                        "--verify_state_save=0"};
  if (params_.direct)
    more.insert(more.end(),
                {"--direct=1", "--ioengine=libaio", fmt::format("--iodepth={}", params_.load.queueDepth)});
  else
    more.emplace_back("--ioengine=psync");  // other engines wait as well, through the page cache
  arguments.insert(arguments.end(), more.begin(), more.end());
  ProgramSpec spec = programOf(path_, std::move(arguments));
  spec.folder = scratch_.path();
  MUSTER_TRY(ChildProcess fio, ChildProcess::start(std::move(spec)));
  const double begin = systemClock().now(), limit = params_.timeLimit + seconds;
  while (!fio.ended()) {
    Status status = fio.service(kLook);
    const double passed = systemClock().now() - begin;
    site_.host.progress(seconds > 0 ? std::min(1.0, passed / seconds) : -1, phase);
    if (status.ok() && site_.host.cancelled()) status = Error{ErrorCode::kTimeout, "fio was cancelled", ""};
    if (status.ok() && !fio.ended() && passed > limit)
      status =
          Error{ErrorCode::kTimeout,
                fmt::format("fio did not end within {:g} s and was killed; {}", limit, lastWords(fio)), ""};
    if (status.ok()) continue;
    Status dead = fio.kill();  // a process that stays is the worse news
    return std::move(dead.ok() ? status : dead).context(phase).error();
  }
  auto job = jobIn(fio);
  if (!job.ok()) return std::move(job).error().context(phase);
  const FioDirection moved = job->directions[direction];
  const uint64_t errors = std::max<uint64_t>(job->errors, job->error != 0 ? 1 : 0);
  if (errors == 0 && (!(moved.total > 0) || !(moved.bandwidth > 0) || moved.shortOnes + moved.dropped > 0))
    return Error{ErrorCode::kProtocol, "fio reports success, and moved nothing or not all; " + lastWords(fio),
                 phase};
  return Run{moved, errors, fio.err()};
}

Status Engine::layOut() const {
  MUSTER_TRY(const Run run, this->run("writing the file", "write",
                                      {params_.load.random ? "--rw=randwrite" : "--rw=write",
                                       "--verify=crc32c", "--do_verify=0", "--end_fsync=1"},
                                      0));
  const double blocks = static_cast<double>(params_.size / params_.load.blockSize);
  if (run.errors == 0 && run.moved.total >= blocks) return {};
  return Error{ErrorCode::kIo, fmt::format("fio wrote {:.0f} of {:.0f} blocks", run.moved.total, blocks),
               "writing the file"};
}

Result<StorageFigure> Engine::measure() const {
  const std::string direction = params_.load.writes ? "write" : "read";
  std::vector<std::string> more = {
      "--rw=" + params_.pattern, "--time_based",
      fmt::format("--runtime={}ms", static_cast<int64_t>(params_.load.seconds * 1e3))};
  MUSTER_TRY(const Run run, this->run("measuring " + params_.pattern, direction, more, params_.load.seconds));
  if (run.errors > 0)
    return Error{ErrorCode::kIo, "operations failed: " + printable(run.said, 200), "measuring"};
  StorageFigure figure{run.moved.bandwidth, run.moved.operations};
  for (const auto& [name, field] :
       {std::pair("50.000000", &figure.latencyP50), std::pair("99.000000", &figure.latencyP99),
        std::pair("99.900000", &figure.latencyP999)}) {
    const auto found = run.moved.percentiles.find(name);
    if (found == run.moved.percentiles.end())
      return Error{ErrorCode::kProtocol, fmt::format("fio reports no {} percentile of latency", name),
                   "measuring"};
    *field = found->second;
  }
  return figure;
}

Result<Engine::Check> Engine::verify() const {
  MUSTER_TRY(const Run run,
             this->run("verifying", "read", {"--rw=read", "--verify=crc32c", "--continue_on_error=all"}, 0));
  const double blocks = static_cast<double>(params_.size / params_.load.blockSize);
  if (run.errors == 0 && run.moved.total < blocks)
    return Error{ErrorCode::kProtocol,
                 fmt::format("fio checked {:.0f} of {:.0f} blocks", run.moved.total, blocks), "verifying"};
  return Check{run.errors, printable(trim(std::string_view(run.said).substr(0, run.said.find('\n'))), 200)};
}

}  // namespace muster::storage
