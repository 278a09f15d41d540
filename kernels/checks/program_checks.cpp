// SPDX-License-Identifier: Apache-2.0
// Checks the indices, shapes and sizes that callers pass to a Program.
#include "kernels/checks/program_checks.h"

#include <fmt/format.h>

namespace muster {
namespace {

Status checkCount(const std::string& what, size_t found, int64_t wanted, const Shape& shape) {
  if (static_cast<int64_t>(found) == wanted) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{} takes {} values ({}), not {}", what, wanted, shapeText(shape), found), ""};
}

Status checkInput(const Network& network, Tensor input, size_t count, bool indices) {
  if (input.id < 0 || input.id >= network.tensorCount() || !network.isInput(input))
    return Error{ErrorCode::kUsage, fmt::format("tensor {} is not an input of this network", input.id), ""};
  if ((network.limit(input) > 0) != indices)
    return Error{
        ErrorCode::kUsage,
        fmt::format("input {} takes {}", input.id, indices ? "numbers, not indices" : "indices, not numbers"),
        ""};
  const Shape& shape = network.shape(input);
  return checkCount(fmt::format("input {}", input.id), count, elementsOf(shape), shape);
}

}  // namespace

Status checkParameter(const Network& network, int parameter) {
  const size_t count = network.parameters().size();
  if (parameter >= 0 && static_cast<size_t>(parameter) < count) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("there is no parameter {}; the network has {}", parameter, count), ""};
}

Status checkParameterValues(const Network& network, int parameter, size_t count) {
  MUSTER_CHECK_OK(checkParameter(network, parameter));
  const Parameter& spec = network.parameters()[static_cast<size_t>(parameter)];
  return checkCount(spec.name, count, spec.elements(), spec.shape);
}

Status checkStatistics(const Network& network, int statistics) {
  const size_t count = network.statistics().size();
  if (statistics >= 0 && static_cast<size_t>(statistics) < count) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("there is no batch normalisation {}; the network has {}", statistics, count), ""};
}

Status checkStatisticsValues(const Network& network, int statistics, size_t count) {
  MUSTER_CHECK_OK(checkStatistics(network, statistics));
  const auto& spec = network.statistics()[static_cast<size_t>(statistics)];
  return checkCount(spec.name, count, 2 * spec.channels, {2, spec.channels});
}

Status checkReadable(const Network& network, Tensor tensor, bool held) {
  if (tensor.id >= 0 && tensor.id < network.tensorCount() && network.limit(tensor) == 0 && held) return {};
  return Error{ErrorCode::kUnsupported, fmt::format("tensor {} holds no values that can be read", tensor.id),
               ""};
}

Status checkNumbers(const Network& network, Tensor input, size_t count) {
  return checkInput(network, input, count, false);
}

Status checkIndices(const Network& network, Tensor input, std::span<const int32_t> indices) {
  MUSTER_CHECK_OK(checkInput(network, input, indices.size(), true));
  const int64_t limit = network.limit(input);
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= limit)
      return Error{ErrorCode::kUsage,
                   fmt::format("index {} at position {} of input {} is out of bounds, expected 0 to {}",
                               indices[i], i, input.id, limit - 1),
                   ""};
  return {};
}

std::string layoutName(const std::string& backend, const std::string& description) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bit
  for (char c : description) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{}-{:016x}", backend, hash);
}

}  // namespace muster
