/* SPDX-License-Identifier: Apache-2.0 */
/* Finds nodes of a Slurm sick, by the bits of `kind`: 5 is node1 and node3, whose figure is 0. With 16 more,
 * all are well, and node1 and both ends name the link between the first two of these as bad; with 32 more,
 * node1 alone does; with 64 more, the first of them has no figure. */
#include "tests/fakes/fake.h"

static const char* sickDescribe(void) {
  return "{\"tests\": [{\"name\": \"run\", \"summary\": \"finds nodes sick\","
         " \"backends\": [\"host\"], \"scopes\": [\"device\", \"node\", \"cluster\"], \"params\": ["
         "{\"name\": \"kind\", \"type\": \"int\", \"default\": 0, \"min\": 0, \"max\": 127,"
         " \"summary\": \"which nodes\"}],"
         " \"metrics\": [{\"name\": \"value\", \"unit\": \"count\", \"direction\": \"higher\", \"labels\": "
         "[],"
         " \"summary\": \"1 of a healthy node\"},"
         " {\"name\": \"culprits\", \"unit\": \"count\", \"direction\": \"lower\","
         " \"labels\": [\"culprit\", \"kind\"], \"optional\": true, \"summary\": \"bad links\"}]}]}";
}

static muster_status reportLink(const Fake* fake, int kind, int bad) {
  int ends[2] = {0, 0}, found = 0;
  for (int node = 1; node <= 4 && found < 2; ++node)
    if ((kind >> (node - 1)) & 1) ends[found++] = node;
  if (found < 2) return MUSTER_OK;
  char link[64];
  snprintf(link, sizeof link, "link node%d - node%d", ends[0], ends[1]);
  const muster_label labels[] = {{"culprit", bad ? link : "none"}, {"kind", bad ? "link" : "none"}};
  const double count = bad;
  muster_measurement m;
  memset(&m, 0, sizeof m);
  m.struct_size = sizeof m;
  m.metric = "culprits";
  m.unit = "count";
  m.labels = labels;
  m.label_count = 2;
  m.samples = &count;
  m.sample_count = 1;
  m.time = -1;
  return fake->host->measurement(fake->host->context, &m);
}

static muster_status sickRun(void* session, const char* json) {
  const Fake* fake = (const Fake*)session;
  const int kind = (int)fakeNumber(json, "kind", 0);
  const char* name = getenv("SLURMD_NODENAME");
  const int node = name != NULL && strncmp(name, "node", 4) == 0 ? atoi(name + 4) : 0;
  if (kind >= 16) {
    const int isEnd = !(kind & 32) && node > 0 && ((kind >> (node - 1)) & 1);
    if (reportLink(fake, kind, node == 1 || isEnd) != MUSTER_OK) return MUSTER_ERROR;
    const int first = kind & 1 ? 1 : kind & 2 ? 2 : 3;
    if ((kind & 64) && node == first) return MUSTER_OK;
    return fakeReport(fake, 1);
  }
  return fakeReport(fake, node > 0 && ((kind >> (node - 1)) & 1) ? 0 : 1);
}

static muster_status sickOpen(const muster_host* host, const char* context, void** session) {
  Fake* fake = (Fake*)calloc(1, sizeof *fake);
  fake->host = host;
  snprintf(fake->context, sizeof fake->context, "%s", context);
  *session = fake;
  return MUSTER_OK;
}

static void sickClose(void* session) {
  free(session);
}

FAKE_INFO("fake-sick", MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR, MUSTER_ABI_MINOR)

MUSTER_EXPORT const muster_plugin_ops* muster_plugin_entry(uint32_t hostMinor) {
  static const muster_plugin_ops ops = {
      sizeof(muster_plugin_ops), MUSTER_ABI_MINOR, sickDescribe, sickOpen, sickRun, sickClose};
  (void)hostMinor;
  return &ops;
}
