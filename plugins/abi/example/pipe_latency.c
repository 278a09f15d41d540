/* SPDX-License-Identifier: Apache-2.0 */
/* A complete Muster plugin in C: how long does a byte take from one process to another and back through two
 * pipes?
 *
 *   cc -std=c11 -O2 -shared -fPIC -I plugins/abi -o pipe-latency.so pipe_latency.c
 *   muster run my-plan.toml --plugins .
 *
 * Everything it needs is in muster_plugin.h; it links nothing of Muster. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "muster_plugin.h"

/* 1. Who we are: read from the file, before any of our code runs. */
const muster_plugin_info muster_plugin = {
    MUSTER_PLUGIN_MAGIC,
    sizeof(muster_plugin_info),
    MUSTER_ABI_MAJOR,
    MUSTER_ABI_MINOR,
    0,
    "pipe-latency",
    "1.0.0",
};

/* 2. What we offer. Plans are checked against it, so run() gets every parameter in the right type. */
static const char *describe(void) {
  return "{\"tests\": [{"
         "  \"name\": \"ping_pong\","
         "  \"summary\": \"One byte to another process and back through two pipes\","
         "  \"backends\": [\"host\"],"
         "  \"scopes\": [\"device\", \"node\"],"
         "  \"params\": ["
         "    {\"name\": \"rounds\", \"type\": \"int\", \"default\": 2000, \"min\": 1, \"max\": 1000000,"
         "     \"summary\": \"round trips in one sample\"},"
         "    {\"name\": \"samples\", \"type\": \"int\", \"default\": 10, \"min\": 1, \"max\": 1000,"
         "     \"summary\": \"samples to take\"}],"
         "  \"metrics\": ["
         "    {\"name\": \"round_trip\", \"unit\": \"s\", \"direction\": \"lower\", \"labels\": [\"rounds\"],"
         "     \"summary\": \"time of one round trip\"},"
         "    {\"name\": \"wrong_bytes\", \"unit\": \"count\", \"direction\": \"lower\", \"labels\": [],"
         "     \"summary\": \"bytes that came back changed\", \"standing\": {\"max\": 0}}]"
         "}]}";
}

/* 3. One session per rank: here it is the host's callbacks. */
typedef struct {
  const muster_host *host;
} session;

static muster_status fail(const session *self, const char *message, const char *remedy) {
  self->host->error(self->host->context, message, remedy);
  return MUSTER_ERROR;
}

static muster_status open_session(const muster_host *host, const char *context_json, void **out) {
  session *self = calloc(1, sizeof *self);
  (void)context_json; /* names the device, the rank and its group; this test needs none of them */
  if (self == NULL) return MUSTER_ERROR;
  self->host = host;
  signal(SIGPIPE, SIG_IGN); /* a peer that died is an error to report, not a signal to die of */
  *out = self;
  return MUSTER_OK;
}

/* The whole number behind "key" in the case's JSON. All parameters are there: the host fills in the defaults.
 */
static long parameter(const char *case_json, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(case_json, quoted);
  return at == NULL ? -1 : strtol(at + strlen(quoted), NULL, 10);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The other process: sends back what it gets until the pipe ends. */
static void echo(int in, int out) {
  unsigned char byte;
  while (read(in, &byte, 1) == 1)
    if (write(out, &byte, 1) != 1) break;
  _exit(0);
}

/* Starts it; we write to to_child and read from from_child. */
static pid_t start_echo(int *to_child, int *from_child) {
  int there[2], back[2];
  if (pipe(there) != 0) return -1;
  if (pipe(back) != 0) {
    close(there[0]), close(there[1]);
    return -1;
  }
  const pid_t child = fork();
  if (child == 0) {
    close(there[1]), close(back[0]);
    echo(there[0], back[1]);
  }
  close(there[0]), close(back[1]);
  *to_child = there[1];
  *from_child = back[0];
  return child;
}

/* Seconds of one round trip over `rounds` of them, or negative; counts bytes that came back changed. */
static double sample(int to_child, int from_child, long rounds, double *wrong) {
  const double start = now();
  for (long i = 0; i < rounds; ++i) {
    const unsigned char sent = (unsigned char)i;
    unsigned char got = 0;
    if (write(to_child, &sent, 1) != 1 || read(from_child, &got, 1) != 1) return -1;
    if (got != sent) *wrong += 1;
  }
  return (now() - start) / (double)rounds;
}

static muster_status report(const session *self, const char *metric, const char *unit, const double *values,
                            long count, const muster_label *label) {
  muster_measurement m;
  memset(&m, 0, sizeof m);
  m.struct_size = sizeof m;
  m.metric = metric;
  m.unit = unit;
  m.labels = label;
  m.label_count = label != NULL;
  m.samples = values;
  m.sample_count = (uint64_t)count;
  m.time = -1; /* now */
  return self->host->measurement(self->host->context, &m);
}

/* Takes all samples; what it returns ends the case. */
static muster_status measure(const session *self, int to_child, int from_child, long rounds, long samples) {
  double *values = malloc((size_t)samples * sizeof *values);
  double wrong = 0;
  char rounds_text[32];
  snprintf(rounds_text, sizeof rounds_text, "%ld", rounds);
  const muster_label label = {"rounds", rounds_text};
  muster_status status =
      values == NULL ? fail(self, "out of memory for the samples", "take fewer samples") : MUSTER_OK;
  sample(to_child, from_child, 100, &wrong); /* warm up */
  for (long i = 0; i < samples && status == MUSTER_OK; ++i) {
    if (self->host->cancelled(self->host->context)) status = MUSTER_CANCELLED;
    values[i] = sample(to_child, from_child, rounds, &wrong);
    if (values[i] < 0)
      status = fail(self, "the other process ended early", "look for the OOM killer in dmesg");
    self->host->progress(self->host->context, (double)(i + 1) / (double)samples, "round trips");
  }
  if (status == MUSTER_OK) status = report(self, "round_trip", "s", values, samples, &label);
  if (status == MUSTER_OK) status = report(self, "wrong_bytes", "count", &wrong, 1, NULL);
  free(values);
  return status;
}

/* 4. One case. A test cleans up after itself; what it leaves behind is killed and named in the report. */
static muster_status run(void *opaque, const char *case_json) {
  const session *self = opaque;
  int to_child = -1, from_child = -1;
  const pid_t child = start_echo(&to_child, &from_child);
  if (child < 0)
    return fail(self, "cannot start the other process", "raise the limits for processes and open files");
  const muster_status status =
      measure(self, to_child, from_child, parameter(case_json, "rounds"), parameter(case_json, "samples"));
  close(to_child);
  close(from_child);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  return status;
}

static void close_session(void *opaque) {
  free(opaque);
}

/* 5. The table of functions, the only thing that is called by name. */
const muster_plugin_ops *muster_plugin_entry(uint32_t host_abi_minor) {
  static const muster_plugin_ops ops = {
      sizeof(muster_plugin_ops), MUSTER_ABI_MINOR, describe, open_session, run, close_session,
  };
  (void)host_abi_minor; /* we use nothing that is newer than ABI 1.0 */
  return &ops;
}
