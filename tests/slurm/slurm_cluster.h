// SPDX-License-Identifier: Apache-2.0
// A real Slurm of several nodes on this machine, with a munge of its own: nothing of it is installed, shared
// or left behind.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace muster::testing {

/// munged, slurmctld and a slurmd for each of node1 ... nodeN, on ports that were free. Needs root.
class SlurmCluster {
 public:
  /// Starts all daemons and waits until every node is idle; throws with the daemons' own words when they do
  /// not come up. `extra` are more lines of slurm.conf.
  explicit SlurmCluster(int nodes = 4, const std::string& extra = "");
  /// Ends every daemon and every process of a job, and removes the folder.
  ~SlurmCluster();
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  /// A folder that all nodes see.
  [[nodiscard]] const std::filesystem::path& shared() const { return shared_; }
  /// A command with this Slurm's configuration in its environment.
  [[nodiscard]] ProcessResult command(const std::vector<std::string>& argv, double timeout = 60,
                                      std::map<std::string, std::string> environment = {}) const;
  /// `muster slurm ARGS` of the tree under test.
  [[nodiscard]] ProcessResult muster(std::vector<std::string> arguments, double timeout = 150,
                                     std::map<std::string, std::string> environment = {}) const;

  void set(const std::string& node, const std::string& state, const std::string& reason = "") const;
  [[nodiscard]] std::string state(const std::string& node) const;
  [[nodiscard]] std::string reason(const std::string& node) const;
  /// Ends a node as a power cut would: its slurmd and all of its jobs' processes, without a word.
  void cutPower(int node);
  /// Starts its slurmd again and gives it back to service.
  void powerUp(int node);
  /// Ends the controller; its state is saved. Nodes and their jobs go on.
  void stopController();
  /// Starts it again and waits until it answers.
  void startController();
  /// The same with other `extra` lines, for what it reads only when it starts.
  void restartController(const std::string& extra);
  /// Replaces the lines that were given as `extra` and tells all daemons.
  void configure(const std::string& extra);
  /// What the controller answers to each job that is submitted: a rule in Lua on `job_desc`, which returns an
  /// error of Slurm's or goes on. Needs JobSubmitPlugins=lua.
  void answerJobs(const std::string& rule) const;
  /// The process of a node's slurmd.
  [[nodiscard]] pid_t slurmd(int node) const;
  /// The end of every daemon's log.
  [[nodiscard]] std::string logs() const;
  /// Ends all jobs and brings all nodes back to service: as it was when it started.
  void tidy();

 private:
  struct Daemon {
    pid_t pid = -1;
    std::string name;
  };
  void writeConfiguration(int nodes, const std::string& extra);
  void start(const std::string& name, const std::vector<std::string>& argv);
  void stop(const std::string& name, int signal);
  void startNode(int node);
  void stopAll();

  TempDir folder_;
  std::filesystem::path shared_;
  int nodes_;
  std::string configuration_;  ///< slurm.conf without `extra`
  std::vector<Daemon> daemons_;
};

/// Whether `condition` came to hold within so many seconds.
bool within(double seconds, const std::function<bool()>& condition);

}  // namespace muster::testing
