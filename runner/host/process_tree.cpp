// SPDX-License-Identifier: Apache-2.0
// Lists child processes from /proc.
#include "runner/host/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "runner/system/files.h"

namespace muster {
namespace {

struct Entry {
  pid_t parent = 0;
  Descendant process;
};

/// Reads /proc/PID/stat; a process that has just ended gives nothing. Its name may hold any byte, ')' too.
std::optional<Entry> readEntry(const char* pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  const Fd file(open(path, O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t n = file.valid() ? read(file.get(), text, sizeof text - 1) : -1;
  if (n <= 0) return {};
  text[n] = '\0';
  const char* open = std::strchr(text, '(');
  const char* close = std::strrchr(text, ')');
  if (open == nullptr || close == nullptr || close < open) return {};
  Entry entry;
  entry.process.pid = static_cast<pid_t>(std::atol(pid));
  entry.process.name.assign(open + 1, close);
  if (std::sscanf(close + 1, " %c %d", &entry.process.state, &entry.parent) != 2) return {};
  return entry;
}

std::multimap<pid_t, Descendant> processesByParent() {
  std::multimap<pid_t, Descendant> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return found;
  while (const dirent* item = readdir(folder.get())) {
    if (item->d_name[0] < '1' || item->d_name[0] > '9') continue;
    if (auto entry = readEntry(item->d_name)) found.emplace(entry->parent, std::move(entry->process));
  }
  return found;
}

}  // namespace

std::vector<Descendant> descendantsOf(pid_t root) {
  const auto byParent = processesByParent();
  std::vector<Descendant> found;
  std::vector<pid_t> parents{root};
  while (!parents.empty()) {
    const auto [first, last] = byParent.equal_range(parents.back());
    parents.pop_back();
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
      parents.push_back(child->second.pid);
    }
  }
  return found;
}

}  // namespace muster
