// SPDX-License-Identifier: Apache-2.0
// Starts, reads and stops the telemetry process of a stage.
#include "runner/app/stage/stage_telemetry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "runner/app/stage/expectations.h"
#include "runner/app/stage/rank_group.h"
#include "runner/core/clock.h"
#include "runner/core/digits.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace {

constexpr size_t kMostPoints = 300;
// Seconds to wait for the first reading: a driver that is not kept loaded needs a few for each GPU. A stage
// with a short timeout does not wait longer than that, but long enough for a busy node.
constexpr double kLongestFirstReading = 60;
constexpr double kShortestFirstReading = 20;
constexpr const char* kCounters = "counters";  // the helper's last readings, and the next one's first

}  // namespace

std::vector<double> thinned(const std::vector<double>& values, size_t most) {
  if (values.size() <= most) return values;
  const size_t buckets = most / 2;
  std::vector<double> kept;
  for (size_t i = 0; i < buckets; ++i) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(i * values.size() / buckets);
    const auto last = values.begin() + static_cast<std::ptrdiff_t>((i + 1) * values.size() / buckets);
    const auto [low, high] = std::minmax_element(first, last);
    kept.push_back(low < high ? *low : *high);
    kept.push_back(low < high ? *high : *low);
  }
  return kept;
}

std::vector<double> thinnedTimes(const std::vector<double>& times, size_t most) {
  if (times.size() <= most) return times;
  const size_t buckets = most / 2;
  std::vector<double> kept;
  for (size_t i = 0; i < buckets; ++i) {
    const size_t first = i * times.size() / buckets;
    const size_t last = (i + 1) * times.size() / buckets;
    kept.push_back(times[first]);
    kept.push_back(times[(first + last) / 2]);
  }
  return kept;
}

ExternalLoad loadDuring(const std::vector<double>& times, const std::vector<double>& shares, double begin,
                        double from, double to) {
  std::vector<std::pair<double, double>> parts;  // share, seconds of it
  ExternalLoad load;
  double seconds = 0;
  for (size_t i = 0; i < std::min(times.size(), shares.size()); ++i) {
    const double overlap = std::min(to, times[i]) - std::max(from, i == 0 ? begin : times[i - 1]);
    if (overlap <= 0) continue;
    parts.emplace_back(shares[i], overlap);
    load.mean += shares[i] * overlap;
    load.peak = std::max(load.peak, shares[i]);
    seconds += overlap;
  }
  if (seconds <= 0) return load;
  load.mean /= seconds;
  std::sort(parts.rbegin(), parts.rend());
  double passed = 0;
  for (const auto& [share, part] : parts) {
    load.median = share;
    if ((passed += part) >= seconds / 2) break;
  }
  return load;
}

StageTelemetry::StageTelemetry(const NodeConfig& node, NodeProgress& progress, const Stage& stage)
    : node_(node), progress_(progress), stage_(stage) {
  if (!watches(stage)) return;
  enabled_ = true;
  plugin_ = node.catalog->plugin("env");
  test_ = plugin_ == nullptr ? nullptr : plugin_->test("telemetry");
  if (test_ == nullptr) {
    problem_ = "the env plugin with its test \"telemetry\" is not installed";
    return;
  }
  case_.id = kCaseId;
  case_.params = Json::object();
  for (const ParamSpec& param : test_->params) case_.params[param.name] = param.defaultValue;
  if (Status status = setParam("load", stage.plugin); !status.ok()) problem_ = status.error().text();
}

Status StageTelemetry::setParam(const std::string& name, const Json& value) {
  const ParamSpec* spec = test_->param(name);
  if (spec == nullptr) return Error{ErrorCode::kInternal, "env.telemetry has no parameter " + name, ""};
  MUSTER_TRY(case_.params[name], convertParam(*spec, value).context("env.telemetry parameter " + name));
  return {};
}

RankSpec StageTelemetry::rankSpec() const {
  RankSpec spec;
  spec.rank = -1;
  spec.device = "telemetry";
  const std::string name = stage_.name + ".telemetry";
  spec.request = {{"schema", 1},
                  {"plugin", plugin_->path},
                  {"test", "telemetry"},
                  {"cases", Json::array({{{"index", 0},
                                          {"case", kCaseId},
                                          {"params", case_.params},
                                          {"repeat", 0},
                                          {"attempt", 1},
                                          {"seed", node_.seed}}})},
                  {"context", rankContext(node_, progress_, stage_, RankSlot{}, GroupPlace{})},
                  {"artifact_dir", (node_.folder / "artifacts" / stage_.name).string()}};
  if (!progress_.counters.empty()) spec.request["context"][kCounters] = progress_.counters;
  spec.requestFile = node_.folder / "requests" / (name + ".json");
  spec.outputFile = node_.folder / "output" / (name + ".txt");
  return spec;
}

GroupOptions StageTelemetry::options() {
  GroupOptions options;
  options.hostExecutable = node_.tree.hostExecutable;
  const double arrival = stage_.scope != Scope::kCluster ? 0
                         : node_.arrival > 0             ? node_.arrival
                                                         : stage_.timeout;
  options.timeout = kLongestFirstReading + arrival + stage_.timeout * stage_.attempts + 60;
  if (node_.simulated()) {
    options.timeout = std::numeric_limits<double>::infinity();
    options.hang = simulatedHang(stage_);
  }
  options.onFrame = [this](const RankSpec&, const Json& frame) { take(frame); };
  return options;
}

void StageTelemetry::openRaw() {
  rawPath_ = node_.folder / "artifacts" / (stage_.name + ".telemetry.jsonl.gz");
  auto file = openOwnFile(rawPath_, O_WRONLY | O_TRUNC);
  if (!file.ok()) {
    problem_ = file.error().text();
    return;
  }
  raw_.reset(gzdopen(file->get(), "wb"));
  if (raw_)
    file->release();
  else
    problem_ = "cannot write " + rawPath_.string() + ": " + errnoText(errno);
}

void StageTelemetry::startHelper() {
  openRaw();
  if (!problem_.empty()) return;
  auto helper = BackgroundRank::start(rankSpec(), options());
  if (helper.ok())
    helper_ = std::move(helper).value();
  else
    problem_ = helper.error().text();
}

std::string StageTelemetry::start() {
  begin_ = systemClock().now();
  if (!enabled_ || node_.simulated()) return "";
  if (problem_.empty()) startHelper();
  const double longest = std::clamp(stage_.timeout, kShortestFirstReading, kLongestFirstReading);
  while (helper_ && series_.empty() && helper_->running() && systemClock().now() < begin_ + longest &&
         !node_.cancelled->load()) {
    pollfd ready{helper_->fd(), POLLIN, 0};
    ::poll(&ready, 1, 50);
    helper_->poll();
  }
  poll();  // of a helper that has ended
  ready_ = systemClock().now();
  if (!series_.empty() || node_.cancelled->load()) return "";
  if (helper_) {
    const bool late = helper_->running();
    const RankEnd end = helper_->stop();
    if (problem_.empty())
      problem_ = late                ? "no reading came within " + formatQuantity(longest, "s")
                 : end.error.empty() ? "it ended before its first reading"
                                     : end.error;
    helper_.reset();
  }
  return fmt::format(
      "telemetry: {}. Without a first reading of the error counters no rank was started. See "
      "output/{}.telemetry.txt in the run directory, check that the driver answers (nvidia-smi, dmesg), then "
      "run "
      "again",
      problem_, stage_.name);
}

void StageTelemetry::restart() {
  if (!helper_) return;
  begin_ = from_ = ready_ = systemClock().now();
  noteGrowthBefore();
  std::erase_if(series_, [](const auto& entry) { return !entry.second.value.empty(); });
}

/// It counts in this stage, but the stage's ranks did not cause it.
void StageTelemetry::noteGrowthBefore() {
  for (const auto& [key, series] : series_) {
    const MetricSpec* spec = test_->metric(series.metric);
    const auto after = std::upper_bound(series.time.begin(), series.time.end(), ready_);
    if (!spec->total || spec->unit != "count" || after == series.time.begin()) continue;
    const double grown = series.value[static_cast<size_t>(after - series.time.begin()) - 1];
    if (grown <= 0) continue;
    grownBefore_.push_back(fmt::format("env.{}{}{} counts {} from before this stage's ranks started",
                                       series.metric, series.labels.empty() ? "" : " ",
                                       labelsText(series.labels), formatQuantity(grown, spec->unit)));
  }
}

void StageTelemetry::poll() {
  if (helper_) helper_->poll();
}

void StageTelemetry::take(const Json& frame) {
  const std::string type = frame.value("type", "");
  if (type == "case" && frame.value("event", "") == "end") {
    const std::string state = frame.value("state", "");
    caseEnded_ = state == "ok" || state == "cancelled";
    if (!caseEnded_) problem_ = frame.value("message", "the telemetry test gave no reason");
    return;
  }
  if (type != "measurement") return;
  if (raw_) {
    const std::string line = dumpJson(frame) + "\n";
    if (gzwrite(raw_.get(), line.data(), static_cast<unsigned>(line.size())) <= 0)
      problem_ = "cannot write " + rawPath_.string() + "; is the disk full?";
  }
  std::string metric, text;
  Series fresh;
  std::vector<double> samples, times;
  double time = -1;
  JsonReader reader(frame, "telemetry frame");
  reader.read("metric", metric);
  reader.optional("samples", samples);
  reader.optional("text", text);
  reader.optional("time", time);
  reader.optional("times", times);
  if (!reader.ok()) {
    problem_ = reader.status().error().text();
    return;
  }
  if (metric == kCounters) {
    progress_.counters = text;
    return;
  }
  if (test_->metric(metric) == nullptr) {
    problem_ = "the telemetry test reported \"" + metric + "\", which it does not declare";
    return;
  }
  if (frame.contains("labels") && frame["labels"].is_object())
    for (const auto& [key, value] : frame["labels"].items())
      if (value.is_string()) fresh.labels[key] = value.get<std::string>();
  fresh.metric = metric;
  fresh.device = fresh.labels.count("device") > 0 ? fresh.labels["device"] : "";
  if (!text.empty()) fresh.labels["text"] = text;
  if (!samples.empty() && (times.empty() ? time : times.back()) < from_) return;
  roundSamples(samples, test_->metric(metric)->unit, kSensorDigits);
  Series& series = series_.try_emplace(metric + " " + labelsText(fresh.labels), fresh).first->second;
  for (size_t i = 0; i < samples.size(); ++i) {
    series.time.push_back(times.size() == samples.size() ? times[i] : time);
    series.value.push_back(samples[i]);
  }
}

void StageTelemetry::evaluateSimulated(double virtualStart, double virtualEnd) {
  for (const auto& [name, value] : {std::pair{"start", virtualStart}, std::pair{"end", virtualEnd}})
    if (Status status = setParam(name, value); !status.ok()) {
      problem_ = status.error().text();
      return;
    }
  openRaw();
  auto ends = runGroup({rankSpec()}, options());
  if (!ends.ok())
    problem_ = ends.error().text();
  else if (ends->front().state != RankEnd::State::kOk)
    problem_ = ends->front().error;
}

void StageTelemetry::finish(double virtualStart, double virtualEnd, StageRecord& record,
                            StageEvidence& evidence) {
  if (!enabled_) return;
  if (helper_) {
    const RankEnd end = helper_->stop();
    if (problem_.empty() && !caseEnded_) problem_ = end.error.empty() ? "it ended too early" : end.error;
    helper_.reset();
  } else if (node_.simulated() && problem_.empty()) {
    evaluateSimulated(virtualStart, virtualEnd);
  }
  raw_.reset();
  CaseEnd end{kCaseId, -1, "", 1, CaseEnd::State::kOk, "", ""};
  if (!problem_.empty()) {
    end.state = CaseEnd::State::kError;
    end.message = "telemetry: " + problem_;
    end.remedy = "See output/" + stage_.name + ".telemetry.txt in the run folder";
  }
  evidence.ends.push_back(end);
  if (test_ == nullptr) return;
  addEvidence(evidence);
  if (!node_.simulated() && from_ < begin_) noteGrowthBefore();
  record.log.insert(record.log.end(), grownBefore_.begin(), grownBefore_.end());
  addSeries(record, node_.simulated() ? virtualStart : begin_);
  std::error_code error;
  if (std::filesystem::exists(rawPath_, error)) {
    ArtifactRecord raw;
    raw.name = rawPath_.filename();
    raw.path = rawPath_.string();
    raw.mediaType = "application/gzip";
    record.artifacts.push_back(raw);
  }
}

void StageTelemetry::addSoFar(StageEvidence& evidence) const {
  if (!enabled_ || test_ == nullptr) return;
  evidence.ends.push_back({kCaseId, -1, "", 1, CaseEnd::State::kOk, "", ""});
  addEvidence(evidence);
}

void StageTelemetry::addEvidence(StageEvidence& evidence) const {
  evidence.caseMetrics[kCaseId] = metricsOn(*plugin_, *test_, node_.backend);
  evidence.caseLabels[kCaseId] = {};
  const auto add = [&](const std::vector<Expectation>& more) {
    evidence.expectations.insert(evidence.expectations.end(), more.begin(), more.end());
  };
  add(standingExpectations(*test_, node_.backend));
  addMeasurements(evidence);
  if (node_.backend == "host") addExternalLoad(evidence);
  leaveOutUnmeasured(*plugin_, *test_, {kCaseId}, evidence);
  if (progress_.profile == nullptr) return;
  StageEvidence onlyTelemetry;
  onlyTelemetry.caseMetrics[kCaseId] = evidence.caseMetrics[kCaseId];
  add(profileExpectations(*progress_.profile, onlyTelemetry));
}

void StageTelemetry::addMeasurements(StageEvidence& evidence) const {
  for (const auto& [key, series] : series_) {
    const MetricSpec* spec = test_->metric(series.metric);
    Measurement m;
    m.metric = "env." + series.metric;
    m.unit = spec->unit;
    m.direction = spec->direction;
    m.labels = series.labels;
    m.caseId = kCaseId;
    m.rank = -1;
    m.device = series.device;
    m.informational = spec->informational;
    if (m.isText()) {
      m.text = m.labels["text"];
      m.labels.erase("text");
    } else if (spec->total && !series.value.empty()) {
      m.samples = {series.value.back()};
    } else {
      m.samples = thinned(series.value, kMostPoints);
    }
    evidence.measurements.push_back(std::move(m));
  }
}

std::string StageTelemetry::loadedBy(double begin, double end) const {
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [key, series] : series_) {
    const bool total = test_->metric(series.metric)->total;
    double sum = 0;
    for (size_t i = 0; i < series.time.size(); ++i)
      if (series.time[i] > begin && (i == 0 || series.time[i - 1] < end))
        sum += series.value[i] - (total && i > 0 ? series.value[i - 1] : 0);
    const auto process = series.labels.find("process");
    const auto group = series.labels.find("cgroup");
    if (sum <= 0) continue;
    // Those without a name of their own come last.
    if (series.metric == "busy_share" && process != series.labels.end())
      shares.emplace_back(process->second == "others" || process->second == "unseen" ? 0 : sum,
                          process->second == "unseen" ? "processes that cannot be seen" : process->second);
    else if (series.metric == "steal_share")
      shares.emplace_back(sum * std::thread::hardware_concurrency(), "other virtual machines");
    else if (series.metric == "cgroup_throttled")
      shares.emplace_back(sum, "CPU quota" + (group == series.labels.end() ? "" : " of " + group->second));
  }
  std::sort(shares.rbegin(), shares.rend());
  constexpr size_t kMostNames = 3;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kMostNames, shares.size()); ++i) names.push_back(shares[i].second);
  return names.empty() ? "processes that ended or cannot be seen" : join(names, ", ");
}

void StageTelemetry::addExternalLoad(StageEvidence& evidence) const {
  const auto external = series_.find("external_load ");
  if (external == series_.end()) return;
  std::map<std::pair<std::string, int>, std::pair<double, double>> spans;
  for (const CaseEnd& end : evidence.ends) {
    if (end.ended <= end.begun) continue;
    auto& [from, to] = spans.try_emplace({end.caseId, end.attempt}, end.begun, end.ended).first->second;
    from = std::min(from, end.begun);
    to = std::max(to, end.ended);
  }
  for (const auto& [key, span] : spans) {
    ExternalLoad load =
        loadDuring(external->second.time, external->second.value, begin_, span.first, span.second);
    load.caseId = key.first;
    load.attempt = key.second;
    load.by = loadedBy(span.first, span.second);
    if (load.peak > 0) evidence.externalLoad.push_back(std::move(load));
  }
}

void StageTelemetry::addSeries(StageRecord& record, double begin) const {
  for (const auto& [key, series] : series_) {
    if (series.value.size() < 2) continue;
    TelemetrySeries plotted;
    plotted.metric = "env." + series.metric;
    plotted.unit = test_->metric(series.metric)->unit;
    plotted.device = series.device;
    plotted.summary = roundedSummary(summarize(series.value), kSampleDigits);
    for (const double time : thinnedTimes(series.time, kMostPoints))
      plotted.time.push_back(std::round((time - begin) * 1000) / 1000);
    plotted.value =
        thinned(series.value, kMostPoints);  // the measurement's samples: the record holds them once
    record.telemetry.push_back(std::move(plotted));
  }
}

}  // namespace muster
