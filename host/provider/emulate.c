/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate.c: tar streams in and out for providers that move one file at a time.
 *
 * libarchive reads and writes the tars. Names are bytes: the reader's conversion to the locale fails on what the
 * locale cannot hold and then leaves the bytes as they are, which it tells as a warning; the C locale of the
 * thread makes that so everywhere.
 */
#include "provider/emulate.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "base/clock.h"
#include "provider/spool.h"
#include "provider/text.h"

#define MAX_PATH 4096u
#define MAX_MEMBERS 200000u
#define BUFFER_BYTES (64u << 10)
/* With the words before them they are what emulate_command takes. */
#define MAX_FOLDERS_AT_ONCE 48u
#define MAX_NAMES_AT_ONCE 48u
#define MAX_NAMES_BYTES (64u << 10)

/* Relative, and no component that is empty, . or .. */
static gboolean name_is_inside(const char *name) {
  if (*name == '\0' || strlen(name) > MAX_PATH) {
    return FALSE;
  }
  g_auto(GStrv) components = g_strsplit(name, "/", -1);
  for (gsize i = 0; components[i]; i++) {
    if (*components[i] == '\0' || strcmp(components[i], ".") == 0 ||
        strcmp(components[i], "..") == 0) {
      return FALSE;
    }
  }
  return TRUE;
}

static char *absolute(const Sandbox *sandbox, const char *name) {
  const char *dir = sandbox->working_dir;
  return g_strdup_printf("%s%s%s", dir, g_str_has_suffix(dir, "/") ? "" : "/", name);
}

static gboolean fail(const Sandbox *sandbox, gint32 status, const char *operation, const char *what,
                     GError **error) {
  g_set_error(error, PROVIDER_ERROR, status, "%s: %s: %s",
              provider_instance_name(sandbox->instance), operation, what);
  return FALSE;
}

/* ---- In -------------------------------------------------------------------------------------------------------- */

typedef struct {
  Sandbox *sandbox;
  const CallScope *scope;
  const struct sandhost_source *tar;
  struct archive *archive;
  gboolean stopped;    /* the source said stop */
  gboolean broken;     /* a member's data could not be read */
  GHashTable *folders; /* named in the tar and not made by a file so far; owned names */
  char buffer[BUFFER_BYTES];
} Upload;

static la_ssize_t read_tar(struct archive *archive, void *user, const void **ret_buffer) {
  Upload *upload = user;
  gint64 count = upload->tar->read(upload->tar->user, upload->buffer, sizeof upload->buffer);
  if (count < 0 || count > (gint64)sizeof upload->buffer) {
    upload->stopped = TRUE;
    archive_set_error(archive, ECANCELED, "the source stopped");
    return -1;
  }
  *ret_buffer = upload->buffer;
  return (la_ssize_t)count;
}

static int64_t read_member(void *user, void *buffer, size_t length) {
  Upload *upload = user;
  la_ssize_t count = archive_read_data(upload->archive, buffer, length);
  if (count < 0) {
    upload->broken = TRUE;
    return -1;
  }
  return count;
}

static gboolean fail_archive(const Upload *upload, GError **error) {
  if (upload->stopped) {
    return fail(upload->sandbox, SANDHOST_CANCELLED, "upload", "stopped by its source", error);
  }
  g_autofree char *what = text_clean_string(archive_error_string(upload->archive), 512);
  return fail(upload->sandbox, SANDHOST_INVALID, "upload", what, error);
}

/* A folder that a file goes into is made with the file. */
static void forget_parents(Upload *upload, const char *name) {
  g_autofree char *parent = g_path_get_dirname(name);
  while (strcmp(parent, ".") != 0 && strcmp(parent, "/") != 0) {
    g_hash_table_remove(upload->folders, parent);
    char *above = g_path_get_dirname(parent);
    g_free(parent);
    parent = above;
  }
}

static gboolean write_member(Upload *upload, const char *name, guint32 mode, GError **error) {
  const struct sandhost_source source = {
      .size = sizeof source, .user = upload, .read = read_member};
  g_autofree char *path = absolute(upload->sandbox, name);
  g_autoptr(GError) failure = NULL;
  if (!sandbox_write_file(upload->sandbox, upload->scope, path, mode, &source, &failure)) {
    if (upload->stopped || upload->broken) {
      return fail_archive(upload, error);
    }
    if (provider_error_is(failure, SANDHOST_NOT_FOUND)) {
      /* A file stands where a folder is to be: of a tar stream, nothing is looked for. */
      return fail(upload->sandbox, SANDHOST_INVALID, "upload", failure->message, error);
    }
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  forget_parents(upload, name);
  return TRUE;
}

static gboolean take_member(Upload *upload, struct archive_entry *entry, GError **error) {
  const char *given = archive_entry_pathname(entry);
  while (given && g_str_has_prefix(given, "./")) {
    given += 2;
  }
  g_autofree char *name = g_strdup(given ? given : "");
  gboolean folder = archive_entry_filetype(entry) == AE_IFDIR;
  if (folder && g_str_has_suffix(name, "/")) {
    name[strlen(name) - 1] = '\0';
  }
  if (folder && (*name == '\0' || strcmp(name, ".") == 0)) {
    return TRUE;
  }
  if (!name_is_inside(name)) {
    return fail(upload->sandbox, SANDHOST_INVALID, "upload", "a member leads out of the folder",
                error);
  }
  if (archive_entry_hardlink(entry) || (!folder && archive_entry_filetype(entry) != AE_IFREG)) {
    return fail(upload->sandbox, SANDHOST_INVALID, "upload",
                "a member is neither a regular file nor a folder", error);
  }
  if (folder) {
    g_hash_table_add(upload->folders, g_steal_pointer(&name));
    return TRUE;
  }
  return write_member(upload, name, (guint32)archive_entry_perm(entry) & 0777, error);
}

static gboolean ignore_output(void *user, const char *data, gsize length) {
  (void)user;
  (void)data;
  (void)length;
  return TRUE;
}

/* Folders that stay empty have no operation of their own. Commands run in the working directory. */
static gboolean make_folders(Upload *upload, GError **error) {
  g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
  GHashTableIter iter;
  gpointer name = NULL;
  gboolean more = TRUE;
  g_hash_table_iter_init(&iter, upload->folders);
  while (more) {
    g_ptr_array_set_size(argv, 0);
    g_ptr_array_add(argv, g_strdup("mkdir"));
    g_ptr_array_add(argv, g_strdup("-p"));
    g_ptr_array_add(argv, g_strdup("--"));
    while (argv->len < MAX_FOLDERS_AT_ONCE && (more = g_hash_table_iter_next(&iter, &name, NULL))) {
      g_ptr_array_add(argv, g_strdup_printf("./%s", (const char *)name));
    }
    if (argv->len == 3) {
      break;
    }
    g_ptr_array_add(argv, NULL);
    const EmulatedCommand command = {
        .argv = (const char *const *)argv->pdata,
        .limit = 60 * CLOCK_SECOND,
        .take = ignore_output,
    };
    struct sandhost_result result = {0};
    g_autofree char *why = NULL;
    if (!emulate_command(upload->sandbox, upload->scope, &command, &result, &why, error)) {
      return FALSE;
    }
    if (result.exit_code != 0) {
      return fail(upload->sandbox, SANDHOST_INTERNAL, "upload",
                  *why ? why : "mkdir failed in the sandbox", error);
    }
  }
  return TRUE;
}

static gboolean take_members(Upload *upload, GError **error) {
  for (guint i = 0; i < MAX_MEMBERS; i++) {
    struct archive_entry *entry = NULL;
    int status = archive_read_next_header(upload->archive, &entry);
    if (status == ARCHIVE_EOF) {
      return make_folders(upload, error);
    }
    if (status < ARCHIVE_WARN) {
      return fail_archive(upload, error);
    }
    if (!take_member(upload, entry, error)) {
      return FALSE;
    }
  }
  return fail(upload->sandbox, SANDHOST_LIMIT, "upload", "too many members", error);
}

gboolean emulate_upload(Sandbox *sandbox, const CallScope *scope, const struct sandhost_source *tar,
                        GError **error) {
  g_autofree Upload *upload = g_new0(Upload, 1);
  g_autoptr(GHashTable) folders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  locale_t before = plain ? uselocale(plain) : (locale_t)0;
  upload->sandbox = sandbox;
  upload->scope = scope;
  upload->tar = tar;
  upload->folders = folders;
  upload->archive = archive_read_new();
  archive_read_support_format_tar(upload->archive);
  archive_read_support_format_empty(upload->archive);
  gboolean ok = archive_read_open(upload->archive, upload, NULL, read_tar, NULL) == ARCHIVE_OK
                    ? take_members(upload, error)
                    : fail_archive(upload, error);
  archive_read_free(upload->archive);
  if (plain) {
    uselocale(before);
    freelocale(plain);
  }
  return ok;
}

/* ---- Out ------------------------------------------------------------------------------------------------------- */

typedef struct {
  Sandbox *sandbox;
  const CallScope *scope;
  const struct sandhost_sink *tar;
  struct archive *archive;
  gboolean stopped; /* the sink said stop, or gets no more */
} Download;

/* An archive that was told of an error is not taken down whole, so it is told of none: what comes after the sink
 * has stopped goes nowhere. */
static la_ssize_t write_tar(struct archive *archive, void *user, const void *data, size_t length) {
  Download *download = user;
  (void)archive;
  if (!download->stopped) {
    download->stopped = download->tar->write(download->tar->user, data, length) != SANDHOST_OK;
  }
  return (la_ssize_t)length;
}

static gboolean fail_writing(const Download *download, GError **error) {
  if (download->stopped) {
    return fail(download->sandbox, SANDHOST_CANCELLED, "download", "stopped by its sink", error);
  }
  g_autofree char *what = text_clean_string(archive_error_string(download->archive), 512);
  return fail(download->sandbox, SANDHOST_INTERNAL, "download", what, error);
}

static gboolean put_piece(void *user, const void *data, gsize length) {
  Download *download = user;
  return archive_write_data(download->archive, data, length) == (la_ssize_t)length;
}

static gboolean put_member(Download *download, const char *name, Spool *spool, GError **error) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_size(entry, (la_int64_t)spool_size(spool));
  int status = archive_write_header(download->archive, entry);
  archive_entry_free(entry);
  if (status < ARCHIVE_WARN || !spool_read_back(spool, put_piece, download) ||
      archive_write_finish_entry(download->archive) < ARCHIVE_WARN || download->stopped) {
    return fail_writing(download, error);
  }
  return TRUE;
}

static gboolean fetch_member(Download *download, const struct sandhost_path *given,
                             GError **error) {
  g_autofree char *name = g_strndup(given->data, given->length);
  g_autoptr(Spool) spool = spool_new();
  const struct sandhost_sink sink = spool_sink(spool);
  g_autofree char *path = absolute(download->sandbox, name);
  g_autoptr(GError) failure = NULL;
  if (!sandbox_read_file(download->sandbox, download->scope, path, &sink, &failure)) {
    if (provider_error_is(failure, SANDHOST_NOT_FOUND) ||
        provider_error_is(failure, SANDHOST_INVALID)) {
      return TRUE; /* it is gone, or no regular file any more: left out */
    }
    if (spool_failure(spool)) {
      return fail(download->sandbox, SANDHOST_LIMIT, "download", spool_failure(spool), error);
    }
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  return put_member(download, name, spool, error);
}

/* ---- Links are no files ---------------------------------------------------------------------------------------- */

/* Prints the places of the arguments, each ./NAME, that are links or have one on their way. */
static const char LINKS[] =
    "i=0; for way; do while :; do [ -L \"$way\" ] && echo $i && break; "
    "case $way in ./*/*) way=${way%/*};; *) break;; esac; done; i=$((i+1)); done; exit 0";

typedef struct {
  const struct sandhost_path *names;
  gsize count;
  gboolean is_link[MAX_NAMES_AT_ONCE];
} Batch;

static gboolean take_answer(void *user, const char *data, gsize length) {
  GString *answer = user;
  g_string_append_len(answer, data, (gssize)MIN(length, MAX_NAMES_BYTES - answer->len));
  return TRUE;
}

/* read_file follows a link that stays in the working directory, and a download does not. Where there is no shell nobody
 * can be asked, and nothing is left out. */
static gboolean find_links(Download *download, Batch *batch, GError **error) {
  g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
  g_autoptr(GString) answer = g_string_new(NULL);
  const char *const shell[] = {"sh", "-c", LINKS, "sh"};
  struct sandhost_result result = {0};
  for (gsize i = 0; i < G_N_ELEMENTS(shell); i++) {
    g_ptr_array_add(argv, g_strdup(shell[i]));
  }
  for (gsize i = 0; i < batch->count; i++) {
    g_ptr_array_add(argv,
                    g_strdup_printf("./%.*s", (int)batch->names[i].length, batch->names[i].data));
  }
  g_ptr_array_add(argv, NULL);
  const EmulatedCommand command = {.argv = (const char *const *)argv->pdata,
                                   .limit = 60 * CLOCK_SECOND,
                                   .take = take_answer,
                                   .user = answer};
  if (!emulate_command(download->sandbox, download->scope, &command, &result, NULL, error)) {
    return FALSE;
  }
  g_auto(GStrv) lines = g_strsplit(answer->str, "\n", -1);
  for (gsize i = 0; lines[i]; i++) {
    guint64 place = 0;
    if (g_ascii_string_to_unsigned(lines[i], 10, 0, MAX(batch->count, 1) - 1, &place, NULL)) {
      batch->is_link[place] = TRUE;
    }
  }
  return TRUE;
}

/* The next names that one command line holds. */
static Batch next_batch(const struct sandhost_path *names, gsize name_count) {
  Batch batch = {.names = names};
  gsize bytes = 0;
  while (batch.count < MIN(name_count, MAX_NAMES_AT_ONCE) &&
         (batch.count == 0 || bytes + names[batch.count].length < MAX_NAMES_BYTES)) {
    bytes += names[batch.count].length;
    batch.count++;
  }
  return batch;
}

static gboolean fetch_batch(Download *download, Batch *batch, GError **error) {
  for (gsize i = 0; i < batch->count; i++) {
    g_autofree char *name = g_strndup(batch->names[i].data, batch->names[i].length);
    if (strlen(name) != batch->names[i].length || !name_is_inside(name)) {
      return fail(download->sandbox, SANDHOST_INVALID, "download", "a name leads out of the folder",
                  error);
    }
  }
  gboolean ok = find_links(download, batch, error);
  for (gsize i = 0; ok && i < batch->count; i++) {
    ok = batch->is_link[i] || fetch_member(download, &batch->names[i], error);
  }
  return ok;
}

gboolean emulate_download(Sandbox *sandbox, const CallScope *scope,
                          const struct sandhost_path *names, gsize name_count,
                          const struct sandhost_sink *tar, GError **error) {
  Download download = {.sandbox = sandbox, .scope = scope, .tar = tar};
  download.archive = archive_write_new();
  archive_write_set_format_pax_restricted(download.archive);
  archive_write_set_options(download.archive, "hdrcharset=BINARY");
  archive_write_set_bytes_in_last_block(download.archive, 1);
  gboolean ok = archive_write_open(download.archive, &download, NULL, write_tar, NULL) == ARCHIVE_OK
                    ? TRUE
                    : fail_writing(&download, error);
  for (gsize i = 0; ok && i < name_count;) {
    Batch batch = next_batch(names + i, name_count - i);
    ok = fetch_batch(&download, &batch, error);
    i += batch.count;
  }
  gboolean sound = ok;
  download.stopped = download.stopped || !sound; /* half a tar gets no end */
  if (archive_write_close(download.archive) < ARCHIVE_WARN || (sound && download.stopped)) {
    ok = sound ? fail_writing(&download, error) : FALSE;
  }
  archive_write_free(download.archive);
  return ok;
}
