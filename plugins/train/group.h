// SPDX-License-Identifier: Apache-2.0
// The ranks that train together.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/loading/open_device.h"

namespace muster::train {

/// Where this rank stands in its group.
struct Place {
  int rank = 0;
  int size = 1;
  bool leadsNode = true;  ///< the first rank of its node
  std::string node;       ///< name of its node
};

/// Which group to form, and how.
struct GroupSpec {
  Place place;
  std::string interface;
  double timeout = 60;
};

/// A formed group; of one rank it talks to nobody. Every method is called by all its ranks.
class Group {
 public:
  static Result<Group> form(OpenDevice& device, const GroupSpec& spec, GroupStore& store);

  [[nodiscard]] int rank() const { return place_.rank; }
  [[nodiscard]] int size() const { return place_.size; }
  [[nodiscard]] bool leads() const { return place_.rank == 0; }
  [[nodiscard]] Communicator* communicator() const { return communicator_.get(); }
  [[nodiscard]] std::string implementation() const;  ///< "none" for a group of one

  Status barrier() const;
  /// The largest of each value over the ranks.
  [[nodiscard]] Result<std::vector<double>> largest(const std::vector<double>& values) const;
  /// Rank 0's values. Others give equally many, which do not count.
  [[nodiscard]] Result<std::vector<double>> ofLeader(std::vector<double> values) const;
  /// Each rank's values, in their order; empty for ranks that do not answer (in sim a rank knows only its
  /// own).
  [[nodiscard]] Result<std::vector<std::vector<double>>> gather(const std::vector<double>& values) const;
  /// Ranks whose number is another than most ranks have; of two halves, the one without rank 0.
  [[nodiscard]] Result<std::vector<int>> deviants(uint64_t number) const;
  /// These ranks with their nodes: "rank 1 (n1), rank 3 (n2)". In sim a rank knows only its own node.
  [[nodiscard]] Result<std::string> nameRanks(const std::set<int>& ranks) const;

 private:
  Place place_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace muster::train
