/* SPDX-License-Identifier: Apache-2.0 */
/* true.c: the least that can be started. */
int main(void) {
  return 0;
}
