/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c: selecting and replacing; a name is never longer than what stands before the =. */
#include "environment.h"

#include <string.h>

/* What programs need to work at all, and nothing that is a credential. */
static const char *const base_names[] = {"PATH",   "HOME", "USER",   "LOGNAME", "LANG",
                                         "LC_ALL", "TERM", "TMPDIR", "TZ"};

static gboolean has_name(const char *variable, const char *name, size_t length) {
  return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

static gboolean is_selected(const char *variable, const struct sandhost_pair *names,
                            size_t name_count) {
  for (size_t i = 0; i < G_N_ELEMENTS(base_names); i++) {
    if (has_name(variable, base_names[i], strlen(base_names[i]))) {
      return TRUE;
    }
  }
  for (size_t i = 0; i < name_count; i++) {
    if (has_name(variable, names[i].name.data, names[i].name.length)) {
      return TRUE;
    }
  }
  return FALSE;
}

char **environment_select(char *const *all, const struct sandhost_pair *names, size_t name_count) {
  GPtrArray *list = g_ptr_array_new();
  for (size_t i = 0; all[i]; i++) {
    if (is_selected(all[i], names, name_count)) {
      g_ptr_array_add(list, g_strdup(all[i]));
    }
  }
  g_ptr_array_add(list, NULL);
  return (char **)g_ptr_array_free(list, FALSE);
}

char **environment_add(char *const *base, const struct sandhost_pair *pairs, size_t pair_count) {
  GPtrArray *list = g_ptr_array_new();
  for (size_t i = 0; base[i]; i++) {
    gboolean replaced = FALSE;
    for (size_t j = 0; j < pair_count && !replaced; j++) {
      replaced = has_name(base[i], pairs[j].name.data, pairs[j].name.length);
    }
    if (!replaced) {
      g_ptr_array_add(list, g_strdup(base[i]));
    }
  }
  for (size_t i = 0; i < pair_count; i++) {
    g_ptr_array_add(list, g_strdup_printf("%.*s=%.*s", (int)pairs[i].name.length,
                                          pairs[i].name.data, (int)pairs[i].value.length,
                                          pairs[i].value.length > 0 ? pairs[i].value.data : ""));
  }
  g_ptr_array_add(list, NULL);
  return (char **)g_ptr_array_free(list, FALSE);
}
