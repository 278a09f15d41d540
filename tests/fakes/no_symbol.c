/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library that is not a plugin; its constructor must never run. */
#include <stdlib.h>

__attribute__((constructor)) static void load(void) {
  abort();
}
__attribute__((visibility("default"))) int fakeNothing(void) {
  return 0;
}
