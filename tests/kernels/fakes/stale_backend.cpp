// SPDX-License-Identifier: Apache-2.0
// A backend of another build, whose code must never be called.
#include <cstdlib>

#include "kernels/interfaces/backend.h"

namespace {
muster::Result<std::unique_ptr<muster::Backend>> open(const muster::BackendOptions&) {
  std::abort();
}
}  // namespace

extern "C" __attribute__((visibility("default")))
const muster::BackendEntry muster_backend_entry = {"0.0.0+stale", open};
