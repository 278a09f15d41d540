// SPDX-License-Identifier: Apache-2.0
// What goes into a program and comes out of it: inputs, parameters, gradients, in the shapes of the network.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "kernels/checks/program_checks.h"
#include "kernels/host/nn/program.h"

namespace muster::host {
Status HostProgram::writeParameter(int parameter, std::span<const float> values) {
  MUSTER_CHECK_OK(checkParameterValues(network_, parameter, values.size()));
  const Parameter& spec = network_.parameters()[static_cast<size_t>(parameter)];
  return guarded("reorder a parameter", [&]() -> Status {
    reorder(engine_, plain(spec.shape), values.data(), plan_.places[static_cast<size_t>(parameter)].desc,
            plan_.parameter(parameter));
    return {};
  });
}

Result<std::vector<float>> HostProgram::readPlain(const memory::desc& desc, const void* data,
                                                  const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(elementsOf(shape)));
  MUSTER_CHECK_OK(guarded("reorder a tensor", [&]() -> Status {
    reorder(engine_, desc, data, plain(shape), values.data());
    return {};
  }));
  return values;
}

Result<std::vector<float>> HostProgram::readParameter(int parameter) {
  MUSTER_CHECK_OK(checkParameter(network_, parameter));
  const auto index = static_cast<size_t>(parameter);
  return readPlain(plan_.places[index].desc, plan_.parameter(parameter), network_.parameters()[index].shape);
}

Result<std::vector<float>> HostProgram::readGradient(int parameter) {
  MUSTER_CHECK_OK(checkParameter(network_, parameter));
  const auto index = static_cast<size_t>(parameter);
  return readPlain(plan_.places[index].desc, plan_.gradient(parameter), network_.parameters()[index].shape);
}

Result<std::vector<float>> HostProgram::readStatistics(int statistics) {
  MUSTER_CHECK_OK(checkStatistics(network_, statistics));
  const auto index = static_cast<size_t>(statistics);
  const int64_t channels = network_.statistics()[index].channels;
  const StatisticsPlace& place = plan_.statistics[index];
  std::vector<float> values(place.mean, place.mean + channels);
  values.insert(values.end(), place.variance, place.variance + channels);
  return values;
}

Status HostProgram::writeStatistics(int statistics, std::span<const float> meanAndVariance) {
  MUSTER_CHECK_OK(checkStatisticsValues(network_, statistics, meanAndVariance.size()));
  const auto index = static_cast<size_t>(statistics);
  const int64_t channels = network_.statistics()[index].channels;
  std::copy_n(meanAndVariance.begin(), channels, plan_.statistics[index].mean);
  std::copy_n(meanAndVariance.begin() + channels, channels, plan_.statistics[index].variance);
  return {};
}

Result<std::vector<float>> HostProgram::readTensor(Tensor tensor) {
  const bool known = tensor.id >= 0 && tensor.id < network_.tensorCount();
  MUSTER_CHECK_OK(checkReadable(network_, tensor, known && plan_.of(tensor).data != nullptr));
  return readPlain(plan_.of(tensor).desc, plan_.of(tensor).data, network_.shape(tensor));
}

Status HostProgram::writeInput(Tensor input, std::span<const float> images) {
  MUSTER_CHECK_OK(checkNumbers(network_, input, images.size()));
  const auto count = static_cast<int64_t>(images.size());
  plan_.loops.rowsFromF32(images.data(), plan_.of(input).data, count, {1, count});
  return {};
}

Status HostProgram::writeInput(Tensor input, std::span<const int32_t> indices) {
  MUSTER_CHECK_OK(checkIndices(network_, input, indices));
  std::copy(indices.begin(), indices.end(), static_cast<int32_t*>(plan_.of(input).data));
  return {};
}

ElementRange HostProgram::range(int parameter) const {
  const ParameterPlace& place = plan_.places[static_cast<size_t>(parameter)];
  return {place.first, place.count};
}

std::string HostProgram::layout() const {
  std::string text;
  for (size_t i = 0; i < plan_.places.size(); ++i)
    text += fmt::format("{} {} {};", network_.parameters()[i].name, plan_.places[i].first,
                        layoutText(plan_.places[i].desc));
  return layoutName("host", text);
}

uint64_t HostProgram::memoryBytes() const {
  uint64_t bytes = storage_.bytes() + parameters_->bytes() + gradients_->bytes();
  for (const auto* buffer : {moments_.get(), squares_.get()})
    if (buffer != nullptr) bytes += buffer->bytes();
  return bytes;
}

std::string HostProgram::implementation() const {
  const dnnl_version_t* v = dnnl_version();
  std::set<std::string> isas;  // "jit_1x1:avx512_core_bf16" is a kernel of that instruction set
  for (const std::string& kernel : plan_.kernels) isas.insert(kernel.substr(kernel.find(':') + 1));
  return fmt::format("onednn {}.{}.{} {} {}, {} loops, {} thread{}", v->major, v->minor, v->patch,
                     plan_.type == memory::data_type::bf16 ? "bf16" : "f32", fmt::join(isas, "+"),
                     plan_.loops.name, engine_.threads, engine_.threads == 1 ? "" : "s");
}

}  // namespace muster::host
