// SPDX-License-Identifier: Apache-2.0
// C++ comfort over the plugin ABI: write a Session, get the C tables. No exception crosses the border.
#pragma once

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/abi/muster_plugin.h"
#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster::sdk {

/// The host's callbacks for one session.
class Host {
 public:
  explicit Host(const muster_host* host) : host_(host) {}

  using LabelList = std::vector<std::pair<std::string, std::string>>;

  /// Reports samples in a base unit.
  Status measurement(const std::string& metric, const std::string& unit, const std::vector<double>& samples,
                     const LabelList& labels = {}, double time = -1) const {
    return send(metric, unit, labels, samples, nullptr, time, nullptr);
  }
  /// Reports samples of the same length as `times`, which has one element or more.
  Status series(const std::string& metric, const std::string& unit, const std::vector<double>& samples,
                const std::vector<double>& times, const LabelList& labels) const {
    return send(metric, unit, labels, samples, nullptr, times.back(), times.data());
  }
  /// Reports a text value.
  Status fact(const std::string& metric, const std::string& value, const LabelList& labels = {}) const {
    return send(metric, "text", labels, {}, value.c_str(), -1, nullptr);
  }
  void progress(double fraction, const std::string& text) const {
    host_->progress(host_->context, fraction, text.c_str());
  }
  void log(muster_log_level level, const std::string& text) const {
    host_->log(host_->context, level, text.c_str());
  }
  Status artifact(const std::string& name, const std::string& mediaType, std::string_view data) const {
    if (host_->artifact(host_->context, name.c_str(), mediaType.c_str(), data.data(), data.size()) !=
        MUSTER_OK)
      return Error{ErrorCode::kIo, "the host could not keep artifact " + name, ""};
    return {};
  }
  [[nodiscard]] bool cancelled() const { return host_->cancelled(host_->context) != 0; }
  [[nodiscard]] const muster_host* raw() const { return host_; }

 private:
  Status send(const std::string& metric, const std::string& unit, const LabelList& labels,
              const std::vector<double>& samples, const char* text, double time, const double* times) const {
    std::vector<muster_label> raw;
    raw.reserve(labels.size());
    for (const auto& [key, value] : labels) raw.push_back({key.c_str(), value.c_str()});
    muster_measurement m{};
    m.struct_size = sizeof m;
    m.label_count = static_cast<uint32_t>(raw.size());
    m.metric = metric.c_str();
    m.unit = unit.c_str();
    m.labels = raw.data();
    m.samples = samples.data();
    m.sample_count = samples.size();
    m.text = text;
    m.time = time;
    m.times = times;
    if (host_->measurement(host_->context, &m) != MUSTER_OK)
      return Error{ErrorCode::kProtocol, "the host refused measurement " + metric, ""};
    return {};
  }
  const muster_host* host_;
};

/// One rank's session of one test. `run` may return kUnsupported (the case is skipped) or any other error.
class Session {
 public:
  virtual ~Session() = default;
  virtual Status run(const Json& caseJson) = 0;
};

/// Makes a session; context is the context_json of the ABI.
using OpenSession = Result<std::unique_ptr<Session>> (*)(const Host& host, const Json& context);

/// Code and text of a failure as the ABI passes them. An Error says the next step in its text, so there is no
/// remedy beside it.
inline muster_status report(const muster_host* host, const Error& error) {
  host->error(host->context, error.text().c_str(), nullptr);
  return error.code == ErrorCode::kUnsupported ? MUSTER_UNSUPPORTED
         : error.code == ErrorCode::kUsage     ? MUSTER_BAD_PARAMETER
         : error.code == ErrorCode::kPeer      ? MUSTER_PEER_FAILED
                                               : MUSTER_ERROR;
}

/// The C functions behind MUSTER_DEFINE_PLUGIN.
template <OpenSession kOpen>
struct Border {
  struct State {
    const muster_host* host;
    std::unique_ptr<Session> session;
  };
  static muster_status open(const muster_host* host, const char* contextJson, void** out) noexcept {
    return guarded(host, [&]() -> Status {
      MUSTER_TRY(Json context, parseJson(contextJson));
      MUSTER_TRY(auto session, kOpen(Host(host), context));
      *out = new State{host, std::move(session)};
      return {};
    });
  }
  static muster_status run(void* state, const char* caseJson) noexcept {
    auto* self = static_cast<State*>(state);
    return guarded(self->host, [&]() -> Status {
      MUSTER_TRY(Json json, parseJson(caseJson));
      return self->session->run(json);
    });
  }
  static void close(void* state) noexcept {
    auto* self = static_cast<State*>(state);
    guarded(self->host, [&]() -> Status {
      delete self;
      return {};
    });
  }

 private:
  template <typename F>
  static muster_status guarded(const muster_host* host, F work) noexcept {
    try {
      Status status = work();
      if (status.ok()) return MUSTER_OK;
      if (host->cancelled(host->context) != 0) return MUSTER_CANCELLED;
      return report(host, status.error());
    } catch (const std::exception& e) {
      return report(host,
                    Error{ErrorCode::kInternal, std::string("exception in the plugin: ") + e.what(), ""});
    } catch (...) {
      return report(host, Error{ErrorCode::kInternal, "unknown exception in the plugin", ""});
    }
  }
};

}  // namespace muster::sdk

/// Exports a plugin: its name and version, the text of describe(), the function that opens a session, and, if
/// there are any, its flags.
#define MUSTER_DEFINE_PLUGIN(pluginName, pluginVersion, describeText, openSession, ...)   \
  extern "C" MUSTER_EXPORT const muster_plugin_info muster_plugin = {                     \
      MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info),   MUSTER_ABI_MAJOR,                \
      MUSTER_ABI_MINOR,    0u __VA_OPT__(|) __VA_ARGS__, pluginName,                      \
      pluginVersion};                                                                     \
  extern "C" MUSTER_EXPORT const muster_plugin_ops* muster_plugin_entry(uint32_t) {       \
    static const muster_plugin_ops ops = {sizeof(muster_plugin_ops),                      \
                                          MUSTER_ABI_MINOR,                               \
                                          [] {                                            \
                                            static const std::string text = describeText; \
                                            return text.c_str();                          \
                                          },                                              \
                                          &muster::sdk::Border<openSession>::open,        \
                                          &muster::sdk::Border<openSession>::run,         \
                                          &muster::sdk::Border<openSession>::close};      \
    return &ops;                                                                          \
  }
