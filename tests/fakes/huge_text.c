/* SPDX-License-Identifier: Apache-2.0 */
/* Sends texts of 10 MiB wherever a text is taken. */
#include "tests/fakes/fake.h"

/* kind 0: log and progress; 1: a measurement; 2: the error text. */
static muster_status run(Fake* fake, const char* json) {
  const size_t size = 10u << 20;
  char* text = (char*)malloc(size + 1);
  memset(text, 0x61, size);
  text[size] = 0;
  const muster_host* host = fake->host;
  muster_measurement m;
  memset(&m, 0, sizeof m);
  m.struct_size = sizeof m;
  m.metric = "value";
  m.unit = "text";
  m.text = text;
  m.time = -1;
  muster_status status = MUSTER_OK;
  switch ((int)fakeNumber(json, "kind", 0)) {
    case 0:
      host->log(host->context, MUSTER_LOG_WARNING, text);
      host->progress(host->context, 0.5, text);
      status = fakeReport(fake, fakeNumber(json, "value", 1));
      break;
    case 1:
      status = host->measurement(host->context, &m);
      break;
    default:
      host->error(host->context, text, text);
      status = MUSTER_ERROR;
      break;
  }
  free(text);
  return status;
}

FAKE_PLUGIN("fake-huge-text", run)
