/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: rules that look at a path alone, whoever said it. */
#include "workspace/names.h"

#include <limits.h>
#include <string.h>

static gboolean component_is_proper(const char *component, gsize length) {
  return length > 0 && !(length == 1 && component[0] == '.') &&
         !(length == 2 && component[0] == '.' && component[1] == '.');
}

gboolean name_is_proper(const char *path, gsize length) {
  if (length == 0 || length >= PATH_MAX || memchr(path, '\0', length)) {
    return FALSE;
  }
  gsize begin = 0;
  for (gsize at = 0; at <= length; at++) {
    if (at == length || path[at] == '/') {
      if (!component_is_proper(path + begin, at - begin)) {
        return FALSE;
      }
      begin = at + 1;
    }
  }
  return TRUE;
}

gboolean name_is_hidden(const char *path, gsize length) {
  return length > 0 && (path[0] == '.' || memmem(path, length, "/.", 2) != NULL);
}

gboolean name_is_run_record(const char *path) {
  const char *name = strrchr(path, '/');
  if (!name || (strcmp(name, "/run.json") != 0 && strcmp(name, "/events.jsonl") != 0)) {
    return FALSE;
  }
  const char *parent = name;
  while (parent > path && parent[-1] != '/') {
    parent--;
  }
  return g_str_has_prefix(parent, "run_");
}
