/* SPDX-License-Identifier: Apache-2.0 */
/* What all hostile plugins share: the tables, the callbacks at hand, and a figure to report. C11 and C++20.
 */
#ifndef MUSTER_TESTS_FAKES_FAKE_H
#define MUSTER_TESTS_FAKES_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/abi/muster_plugin.h"

#ifdef __cplusplus
#define FAKE_LINKAGE extern "C"
#else
#define FAKE_LINKAGE
#endif

/* One session: all that a fake needs to misbehave. */
typedef struct Fake {
  const muster_host* host;
  char context[65536];
} Fake;

/* Each fake has one test `run` with two parameters and one metric. */
#define FAKE_DESCRIBE                                                                                    \
  "{\"tests\": [{\"name\": \"run\", \"summary\": \"misbehaves in one way\","                             \
  " \"backends\": [\"host\", \"sim\", \"cuda\"], \"scopes\": [\"device\", \"node\"],"                    \
  " \"params\": ["                                                                                       \
  "{\"name\": \"value\", \"type\": \"float\", \"default\": 1.0, \"summary\": \"the figure to report\"}," \
  "{\"name\": \"kind\", \"type\": \"int\", \"default\": 0, \"min\": 0, \"max\": 100000000,"              \
  " \"summary\": \"which variant, or how much of it\"}],"                                                \
  " \"metrics\": [{\"name\": \"value\", \"unit\": \"count\", \"direction\": \"higher\", \"labels\": []," \
  " \"summary\": \"the figure\"}]}]}"

/* The number behind "key" in flat JSON text; enough for our own parameters. */
static inline double fakeNumber(const char* json, const char* key, double otherwise) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char* at = strstr(json, quoted);
  return at == NULL ? otherwise : strtod(at + strlen(quoted), NULL);
}

/* `time`: in seconds of the session's clock; -1: now. */
static inline muster_status fakeReportAt(const Fake* fake, double value, double time) {
  muster_measurement m;
  memset(&m, 0, sizeof m);
  m.struct_size = sizeof m;
  m.metric = "value";
  m.unit = "count";
  m.samples = &value;
  m.sample_count = 1;
  m.time = time;
  return fake->host->measurement(fake->host->context, &m);
}

static inline muster_status fakeReport(const Fake* fake, double value) {
  return fakeReportAt(fake, value, -1);
}

static inline void fakeProgress(const Fake* fake, double fraction, const char* text) {
  fake->host->progress(fake->host->context, fraction, text);
}

/* The descriptor of the frames, found as a hostile plugin would: the first pipe above stderr. */
int fakeFrameFd(void);
/* Writes raw bytes between the host's frames. */
void fakeWrite(const char* bytes, size_t size);
/* Ends only by a signal. */
void fakeSleepForEver(void);

#define FAKE_INFO(pluginName, magic, size, major, minor)                                                 \
  FAKE_LINKAGE MUSTER_EXPORT const muster_plugin_info muster_plugin = {magic, size,       major,  minor, \
                                                                       0,     pluginName, "1.0.0"};

#define FAKE_ENTRY(runFunction)                                                                   \
  static const char* fakeDescribe(void) {                                                         \
    return FAKE_DESCRIBE;                                                                         \
  }                                                                                               \
  static muster_status fakeOpen(const muster_host* host, const char* context, void** session) {   \
    Fake* fake = (Fake*)calloc(1, sizeof *fake);                                                  \
    fake->host = host;                                                                            \
    snprintf(fake->context, sizeof fake->context, "%s", context);                                 \
    *session = fake;                                                                              \
    return MUSTER_OK;                                                                             \
  }                                                                                               \
  static muster_status fakeRun(void* session, const char* json) {                                 \
    return runFunction((Fake*)session, json);                                                     \
  }                                                                                               \
  static void fakeClose(void* session) {                                                          \
    free(session);                                                                                \
  }                                                                                               \
  FAKE_LINKAGE MUSTER_EXPORT const muster_plugin_ops* muster_plugin_entry(uint32_t hostMinor) {   \
    static const muster_plugin_ops ops = {                                                        \
        sizeof(muster_plugin_ops), MUSTER_ABI_MINOR, fakeDescribe, fakeOpen, fakeRun, fakeClose}; \
    (void)hostMinor;                                                                              \
    return &ops;                                                                                  \
  }

/* A whole plugin whose test calls `runFunction(fake, case_json)`. */
#define FAKE_PLUGIN(pluginName, runFunction)                                                                 \
  FAKE_INFO(pluginName, MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR, MUSTER_ABI_MINOR) \
  FAKE_ENTRY(runFunction)

#endif
