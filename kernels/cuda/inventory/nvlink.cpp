// SPDX-License-Identifier: Apache-2.0
// The NVLinks of one GPU.
#include "kernels/cuda/inventory/nvlink.h"

#include <algorithm>
#include <climits>

#include "runner/core/text.h"

namespace muster::cuda {
namespace {

/// Adds up counters per link. Absent when no link has any of them; another failure of any one is a failure.
class LinkSums {
 public:
  explicit LinkSums(int links) : sums_(static_cast<size_t>(links)) {}

  void add(size_t link, const Answer<double>& count) {
    if (count.ok()) {
      sums_[link] += count.value;
      known_ = true;
    } else if (!count.absent() && count.code != NVML_ERROR_INVALID_ARGUMENT) {
      failure_ = count.code;
    }
  }

  [[nodiscard]] Answer<NvLinkCount> result() const {
    if (failure_ != NVML_SUCCESS) return {failure_, {}};
    if (!known_) return {NVML_ERROR_NOT_SUPPORTED, {}};
    NvLinkCount errors;
    std::vector<std::string> parts;
    for (size_t link = 0; link < sums_.size(); ++link) {
      errors.total += sums_[link];
      if (sums_[link] > 0)
        parts.push_back("link " + std::to_string(link) + ": " +
                        std::to_string(static_cast<uint64_t>(sums_[link])));
    }
    errors.links = join(parts, ", ");
    return {NVML_SUCCESS, std::move(errors)};
  }

 private:
  std::vector<double> sums_;
  bool known_ = false;
  nvmlReturn_t failure_ = NVML_SUCCESS;
};

Answer<NvLinkCount> errorsByFields(const Nvml& nvml, nvmlDevice_t device, int present,
                                   const std::vector<unsigned>& ids) {
  std::vector<Field> fields;
  for (int link = 0; link < present; ++link)
    for (const unsigned id : ids) fields.push_back({id, static_cast<unsigned>(link)});
  LinkSums sums(present);
  const auto answers = readFields(nvml, device, fields);
  for (size_t i = 0; i < answers.size(); ++i) sums.add(i / ids.size(), answers[i]);
  return sums.result();
}

Answer<NvLinkCount> errorsByCounters(const Nvml& nvml, nvmlDevice_t device, int present, int first,
                                     int last) {
  LinkSums sums(present);
  for (int link = 0; link < present; ++link)
    for (int counter = first; counter <= last; ++counter) {
      const auto count = ask<unsigned long long>(nvml->nvmlDeviceGetNvLinkErrorCounter, device,
                                                 static_cast<unsigned>(link), counter);
      sums.add(static_cast<size_t>(link), {count.code, static_cast<double>(count.value)});
    }
  return sums.result();
}

Answer<double> slowest(const Nvml& nvml, nvmlDevice_t device, const NvLinks& links) {
  std::vector<Field> fields;
  for (int link = 0; link < links.present; ++link)
    if (std::find(links.inactive.begin(), links.inactive.end(), link) == links.inactive.end())
      fields.push_back({NVML_FI_DEV_NVLINK_GET_SPEED, static_cast<unsigned>(link)});
  Answer<double> least{NVML_ERROR_NOT_SUPPORTED, 0};
  for (const auto& speed : readFields(nvml, device, fields))
    if (speed.ok() && (!least.ok() || speed.value < least.value)) least = speed;
  if (!least.ok()) least = readFields(nvml, device, {{NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON}}).front();
  least.value *= 1e6;  // megabytes per second, as nvidia-smi nvlink -s shows them
  return least;
}

}  // namespace

Answer<NvLinks> readNvLinks(const Nvml& nvml, nvmlDevice_t device) {
  const Answer<double> count = readFields(nvml, device, {{NVML_FI_DEV_NVLINK_LINK_COUNT}}).front();
  NvLinks links;
  if (!count.ok() && !count.absent()) return {count.code, links};
  links.present = static_cast<int>(std::clamp(count.value, 0.0, double{NVML_NVLINK_MAX_LINKS}));
  if (!count.ok() || links.present == 0) return {NVML_ERROR_NOT_SUPPORTED, links};
  for (int link = 0; link < links.present; ++link) {
    const auto state = ask<int>(nvml->nvmlDeviceGetNvLinkState, device, static_cast<unsigned>(link));
    if (!state.ok() && !state.absent()) return {state.code, links};
    const bool active = state.ok() && state.value == NVML_FEATURE_ENABLED;
    links.active += active;
    if (!active) links.inactive.push_back(link);
  }
  links.bytesPerSecond =
      links.active > 0 ? slowest(nvml, device, links) : Answer<double>{NVML_ERROR_NOT_SUPPORTED, 0};
  return {NVML_SUCCESS, std::move(links)};
}

Answer<std::vector<int>> readC2cLinksDown(const Nvml& nvml, nvmlDevice_t device) {
  constexpr double kMostLinks = 64;  // a driver may say anything
  const Answer<double> count = readFields(nvml, device, {{NVML_FI_DEV_C2C_LINK_COUNT}}).front();
  if (!count.ok()) return {count.code, {}};
  std::vector<Field> fields;
  for (int link = 0; link < std::clamp(count.value, 0.0, kMostLinks); ++link)
    fields.push_back({NVML_FI_DEV_C2C_LINK_GET_STATUS, static_cast<unsigned>(link)});
  if (fields.empty()) return {NVML_ERROR_NOT_SUPPORTED, {}};
  Answer<std::vector<int>> down{NVML_SUCCESS, {}};
  const auto active = readFields(nvml, device, fields);
  for (size_t link = 0; link < active.size(); ++link) {
    if (!active[link].ok()) return {active[link].code, {}};
    if (active[link].value == 0) down.value.push_back(static_cast<int>(link));
  }
  return down;
}

NvLinkErrors readNvLinkErrors(const Nvml& nvml, nvmlDevice_t device, int present) {
  const auto byFields = [&](const std::vector<unsigned>& ids) {
    return errorsByFields(nvml, device, present, ids);
  };
  NvLinkErrors errors{byFields({NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY}),
                      byFields({NVML_FI_DEV_NVLINK_ERROR_DL_CRC})};
  if (errors.repeated.absent())
    errors.repeated =
        byFields({NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS,
                  NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS});
  if (!errors.repeated.absent()) return errors;
  return {
      errorsByCounters(nvml, device, present, NVML_NVLINK_ERROR_DL_REPLAY, NVML_NVLINK_ERROR_DL_RECOVERY),
      errorsByCounters(nvml, device, present, NVML_NVLINK_ERROR_DL_CRC_FLIT, NVML_NVLINK_ERROR_DL_ECC_DATA)};
}

Answer<double> readNvLinkSentBytes(const Nvml& nvml, nvmlDevice_t device) {
  constexpr double kKibibyte = 1024;
  constexpr unsigned kAllLinks = UINT_MAX;
  const auto answers = readFields(
      nvml, device,
      {{NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, kAllLinks}, {NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, kAllLinks}});
  return answers[0].ok() ? Answer<double>{NVML_SUCCESS, answers[0].value * kKibibyte} : answers[1];
}

}  // namespace muster::cuda
