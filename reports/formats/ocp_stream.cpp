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

OcpStream::OcpStream(TextLimit& limit) : limit_(limit) {
  write(line(0, "schemaVersion", {{"major", 2}, {"minor", 0}}));
}

std::string OcpStream::line(double at, const char* key, const Json& value) const {
  const Json json = {{key, value}, {"sequenceNumber", sequence_}, {"timestamp", ocpTime(at)}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string OcpStream::line(double at, const std::string* id, const char* kind, const Json& value) const {
  return id == nullptr ? line(at, "testRunArtifact", {{kind, value}})
                       : line(at, "testStepArtifact", {{kind, value}, {"testStepId", *id}});
}

void OcpStream::write(const std::string& line) {
  limit_.charge(line.size());
  text_ += line;
  ++sequence_;
}

void OcpStream::run(double at, const char* kind, const Json& value) {
  write(line(at, nullptr, kind, value));
}

void OcpStream::step(double at, const std::string& id, const char* kind, const Json& value) {
  write(line(at, &id, kind, value));
}

}  // namespace muster
