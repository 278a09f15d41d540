// SPDX-License-Identifier: Apache-2.0
// What tests that need a GPU share: the backends of the installed tree, its first GPU, and how a figure is
// told.
#pragma once

#include <memory>
#include <string>

#include "kernels/interfaces/backend.h"

namespace muster::gpu {

/// The backend of this name from MUSTER_DIST, opened once; a test that cannot open it cannot go on.
Backend& backend(const std::string& name);

/// The node's GPUs. main() has seen that there is one.
const std::vector<DeviceInfo>& devices();

/// The first GPU, opened anew: each test has its own.
std::unique_ptr<Device> openGpu();
/// The first device of the host backend, which GPUs are compared with.
std::unique_ptr<Device> openHost();

/// Prints a measured figure as one line of JSON for `./dev gpu`, which puts it beside others' of the same
/// name and labels: {"figure": "gemm", "unit": "FLOP/s", "value": 7.1e14, "labels": {"dtype": "bf16"}}.
void figure(const std::string& name, const std::string& unit, double value,
            const Json& labels = Json::object());

}  // namespace muster::gpu
