/* SPDX-License-Identifier: Apache-2.0 */
/* A group whose ranks walk in step: each works a moment, tells the others a number through the store, reads
 * its neighbour's, and waits for all. One rank may be slower. SIGUSR1 makes a rank's case fail by itself. Not
 * hostile: others do the harm from outside.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

static const char* lockstepDescribe(void) {
  return "{\"tests\": [{\"name\": \"run\", \"summary\": \"walks in step\","
         " \"backends\": [\"host\"], \"scopes\": [\"node\", \"cluster\"],"
         " \"params\": ["
         "{\"name\": \"steps\", \"type\": \"int\", \"default\": 5, \"min\": 1, \"max\": 100000, \"summary\": "
         "\"steps\"},"
         "{\"name\": \"work\", \"type\": \"float\", \"default\": 0.02, \"summary\": \"seconds of work a "
         "step\"},"
         "{\"name\": \"slow_rank\", \"type\": \"int\", \"default\": -1, \"min\": -1, \"max\": 1000,"
         " \"summary\": \"rank that needs slow_factor times as long\"},"
         "{\"name\": \"slow_factor\", \"type\": \"float\", \"default\": 10.0, \"summary\": \"see "
         "slow_rank\"},"
         "{\"name\": \"fail_rank\", \"type\": \"int\", \"default\": -1, \"min\": -1, \"max\": 1000,"
         " \"summary\": \"rank whose case fails by itself in each first attempt\"},"
         "{\"name\": \"fail_step\", \"type\": \"int\", \"default\": 100000, \"min\": 0, \"max\": 100000,"
         " \"summary\": \"step before which it fails; else after the last one\"},"
         "{\"name\": \"patience\", \"type\": \"float\", \"default\": 3600.0, \"summary\": \"seconds to wait "
         "for others\"}],"
         " \"metrics\": ["
         "{\"name\": \"world_size\", \"unit\": \"count\", \"direction\": \"none\", \"summary\": \"ranks "
         "seen\"},"
         "{\"name\": \"neighbour\", \"unit\": \"count\", \"direction\": \"none\", \"summary\": \"rank "
         "read\"}]}]}";
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void work(double seconds) {
  const double end = now() + seconds;
  volatile double sum = 0;
  while (now() < end) sum = sum + 1;
}

static muster_status tell(Fake* fake, const char* metric, double value) {
  muster_measurement m;
  memset(&m, 0, sizeof m);
  m.struct_size = sizeof m;
  m.metric = metric;
  m.unit = "count";
  m.samples = &value;
  m.sample_count = 1;
  m.time = -1;
  return fake->host->measurement(fake->host->context, &m);
}

/* What the neighbour said in this step, or a negative number. */
static double exchange(Fake* fake, int repeat, int step, int rank, int size, double patience) {
  char key[64], text[32];
  uint64_t length = 0;
  snprintf(key, sizeof key, "r%d.s%d.%d", repeat, step, rank);
  snprintf(text, sizeof text, "%d", rank);
  if (fake->host->store_set(fake->host->context, key, text, strlen(text)) != MUSTER_OK) return -1;
  snprintf(key, sizeof key, "r%d.s%d.%d", repeat, step, (rank + 1) % size);
  memset(text, 0, sizeof text);
  if (fake->host->store_get(fake->host->context, key, text, sizeof text - 1, &length, patience) != MUSTER_OK)
    return -1;
  return strtod(text, NULL);
}

static muster_status fail(Fake* fake) {
  fake->host->error(fake->host->context, "it fails in its first attempt", "try again");
  return MUSTER_ERROR;
}

static volatile sig_atomic_t told;

static void failNow(int number) {
  (void)number;
  told = 1;
}

static muster_status run(void* session, const char* json) {
  Fake* fake = (Fake*)session;
  const int rank = (int)fakeNumber(fake->context, "rank", 0);
  const int size = (int)fakeNumber(fake->context, "world_size", 1);
  const int repeat = (int)fakeNumber(json, "repeat", 0) + 1000 * (int)fakeNumber(json, "attempt", 1);
  const int steps = (int)fakeNumber(json, "steps", 5);
  const double factor =
      rank == (int)fakeNumber(json, "slow_rank", -1) ? fakeNumber(json, "slow_factor", 10) : 1;
  const double patience = fakeNumber(json, "patience", 3600); /* most tests are about the stage's deadline */
  const int fails = rank == (int)fakeNumber(json, "fail_rank", -1) && fakeNumber(json, "attempt", 1) < 2;
  double neighbour = -1;
  signal(SIGUSR1, failNow);
  for (int step = 0; step < steps; ++step) {
    char name[64];
    if (told || (fails && step == (int)fakeNumber(json, "fail_step", 100000))) return fail(fake);
    work(fakeNumber(json, "work", 0.02) * factor);
    neighbour = exchange(fake, repeat, step, rank, size, patience);
    if (neighbour < 0) return MUSTER_PEER_FAILED;
    snprintf(name, sizeof name, "r%d.s%d", repeat, step);
    const muster_status met = fake->host->barrier(fake->host->context, name, patience);
    if (met != MUSTER_OK) return met == MUSTER_ERROR ? MUSTER_PEER_FAILED : met;
    fakeProgress(fake, (step + 1.0) / steps, name);
  }
  if (fails) return fail(fake);
  tell(fake, "world_size", size);
  return tell(fake, "neighbour", neighbour);
}

static muster_status openSession(const muster_host* host, const char* context, void** session) {
  Fake* fake = (Fake*)calloc(1, sizeof *fake);
  fake->host = host;
  snprintf(fake->context, sizeof fake->context, "%s", context);
  *session = fake;
  return MUSTER_OK;
}

static void closeSession(void* session) {
  free(session);
}

FAKE_INFO("fake-lockstep", MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR,
          MUSTER_ABI_MINOR)

FAKE_LINKAGE MUSTER_EXPORT const muster_plugin_ops* muster_plugin_entry(uint32_t hostMinor) {
  static const muster_plugin_ops ops = {
      sizeof(muster_plugin_ops), MUSTER_ABI_MINOR, lockstepDescribe, openSession, run, closeSession};
  (void)hostMinor;
  return &ops;
}
