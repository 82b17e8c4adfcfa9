/* SPDX-License-Identifier: Apache-2.0 */
/* sleepers.c: finds the processes of a sandbox among this machine's. */
#include "sleepers.h"

#include <string.h>

/* Whether the process of an entry of /proc is sleep with that word. */
static gboolean is_sleeper(const char *pid, const char *word) {
  g_autofree char *file = g_build_filename("/proc", pid, "cmdline", NULL);
  g_autofree char *words = NULL;
  gsize length = 0;
  return g_ascii_isdigit(*pid) && g_file_get_contents(file, &words, &length, NULL) &&
         length == strlen("sleep") + strlen(word) + 2 && strcmp(words, "sleep") == 0 &&
         strcmp(words + strlen("sleep") + 1, word) == 0;
}

guint sleepers_count(const char *word) {
  guint count = 0;
  GDir *processes = g_dir_open("/proc", 0, NULL);
  for (const char *pid = NULL; processes && (pid = g_dir_read_name(processes));) {
    count += is_sleeper(pid, word) ? 1 : 0;
  }
  g_clear_pointer(&processes, g_dir_close);
  return count;
}
