/* SPDX-License-Identifier: Apache-2.0 */
/* Uses every callback, rightly and wrongly, and reports what came back. */
#include "tests/fakes/fake.h"

static muster_status fail(const Fake* fake, const char* what) {
  fake->host->error(fake->host->context, what, NULL);
  return MUSTER_ERROR;
}

static const char* useStore(const muster_host* h) {
  char data[8] = "";
  uint64_t size = 0;
  if (h->store_set(h->context, "key", "value", 5) != MUSTER_OK) return "store_set failed";
  if (h->store_get(h->context, "key", data, sizeof data, &size, 1) != MUSTER_OK) return "store_get failed";
  if (size != 5 || memcmp(data, "value", 5) != 0) return "store_get gave another value";
  if (h->store_get(h->context, "key", data, 2, &size, 1) != MUSTER_OK || size != 5)
    return "a short buffer failed";
  if (h->store_get(h->context, "no such key", data, sizeof data, &size, 0.05) == MUSTER_OK)
    return "a key from nowhere";
  if (h->store_set(h->context, NULL, "value", 5) == MUSTER_OK) return "a NULL key was taken";
  if (h->store_get(h->context, "key", NULL, 8, &size, 1) == MUSTER_OK) return "a NULL buffer was taken";
  return h->barrier(h->context, "b", 1) == MUSTER_OK ? NULL : "barrier failed";
}

/* kind 0: artifacts and store; 1: an artifact whose name leaves the folder; 2: only the store. */
static muster_status run(Fake* fake, const char* json) {
  const muster_host* h = fake->host;
  const int kind = (int)fakeNumber(json, "kind", 0);
  if (kind == 1) return h->artifact(h->context, "../escape", "text/plain", "x", 1);
  if (kind == 2) {
    const muster_status status = h->barrier(h->context, "b", 1);
    return status == MUSTER_OK ? fakeReport(fake, 1) : status;
  }
  if (h->artifact(h->context, "data.txt", "text/plain", "kept", 4) != MUSTER_OK)
    return fail(fake, "no artifact");
  const char* problem = useStore(h);
  if (problem != NULL) return fail(fake, problem);
  if (strstr(fake->context, "\"test\":\"run\"") == NULL) return fail(fake, "the context names no test");
  h->log(h->context, MUSTER_LOG_INFO, "borders are fine");
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-borders", run)
