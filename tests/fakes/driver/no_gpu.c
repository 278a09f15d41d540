/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 that is new enough and finds no GPU. The CUDA runtime takes all functions by
 * cuGetProcAddress. */
#include <stdint.h>
#include <string.h>

enum { SUCCESS = 0, NO_DEVICE = 100 };

__attribute__((visibility("default"))) int cuDriverGetVersion(int* version);
__attribute__((visibility("default"))) int cuGetProcAddress_v2(const char* name, void** function, int version,
                                                               uint64_t flags, int* found);

static int none(void) {
  return NO_DEVICE;
}

int cuDriverGetVersion(int* version) {
  *version = 99000; /* new enough for every toolkit */
  return SUCCESS;
}

int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* found) {
  (void)version;
  (void)flags;
  if (found != NULL) *found = 0;
  *function = (void*)(uintptr_t)none;
  if (strcmp(name, "cuDriverGetVersion") == 0) *function = (void*)(uintptr_t)cuDriverGetVersion;
  if (strcmp(name, "cuGetProcAddress") == 0) *function = (void*)(uintptr_t)cuGetProcAddress_v2;
  return SUCCESS;
}
