/* SPDX-License-Identifier: Apache-2.0 */
/* check-kept.c: a file as it was asked for, and as it was. */
#include "suite.h"

static void check_exact_modes(Subject *subject, Verdict *verdict) {
  static const guint32 MODES[] = {0444, 0600, 0640, 0755};
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(MODES); i++) {
    g_autofree char *name = g_strdup_printf("mode-%03o", MODES[i]);
    g_autofree char *path = below(&box, name);
    gint32 status = write_from(&box, path, "x", 1, MODES[i]);
    if (status != SANDHOST_OK) {
      wrong(verdict, "write_file with mode 0%03o returned %s", MODES[i], status_name(status));
    }
  }
  want_run(&box, "for f in mode-*; do ls -l $f | cut -c 1-10; done", 0,
           "-r--r--r--\n-rw-------\n-rw-r-----\n-rwxr-xr-x\n", verdict);
  box_close(&box, verdict);
}

static void check_read_only(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *path = below(&box, "old");
  GString *content = g_string_new(NULL);
  want_run(&box, "echo old > old; touch -t 200102030405 old; : > mark; touch -t 200102030406 mark",
           0, "", verdict);
  gint32 status = read_into(&box, path, content);
  if (status != SANDHOST_OK) {
    wrong(verdict, "read_file returned %s", status_name(status));
  }
  want_run(&box, "find old -newer mark; cat old", 0, "old\n", verdict);
  g_string_free(content, TRUE);
  box_close(&box, verdict);
}

const Check KEPT_CHECKS[] = {
    {"files: exact modes", "a file has the permission bits that write_file is given",
     check_exact_modes},
    {"files: read only", "read_file leaves the file as it is", check_read_only},
    {0},
};
