// SPDX-License-Identifier: Apache-2.0
// Collects and checks the frames of a stage's ranks.
#include "runner/app/stage/frame_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "runner/core/clock.h"
#include "runner/core/digits.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kMostLogLines = 200;
constexpr size_t kMostMeasurements = 200'000;
constexpr size_t kMostSeries = 40'000;  // of metric and labels each: more make a record that nothing reads

std::string textField(const Json& frame, const char* key) {
  const auto it = frame.find(key);
  return it != frame.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// A metric that the test does not declare, and which one its author may have meant.
std::string undeclared(const PluginSpec& plugin, const TestSpec& test, const std::string& name) {
  std::vector<std::string> known;
  for (const MetricSpec& metric : test.metrics) known.push_back(metric.name);
  const bool qualified =
      name.starts_with(plugin.name + ".") && test.metric(name.substr(plugin.name.size() + 1)) != nullptr;
  return fmt::format("it reported the undeclared metric \"{}\"{}", printable(name, 80),
                     qualified ? "; expected the name without the plugin's" : didYouMean(name, known));
}

/// What does not fit between the kind of a metric, a text or a number, and what was sent for it; empty if all
/// does.
std::string wrongKind(const MetricSpec& metric, const Json& frame) {
  const bool text = metric.unit == "text";
  if (frame.contains(text ? "text" : "samples")) return "";
  return fmt::format("{} came with {}, its unit is \"{}\"; expected {}", metric.name,
                     text ? "samples" : "a text", metric.unit, text ? "a text" : "samples");
}

bool isOfPeer(const CaseEnd& end) {
  return end.state == CaseEnd::State::kError && end.cause == CaseEnd::Cause::kGroup;
}

/// The worse of two ends of one case: an error hides a skip, a skip hides nothing but success.
/// The rank's own error hides one that it did not cause.
void worsen(CaseEnd& end, CaseEnd::State state, const std::string& message, const std::string& remedy,
            CaseEnd::Cause cause = CaseEnd::Cause::kOwn) {
  const auto rank = [](CaseEnd::State s, CaseEnd::Cause c) {
    if (s != CaseEnd::State::kError) return s == CaseEnd::State::kUnsupported ? 1 : 0;
    return c == CaseEnd::Cause::kOwn ? 3 : 2;
  };
  if (rank(state, cause) <= rank(end.state, end.cause)) return;
  end.state = state;
  end.message = message;
  end.remedy = remedy;
  end.cause = cause;
}

}  // namespace

void FrameCollector::take(const RankSlot& slot, const Json& frame) {
  const std::string type = textField(frame, "type");
  if (const int open = openRun(slot.rank); open >= 0)
    ranks_[slot.rank].spans.at(runs_[static_cast<size_t>(open)].planned->id).second = systemClock().now();
  if (type == "case") return takeCase(slot, frame);
  if (type == "measurement") return takeMeasurement(slot, frame);
  if (type == "progress") return takeProgress(slot, frame);
  if (type == "artifact") return takeArtifact(slot, frame);
  if (type == "log") return takeLog(slot, frame);
}

const std::set<size_t>& FrameCollector::endedRuns(int rank) const {
  static const std::set<size_t> none;
  const auto it = ranks_.find(rank);
  return it == ranks_.end() ? none : it->second.ended;
}

int FrameCollector::openRun(int rank) const {
  const auto it = ranks_.find(rank);
  return it == ranks_.end() ? -1 : it->second.open;
}

CaseEnd& FrameCollector::endOf(const RankSlot& slot, size_t index) {
  const std::string& id = runs_[index].planned->id;
  auto [it, isNew] = ranks_[slot.rank].ends.try_emplace(id);
  if (isNew) it->second = CaseEnd{id, slot.rank, slot.device, attempt_, CaseEnd::State::kOk, "", ""};
  return it->second;
}

void FrameCollector::failRun(const RankSlot& slot, size_t index, const std::string& message,
                             const std::string& remedy, CaseEnd::Cause cause) {
  worsen(endOf(slot, index), CaseEnd::State::kError, message, remedy, cause);
  RankState& state = ranks_[slot.rank];
  state.ended.insert(index);
  if (state.open == static_cast<int>(index)) state.open = -1;
}

bool FrameCollector::wentWrong(int rank, size_t index) const {
  const auto state = ranks_.find(rank);
  if (state == ranks_.end()) return false;
  const auto end = state->second.ends.find(runs_[index].planned->id);
  return end != state->second.ends.end() && end->second.state != CaseEnd::State::kOk;
}

void FrameCollector::overrule(const RankSlot& slot, size_t index, const std::string& message,
                              const std::string& remedy, CaseEnd::Cause cause) {
  CaseEnd& end = endOf(slot, index);
  const std::string said = end.state == CaseEnd::State::kOk ? "" : end.message;
  end = CaseEnd{end.caseId, slot.rank, slot.device, attempt_, CaseEnd::State::kOk, "", ""};
  // Said again for each of the case's repeats.
  const bool repeated = said.rfind(message, 0) == 0;
  failRun(slot, index,
          repeated       ? said
          : said.empty() ? message
                         : message + "; it said: " + said,
          remedy, cause);
}

std::set<size_t> FrameCollector::hurtRuns(int rank) const {
  std::set<size_t> hurt;
  const auto state = ranks_.find(rank);
  if (state == ranks_.end()) return hurt;
  for (size_t run = 0; run < runs_.size(); ++run)
    if (const auto end = state->second.ends.find(runs_[run].planned->id);
        end != state->second.ends.end() && isOfPeer(end->second))
      hurt.insert(run);
  return hurt;
}

void FrameCollector::explain(const RankSlot& slot, const std::string& message, const std::string& remedy) {
  for (auto& [id, end] : ranks_[slot.rank].ends) {
    if (!isOfPeer(end) || end.message.starts_with(message)) continue;
    end.message = message + "; it said: " + end.message;
    end.remedy = remedy;
  }
}

void FrameCollector::rejectReport(const RankSlot& slot, const std::string& message) {
  const int open = openRun(slot.rank);
  if (open >= 0)
    worsen(endOf(slot, static_cast<size_t>(open)), CaseEnd::State::kError,
           "the plugin violated its own description: " + message,
           "Correct the plugin's measurements or its describe(), or report this to its author");
}

void FrameCollector::takeCase(const RankSlot& slot, const Json& frame) {
  int index = -1;
  std::string event;
  JsonReader reader(frame, "case frame");
  reader.read("case", index);
  reader.read("event", event);
  if (!reader.ok() || index < 0 || static_cast<size_t>(index) >= runs_.size()) return;
  RankState& state = ranks_[slot.rank];
  if (event == "begin") {
    state.open = index;
    state.openFraction = 0;
    const double now = systemClock().now();
    state.spans.try_emplace(runs_[static_cast<size_t>(index)].planned->id, now, now);
    return;
  }
  const std::string ended = textField(frame, "state");
  // It was told to stop, so it did not run to its end: why is known to who told it, not to the rank.
  if (ended == "cancelled") return;
  CaseEnd& end = endOf(slot, static_cast<size_t>(index));
  const auto kind = fromName<CaseEnd::State>(ended).value_or(CaseEnd::State::kError);
  if (kind != CaseEnd::State::kOk) {
    std::string message = textField(frame, "message");
    if (message.empty()) message = "the plugin gave no reason";
    worsen(end, kind, message, textField(frame, "remedy"),
           frame.value("peer", false) ? CaseEnd::Cause::kGroup : CaseEnd::Cause::kOwn);
  }
  state.ended.insert(static_cast<size_t>(index));
  state.open = -1;
}

Labels FrameCollector::labelsFor(const MetricSpec& metric, const Case& planned, const RankSlot& slot,
                                 const Json& sent) const {
  Labels labels;
  for (const std::string& name : metric.labels) {
    if (const auto it = planned.matrix.find(name); it != planned.matrix.end())
      labels[name] = it->second;
    else if (planned.params.contains(name) && !planned.params[name].is_array())
      labels[name] = planned.params[name].is_string() ? planned.params[name].get<std::string>()
                                                      : dumpJson(planned.params[name]);
    else if (const auto group = group_.find(name); group != group_.end())
      labels[name] = group->second;
  }
  if (!slot.device.empty()) labels["device"] = slot.device;
  if (sent.is_object())
    for (const auto& [key, value] : sent.items())
      if (value.is_string()) labels[key] = value.get<std::string>();
  return labels;
}

void FrameCollector::takeMeasurement(const RankSlot& slot, const Json& frame) {
  const int open = openRun(slot.rank);
  if (open < 0) return;
  const Case& planned = *runs_[static_cast<size_t>(open)].planned;
  if (frame.contains("time") && frame["time"].is_number())
    deviceTime = std::max(deviceTime, frame["time"].get<double>());
  const std::string name = textField(frame, "metric");
  const MetricSpec* metric = test_.metric(name);
  if (metric == nullptr) return rejectReport(slot, undeclared(plugin_, test_, name));
  if (measurements.size() >= kMostMeasurements)
    return rejectReport(slot, "it reported more than 200000 measurements");

  Measurement m;
  m.metric = plugin_.name + "." + name;
  m.unit = textField(frame, "unit");
  m.direction = metric->direction;
  m.labels = labelsFor(*metric, planned, slot, frame.contains("labels") ? frame["labels"] : Json());
  std::string series = m.metric + " " + labelsText(m.labels);
  if (series_.size() >= kMostSeries && series_.count(series) == 0)
    return rejectReport(slot, "it reported measurements with more than 40000 different labels");
  series_.insert(std::move(series));
  m.caseId = planned.id;
  m.rank = slot.rank;
  // A plugin that looks at the whole node names the device itself.
  m.device = slot.device.empty() && m.labels.count("device") > 0 ? m.labels["device"] : slot.device;
  m.attempt = attempt_;
  m.repeat = runs_[static_cast<size_t>(open)].repeat;
  m.informational = metric->informational;
  m.peak = metric->peak;
  m.series = metric->series;
  if (!metric->window.empty()) m.window = planned.params.value(metric->window, 0.0);
  for (const auto& [key, value] : m.labels) {
    const std::string mark = "{" + key + "}";
    if (const size_t at = m.peak.find(mark); at != std::string::npos) m.peak.replace(at, mark.size(), value);
  }
  if (m.unit != metric->unit)
    return rejectReport(slot, fmt::format("{} came in \"{}\", declared is \"{}\"", name,
                                          printable(m.unit, 40), metric->unit));
  if (const std::string problem = wrongKind(*metric, frame); !problem.empty())
    return rejectReport(slot, problem);
  if (m.isText()) {
    m.text = textField(frame, "text");
  } else {
    JsonReader reader(frame, "measurement");
    reader.read("samples", m.samples);
    if (!reader.ok()) return rejectReport(slot, reader.status().error().text());
    // Here, before anything is judged: what is written is exactly what was judged.
    roundSamples(m.samples, m.unit, kSampleDigits);
  }
  measurements.push_back(std::move(m));
}

void FrameCollector::takeProgress(const RankSlot& slot, const Json& frame) {
  if (frame.contains("fraction") && frame["fraction"].is_number())
    ranks_[slot.rank].openFraction = std::clamp(frame["fraction"].get<double>(), 0.0, 1.0);
  const std::string text = textField(frame, "text");
  if (!text.empty()) lastProgress_ = slot.device.empty() ? text : slot.device + ": " + text;
}

double FrameCollector::fraction(size_t slots) const {
  double done = 0;
  for (const auto& [rank, state] : ranks_)
    done += static_cast<double>(state.ended.size()) + (state.open >= 0 ? state.openFraction : 0);
  const double all = static_cast<double>(runs_.size() * slots);
  return all > 0 ? std::min(1.0, done / all) : -1;
}

void FrameCollector::takeArtifact(const RankSlot&, const Json& frame) {
  ArtifactRecord artifact;
  artifact.name = textField(frame, "name");
  artifact.path = textField(frame, "path");
  artifact.mediaType = textField(frame, "media_type");
  // The same name again in the same case has replaced the file.
  const auto same = [&](const ArtifactRecord& other) { return other.path == artifact.path; };
  if (std::any_of(artifacts.begin(), artifacts.end(), same)) return;
  artifacts.push_back(std::move(artifact));
}

void FrameCollector::takeLog(const RankSlot& slot, const Json& frame) {
  const std::string level = textField(frame, "level");
  if (level != "warning" && level != "error") return;
  if (log.size() == kMostLogLines) log.emplace_back("more log lines were omitted");
  if (log.size() > kMostLogLines) return;
  const std::string who = slot.device.empty() ? fmt::format("rank {}", slot.rank) : slot.device;
  log.push_back(fmt::format("{} {}: {}", who, level, printable(textField(frame, "text"))));
}

bool FrameCollector::ranToEnd(const RankState& state, const Case* planned) const {
  for (size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].planned == planned && state.ended.count(i) == 0) return false;
  return true;
}

std::vector<CaseEnd> FrameCollector::caseEnds(const std::vector<RankSlot>& slots,
                                              CaseEnd::Cause unended) const {
  std::vector<CaseEnd> ends;
  std::vector<const Case*> cases;
  for (const CaseRun& run : runs_)
    if (std::find(cases.begin(), cases.end(), run.planned) == cases.end()) cases.push_back(run.planned);
  for (const Case* planned : cases) {
    for (const RankSlot& slot : slots) {
      CaseEnd end{planned->id,
                  slot.rank,
                  slot.device,
                  attempt_,
                  CaseEnd::State::kError,
                  "the case never ran to its end",
                  "",
                  unended};
      const auto rank = ranks_.find(slot.rank);
      if (rank != ranks_.end() && ranToEnd(rank->second, planned)) end = rank->second.ends.at(planned->id);
      if (rank != ranks_.end())
        if (const auto span = rank->second.spans.find(planned->id); span != rank->second.spans.end())
          std::tie(end.begun, end.ended) = span->second;
      ends.push_back(std::move(end));
    }
  }
  return ends;
}

}  // namespace muster
