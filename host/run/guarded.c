/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.c: places are compared as they are written and as they are with their links resolved, so that neither a link
 * nor what it leads to can be replaced. */
#include "run/guarded.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

char *guarded_resolve(const char *path) {
  char *real = realpath(path, NULL);
  char *copy = g_strdup(real);
  free(real);
  if (copy) {
    return copy;
  }
  g_autofree char *whole = g_canonicalize_filename(path, NULL);
  g_autofree char *folder = g_path_get_dirname(whole);
  g_autofree char *name = g_path_get_basename(whole);
  if (strcmp(folder, whole) == 0) {
    return g_steal_pointer(&whole);
  }
  g_autofree char *above = guarded_resolve(folder);
  return g_build_filename(above, name, NULL);
}

/* Both ways to write each place down. */
static void add_place(GPtrArray *places, const char *path) {
  if (path) {
    g_ptr_array_add(places, g_canonicalize_filename(path, NULL));
    g_ptr_array_add(places, guarded_resolve(path));
  }
}

static gboolean is_same_or_below(const char *path, const char *folder) {
  gsize length = strlen(folder);
  return strncmp(path, folder, length) == 0 &&
         (length == 1 || path[length] == '\0' || path[length] == '/');
}

static gboolean any_below(const GPtrArray *places, const char *folder) {
  if (places->len == 0) {
    return FALSE;
  }
  g_autofree char *lexical = g_canonicalize_filename(folder, NULL);
  g_autofree char *real = guarded_resolve(folder);
  for (guint i = 0; i < places->len; i++) {
    const char *place = g_ptr_array_index(places, i);
    if (is_same_or_below(place, lexical) || is_same_or_below(place, real)) {
      return TRUE;
    }
  }
  return FALSE;
}

/* The program that is asked about approvers, and what it is given to run. */
static void add_approver(GPtrArray *places, const Config *config) {
  for (gsize i = 0; config->approver_check && config->approver_check[i]; i++) {
    const char *word = config->approver_check[i];
    add_place(places, g_path_is_absolute(word) ? word : NULL);
  }
}

GPtrArray *guarded_places(const Config *config, const Policy *policy) {
  GPtrArray *places = g_ptr_array_new_with_free_func(g_free);
  add_place(places, config->file);
  add_place(places, config->policy_path);
  add_place(places, policy ? policy_file(policy) : NULL);
  add_approver(places, config);
  return places;
}

/* Whether a place is where path would need a folder. */
static gboolean any_above(const GPtrArray *places, const char *path) {
  for (guint i = 0; i < places->len; i++) {
    if (is_same_or_below(path, g_ptr_array_index(places, i))) {
      return TRUE;
    }
  }
  return FALSE;
}

/* One that is not there yet would be found by the next run, also a folder of its name, which the run would refuse. */
static gboolean would_be_found(const Config *config, const char *written) {
  g_autoptr(GPtrArray) places = g_ptr_array_new_with_free_func(g_free);
  g_autofree char *base = g_path_get_basename(written);
  for (const char *const *name = POLICY_DISCOVERED_NAMES; config->profile && *name; name++) {
    g_autofree char *found = g_build_filename(config->project_root, *name, NULL);
    g_autofree char *last = g_path_get_basename(found);
    if (g_str_has_suffix(found, base) || strstr(written, last)) {
      add_place(places, found);
    }
  }
  if (places->len == 0) {
    return FALSE;
  }
  g_autofree char *lexical = g_canonicalize_filename(written, NULL);
  g_autofree char *real = guarded_resolve(written);
  return any_below(places, written) || any_above(places, lexical) || any_above(places, real);
}

/* The workspace is the folder that was opened when the run began. By now a link may stand at its path, so what it was is
 * asked, too. */
static gboolean is_either(const Harness *harness, const char *path,
                          gboolean (*is)(const Harness *harness, const char *written)) {
  g_autofree char *written = g_build_filename(harness->config->files_dir, path, NULL);
  g_autofree char *before = g_build_filename(harness->files_dir, path, NULL);
  return is(harness, written) || (strcmp(written, before) != 0 && is(harness, before));
}

static gboolean is_used(const Harness *harness, const char *written) {
  return any_below(harness->guarded, written);
}

static gboolean is_used_or_found(const Harness *harness, const char *written) {
  return is_used(harness, written) || would_be_found(harness->config, written);
}

gboolean guarded_is(const Harness *harness, const char *path) {
  return is_either(harness, path, is_used_or_found);
}

gboolean guarded_is_used(const Harness *harness, const char *path) {
  return is_either(harness, path, is_used);
}

/* What the folder holds that nobody but a person may change; NULL: nothing. Constant. */
static const char *held_by(const Harness *harness, const char *folder) {
  g_autoptr(GPtrArray) approver = g_ptr_array_new_with_free_func(g_free);
  add_approver(approver, harness->config);
  if (harness->policy && policy_file_is_below(harness->policy, folder)) {
    return "governance policy";
  }
  if (any_below(approver, folder)) {
    return "approver_check";
  }
  return any_below(harness->guarded, folder) ? "configuration" : NULL;
}

gboolean guarded_check_mount(const Harness *harness, GError **error) {
  const ManifestMount *mount = harness->config->manifest->mount;
  if (!mount || !mount->writable) {
    return TRUE;
  }
  const char *what = held_by(harness, mount->source);
  if (!what) {
    return TRUE;
  }
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
              "%s contains the %s file and cannot be mounted read-write; mount it read-only or "
              "keep the %s elsewhere",
              mount->source, what, strcmp(what, "governance policy") == 0 ? "policy" : what);
  return FALSE;
}
