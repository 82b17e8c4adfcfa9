/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c: bwrap says which system call failed; the kernel's settings say why. */
#include "advice.h"

#include <string.h>

/* A setting that, at this value, keeps ordinary users from making namespaces. */
struct setting {
  const char *file;
  const char *value;
  const char *advice;
};

static const struct setting settings[] = {
    {"kernel/unprivileged_userns_clone", "0",
     "user namespaces are off; turn them on with: sysctl -w kernel.unprivileged_userns_clone=1"},
    {"user/max_user_namespaces", "0",
     "user namespaces are off; turn them on with: sysctl -w user.max_user_namespaces=15000"},
    {"kernel/apparmor_restrict_unprivileged_userns", "1",
     "AppArmor restricts user namespaces; give bwrap a profile that allows them, as "
     "sandhost-bubblewrap(5) says, or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
};

static gboolean has_value(const char *sys, const struct setting *setting) {
  g_autofree char *path = g_build_filename(sys, setting->file, NULL);
  g_autofree char *text = NULL;
  return g_file_get_contents(path, &text, NULL, NULL) &&
         strcmp(g_strstrip(text), setting->value) == 0;
}

/* Whether it is the making of namespaces, or what comes with it, that was refused. */
static gboolean is_refusal(const char *complaint) {
  static const char *const signs[] = {"namespace",         "uid map",
                                      "gid map",           "Operation not permitted",
                                      "Permission denied", "No space left on device"};
  for (size_t i = 0; i < G_N_ELEMENTS(signs); i++) {
    if (strstr(complaint, signs[i])) {
      return TRUE;
    }
  }
  return FALSE;
}

char *advice_for_complaint(const char *complaint, const char *bwrap, const char *sys) {
  const char *words = g_str_has_prefix(complaint, "bwrap: ") ? complaint + 7 : complaint;
  if (!words[0]) {
    return g_strdup_printf("bubblewrap (%s) ended without a word before the sandbox was there",
                           bwrap);
  }
  if (strstr(words, "Unknown option")) {
    return g_strdup_printf("bubblewrap (%s) is too old, version 0.7 or newer is needed: %s", bwrap,
                           words);
  }
  if (strstr(words, "Resource temporarily unavailable")) {
    return g_strdup_printf("bubblewrap found no room for another process: the limit of this user's "
                           "processes (ulimit -u) is reached (%s)",
                           words);
  }
  if (!is_refusal(words)) {
    return g_strdup_printf("bubblewrap could not make the sandbox: %s", words);
  }
  for (size_t i = 0; i < G_N_ELEMENTS(settings); i++) {
    if (has_value(sys, &settings[i])) {
      return g_strdup_printf("bubblewrap may not make a sandbox: %s (%s)", settings[i].advice,
                             words);
    }
  }
  return g_strdup_printf("bubblewrap may not make a sandbox: the container or a security policy "
                         "that sandhost runs under forbids namespaces or mounts (%s)",
                         words);
}

char *advice_for_missing(const char *bwrap) {
  if (!bwrap) {
    return g_strdup("bubblewrap is not installed; install it with: apt install bubblewrap");
  }
  return g_strdup_printf("bubblewrap is not at %s; install it with: apt install bubblewrap, or set "
                         "the bubblewrap sandbox option 'bwrap' to where it is",
                         bwrap);
}

gboolean advice_is_about(const char *complaint, const char *option) {
  return strstr(complaint, option) != NULL;
}
