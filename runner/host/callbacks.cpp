// SPDX-License-Identifier: Apache-2.0
// Implements the muster_host functions that plugins call.
#include "runner/host/callbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/host/abi_version.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace {

constexpr size_t kMaxLine = 4096;          // a progress or error text
constexpr size_t kMaxLog = 16384;          // one log text
constexpr int kMaxLogFrames = 10000;       // of one rank
constexpr int kMaxArtifacts = 1000;        // of one rank: each is a line of the record
constexpr uint32_t kMaxLabels = 64;        // of one measurement
constexpr double kProgressPerSecond = 50;  // a plugin may call progress() in its innermost loop
constexpr double kProgressBurst = 200;

/// A plugin's text: NULL is empty, invalid UTF-8 is replaced, and what is longer than `limit` is cut.
std::string textOf(const char* text, size_t limit) {
  if (text == nullptr) return "";
  const size_t length = strnlen(text, limit + 1);
  std::string result = validUtf8(std::string_view(text, std::min(length, limit)));
  if (length > limit) result += " [cut]";
  return result;
}

/// JSON has no non-finite numbers; they travel as texts so that the judge sees the lie.
Json numberFrame(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json numbersFrame(const double* values, uint64_t count) {
  Json numbers = Json::array();
  for (uint64_t i = 0; i < count; ++i) numbers.push_back(numberFrame(values[i]));
  return numbers;
}

const char* levelName(muster_log_level level) {
  switch (level) {
    case MUSTER_LOG_DEBUG:
      return "debug";
    case MUSTER_LOG_WARNING:
      return "warning";
    case MUSTER_LOG_ERROR:
      return "error";
    default:
      return "info";
  }
}

}  // namespace

HostCallbacks::HostCallbacks(const HostRequest& request, FrameWriter& frames,
                             const std::atomic<bool>& cancelled)
    : request_(request), frames_(frames), cancelled_(cancelled), virtualEnd_(request.virtualStart) {
  using Self = HostCallbacks;
  shared_ = sharedStore();
  table_.struct_size = sizeof table_;
  table_.abi_minor = hostAbiMinor();
  table_.context = this;
  table_.measurement = [](void* c, const muster_measurement* m) {
    return static_cast<Self*>(c)->measurement(m);
  };
  table_.progress = [](void* c, double f, const char* t) { return static_cast<Self*>(c)->progress(f, t); };
  table_.log = [](void* c, muster_log_level l, const char* t) {
    return static_cast<Self*>(c)->pluginLog(l, t);
  };
  table_.artifact = [](void* c, const char* n, const char* m, const void* d, uint64_t s) {
    return static_cast<Self*>(c)->artifact(n, m, d, s);
  };
  table_.error = [](void* c, const char* m, const char* r) { static_cast<Self*>(c)->error(m, r); };
  table_.cancelled = [](void* c) { return static_cast<Self*>(c)->cancelled_.load() ? 1 : 0; };
  table_.store_set = [](void* c, const char* k, const void* d, uint64_t s) {
    return static_cast<Self*>(c)->storeSet(k, d, s);
  };
  table_.store_get = [](void* c, const char* k, void* d, uint64_t n, uint64_t* s, double t) {
    return static_cast<Self*>(c)->storeGet(k, d, n, s, t);
  };
  table_.barrier = [](void* c, const char* n, double t) { return static_cast<Self*>(c)->barrier(n, t); };
}

Status HostCallbacks::beginCase(const HostCase& entry) {
  const std::lock_guard lock(mutex_);
  case_ = entry;
  problem_ = {};
  storeProblem_.clear();
  keySpace_ = fmt::format("case{}/", entry.index);
  store_.clear();
  progressTokens_ = kProgressBurst;
  return frames_.beginCase(entry.index);
}

Problem HostCallbacks::takeProblem() {
  const std::lock_guard lock(mutex_);
  Problem problem = std::exchange(problem_, {});
  problem.said = problem.message;
  const std::string store = std::exchange(storeProblem_, {});
  if (problem.message.empty()) {
    problem.message = store;
  } else if (!store.empty() && problem.message.find(store) == std::string::npos) {
    problem.message += " (" + store + ")";
  }
  return problem;
}

double HostCallbacks::virtualEnd() {
  const std::lock_guard lock(mutex_);
  return virtualEnd_;
}

void HostCallbacks::log(muster_log_level level, const std::string& text) {
  // A log line that cannot be written has nowhere else to go; the next frame fails the same way.
  (void)frames_.write({{"type", "log"}, {"level", levelName(level)}, {"text", text}}).ok();
}

muster_status HostCallbacks::refuse(const std::string& what, const Error& why) {
  const std::string text = fmt::format("refused {}: {}", what, why.text());
  log(MUSTER_LOG_ERROR, text);
  const std::lock_guard lock(mutex_);
  if (problem_.refused.empty()) problem_.refused = text;
  return MUSTER_BAD_PARAMETER;
}

double HostCallbacks::timeOf(double given) {
  const std::lock_guard lock(mutex_);
  if (!request_.simulated) return given < 0 ? systemClock().now() : given;
  if (given > virtualEnd_ && std::isfinite(given)) virtualEnd_ = given;
  return given < 0 ? virtualEnd_ : given;
}

Result<Json> HostCallbacks::measurementFrame(const muster_measurement& m) {
  constexpr size_t kFirstSize = offsetof(muster_measurement, times);  // of ABI minor 0
  if (m.struct_size < kFirstSize)
    return badCall(fmt::format("struct_size is {}, expected at least {}", m.struct_size, kFirstSize));
  if (m.metric == nullptr || m.unit == nullptr) return badCall("metric or unit is NULL");
  if (m.label_count > kMaxLabels || (m.label_count > 0 && m.labels == nullptr))
    return badCall(fmt::format("{} labels at NULL, or more than {}", m.label_count, kMaxLabels));
  if (m.sample_count > 0 && m.samples == nullptr)
    return badCall("samples is NULL, but sample_count is not 0");
  if (m.sample_count > 0 && m.text != nullptr) return badCall("it has both samples and a text");
  if (m.sample_count > kMaxFrameBytes / 2)
    return badCall(
        fmt::format("{} samples do not fit a frame of {} bytes; send fewer", m.sample_count, kMaxFrameBytes));
  Json labels = Json::object();
  for (uint32_t i = 0; i < m.label_count; ++i) {
    if (m.labels[i].key == nullptr || m.labels[i].value == nullptr)
      return badCall("a label's key or value is NULL");
    labels[textOf(m.labels[i].key, kMaxLine)] = textOf(m.labels[i].value, kMaxLine);
  }
  Json frame{{"type", "measurement"},
             {"metric", textOf(m.metric, kMaxLine)},
             {"unit", textOf(m.unit, kMaxLine)},
             {"labels", std::move(labels)}};
  if (m.text != nullptr) {
    frame["text"] = textOf(m.text, kMaxFrameBytes);
  } else {
    frame["samples"] = numbersFrame(m.samples, m.sample_count);
    if (m.struct_size >= sizeof m && m.times != nullptr)
      frame["times"] = numbersFrame(m.times, m.sample_count);
  }
  frame["time"] = numberFrame(timeOf(m.time));
  return frame;
}

muster_status HostCallbacks::measurement(const muster_measurement* measurement) {
  if (measurement == nullptr) return refuse("a measurement", badCall("it is NULL"));
  Result<Json> frame = measurementFrame(*measurement);
  const Status status = frame.ok() ? frames_.writeInCase(std::move(*frame)) : Status(frame.error());
  if (status.ok()) return MUSTER_OK;
  return refuse("measurement " + printable(textOf(measurement->metric, kMaxLine), 100), status.error());
}

bool HostCallbacks::progressAllowed() {
  const std::lock_guard lock(mutex_);
  const double now = systemClock().now();
  progressTokens_ = std::min(kProgressBurst, progressTokens_ + (now - progressAt_) * kProgressPerSecond);
  progressAt_ = now;
  if (progressTokens_ < 1) return false;
  progressTokens_ -= 1;
  return true;
}

muster_status HostCallbacks::progress(double fraction, const char* text) {
  if (!progressAllowed()) return MUSTER_OK;
  Json share = nullptr;
  if (fraction >= 0) share = std::min(fraction, 1.0);
  const Status status =
      frames_.writeAnywhere({{"type", "progress"}, {"fraction", share}, {"text", textOf(text, kMaxLine)}});
  return status.ok() ? MUSTER_OK : MUSTER_ERROR;
}

muster_status HostCallbacks::pluginLog(muster_log_level level, const char* text) {
  {
    const std::lock_guard lock(mutex_);
    if (logged_ > kMaxLogFrames) return MUSTER_OK;
    if (++logged_ > kMaxLogFrames) level = MUSTER_LOG_WARNING;
    if (logged_ > kMaxLogFrames) text = "the plugin has logged 10000 lines; further lines are dropped";
  }
  log(level, textOf(text, kMaxLog));
  return MUSTER_OK;
}

Result<std::string> HostCallbacks::keepArtifact(const char* name, const void* data, uint64_t size) {
  const std::string plain = textOf(name, kMaxLine);
  if (!isPlainName(plain))
    return badCall(
        "its name is not a plain file name; expected 1 to 64 letters, digits, '_', '-' and '.', without "
        "folders");
  if (data == nullptr && size > 0) return badCall("its data is NULL");
  if (request_.artifactDir.empty()) return badCall("the request names no artifact_dir");
  MUSTER_CHECK_OK(makeOwnSubfolder(request_.artifactDir, "stage's artifacts folder"));
  std::error_code failure;
  // The plugin may have changed the umask: its runner must be able to read what it kept.
  constexpr auto kAdd = std::filesystem::perm_options::add;
  std::filesystem::permissions(request_.artifactDir, std::filesystem::perms::owner_all, kAdd, failure);
  std::filesystem::path path;
  {
    const std::lock_guard lock(mutex_);
    if (artifacts_ == kMaxArtifacts)
      return badCall(
          fmt::format("the rank has kept {} artifacts already; put more into fewer files", kMaxArtifacts));
    ++artifacts_;
    path = request_.artifactDir / fmt::format("rank{}.case{}.attempt{}.repeat{}.{}", request_.rank,
                                              case_.index, case_.attempt, case_.repeat, plain);
  }
  MUSTER_CHECK_OK(
      writeFileAtomically(path, std::string_view(static_cast<const char*>(data), size), Durable::kNo));
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
                               kAdd, failure);
  return path.string();
}

muster_status HostCallbacks::artifact(const char* name, const char* mediaType, const void* data,
                                      uint64_t size) {
  const std::string shown = "artifact " + printable(textOf(name, kMaxLine), 100);
  const Result<std::string> path = keepArtifact(name, data, size);
  if (!path.ok()) return refuse(shown, path.error());
  const Status status = frames_.writeInCase({{"type", "artifact"},
                                             {"name", textOf(name, kMaxLine)},
                                             {"media_type", textOf(mediaType, kMaxLine)},
                                             {"path", *path},
                                             {"bytes", size}});
  return status.ok() ? MUSTER_OK : refuse(shown, status.error());
}

void HostCallbacks::error(const char* message, const char* remedy) {
  const std::lock_guard lock(mutex_);
  problem_.message = textOf(message, kMaxLine);
  problem_.remedy = textOf(remedy, kMaxLine);
}

}  // namespace muster
