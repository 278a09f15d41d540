/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that talk through the group's store: values of all sizes, barriers, and what goes wrong there. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

enum {
  kExchange = 0,
  kMissingKey = 1,
  kDeadPeer = 2,
  kAbsentPeer = 3,
  kGiantKey = 4,
  kGiantValue = 5,
  kDeadOnce = 6
};

#define LARGE 300000

typedef struct {
  const muster_host* host;
  int rank, size;
} Member;

static muster_status fail(const Member* self, const char* what) {
  self->host->error(self->host->context, what, NULL);
  return MUSTER_ERROR;
}

/* Every rank adds up what all have set. */
static const char* addUp(const Member* self, double* sum) {
  const muster_host* h = self->host;
  char key[32], text[32];
  uint64_t size = 0;
  snprintf(key, sizeof key, "value%d", self->rank);
  snprintf(text, sizeof text, "%d", self->rank + 1);
  if (h->store_set(h->context, key, text, strlen(text)) != MUSTER_OK) return "cannot set a value";
  for (int rank = 0; rank < self->size; ++rank) {
    snprintf(key, sizeof key, "value%d", rank);
    memset(text, 0, sizeof text);
    if (h->store_get(h->context, key, text, sizeof text, &size, 20) != MUSTER_OK) return "cannot get a value";
    if (size != strlen(text)) return "a value has another size";
    *sum += atof(text);
  }
  return NULL;
}

/* The size contract: a short buffer gets the beginning, and learns the whole size. */
static const char* passLarge(const Member* self) {
  const muster_host* h = self->host;
  static char large[LARGE], got[LARGE];
  uint64_t size = 0;
  memset(got, 0, sizeof got);
  for (int i = 0; i < LARGE; ++i) large[i] = (char)(i * 31 + i / 256);
  if (self->rank == 0 && h->store_set(h->context, "large", large, LARGE) != MUSTER_OK)
    return "cannot set 300 kB";
  if (h->store_get(h->context, "large", got, 10, &size, 20) != MUSTER_OK || size != LARGE || got[10] != 0)
    return "a short buffer did not get the beginning and the whole size";
  if (h->store_get(h->context, "large", got, LARGE, &size, 20) != MUSTER_OK || memcmp(got, large, LARGE) != 0)
    return "300 kB came changed";
  return NULL;
}

static muster_status exchange(const Member* self, Fake* fake) {
  const muster_host* h = self->host;
  double sum = 0;
  uint64_t size = 0;
  char byte = 0;
  /* What an earlier case has set is not there. */
  if (h->store_get(h->context, "left", &byte, 1, &size, 0) == MUSTER_OK)
    return fail(self, "a key of another case is visible");
  if (h->barrier(h->context, "looked", 20) != MUSTER_OK) return fail(self, "no first barrier");
  h->store_set(h->context, "left", "x", 1);
  const char* problem = addUp(self, &sum);
  if (problem == NULL) problem = passLarge(self);
  for (int i = 0; i < 20 && problem == NULL; ++i)
    if (h->barrier(h->context, "step", 20) != MUSTER_OK) problem = "a barrier that is used again fails";
  return problem == NULL ? fakeReport(fake, sum) : fail(self, problem);
}

static muster_status run(Fake* fake, const char* json) {
  /* On one node they are the same as rank and world_size, and their names stand only once in the context. */
  const Member self = {fake->host, (int)fakeNumber(fake->context, "local_rank", -1),
                       (int)fakeNumber(fake->context, "local_size", -1)};
  const muster_host* h = fake->host;
  const int kind = (int)fakeNumber(json, "kind", 0);
  static char giant[8 << 20];
  uint64_t size = 0;
  char byte = 0;
  switch (kind) {
    case kMissingKey:
      if (self.rank == 1 && h->store_get(h->context, "nobody-sets-this", &byte, 1, &size, 0.3) != MUSTER_OK)
        return MUSTER_ERROR; /* the host knows why */
      break;
    case kDeadPeer:
      if (self.rank == 1) raise(SIGKILL);
      if (h->barrier(h->context, "with the dead", 60) != MUSTER_OK) return MUSTER_ERROR;
      break;
    case kAbsentPeer:
      if (self.rank != 1 && h->barrier(h->context, "roll call", 0.5) != MUSTER_OK)
        return fail(&self, "nobody came");
      break;
    case kGiantKey:
      memset(giant, 'k', 600);
      return h->store_set(h->context, giant, "x", 1);
    case kGiantValue:
      return h->store_set(h->context, "key", giant, sizeof giant);
    case kDeadOnce: /* in its second case the last rank dies; the third runs in new processes */
      if (fakeNumber(json, "value", 0) == 2 && self.rank == self.size - 1) raise(SIGKILL);
      return exchange(&self, fake);
    default:
      return exchange(&self, fake);
  }
  return fakeReport(fake, 1);
}

FAKE_PLUGIN("fake-pair", run)
