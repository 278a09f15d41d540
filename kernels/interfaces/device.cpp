// SPDX-License-Identifier: Apache-2.0
// Names and sizes of element types, DeviceInfo as JSON, and marks and tallies where nothing is queued.
#include "kernels/interfaces/device.h"

#include <array>

#include "runner/core/text.h"

namespace muster {
namespace {

struct DtypeRow {
  Dtype dtype;
  const char* name;
  size_t bits;
};
constexpr std::array kDtypes = {
    DtypeRow{Dtype::kF64, "f64", 64},         DtypeRow{Dtype::kF32, "f32", 32},
    DtypeRow{Dtype::kTf32, "tf32", 32},       DtypeRow{Dtype::kF16, "f16", 16},
    DtypeRow{Dtype::kBf16, "bf16", 16},       DtypeRow{Dtype::kFp8E4m3, "fp8_e4m3", 8},
    DtypeRow{Dtype::kFp8E5m2, "fp8_e5m2", 8}, DtypeRow{Dtype::kI8, "i8", 8},
    DtypeRow{Dtype::kFp4, "fp4", 4},
};

const DtypeRow& row(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)];
}

struct TimeMark : Mark {
  explicit TimeMark(double seconds) : at(seconds) {}
  double at;
};

void readCpus(JsonReader& reader, std::vector<int>& cpus) {
  reader.each("cpus", [&](const Json& item, const std::string& path) -> Status {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 || item.get<int64_t>() > 1 << 20)
      return Error{ErrorCode::kProtocol, "found " + dumpJson(item) + ", expected a processor number", path};
    cpus.push_back(item.get<int>());
    return {};
  });
}

void readPeaks(JsonReader& reader, std::map<std::string, double>& peaks) {
  const Json* object = reader.object("peaks");
  if (object == nullptr) return;
  for (const auto& [name, value] : object->items()) {
    if (!value.is_number())
      return reader.fail("peaks", name + " is " + dumpJson(value) + ", expected a number");
    peaks[name] = value.get<double>();
  }
}

void readFacts(JsonReader& reader, std::map<std::string, std::string>& facts) {
  const Json* object = reader.object("facts");
  if (object == nullptr) return;
  for (const auto& [name, value] : object->items()) {
    if (!value.is_string())
      return reader.fail("facts", name + " is " + dumpJson(value) + ", expected a text");
    facts[name] = value.get<std::string>();
  }
}

}  // namespace

Status Device::countDifferences(const Buffer& a, const Buffer& b, Dtype dtype, Tally& found) {
  MUSTER_TRY(const Mismatch mismatch, compareBits(a, b, dtype));
  static_cast<PlainTally&>(found).add(mismatch);
  return {};
}

Result<std::unique_ptr<Mark>> Device::mark() {
  return std::unique_ptr<Mark>(new TimeMark(now()));
}

Result<double> Device::seconds(const Mark& from, const Mark& to) {
  return static_cast<const TimeMark&>(to).at - static_cast<const TimeMark&>(from).at;
}

const char* dtypeName(Dtype dtype) {
  return row(dtype).name;
}

size_t dtypeBits(Dtype dtype) {
  return row(dtype).bits;
}

Result<Dtype> dtypeFromName(std::string_view name) {
  std::vector<std::string> names;
  for (const DtypeRow& candidate : kDtypes) {
    if (name == candidate.name) return candidate.dtype;
    names.emplace_back(candidate.name);
  }
  return Error{ErrorCode::kUsage,
               "unknown dtype \"" + printable(name, 40) + "\", expected one of " + join(names, ", ") +
                   didYouMean(name, names),
               ""};
}

Json toJson(const DeviceInfo& info) {
  return Json{{"index", info.index},
              {"id", info.id},
              {"kind", info.kind},
              {"name", info.name},
              {"uuid", info.uuid},
              {"serial", info.serial},
              {"pci_id", info.pciId},
              {"pci_address", info.pciAddress},
              {"memory_bytes", info.memoryBytes},
              {"last_level_cache_bytes", info.lastLevelCacheBytes},
              {"numa_node", info.numaNode},
              {"cpus", info.cpus},
              {"peaks", info.peaks},
              {"facts", info.facts}};
}

Result<DeviceInfo> deviceInfoFromJson(const Json& json) {
  DeviceInfo info;
  JsonReader reader(json, "device");
  reader.read("index", info.index);
  reader.read("id", info.id);
  reader.read("kind", info.kind);
  reader.read("name", info.name);
  reader.optional("uuid", info.uuid);
  reader.optional("serial", info.serial);
  reader.optional("pci_id", info.pciId);
  reader.optional("pci_address", info.pciAddress);
  reader.optional("memory_bytes", info.memoryBytes);
  reader.optional("last_level_cache_bytes", info.lastLevelCacheBytes);
  reader.optional("numa_node", info.numaNode);
  if (reader.has("cpus")) readCpus(reader, info.cpus);
  if (reader.has("peaks")) readPeaks(reader, info.peaks);
  if (reader.has("facts")) readFacts(reader, info.facts);
  MUSTER_CHECK_OK(reader.status());
  return info;
}

}  // namespace muster
