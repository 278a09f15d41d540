/* SPDX-License-Identifier: Apache-2.0 */
/* A library that calls itself a backend and exports nothing. */
int muster_no_backend(void) {
  return 0;
}
