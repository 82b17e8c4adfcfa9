/* SPDX-License-Identifier: Apache-2.0 */
/* check-transfer.c: tar streams in and out, and what changed. Each part is skipped where the slot is missing. */
#include <archive_entry.h>
#include <nettle/sha2.h>
#include <string.h>

#include "transfer.h"

static void check_upload(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->upload) {
    skipped(verdict, "no upload: the host writes file by file");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_autofree char *deep = g_strdup_printf("deep/%0200d/%0200d", 1, 2);
  struct archive *tar = tar_begin(bytes);
  tar_add(tar, "plain", AE_IFREG, "one", NULL);
  tar_add(tar, "a/b/c", AE_IFREG, "two", NULL);
  tar_add(tar, "\xc3\xa9\xff new\nline", AE_IFREG, "three", NULL);
  tar_add(tar, deep, AE_IFREG, "four", NULL);
  tar_add(tar, "empty", AE_IFREG, "", NULL);
  tar_end(tar);
  gboolean touched = FALSE;
  gint32 status = box_upload(&box, bytes, &touched);
  if (slot_is_absent(status, "upload", touched, verdict)) {
    box_close(&box, verdict);
    return;
  }
  if (status != SANDHOST_OK) {
    wrong(verdict, "upload returned %s", status_name(status));
  }
  g_autofree char *script =
      g_strdup_printf("cat plain a/b/c \"$(printf '\\303\\251\\377 new\\nline')\" %s empty", deep);
  want_run(&box, script, 0, "onetwothreefour", verdict);
  want_run(&box, "echo more >> plain; rm a/b/c", 0, "", verdict);
  box_close(&box, verdict);
}

static void check_hostile_upload(Subject *subject, Verdict *verdict) {
  static const struct {
    const char *name;
    unsigned type;
    const char *link;
  } BAD[] = {{"/tmp/absolute", AE_IFREG, NULL},
             {"../escape", AE_IFREG, NULL},
             {"a/../../escape", AE_IFREG, NULL},
             {"link", AE_IFLNK, "/tmp"},
             {"hard", AE_IFREG, "/etc/hosts"},
             {"device", AE_IFCHR, NULL},
             {"pipe", AE_IFIFO, NULL}};
  Box box;
  if (!subject->table->upload) {
    skipped(verdict, "no upload");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(BAD); i++) {
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    struct archive *tar = tar_begin(bytes);
    tar_add(tar, BAD[i].name, BAD[i].type, "", BAD[i].link);
    tar_end(tar);
    gboolean touched = FALSE;
    gint32 status = box_upload(&box, bytes, &touched);
    if (slot_is_absent(status, "upload", touched, verdict)) {
      box_close(&box, verdict);
      return;
    }
    if (status != SANDHOST_INVALID) {
      wrong(verdict, "upload of '%s' returned %s instead of INVALID", BAD[i].name,
            status_name(status));
    }
  }
  want_run(&box, "ln -s /tmp way", 0, "", verdict);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *tar = tar_begin(bytes);
  tar_add(tar, "way/through", AE_IFREG, "x", NULL);
  tar_end(tar);
  gboolean touched = FALSE;
  if (box_upload(&box, bytes, &touched) == SANDHOST_OK) {
    wrong(verdict, "upload through a link was accepted");
  }
  want_run(&box, "test ! -e /tmp/through && test ! -e /tmp/absolute && test ! -e /tmp/escape", 0,
           "", verdict);
  box_close(&box, verdict);
}

static void check_download(Subject *subject, Verdict *verdict) {
  static const char *const NAMES[] = {"b", "missing", "dir", "link", "way/inner", "d/a\nb", "a"};
  static const char *const EXPECTED[] = {"b", "d/a\nb", "a"};
  Box box;
  if (!subject->table->download) {
    skipped(verdict, "no download: the host reads file by file");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box,
           "mkdir dir d; printf b > b; printf a > a; ln -s b link; printf i > dir/inner; "
           "ln -s dir way; printf n > \"$(printf "
           "'d/a\\nb')\"; chmod 755 b",
           0, "", verdict);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  gint32 status = box_download(&box, NAMES, G_N_ELEMENTS(NAMES), bytes);
  if (slot_is_absent(status, "download", bytes->len > 0, verdict)) {
    box_close(&box, verdict);
    return;
  }
  if (status != SANDHOST_OK) {
    wrong(verdict, "download returned %s", status_name(status));
  }
  struct archive *tar = archive_read_new();
  struct archive_entry *entry = NULL;
  gsize at = 0;
  archive_read_support_format_tar(tar);
  archive_read_open_memory(tar, bytes->data, bytes->len);
  while (archive_read_next_header(tar, &entry) == ARCHIVE_OK) {
    const char *name = archive_entry_pathname(entry);
    if (at >= G_N_ELEMENTS(EXPECTED) || g_strcmp0(name, EXPECTED[at]) != 0) {
      wrong(verdict, "member %zu is '%s'", (size_t)at, name ? name : "");
      break;
    }
    if (archive_entry_size(entry) != 1 || archive_entry_filetype(entry) != AE_IFREG) {
      wrong(verdict, "member '%s' is no file of 1 byte", name);
    }
    at++;
  }
  archive_read_free(tar);
  if (at != G_N_ELEMENTS(EXPECTED)) {
    wrong(verdict, "%zu members instead of %zu", (size_t)at, G_N_ELEMENTS(EXPECTED));
  }
  box_close(&box, verdict);
}

/* ---- What changed ---------------------------------------------------------------------------------------------------- */

static int32_t note_entry(void *user, const struct sandhost_entry *entry) {
  g_autofree char *path = g_strndup(entry->path.data, entry->path.length);
  if (entry->flags & SANDHOST_ENTRY_UNREAD_FOLDER) {
    g_ptr_array_add(user, g_strconcat(path, " folder", NULL));
    return SANDHOST_OK;
  }
  char *line = g_strdup_printf("%s%s %" G_GUINT64_FORMAT "%s", path,
                               entry->kind == SANDHOST_KIND_CHECKOUT ? "/" : "",
                               entry->kind == SANDHOST_KIND_CHECKOUT ? 0 : entry->bytes,
                               entry->flags & SANDHOST_ENTRY_SHA256 ? " hashed" : "");
  g_ptr_array_add(user, line);
  return SANDHOST_OK;
}

static int compare_lines(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *changes(Box *box, const struct sandhost_known *known, gsize count, guint64 max_hash) {
  g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
  const struct sandhost_changes request = {.size = sizeof request,
                                           .root = as_path(box->subject->working_dir),
                                           .known = known,
                                           .known_count = count,
                                           .max_hash_bytes = max_hash};
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .user = lines, .entry = note_entry};
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status = box->subject->table->changes(&call, box->handle, &request, &sink);
  call_clear(&call);
  const char *after = lines->len > 0 ? " after entries" : "";
  g_ptr_array_sort(lines, compare_lines);
  g_ptr_array_add(lines, NULL);
  return status == SANDHOST_OK ? g_strjoinv("|", (char **)lines->pdata)
                               : g_strdup_printf("failed with %s%s", status_name(status), after);
}

static void want_changes(Box *box, const struct sandhost_known *known, gsize count,
                         guint64 max_hash, const char *expected, Verdict *verdict) {
  g_autofree char *found = changes(box, known, count, max_hash);
  if (strcmp(found, expected) != 0) {
    wrong(verdict, "changes listed '%.300s' instead of '%.300s'", found, expected);
  }
}

/* Lists the empty folder. */
static gboolean has_no_changes(Box *box, Verdict *verdict) {
  g_autofree char *found = changes(box, NULL, 0, 1000);
  gboolean touched = g_str_has_suffix(found, "UNSUPPORTED after entries");
  gboolean refused = touched || g_str_has_suffix(found, "UNSUPPORTED");
  return slot_is_absent(refused ? SANDHOST_UNSUPPORTED : SANDHOST_OK, "changes", touched, verdict);
}

static void check_changes(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->changes) {
    skipped(verdict, "no changes: the host runs a listing command");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  if (has_no_changes(&box, verdict)) {
    box_close(&box, verdict);
    return;
  }
  want_changes(&box, NULL, 0, 1000, "", verdict);
  want_run(&box,
           "printf abc > a; mkdir d; printf defg > d/e; printf x > .hidden; mkdir .h; printf x > "
           ".h/f; ln -s a link; "
           "ln -s d way; mkdir repo repo/.git; printf x > repo/f; mkdir .git; head -c 2000 "
           "/dev/zero > big; mkfifo pipe; "
           "mkdir \"$(printf 'new\\nline')\"; printf q > \"$(printf 'new\\nline/x')\"",
           0, "", verdict);
  want_changes(&box, NULL, 0, 1000, "a 3 hashed|big 2000|d/e 4 hashed|new\nline/x 1 hashed|repo/ 0",
               verdict);

  struct sandhost_known known[] = {
      {.path = as_path("a")}, {.path = as_path("d/e")}, {.path = as_path("new\nline/x")}};
  static const char *const CONTENTS[] = {"abc", "defg", "q"};
  for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, strlen(CONTENTS[i]), (const uint8_t *)CONTENTS[i]);
    sha256_digest(&sha, 32, known[i].sha256);
  }
  want_changes(&box, known, G_N_ELEMENTS(known), 1000, "big 2000|repo/ 0", verdict);
  want_run(&box, "rm big; touch a", 0, "", verdict);
  want_changes(&box, known, G_N_ELEMENTS(known), 1000, "repo/ 0", verdict);
  /* The same size and, as far as a command can make it so, the same time. */
  want_run(&box, "touch -r a ref; printf xyz > a; touch -r ref a; rm ref d/e", 0, "", verdict);
  want_changes(&box, known, G_N_ELEMENTS(known), 1000, "a 3 hashed|repo/ 0", verdict);
  box_close(&box, verdict);
}

/* Whoever lists may read more than the commands may; but nothing is left out without a word. */
static void check_changes_unread(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->changes) {
    skipped(verdict, "no changes: the host runs a listing command");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  if (!has_no_changes(&box, verdict)) {
    want_run(&box, "mkdir shut; printf abc > shut/f; chmod 0 shut", 0, "", verdict);
    g_autofree char *found = changes(&box, NULL, 0, 1000);
    if (strcmp(found, "shut/f 3 hashed") != 0 && strcmp(found, "shut folder") != 0) {
      wrong(verdict, "of a folder that a command closed, changes listed '%.300s'", found);
    }
    want_run(&box, "chmod 700 shut", 0, "", verdict);
  }
  box_close(&box, verdict);
}

static void check_changes_after_upload(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->changes || !subject->table->upload) {
    skipped(verdict, "no upload or no changes");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *tar = tar_begin(bytes);
  tar_add(tar, "a", AE_IFREG, "abc", NULL);
  tar_add(tar, "b", AE_IFREG, "abc", NULL);
  tar_end(tar);
  struct sandhost_known known[] = {{.path = as_path("a")}, {.path = as_path("b")}};
  for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, 3, (const uint8_t *)"abc");
    sha256_digest(&sha, 32, known[i].sha256);
  }
  gboolean touched = FALSE;
  gboolean absent = has_no_changes(&box, verdict) ||
                    slot_is_absent(box_upload(&box, bytes, &touched), "upload", touched, verdict);
  for (int i = 0; i < 20 && !absent; i++) {
    /* At once after the upload, again and again: an edit within the same clock tick must be seen. */
    box_upload(&box, bytes, &touched);
    want_changes(&box, known, 2, 1000, "", verdict);
    want_run(&box, "printf xyz > b", 0, "", verdict);
    want_changes(&box, known, 2, 1000, "b 3 hashed", verdict);
  }
  box_close(&box, verdict);
}

const Check TRANSFER_CHECKS[] = {
    {"upload: files",
     "a tar stream is unpacked below the folder, names byte for byte, with parents", check_upload},
    {"upload: hostile",
     "anything but files and folders below the folder is INVALID, and changes nothing outside",
     check_hostile_upload},
    {"download: files", "the named regular files come in the order named; others are left out",
     check_download},
    {"changes: listing",
     "what differs from known is listed; hidden files, links and checkouts' insides are not",
     check_changes},
    {"changes: unread folder",
     "a folder that cannot be read is listed as one, not left out without a word",
     check_changes_unread},
    {"changes: after upload", "an edit right after an upload is seen", check_changes_after_upload},
    {0},
};
