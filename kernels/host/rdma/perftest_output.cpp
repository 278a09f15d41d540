// SPDX-License-Identifier: Apache-2.0
// What perftest prints, read strictly.
#include "kernels/host/rdma/perftest_output.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "runner/core/text.h"

namespace muster {

namespace {

/// The head of each table with single spaces (perftest, src/perftest_parameters.h: RESULT_FMT_G,
/// RESULT_FMT_LAT).
constexpr std::string_view kBandwidthHead =
    "#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]";
constexpr std::string_view kLatencyHead =
    "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] 99% "
    "percentile[usec] "
    "99.9% percentile[usec]";
constexpr size_t kBandwidthColumns = 5;
constexpr size_t kLatencyColumns = 9;

std::vector<std::string_view> words(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\v\f";
  std::vector<std::string_view> found;
  while (true) {
    const size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return found;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlank), line.size());
    found.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

Error malformed(const std::string& what) {
  return {ErrorCode::kProtocol,
          what + "; expected the table of perftest 4.5 or later (Debian package perftest)", ""};
}

std::string quoted(std::string_view line) {
  return "\"" + printable(trim(line), 160) + "\"";
}

/// The rows below the only head of the table; a rule of dashes ends it.
Result<std::vector<std::string_view>> rowsBelow(std::string_view head, std::string_view output) {
  const std::string_view whole = output;
  std::vector<std::string_view> rows;
  bool inside = false;
  size_t heads = 0;
  while (!output.empty()) {
    const size_t end = std::min(output.find('\n'), output.size());
    const std::string_view line = trim(output.substr(0, end));
    output.remove_prefix(std::min(end + 1, output.size()));
    if (line.starts_with("#bytes")) {
      if (fmt::format("{}", fmt::join(words(line), " ")) != head)
        return malformed("the engine printed a table with head " + quoted(line));
      inside = true;
      ++heads;
    } else if (line.starts_with("---")) {
      inside = false;
    } else if (inside && !line.empty()) {
      rows.push_back(line);
    }
  }
  if (heads == 0) return malformed("the engine printed no table of results: " + lastWords(whole));
  if (heads > 1) return malformed(fmt::format("the engine printed {} tables of results, not one", heads));
  return rows;
}

Result<std::vector<double>> numbersOf(std::string_view row, size_t columns) {
  std::vector<double> numbers;
  for (const std::string_view word : words(row)) {
    double value = 0;
    const auto [rest, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (problem != std::errc{} || rest != word.data() + word.size() || !std::isfinite(value) || value < 0)
      return malformed("a row of results holds " + quoted(word) + " where a number is expected, in " +
                       quoted(row));
    numbers.push_back(value);
  }
  if (numbers.size() != columns)
    return malformed(
        fmt::format("a row of results has {} columns, not {}: {}", numbers.size(), columns, quoted(row)));
  return numbers;
}

Result<RdmaFigure> bandwidthOf(const std::vector<double>& row) {
  RdmaFigure figure;
  figure.bandwidth = row[3] * 1e9 / 8;
  if (!(figure.bandwidth > 0)) return malformed("the engine reports that it moved nothing (average 0 Gb/s)");
  if (!std::isfinite(figure.bandwidth))
    return malformed(fmt::format("the engine reports that it moved {} Gb/s", row[3]));
  return figure;
}

Result<RdmaFigure> latencyOf(const std::vector<double>& row) {
  const double fastest = row[2], slowest = row[3], typical = row[4], p99 = row[7];
  if (!(fastest > 0) || typical < fastest || slowest < typical || p99 < fastest || p99 > slowest)
    return malformed(
        fmt::format("the engine's latencies contradict each other: min {}, typical {}, 99% {}, max {} us",
                    fastest, typical, p99, slowest));
  RdmaFigure figure;
  figure.latency = typical * 1e-6;
  figure.latencyP99 = p99 * 1e-6;
  return figure;
}

}  // namespace

Result<RdmaFigure> parsePerftest(RdmaMethod method, std::string_view output, uint64_t bytes) {
  const bool isBandwidth = method == RdmaMethod::kWriteBandwidth;
  MUSTER_TRY(const std::vector<std::string_view> rows,
             rowsBelow(isBandwidth ? kBandwidthHead : kLatencyHead, output));
  if (rows.size() != 1) return malformed(fmt::format("the engine's table has {} rows, not one", rows.size()));
  MUSTER_TRY(const std::vector<double> row,
             numbersOf(rows[0], isBandwidth ? kBandwidthColumns : kLatencyColumns));
  if (row[0] != static_cast<double>(bytes))
    return malformed(fmt::format("the engine used messages of {} B, expected {} B", row[0], bytes));
  if (!(row[1] > 0)) return malformed("the engine reports 0 iterations");
  return isBandwidth ? bandwidthOf(row) : latencyOf(row);
}

std::string lastWords(std::string_view output) {
  constexpr size_t kMost = 400;
  std::string told;
  while (!output.empty() && told.size() < kMost) {
    const size_t begin = output.rfind('\n');
    std::string_view line = begin == std::string_view::npos ? output : output.substr(begin + 1);
    output = begin == std::string_view::npos ? std::string_view{} : output.substr(0, begin);
    line = trim(line);
    if (line.empty() || line.find_first_not_of("-*= ") == std::string_view::npos) continue;
    told = printable(line, 200) + (told.empty() ? "" : " | ") + told;
  }
  return told.empty() ? "it printed nothing" : "it printed: " + told;
}

}  // namespace muster
