/* SPDX-License-Identifier: Apache-2.0 */
/* Its table lacks run(). */
#include "tests/fakes/fake.h"

FAKE_INFO("fake-empty-slot", MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR,
          MUSTER_ABI_MINOR)
static const char* describe(void) {
  return FAKE_DESCRIBE;
}
static muster_status open(const muster_host* host, const char* context, void** session) {
  (void)host, (void)context, (void)session;
  return MUSTER_OK;
}
static void close(void* session) {
  (void)session;
}
const muster_plugin_ops* muster_plugin_entry(uint32_t hostMinor) {
  static const muster_plugin_ops ops = {sizeof ops, MUSTER_ABI_MINOR, describe, open, NULL, close};
  (void)hostMinor;
  return &ops;
}
