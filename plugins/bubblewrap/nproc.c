/* SPDX-License-Identifier: Apache-2.0 */
/* nproc.c: what this kernel counts. */
#include "nproc.h"

#include <sys/utsname.h>

gboolean nproc_works(void) {
  struct utsname system;
  char *rest = NULL;
  if (uname(&system) < 0) {
    return FALSE;
  }
  guint64 major = g_ascii_strtoull(system.release, &rest, 10);
  guint64 minor = *rest == '.' ? g_ascii_strtoull(rest + 1, NULL, 10) : 0;
  return major > 5 || (major == 5 && minor >= 14);
}
