// SPDX-License-Identifier: Apache-2.0
// Sums the CPU wait times of all threads from /proc/self/task/*/schedstat.
#include "plugins/ring/cpu_wait.h"

#include <charconv>
#include <filesystem>
#include <string>

#include "runner/system/files.h"

namespace muster::ring {

double cpuWaitSeconds() {
  std::error_code error;
  uint64_t total = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const auto text =
        readFile(task.path() / "schedstat");  // "seconds on a CPU, waiting for one, slices" in ns
    if (!text.ok()) continue;                 // the thread has ended
    const size_t space = text->find(' ');
    uint64_t waited = 0;
    if (space != std::string::npos)
      std::from_chars(text->data() + space + 1, text->data() + text->size(), waited);
    total += waited;
  }
  return static_cast<double>(total) * 1e-9;
}

}  // namespace muster::ring
