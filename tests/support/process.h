// SPDX-License-Identifier: Apache-2.0
// Real processes and folders for tests: run a command to its end, own a temporary folder, find the built
// tree.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace muster::testing {

/// A folder that is removed with everything in it when the object goes.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file (folders are made) and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

/// How a process ended and what it printed.
struct ProcessResult {
  int exitCode = -1;  ///< -1 when a signal ended it
  int signal = 0;
  bool timedOut = false;
  std::string out;
  std::string err;
};

struct ProcessOptions {
  std::map<std::string, std::string> environment;  ///< added to this process's own
  std::string input;
  double timeout = 60;  ///< then its whole process group is killed
  std::filesystem::path folder;
};

ProcessResult runProcess(const std::vector<std::string>& command, const ProcessOptions& options = {});

/// The installed tree under test (MUSTER_DIST), the sources (MUSTER_SOURCE) and the build folder
/// (MUSTER_BUILD).
std::filesystem::path distDir();
std::filesystem::path sourceDir();
std::filesystem::path buildDir();

std::string readWhole(const std::filesystem::path& path);

/// Pids whose command line or environment contains `marker`; for "no process is left behind".
std::vector<int> processesWith(const std::string& marker);

}  // namespace muster::testing
