/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into missing_library.c, and found by no loader: its soname is no file. */
__attribute__((visibility("default"))) int fakeGone(void) {
  return 1;
}
