// SPDX-License-Identifier: Apache-2.0
// A CPU quota for processes of a test, by a control group of its own.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster::testing {

/// A cpu control group with a quota of `share` of all processors, v1 or v2.
class QuotaGroup {
 public:
  explicit QuotaGroup(double share) {
    const long quota = static_cast<long>(share * 100000 * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
    const std::string name = "muster-test-" + std::to_string(getpid());
    const std::filesystem::path v1 = "/sys/fs/cgroup/cpu";
    if (std::filesystem::exists(v1 / "cpu.cfs_quota_us") || std::filesystem::exists(v1 / "cgroup.procs")) {
      make(v1 / name);
      ready_ = put("cpu.cfs_period_us", "100000") && put("cpu.cfs_quota_us", std::to_string(quota));
    } else {
      std::ofstream("/sys/fs/cgroup/cgroup.subtree_control") << "+cpu";
      make(std::filesystem::path("/sys/fs/cgroup") / name);
      ready_ = put("cpu.max", std::to_string(quota) + " 100000");
    }
  }
  ~QuotaGroup() {
    release();
    rmdir(path_.c_str());
  }
  QuotaGroup(const QuotaGroup&) = delete;
  QuotaGroup& operator=(const QuotaGroup&) = delete;

  /// Whether there is such a group: false where this process may make none.
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::string name() const { return path_.filename().string(); }
  /// Where a process writes its own number to enter.
  [[nodiscard]] std::string procs() const { return (path_ / "cgroup.procs").string(); }
  /// Brings a process, and with it all that it starts from then on, under the quota.
  [[nodiscard]] bool add(pid_t pid) const { return put("cgroup.procs", std::to_string(pid)); }
  /// Gives all of its processes back to the group above.
  void release() const {
    std::ifstream inside(path_ / "cgroup.procs");
    for (std::string pid; std::getline(inside, pid);)
      std::ofstream(path_.parent_path() / "cgroup.procs") << pid << std::flush;
  }

 private:
  void make(const std::filesystem::path& path) {
    path_ = path;
    std::error_code ignored;
    std::filesystem::create_directory(path_, ignored);
  }
  [[nodiscard]] bool put(const char* file, const std::string& text) const {
    std::ofstream out(path_ / file);
    out << text << std::flush;
    return out.good();
  }
  std::filesystem::path path_;
  bool ready_ = false;
};

}  // namespace muster::testing
