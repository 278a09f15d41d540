// SPDX-License-Identifier: Apache-2.0
// nccl-tests: the table on standard output, and the JSON of its option -J. Both give rows of one table, which
// is checked as a whole: columns against each other, and the sizes against those that were asked for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

constexpr double kMicros = 1e6;  // in a second
constexpr size_t kMostRows = 20'000;
constexpr size_t kMostTables = 1'000;  // of one type, reduction, root and cycle each
constexpr uint64_t kMostRanks = 20'000;
constexpr uint64_t kLatencyTo = 1024;  // as collective.sweep's latency_to

/// One half of a row: out of place or in place.
struct Half {
  bool measured = false;
  double micros = 0;
  double algorithm = 0;  ///< GB/s
  double bus = 0;        ///< GB/s
  std::optional<double> wrong;
};

struct Row {
  uint64_t bytes = 0;
  std::string type, redop, root;
  Half halves[2];
  size_t line = 0;    ///< of the text, or
  std::string place;  ///< in the JSON: "results[3]"
  size_t cycle = 0;   ///< -N: how often all sizes came before
};

struct Table {
  std::string op;
  std::string version;
  std::string library;
  uint64_t ranks = 0;
  std::optional<uint64_t> group;       ///< of all ranks
  uint64_t fewest = 0, most = 0;       ///< sizes asked for
  uint64_t factor = 0, stepBytes = 0;  ///< from one to the next; factor 0: by adding bytes
  std::vector<std::string> hosts, devices, errors;
  std::set<std::pair<std::string, std::string>> places;  ///< host and PCI address of each rank
  std::vector<std::string> others;  ///< lines of NCCL, of the launcher and of programs beside it
  std::vector<Row> rows;
  std::string rest;             ///< the first line behind the table that is none of a run that ended well
  std::string bounds, average;  ///< the tool's own verdicts: "0 OK"; empty: the file ends before
  bool boundsFailed = false, averageFailed = false, averageChecked = false;
};

const std::map<std::string, double (*)(double)>& busFactors() {
  const auto share = [](double n) { return (n - 1) / n; };
  const auto one = [](double) { return 1.0; };
  static const std::map<std::string, double (*)(double)> factors = {
      {"all_reduce", [](double n) { return 2 * (n - 1) / n; }},
      {"all_gather", share},
      {"reduce_scatter", share},
      {"alltoall", share},
      {"gather", share},
      {"scatter", share},
      {"broadcast", one},
      {"reduce", one},
      {"sendrecv", one}};
  return factors;
}

/// NCCL's name of a type in Muster's words; others keep theirs.
std::string dtypeOf(const std::string& type) {
  static const std::map<std::string, std::string> known = {
      {"double", "f64"},        {"float", "f32"},         {"half", "f16"},
      {"bfloat16", "bf16"},     {"f8e4m3", "fp8_e4m3"},   {"f8e5m2", "fp8_e5m2"},
      {"fp8_e4m3", "fp8_e4m3"}, {"fp8_e5m2", "fp8_e5m2"}, {"int8", "i8"}};
  const auto at = known.find(type);
  return at == known.end() ? type : at->second;
}

/// "./build/all_reduce_perf" is all_reduce.
std::string opOf(std::string_view program) {
  if (const size_t slash = program.rfind('/'); slash != std::string_view::npos)
    program.remove_prefix(slash + 1);
  constexpr std::string_view kEnd = "_perf";
  if (program.ends_with(kEnd)) program.remove_suffix(kEnd.size());
  return std::string(program);
}

/// 22809 is 2.28.9.
std::string libraryText(uint64_t code) {
  return code < 10'000 ? "" : fmt::format("NCCL {}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
}

constexpr double kRounding = 0.0055;  ///< GB/s: half of the last of two decimals, and a little more

/// `rounding`: how far the rounding of what was printed may take them apart.
bool near(double printed, double computed, double rounding) {
  return std::abs(printed - computed) <= rounding + 0.02 * std::abs(computed);
}

/// What a half says must agree: size over time is algbw, algbw times the op's factor is busbw.
std::string contradictionIn(const Half& half, uint64_t bytes, double factor) {
  if (half.micros <= 0) return fmt::format("a time of {} us", half.micros);
  const double algorithm = static_cast<double>(bytes) / half.micros * kMicros / kGiga;
  if (!near(half.algorithm, algorithm, kRounding))
    return fmt::format("algbw is {} GB/s, but {} bytes in {} us are {:.2f}", half.algorithm, bytes,
                       half.micros, algorithm);
  if (!near(half.bus, half.algorithm * factor, kRounding * (1 + factor)))
    return fmt::format("busbw is {} GB/s, but algbw {} times {:.4g} is {:.2f}: another op or number of ranks",
                       half.bus, half.algorithm, factor, half.algorithm * factor);
  return half.wrong && *half.wrong < 0 ? "a negative count of wrong elements" : "";
}

/// The sizes from the fewest to the most.
std::vector<uint64_t> sizesAskedFor(const Table& table) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = table.fewest; size <= table.most && sizes.size() <= kMostRows;
       size = table.factor > 0 ? size * table.factor : size + table.stepBytes) {
    sizes.push_back(size);
    if (table.factor > 0 ? size == 0 : table.stepBytes == 0) break;
  }
  return sizes;
}

/// What one case is about; all its rows have the same.
struct CaseKey {
  std::string type, redop, root;
  size_t cycle = 0;
  auto operator<=>(const CaseKey&) const = default;
};

constexpr const char* kCpuTime =
    "its times are those of the CPU, from which no rate can be checked: run it without -C 1";

Error refuseRow(const Source& source, const Row& row, const std::string& problem) {
  return row.line > 0 ? source.refuse(row.line, problem) : source.refuse(row.place, problem);
}

/// Numbers the cycles. Each has one row of each size that was asked for, in this order: a row may have fewer
/// bytes, because nccl-tests rounds them down for each rank (to 16 bytes).
Status numberCycles(const Source& source, Table& table) {
  const std::vector<uint64_t> sizes = sizesAskedFor(table);
  if (!table.errors.empty()) return {};
  if (sizes.empty()) return source.refuse("", "its fewest bytes are more than its most");
  std::map<CaseKey, size_t> rows;
  for (Row& row : table.rows) {
    const size_t number = rows[{row.type, row.redop, row.root}]++;
    const uint64_t asked = sizes[number % sizes.size()];
    if (row.bytes > asked || asked - row.bytes > 64 * table.ranks)
      return refuseRow(source, row,
                       fmt::format("a row of {} bytes; {} were asked for: rows are missing, or there twice",
                                   row.bytes, asked));
    row.cycle = number / sizes.size();
  }
  for (const auto& [key, count] : rows)
    if (count % sizes.size() != 0)
      return source.refuse(
          "",
          fmt::format("it holds {} rows; {} sizes were asked for: rows are missing{}", count, sizes.size(),
                      source.json ? " (if memory did not suffice for the largest ones, this file does "
                                    "not tell so: ask for less with -e)"
                                  : ""));
  return {};
}

Status checkTable(const Source& source, const Table& table) {
  const auto factor = busFactors().find(table.op);
  if (table.op.empty())
    return source.refuse("",
                         "it does not name its collective (nccl-tests 2.17 and newer print "
                         "\"Collective test starting\"), and its columns fit several");
  if (factor == busFactors().end())
    return source.refuse("",
                         fmt::format("collective \"{}\" has no metric of Muster's", printable(table.op, 60)));
  if (table.rows.size() > kMostRows || table.ranks > kMostRanks)
    return source.refuse("", fmt::format("it holds more than {} rows or {} ranks", kMostRows, kMostRanks));
  if (table.ranks == 0) return source.refuse("", "it lists no ranks, so its rates cannot be judged");
  for (const Row& row : table.rows)
    for (const Half& half : row.halves)
      if (half.measured && row.bytes > 0)
        if (const std::string why =
                contradictionIn(half, row.bytes, factor->second(static_cast<double>(table.ranks)));
            !why.empty())
          return refuseRow(source, row, "the row contradicts itself: " + why);
  return {};
}

constexpr const char* kPlacements[] = {"out_of_place", "in_place"};

CaseKey keyOf(const Row& row) {
  return {row.type, row.redop, row.root, row.cycle};
}

using Rows = std::vector<const Row*>;

/// Rows of one size in one cycle are samples of one measurement: small sizes that were rounded to the same.
class Samples {
 public:
  Samples(ImportedFile& file, std::string caseId) : file_(file), caseId_(std::move(caseId)) {}

  void add(const std::string& metric, const Labels& labels, double value) {
    const auto [at, fresh] = known_.emplace(std::pair(metric, labels), file_.measurements.size());
    if (fresh)
      file_.measurements.push_back(valueOf(metric, labels, value, caseId_));
    else
      file_.measurements[at->second].samples.push_back(value);
  }

 private:
  ImportedFile& file_;
  std::string caseId_;
  std::map<std::pair<std::string, Labels>, size_t> known_;  ///< its place among the file's measurements
};

/// A size too small for all ranks moves nothing; and these two have no form in place whose results could be
/// checked.
bool counts(const Table& table, const Row& row, size_t place) {
  const bool apart = place == 1 && (table.op == "alltoall" || table.op == "sendrecv");
  return row.bytes > 0 && row.halves[place].measured && !(apart && !row.halves[place].wrong);
}

uint64_t largestSize(const Table& table, const Rows& rows, size_t place) {
  uint64_t largest = 0;
  for (const Row* row : rows)
    if (counts(table, *row, place)) largest = std::max(largest, row->bytes);
  return largest;
}

/// The rows of one type, reduction, root and cycle as a case. `roots` and `cycles`: whether the file has
/// several.
void addCase(const Table& table, const CaseKey& key, const Rows& rows, bool roots, bool cycles,
             ImportedFile& file) {
  ImportedCase one;
  const bool reduces = key.redop != "none" && key.redop != "N/A";
  one.id =
      fmt::format("{}[dtype={}{}{}{}]", table.op, dtypeOf(key.type), reduces ? ",reduction=" + key.redop : "",
                  roots ? ",root=" + key.root : "", cycles ? fmt::format(",cycle={}", key.cycle + 1) : "");
  one.labels = {{"op", table.op},
                {"dtype", dtypeOf(key.type)},
                {"ranks", std::to_string(table.ranks)},
                {"nodes", std::to_string(std::max<size_t>(1, table.hosts.size()))}};
  one.metrics = {"collective.large_message_bus_bandwidth", "collective.bus_bandwidth",
                 "collective.algorithm_bandwidth", "collective.collective_time",
                 "collective.collective_wrong_elements"};
  const uint64_t largest[] = {largestSize(table, rows, 0), largestSize(table, rows, 1)};
  Samples samples(file, one.id);
  double wrong = 0;
  bool checked = true;
  for (const Row* each : rows) {
    const Row& row = *each;
    for (size_t place = 0; place < 2; ++place) {
      const Half& half = row.halves[place];
      if (!counts(table, row, place)) continue;
      checked = checked && half.wrong.has_value();
      wrong += half.wrong.value_or(0);
      const Labels labels = {{"op", table.op},
                             {"dtype", dtypeOf(key.type)},
                             {"bytes", std::to_string(row.bytes)},
                             {"placement", kPlacements[place]}};
      samples.add("collective.bus_bandwidth", labels, half.bus * kGiga);
      samples.add("collective.algorithm_bandwidth", labels, half.algorithm * kGiga);
      samples.add("collective.collective_time", labels, half.micros / kMicros);
      if (row.bytes <= kLatencyTo) samples.add("collective.latency", labels, half.micros / kMicros);
      if (row.bytes < largest[place]) continue;
      Labels judged = one.labels;
      judged.insert(labels.begin(), labels.end());
      samples.add("collective.large_message_bus_bandwidth", judged, half.bus * kGiga);
    }
  }
  if (checked)
    file.measurements.push_back(valueOf("collective.collective_wrong_elements",
                                        {{"op", table.op}, {"dtype", dtypeOf(key.type)}}, wrong, one.id));
  else
    one.error = "its results were not checked (#wrong is N/A): run it with -c 1";
  if (!table.rest.empty())
    one.error = "a line behind the table is not one of a run that ended well: " + table.rest;
  if (!table.errors.empty()) one.error = "nccl-tests reported: " + printable(table.errors.front(), 300);
  file.cases.push_back(std::move(one));
}

Result<ImportedFile> fileOf(const Source& source, Table& table) {
  MUSTER_CHECK_OK(checkTable(source, table));
  MUSTER_CHECK_OK(numberCycles(source, table));
  ImportedFile file;
  file.tool = "nccl-tests" + (table.version.empty() ? "" : " " + table.version) +
              (table.library.empty() ? "" : ", " + table.library);
  file.failures = (table.boundsFailed ? 1 : 0) + (table.averageFailed ? 1 : 0);
  file.verdict = file.failures > 0      ? ToolVerdict::kFailed
                 : table.bounds.empty() ? ToolVerdict::kNone
                                        : ToolVerdict::kPassed;
  if (!table.bounds.empty())
    file.said = fmt::format("Out of bounds values: {}; Avg bus bandwidth: {}", table.bounds, table.average);
  file.limits = table.averageChecked ? "correct results and the average busbw over all sizes"
                                     : "correct results, and no rate";
  file.ranks = static_cast<int>(table.ranks);
  file.hosts = table.hosts;
  file.deviceNames = table.devices;
  file.notes = table.others;
  std::map<CaseKey, Rows> cases;
  std::set<std::string> roots;
  bool cycles = false;
  for (const Row& row : table.rows) {
    roots.insert(row.root);
    cycles = cycles || row.cycle > 0;
    cases[keyOf(row)].push_back(&row);
    if (cases.size() > kMostTables)
      return source.refuse(
          "", fmt::format("it holds more than {} types, reductions, roots and cycles", kMostTables));
  }
  for (const auto& [key, rows] : cases) addCase(table, key, rows, roots.size() > 1, cycles, file);
  if (table.rows.empty())
    file.cases.push_back({table.op,
                          {},
                          {"collective.large_message_bus_bandwidth"},
                          {},
                          table.errors.empty()
                              ? "the file holds no result"
                              : "nccl-tests reported: " + printable(table.errors.front(), 300)});
  return file;
}

// The table on standard output.

bool isText(const Source& source) {
  return !source.json && source.text.find("# nThread ") != std::string_view::npos &&
         source.text.find("algbw") != std::string_view::npos;
}

/// "N/A" is left out.
bool readHalf(const std::vector<std::string_view>& words, size_t at, Half& half) {
  if (words[at] == "N/A") return words[at + 1] == "N/A" && words[at + 2] == "N/A" && words[at + 3] == "N/A";
  const auto time = finiteNumber(words[at]), algorithm = finiteNumber(words[at + 1]),
             bus = finiteNumber(words[at + 2]);
  if (!time || !algorithm || !bus) return false;
  half = {true, *time, *algorithm, *bus, std::nullopt};
  if (words[at + 3] == "N/A") return true;
  half.wrong = finiteNumber(words[at + 3]);
  return half.wrong.has_value();
}

Status readRow(const Source& source, std::string_view line, size_t number, Table& table) {
  constexpr size_t kColumns = 13;
  const auto words = wordsOf(line);
  if (words.size() != kColumns)
    return source.refuse(number, fmt::format("a row of {} columns; expected {}: the line is damaged, or the "
                                             "output has extra columns",
                                             words.size(), kColumns));
  const auto bytes = wholeNumber(words[0]);
  Row row{
      bytes.value_or(0), std::string(words[2]), std::string(words[3]), std::string(words[4]), {}, number, ""};
  if (!bytes || !wholeNumber(words[1]) || !readHalf(words, 5, row.halves[0]) ||
      !readHalf(words, 9, row.halves[1]))
    return source.refuse(number, "a row with a value that is no finite number: " + printable(line, 160));
  if (table.rows.size() <= kMostRows) table.rows.push_back(std::move(row));  // refused later
  return {};
}

constexpr const char* kSplit =
    "ranks of several groups (NCCL_TESTS_SPLIT), over all of which the tool averages its times: run it "
    "without";

/// Whether all ranks so far are of one group.
bool isOneGroup(Table& table, uint64_t group) {
  if (!table.group) table.group = group;
  return group == *table.group;
}

/// "#  Rank  0 Group  0 Pid   123 on   node1 device  0 [0000:19:00] NVIDIA H100 80GB HBM3"
Status readRank(const Source& source, std::string_view line, size_t number, Table& table) {
  const auto words = wordsOf(line);
  const auto on = std::find(words.begin(), words.end(), "on");
  const size_t bracket = line.find("] "), address = line.find('[');
  if (on == words.end() || on + 1 == words.end() || bracket == std::string_view::npos || address > bracket)
    return source.refuse(number, "a line about a rank without its host and device: " + printable(line, 160));
  const auto group = std::find(words.begin(), words.end(), "Group");
  const auto inGroup = group < on ? wholeNumber(group[1]) : std::optional<uint64_t>(0);
  if (!inGroup)
    return source.refuse(number, "a line about a rank whose group is no number: " + printable(line, 160));
  if (!isOneGroup(table, *inGroup)) return source.refuse(number, kSplit);
  if (++table.ranks > kMostRanks) return {};  // refused later
  if (!table.places.emplace(on[1], line.substr(address, bracket - address)).second)
    return source.refuse(
        number,
        fmt::format("two ranks have one device, {} on {}: its rates are not those of "
                    "as many devices",
                    printable(line.substr(address, bracket - address + 1), 40), printable(on[1], 60)));
  addOnce(table.hosts, std::string(on[1]));
  addOnce(table.devices, std::string(trim(line.substr(bracket + 2))));
  return {};
}

Status readHeader(const Source& source, std::string_view line, size_t number, Table& table) {
  const auto words = wordsOf(line);
  const auto valueAfter = [&](std::string_view key) {
    const auto at = std::find(words.begin(), words.end(), key);
    return at == words.end() || at + 1 == words.end() ? std::string_view() : at[1];
  };
  const auto fewest = wholeNumber(valueAfter("minBytes")), most = wholeNumber(valueAfter("maxBytes"));
  const std::string_view step = valueAfter("step:");
  const auto factor = wholeNumber(step.substr(0, step.find('(')));
  if (!fewest || !most || !factor)
    return source.refuse(number, "its options cannot be read: " + printable(line, 200));
  table.fewest = *fewest;
  table.most = *most;
  (step.ends_with("(factor)") ? table.factor : table.stepBytes) = *factor;
  return {};
}

/// What a run prints before its table.
bool isOfHead(std::string_view line) {
  return line.starts_with("# nThread ") || line.starts_with("#  Rank ") ||
         !behind(line, "Collective test starting:").empty();
}

Status readComment(const Source& source, std::string_view line, size_t number, Table& table) {
  const bool second = line.starts_with("# nThread ") && table.most > 0;
  if (second || (isOfHead(line) && !table.rows.empty()))
    return source.refuse(number,
                         "another run begins here: " + printable(line, 160) + "; import each run as a file");
  if (line.starts_with("# nThread ")) return readHeader(source, line, number, table);
  if (line.starts_with("#  Rank ")) return readRank(source, line, number, table);
  if (const auto program = behind(line, "Collective test starting:"); !program.empty())
    table.op = opOf(program);
  if (const auto version = behind(line, "# nccl-tests version "); !version.empty()) {
    table.version = std::string(version.substr(0, version.find(' ')));
    table.library = libraryText(wholeNumber(behind(line, "nccl-library=")).value_or(0));
  }
  if (const auto most = behind(line, "# Reducing maxBytes to "); !most.empty() && table.rows.empty()) {
    const auto bytes = wholeNumber(wordsOf(most).front());
    if (!bytes) return source.refuse(number, "a size that cannot be read: " + printable(line, 160));
    table.most = std::min(table.most, *bytes);
    table.fewest = std::min(table.fewest, table.most);
  }
  if (const auto words = wordsOf(line); words.size() > 6 && words[1] == "size" && words[6] == "cputime")
    return source.refuse(number, kCpuTime);
  if (const auto error = behind(line, "# error: "); !error.empty()) addNote(table.errors, std::string(error));
  if (line.starts_with("# Out of bounds values")) {
    table.bounds = std::string(behind(line, ":"));
    table.boundsFailed = !table.bounds.ends_with("OK");
  } else if (!line.starts_with("# Avg bus bandwidth")) {
    // A check that this reader does not know.
    if (trim(line).ends_with("FAILED")) addNote(table.errors, std::string(trim(line)));
  } else {
    table.average = std::string(behind(line, ":"));
    table.averageFailed = table.average.ends_with("FAILED");
    table.averageChecked = table.averageFailed || table.average.ends_with("OK");
    const auto words = wordsOf(table.average);
    if (words.empty() || !finiteNumber(words.front()))
      return source.refuse(number, "the average is no finite number: " + printable(line, 160));
  }
  return {};
}

Result<ImportedFile> readText(const Source& source) {
  Table table;
  size_t last = 0, averageAt = 0;
  MUSTER_CHECK_OK(eachLine(source.text, [&](std::string_view line, size_t number) -> Status {
    last = number;
    if (line.starts_with("# Avg bus bandwidth")) averageAt = number;
    if (line.starts_with('#')) return readComment(source, line, number, table);
    // Lines of NCCL, MPI and programs beside it stand between the rows.
    const std::string_view begin = trim(line);
    if (begin.find(": Test ") != std::string_view::npos && begin.find("failure") != std::string_view::npos)
      addNote(table.errors, std::string(begin));
    else if (!table.average.empty() && !begin.empty() && source.error.empty() && table.rest.empty() &&
             !isUsualEnd(begin))
      table.rest = fmt::format("line {}: {}", number, printable(begin, 300));
    const auto words = wordsOf(line);
    if (words.size() >= 3 && wholeNumber(words[0]) && wholeNumber(words[1]))
      return readRow(source, line, number, table);
    if (!begin.empty()) addNote(table.others, fmt::format("line {}: {}", number, printable(begin, 300)));
    return {};
  }));
  // What may be missing of that line is "FAILED".
  const bool isCut = averageAt == last && !source.text.ends_with('\n');
  if (table.errors.empty() && (table.bounds.empty() || table.average.empty() || isCut))
    return source.refuse(last,
                         "the file ends before or in the line \"# Avg bus bandwidth\": it is truncated");
  return fileOf(source, table);
}

// The JSON of -J.

bool isJson(const Source& source) {
  return source.json && holds(*source.json, "results") && holds(*source.json, "config") &&
         (holds(*source.json, "out_of_bounds") || holds(*source.json, "nccl_version"));
}

Status readHalf(const Json& row, const char* key, const std::string& path, Half& half) {
  if (!row.contains(key) || row[key].is_null()) return {};
  JsonReader r(row[key], path + "." + key);
  half.measured = true;
  if (r.has("cpu_time")) return Error{ErrorCode::kUsage, kCpuTime, path + "." + key};
  r.read("time", half.micros);
  r.read("alg_bw", half.algorithm);
  r.read("bus_bw", half.bus);
  double wrong = 0;
  if (r.has("nwrong") && !row[key]["nwrong"].is_null()) {
    r.read("nwrong", wrong);
    half.wrong = wrong;
  }
  MUSTER_CHECK_OK(r.status());
  for (const double value : {half.micros, half.algorithm, half.bus, wrong})
    if (!std::isfinite(value))
      return Error{ErrorCode::kUsage, "holds a number that is not finite", path + "." + key};
  return {};
}

Status readConfig(const Json& config, Table& table) {
  JsonReader r(config, "config");
  uint64_t threads = 0, gpus = 0;
  r.read("nthreads", threads);
  r.read("ngpus", gpus);
  r.read("minimum_bytes", table.fewest);
  r.read("maximum_bytes", table.most);
  if (r.has("step_factor"))
    r.read("step_factor", table.factor);
  else
    r.read("step_bytes", table.stepBytes);
  uint64_t processes = 0;
  r.each("devices", [&](const Json& item, const std::string& path) -> Status {
    JsonReader device(item, path);
    std::string host, address, name;
    uint64_t group = 0;
    device.optional("group", group);
    device.optional("hostname", host);
    device.optional("device_hex", address);
    device.optional("device_info", name);
    MUSTER_CHECK_OK(device.status());
    if (!isOneGroup(table, group)) return Error{ErrorCode::kUsage, kSplit, path};
    if (++processes > kMostRanks)
      return {};  // refused later; the tool lists the first device of each process
    if (!address.empty() && !table.places.emplace(host, address).second)
      return Error{ErrorCode::kUsage, "is a device that the list holds already", path};
    if (!host.empty()) addOnce(table.hosts, host);
    if (!name.empty()) addOnce(table.devices, name);
    return {};
  });
  MUSTER_CHECK_OK(r.status());
  if (threads > kMostRanks || gpus > kMostRanks || processes > kMostRanks)
    return Error{ErrorCode::kUsage, "more ranks than any machine has", "config"};
  table.ranks = threads * gpus * processes;
  return {};
}

/// nccl-tests writes "true" and "false"; nothing where it is neither.
std::optional<bool> truthOf(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value == "true" || value == "false") return value == "true";
  return std::nullopt;
}

Status readOwnVerdict(const Json& json, Table& table) {
  JsonReader r(json, "");
  if (const Json* bounds = r.object("out_of_bounds")) {
    JsonReader part(*bounds, "out_of_bounds");
    uint64_t count = 0;
    part.read("count", count);
    MUSTER_CHECK_OK(part.status());
    const auto okay = truthOf(bounds->contains("okay") ? (*bounds)["okay"] : Json());
    if (!okay) return Error{ErrorCode::kUsage, "is neither \"true\" nor \"false\"", "out_of_bounds.okay"};
    table.boundsFailed = !*okay || count > 0;
    table.bounds = fmt::format("{} {}", count, *okay ? "OK" : "FAILED");
  }
  if (const Json* average = r.object("average_bus_bandwidth")) {
    JsonReader part(*average, "average_bus_bandwidth");
    double bandwidth = 0;
    part.read("bandwidth", bandwidth);
    MUSTER_CHECK_OK(part.status());
    const Json said = average->contains("okay") ? (*average)["okay"] : Json("unchecked");
    const auto okay = truthOf(said);
    if (!std::isfinite(bandwidth))
      return Error{ErrorCode::kUsage, "is no finite number", "average_bus_bandwidth.bandwidth"};
    if (!okay && said != "unchecked")
      return Error{ErrorCode::kUsage, "is neither \"true\", \"false\" nor \"unchecked\"",
                   "average_bus_bandwidth.okay"};
    table.averageChecked = okay.has_value();
    table.averageFailed = okay == false;
    table.average = fmt::format("{:g} {}", bandwidth,
                                !table.averageChecked ? "unchecked"
                                : table.averageFailed ? "FAILED"
                                                      : "OK");
  }
  return r.status();
}

Status readDocument(const Json& json, Table& table) {
  JsonReader r(json, "");
  std::vector<std::string> arguments;
  r.read("args", arguments);
  uint64_t library = 0;
  r.optional("nccl_version", library);
  if (const Json* config = r.object("config")) MUSTER_CHECK_OK(readConfig(*config, table));
  r.each("results", [&](const Json& item, const std::string& path) -> Status {
    Row row;
    row.place = path.substr(1);
    JsonReader one(item, row.place);
    one.read("size", row.bytes);
    one.read("type", row.type);
    one.read("redop", row.redop);
    if (one.has("root"))  // text with spaces before it
      row.root = trim(item["root"].is_string() ? item["root"].get<std::string>() : dumpJson(item["root"]));
    MUSTER_CHECK_OK(one.status());
    MUSTER_CHECK_OK(readHalf(item, "out_of_place", row.place, row.halves[0]));
    MUSTER_CHECK_OK(readHalf(item, "in_place", row.place, row.halves[1]));
    if (table.rows.size() <= kMostRows) table.rows.push_back(std::move(row));  // refused later
    return {};
  });
  if (r.has("errors")) r.read("errors", table.errors);
  MUSTER_CHECK_OK(r.status());
  if (!arguments.empty()) table.op = opOf(arguments.front());
  table.library = libraryText(library);
  std::erase(table.errors, "");
  return readOwnVerdict(json, table);
}

Result<ImportedFile> readJson(const Source& source) {
  Table table;
  if (Status status = readDocument(*source.json, table); !status.ok())
    return source.refuse(status.error().where, status.error().message);
  return fileOf(source, table);
}

}  // namespace

const Format kNcclTestsText = {"nccl-tests", isText, readText};
const Format kNcclTestsJson = {"nccl-tests-json", isJson, readJson};

}  // namespace muster::imports
