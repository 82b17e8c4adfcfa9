/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-fake.h: a sandbox in memory and a workspace folder, for the tests of the bridge. */
#ifndef WORKSPACE_FAKE_H
#define WORKSPACE_FAKE_H

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/error.h"
#include "remove-tree.h"
#include "workspace/beneath.h"
#include "workspace/bridge.h"

#define UNUSED __attribute__((unused))

typedef struct Fake Fake;
struct Fake {
  char *folder; /* the workspace */
  char *around; /* the folder that holds it */
  WorkspaceFolder *held;
  Bridge *bridge;
  BridgeTransport transport;
  BridgeReport *report; /* of the last copies */
  GHashTable *files;    /* what the sandbox holds: char * -> GBytes * */
  GPtrArray *denied;    /* char *: paths that the policy refuses */
  GPtrArray *asked;     /* char *: "r path" or "w path" */
  const char *broken;   /* path at which the policy itself fails */
  gsize piece;          /* bytes per read and write */
  guint uploads;
  guint downloads;
  guint listed;         /* entries of the last listing */
  GByteArray *tar;      /* the last upload */
  GByteArray *answer;   /* the next download's stream instead of the true one */
  GArray *entries;      /* struct sandhost_entry: said beside the true ones */
  GError *upload_fails; /* borrowed by nobody: given out as a copy */
  GError *changes_fails;
  GError *download_fails; /* after the stream */
  void (*before_download)(Fake *fake);
  void (*while_uploading)(Fake *fake); /* before the first read */
};

/* ---- The workspace --------------------------------------------------------------------------- */

UNUSED static char *fake_path(const Fake *fake, const char *path) {
  return g_build_filename(fake->folder, path, NULL);
}

UNUSED static void workspace_put_bytes(const Fake *fake, const char *path, const void *data,
                                       gsize length) {
  g_autofree char *full = fake_path(fake, path);
  g_autofree char *folder = g_path_get_dirname(full);
  g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
  int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  g_assert_cmpint(fd, >=, 0);
  g_assert_cmpint(write(fd, data, length), ==, (gssize)length);
  close(fd);
}

UNUSED static void workspace_put(const Fake *fake, const char *path, const char *text) {
  workspace_put_bytes(fake, path, text, strlen(text));
}

/* Owned; NULL where there is none. */
UNUSED static char *workspace_get(const Fake *fake, const char *path) {
  g_autofree char *full = fake_path(fake, path);
  char *text = NULL;
  g_file_get_contents(full, &text, NULL, NULL);
  return text;
}

#define assert_workspace(fake, path, text)                                                         \
  do {                                                                                             \
    g_autofree char *is = workspace_get(fake, path);                                               \
    g_assert_cmpstr(is, ==, text);                                                                 \
  } while (0)

/* Lets every file's times become older than the clock's tick. */
UNUSED static void settle(void) {
  for (gint64 tick = file_tick(); file_tick() <= tick;) {
    g_usleep(500);
  }
}

/* How many names that begin with the bridge's temporary prefix are below path. */
UNUSED static guint count_temporary(const char *path) {
  guint count = 0;
  g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
  const char *name;
  while (folder && (name = g_dir_read_name(folder))) {
    g_autofree char *below = g_build_filename(path, name, NULL);
    count += g_str_has_prefix(name, ".sandhost-") ? 1 : 0;
    if (!g_file_test(below, G_FILE_TEST_IS_SYMLINK) && g_file_test(below, G_FILE_TEST_IS_DIR)) {
      count += count_temporary(below);
    }
  }
  return count;
}

/* ---- The sandbox ----------------------------------------------------------------------------- */

UNUSED static void sandbox_put_bytes(Fake *fake, const char *path, const void *data, gsize length) {
  g_hash_table_replace(fake->files, g_strdup(path), g_bytes_new(data, length));
}

UNUSED static void sandbox_put(Fake *fake, const char *path, const char *text) {
  sandbox_put_bytes(fake, path, text, strlen(text));
}

UNUSED static void assert_sandbox(Fake *fake, const char *path, const char *text) {
  GBytes *bytes = g_hash_table_lookup(fake->files, path);
  if (!text) {
    g_assert_null(bytes);
    return;
  }
  g_assert_nonnull(bytes);
  gsize length;
  const char *data = g_bytes_get_data(bytes, &length);
  g_assert_cmpuint(length, ==, strlen(text));
  g_assert_true(length == 0 || memcmp(data, text, length) == 0);
}

static la_ssize_t fake_append(struct archive *archive, void *user, const void *data,
                              size_t length) {
  (void)archive;
  g_byte_array_append(user, data, (guint)length);
  return (la_ssize_t)length;
}

/* Starts a tar that is written to out. */
UNUSED static struct archive *tar_begin(GByteArray *out) {
  struct archive *tar = archive_write_new();
  archive_write_set_format_pax_restricted(tar);
  archive_write_set_bytes_per_block(tar, 0);
  archive_write_set_bytes_in_last_block(tar, 1);
  g_assert_cmpint(archive_write_open(tar, out, NULL, fake_append, NULL), ==, ARCHIVE_OK);
  return tar;
}

UNUSED static void tar_add(struct archive *tar, const char *path, mode_t type, const void *data,
                           gsize length) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, path);
  archive_entry_set_filetype(entry, type);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_size(entry, (la_int64_t)length);
  g_assert_cmpint(archive_write_header(tar, entry), >=, ARCHIVE_WARN);
  if (length > 0) {
    g_assert_cmpint(archive_write_data(tar, data, length), ==, (gssize)length);
  }
  archive_entry_free(entry);
}

UNUSED static void tar_end(struct archive *tar) {
  g_assert_cmpint(archive_write_close(tar), ==, ARCHIVE_OK);
  archive_write_free(tar);
}

static void fake_unpack(Fake *fake) {
  struct archive *tar = archive_read_new();
  archive_read_support_format_tar(tar);
  g_assert_cmpint(archive_read_open_memory(tar, fake->tar->data, fake->tar->len), ==, ARCHIVE_OK);
  struct archive_entry *entry;
  int status;
  while ((status = archive_read_next_header(tar, &entry)) >= ARCHIVE_WARN &&
         status != ARCHIVE_EOF) {
    g_assert_cmpint(archive_entry_filetype(entry), ==, AE_IFREG);
    g_assert_cmpint(archive_entry_perm(entry), ==, 0644);
    gsize length = (gsize)archive_entry_size(entry);
    g_autofree char *data = g_malloc(length + 1);
    g_assert_cmpint(archive_read_data(tar, data, length + 1), ==, (gssize)length);
    sandbox_put_bytes(fake, archive_entry_pathname(entry), data, length);
  }
  g_assert_cmpint(status, ==, ARCHIVE_EOF);
  archive_read_free(tar);
}

static gboolean fake_upload(void *user, const struct sandhost_source *tar, GError **error) {
  Fake *fake = user;
  fake->uploads++;
  if (fake->while_uploading) {
    fake->while_uploading(fake);
  }
  g_byte_array_set_size(fake->tar, 0);
  g_autofree guint8 *buffer = g_malloc(fake->piece);
  int64_t count;
  while ((count = tar->read(tar->user, buffer, fake->piece)) > 0) {
    g_byte_array_append(fake->tar, buffer, (guint)count);
  }
  if (fake->upload_fails) {
    g_propagate_error(error, g_error_copy(fake->upload_fails));
    return FALSE;
  }
  g_assert_cmpint(count, ==, 0);
  fake_unpack(fake);
  return TRUE;
}

static const struct sandhost_known *fake_known(const struct sandhost_known *known, gsize count,
                                               const char *path) {
  for (gsize i = 0; i < count; i++) {
    if (i > 0) {
      g_assert_cmpint(strcmp(known[i - 1].path.data, known[i].path.data), <, 0);
    }
    if (strcmp(known[i].path.data, path) == 0) {
      return &known[i];
    }
  }
  return NULL;
}

static gboolean fake_changes(void *user, const struct sandhost_known *known, gsize known_count,
                             guint64 max_hash_bytes, const struct sandhost_entry_sink *sink,
                             GError **error) {
  Fake *fake = user;
  if (fake->changes_fails) {
    g_propagate_error(error, g_error_copy(fake->changes_fails));
    return FALSE;
  }
  fake->listed = 0;
  GHashTableIter iter;
  gpointer key, value;
  g_hash_table_iter_init(&iter, fake->files);
  gboolean go_on = TRUE;
  while (go_on && g_hash_table_iter_next(&iter, &key, &value)) {
    struct sandhost_entry entry = {
        .size = sizeof entry,
        .path = {.data = key, .length = strlen(key)},
        .kind = SANDHOST_KIND_FILE,
        .bytes = g_bytes_get_size(value),
        .mtime = 1,
        .mode = 0644,
    };
    if (entry.bytes <= max_hash_bytes) {
      entry.flags = SANDHOST_ENTRY_SHA256;
      digest_of(g_bytes_get_data(value, NULL), g_bytes_get_size(value), entry.sha256);
      const struct sandhost_known *is = fake_known(known, known_count, key);
      if (is && memcmp(is->sha256, entry.sha256, DIGEST_BYTES) == 0) {
        continue;
      }
    }
    fake->listed++;
    go_on = sink->entry(sink->user, &entry) == SANDHOST_OK;
  }
  for (guint i = 0; go_on && i < fake->entries->len; i++) {
    go_on = sink->entry(sink->user, &g_array_index(fake->entries, struct sandhost_entry, i)) ==
            SANDHOST_OK;
  }
  if (!go_on) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CANCELLED, "the listing was stopped");
  }
  return go_on;
}

static gboolean fake_send(const Fake *fake, const GByteArray *stream,
                          const struct sandhost_sink *sink) {
  for (guint at = 0; at < stream->len; at += (guint)fake->piece) {
    gsize length = MIN(fake->piece, stream->len - at);
    if (sink->write(sink->user, stream->data + at, length) != SANDHOST_OK) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean fake_download(void *user, const struct sandhost_path *names, gsize name_count,
                              const struct sandhost_sink *sink, GError **error) {
  Fake *fake = user;
  fake->downloads++;
  if (fake->before_download) {
    fake->before_download(fake);
  }
  g_autoptr(GByteArray) stream = g_byte_array_new();
  struct archive *tar = tar_begin(stream);
  for (gsize i = 0; i < name_count; i++) {
    g_assert_cmpuint(strlen(names[i].data), ==, names[i].length);
    GBytes *bytes = g_hash_table_lookup(fake->files, names[i].data);
    if (bytes && !fake->answer) {
      tar_add(tar, names[i].data, AE_IFREG, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
    }
  }
  tar_end(tar);
  gboolean ok = fake_send(fake, fake->answer ? fake->answer : stream, sink);
  if (!ok) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CANCELLED, "the download was stopped");
  } else if (fake->download_fails) {
    g_propagate_error(error, g_error_copy(fake->download_fails));
    ok = FALSE;
  }
  return ok;
}

static gboolean fake_permit(void *user, gboolean write_it, const char *path, GError **error) {
  Fake *fake = user;
  g_ptr_array_add(fake->asked, g_strdup_printf("%c %s", write_it ? 'w' : 'r', path));
  if (fake->broken && strcmp(fake->broken, path) == 0) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_EVALUATION, "the policy is broken");
    return FALSE;
  }
  return !g_ptr_array_find_with_equal_func(fake->denied, path, g_str_equal, NULL);
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* settings may be NULL; its workspace is replaced. */
UNUSED static Fake *fake_new(const BridgeSettings *settings) {
  Fake *fake = g_new0(Fake, 1);
  fake->around = g_dir_make_tmp("workspace-XXXXXX", NULL);
  g_assert_nonnull(fake->around);
  fake->folder = g_build_filename(fake->around, "files", NULL);
  g_assert_cmpint(g_mkdir(fake->folder, 0755), ==, 0);
  BridgeSettings own = {.max_files = 500, .max_file_bytes = 2000000, .max_copy_bytes = 20000000};
  if (settings) {
    own = *settings;
  }
  fake->held = workspace_folder_new(fake->folder);
  own.folder = fake->held;
  fake->bridge = bridge_new(&own, fake_permit, fake);
  fake->transport = (BridgeTransport){
      .user = fake, .upload = fake_upload, .changes = fake_changes, .download = fake_download};
  fake->report = bridge_report_new();
  fake->files =
      g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_bytes_unref);
  fake->denied = g_ptr_array_new();
  fake->asked = g_ptr_array_new_with_free_func(g_free);
  fake->piece = 65536;
  fake->tar = g_byte_array_new();
  fake->entries = g_array_new(FALSE, FALSE, sizeof(struct sandhost_entry));
  return fake;
}

/* As if there had been no folder yet when the run began. */
UNUSED static void fake_without_folder(Fake *fake) {
  g_assert_cmpint(g_rmdir(fake->folder), ==, 0);
  bridge_free(fake->bridge);
  workspace_folder_free(fake->held);
  fake->held = workspace_folder_new(fake->folder);
  const BridgeSettings own = {.folder = fake->held,
                              .max_files = 500,
                              .max_file_bytes = 2000000,
                              .max_copy_bytes = 20000000};
  fake->bridge = bridge_new(&own, fake_permit, fake);
}

UNUSED static void fake_free(Fake *fake) {
  g_assert_cmpuint(count_temporary(fake->around), ==, 0);
  remove_tree(fake->around);
  g_free(fake->around);
  g_free(fake->folder);
  bridge_free(fake->bridge);
  workspace_folder_free(fake->held);
  bridge_report_free(fake->report);
  g_hash_table_unref(fake->files);
  g_ptr_array_unref(fake->denied);
  g_ptr_array_unref(fake->asked);
  g_byte_array_unref(fake->tar);
  g_clear_pointer(&fake->answer, g_byte_array_unref);
  g_array_unref(fake->entries);
  g_clear_error(&fake->upload_fails);
  g_clear_error(&fake->changes_fails);
  g_clear_error(&fake->download_fails);
  g_free(fake);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Fake, fake_free)

UNUSED static void fake_fresh_report(Fake *fake) {
  bridge_report_free(fake->report);
  fake->report = bridge_report_new();
}

/* Each begins a new report. */
UNUSED static void copy_in(Fake *fake) {
  g_autoptr(GError) error = NULL;
  fake_fresh_report(fake);
  gboolean ok = bridge_copy_in(fake->bridge, &fake->transport, fake->report, &error);
  g_assert_no_error(error);
  g_assert_true(ok);
}

UNUSED static void copy_back(Fake *fake) {
  g_autoptr(GError) error = NULL;
  fake_fresh_report(fake);
  gboolean ok = bridge_copy_back(fake->bridge, &fake->transport, fake->report, &error);
  g_assert_no_error(error);
  g_assert_true(ok);
}

/* Returns the error's text, owned. */
UNUSED static char *copy_back_fails(Fake *fake) {
  g_autoptr(GError) error = NULL;
  fake_fresh_report(fake);
  g_assert_false(bridge_copy_back(fake->bridge, &fake->transport, fake->report, &error));
  g_assert_nonnull(error);
  return g_strdup(error->message);
}

UNUSED static char *fake_join(const GPtrArray *texts) {
  GString *all = g_string_new(NULL);
  for (guint i = 0; i < texts->len; i++) {
    g_string_append_printf(all, "%s%s", i > 0 ? "|" : "",
                           (const char *)g_ptr_array_index(texts, i));
  }
  return g_string_free(all, FALSE);
}

#define assert_texts(texts, expected)                                                              \
  do {                                                                                             \
    g_autofree char *joined = fake_join(texts);                                                    \
    g_assert_cmpstr(joined, ==, expected);                                                         \
  } while (0)

/* Every skip as "path: reason", one a line. Owned. */
UNUSED static char *fake_skips(const Fake *fake) {
  GString *all = g_string_new(NULL);
  for (guint i = 0; i < fake->report->skipped->len; i++) {
    const BridgeSkip *skip = g_ptr_array_index(fake->report->skipped, i);
    g_string_append_printf(all, "%s%s: %s", i > 0 ? "\n" : "", skip->path, skip->reason);
  }
  return g_string_free(all, FALSE);
}

#define assert_skips(fake, expected)                                                               \
  do {                                                                                             \
    g_autofree char *skips_are = fake_skips(fake);                                                 \
    g_assert_cmpstr(skips_are, ==, expected);                                                      \
  } while (0)

#endif
