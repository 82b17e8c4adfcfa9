/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folders.c: an installation may be moved as a whole, so its parts are looked for beside the library or program
 * that runs; only then in the prefix of the build.
 */
#include "provider/folders.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/build.h"

/* path without its last count components; NULL when it has none left. */
static char *climb(const char *path, guint count) {
  g_autofree char *at = g_strdup(path);
  for (guint i = 0; i < count; i++) {
    char *slash = strrchr(at, '/');
    if (!slash) {
      return NULL;
    }
    *slash = '\0';
  }
  return g_steal_pointer(&at);
}

static guint components(const char *relative) {
  guint count = 1;
  for (const char *at = relative; *at; at++) {
    count += *at == '/';
  }
  return count;
}

/* The file that an address was loaded from, as the kernel knows it. Owned; NULL: not known. */
static char *mapped_file(const void *address) {
  g_autofree char *maps = NULL;
  if (!g_file_get_contents("/proc/self/maps", &maps, NULL, NULL)) {
    return NULL;
  }
  g_auto(GStrv) lines = g_strsplit(maps, "\n", -1);
  for (gsize i = 0; lines[i]; i++) {
    char *rest = NULL;
    guint64 from = g_ascii_strtoull(lines[i], &rest, 16);
    guint64 to = *rest == '-' ? g_ascii_strtoull(rest + 1, NULL, 16) : 0;
    if ((uintptr_t)address >= from && (uintptr_t)address < to) {
      return g_strdup(strchr(lines[i], '/')); /* nothing before the path has a slash */
    }
  }
  return NULL;
}

/* The file with this code. A library that was found along a relative path has a relative name, of a folder that need
 * not be the current one any more. Owned; NULL: not known. */
static char *own_file(void) {
  static const char here = 0; /* an address of this code */
  Dl_info info;
  if (dladdr(&here, &info) && info.dli_fname && info.dli_fname[0] == '/') {
    return g_strdup(info.dli_fname);
  }
  return mapped_file(&here);
}

/* The prefix that a shared library with this code lies in: LIBDIR is what the providers' folder begins with. */
static char *prefix_of_library(const char *program) {
  g_autofree char *file = own_file();
  g_autofree char *library = file ? realpath(file, NULL) : NULL;
  if (!library || g_strcmp0(library, program) == 0) {
    return NULL;
  }
  /* LIBDIR/sandhost/providers: two less; and the library's own name: one more. */
  return climb(library, components(SANDHOST_PROVIDERS_DIR) - 2 + 1);
}

/* The prefix whose relative folder exists, in the order library, program, build. Owned; NULL: none. */
static char *find_folder(const char *relative) {
  g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
  g_autofree char *beside_library = prefix_of_library(program);
  g_autofree char *beside_program = program ? climb(program, 2) : NULL;
  const char *const prefixes[] = {beside_library, beside_program, SANDHOST_PREFIX};
  for (gsize i = 0; i < G_N_ELEMENTS(prefixes); i++) {
    g_autofree char *folder = prefixes[i] ? g_build_filename(prefixes[i], relative, NULL) : NULL;
    if (folder && g_file_test(folder, G_FILE_TEST_IS_DIR)) {
      return g_steal_pointer(&folder);
    }
  }
  return NULL;
}

char **folders_of_providers(void) {
  g_autoptr(GPtrArray) folders = g_ptr_array_new();
  const char *path = secure_getenv("SANDHOST_PLUGIN_PATH");
  g_auto(GStrv) given = g_strsplit(path ? path : "", ":", -1);
  for (gsize i = 0; given[i]; i++) {
    if (g_path_is_absolute(given[i])) { /* what depends on the current folder is nobody's choice */
      g_ptr_array_add(folders, g_strdup(given[i]));
    }
  }
  char *installed = find_folder(SANDHOST_PROVIDERS_DIR);
  g_ptr_array_add(folders, installed
                               ? installed
                               : g_build_filename(SANDHOST_PREFIX, SANDHOST_PROVIDERS_DIR, NULL));
  g_ptr_array_add(folders, NULL);
  return (char **)g_ptr_array_free(g_steal_pointer(&folders), FALSE);
}

char *folder_of_guests(void) {
  char *folder = find_folder(SANDHOST_GUEST_DIR);
  return folder ? folder : g_strdup("");
}
