/* SPDX-License-Identifier: Apache-2.0 */
/* An auditor of the dynamic loader (LD_AUDIT) that makes a library unfindable wherever it lies: what machines
 * without that library see. MUSTER_FAKE_HIDDEN names it by its SONAME; several are separated by ':'. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) unsigned int la_version(unsigned int version);
__attribute__((visibility("default"))) char* la_objsearch(const char* name, uintptr_t* cookie,
                                                          unsigned int flag);

unsigned int la_version(unsigned int version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Called for a library's name and for each path that is tried: each path is made one that does not exist.
 * (NULL would do too, but glibc then reports "wrong ELF class" now and then.) */
char* la_objsearch(const char* name, uintptr_t* cookie, unsigned int flag) {
  static char nowhere[] = "/nonexistent/hidden";
  const char* hidden = getenv("MUSTER_FAKE_HIDDEN");
  const char* slash = strrchr(name, '/');
  const char* base = slash == NULL ? name : slash + 1;
  const size_t length = strlen(base);
  (void)cookie;
  (void)flag;
  while (hidden != NULL && *hidden != '\0') {
    const size_t one = strcspn(hidden, ":");
    if (slash != NULL && one == length && strncmp(hidden, base, one) == 0) return nowhere;
    hidden += one + (hidden[one] == ':');
  }
  return (char*)(uintptr_t)name;
}
