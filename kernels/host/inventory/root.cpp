// SPDX-License-Identifier: Apache-2.0
// Small bounded reads below a root folder.
#include "kernels/host/inventory/root.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {

namespace {

constexpr size_t kMostEntries = 65536;

Error ioError(const std::string& path, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return {code, errnoText(error), path};
}

}  // namespace

Result<std::string> Root::text(const std::string& path, size_t limit) const {
  const Fd file(open((prefix_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return ioError(path, errno);
  std::string content(std::min<size_t>(limit + 1, 4096), '\0');
  size_t have = 0;
  while (true) {
    const ssize_t got = read(file.get(), content.data() + have, content.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ioError(path, errno);
    if (got == 0) break;
    have += static_cast<size_t>(got);
    if (have > limit)
      return Error{ErrorCode::kProtocol, "is larger than the " + std::to_string(limit) + " bytes it may have",
                   path};
    if (have == content.size()) content.resize(std::min(limit + 1, content.size() * 4));
  }
  content.resize(have);
  return std::string(trim(content));
}

Result<int64_t> Root::integer(const std::string& path) const {
  MUSTER_TRY(const std::string content, text(path, 4096));
  int64_t value = 0;
  const char* end = content.data() + content.size();
  const auto [rest, problem] = std::from_chars(content.data(), end, value);
  if (problem != std::errc{} || rest != end || content.empty())
    return Error{ErrorCode::kProtocol, "holds \"" + printable(content, 40) + "\" where a number is expected",
                 path};
  return value;
}

int64_t Root::integerOr(const std::string& path, int64_t otherwise) const {
  const auto value = integer(path);
  return value.ok() ? *value : otherwise;
}

std::string Root::factOr(const std::string& path, const std::string& otherwise) const {
  const auto content = text(path, 4096);
  return content.ok() && !content->empty() ? printable(*content, 200) : otherwise;
}

bool Root::exists(const std::string& path) const {
  return access((prefix_ + path).c_str(), F_OK) == 0;
}

std::string Root::linkName(const std::string& path) const {
  char target[4096];
  const ssize_t length = readlink((prefix_ + path).c_str(), target, sizeof target);
  if (length <= 0) return "";
  const std::string_view whole(target, static_cast<size_t>(length));
  return printable(whole.substr(whole.rfind('/') + 1), 200);
}

std::vector<std::string> Root::list(const std::string& folder) const {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir((prefix_ + folder).c_str()), closedir);
  std::vector<std::string> names;
  if (!dir) return names;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && names.size() < kMostEntries) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<int> parseCpuList(std::string_view text) {
  std::vector<int> cpus;
  for (const std::string& part : split(text, ',')) {
    int first = -1;
    const char* end = part.data() + part.size();
    auto [rest, problem] = std::from_chars(part.data(), end, first);
    if (problem != std::errc{} || first < 0) continue;
    int last = first;
    if (rest != end && *rest == '-') problem = std::from_chars(rest + 1, end, last).ec;
    if (problem != std::errc{}) continue;
    for (int64_t cpu = first; cpu <= last && cpus.size() < kMostEntries; ++cpu)
      cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::string formatCpuList(const std::vector<int>& cpus) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < cpus.size();) {
    size_t j = i;
    while (j + 1 < cpus.size() && cpus[j + 1] == cpus[j] + 1) ++j;
    parts.push_back(std::to_string(cpus[i]) + (j > i ? "-" + std::to_string(cpus[j]) : ""));
    i = j + 1;
  }
  return join(parts, ",");
}

std::string_view fieldOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    // Keys stand at the line's start; tabs and a colon may follow ("model name\t: AMD EPYC", "nr_throttled
    // 3").
    if (line.starts_with(key)) {
      const size_t value = line.find_first_not_of(" \t:=", key.size());
      if (value == std::string_view::npos) return {};
      if (value > key.size()) return trim(line.substr(value));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

int64_t leadingInteger(std::string_view text, int64_t otherwise) {
  int64_t value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{} ? value : otherwise;
}

}  // namespace muster
