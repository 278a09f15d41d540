/* SPDX-License-Identifier: Apache-2.0 */
/* Reports what cannot be true. */
#include <math.h>
#include <stddef.h>

#include "tests/fakes/fake.h"

static muster_status report(const Fake* fake, const char* metric, const char* unit, double value,
                            uint64_t count) {
  muster_measurement m;
  memset(&m, 0, sizeof m);
  m.struct_size = sizeof m;
  m.metric = metric;
  m.unit = unit;
  m.samples = &value;
  m.sample_count = count;
  m.time = -1;
  return fake->host->measurement(fake->host->context, &m);
}

static muster_status run(Fake* fake, const char* json) {
  const double value = fakeNumber(json, "value", 1);
  switch ((int)fakeNumber(json, "kind", 0)) {
    case 0:
      return report(fake, "value", "count", NAN, 1);
    case 1:
      return report(fake, "value", "count", INFINITY, 1);
    case 2:
      return report(fake, "value", "s", -1, 1); /* another unit than declared, and negative */
    case 3:
      return MUSTER_OK; /* no measurement at all */
    case 4:
      return report(fake, "value", "count", value, 0);
    case 5:
      return report(fake, "undeclared", "count", value, 1);
    case 6:
      return report(fake, "value", "s", value, 1);
    case 7:
      return report(fake, NULL, "count", value, 1);
    case 8:
      return report(fake, "value", "count", value, 1u << 30); /* does not fit a frame; must not be read */
    case 9:
      return fake->host->measurement(fake->host->context, NULL);
    case 10:
      return report(fake, "value\xff\n\x1b[31m", "count", value, 1);
    case 11:
      return (muster_status)77;
    case 12:
      return MUSTER_CANCELLED;
    case 13:
      fake->host->measurement(fake->host->context, NULL);
      return MUSTER_OK; /* and hides the refusal */
    case 14: {          /* a plugin of ABI 1.0 ends before `times`: what follows is not the host's to read */
      muster_measurement m;
      memset(&m, 0xff, sizeof m);
      m.struct_size = offsetof(muster_measurement, times);
      m.label_count = 0;
      m.metric = "value";
      m.unit = "count";
      m.samples = &value;
      m.sample_count = 1;
      m.text = NULL;
      m.time = -1;
      return fake->host->measurement(fake->host->context, &m);
    }
    default:
      return MUSTER_BAD_PARAMETER;
  }
}

FAKE_PLUGIN("fake-lies", run)
