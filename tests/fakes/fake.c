/* SPDX-License-Identifier: Apache-2.0 */
/* See fake.h. */
#define _GNU_SOURCE
#include "tests/fakes/fake.h"

#include <unistd.h>

int fakeFrameFd(void) {
  for (int fd = 3; fd < 256; ++fd) {
    char link[64], target[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, target, sizeof target - 1);
    if (n <= 0) continue;
    target[n] = '\0';
    if (strncmp(target, "pipe:", 5) == 0) return fd;
  }
  return -1;
}

void fakeWrite(const char* bytes, size_t size) {
  const int fd = fakeFrameFd();
  while (size > 0) {
    const ssize_t n = write(fd, bytes, size);
    if (n <= 0) return;
    bytes += n;
    size -= (size_t)n;
  }
}

void fakeSleepForEver(void) {
  while (1) pause();
}
