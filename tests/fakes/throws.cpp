/* SPDX-License-Identifier: Apache-2.0 */
/* Throws a C++ exception through the C border. */
#include <stdexcept>

#include "tests/fakes/fake.h"

namespace {
muster_status run(Fake*, const char* json) {
  if (fakeNumber(json, "kind", 0) == 1) throw 42;
  throw std::runtime_error("thrown by fake-throws");
}
}  // namespace

FAKE_PLUGIN("fake-throws", run)
