/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-list.c: bounded while it arrives, checked as a whole when it is complete. */
#include "workspace/sandbox-list.h"

#include <string.h>

#include "base/error.h"
#include "workspace/names.h"

/* More than this is no workspace any more. Both bound what a sandbox can make the host remember; and the first one, for
 * how long, so that what is not remembered counts too. */
#define MAX_FILES 200000u
#define MAX_PATH_MEBIBYTES 64u
#define MAX_PATH_BYTES ((gsize)MAX_PATH_MEBIBYTES * 1024 * 1024)
/* Paths are allocated together in so many bytes, whose end is lost where the next one does not fit. */
#define PATH_CHUNK 65536u

struct SandboxList {
  GArray *files;       /* SandboxFile */
  GStringChunk *paths; /* owns the paths */
  gsize path_bytes;
  guint told;    /* entries that came */
  GError *error; /* why the listing was stopped */
};

static int32_t refuse(SandboxList *list, const char *what, const char *path) {
  if (!list->error) {
    g_autofree char *valid = g_utf8_make_valid(path, -1);
    g_set_error(&list->error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
                "could not read the sandbox's files: %s: '%s'", what, valid);
  }
  return SANDHOST_CANCELLED;
}

static int32_t refuse_many(SandboxList *list) {
  if (!list->error) {
    g_set_error(&list->error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
                "could not read the sandbox's files: more than %u files changed", MAX_FILES);
  }
  return SANDHOST_CANCELLED;
}

static int32_t refuse_long(SandboxList *list) {
  if (!list->error) {
    g_set_error(&list->error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
                "could not read the sandbox's files: more than %u MiB of names of changed files",
                MAX_PATH_MEBIBYTES);
  }
  return SANDHOST_CANCELLED;
}

static void set_version(SandboxFile *file, const struct sandhost_entry *entry) {
  if (file->has_digest) {
    memcpy(file->digest, entry->sha256, DIGEST_BYTES);
    memcpy(file->version, entry->sha256, DIGEST_BYTES);
  } else {
    memcpy(file->version, &entry->bytes, sizeof entry->bytes);
    memcpy(file->version + sizeof entry->bytes, &entry->mtime, sizeof entry->mtime);
  }
}

/* sandhost_entry_sink; in the provider's thread while sandbox_list_get waits for it. */
static int32_t take_entry(void *user, const struct sandhost_entry *entry) {
  SandboxList *list = user;
  if (list->error) {
    return SANDHOST_CANCELLED;
  }
  if (list->told++ >= MAX_FILES) {
    return refuse_many(list);
  }
  if (entry->kind != SANDHOST_KIND_FILE && entry->kind != SANDHOST_KIND_CHECKOUT) {
    return SANDHOST_OK; /* a kind of a later contract */
  }
  gsize length = entry->path.length;
  if (!name_is_proper(entry->path.data, length)) {
    g_autofree char *start = g_strndup(entry->path.data, MIN(length, 200));
    return refuse(list, "a path that leads out of the working directory", start);
  }
  if (name_is_hidden(entry->path.data, length)) {
    return SANDHOST_OK;
  }
  if (length >= MAX_PATH_BYTES - list->path_bytes) {
    return refuse_long(list);
  }
  list->path_bytes += length + 1;
  SandboxFile file = {
      .path = g_string_chunk_insert_len(list->paths, entry->path.data, (gssize)length),
      .bytes = entry->bytes,
      .checkout = entry->kind == SANDHOST_KIND_CHECKOUT,
      .unread_folder = entry->kind == SANDHOST_KIND_FILE &&
                       (entry->flags & (SANDHOST_ENTRY_SHA256 | SANDHOST_ENTRY_UNREAD_FOLDER)) ==
                           SANDHOST_ENTRY_UNREAD_FOLDER,
      .has_digest =
          entry->kind == SANDHOST_KIND_FILE && (entry->flags & SANDHOST_ENTRY_SHA256) != 0,
  };
  set_version(&file, entry);
  g_array_append_val(list->files, file);
  return SANDHOST_OK;
}

static gint compare_files(gconstpointer a, gconstpointer b) {
  const SandboxFile *left = a;
  const SandboxFile *right = b;
  return strcmp(left->path, right->path);
}

/* Whether a folder above path is one of folders. */
static gboolean is_inside(GHashTable *folders, const char *path) {
  g_autofree char *above = g_strdup(path);
  for (char *slash = strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
    *slash = '\0';
    if (g_hash_table_contains(folders, above)) {
      return TRUE;
    }
  }
  return FALSE;
}

static void drop_inside_checkouts(SandboxList *list) {
  g_autoptr(GHashTable) checkouts = g_hash_table_new(g_str_hash, g_str_equal);
  for (guint i = 0; i < list->files->len; i++) {
    const SandboxFile *file = &g_array_index(list->files, SandboxFile, i);
    if (file->checkout) {
      g_hash_table_add(checkouts, (gpointer)(gsize)file->path);
    }
  }
  if (g_hash_table_size(checkouts) == 0) {
    return;
  }
  guint kept = 0;
  for (guint i = 0; i < list->files->len; i++) {
    const SandboxFile file = g_array_index(list->files, SandboxFile, i);
    if (!is_inside(checkouts, file.path)) {
      g_array_index(list->files, SandboxFile, kept++) = file;
    }
  }
  g_array_set_size(list->files, kept);
}

static gboolean has_path_twice(SandboxList *list) {
  for (guint i = 1; i < list->files->len; i++) {
    const char *path = g_array_index(list->files, SandboxFile, i).path;
    if (strcmp(g_array_index(list->files, SandboxFile, i - 1).path, path) == 0) {
      refuse(list, "a path that is listed twice", path);
      return TRUE;
    }
  }
  return FALSE;
}

SandboxList *sandbox_list_get(const BridgeTransport *transport, const struct sandhost_known *known,
                              gsize known_count, guint64 max_hash_bytes, GError **error) {
  g_autoptr(SandboxList) list = g_new0(SandboxList, 1);
  list->files = g_array_new(FALSE, FALSE, sizeof(SandboxFile));
  list->paths = g_string_chunk_new(PATH_CHUNK);
  const struct sandhost_entry_sink sink = {
      .size = sizeof sink,
      .user = list,
      .entry = take_entry,
  };
  g_autoptr(GError) failure = NULL;
  gboolean ok =
      transport->changes(transport->user, known, known_count, max_hash_bytes, &sink, &failure);
  if (ok && !list->error) {
    g_array_sort(list->files, compare_files);
    has_path_twice(list);
  }
  if (list->error) {
    g_propagate_error(error, g_steal_pointer(&list->error));
    return NULL;
  }
  if (!ok) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
  }
  drop_inside_checkouts(list);
  return g_steal_pointer(&list);
}

void sandbox_list_free(SandboxList *list) {
  if (!list) {
    return;
  }
  g_array_unref(list->files);
  g_string_chunk_free(list->paths);
  g_clear_error(&list->error);
  g_free(list);
}

gsize sandbox_list_count(const SandboxList *list) {
  return list->files->len;
}

const SandboxFile *sandbox_list_at(const SandboxList *list, gsize index) {
  return &g_array_index(list->files, SandboxFile, index);
}
