// SPDX-License-Identifier: Apache-2.0
// A real control group with a CPU quota.
#include "tests/plugins/env/control_group.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace muster::testing {

namespace fs = std::filesystem;

namespace {

bool put(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

}  // namespace

ControlGroup::ControlGroup(int percent) {
  const std::string name = "muster-test-" + std::to_string(getpid());
  const fs::path v1 = "/sys/fs/cgroup/cpu", v2 = "/sys/fs/cgroup";
  const bool first = fs::exists(v1 / "cpu.cfs_quota_us");
  folder_ = (first ? v1 : v2) / name;
  if (!first) put(v2 / "cgroup.subtree_control", "+cpu");
  std::error_code error;
  if (!fs::create_directory(folder_, error)) {
    why_ = "cannot make " + folder_.string() + ": " + error.message();
    return;
  }
  const std::string quota = std::to_string(percent * 1000);
  const bool set =
      first ? put(folder_ / "cpu.cfs_period_us", "100000") && put(folder_ / "cpu.cfs_quota_us", quota)
            : put(folder_ / "cpu.max", quota + " 100000");
  if (!set) why_ = "cannot set a CPU quota in " + folder_.string();
}

ControlGroup::~ControlGroup() {
  // The kernel lets go of a group shortly after its last process has ended.
  for (int attempt = 0; attempt < 100 && rmdir(folder_.c_str()) != 0 && errno == EBUSY; ++attempt)
    usleep(10'000);
}

std::vector<std::string> ControlGroup::wrapper() const {
  return {"/bin/sh", "-c", "echo $$ > " + (folder_ / "cgroup.procs").string() + " && exec \"$@\"", "sh"};
}

}  // namespace muster::testing
