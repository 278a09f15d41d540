// SPDX-License-Identifier: Apache-2.0
// What `./dev bench fleet` runs for one size: a fleet of N nodes is read in two threads, judged and rendered.
//   fleet-bench TEMPLATES N RECORD...     from memory: RECORD is of simulated nodes, N copies with names of
//   their own fleet-bench --write FOLDER N RECORD...  writes them as files, for `muster fleet` itself
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "reports/fleet/fleet_html.h"
#include "reports/fleet/fleet_record.h"
#include "runner/core/files.h"
#include "tests/browser/browser.h"

namespace muster::fleet {
namespace {

/// Node names have as many letters as those of simulated nodes, so that each record keeps its size.
std::string nodeName(size_t i) {
  return fmt::format("sim-node-{:04}", i);
}

/// A simulated record, and the name that its node gives itself.
struct Base {
  std::string text;
  std::string name;
  std::vector<size_t> places;  ///< where the name stands
};

Result<std::vector<Base>> readBases(const std::vector<std::string>& paths) {
  std::vector<Base> bases;
  for (const std::string& path : paths) {
    Base base;
    MUSTER_TRY(base.text, readFile(path));
    FleetNames names;
    auto summary = RecordReader(names).parse(base.text);
    if (!summary.ok()) return std::move(summary).error().context(path);
    base.name = summary->node;
    if (base.name.size() != nodeName(0).size())
      return Error{ErrorCode::kUsage, "is not of a simulated node", path};
    for (size_t at = base.text.find(base.name); at != std::string::npos;
         at = base.text.find(base.name, at + 1))
      base.places.push_back(at);
    bases.push_back(std::move(base));
  }
  return bases;
}

/// Writes the record of node `i` into `out`.
void make(const Base& base, size_t i, std::string& out) {
  out = base.text;
  const std::string name = nodeName(i);
  for (const size_t at : base.places) out.replace(at, name.size(), name);
}

Status writeFiles(const std::filesystem::path& folder, size_t count, const std::vector<Base>& bases) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    make(bases[i % bases.size()], i, text);
    std::filesystem::create_directories(folder / nodeName(i));
    MUSTER_CHECK_OK(writeFileAtomically(folder / nodeName(i) / "record.json", text, Durable::kNo));
  }
  return {};
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Status measure(const std::filesystem::path& templates, size_t count, const std::vector<Base>& bases) {
  const double begin = seconds();
  FleetRecords records = readEach(
      count, 2, {},
      [&](RecordReader& reader, size_t i) {
        thread_local std::string text;
        make(bases[i % bases.size()], i, text);
        return reader.parse(text);
      },
      nodeName);
  const double read = seconds() - begin;
  FleetOptions options;
  for (size_t i = 0; i < count; ++i) options.expected.push_back({nodeName(i), "", false});
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
  fmt::print("  nodes   seconds   reading   judging   peak MB  record MB    page MB\n");
  fmt::print("{:>7} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.0f} {:>10.2f} {:>10.2f}  {}, {} suspects\n", count, all,
             read, judged - read, static_cast<double>(usage.ru_maxrss) / 1024,
             static_cast<double>(text.size()) / 1e6, static_cast<double>(html.size()) / 1e6, fleet.acceptance,
             fleet.suspects.size());
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
    return Error{ErrorCode::kUsage, "wanted [--write] FOLDER N RECORD...", "fleet-bench"};
  const size_t count = std::strtoul(arguments[first + 1].c_str(), nullptr, 10);
  MUSTER_TRY(const std::vector<Base> bases,
             readBases({arguments.begin() + static_cast<std::ptrdiff_t>(first) + 2, arguments.end()}));
  return write ? writeFiles(arguments[first], count, bases) : measure(arguments[first], count, bases);
}

}  // namespace
}  // namespace muster::fleet

int main(int argc, char** argv) {
  const auto status = muster::fleet::run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().text());
  return 1;
}
