// SPDX-License-Identifier: Apache-2.0
// Writes the lines of an OCP stream.
#include "reports/formats/ocp_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/clock.h"

namespace muster {

std::string ocpTime(double unixSeconds) {
  const double whole = std::floor(unixSeconds);
  std::string text = formatUtc(whole);
  if (text.empty() || text.back() != 'Z') return "1970-01-01T00:00:00.000Z";
  text.pop_back();
  const int thousandths = std::min(999, static_cast<int>((unixSeconds - whole) * 1000));
  return fmt::format("{}.{:03}Z", text, thousandths);
}

OcpStream::OcpStream() {
  line(0, "schemaVersion", {{"major", 2}, {"minor", 0}});
}

void OcpStream::line(double at, const char* key, const Json& value) {
  const Json json = {{key, value}, {"sequenceNumber", sequence_++}, {"timestamp", ocpTime(at)}};
  text_ += json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

void OcpStream::run(double at, const char* kind, const Json& value) {
  line(at, "testRunArtifact", {{kind, value}});
}

void OcpStream::step(double at, const std::string& id, const char* kind, const Json& value) {
  line(at, "testStepArtifact", {{kind, value}, {"testStepId", id}});
}

}  // namespace muster
