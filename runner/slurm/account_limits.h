// SPDX-License-Identifier: Apache-2.0
// How many jobs the limits of an account or a QOS leave to a user, as the controller shows them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "runner/slurm/room.h"

namespace muster::slurm {

/// Who submits, and as what; empty: Slurm's default for the user.
struct Submitter {
  uid_t user = 0;
  std::string account;
  std::string partition;
  std::string qos;
};

/// The smallest room that `scontrol show assoc_mgr` (its whole output) leaves to a submitter: MaxSubmitJobs
/// of the user's association, GrpSubmitJobs of it and of the accounts above, and the limits of the QOS.
/// Nothing where none is set. The output holds a QOS' limit for each user only once the user has a job in it,
/// and not which QOS is the default: where there are several, it must have been asked for. Pure.
std::optional<QueueRoom> accountRoom(const std::string& text, const Submitter& submitter);

}  // namespace muster::slurm
