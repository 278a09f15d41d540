/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that needs a library which is nowhere. */
int fakeGone(void);
int muster_needy_backend(void) {
  return fakeGone();
}
