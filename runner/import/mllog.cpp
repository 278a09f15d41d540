// SPDX-License-Identifier: Apache-2.0
// Lines ":::MLLOG {...}" of MLPerf training logs: how long each run took, and how it ended. MLPerf's own
// rules judge the accuracy that was reached, and no time.
#include <fmt/format.h>

#include <cmath>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

constexpr std::string_view kMark = ":::MLLOG ";
constexpr double kMillis = 1e3;  // in a second
constexpr size_t kMostRuns = 1000;

struct Run {
  double started = 0;  ///< ms
  double stopped = -1;
  size_t line = 0;
  std::string status;
  bool evaluated = false;
};

struct Log {
  std::vector<Run> runs;
  std::string benchmark;
  size_t events = 0;
};

struct Event {
  std::string key;
  double millis = 0;
  const Json* value = nullptr;
  std::string status;
};

Result<Event> eventOf(const Source& source, const Json& json, size_t line) {
  Event event;
  JsonReader r(json, "");
  r.read("key", event.key);
  r.read("time_ms", event.millis);
  if (const Json* metadata = json.is_object() && holds(json, "metadata") && json["metadata"].is_object()
                                 ? &json["metadata"]
                                 : nullptr)
    if (holds(*metadata, "status") && (*metadata)["status"].is_string())
      event.status = (*metadata)["status"].get<std::string>();
  if (Status status = r.status(); !status.ok()) return refuseAt(source, line, status.error());
  if (!std::isfinite(event.millis) || event.millis < 0) return source.refuse(line, "`time_ms` is no time");
  if (holds(json, "value")) event.value = &json["value"];
  return event;
}

Status take(const Source& source, const Event& event, size_t line, Log& log) {
  ++log.events;
  if (event.key == "submission_benchmark" && event.value != nullptr && event.value->is_string())
    log.benchmark = event.value->get<std::string>();
  if (event.key == "run_start") {
    if (log.runs.size() >= kMostRuns) return source.refuse(line, fmt::format("more than {} runs", kMostRuns));
    log.runs.push_back({event.millis, -1, line, "", false});
  }
  const bool running = !log.runs.empty() && log.runs.back().stopped < 0;
  if (event.key == "eval_accuracy" && running) {
    if (event.value == nullptr || !event.value->is_number() || !std::isfinite(event.value->get<double>()))
      return source.refuse(line, "`eval_accuracy` is no finite number");
    log.runs.back().evaluated = true;
  }
  if (event.key != "run_stop") return {};
  if (!running) return source.refuse(line, "`run_stop` without a `run_start` before it");
  if (event.millis <= log.runs.back().started) return source.refuse(line, "a run that ends before it begins");
  log.runs.back().stopped = event.millis;
  log.runs.back().status = event.status;
  return {};
}

/// Launchers put the rank before a line; the JSON fills the rest of it.
Status readLine(const Source& source, std::string_view line, size_t number, Log& log) {
  const size_t at = line.find(kMark);
  if (at == std::string_view::npos) return {};
  const auto json = parseJson(line.substr(at + kMark.size()));
  if (!json.ok()) return source.refuse(number, json.error().message);
  MUSTER_TRY(const Event event, eventOf(source, *json, number));
  return take(source, event, number, log);
}

std::string errorOf(const Run& run) {
  if (run.stopped < 0)
    return fmt::format("the run that began in line {} has no end: it was interrupted", run.line);
  if (run.status.empty()) return "its end has no status";
  return run.evaluated ? "" : "no accuracy was measured in it";
}

void addRun(const Log& log, size_t number, ImportedFile& file) {
  const Run& run = log.runs[number];
  const std::string name = log.benchmark.empty() ? "training" : printable(log.benchmark, 60);
  ImportedCase one;
  one.id = fmt::format("{}[run={}]", name, number);
  one.labels = {{"name", name}, {"op", "train"}};
  one.metrics = {"imported.time", "imported.test_passed"};
  one.error = errorOf(run);
  if (run.stopped >= 0) {
    Labels labels = one.labels;
    labels["statistic"] = "run";
    file.measurements.push_back(
        valueOf("imported.time", std::move(labels), (run.stopped - run.started) / kMillis, one.id));
  }
  if (!run.status.empty()) {
    const bool success = run.status == "success";
    file.failures += success ? 0 : 1;
    file.measurements.push_back(valueOf("imported.test_passed", {{"test", one.id}}, success ? 1 : 0, one.id));
  }
  file.cases.push_back(std::move(one));
}

bool isMllog(const Source& source) {
  return !source.json && source.text.find(kMark) != std::string_view::npos;
}

Result<ImportedFile> readMllog(const Source& source) {
  Log log;
  MUSTER_CHECK_OK(eachLine(source.text, [&](std::string_view line, size_t number) {
    return readLine(source, line, number, log);
  }));
  ImportedFile file;
  file.tool = "MLPerf log";
  for (size_t i = 0; i < log.runs.size(); ++i) addRun(log, i, file);
  if (log.runs.empty()) file.cases.push_back({"training", {}, {}, {}, "the log holds no run_start"});
  file.limits = "whether the accuracy was reached, and no time";
  const bool open = log.runs.empty() || log.runs.back().stopped < 0;
  file.verdict = file.failures > 0 ? ToolVerdict::kFailed : open ? ToolVerdict::kNone : ToolVerdict::kPassed;
  file.said = open ? "no run_stop"
                   : fmt::format("status of the last run: {}",
                                 log.runs.back().status.empty() ? "none" : log.runs.back().status);
  file.notes.push_back(fmt::format("{} events; imported are the time and the end of each run", log.events));
  return file;
}

}  // namespace

const Format kMllog = {"mllog", isMllog, readMllog};

}  // namespace muster::imports
