/* SPDX-License-Identifier: Apache-2.0 */
/* check-archives.c: the members of tar streams: names that are long, contents byte for byte, modes, a stream that is cut. */
#include <archive_entry.h>
#include <string.h>

#include "transfer.h"

/* ---- Out ------------------------------------------------------------------------------------------------------------ */

#define LINES 20000
#define LEVELS 60

typedef struct {
  char *name;
  char *content;
} Member;

static void member_free(gpointer data) {
  Member *member = data;
  g_free(member->name);
  g_free(member->content);
  g_free(member);
}

static void member_add(GPtrArray *members, char *take_name, char *take_content) {
  Member *member = g_new(Member, 1);
  *member = (Member){take_name, take_content};
  g_ptr_array_add(members, member);
}

static char *many_lines(void) {
  GString *text = g_string_new(NULL);
  for (int i = 0; i < LINES; i++) {
    g_string_append_printf(text, "Quite a line %d\n", i);
  }
  return g_string_free(text, FALSE);
}

static char *repeated(const char *text, int count) {
  GString *all = g_string_new(NULL);
  for (int i = 0; i < count; i++) {
    g_string_append(all, text);
  }
  return g_string_free(all, FALSE);
}

/* A plain header has room for names of 100 bytes, or 155 and 100 where there is a slash. */
static GPtrArray *members_new(void) {
  GPtrArray *members = g_ptr_array_new_with_free_func(member_free);
  g_autofree char *folder = g_strnfill(255, 'f');
  g_autofree char *file = g_strnfill(255, 'n');
  g_autofree char *deep = repeated("d/", LEVELS);
  member_add(members, g_strnfill(100, 'a'), g_strdup("Quick\n"));
  member_add(members, g_strnfill(124, 'b'), g_strdup("Query\n"));
  member_add(members, g_strconcat(deep, "a name", NULL), g_strdup("Quiet\n"));
  member_add(members, g_strconcat(folder, "/", file, NULL), g_strdup("Quote\n"));
  member_add(members, g_strdup("\xff\xc3 bytes"), g_strdup("Quiz\n"));
  member_add(members, g_strdup("empty"), g_strdup(""));
  member_add(members, g_strdup("many"), many_lines());
  return members;
}

/* All in one folder, whose name is no text. */
#define ODD 10
#define MAKE_ODD                                                                                   \
  "d=\"$(printf '\\376 dir')\"; mkdir \"$d\"; i=0; while [ $i -lt " G_STRINGIFY(                   \
      ODD) " ]; do printf \"Q$i\" > \"$d/$i\"; i=$((i+1)); done"

static GPtrArray *odd_members_new(void) {
  GPtrArray *members = g_ptr_array_new_with_free_func(member_free);
  for (int i = 0; i < ODD; i++) {
    member_add(members, g_strdup_printf("\xfe dir/%d", i), g_strdup_printf("Q%d", i));
  }
  return members;
}

static gboolean make_members(Box *box, const GPtrArray *members, Verdict *verdict) {
  for (guint i = 0; i < members->len; i++) {
    const Member *member = g_ptr_array_index(members, i);
    g_autofree char *path = below(box, member->name);
    gint32 status = write_from(box, path, member->content, (gsize)strlen(member->content), 0644);
    if (status != SANDHOST_OK) {
      return wrong(verdict, "write_file of '%s' returned %s", path, status_name(status));
    }
  }
  return TRUE;
}

static gboolean has_content(struct archive *tar, const char *expected) {
  g_autoptr(GByteArray) content = g_byte_array_new();
  guint8 piece[8192];
  la_ssize_t count = 0;
  while ((count = archive_read_data(tar, piece, sizeof piece)) > 0) {
    g_byte_array_append(content, piece, (guint)count);
  }
  return count == 0 && content->len == strlen(expected) &&
         memcmp(content->data ? content->data : piece, expected, content->len) == 0;
}

/* A warning is about names that are no ASCII. */
static gboolean has_next(struct archive *tar, struct archive_entry **ret_entry) {
  int result = archive_read_next_header(tar, ret_entry);
  return result == ARCHIVE_OK || result == ARCHIVE_WARN;
}

static void judge_stream(const GByteArray *bytes, const GPtrArray *members, Verdict *verdict) {
  struct archive *tar = archive_read_new();
  struct archive_entry *entry = NULL;
  guint at = 0;
  archive_read_support_format_tar(tar);
  archive_read_open_memory(tar, bytes->data, bytes->len);
  while (!verdict->wrong && has_next(tar, &entry)) {
    const Member *member = at < members->len ? g_ptr_array_index(members, at) : NULL;
    const char *name = archive_entry_pathname(entry);
    if (!member || g_strcmp0(name, member->name) != 0) {
      wrong(verdict, "member %u is '%.300s' instead of '%.300s'", at + 1, name ? name : "",
            member ? member->name : "");
    } else if (!has_content(tar, member->content)) {
      wrong(verdict, "the content of '%.300s' is not the file's", member->name);
    }
    at++;
  }
  archive_read_free(tar);
  if (at < members->len) {
    wrong(verdict, "%u members instead of %u", at, members->len);
  }
}

static void download_members(Box *box, const GPtrArray *members, Verdict *verdict) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  const char *names[16];
  for (guint i = 0; i < members->len; i++) {
    names[i] = ((const Member *)g_ptr_array_index(members, i))->name;
  }
  gint32 status = box_download(box, names, members->len, bytes);
  if (slot_is_absent(status, "download", bytes->len > 0, verdict)) {
    return;
  }
  if (status != SANDHOST_OK) {
    wrong(verdict, "download returned %s", status_name(status));
    return;
  }
  judge_stream(bytes, members, verdict);
}

static void check_long_names(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->download) {
    skipped(verdict, "no download: the host reads file by file");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autoptr(GPtrArray) members = members_new();
  if (make_members(&box, members, verdict)) {
    download_members(&box, members, verdict);
  }
  g_autoptr(GPtrArray) odd = odd_members_new();
  if (want_run(&box, MAKE_ODD, 0, "", verdict)) {
    download_members(&box, odd, verdict);
  }
  box_close(&box, verdict);
}

/* ---- In ------------------------------------------------------------------------------------------------------------- */

static gint32 upload_into(Box *box, const GByteArray *bytes, Verdict *verdict) {
  gboolean touched = FALSE;
  gint32 status = box_upload(box, bytes, &touched);
  slot_is_absent(status, "upload", touched, verdict);
  return status;
}

static void check_upload_modes(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->upload) {
    skipped(verdict, "no upload: the host writes file by file");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *tar = tar_begin(bytes);
  tar_add_file(tar, "tool", 0755, "#!/bin/sh\necho ran\n");
  tar_add_file(tar, "plain", 0644, "plain");
  tar_add_file(tar, "own", 0600, "own");
  tar_add_file(tar, "fixed", 0444, "fixed");
  tar_end(tar);
  gint32 status = upload_into(&box, bytes, verdict);
  if (status == SANDHOST_OK) {
    want_run(&box, "for f in tool plain own fixed; do ls -l $f | cut -c 1-10; done", 0,
             "-rwxr-xr-x\n-rw-r--r--\n-rw-------\n-r--r--r--\n", verdict);
    want_run(&box, "./tool", 0, "ran\n", verdict);
  } else if (status != SANDHOST_UNSUPPORTED) {
    wrong(verdict, "upload returned %s", status_name(status));
  }
  box_close(&box, verdict);
}

#define CUT_BYTES 100000 /* of the member */
#define CUT_AT 60000     /* of the stream */

static void check_cut_upload(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->upload) {
    skipped(verdict, "no upload");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_autofree char *content = g_strnfill(CUT_BYTES, 'c');
  struct archive *tar = tar_begin(bytes);
  tar_add_file(tar, "cut", 0644, content);
  tar_end(tar);
  g_byte_array_set_size(bytes, CUT_AT);
  gint32 status = upload_into(&box, bytes, verdict);
  if (status != SANDHOST_UNSUPPORTED && status != SANDHOST_INVALID) {
    wrong(verdict, "upload of a stream that ends inside a file returned %s instead of INVALID",
          status_name(status));
  }
  if (status != SANDHOST_UNSUPPORTED) {
    want_run(&box, "ls -A", 0, "", verdict);
  }
  box_close(&box, verdict);
}

const Check ARCHIVE_CHECKS[] = {
    {"download: long names", "a name of any length and a content of any bytes come back whole",
     check_long_names},
    {"upload: modes", "a file has the permission bits of its member", check_upload_modes},
    {"upload: cut short",
     "a stream that ends inside a file is INVALID, and nothing of that file is there",
     check_cut_upload},
    {0},
};
