/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain-download.c: named files of the sandbox as one tar stream.
 *
 * A few are fetched one by one; of many, the smallest folder that holds them all is fetched once and what was not asked
 * for is thrown away. The engine's order is not the caller's: what comes before its turn waits in a nameless file.
 */
#include "plain.h"

#include "call-relay.h"
#include "failure.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define PIECE ((size_t)64 * 1024)
#define FEW 8u
#define MOST_TRIES 3

struct wanted {
  const struct sandhost_path *name;
  gboolean has; /* its content is in the spool */
  gboolean done;
  uint64_t offset;
  uint64_t bytes;
  uint32_t mode;
  int64_t mtime;
};

struct download {
  struct sandhost_sandbox *sandbox;
  struct sandhost_call *call;
  const struct sandhost_sink *sink;
  struct archive *out;
  struct wanted *wanted;
  size_t count;
  size_t next;          /* whose turn it is */
  GHashTable *by_name;  /* of size_t + 1: names below dir, of the first that is named so */
  size_t folder_length; /* of the folder below dir that is fetched, with its slash */
  struct spool spool;
  size_t waiting; /* files in it that have not had their turn */

  struct wanted *current; /* whose content passes; NULL: nobody asks */
  gboolean only;          /* one file is fetched: the stream's one member is it */
  gboolean stopped;
  gboolean full;     /* the spool took no more */
  gboolean failed;   /* half a tar gets no end: what libarchive still writes goes nowhere */
  GHashTable *links; /* names of hard links that were asked for, to be fetched one by one */
};

/* ---- Out --------------------------------------------------------------------------------------- */

static la_ssize_t give(struct archive *out, void *user, const void *data, size_t length) {
  struct download *download = user;
  if (download->failed) {
    return (la_ssize_t)length;
  }
  if (download->sink->write(download->sink->user, data, length) != SANDHOST_OK) {
    download->stopped = TRUE;
    archive_set_error(out, ECANCELED, "stopped");
    return -1;
  }
  return (la_ssize_t)length;
}

static int32_t write_header(struct download *download, const struct wanted *wanted) {
  struct archive_entry *entry = archive_entry_new();
  g_autofree char *name = g_strndup(wanted->name->data, wanted->name->length);
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, wanted->mode & 0777);
  archive_entry_set_size(entry, (la_int64_t)wanted->bytes);
  archive_entry_set_mtime(entry, (time_t)(wanted->mtime / PLAIN_SECOND), 0);
  int result = archive_write_header(download->out, entry);
  archive_entry_free(entry);
  return result < ARCHIVE_WARN ? SANDHOST_CANCELLED : SANDHOST_OK;
}

static int32_t write_spooled(struct download *download, const struct wanted *wanted) {
  char piece[PIECE];
  int32_t status = write_header(download, wanted);
  for (uint64_t at = 0; status == SANDHOST_OK && at < wanted->bytes;) {
    ssize_t count = spool_read(&download->spool, wanted->offset + at, piece,
                               (size_t)MIN((uint64_t)PIECE, wanted->bytes - at));
    if (count <= 0 || archive_write_data(download->out, piece, (size_t)count) != count) {
      return SANDHOST_CANCELLED;
    }
    at += (uint64_t)count;
  }
  return status;
}

/* The file whose turn it is goes out, where it is there; else it is left out. */
static int32_t write_next(struct download *download) {
  struct wanted *wanted = &download->wanted[download->next++];
  wanted->done = TRUE;
  if (!wanted->has) {
    return SANDHOST_OK;
  }
  download->waiting--;
  return write_spooled(download, wanted);
}

/* ---- In ---------------------------------------------------------------------------------------- */

static struct wanted *find_wanted(const struct download *download, const char *member) {
  const char *slash = strchr(member, '/');
  if (download->only) {
    return slash ? NULL : &download->wanted[download->next];
  }
  if (!slash) {
    return NULL;
  }
  size_t index = GPOINTER_TO_SIZE(g_hash_table_lookup(download->by_name, slash + 1));
  return index > 0 ? &download->wanted[index - 1] : NULL;
}

static int32_t take_member(void *user, const struct tar_member *member) {
  struct download *download = user;
  struct wanted *wanted = find_wanted(download, member->name);
  download->current = NULL;
  if (!wanted || wanted->has || wanted->done) {
    return SANDHOST_OK;
  }
  if (member->kind == TAR_HARD_LINK && !download->only) {
    g_hash_table_add(download->links, wanted);
  }
  if (member->kind != TAR_FILE) {
    return SANDHOST_OK;
  }
  if (download->waiting == 0) {
    download->spool.length = 0; /* written over */
  }
  wanted->bytes = member->bytes;
  wanted->mode = member->mode;
  wanted->mtime = member->mtime;
  wanted->offset = download->spool.length;
  download->current = wanted;
  return SANDHOST_OK;
}

static int32_t take_content(void *user, const void *data, size_t length) {
  struct download *download = user;
  if (!download->current) {
    return SANDHOST_OK;
  }
  return spool_append(&download->spool, data, length) < 0 ? SANDHOST_LIMIT : SANDHOST_OK;
}

/* Only a whole file goes out: its header says its length, and the engine's stream may be cut. */
static int32_t take_end(void *user) {
  struct download *download = user;
  int32_t status = SANDHOST_OK;
  if (!download->current) {
    return SANDHOST_OK;
  }
  download->current->has = TRUE;
  download->waiting++;
  while (status == SANDHOST_OK && !download->only && download->next < download->count &&
         download->wanted[download->next].has) {
    status = write_next(download);
  }
  return status;
}

static const struct tar_events EVENTS = {
    .member = take_member, .content = take_content, .member_end = take_end};

static int32_t fail_stopped(struct download *download) {
  return download->stopped ? fail_call(download->sandbox->host, download->call, SANDHOST_CANCELLED,
                                       "the receiver of the files stopped")
                           : fail_call(download->sandbox->host, download->call, SANDHOST_LIMIT,
                                       "cannot keep files of the sandbox in %s", g_get_tmp_dir());
}

/* ---- Fetching ---------------------------------------------------------------------------------- */

static int32_t take_read(void *user, const void *data, size_t length) {
  struct download *download = user;
  download->full = spool_append(&download->spool, data, length) < 0;
  return download->full ? SANDHOST_LIMIT : SANDHOST_OK;
}

/* An engine packs no file whose path is not UTF-8, and does not say so: such a one is read as a single file is, which knows a
 * way. What is gone meanwhile, or no regular file, is left out. */
static int32_t read_one(struct download *download, const char *path) {
  struct wanted *wanted = &download->wanted[download->next];
  g_auto(CallRelay)
      relay = {.host = download->sandbox->host, .call = download->call, .quiet = TRUE};
  const struct sandhost_sink sink = {.size = sizeof sink, .user = download, .write = take_read};
  if (download->waiting == 0) {
    download->spool.length = 0; /* written over */
  }
  wanted->offset = download->spool.length;
  wanted->mode = 0644;
  int32_t status =
      plain_read_file(call_relay_call(&relay), download->sandbox,
                      (struct sandhost_path){.data = path, .length = strlen(path)}, &sink);
  if (download->full) {
    return fail_stopped(download);
  }
  if (status == SANDHOST_NOT_FOUND || status == SANDHOST_INVALID || status == SANDHOST_CONFLICT) {
    return SANDHOST_OK;
  }
  if (status != SANDHOST_OK) {
    return fail_call(download->sandbox->host, download->call, status, "%s",
                     relay.failure ? relay.failure : "a file of the sandbox cannot be read");
  }
  wanted->bytes = download->spool.length - wanted->offset;
  wanted->has = TRUE;
  download->waiting++;
  return SANDHOST_OK;
}

/* One file whose turn it is. What is no regular file, or behind a link, is left out. */
static int32_t fetch_one(struct download *download, const char *dir, GHashTable *folders) {
  const struct wanted *wanted = &download->wanted[download->next];
  g_autofree char *name = g_strndup(wanted->name->data, wanted->name->length);
  g_autofree char *parent = g_path_get_dirname(name);
  g_autofree char *path = g_strdup_printf("%s/%s", g_str_equal(dir, "/") ? "" : dir, name);
  enum archive_end end = ARCHIVE_MISSING;
  if (!g_str_equal(parent, ".") && !g_hash_table_contains(folders, parent)) {
    g_autofree char *resolved = NULL;
    int32_t status = plain_resolve(download->sandbox, download->call, dir, parent, NULL, &resolved);
    if (status != SANDHOST_OK) {
      return status;
    }
    if (g_strcmp0(resolved, parent) != 0) {
      return SANDHOST_OK;
    }
    g_hash_table_add(folders, g_steal_pointer(&parent));
  }
  if (!g_utf8_validate(path, -1, NULL)) {
    return read_one(download, path);
  }
  int32_t status =
      plain_archive_get(download->sandbox, download->call, path, &EVENTS, download, &end);
  return status != SANDHOST_OK || end != ARCHIVE_STOPPED ? status : fail_stopped(download);
}

/* What has not come yet, one by one. links_only: of that, only what was told as a hard link, without its content. */
static int32_t fetch_each(struct download *download, const char *dir, gboolean links_only) {
  g_autoptr(GHashTable) folders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  int32_t status = SANDHOST_OK;
  download->only = TRUE;
  while (status == SANDHOST_OK && download->next < download->count) {
    struct wanted *wanted = &download->wanted[download->next];
    g_autofree char *name = g_strndup(wanted->name->data, wanted->name->length);
    if (!wanted->has && plain_path_is_clean(name) &&
        (!links_only || g_hash_table_contains(download->links, wanted))) {
      status = fetch_one(download, dir, folders);
    }
    if (status == SANDHOST_OK && write_next(download) != SANDHOST_OK) {
      status = fail_stopped(download);
    }
  }
  return status;
}

/* The longest folder that all names have in common, with its slash, and that an engine packs: its path is UTF-8. 0: none. */
static size_t common_folder(const struct download *download) {
  const struct sandhost_path *first = download->wanted[0].name;
  size_t common = first->length;
  for (size_t i = 1; i < download->count; i++) {
    const struct sandhost_path *name = download->wanted[i].name;
    size_t at = 0;
    while (at < common && at < name->length && name->data[at] == first->data[at]) {
      at++;
    }
    common = at;
  }
  while (common > 0 &&
         (first->data[common - 1] != '/' || !g_utf8_validate_len(first->data, common, NULL))) {
    common--;
  }
  return common;
}

static void index_names(struct download *download) {
  for (size_t i = 0; i < download->count; i++) {
    const struct sandhost_path *name = download->wanted[i].name;
    char *below =
        g_strndup(name->data + download->folder_length, name->length - download->folder_length);
    if (g_hash_table_contains(download->by_name, below)) {
      g_free(below); /* named twice: the second time it is left out */
    } else {
      g_hash_table_insert(download->by_name, below, GSIZE_TO_POINTER(i + 1));
    }
  }
}

/* All at once. *ret_whole: the stream was read to its end. */
static int32_t fetch_folder(struct download *download, const char *dir, gboolean *ret_whole) {
  const struct sandhost_path *first = download->wanted[0].name;
  size_t length = download->folder_length > 0 ? download->folder_length - 1 : 0;
  g_autofree char *folder = g_strndup(first->data, length);
  g_autofree char *path = length > 0
                              ? g_strdup_printf("%s/%s", g_str_equal(dir, "/") ? "" : dir, folder)
                              : g_strdup(dir);
  enum archive_end end = ARCHIVE_MISSING;
  int32_t status =
      plain_archive_get(download->sandbox, download->call, path, &EVENTS, download, &end);
  *ret_whole = end == ARCHIVE_WHOLE || end == ARCHIVE_MISSING;
  return status != SANDHOST_OK || end != ARCHIVE_STOPPED ? status : fail_stopped(download);
}

static int32_t fetch_all(struct download *download, const char *dir) {
  size_t folder = common_folder(download);
  g_autofree char *name = g_strndup(download->wanted[0].name->data, folder ? folder - 1 : 0);
  int32_t status = SANDHOST_OK;
  gboolean whole = FALSE;
  if (folder > 0) { /* where a link stands for it, nothing of it is wanted */
    g_autofree char *resolved = NULL;
    status = plain_path_is_clean(name)
                 ? plain_resolve(download->sandbox, download->call, dir, name, NULL, &resolved)
                 : SANDHOST_OK;
    if (status != SANDHOST_OK || g_strcmp0(resolved, name) != 0) {
      return status;
    }
  }
  download->folder_length = folder;
  index_names(download);
  for (int i = 0; status == SANDHOST_OK && !whole && i < MOST_TRIES; i++) {
    status = fetch_folder(download, dir, &whole);
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  if (!whole) {
    return fail_call(download->sandbox->host, download->call, SANDHOST_CONFLICT,
                     "files in the sandbox change faster than they can be fetched");
  }
  return fetch_each(download, dir, TRUE);
}

/* ---- The operation ----------------------------------------------------------------------------- */

static int32_t check_names(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                           const struct sandhost_path *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (names[i].length == 0 || names[i].length >= PATH_MAX || names[i].data[0] == '/' ||
        memchr(names[i].data, 0, names[i].length)) {
      return fail_call(sandbox->host, call, SANDHOST_INVALID,
                       "the name of file %zu of the download is no relative path", i + 1);
    }
  }
  return SANDHOST_OK;
}

static void open_out(struct download *download) {
  download->out = archive_write_new();
  archive_write_set_format_pax_restricted(download->out);
  archive_write_set_options(download->out, "hdrcharset=BINARY"); /* a name is bytes */
  archive_write_set_bytes_per_block(download->out, PIECE);
  archive_write_set_bytes_in_last_block(download->out, 1);
  archive_write_open(download->out, download, NULL, give, NULL);
}

int32_t plain_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                       struct sandhost_path dir, const struct sandhost_path *names,
                       size_t name_count, const struct sandhost_sink *tar) {
  struct download download = {
      .sandbox = sandbox, .call = call, .sink = tar, .count = name_count, .spool = SPOOL_NONE};
  int32_t status = plain_check_size(sandbox, call, "sink", tar->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_sink, write));
  if (status == SANDHOST_OK) {
    status = plain_check_absolute(sandbox, call, "folder", dir);
  }
  if (status == SANDHOST_OK) {
    status = check_names(sandbox, call, names, name_count);
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  g_autofree char *folder = g_strndup(dir.data, dir.length);
  download.wanted = g_new0(struct wanted, name_count);
  download.by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  download.links = g_hash_table_new(NULL, NULL);
  for (size_t i = 0; i < name_count; i++) {
    download.wanted[i].name = &names[i];
  }
  open_out(&download);
  status = name_count == 0     ? SANDHOST_OK
           : name_count <= FEW ? fetch_each(&download, folder, FALSE)
                               : fetch_all(&download, folder);
  download.failed = status != SANDHOST_OK;
  /* Where writing failed, libarchive frees its buffer here and nowhere else. */
  gboolean closed = archive_write_close(download.out) == ARCHIVE_OK;
  if (status == SANDHOST_OK && !closed) {
    status = fail_stopped(&download);
  }
  archive_write_free(download.out);
  g_hash_table_destroy(download.by_name);
  g_hash_table_destroy(download.links);
  g_free(download.wanted);
  spool_clear(&download.spool);
  return status;
}
