// SPDX-License-Identifier: Apache-2.0
// Packs and unpacks the values of a run.
#include "reports/history/store/packed_figures.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace muster::history {
namespace {

constexpr int kVarintBits = 7;

void putVarint(std::string& out, uint64_t value) {
  for (; value >= 1U << kVarintBits; value >>= kVarintBits)
    out.push_back(static_cast<char>(value | 1U << kVarintBits));
  out.push_back(static_cast<char>(value));
}

bool takeVarint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += kVarintBits) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) return true;
  }
  return false;
}

/// Small numbers of either sign become small ones without.
uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1U) ^ static_cast<uint64_t>(value >> 63);
}

int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>((value >> 1U) ^ (~(value & 1U) + 1));
}

template <typename T>
void putNumber(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

std::string packColumn(const std::vector<FigureValues>& values, double FigureValues::*field) {
  bool exact = true;
  for (const FigureValues& value : values)
    exact = exact && static_cast<double>(static_cast<float>(value.*field)) == value.*field;
  std::string out;
  out.reserve(values.size() * (exact ? sizeof(float) : sizeof(double)));
  for (const FigureValues& value : values) {
    if (exact)
      putNumber(out, static_cast<float>(value.*field));
    else
      putNumber(out, value.*field);
  }
  return out;
}

template <typename T>
void takeNumbers(std::string_view column, std::vector<double>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, column.data() + i * sizeof value, sizeof value);
    out[i] = static_cast<double>(value);
  }
}

}  // namespace

Error damagedFigures(const std::string& what) {
  return {
      ErrorCode::kProtocol,
      "history: " + what +
          " of a run are damaged; restore a backup, or give another file with --db and add the runs again",
      ""};
}

PackedFigures packFigures(const std::vector<FigurePlace>& places, const std::vector<FigureValues>& values) {
  PackedFigures packed;
  int64_t key = 0;
  for (const FigurePlace& place : places) {
    putVarint(packed.layout, zigzag(place.key - key));
    putVarint(packed.layout, static_cast<uint64_t>(place.device + 1));
    key = place.key;
  }
  packed.medians = packColumn(values, &FigureValues::median);
  packed.cvs = packColumn(values, &FigureValues::cv);
  for (size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    while (end < values.size() && values[end].n == values[begin].n) ++end;
    putVarint(packed.counts, static_cast<uint64_t>(values[begin].n));
    putVarint(packed.counts, end - begin);
  }
  return packed;
}

Result<std::vector<FigurePlace>> unpackLayout(std::string_view layout, size_t devices) {
  std::vector<FigurePlace> places;
  int64_t key = 0;
  while (!layout.empty()) {
    uint64_t step = 0, device = 0;
    if (!takeVarint(layout, step) || !takeVarint(layout, device) || device > devices)
      return damagedFigures("the figures");
    key = static_cast<int64_t>(static_cast<uint64_t>(key) + static_cast<uint64_t>(unzigzag(step)));
    places.push_back({key, static_cast<int>(device) - 1});
  }
  return places;
}

Status unpackValues(std::string_view column, size_t count, std::vector<double>& out) {
  out.resize(count);
  if (column.size() == count * sizeof(float))
    takeNumbers<float>(column, out);
  else if (column.size() == count * sizeof(double))
    takeNumbers<double>(column, out);
  else
    return damagedFigures("the values");
  return std::all_of(out.begin(), out.end(), [](double value) { return std::isfinite(value); })
             ? Status()
             : damagedFigures("the values");
}

Result<std::vector<int>> unpackCounts(std::string_view column, size_t count) {
  std::vector<int> out;
  out.reserve(count);
  while (!column.empty()) {
    uint64_t n = 0, times = 0;
    if (!takeVarint(column, n) || !takeVarint(column, times) || times > count - out.size() ||
        n > static_cast<uint64_t>(INT32_MAX))
      return damagedFigures("the numbers of samples");
    out.insert(out.end(), times, static_cast<int>(n));
  }
  if (out.size() != count) return damagedFigures("the numbers of samples");
  return out;
}

}  // namespace muster::history
