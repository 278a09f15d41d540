// SPDX-License-Identifier: Apache-2.0
// What goes into a program and comes out of it: inputs, parameters, gradients, in the shapes of the network.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/checks/program_checks.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/dnn/program.h"
#include "kernels/cuda/dnn/token_order.h"

namespace muster::cuda {
namespace {

template <typename T>
std::vector<float> plain(const std::vector<T>& kept, const Value& value, const Shape& shape) {
  const bool image = value.image.n > 0;
  std::vector<float> values(static_cast<size_t>(elementsOf(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    values[i] = toFloat(kept[image ? static_cast<size_t>(nhwcOf(value.image, index)) : i]);
  }
  return values;
}

}  // namespace

Status CudaProgram::copyToDevice(void* to, const void* from, uint64_t bytes) {
  MUSTER_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, engine_->stream));
  MUSTER_CUDA(cudaStreamSynchronize(engine_->stream));  // the caller's memory may go
  return {};
}

Status CudaProgram::copyFromDevice(void* to, const void* from, uint64_t bytes) {
  MUSTER_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, engine_->stream));
  MUSTER_CUDA(cudaStreamSynchronize(engine_->stream));
  return {};
}

Status CudaProgram::writeParameter(int parameter, std::span<const float> values) {
  MUSTER_CHECK_OK(checkParameterValues(network_, parameter, values.size()));
  const ParameterPlace& place = plan_.places[static_cast<size_t>(parameter)];
  std::vector<float> kept(place.count);
  for (size_t i = 0; i < values.size(); ++i)
    kept[place.filter.k > 0 ? static_cast<size_t>(krscOf(place.filter, static_cast<int64_t>(i))) : i] =
        values[i];
  MUSTER_CHECK_OK(copyToDevice(plan_.parameter(parameter), kept.data(), kept.size() * sizeof(float)));
  if (engine_->element != Element::kF32)
    MUSTER_CUDA(castToLow(engine_->element, plan_.parameter(parameter), plan_.weight(parameter),
                          static_cast<int64_t>(place.count), engine_->stream));
  return {};
}

Result<std::vector<float>> CudaProgram::readFlat(const float* flat, int parameter) {
  MUSTER_CHECK_OK(checkParameter(network_, parameter));
  const ParameterPlace& place = plan_.places[static_cast<size_t>(parameter)];
  std::vector<float> kept(place.count);
  MUSTER_CHECK_OK(copyFromDevice(kept.data(), flat + place.first, kept.size() * sizeof(float)));
  const int64_t count = network_.parameters()[static_cast<size_t>(parameter)].elements();
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        kept[place.filter.k > 0 ? static_cast<size_t>(krscOf(place.filter, static_cast<int64_t>(i))) : i];
  return values;
}

Result<std::vector<float>> CudaProgram::readParameter(int parameter) {
  return readFlat(plan_.parameters, parameter);
}
Result<std::vector<float>> CudaProgram::readGradient(int parameter) {
  return readFlat(plan_.gradients, parameter);
}

Result<std::vector<float>> CudaProgram::readStatistics(int statistics) {
  MUSTER_CHECK_OK(checkStatistics(network_, statistics));
  const auto index = static_cast<size_t>(statistics);
  const auto channels = static_cast<size_t>(network_.statistics()[index].channels);
  std::vector<float> values(2 * channels);
  const uint64_t bytes = channels * sizeof(float);
  MUSTER_CHECK_OK(copyFromDevice(values.data(), plan_.statistics[index].mean, bytes));
  MUSTER_CHECK_OK(copyFromDevice(values.data() + channels, plan_.statistics[index].variance, bytes));
  return values;
}

Status CudaProgram::writeStatistics(int statistics, std::span<const float> meanAndVariance) {
  MUSTER_CHECK_OK(checkStatisticsValues(network_, statistics, meanAndVariance.size()));
  const auto index = static_cast<size_t>(statistics);
  const int64_t channels = network_.statistics()[index].channels;
  const uint64_t bytes = static_cast<uint64_t>(channels) * sizeof(float);
  MUSTER_CHECK_OK(copyToDevice(plan_.statistics[index].mean, meanAndVariance.data(), bytes));
  return copyToDevice(plan_.statistics[index].variance, meanAndVariance.data() + channels, bytes);
}

Result<std::vector<float>> CudaProgram::readTensor(Tensor tensor) {
  const bool known = tensor.id >= 0 && tensor.id < network_.tensorCount();
  MUSTER_CHECK_OK(checkReadable(network_, tensor, known && plan_.of(tensor).data != nullptr));
  const Value& value = plan_.of(tensor);
  const Shape& shape = network_.shape(tensor);
  const auto read = [&](auto type) -> Result<std::vector<float>> {
    std::vector<decltype(type)> kept(static_cast<size_t>(value.elements));
    MUSTER_CHECK_OK(copyFromDevice(kept.data(), value.data, kept.size() * sizeof(type)));
    return plain(kept, value, shape);
  };
  if (engine_->element == Element::kF16) return read(F16{});
  return engine_->element == Element::kBf16 ? read(Bf16{}) : read(float{});
}

Status CudaProgram::writeInput(Tensor input, std::span<const float> images) {
  MUSTER_CHECK_OK(checkNumbers(network_, input, images.size()));
  float* staging = staging_[static_cast<size_t>(input.id)];
  MUSTER_CHECK_OK(copyToDevice(staging, images.data(), images.size_bytes()));
  const Value& value = plan_.of(input);
  MUSTER_CUDA(imagesToNhwc(engine_->element, staging, value.data, value.image, engine_->stream));
  return {};
}

Status CudaProgram::writeInput(Tensor input, std::span<const int32_t> indices) {
  MUSTER_CHECK_OK(checkIndices(network_, input, indices));
  for (const TokenOrder& order : plan_.tokens)
    if (order.tensor == input.id) MUSTER_CHECK_OK(writeTokenOrder(order, indices));
  return copyToDevice(plan_.of(input).data, indices.data(), indices.size_bytes());
}

Status CudaProgram::writeTokenOrder(const TokenOrder& order, std::span<const int32_t> tokens) {
  const SortedTokens sorted = sortTokens(tokens, order.rows);
  MUSTER_CHECK_OK(copyToDevice(order.order, sorted.order.data(), sorted.order.size() * sizeof(int32_t)));
  return copyToDevice(order.starts, sorted.starts.data(), sorted.starts.size() * sizeof(int32_t));
}

Result<std::vector<double>> CudaProgram::readSums() {
  if (state_ == State::kNew) return Error{ErrorCode::kUsage, "there is no loss before a forward pass", ""};
  std::vector<double> sums(2);
  MUSTER_CHECK_OK(copyFromDevice(sums.data(), loss_->sums(), 2 * sizeof(double)));
  return sums;
}

Result<double> CudaProgram::loss() {
  MUSTER_TRY(std::vector<double> sums, readSums());
  return sums[0] / static_cast<double>(loss_->rows());
}

Result<int64_t> CudaProgram::correct() {
  MUSTER_TRY(std::vector<double> sums, readSums());
  return static_cast<int64_t>(sums[1]);
}

ElementRange CudaProgram::range(int parameter) const {
  const ParameterPlace& place = plan_.places[static_cast<size_t>(parameter)];
  return {place.first, place.count};
}

std::string CudaProgram::layout() const {
  std::string text;
  for (size_t i = 0; i < plan_.places.size(); ++i) {
    const ParameterPlace& place = plan_.places[i];
    text += fmt::format("{} {} {} {}x{};", network_.parameters()[i].name, place.first, place.count,
                        place.filter.paddedK, place.filter.paddedC);
  }
  return layoutName("cuda", text);
}

uint64_t CudaProgram::memoryBytes() const {
  uint64_t bytes = storage_.bytes();
  for (const Buffer* buffer : {parameters_.get(), gradients_.get(), low_.get(), moments_.get(),
                               squares_.get(), decays_.get(), scalars_.get()})
    if (buffer != nullptr) bytes += buffer->bytes();
  return bytes;
}

std::string CudaProgram::implementation() const {
  std::string text = libraryVersions() + ", " + dtypeName(engine_->dtype);
  std::set<std::string> methods;
  for (const auto& op : ops_)
    for (std::string& method : op->methods()) methods.insert(std::move(method));
  for (const std::string& method : methods) text += ", " + method;
  const std::string* reason = &training_.reason();
  for (const Segment& segment : segments_)
    if (reason->empty()) reason = &segment.replayed.reason();
  if (!reason->empty()) return text + ", no CUDA graph (" + *reason + ")";
  return text + ", CUDA graphs of the steps after the first";
}

}  // namespace muster::cuda
