// SPDX-License-Identifier: Apache-2.0
// See program.h.
#include "plugins/exec/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/system/child_process.h"
#include "runner/system/trust.h"

namespace muster::exec {
namespace fs = std::filesystem;
namespace {

constexpr double kLook = 0.1;  // seconds between looks at the deadline
constexpr const char* kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Error notAllowed(const std::string& program, const std::string& problem) {
  return {ErrorCode::kNotFound,
          fmt::format("{}; the operator lists the directories of programs that plans may run in "
                      "MUSTER_EXEC_DIR, separated by ':'",
                      problem),
          "program " + printable(program, 200)};
}

std::string lastWords(const std::string& text) {
  constexpr size_t kTail = 300;
  const std::string_view end = trim(text);
  if (end.empty()) return "it printed nothing";
  return "it printed last: " + printable(end.substr(end.size() - std::min(end.size(), kTail)));
}

Status verdictOf(const ChildProcess& child, const CommandParams& params) {
  if (child.signal() != 0)
    return Error{ErrorCode::kProtocol,
                 fmt::format("it was ended by signal {} ({}); {}", child.signal(), strsignal(child.signal()),
                             lastWords(child.err())),
                 ""};
  if (child.exitCode() == params.exitCode) return {};
  return Error{ErrorCode::kProtocol,
               fmt::format("it ended with exit code {}; expected {}; {}", child.exitCode(), params.exitCode,
                           lastWords(child.err().empty() ? child.out() : child.err())),
               ""};
}

Status await(ChildProcess& child, const CommandParams& params, const std::function<bool()>& cancelled) {
  const double until = systemClock().now() + params.timeLimit;
  while (!child.ended()) {
    Status status = child.service(kLook);
    if (status.ok() && cancelled()) status = Error{ErrorCode::kTimeout, "it was cancelled", ""};
    if (status.ok() && !child.ended() && systemClock().now() >= until)
      status = Error{
          ErrorCode::kTimeout,
          fmt::format("it did not end within {:g} s; {}", params.timeLimit, lastWords(child.out())), ""};
    if (status.ok()) continue;
    const Status dead = child.kill();
    return dead.ok() ? status : dead;  // a program that stays is the worse news
  }
  return verdictOf(child, params);
}

bool isVariableName(const std::string& name) {
  return !name.empty() && name.find_first_not_of(
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
                              "0123456789") == std::string::npos;
}

}  // namespace

Result<std::string> allowedProgram(const std::string& program) {
  const fs::path path(program);
  if (!path.is_absolute() || path.filename().empty() || path.lexically_normal() != path)
    return notAllowed(program, "expected an absolute path without \".\" and \"..\"");
  const char* listed = std::getenv("MUSTER_EXEC_DIR");
  if (listed == nullptr || *listed == '\0') return notAllowed(program, "MUSTER_EXEC_DIR is not set");
  for (const std::string& folder : split(listed, ':')) {
    if (folder.empty() || !fs::path(folder).is_absolute()) continue;
    if ((fs::path(folder) / "").lexically_normal() != (path.parent_path() / "").lexically_normal()) continue;
    // By its own name, which may be a link: nobody else can turn one in a trusted folder.
    MUSTER_TRY(const fs::path own, trustedPath(folder, "folder of the program", Above::kAll));
    MUSTER_CHECK_OK(trustedPath(own / path.filename(), "program", Above::kAll));
    return (own / path.filename()).string();
  }
  return notAllowed(program, fmt::format("it is not in {}", printable(listed, 200)));
}

Result<std::vector<std::string>> allowedEnvironment(const std::vector<std::string>& names) {
  std::vector<std::string> variables = {kPath};
  for (const std::string& name : names) {
    if (!isVariableName(name) || name == "PATH" || name.starts_with("MUSTER_"))
      return Error{ErrorCode::kUsage,
                   fmt::format("\"{}\" is refused; expected the name of a variable, without its value, other "
                               "than PATH and MUSTER_...",
                               printable(name, 80)),
                   "environment"};
    if (const char* value = std::getenv(name.c_str())) variables.push_back(name + "=" + value);
  }
  return variables;
}

ProgramRun runToEnd(const CommandParams& params, const std::string& program,
                    const std::vector<std::string>& environment, const fs::path& folder,
                    const std::function<bool()>& cancelled) {
  ProgramRun run;
  ProgramSpec spec{.command = params.args, .name = program};
  spec.command.insert(spec.command.begin(), program);
  spec.without = {""};  // every name begins with that: it gets what `environment` holds
  spec.with = environment;
  spec.mostOutput = params.outputLimit;
  spec.folder = folder.string();
  const double begin = systemClock().now();
  auto child = ChildProcess::start(std::move(spec));
  if (!child.ok()) {
    run.status = child.error();
    return run;
  }
  run.status = await(*child, params, cancelled).context(program);
  run.seconds = systemClock().now() - begin;
  run.out = child->out();
  run.err = child->err();
  return run;
}

}  // namespace muster::exec
