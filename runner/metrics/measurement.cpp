// SPDX-License-Identifier: Apache-2.0
// Converts measurements from and to JSON.
#include "runner/metrics/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runner/core/digits.h"
#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

/// Sums in long double: 1e6 samples of 1e15 must not lose what the spread is about.
double meanOf(const std::vector<double>& samples) {
  const long double sum = std::accumulate(samples.begin(), samples.end(), 0.0L);
  return static_cast<double>(sum / static_cast<long double>(samples.size()));
}

double deviationOf(const std::vector<double>& samples, double mean) {
  if (samples.size() < 2) return 0;
  long double squares = 0;
  for (const double x : samples) {
    const long double distance = static_cast<long double>(x) - mean;
    squares += distance * distance;
  }
  return static_cast<double>(std::sqrt(squares / static_cast<long double>(samples.size() - 1)));
}

}  // namespace

std::string labelsText(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels)
    text += (text.empty() ? "" : " ") + printable(key) + "=" + printable(value);
  return text;
}

bool labelsMatch(const Labels& labels, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& entry) {
    const auto at = labels.find(entry.first);
    return at != labels.end() && at->second == entry.second;
  });
}

Summary summarize(const std::vector<double>& samples) {
  Summary summary{samples.size(), kNaN, kNaN, kNaN, kNaN, kNaN, kNaN};
  if (samples.empty()) return summary;
  for (const double x : samples) {  // fmin and fmax pass NaN over: the extremes of what was measured
    summary.min = std::fmin(summary.min, x);
    summary.max = std::fmax(summary.max, x);
  }
  if (!std::all_of(samples.begin(), samples.end(), [](double x) { return std::isfinite(x); })) return summary;
  summary.mean = meanOf(samples);
  summary.median = medianOf(samples);
  summary.stddev = deviationOf(samples, summary.mean);
  summary.cv = summary.stddev / std::fabs(summary.mean);
  return summary;
}

Summary roundedSummary(Summary summary, int digits) {
  for (double* figure :
       {&summary.mean, &summary.median, &summary.min, &summary.max, &summary.stddev, &summary.cv})
    *figure = roundedTo(*figure, digits);
  return summary;
}

std::string Measurement::valueText() const {
  return isText() ? printable(text) : formatQuantity(summarize(samples).median, unit);
}

Json toJson(const Measurement& m) {
  Json json = {{"metric", m.metric}, {"unit", m.unit}, {"case", m.caseId}, {"rank", m.rank}};
  if (!m.device.empty()) json["device"] = m.device;
  if (m.direction != Direction::kNone) json["direction"] = directionName(m.direction);
  if (!m.labels.empty()) json["labels"] = m.labels;
  if (m.attempt != 1) json["attempt"] = m.attempt;
  if (m.repeat != 0) json["repeat"] = m.repeat;
  if (m.informational) json["informational"] = true;
  if (!m.peak.empty()) json["peak"] = m.peak;
  if (m.series != Series::kNone) json["series"] = seriesName(m.series);
  if (m.window != 0) json["window"] = numberToJson(m.window);
  if (!m.text.empty()) json["text"] = m.text;
  if (!m.samples.empty()) {
    Json samples = Json::array();
    for (const double x : m.samples) samples.push_back(numberToJson(x));
    json["samples"] = std::move(samples);
  }
  return json;
}

Result<Measurement> measurementFromJson(const Json& json, const std::string& path) {
  Measurement m;
  JsonReader r(json, path);
  r.read("metric", m.metric);
  r.read("unit", m.unit);
  r.read("case", m.caseId);
  r.read("rank", m.rank);
  r.optional("device", m.device);
  r.optional("labels", m.labels);
  r.optional("attempt", m.attempt);
  r.optional("repeat", m.repeat);
  r.optional("informational", m.informational);
  r.optional("peak", m.peak);
  r.optional("text", m.text);
  r.optional("samples", m.samples);
  std::string direction = "none";
  r.optional("direction", direction);
  std::string series = "none";
  r.optional("series", series);
  r.optional("window", m.window);
  if (r.ok() && !isBaseUnit(m.unit))
    r.fail("unit", fmt::format("\"{}\" is not a base unit", printable(m.unit, 40)));
  const auto parsed = directionFromName(direction);
  if (!parsed.ok()) r.fail("direction", parsed.error().message);
  const auto readSeries = seriesFromName(series);
  if (!readSeries.ok()) r.fail("series", readSeries.error().message);
  if (r.ok() && !(m.window >= 0 && std::isfinite(m.window))) r.fail("window", "is not a duration");
  if (!r.ok()) return r.status().error();
  m.series = *readSeries;
  m.direction = *parsed;
  return m;
}

const char* directionName(Direction direction) {
  switch (direction) {
    case Direction::kNone:
      return "none";
    case Direction::kHigher:
      return "higher";
    case Direction::kLower:
      return "lower";
  }
  return "none";
}

Result<Direction> directionFromName(std::string_view name) {
  for (const Direction direction : {Direction::kNone, Direction::kHigher, Direction::kLower})
    if (name == directionName(direction)) return direction;
  return Error{ErrorCode::kProtocol,
               fmt::format("\"{}\" is not a direction; expected higher, lower or none", printable(name, 40)),
               ""};
}

const char* seriesName(Series series) {
  switch (series) {
    case Series::kNone:
      return "none";
    case Series::kWindows:
      return "windows";
    case Series::kRuns:
      return "runs";
  }
  return "none";
}

Result<Series> seriesFromName(std::string_view name) {
  for (const Series series : {Series::kNone, Series::kWindows, Series::kRuns})
    if (name == seriesName(series)) return series;
  return Error{ErrorCode::kProtocol,
               fmt::format("\"{}\" is not a series; expected windows, runs or none", printable(name, 40)),
               ""};
}

}  // namespace muster
