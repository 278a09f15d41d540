// SPDX-License-Identifier: Apache-2.0
// Measurements: what a plugin measured, with every sample and where it came from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster {

/// Label names and values: device, dtype, op, bytes, peer ... Ordered, so equal sets print alike.
using Labels = std::map<std::string, std::string>;

/// "device=gpu3 dtype=bf16", or an empty text.
std::string labelsText(const Labels& labels);

/// Whether every entry of `wanted` stands in `labels` with the same value.
bool labelsMatch(const Labels& labels, const Labels& wanted);

/// Which way a metric is better.
enum class Direction { kNone, kHigher, kLower };

/// How the samples of one measurement follow each other in time.
enum class Series {
  kNone,     ///< in no stated order
  kWindows,  ///< one after another, each over an equal time
  kRuns,     ///< one after another, each over an equal amount of work
};

/// Order statistics and moments over all samples; every field is NaN when there is no sample.
struct Summary {
  size_t n = 0;
  double mean = 0;
  double median = 0;
  double min = 0;
  double max = 0;
  double stddev = 0;  ///< sample standard deviation (n-1); 0 for n = 1
  double cv = 0;      ///< stddev / |mean|
};

/// Summary of `samples`. A NaN or infinity anywhere makes mean, median, stddev and cv NaN.
Summary summarize(const std::vector<double>& samples);

/// `summary` with at most `digits` significant digits in each figure.
Summary roundedSummary(Summary summary, int digits);

/// One measurement: samples in a base unit, or a text (unit "text").
struct Measurement {
  std::string metric;  ///< "plugin.name", for example "compute.gemm_throughput"
  std::string unit;    ///< base unit, see units.h
  Direction direction = Direction::kNone;
  Labels labels;  ///< includes device and the case's parameters that the metric declares as labels
  std::vector<double> samples;
  std::string text;  ///< the value when unit is "text"

  std::string caseId;  ///< "gemm[dtype=bf16]"
  int rank = 0;
  std::string device;  ///< device id, for example "gpu3"; empty for a node-wide fact
  int attempt = 1;
  int repeat = 0;

  bool informational = false;  ///< reported, not counted as unjudged
  std::string peak;            ///< name of its theoretical peak ("flops.bf16"), or empty

  Series series = Series::kNone;
  double window = 0;  ///< kWindows: seconds of one sample; 0 if unknown

  [[nodiscard]] bool isText() const { return unit == "text"; }
  /// "710 TFLOP/s" (the median), or the text.
  [[nodiscard]] std::string valueText() const;
};

Json toJson(const Measurement& measurement);
Result<Measurement> measurementFromJson(const Json& json, const std::string& path);

const char* directionName(Direction direction);
Result<Direction> directionFromName(std::string_view name);

const char* seriesName(Series series);  ///< none, windows, runs
Result<Series> seriesFromName(std::string_view name);

}  // namespace muster
