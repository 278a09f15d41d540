// SPDX-License-Identifier: Apache-2.0
// What `./dev bench fleet` runs for one size: a fleet of N nodes is read in two threads, judged and rendered.
//   fleet-bench TEMPLATES N RECORD...       from memory: RECORD is of simulated nodes, N copies with names of
//                                           their own; seconds are those of the clock and of both CPUs
//   fleet-bench --write FOLDER N RECORD...  writes them as files, for `muster fleet` itself
//   fleet-bench --load PAGE                 opens a page in Chromium
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "reports/fleet/fleet_record.h"
#include "reports/fleet/render/fleet_html.h"
#include "runner/system/files.h"
#include "tests/browser/browser.h"
#include "tests/reports/fleet/copied_fleet.h"

namespace muster::fleet {
namespace {

using muster::testing::CopiedFleet;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Status measure(const std::filesystem::path& templates, size_t count, const CopiedFleet& copies) {
  const double begin = seconds();
  FleetRecords records = readEach({count,
                                   [&](RecordReader& reader, size_t i) {
                                     thread_local std::string text;
                                     copies.make(i, text);
                                     return reader.parse(text);
                                   },
                                   CopiedFleet::nodeName},
                                  2);
  const double read = seconds() - begin;
  FleetOptions options;
  for (size_t i = 0; i < count; ++i) options.expected.push_back({CopiedFleet::nodeName(i), "", false});
  MUSTER_TRY(const Fleet fleet, assess(records, options));
  const double judged = seconds() - begin;
  const std::string text = fleetText(fleet, records);
  MUSTER_TRY(const std::string html, renderFleetHtml(fleet, records, sha256Hex(text), templates));
  const double all = seconds() - begin;
  const std::filesystem::path page =
      std::filesystem::temp_directory_path() / fmt::format("muster-fleet-{}.html", count);
  MUSTER_CHECK_OK(writeFileAtomically(page, html, Durable::kNo));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto cpu = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  fmt::print("  nodes   seconds   reading   judging   CPU s   peak MB  record MB    page MB\n");
  fmt::print("{:>7} {:>9.2f} {:>9.2f} {:>9.2f} {:>7.1f} {:>9.0f} {:>10.2f} {:>10.2f}  {}, {} suspects\n",
             count, all, read, judged - read, cpu(usage.ru_utime) + cpu(usage.ru_stime),
             static_cast<double>(usage.ru_maxrss) / 1024, static_cast<double>(text.size()) / 1e6,
             static_cast<double>(html.size()) / 1e6, nameOf(fleet.acceptance), fleet.suspects.size());
  return {};
}

/// From the start of the navigation until the page and its scripts are there, without the browser's own
/// start.
Status load(const std::string& page) {
  testing::Browser browser;
  browser.open(page);
  const double milliseconds =
      browser.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart").get<double>();
  fmt::print("        {} opens in {:.2f} s in Chromium\n", page, milliseconds / 1000);
  return {};
}

Status run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 2 && arguments[0] == "--load") return load(arguments[1]);
  const bool write = !arguments.empty() && arguments[0] == "--write";
  const size_t first = write ? 1 : 0;
  if (arguments.size() < first + 3)
    return Error{ErrorCode::kUsage, "expected [--write] FOLDER N RECORD...", "fleet-bench"};
  const size_t count = std::strtoul(arguments[first + 1].c_str(), nullptr, 10);
  MUSTER_TRY(
      const CopiedFleet copies,
      CopiedFleet::from({arguments.begin() + static_cast<std::ptrdiff_t>(first) + 2, arguments.end()}));
  return write ? copies.write(arguments[first], count) : measure(arguments[first], count, copies);
}

}  // namespace
}  // namespace muster::fleet

int main(int argc, char** argv) {
  const auto status = muster::fleet::run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().text());
  return 1;
}
