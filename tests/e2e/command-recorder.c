/* SPDX-License-Identifier: Apache-2.0 */
/* command-recorder.c: what every program is while lines are tried in real shells. Writes the words that it
 * was started with, each ended by NUL, as one record behind its length, and ends as it is told to. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG 9 /* appended to */

int main(int argc, char **argv) {
  static char record[1 << 18];
  uint32_t used = sizeof used;
  for (int i = 0; i < argc; i++) {
    size_t length = strlen(argv[i]) + 1;
    if (used + length > sizeof record) {
      return 99;
    }
    memcpy(record + used, argv[i], length);
    used += (uint32_t)length;
  }
  uint32_t bytes = used - (uint32_t)sizeof used;
  memcpy(record, &bytes, sizeof bytes);
  if (write(LOG, record, used) != (ssize_t)used) {
    return 99;
  }
  const char *status = getenv("RECORDER_STATUS");
  return status && *status == '1' ? 1 : 0;
}
