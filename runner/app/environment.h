// SPDX-License-Identifier: Apache-2.0
// What a record keeps of the process's surroundings: host name, boot id, and allow-listed environment
// variables.
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

}  // namespace muster
