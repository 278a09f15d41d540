/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks the rules of a session that no return value tells of. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

static muster_status keepTooMuch(const muster_host* h) {
  char name[32];
  for (int i = 0; i <= 1000; ++i) {
    snprintf(name, sizeof name, "part%d", i);
    if (h->artifact(h->context, name, "text/plain", "x", 1) != MUSTER_OK) return MUSTER_ERROR;
  }
  return MUSTER_OK;
}

/* kind 0: tells an error and returns MUSTER_OK; 1: closes every descriptor; 2: closes all but the standard
 * ones; 3: dies in close(); 4: keeps one artifact too many; 5: keeps one artifact three times; 6: keeps one
 * that its umask would let nobody read; 7: says that it measured in a far future. */
static muster_status run(Fake* fake, const char* json) {
  const muster_host* h = fake->host;
  const int kind = (int)fakeNumber(json, "kind", 0);
  snprintf(fake->context, sizeof fake->context, "%d", kind); /* close() reads it */
  if (kind == 0) h->error(h->context, "the disk was full", "make room");
  if (kind == 1 || kind == 2)
    for (int fd = kind == 1 ? 0 : 3; fd < 1024; ++fd) close(fd);
  if (kind == 4) return keepTooMuch(h);
  if (kind == 7) return fakeReportAt(fake, 1, 1e300);
  if (kind == 6) {
    umask(0777);
    return h->artifact(h->context, "hidden.txt", "text/plain", "abc", 3) == MUSTER_OK ? fakeReport(fake, 1)
                                                                                      : MUSTER_ERROR;
  }
  for (int i = 0; kind == 5 && i < 3; ++i)
    h->artifact(h->context, "log.txt", "text/plain", "abc", 1 + (uint64_t)i);
  return fakeReport(fake, 1);
}

static const char* describe(void) {
  return FAKE_DESCRIBE;
}

static muster_status openSession(const muster_host* host, const char* context, void** session) {
  Fake* fake = (Fake*)calloc(1, sizeof *fake);
  fake->host = host;
  (void)context;
  *session = fake;
  return MUSTER_OK;
}

static muster_status runSession(void* session, const char* json) {
  return run((Fake*)session, json);
}

static void closeSession(void* session) {
  const int kind = atoi(((Fake*)session)->context);
  free(session);
  if (kind == 3) raise(SIGSEGV);
}

FAKE_INFO("fake-disobey", MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR, MUSTER_ABI_MINOR)

MUSTER_EXPORT const muster_plugin_ops* muster_plugin_entry(uint32_t hostMinor) {
  static const muster_plugin_ops ops = {
      sizeof(muster_plugin_ops), MUSTER_ABI_MINOR, describe, openSession, runSession, closeSession};
  (void)hostMinor;
  return &ops;
}
