// SPDX-License-Identifier: Apache-2.0
// The process's surroundings: host name, boot id, the environment variables that a record keeps, and the one
// that is secret.
#pragma once

#include <map>
#include <string>

namespace muster {

std::string hostName();

/// /proc/sys/kernel/random/boot_id; empty where it cannot be read.
std::string bootId();

/// Variables that change what is measured (NCCL_*, CUDA_VISIBLE_DEVICES, OMP_*, UCX_*, SLURM_JOB_ID ...).
/// Never the whole environment: it holds secrets.
std::map<std::string, std::string> recordedEnvironment();

/// Takes MUSTER_TOKEN out of this process's environment and overwrites it there, so that neither child
/// processes nor /proc/PID/environ have it. For the start of the process.
void takeToken();
/// What was taken; empty where it was not set.
const std::string& runToken();

}  // namespace muster
