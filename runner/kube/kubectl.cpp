// SPDX-License-Identifier: Apache-2.0
// Runs kubectl and helm.
#include "runner/kube/kubectl.h"

#include <fmt/format.h>

#include "runner/core/text.h"
#include "runner/system/child_process.h"
#include "runner/system/trust.h"

namespace muster::kube {
namespace {

constexpr double kPatience = 120;  // seconds
constexpr size_t kMostOutput = 1u << 30;

std::string oneLine(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n'))
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  return printable(join(lines, "; "), 1000);
}

/// What a tool printed, or an Error that quotes its complaint.
Result<std::string> printedBy(std::vector<std::string> command, std::string input, const char* advice) {
  const std::string called = printable(join(command, " "), 200);
  Result<ChildProcess> ended = runProgram(
      {.command = std::move(command), .input = std::move(input), .mostOutput = kMostOutput}, kPatience);
  if (!ended.ok() && ended.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, ended.error().message + advice, ""};
  if (!ended.ok()) return std::move(ended).error().context(called);
  if (ended->exitCode() == 0) return ended->out();
  const std::string said = oneLine(trim(ended->err()).empty() ? ended->out() : ended->err());
  return Error{ErrorCode::kUsage,
               fmt::format("`{}` ended with {}: {}", called,
                           ended->signal() != 0 ? fmt::format("signal {}", ended->signal())
                                                : std::to_string(ended->exitCode()),
                           said.empty() ? "it printed nothing" : said),
               ""};
}

Result<std::string> kubectl(const Cluster& cluster, std::vector<std::string> words, std::string input = {}) {
  // Not --request-timeout: with it, kubectl does not look for the service account of its pod.
  std::vector<std::string> command = {"kubectl"};
  if (!cluster.context.empty()) command.push_back("--context=" + cluster.context);
  if (!cluster.space.empty()) command.push_back("--namespace=" + cluster.space);
  command.insert(command.end(), words.begin(), words.end());
  return printedBy(std::move(command), std::move(input),
                   "; install kubectl and put it into PATH (Debian: kubernetes-client)");
}

}  // namespace

Result<Json> ask(const Cluster& cluster, std::vector<std::string> words) {
  // --raw answers in JSON and takes no --output.
  if (!contains(words, "--raw")) words.insert(words.end(), {"--output", "json"});
  MUSTER_TRY(const std::string text, kubectl(cluster, words));
  return parseJson(text, 200).context("kubectl " + words.front());
}

Status act(const Cluster& cluster, std::vector<std::string> words, std::string input) {
  const auto done = kubectl(cluster, std::move(words), std::move(input));
  return done.ok() ? Status() : Status(done.error());
}

Result<std::string> podLog(const Cluster& cluster, const std::string& pod) {
  return kubectl(cluster, {"logs", "pod/" + pod, "--container", "muster"});
}

Result<std::string> renderChart(const std::string& chart, const std::string& release,
                                const std::string& space, const std::vector<std::string>& valueFiles,
                                const Json& values) {
  MUSTER_CHECK_OK(trustFolder(chart, "chart"));
  std::vector<std::string> command = {"helm", "template", release, chart};
  if (!space.empty()) command.insert(command.end(), {"--namespace", space});
  for (const std::string& file : valueFiles) command.insert(command.end(), {"--values", file});
  command.insert(command.end(), {"--values", "-"});
  return printedBy(std::move(command), dumpJson(values),
                   "; install Helm 3.14 or newer, or render on a machine that has it");
}

}  // namespace muster::kube
