/* SPDX-License-Identifier: Apache-2.0 */
/* Writes its own bytes between the frames of the host. */
#include <unistd.h>

#include "tests/fakes/fake.h"

static void say(const char* text) {
  fakeWrite(text, strlen(text));
}

static void endlessFrame(void) {
  static char block[65536];
  memset(block, 0x61, sizeof block);
  for (int i = 0; i < 1024; ++i) fakeWrite(block, sizeof block);
}

static void hugeFrame(void) {
  say("{\"type\":\"log\",\"level\":\"info\",\"text\":\"");
  static char block[65536];
  memset(block, 0x61, sizeof block);
  for (int i = 0; i < 32; ++i) fakeWrite(block, sizeof block);
  say("\"}\n");
}

static void deepFrame(void) {
  static char brackets[100001];
  memset(brackets, '[', sizeof brackets);
  brackets[sizeof brackets - 1] = '\n';
  fakeWrite(brackets, sizeof brackets);
}

/* As the host says what it could not start, at great length. */
static void endlessReason(void) {
  static char reason[900000];
  memset(reason, 'A', sizeof reason);
  say("{\"type\":\"fatal\",\"message\":\"");
  fakeWrite(reason, sizeof reason);
  say("\"}\n");
  _exit(1);
}

static muster_status run(Fake* fake, const char* json) {
  const muster_status status = fakeReport(fake, fakeNumber(json, "value", 1));
  switch ((int)fakeNumber(json, "kind", 0)) {
    case 0: /* done twice: once now, once by the host */
      say("{\"type\":\"case\",\"case\":0,\"event\":\"end\",\"state\":\"ok\",\"message\":\"\",\"remedy\":\"\"}"
          "\n"
          "{\"type\":\"done\",\"cases\":1}\n");
      break;
    case 1: /* torn frame */
      say("{\"type\":\"progress\",\"ca");
      _exit(0);
    case 2:
      endlessFrame();
      break;
    case 3:
      hugeFrame();
      break;
    case 4:
      say("this is not JSON\n");
      break;
    case 5:
      deepFrame();
      break;
    case 6:
      say("{\"type\":\"mystery\"}\n");
      break;
    case 7:
      say("{\"type\":\"measurement\",\"case\":7,\"metric\":\"value\",\"unit\":\"count\",\"labels\":{},"
          "\"samples\":[1],\"time\":0}\n");
      break;
    case 8:
      say("{\"type\":\"measurement\",\"case\":0,\"metric\":\"value\",\"unit\":\"count\",\"labels\":{},"
          "\"samples\":[\"many\"],\"time\":0}\n");
      break;
    case 9:
      say("{\"type\":\"done\",\"cases\":0}\n");
      break;
    case 10:
      say("{\"type\":\"log\",\"level\":\"info\",\"text\":\"\xff\xfe\"}\n");
      break;
    case 11:
      endlessReason();
      break;
    default:
      break;
  }
  return status;
}

FAKE_PLUGIN("fake-raw", run)
