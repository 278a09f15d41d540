// SPDX-License-Identifier: Apache-2.0
// nvbandwidth --json: copies between host and GPUs and between GPUs. The tests of several nodes are refused,
// because their JSON lists the devices of the first process alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

/// A test whose values are a metric of Muster's. The others measure something else: one direction of two, a
/// copy within a GPU counted another way, sums over several GPUs.
struct Known {
  const char* name;
  const char* metric;
  const char* engine;
  bool peers;  ///< a matrix of GPUs; else one row
  bool toRow;  ///< peers: data flows from the column's GPU to the row's
};
constexpr Known kKnown[] = {
    {"host_to_device_memcpy_ce", "memory.host_to_device_bandwidth", "copy_engine", false, false},
    {"host_to_device_memcpy_sm", "memory.host_to_device_bandwidth", "kernel", false, false},
    {"device_to_host_memcpy_ce", "memory.device_to_host_bandwidth", "copy_engine", false, false},
    {"device_to_host_memcpy_sm", "memory.device_to_host_bandwidth", "kernel", false, false},
    {"device_to_device_memcpy_write_ce", "memory.peer_bandwidth", "copy_engine", true, false},
    {"device_to_device_memcpy_write_sm", "memory.peer_bandwidth", "kernel", true, false},
    {"device_to_device_memcpy_read_ce", "memory.peer_bandwidth", "copy_engine", true, true},
    {"device_to_device_memcpy_read_sm", "memory.peer_bandwidth", "kernel", true, true}};

const Known* knownTest(const std::string& name) {
  const auto known =
      std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& one) { return name == one.name; });
  return known == std::end(kKnown) ? nullptr : known;
}

std::string gpu(size_t index) {
  return fmt::format("gpu{}", index);
}

/// "0: NVIDIA H100 80GB HBM3 (00000000:19:00): (node1)"
Status readDevice(const std::string& text, size_t index, const std::string& path,
                  std::set<std::string>& places, ImportedFile& file) {
  const std::string number = fmt::format("{}: ", index);
  const size_t host = text.rfind("): (");
  const size_t address = text.rfind(" (", host);
  if (!text.starts_with(number) || host == std::string::npos || address == std::string::npos ||
      address < number.size() || !text.ends_with(')'))
    return Error{ErrorCode::kUsage, "is no device as nvbandwidth lists it: " + printable(text, 120), path};
  if (!places.insert(text.substr(address)).second)
    return Error{ErrorCode::kUsage, "is a device that the list holds already: " + printable(text, 120), path};
  addOnce(file.deviceNames, text.substr(number.size(), address - number.size()));
  addOnce(file.hosts, text.substr(host + 4, text.size() - host - 5));
  return {};
}

/// A cell: a number in a text, or "N/A".
Result<std::optional<double>> cellOf(const Json& cell, const std::string& path) {
  std::optional<double> value;
  if (cell.is_string()) value = finiteNumber(cell.get<std::string>());
  if (cell.is_number()) value = cell.get<double>();
  if (cell == "N/A") return value;
  if (!value || !std::isfinite(*value) || *value < 0)
    return Error{ErrorCode::kUsage, "is no finite rate: " + printable(dumpJson(cell), 80), path};
  return value;
}

Measurement rateOf(const Known& known, size_t row, size_t column, double rate, const std::string& caseId) {
  Measurement m = valueOf(known.metric, {{"engine", known.engine}}, rate * kGiga, caseId);
  const size_t device = known.peers && !known.toRow ? row : column;
  m.device = m.labels["device"] = gpu(device);
  m.rank = static_cast<int>(device);
  if (known.peers) {
    m.labels["peer"] = gpu(known.toRow ? row : column);
    m.labels["direction"] = "unidirectional";
  } else {
    m.labels["numa"] = "near";  // nvbandwidth places host buffers beside the GPU
  }
  return m;
}

Status readMatrix(const Json& test, const Known& known, const std::string& path, size_t devices,
                  ImportedCase& one, ImportedFile& file) {
  if (devices == 0)
    return Error{ErrorCode::kUsage, "passed, but the file lists no device and has no row of values", path};
  const size_t rows = known.peers ? devices : 1;
  JsonReader r(test, path);
  const Json* matrix = r.array("bandwidth_matrix");
  double said = 0;
  r.read("sum", said);
  MUSTER_CHECK_OK(r.status());
  if (matrix->size() != rows)
    return Error{ErrorCode::kUsage,
                 fmt::format("has {} rows; {} devices need {}", matrix->size(), devices, rows),
                 path + ".bandwidth_matrix"};
  if (file.measurements.size() + rows * devices > kMostValues)
    return Error{ErrorCode::kUsage, fmt::format("with it the file holds more than {} values", kMostValues),
                 path + ".bandwidth_matrix"};
  double sum = 0;
  for (size_t i = 0; i < rows; ++i) {
    const std::string at = fmt::format("{}.bandwidth_matrix[{}]", path, i);
    const Json& row = (*matrix)[i];
    if (!row.is_array() || row.size() != devices)
      return Error{ErrorCode::kUsage, fmt::format("is no row of {} values", devices), at};
    for (size_t j = 0; j < devices; ++j) {
      MUSTER_TRY(const std::optional<double> value, cellOf(row[j], fmt::format("{}[{}]", at, j)));
      sum += value.value_or(0);
      if (known.peers && i == j) continue;
      if (value)
        file.measurements.push_back(rateOf(known, i, j, *value, one.id));
      else if (one.error.empty())
        one.error = known.peers
                        ? fmt::format("no value between {} and {}: they cannot access each other's memory",
                                      gpu(i), gpu(j))
                        : "no value of " + gpu(j);
    }
  }
  if (!std::isfinite(said) || std::abs(said - sum) > 0.01 + 0.001 * sum)
    return Error{ErrorCode::kUsage, fmt::format("is {}; its values add up to {}", said, sum), path + ".sum"};
  return {};
}

Status readTest(const Json& test, const std::string& path, size_t devices, ImportedFile& file) {
  JsonReader r(test, path);
  std::string name, status;
  r.read("name", name);
  r.read("status", status);
  MUSTER_CHECK_OK(r.status());
  if (name.starts_with("multinode_"))
    return Error{
        ErrorCode::kUsage,
        "the JSON of nvbandwidth's multinode tests lists the devices of its first process alone, so no "
        "value can be attributed; use the ring and collective tests of Muster",
        path + ".name"};
  if (status == "Error" || status == "ERROR") ++file.failures;
  const Known* known = knownTest(name);
  if (known == nullptr && (status == "Passed" || status == "Waived")) {
    addNote(file.notes, fmt::format("{} is not imported: Muster has no metric that counts as it does",
                                    printable(name, 80)));
    return {};
  }
  ImportedCase one;
  one.id = printable(name, 80);
  if (known != nullptr) {
    one.labels = {{"engine", known->engine}};
    if (known->peers) one.labels["direction"] = "unidirectional";
    one.metrics = {known->metric};
    for (size_t i = 0; i < devices; ++i) one.devices.push_back(gpu(i));
  }
  if (status == "Passed") {
    MUSTER_CHECK_OK(readMatrix(test, *known, path, devices, one, file));
  } else {
    std::string why;
    r.optional("error", why);
    one.error = fmt::format("nvbandwidth gives its status as \"{}\"{}", printable(status, 40),
                            why.empty() ? "" : ": " + printable(why, 300));
  }
  file.cases.push_back(std::move(one));
  return checkCounts(file.measurements.size(), file.cases.size(), path);
}

/// How many devices a matrix of a known test has: a column for each. nvbandwidth before 0.8 lists no devices,
/// but measures all that it finds in each test. 0: there is no such matrix.
size_t devicesOfMatrices(const Json& root) {
  if (!root.contains("testcases") || !root["testcases"].is_array()) return 0;
  for (const Json& test : root["testcases"]) {
    if (!holds(test, "name") || !test["name"].is_string() || !holds(test, "bandwidth_matrix")) continue;
    const Json& matrix = test["bandwidth_matrix"];
    if (knownTest(test["name"].get<std::string>()) != nullptr && matrix.is_array() && !matrix.empty() &&
        matrix[0].is_array())
      return matrix[0].size();
  }
  return 0;
}

Status readRoot(const Json& root, ImportedFile& file) {
  JsonReader r(root, "nvbandwidth");
  std::string version, driver, error;
  r.read("version", version);
  r.optional("Driver Version", driver);
  if (r.has("error")) r.read("error", error);
  size_t devices = 0;
  std::set<std::string> places;  // address and host of each device
  if (r.has("GPU Device list"))
    r.each("GPU Device list", [&](const Json& item, const std::string& path) -> Status {
      if (!item.is_string() || devices == kMostDevices)
        return Error{ErrorCode::kUsage, "is no device, or one of too many", path};
      return readDevice(item.get<std::string>(), devices++, path, places, file);
    });
  MUSTER_CHECK_OK(r.status());
  if (!r.has("GPU Device list")) {
    devices = devicesOfMatrices(root);
    if (devices > kMostDevices)
      return Error{ErrorCode::kUsage, fmt::format("holds a matrix of more than {} columns", kMostDevices),
                   "nvbandwidth.testcases"};
    if (devices > 0)
      addNote(file.notes,
              fmt::format("the file lists no devices, as of nvbandwidth before 0.8: they are the {} "
                          "columns of its matrices",
                          devices));
  }
  file.ranks = static_cast<int>(devices);
  file.tool = "nvbandwidth " + version + (driver.empty() ? "" : ", driver " + driver);
  if (file.hosts.size() > 1)
    return Error{ErrorCode::kUsage, "names several hosts: the JSON of multinode runs cannot be attributed",
                 "nvbandwidth.GPU Device list"};
  if (r.has("testcases") && !root["testcases"].is_null())
    r.each("testcases",
           [&](const Json& item, const std::string& path) { return readTest(item, path, devices, file); });
  MUSTER_CHECK_OK(r.status());
  if (!error.empty()) {
    ++file.failures;
    file.cases.push_back({"nvbandwidth", {}, {}, {}, "nvbandwidth reported: " + printable(error, 300)});
  } else if (file.cases.empty()) {
    file.cases.push_back({"nvbandwidth", {}, {}, {}, "the file holds no result that Muster judges"});
  }
  return {};
}

bool isNvbandwidth(const Source& source) {
  return source.json && holds(*source.json, "nvbandwidth");
}

Result<ImportedFile> readNvbandwidth(const Source& source) {
  ImportedFile file;
  if (Status status = readRoot((*source.json)["nvbandwidth"], file); !status.ok())
    return source.refuse(status.error().where, status.error().message);
  file.limits = "whether each test ran to its end, and no rate";
  file.verdict = file.failures > 0 ? ToolVerdict::kFailed : ToolVerdict::kPassed;
  file.said = file.failures > 0 ? fmt::format("{} of its tests ended in error", file.failures) : "Passed";
  return file;
}

}  // namespace

const Format kNvbandwidth = {"nvbandwidth", isNvbandwidth, readNvbandwidth};

}  // namespace muster::imports
