// SPDX-License-Identifier: Apache-2.0
// The `muster` command. An exception that reaches here is a fault of Muster itself.
#include <cstdio>
#include <exception>

#include "runner/app/commands.h"
#include "runner/app/exit_code.h"

int main(int argc, char** argv) {
  try {
    return muster::muster(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster: internal fault: %s; please report it with the plan and this line\n",
                 error.what());
  } catch (...) {
    std::fprintf(stderr, "muster: internal fault of unknown kind; please report it with the plan\n");
  }
  return muster::kExitInternal;
}
