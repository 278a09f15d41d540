// SPDX-License-Identifier: Apache-2.0
// Writes and reads telemetry as columnar rows with shared time axes.
#include "runner/record/telemetry_fold.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <tuple>

#include "runner/core/digits.h"
#include "runner/record/fold/columnar_rows.h"
#include "runner/record/fold/sample_pack.h"

namespace muster {
namespace {

constexpr size_t kMostPoints = 300;
constexpr double kMillisecond = 1000;

Error damaged(const std::string& message, const std::string& path) {
  return {ErrorCode::kProtocol, message, path};
}

bool sameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

Json toJson(const Summary& summary) {
  return {{"n", summary.n},
          {"mean", shortNumber(summary.mean)},
          {"median", shortNumber(summary.median)},
          {"min", shortNumber(summary.min)},
          {"max", shortNumber(summary.max)},
          {"stddev", shortNumber(summary.stddev)},
          {"cv", shortNumber(summary.cv)}};
}

Result<Summary> summaryFromJson(const Json& json, const std::string& path) {
  Summary summary;
  JsonReader r(json, path);
  uint64_t n = 0;
  r.read("n", n);
  r.read("mean", summary.mean);
  r.read("median", summary.median);
  r.read("min", summary.min);
  r.read("max", summary.max);
  r.read("stddev", summary.stddev);
  r.read("cv", summary.cv);
  MUSTER_CHECK_OK(r.status());
  summary.n = n;
  return summary;
}

Summary ownSummary(const std::vector<double>& values) {
  return roundedSummary(summarize(values), kSampleDigits);
}

bool same(const Summary& a, const Summary& b) {
  return a.n == b.n && sameBits(a.mean, b.mean) && sameBits(a.median, b.median) && sameBits(a.min, b.min) &&
         sameBits(a.max, b.max) && sameBits(a.stddev, b.stddev) && sameBits(a.cv, b.cv);
}

double evenPoint(double start, double step, size_t i) {
  return std::round((start + static_cast<double>(i) * step) * kMillisecond) / kMillisecond;
}

Json axisToJson(const std::vector<double>& time) {
  const auto listed = [&] {
    Json list = Json::array();
    for (const double point : time) list.push_back(shortNumber(point));
    return list;
  };
  if (time.size() < 3) return listed();
  const double step = roundedTo((time.back() - time.front()) / static_cast<double>(time.size() - 1), 9);
  for (size_t i = 0; i < time.size(); ++i)
    if (!sameBits(evenPoint(time.front(), step, i), time[i])) return listed();
  return {{"start", shortNumber(time.front())}, {"step", shortNumber(step)}, {"n", time.size()}};
}

Result<std::vector<double>> axisFromJson(const Json& json, const std::string& path) {
  std::vector<double> time;
  if (!json.is_object()) {
    MUSTER_TRY(time, unpackedSamples(json, 0, path));
  } else {
    uint64_t n = 0;
    double start = 0, step = 0;
    JsonReader r(json, path);
    r.read("start", start);
    r.read("step", step);
    r.read("n", n);
    MUSTER_CHECK_OK(r.status());
    for (size_t i = 0; i < std::min<uint64_t>(n, kMostPoints + 1); ++i)
      time.push_back(evenPoint(start, step, i));
  }
  if (time.size() > kMostPoints) return damaged(fmt::format("has more than {} points", kMostPoints), path);
  return time;
}

class Folder {
 public:
  explicit Folder(const StageRecord& stage) : stage_(stage) {
    for (size_t i = stage.measurements.size(); i-- > 0;) {
      const Measurement& m = stage.measurements[i];
      if (m.samples.size() <= kMostPoints) unused_[keyOf(m.metric, m.unit, m.device, m.samples)].push_back(i);
    }
  }

  Json fold() {
    std::vector<KeyedObject> objects;
    for (const TelemetrySeries& series : stage_.telemetry) objects.push_back(one(series));
    return {{"times", std::move(axes_)}, {"series", toColumnarRows(objects)}};
  }

 private:
  KeyedObject one(const TelemetrySeries& series) {
    const size_t axis = axisOf(series.time);
    Json json = {{"time", axis}};
    std::string key = std::to_string(axis);
    if (const auto of = measurementOf(series)) {
      json["of"] = *of;
    } else {
      json["metric"] = series.metric;
      json["unit"] = series.unit;
      json["device"] = series.device;
      json["value"] = packedSamples(series.value, 0);
      key += " " + series.metric + " " + series.unit;
    }
    if (!same(series.summary, ownSummary(series.value))) json["summary"] = toJson(series.summary);
    return {std::move(key), std::move(json)};
  }

  size_t axisOf(const std::vector<double>& time) {
    const Json axis = axisToJson(time);
    const auto [at, fresh] = places_.emplace(dumpJson(axis), axes_.size());
    if (fresh) axes_.push_back(axis);
    return at->second;
  }

  /// Names and the bits of the samples.
  using Key = std::tuple<std::string, std::string, std::string, std::vector<uint64_t>>;

  static Key keyOf(const std::string& metric, const std::string& unit, const std::string& device,
                   const std::vector<double>& samples) {
    std::vector<uint64_t> bits;
    for (const double value : samples) bits.push_back(std::bit_cast<uint64_t>(value));
    return {metric, unit, device, std::move(bits)};
  }

  /// The first measurement that no other series points at already.
  std::optional<size_t> measurementOf(const TelemetrySeries& series) {
    const auto found = unused_.find(keyOf(series.metric, series.unit, series.device, series.value));
    if (found == unused_.end() || found->second.empty()) return std::nullopt;
    const size_t first = found->second.back();
    found->second.pop_back();
    return first;
  }

  const StageRecord& stage_;
  std::map<Key, std::vector<size_t>> unused_;  ///< the first one last
  std::map<std::string, size_t> places_;
  Json axes_ = Json::array();
};

Status readOwn(const Json& json, const std::string& path, TelemetrySeries& series) {
  JsonReader r(json, path);
  r.read("metric", series.metric);
  r.read("unit", series.unit);
  r.read("device", series.device);
  if (r.ok() && !json.contains("value")) r.fail("value", "is missing; expected a list");
  MUSTER_CHECK_OK(r.status());
  MUSTER_TRY(series.value, unpackedSamples(json["value"], 0, path + ".value"));
  return {};
}

Status readPointed(const Json& json, const StageRecord& stage, const std::string& path,
                   TelemetrySeries& series) {
  uint64_t of = 0;
  JsonReader r(json, path);
  r.read("of", of);
  if (r.ok() && of >= stage.measurements.size())
    r.fail("of", fmt::format("{} is none of the stage's {} measurements", of, stage.measurements.size()));
  MUSTER_CHECK_OK(r.status());
  const Measurement& m = stage.measurements[of];
  series.metric = m.metric;
  series.unit = m.unit;
  series.device = m.device;
  series.value = m.samples;
  return {};
}

Result<TelemetrySeries> seriesFromJson(const Json& json, const StageRecord& stage,
                                       const std::vector<std::vector<double>>& axes,
                                       const std::string& path) {
  TelemetrySeries series;
  uint64_t axis = 0;
  JsonReader r(json, path);
  r.read("time", axis);
  if (r.ok() && axis >= axes.size())
    r.fail("time", fmt::format("{} is none of the stage's {} time axes", axis, axes.size()));
  MUSTER_CHECK_OK(r.status());
  series.time = axes[axis];
  MUSTER_CHECK_OK(json.contains("of") ? readPointed(json, stage, path, series) : readOwn(json, path, series));
  if (series.time.size() != series.value.size())
    return damaged(fmt::format("has {} points and its time axis {}", series.value.size(), series.time.size()),
                   path + ".value");
  series.summary = ownSummary(series.value);
  if (json.contains("summary")) {
    MUSTER_TRY(series.summary, summaryFromJson(json["summary"], path + ".summary"));
  }
  return series;
}

}  // namespace

Json foldedTelemetry(const StageRecord& stage) {
  return Folder(stage).fold();
}

Result<std::vector<TelemetrySeries>> unfoldedTelemetry(const Json& json, const StageRecord& stage,
                                                       const std::string& path) {
  std::vector<std::vector<double>> axes;
  std::vector<TelemetrySeries> list;
  JsonReader r(json, path);
  r.each("times", [&](const Json& item, const std::string& at) -> Status {
    MUSTER_TRY(auto axis, axisFromJson(item, at));
    axes.push_back(std::move(axis));
    return {};
  });
  const Json* series = r.array("series");
  MUSTER_CHECK_OK(r.status());
  MUSTER_CHECK_OK(eachRow(*series, path + ".series", [&](const Json& item, const std::string& at) -> Status {
    MUSTER_TRY(auto one, seriesFromJson(item, stage, axes, at));
    list.push_back(std::move(one));
    return {};
  }));
  return list;
}

}  // namespace muster
