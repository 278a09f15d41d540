// SPDX-License-Identifier: Apache-2.0
// Shows what a verification found.
#include "runner/app/attest/verification.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kMostLines = 20;  ///< of one check and state
constexpr size_t kLongestLine = 400;

void show(const char* state, const char* check, const std::vector<std::string>& lines, std::string& out) {
  for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    out += fmt::format(" {:<8} {:<10} {}\n", state, check, printable(lines[i], kLongestLine));
  if (lines.size() > kMostLines)
    out += fmt::format(" {:<8} {:<10} and {} more\n", state, check, lines.size() - kMostLines);
}

}  // namespace

bool Verification::isRefuted() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const Lines& lines) { return !lines.refuted.empty(); });
}

bool Verification::isOpen() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const Lines& lines) { return !lines.open.empty(); });
}

std::vector<std::string> Verification::refutations() const {
  std::vector<std::string> all;
  for (const Lines& lines : lines_) all.insert(all.end(), lines.refuted.begin(), lines.refuted.end());
  return all;
}

std::string Verification::text() const {
  std::string out;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const char* name = namesOf(VerifyCheck{})[i];
    show("REFUTED", name, lines_[i].refuted, out);
    show("OPEN", name, lines_[i].open, out);
    show("ok", name, lines_[i].told, out);
  }
  return out;
}

Json Verification::json() const {
  Json checks = Json::object();
  for (size_t i = 0; i < lines_.size(); ++i)
    checks[namesOf(VerifyCheck{})[i]] = {
        {"refuted", lines_[i].refuted}, {"open", lines_[i].open}, {"confirmed", lines_[i].told}};
  return checks;
}

Status Verification::add(const Json& checks) {
  for (size_t i = 0; i < lines_.size(); ++i) {
    const char* name = namesOf(VerifyCheck{})[i];
    JsonReader all(checks, "checks");
    const Json* check = all.object(name);
    MUSTER_CHECK_OK(all.status());
    JsonReader reader(*check, name);
    const auto append = [&](const char* state, std::vector<std::string>& lines) {
      std::vector<std::string> more;
      reader.read(state, more);
      lines.insert(lines.end(), more.begin(), more.end());
    };
    append("refuted", lines_[i].refuted);
    append("open", lines_[i].open);
    append("confirmed", lines_[i].told);
    MUSTER_CHECK_OK(reader.status());
  }
  return {};
}

}  // namespace muster
