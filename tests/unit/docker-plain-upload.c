/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads on the plain path: what the engine is sent for a tar stream of the host's, and what is refused. */
#include "fake-guest.h"

#include <archive.h>
#include <archive_entry.h>

/* The parts under test; what they ask of the others is below. */
#include "../../plugins/docker/plain-tar-source.c"
#include "../../plugins/docker/plain-upload.c"
#undef PIECE
#include "../../plugins/docker/plain-tar.c"

static char *put_folder;    /* what the engine was told to unpack below; owned */
static GString *put_text;   /* what it would make there */
static size_t most_at_once; /* of the sent stream; 0: any number */

char *plain_clean(const char *text, size_t length) {
  return g_strndup(text, length);
}

gboolean plain_path_is_clean(const char *path) {
  return path[0] != '/' && !strstr(path, "..");
}

int32_t plain_check_size(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *what, size_t size, size_t first_size) {
  (void)sandbox;
  (void)call;
  (void)what;
  return size >= first_size ? SANDHOST_OK : SANDHOST_INVALID;
}

int32_t plain_check_absolute(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                             const char *what, struct sandhost_path path) {
  (void)sandbox;
  (void)call;
  (void)what;
  return path.data[0] == '/' ? SANDHOST_OK : SANDHOST_INVALID;
}

char *plain_path_below(const char *root, struct sandhost_path path) {
  size_t length = strlen(root);
  return g_str_has_prefix(path.data, root)
             ? g_strdup(path.data + length + (path.data[length] == '/'))
             : NULL;
}

void plain_drop_file(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                     const char *folder, const char *below) {
  (void)sandbox;
  (void)call;
  g_string_append_printf(put_text, "drop %s %s|", folder, below);
}

static int32_t put_member(void *user, const struct tar_member *member) {
  (void)user;
  g_string_append_printf(put_text, "%s%s %o ", member->name, member->kind == TAR_FOLDER ? "/" : "",
                         member->mode);
  if (member->kind == TAR_FOLDER) {
    g_string_append(put_text, "|");
  }
  return SANDHOST_OK;
}

static int32_t put_content(void *user, const void *data, size_t length) {
  (void)user;
  g_string_append_len(put_text, data, (gssize)length);
  return SANDHOST_OK;
}

static int32_t put_end(void *user) {
  (void)user;
  g_string_append(put_text, "|");
  return SANDHOST_OK;
}

static char *put_partial; /* what the engine cut short; NULL */

int32_t plain_archive_put(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const char *path, const struct sandhost_source *tar, char **ret_partial) {
  static const struct tar_events EVENTS = {
      .member = put_member, .content = put_content, .member_end = put_end};
  g_autoptr(TarReader) reader = tar_reader_new(&EVENTS, NULL);
  char piece[4096];
  int64_t count = 0;
  g_free(put_folder);
  put_folder = g_strdup(path);
  while ((count = tar->read(tar->user, piece,
                            most_at_once ? MIN(most_at_once, sizeof piece) : sizeof piece)) > 0) {
    g_assert_cmpint(tar_reader_feed(reader, piece, (size_t)count), ==, SANDHOST_OK);
  }
  if (count < 0) {
    return fail_call(sandbox->host, call, SANDHOST_CANCELLED, "the source stopped");
  }
  g_assert_true(tar_reader_at_end(reader));
  if (put_partial) {
    *ret_partial = g_strdup(put_partial);
    return fail_call(sandbox->host, call, SANDHOST_LIMIT, "no room");
  }
  return SANDHOST_OK;
}

/* ---- The host's stream ------------------------------------------------------------------------- */

struct bytes {
  GByteArray *data;
  size_t at;
  gboolean stops; /* at the end, in place of ending */
};

static la_ssize_t append_bytes(struct archive *archive, void *user, const void *data,
                               size_t length) {
  (void)archive;
  g_byte_array_append(user, data, (guint)length);
  return (la_ssize_t)length;
}

static int64_t give_bytes(void *user, void *buffer, size_t length) {
  struct bytes *bytes = user;
  size_t part = MIN(MIN(length, (size_t)700), bytes->data->len - bytes->at);
  memcpy(buffer, bytes->data->data + bytes->at, part);
  bytes->at += part;
  return part == 0 && bytes->stops ? -1 : (int64_t)part;
}

/* name, kind, content, again and again until a NULL. */
struct given {
  const char *name;
  mode_t kind;
  const char *content;
};

static GByteArray *make_tar(const struct given *given) {
  GByteArray *data = g_byte_array_new();
  struct archive *archive = archive_write_new();
  archive_write_set_format_pax_restricted(archive);
  archive_write_set_options(archive, "hdrcharset=BINARY");
  archive_write_open(archive, data, NULL, append_bytes, NULL);
  for (; given->name; given++) {
    struct archive_entry *entry = archive_entry_new();
    archive_entry_copy_pathname(entry, given->name);
    archive_entry_set_filetype(entry, given->kind);
    archive_entry_set_perm(entry, 04751);
    archive_entry_set_size(entry, given->kind == AE_IFREG ? (la_int64_t)strlen(given->content) : 0);
    if (given->kind == AE_IFLNK) {
      archive_entry_copy_symlink(entry, given->content);
    }
    g_assert_cmpint(archive_write_header(archive, entry), ==, ARCHIVE_OK);
    if (given->kind == AE_IFREG) {
      archive_write_data(archive, given->content, strlen(given->content));
    }
    archive_entry_free(entry);
  }
  g_assert_cmpint(archive_write_close(archive), ==, ARCHIVE_OK);
  archive_write_free(archive);
  return data;
}

static int32_t upload(const char *dir, struct bytes *bytes, char **ret_message) {
  struct sandhost_instance instance = {.uid = 65534, .gid = 65534};
  struct sandhost_sandbox sandbox = {
      .host = &fake_host, .instance = &instance, .working_dir = g_strdup("/w")};
  struct sandhost_source source = {.size = sizeof source, .user = bytes, .read = give_bytes};
  struct sandhost_call call;
  fake_call_init(&call);
  put_text = put_text ? g_string_truncate(put_text, 0) : g_string_new(NULL);
  int32_t status = plain_upload(
      &call, &sandbox, (struct sandhost_path){.data = dir, .length = strlen(dir)}, &source);
  *ret_message = g_strdup(call.message);
  g_free(sandbox.working_dir);
  fake_call_clear(&call);
  return status;
}

static void check_upload(const char *dir, const struct given *given, int32_t status,
                         const char *message) {
  struct bytes bytes = {.data = make_tar(given)};
  g_autofree char *told = NULL;
  g_assert_cmpint(upload(dir, &bytes, &told), ==, status);
  g_assert_cmpstr(told, ==, message);
  g_byte_array_unref(bytes.data);
}

/* ---- Tests ------------------------------------------------------------------------------------- */

/* Each folder on the way has an entry of its own, once, and no bit of set-user-id is left. */
static void test_rewritten(void) {
  static const struct given GIVEN[] = {{"a/b/c", AE_IFREG, "one"}, {"a/d", AE_IFREG, "two"},
                                       {"e/", AE_IFDIR, ""},       {"a/b", AE_IFDIR, ""},
                                       {"\377\n", AE_IFREG, ""},   {NULL, 0, NULL}};
  for (most_at_once = 1; most_at_once < 1000; most_at_once += 333) {
    check_upload("/w", GIVEN, SANDHOST_OK, NULL);
    g_assert_cmpstr(put_folder, ==, "/w");
    g_assert_cmpstr(put_text->str, ==,
                    "a/ 755 |a/b/ 755 |a/b/c 751 one|a/d 751 two|e/ 755 |\377\n 751 |");
  }
  most_at_once = 0;
}

static void test_below_working_dir(void) {
  static const struct given GIVEN[] = {{"a", AE_IFREG, "one"}, {NULL, 0, NULL}};
  check_upload("/w/x/y", GIVEN, SANDHOST_OK, NULL);
  g_assert_cmpstr(put_folder, ==, "/w");
  g_assert_cmpstr(put_text->str, ==, "x/ 755 |x/y/ 755 |x/y/a 751 one|");
}

static void test_refused(void) {
  static const struct given LINK[] = {
      {"a", AE_IFREG, "1"}, {"l", AE_IFLNK, "/etc"}, {NULL, 0, NULL}};
  static const struct given UP[] = {{"../x", AE_IFREG, "1"}, {NULL, 0, NULL}};
  static const struct given ABSOLUTE[] = {{"/x", AE_IFREG, "1"}, {NULL, 0, NULL}};
  static const struct given PIPE[] = {{"p", AE_IFIFO, ""}, {NULL, 0, NULL}};
  check_upload("/w", LINK, SANDHOST_INVALID,
               "'l' in the tar stream is no file or folder below the working directory");
  check_upload("/w", UP, SANDHOST_INVALID,
               "'../x' in the tar stream is no file or folder below the working directory");
  check_upload("/w", ABSOLUTE, SANDHOST_INVALID,
               "'/x' in the tar stream is no file or folder below the working directory");
  check_upload("/w", PIPE, SANDHOST_INVALID,
               "'p' in the tar stream is no file or folder below the working directory");
}

static void test_cut(void) {
  static const struct given GIVEN[] = {{"a", AE_IFREG, "0123456789"}, {NULL, 0, NULL}};
  struct bytes bytes = {.data = make_tar(GIVEN)};
  g_autofree char *told = NULL;
  g_byte_array_set_size(bytes.data, 515);
  g_assert_cmpint(upload("/w", &bytes, &told), ==, SANDHOST_INVALID);
  g_assert_true(g_str_has_prefix(told, "the tar stream cannot be read: "));
  g_byte_array_unref(bytes.data);
}

static void test_source_stops(void) {
  static const struct given GIVEN[] = {{"a", AE_IFREG, "0123456789"}, {NULL, 0, NULL}};
  struct bytes bytes = {.data = make_tar(GIVEN), .stops = TRUE};
  g_autofree char *told = NULL;
  g_byte_array_set_size(bytes.data, 515);
  g_assert_cmpint(upload("/w", &bytes, &told), ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(told, ==, "the source of the files stopped");
  g_byte_array_unref(bytes.data);
}

/* What the engine left of a file without room is deleted, where it is one of this upload's places. */
static void test_partial(void) {
  static const struct given GIVEN[] = {{"a", AE_IFREG, "1"}, {NULL, 0, NULL}};
  put_partial = g_strdup("/w/x/a");
  check_upload("/w/x", GIVEN, SANDHOST_LIMIT, "no room");
  g_assert_nonnull(strstr(put_text->str, "drop /w x/a|"));
  g_free(put_partial);
  put_partial = g_strdup("/etc/passwd");
  check_upload("/w/x", GIVEN, SANDHOST_LIMIT, "no room");
  g_assert_null(strstr(put_text->str, "drop"));
  g_clear_pointer(&put_partial, g_free);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/docker-plain-upload/rewritten", test_rewritten);
  g_test_add_func("/docker-plain-upload/below-working-dir", test_below_working_dir);
  g_test_add_func("/docker-plain-upload/refused", test_refused);
  g_test_add_func("/docker-plain-upload/cut", test_cut);
  g_test_add_func("/docker-plain-upload/source-stops", test_source_stops);
  g_test_add_func("/docker-plain-upload/partial", test_partial);
  int result = g_test_run();
  g_free(put_folder);
  if (put_text) {
    g_string_free(put_text, TRUE);
  }
  return result;
}
