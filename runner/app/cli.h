// SPDX-License-Identifier: Apache-2.0
// The command line of `muster`.
#pragma once

namespace muster {

/// Reads and runs the command line. Returns the exit code.
int muster(int argc, char** argv);

}  // namespace muster
