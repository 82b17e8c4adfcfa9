/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain-changes.c: the files below a folder that the caller does not know, from one tar stream of it.
 *
 * The engine gives everything, so everything is read, and hashed as it passes: no program of the image is asked. That a
 * folder is a checkout may be seen only after files in it, so entries wait until the stream has ended.
 */
#include "plain.h"

#include "failure.h"

#include <limits.h>
#include <nettle/sha2.h>
#include <string.h>

#define SHA256_LENGTH 32u
#define MOST_TRIES 3
/* Of names that wait, together: a folder on disk could hold any number. */
#define MOST_NAMES ((size_t)256 << 20)

struct file {
  char *path; /* below the root; owned */
  uint64_t bytes;
  int64_t mtime;
  uint32_t mode;
  gboolean hashed;
  gboolean wanted; /* it is to be told */
  uint8_t sha256[SHA256_LENGTH];
};

struct changes {
  const struct sandhost_changes *request;
  GPtrArray *files;      /* of struct file, all regular ones that are not hidden */
  GHashTable *by_path;   /* of the same */
  GHashTable *checkouts; /* of names; owned */
  GHashTable *unread;    /* of names of folders that may hold more than came; owned */
  size_t name_bytes;
  struct file *current; /* whose content passes; NULL: nobody asks */
  gboolean hashing;
  struct sha256_ctx sha;
  gboolean is_folder; /* the root is one */
  gboolean seen;
  gboolean too_many;
};

static void file_free(void *data) {
  struct file *file = data;
  g_free(file->path);
  g_free(file);
}

/* ---- The stream -------------------------------------------------------------------------------- */

static gboolean is_hidden(const char *path) {
  return path[0] == '.' || strstr(path, "/.") != NULL;
}

static int compare_known(const char *path, size_t length, const struct sandhost_known *known) {
  int order = memcmp(path, known->path.data, MIN(length, known->path.length));
  return order != 0 ? order : (length > known->path.length) - (length < known->path.length);
}

static gboolean is_known(const struct sandhost_changes *request, const struct file *file) {
  size_t low = 0;
  size_t high = request->known_count;
  size_t length = strlen(file->path);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = compare_known(file->path, length, &request->known[middle]);
    if (order == 0) {
      return file->hashed &&
             memcmp(file->sha256, request->known[middle].sha256, SHA256_LENGTH) == 0;
    }
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return FALSE;
}

/* Before the name is kept. FALSE: it is one too many. */
static gboolean count_name(struct changes *changes, size_t length, size_t beside) {
  changes->too_many = changes->too_many || length + beside > MOST_NAMES - changes->name_bytes;
  changes->name_bytes += changes->too_many ? 0 : length + beside;
  return !changes->too_many;
}

/* NULL: too many. */
static struct file *add_file(struct changes *changes, const char *path,
                             const struct tar_member *member) {
  if (!count_name(changes, strlen(path), sizeof(struct file))) {
    return NULL;
  }
  struct file *file = g_new0(struct file, 1);
  file->path = g_strdup(path);
  file->bytes = member->bytes;
  file->mtime = member->mtime;
  file->mode = member->mode & 0777;
  g_ptr_array_add(changes->files, file);
  g_hash_table_replace(changes->by_path, file->path, file);
  return file;
}

/* A folder that is not the root, not hidden, and holds .git, is a checkout. */
static void note_checkout(struct changes *changes, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash || strcmp(slash, "/.git") != 0) {
    return;
  }
  g_autofree char *folder = g_strndup(path, (gsize)(slash - path));
  if (!is_hidden(folder) && count_name(changes, strlen(folder), 0)) {
    g_hash_table_add(changes->checkouts, g_steal_pointer(&folder));
  }
}

/* Another name of a file that has passed: the same content. */
static void add_hard_link(struct changes *changes, const char *path,
                          const struct tar_member *member) {
  const char *slash = strchr(member->link, '/');
  const struct file *first = slash ? g_hash_table_lookup(changes->by_path, slash + 1) : NULL;
  struct file *file = add_file(changes, path, member);
  if (!file) {
    return;
  }
  if (first) {
    file->bytes = first->bytes;
    file->hashed = first->hashed;
    memcpy(file->sha256, first->sha256, SHA256_LENGTH);
    file->wanted = !is_known(changes->request, file);
  } else {
    file->wanted = TRUE; /* its content is behind a name that is hidden: the caller will read it */
  }
}

/* The engine leaves out, without a word, what has a path that is too long. Nobody knows then whether it did, so a folder
 * in which a name can make one is told. */
static void note_deep(struct changes *changes, const struct tar_member *member, const char *path) {
  if (member->kind == TAR_FOLDER && strlen(member->name) + 2 + NAME_MAX >= PATH_MAX &&
      count_name(changes, strlen(path), 0)) {
    g_hash_table_add(changes->unread, g_strdup(path));
  }
}

static int32_t take_member(void *user, const struct tar_member *member) {
  struct changes *changes = user;
  const char *slash = strchr(member->name, '/');
  const char *path = slash ? slash + 1 : NULL;
  changes->current = NULL;
  if (!path) { /* the root itself */
    changes->seen = TRUE;
    changes->is_folder = member->kind == TAR_FOLDER;
    return changes->is_folder ? SANDHOST_OK : SANDHOST_CANCELLED;
  }
  note_checkout(changes, path);
  if (is_hidden(path)) {
    return changes->too_many ? SANDHOST_LIMIT : SANDHOST_OK;
  }
  note_deep(changes, member, path);
  if (member->kind == TAR_HARD_LINK) {
    add_hard_link(changes, path, member);
  } else if (member->kind == TAR_FILE) {
    changes->current = add_file(changes, path, member);
    changes->hashing =
        changes->request->max_hash_bytes == 0 || member->bytes <= changes->request->max_hash_bytes;
    sha256_init(&changes->sha);
  }
  return changes->too_many ? SANDHOST_LIMIT : SANDHOST_OK;
}

static int32_t take_content(void *user, const void *data, size_t length) {
  struct changes *changes = user;
  if (changes->current && changes->hashing) {
    sha256_update(&changes->sha, length, data);
  }
  return SANDHOST_OK;
}

static int32_t take_end(void *user) {
  struct changes *changes = user;
  if (changes->current) {
    changes->current->hashed = changes->hashing;
    if (changes->hashing) {
      sha256_digest(&changes->sha, SHA256_LENGTH, changes->current->sha256);
    }
    changes->current->wanted = !is_known(changes->request, changes->current);
  }
  return SANDHOST_OK;
}

/* ---- Telling ----------------------------------------------------------------------------------- */

/* Whether a folder above the path is a checkout. */
static gboolean is_in_checkout(const struct changes *changes, const char *path) {
  g_autofree char *folder = g_strdup(path);
  for (char *slash = strrchr(folder, '/'); slash; slash = strrchr(folder, '/')) {
    *slash = '\0';
    if (g_hash_table_contains(changes->checkouts, folder)) {
      return TRUE;
    }
  }
  return FALSE;
}

struct telling {
  struct sandhost_sandbox *sandbox;
  struct sandhost_call *call;
  const struct sandhost_changes *request;
  const struct sandhost_entry_sink *sink;
  uint64_t count;
};

static int32_t tell(struct telling *telling, const struct sandhost_entry *entry) {
  const struct sandhost_host *host = telling->sandbox->host;
  if (telling->request->max_entries > 0 && telling->count == telling->request->max_entries) {
    return fail_call(host, telling->call, SANDHOST_LIMIT,
                     "more than %" G_GUINT64_FORMAT " files changed",
                     telling->request->max_entries);
  }
  telling->count++;
  return telling->sink->entry(telling->sink->user, entry) == SANDHOST_OK
             ? SANDHOST_OK
             : fail_call(host, telling->call, SANDHOST_CANCELLED,
                         "the receiver of the list stopped");
}

static int32_t tell_folders(struct telling *telling, const struct changes *changes,
                            GHashTable *folders, uint32_t kind, uint32_t flags) {
  GHashTableIter iter;
  gpointer folder = NULL;
  int32_t status = SANDHOST_OK;
  g_hash_table_iter_init(&iter, folders);
  while (status == SANDHOST_OK && g_hash_table_iter_next(&iter, &folder, NULL)) {
    if (!is_in_checkout(changes, folder)) {
      status =
          tell(telling, &(struct sandhost_entry){.size = sizeof(struct sandhost_entry),
                                                 .path = {.data = folder, .length = strlen(folder)},
                                                 .kind = kind,
                                                 .flags = flags});
    }
  }
  return status;
}

/* Whether a checkout is told in its place. */
static gboolean is_checkout(gpointer folder, gpointer value, gpointer user) {
  const struct changes *changes = user;
  (void)value;
  return g_hash_table_contains(changes->checkouts, folder);
}

static int32_t tell_all(struct telling *telling, struct changes *changes) {
  int32_t status = tell_folders(telling, changes, changes->checkouts, SANDHOST_KIND_CHECKOUT, 0);
  g_hash_table_foreach_remove(changes->unread, is_checkout, changes);
  if (status == SANDHOST_OK) {
    status = tell_folders(telling, changes, changes->unread, SANDHOST_KIND_FILE,
                          SANDHOST_ENTRY_UNREAD_FOLDER);
  }
  for (guint i = 0; status == SANDHOST_OK && i < changes->files->len; i++) {
    const struct file *file = changes->files->pdata[i];
    if (!file->wanted || is_in_checkout(changes, file->path)) {
      continue;
    }
    struct sandhost_entry entry = {.size = sizeof entry,
                                   .path = {.data = file->path, .length = strlen(file->path)},
                                   .kind = SANDHOST_KIND_FILE,
                                   .flags = file->hashed ? SANDHOST_ENTRY_SHA256 : 0,
                                   .bytes = file->bytes,
                                   .mtime = file->mtime,
                                   .mode = file->mode};
    memcpy(entry.sha256, file->sha256, SHA256_LENGTH);
    status = tell(telling, &entry);
  }
  return status;
}

/* ---- The operation ----------------------------------------------------------------------------- */

static void changes_begin(struct changes *changes, const struct sandhost_changes *request) {
  *changes =
      (struct changes){.request = request,
                       .files = g_ptr_array_new_with_free_func(file_free),
                       .by_path = g_hash_table_new(g_str_hash, g_str_equal),
                       .checkouts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                       .unread = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
}

static void changes_end(struct changes *changes) {
  g_hash_table_destroy(changes->by_path);
  g_hash_table_destroy(changes->checkouts);
  g_hash_table_destroy(changes->unread);
  g_ptr_array_free(changes->files, TRUE);
}

/* One pass. *ret_again: something changed while the engine packed. */
static int32_t list_once(struct telling *telling, const char *root, gboolean *ret_again) {
  static const struct tar_events EVENTS = {
      .member = take_member, .content = take_content, .member_end = take_end};
  const struct sandhost_host *host = telling->sandbox->host;
  struct changes changes;
  enum archive_end end = ARCHIVE_CUT;
  changes_begin(&changes, telling->request);
  int32_t status =
      plain_archive_get(telling->sandbox, telling->call, root, &EVENTS, &changes, &end);
  if (status != SANDHOST_OK) {
    changes_end(&changes);
    return status;
  }
  if (changes.too_many) {
    status = fail_call(host, telling->call, SANDHOST_LIMIT, "the list of files is too long");
  } else if (end == ARCHIVE_MISSING || (changes.seen && !changes.is_folder)) {
    status = fail_call(host, telling->call, SANDHOST_NOT_FOUND, "%s: %s", root,
                       end == ARCHIVE_MISSING ? "No such file or directory" : "Not a directory");
  } else if (end == ARCHIVE_WHOLE) {
    status = tell_all(telling, &changes);
  } else {
    *ret_again = TRUE;
  }
  changes_end(&changes);
  return status;
}

int32_t plain_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                      const struct sandhost_changes *request,
                      const struct sandhost_entry_sink *sink) {
  struct telling telling = {.sandbox = sandbox, .call = call, .request = request, .sink = sink};
  int32_t status = plain_check_size(sandbox, call, "request for changes", request->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_changes, max_entries));
  if (status == SANDHOST_OK) {
    status = plain_check_size(sandbox, call, "sink", sink->size,
                              CONTRACT_FIRST_SIZE(struct sandhost_entry_sink, entry));
  }
  if (status == SANDHOST_OK) {
    status = plain_check_absolute(sandbox, call, "root", request->root);
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  g_autofree char *root = g_strndup(request->root.data, request->root.length);
  for (int i = 0; i < MOST_TRIES; i++) {
    gboolean again = FALSE;
    status = list_once(&telling, root, &again);
    if (status != SANDHOST_OK || !again) {
      return status;
    }
  }
  return fail_call(sandbox->host, call, SANDHOST_CONFLICT,
                   "files in the sandbox change faster than they can be listed");
}
