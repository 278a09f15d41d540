/* SPDX-License-Identifier: Apache-2.0 */
/* Lets its sessions follow each other in one process, and tells which process that is. */
#include <signal.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

/* kind 1: dies. */
static muster_status run(Fake* fake, const char* json) {
  printf("process %d prints this\n", (int)getpid());
  fflush(stdout);
  if (fakeNumber(json, "kind", 0) == 1) raise(SIGABRT);
  return fakeReport(fake, (double)getpid());
}

FAKE_LINKAGE MUSTER_EXPORT const muster_plugin_info muster_plugin = {MUSTER_PLUGIN_MAGIC,
                                                                     sizeof(muster_plugin_info),
                                                                     MUSTER_ABI_MAJOR,
                                                                     MUSTER_ABI_MINOR,
                                                                     MUSTER_PLUGIN_IN_TURN,
                                                                     "fake-in-turn",
                                                                     "1.0.0"};
FAKE_ENTRY(run)
