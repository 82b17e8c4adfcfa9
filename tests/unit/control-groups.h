/* SPDX-License-Identifier: Apache-2.0 */
/* control-groups.h: whether this machine leaves a test no excuse to go without control groups. */
#ifndef SANDHOST_TESTS_CONTROL_GROUPS_H
#define SANDHOST_TESTS_CONTROL_GROUPS_H

#include <glib.h>
#include <unistd.h>

/* Of root, who may write at the top of what the kernel shows. A user may have been given a group, or
 * not. */
static inline gboolean control_groups_are_ours(const char *controller) {
  g_autofree char *first = g_strdup_printf("/sys/fs/cgroup/%s/cgroup.procs", controller);
  g_autofree char *offered = NULL;
  if (geteuid() != 0) {
    return FALSE;
  }
  if (!g_file_get_contents("/sys/fs/cgroup/cgroup.controllers", &offered, NULL, NULL)) {
    return access(first, W_OK) == 0;
  }
  /* A top with a type is that of a container, which may have nothing to pass on. */
  g_auto(GStrv) words = g_strsplit_set(offered, " \n", -1);
  return access("/sys/fs/cgroup/cgroup.type", F_OK) < 0 &&
         access("/sys/fs/cgroup/cgroup.subtree_control", W_OK) == 0 &&
         g_strv_contains((const char *const *)words, controller);
}

#endif
