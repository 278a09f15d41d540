// SPDX-License-Identifier: Apache-2.0
// The lines of an OCP stream.
#pragma once

#include <set>
#include <string>

#include "reports/junit/text_limit.h"
#include "runner/record/record.h"

namespace muster {

/// Numbers the lines; the first one states the version. All text is ASCII: other characters are escaped.
class OcpStream {
 public:
  explicit OcpStream(TextLimit& limit);
  /// An event of the run at `at`, seconds since 1970.
  void run(double at, const char* kind, const Json& value);
  /// An event of one of its steps.
  void step(double at, const std::string& id, const char* kind, const Json& value);
  /// An event of the run, or of a step, that the limit may leave out: then `make` is not called. Returns
  /// whether it is there.
  template <typename F>
  bool add(Weight weight, double at, const std::string* id, const char* kind, F make) {
    const bool isThere = limit_.add(text_, weight, [&] { return line(at, id, kind, make()); });
    sequence_ += isThere ? 1 : 0;
    return isThere;
  }
  [[nodiscard]] TextLimit& limit() { return limit_; }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  [[nodiscard]] std::string line(double at, const std::string* id, const char* kind, const Json& value) const;
  [[nodiscard]] std::string line(double at, const char* key, const Json& value) const;
  void write(const std::string& line);
  TextLimit& limit_;
  size_t sequence_ = 0;
  std::string text_;
};

/// RFC 3339 with milliseconds; of a time that is none, 1970.
std::string ocpTime(double unixSeconds);

/// A stage as a step: its samples, readings, check results, logs and files. `parts` are the ids of the
/// inventory's devices.
void addOcpStage(OcpStream& stream, const Record& record, size_t index, const std::set<std::string>& parts);

}  // namespace muster
