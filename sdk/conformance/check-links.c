/* SPDX-License-Identifier: Apache-2.0 */
/* check-links.c: a link that stays inside the working directory may be followed, or be refused as one that leads out. */
#include <string.h>

#include "suite.h"

static void judge_path(Box *box, const char *name, Verdict *verdict) {
  g_autofree char *path = below(box, name);
  GString *content = g_string_new(NULL);
  gint32 status = read_into(box, path, content);
  if (status == SANDHOST_OK ? strcmp(content->str, "inner\n") != 0 : content->len > 0) {
    wrong(verdict, "read_file of '%s' returned %s and '%.100s'", name, status_name(status),
          content->str);
  } else if (status != SANDHOST_OK && status != SANDHOST_INVALID) {
    wrong(verdict, "read_file of '%s' returned %s instead of OK or INVALID", name,
          status_name(status));
  }
  g_string_free(content, TRUE);
}

static void check_inner_links(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box, "mkdir dir; echo inner > dir/file; ln -s dir/file link; ln -s dir way", 0, "",
           verdict);
  judge_path(&box, "link", verdict);
  judge_path(&box, "way/file", verdict);
  box_close(&box, verdict);
}

const Check LINK_CHECKS[] = {
    {"files: inner links", "a link that stays inside is followed, or INVALID", check_inner_links},
    {0},
};
