/* SPDX-License-Identifier: Apache-2.0 */
/* The plain path's readers: the stream of both outputs, the script's words in it, tar streams, and the listing of one. */
#include "fake-guest.h"

#include <archive.h>
#include <archive_entry.h>
#include <nettle/sha2.h>

/* The parts under test. */
#include "../../plugins/docker/engine-frames.c"
#include "../../plugins/docker/plain-changes.c"
#include "../../plugins/docker/plain-path.c"
#include "../../plugins/docker/plain-tar.c"
#include "../../plugins/docker/plain-words.c"

/* ---- Tar streams ------------------------------------------------------------------------------- */

static la_ssize_t append_bytes(struct archive *archive, void *user, const void *data,
                               size_t length) {
  (void)archive;
  g_byte_array_append(user, data, (guint)length);
  return (la_ssize_t)length;
}

static struct archive *tar_open(GByteArray *bytes) {
  struct archive *archive = archive_write_new();
  archive_write_set_format_pax(archive);
  archive_write_set_options(archive, "hdrcharset=BINARY");
  archive_write_open(archive, bytes, NULL, append_bytes, NULL);
  return archive;
}

static void tar_add(struct archive *archive, const char *name, mode_t type, const char *content) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, type);
  archive_entry_set_perm(entry, 0640);
  archive_entry_set_mtime(entry, 1700000000, 123456789);
  archive_entry_set_size(entry, type == AE_IFREG ? (la_int64_t)strlen(content) : 0);
  if (type == AE_IFLNK) {
    archive_entry_copy_symlink(entry, content);
  }
  g_assert_cmpint(archive_write_header(archive, entry), ==, ARCHIVE_OK);
  if (type == AE_IFREG) {
    g_assert_cmpint(archive_write_data(archive, content, strlen(content)), ==,
                    (la_ssize_t)strlen(content));
  }
  archive_entry_free(entry);
}

static void tar_add_hard_link(struct archive *archive, const char *name, const char *first) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_copy_hardlink(entry, first);
  g_assert_cmpint(archive_write_header(archive, entry), ==, ARCHIVE_OK);
  archive_entry_free(entry);
}

static void tar_close(struct archive *archive) {
  g_assert_cmpint(archive_write_close(archive), ==, ARCHIVE_OK);
  archive_write_free(archive);
}

/* What a reader tells, as text. */
struct heard {
  GString *text;
  int32_t stop_at_member;
};

static int32_t hear_member(void *user, const struct tar_member *member) {
  struct heard *heard = user;
  g_string_append_printf(heard->text, "%d %s %o %" G_GINT64_FORMAT " [", (int)member->kind,
                         member->name, member->mode, member->mtime);
  if (member->kind == TAR_LINK || member->kind == TAR_HARD_LINK) {
    g_string_append(heard->text, member->link);
  }
  return heard->stop_at_member;
}

static int32_t hear_content(void *user, const void *data, size_t length) {
  struct heard *heard = user;
  g_string_append_len(heard->text, data, (gssize)length);
  return SANDHOST_OK;
}

static int32_t hear_end(void *user) {
  struct heard *heard = user;
  g_string_append(heard->text, "]");
  return SANDHOST_OK;
}

static const struct tar_events HEAR = {
    .member = hear_member, .content = hear_content, .member_end = hear_end};

/* Feeds bytes in pieces. Returns the status; *ret_text is owned. */
static int32_t read_tar(const void *bytes, size_t length, size_t piece, gboolean *ret_at_end,
                        char **ret_text) {
  struct heard heard = {.text = g_string_new(NULL)};
  g_autoptr(TarReader) reader = tar_reader_new(&HEAR, &heard);
  int32_t status = SANDHOST_OK;
  for (size_t at = 0; at < length && status == SANDHOST_OK; at += piece) {
    status = tar_reader_feed(reader, (const char *)bytes + at, MIN(piece, length - at));
  }
  g_assert_true((status == SANDHOST_PROTOCOL) == (tar_reader_complaint(reader) != NULL));
  if (ret_at_end) {
    *ret_at_end = tar_reader_at_end(reader);
  }
  char *text = g_string_free(heard.text, FALSE);
  if (ret_text) {
    *ret_text = text;
  } else {
    g_free(text);
  }
  return status;
}

static void test_tar_members(void) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_autofree char *name = g_strnfill(200, 'n');
  g_autofree char *path = g_strdup_printf("top/%s/%s", name, name);
  struct archive *archive = tar_open(bytes);
  tar_add(archive, "top/", AE_IFDIR, "");
  tar_add(archive, "top/a", AE_IFREG, "hello");
  tar_add(archive, "top/empty", AE_IFREG, "");
  tar_add(archive, "top/\377\n", AE_IFREG, "odd");
  tar_add(archive, path, AE_IFREG, "long");
  tar_add(archive, "top/l", AE_IFLNK, "/etc/passwd");
  tar_add_hard_link(archive, "top/h", "top/a");
  tar_add(archive, "top/p", AE_IFIFO, "");
  tar_close(archive);
  static const size_t PIECES[] = {1, 7, 511, 512, 513, 100000};
  g_autofree char *wanted = g_strdup_printf("1 top 640 1700000000123456789 ["
                                            "0 top/a 640 1700000000123456789 [hello]"
                                            "0 top/empty 640 1700000000123456789 []"
                                            "0 top/\377\n 640 1700000000123456789 [odd]"
                                            "0 %s 640 1700000000123456789 [long]"
                                            "2 top/l 640 1700000000123456789 [/etc/passwd"
                                            "3 top/h 0 0 [top/a"
                                            "4 top/p 640 1700000000123456789 [",
                                            path);
  for (size_t i = 0; i < G_N_ELEMENTS(PIECES); i++) {
    g_autofree char *text = NULL;
    gboolean at_end = FALSE;
    g_assert_cmpint(read_tar(bytes->data, bytes->len, PIECES[i], &at_end, &text), ==, SANDHOST_OK);
    g_assert_true(at_end);
    g_assert_cmpstr(text, ==, wanted);
  }
}

static void test_tar_cut(void) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *archive = tar_open(bytes);
  tar_add(archive, "top/a", AE_IFREG, "hello");
  tar_close(archive);
  for (size_t length = 0; length + 1024 < bytes->len && length < 2048; length++) {
    gboolean at_end = TRUE;
    g_assert_cmpint(read_tar(bytes->data, MIN(length, (size_t)1024), 100, &at_end, NULL), ==,
                    SANDHOST_OK);
    g_assert_false(at_end);
  }
}

static void test_tar_stop(void) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct heard heard = {.text = g_string_new(NULL), .stop_at_member = SANDHOST_CANCELLED};
  g_autoptr(TarReader) reader = tar_reader_new(&HEAR, &heard);
  struct archive *archive = tar_open(bytes);
  tar_add(archive, "top/a", AE_IFREG, "hello");
  tar_close(archive);
  g_assert_cmpint(tar_reader_feed(reader, bytes->data, bytes->len), ==, SANDHOST_CANCELLED);
  g_assert_null(tar_reader_complaint(reader));
  g_string_free(heard.text, TRUE);
}

/* A header with a right sum. */
static void make_header(unsigned char block[512], const char *name, char type, const char *size) {
  unsigned sum = 0;
  memset(block, 0, 512);
  memcpy(block, name, strlen(name));
  memcpy(block + 100, "0000644", 8);
  memcpy(block + 108, "0000000", 8);
  memcpy(block + 116, "0000000", 8);
  memcpy(block + 124, size, strlen(size));
  memcpy(block + 136, "00000000000", 12);
  memset(block + 148, ' ', 8);
  block[156] = (unsigned char)type;
  memcpy(block + 257, "ustar\00000", 8);
  for (size_t i = 0; i < 512; i++) {
    sum += block[i];
  }
  g_snprintf((char *)block + 148, 8, "%06o", sum);
}

static void check_hostile(const char *name, char type, const char *size, const char *content) {
  unsigned char blocks[1024] = {0};
  make_header(blocks, name, type, size);
  memcpy(blocks + 512, content, strlen(content));
  g_assert_cmpint(read_tar(blocks, sizeof blocks, 1000, NULL, NULL), ==, SANDHOST_PROTOCOL);
}

static void test_tar_hostile(void) {
  check_hostile("../x", '0', "00000000000", "");
  check_hostile("/etc/passwd", '0', "00000000000", "");
  check_hostile("a//b", '0', "00000000000", "");
  check_hostile("a/./b", '0', "00000000000", "");
  check_hostile("a/..", '5', "00000000000", "");
  check_hostile("", '0', "00000000000", "");
  check_hostile("a", '0', "0000000000z", "");
  check_hostile("a", '0', "\377\377\377\377\377\377\377\377\377\377\377", "");
  check_hostile("a", 'S', "00000000000", "");
  check_hostile("x", 'x', "00010000000", "");              /* too long */
  check_hostile("x", 'x', "00000000014", "99 path=abc\n"); /* longer than it is */
  check_hostile("x", 'x', "00000000014", "12 size=-123");
  check_hostile("x", 'x', "00000000013", "11 path=../\n");
  unsigned char block[512];
  make_header(block, "a", '0', "00000000000");
  block[0] = 'b'; /* the sum is wrong now */
  g_assert_cmpint(read_tar(block, sizeof block, 512, NULL, NULL), ==, SANDHOST_PROTOCOL);
}

static void test_tar_garbage(void) {
  g_autoptr(GRand) rand = g_rand_new_with_seed(7);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *archive = tar_open(bytes);
  g_autofree char *name = g_strnfill(300, 'n');
  tar_add(archive, name, AE_IFREG, "content");
  tar_add(archive, "b", AE_IFLNK, name);
  tar_close(archive);
  for (int i = 0; i < 20000; i++) { /* nothing is asserted but what the sanitizers see */
    g_autofree unsigned char *copy = g_memdup2(bytes->data, bytes->len);
    for (int j = g_rand_int_range(rand, 1, 5); j > 0; j--) {
      copy[g_rand_int_range(rand, 0, (gint32)bytes->len)] =
          (unsigned char)g_rand_int_range(rand, 0, 256);
    }
    (void)read_tar(copy, bytes->len, (size_t)g_rand_int_range(rand, 1, 2000), NULL, NULL);
  }
}

/* ---- The stream of both outputs ---------------------------------------------------------------- */

static int32_t demux_output(void *user, uint32_t stream, const void *data, size_t length) {
  GString **texts = user;
  g_string_append_len(texts[stream], data, (gssize)length);
  return SANDHOST_OK;
}

static void test_demux_pieces(void) {
  static const unsigned char BYTES[] = "\1\0\0\0\0\0\0\3a\0c"
                                       "\2\0\0\0\0\0\0\2er"
                                       "\1\0\0\0\0\0\0\0"
                                       "\1\0\0\0\0\0\0\1d";
  for (size_t piece = 1; piece < sizeof BYTES; piece++) {
    struct engine_frames frames = {0};
    GString *texts[3] = {NULL, g_string_new(NULL), g_string_new(NULL)};
    for (size_t at = 0; at < sizeof BYTES - 1; at += piece) {
      g_assert_cmpint(engine_frames_feed(&frames, demux_output, texts, BYTES + at,
                                         MIN(piece, sizeof BYTES - 1 - at)),
                      ==, SANDHOST_OK);
    }
    g_assert_cmpuint(texts[1]->len, ==, 4);
    g_assert_true(memcmp(texts[1]->str, "a\0cd", 4) == 0);
    g_assert_cmpstr(texts[2]->str, ==, "er");
    g_string_free(texts[1], TRUE);
    g_string_free(texts[2], TRUE);
  }
}

static void test_demux_hostile(void) {
  static const unsigned char BAD[][8] = {{0, 0, 0, 0, 0, 0, 0, 1}, /* stdin */
                                         {3, 0, 0, 0, 0, 0, 0, 1},
                                         {1, 1, 0, 0, 0, 0, 0, 1},
                                         {1, 0, 0, 0, 1, 0, 0, 1}}; /* above 16 MiB */
  for (size_t i = 0; i < G_N_ELEMENTS(BAD); i++) {
    struct engine_frames frames = {0};
    g_assert_cmpint(engine_frames_feed(&frames, demux_output, NULL, BAD[i], 8), ==,
                    SANDHOST_PROTOCOL);
    g_assert_cmpint(engine_frames_feed(&frames, demux_output, NULL, BAD[i], 8), ==,
                    SANDHOST_PROTOCOL);
  }
}

/* ---- Words ------------------------------------------------------------------------------------- */

#define NONCE "0123456789abcdef0123456789abcdef"

struct words {
  GString *output;
  GString *words;
};

static int32_t words_output(void *user, const void *data, size_t length) {
  struct words *words = user;
  g_string_append_len(words->output, data, (gssize)length);
  return SANDHOST_OK;
}

static int32_t words_word(void *user, const char *word) {
  struct words *words = user;
  g_string_append_printf(words->words, "%s;", word);
  return SANDHOST_OK;
}

static void check_words(const char *bytes, const char *output, const char *told) {
  static const struct plain_word_events EVENTS = {.output = words_output, .word = words_word};
  for (size_t piece = 1; piece <= strlen(bytes); piece++) {
    struct plain_words reader = {.nonce = NONCE};
    struct words words = {.output = g_string_new(NULL), .words = g_string_new(NULL)};
    for (size_t at = 0; at < strlen(bytes); at += piece) {
      g_assert_cmpint(
          plain_words_feed(&reader, &EVENTS, &words, bytes + at, MIN(piece, strlen(bytes) - at)),
          ==, SANDHOST_OK);
    }
    g_assert_cmpint(plain_words_finish(&reader, &EVENTS, &words), ==, SANDHOST_OK);
    g_assert_cmpstr(words.output->str, ==, output);
    g_assert_cmpstr(words.words->str, ==, told);
    g_string_free(words.output, TRUE);
    g_string_free(words.words, TRUE);
  }
}

static void test_words(void) {
  check_words("before\036" NONCE "B12\036out\036" NONCE "E0,0\036another's", "beforeout",
              "B12;E0,0;");
  check_words("\036" NONCE "E3,1\036", "", "E3,1;");
}

static void test_words_alike(void) {
  check_words("\036\036\036x", "\036\036\036x", "");
  check_words("a\0360123\036" NONCE "B1\036b", "a\0360123b", "B1;");
  check_words("\036\036" NONCE "B1\036", "\036", "B1;");
  check_words("\036" NONCE, "\036" NONCE, "");
  check_words(NONCE "E1,0", NONCE "E1,0", "");
}

static void test_words_too_long(void) {
  g_autofree char *filler = g_strnfill(PLAIN_MOST_WORD + 1, 'w');
  g_autofree char *bytes = g_strconcat("\036" NONCE, filler, "\036x", NULL);
  check_words(bytes, bytes, "");
}

/* ---- Paths ------------------------------------------------------------------------------------- */

static void check_below(const char *root, const char *path, const char *wanted) {
  g_autofree char *below =
      plain_path_below(root, (struct sandhost_path){.data = path, .length = strlen(path)});
  g_assert_cmpstr(below, ==, wanted);
}

static void test_path_below(void) {
  check_below("/w", "/w/a/b", "a/b");
  check_below("/w", "/w//a/./b/", "a/b");
  check_below("/w/", "/w/a/../b", "b");
  check_below("/w", "/w", "");
  check_below("/w", "/w/..", NULL);
  check_below("/w", "/w/a/../../w/b", NULL);
  check_below("/w", "/wx", NULL);
  check_below("/w", "/", NULL);
  check_below("/", "/etc/x", "etc/x");
}

/* ---- Listing ----------------------------------------------------------------------------------- */

/* Stands for the engine: a tar for each path. */
static GByteArray *engine_tar;      /* of any path that is asked for */
static GHashTable *engine_tars;     /* by path; of GByteArray */
static enum archive_end engine_end; /* where it is not ARCHIVE_WHOLE */

int32_t plain_archive_get(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const char *path, const struct tar_events *events, void *user,
                          enum archive_end *ret_end) {
  g_autoptr(TarReader) reader = tar_reader_new(events, user);
  const GByteArray *bytes = engine_tars ? g_hash_table_lookup(engine_tars, path) : engine_tar;
  if (!bytes || engine_end == ARCHIVE_MISSING) {
    *ret_end = ARCHIVE_MISSING;
    return SANDHOST_OK;
  }
  int32_t status = tar_reader_feed(reader, bytes->data, bytes->len);
  if (tar_reader_complaint(reader)) {
    return fail_call(sandbox->host, call, SANDHOST_PROTOCOL, "%s", tar_reader_complaint(reader));
  }
  *ret_end = status != SANDHOST_OK ? ARCHIVE_STOPPED : engine_end;
  return SANDHOST_OK;
}

static int32_t list_entry(void *user, const struct sandhost_entry *entry) {
  g_autofree char *hash = g_strdup_printf("%02x%02x", entry->sha256[0], entry->sha256[1]);
  g_ptr_array_add(user,
                  g_strdup_printf("%u %.*s %" G_GUINT64_FORMAT " %o %s", entry->kind,
                                  (int)entry->path.length, entry->path.data, entry->bytes,
                                  entry->mode, entry->flags & SANDHOST_ENTRY_SHA256 ? hash : "-"));
  return SANDHOST_OK;
}

static gint compare_lines(gconstpointer a, gconstpointer b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the status; *ret_text and *ret_message are owned. */
static int32_t list(const struct sandhost_changes *request, char **ret_text, char **ret_message) {
  struct sandhost_call call;
  struct sandhost_sandbox sandbox = {.host = &fake_host};
  g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
  struct sandhost_entry_sink sink = {.size = sizeof sink, .user = lines, .entry = list_entry};
  struct sandhost_changes copy = *request;
  fake_call_init(&call);
  copy.size = sizeof copy;
  copy.root = (struct sandhost_path){.data = "/w", .length = 2};
  int32_t status = plain_changes(&call, &sandbox, &copy, &sink);
  g_ptr_array_sort(lines, compare_lines);
  g_ptr_array_add(lines, NULL);
  *ret_text = g_strjoinv("|", (char **)lines->pdata);
  *ret_message = g_strdup(call.message);
  fake_call_clear(&call);
  return status;
}

static GByteArray *make_listing(void) {
  GByteArray *bytes = g_byte_array_new();
  struct archive *archive = tar_open(bytes);
  tar_add(archive, "w", AE_IFDIR, "");
  tar_add(archive, "w/.git", AE_IFDIR, "");
  tar_add(archive, "w/.git/x", AE_IFREG, "x");
  tar_add(archive, "w/.hidden/repo/.git", AE_IFDIR, "");
  tar_add(archive, "w/a", AE_IFREG, "a");
  tar_add(archive, "w/d/.h", AE_IFREG, "h");
  tar_add(archive, "w/d/b", AE_IFREG, "b");
  tar_add_hard_link(archive, "w/d/hard", "w/d/b");
  tar_add_hard_link(archive, "w/d/hard2", "w/d/.h");
  tar_add(archive, "w/d/link", AE_IFLNK, "b");
  tar_add(archive, "w/d/pipe", AE_IFIFO, "");
  tar_add(archive, "w/repo/+before", AE_IFREG, "in");
  tar_add(archive, "w/repo/.git", AE_IFREG, "gitdir: elsewhere");
  tar_add(archive, "w/repo/sub/.git", AE_IFDIR, "");
  tar_add(archive, "w/repo/sub/c", AE_IFREG, "in");
  tar_close(archive);
  return bytes;
}

static void test_changes_all(void) {
  g_autofree char *text = NULL;
  g_autofree char *message = NULL;
  engine_tar = make_listing();
  g_assert_cmpint(list(&(struct sandhost_changes){0}, &text, &message), ==, SANDHOST_OK);
  g_assert_cmpstr(text, ==,
                  "10 a 1 640 ca97|10 d/b 1 640 3e23|10 d/hard 1 0 3e23|10 d/hard2 0 0 -|"
                  "20 repo 0 0 -");
  g_byte_array_unref(engine_tar);
}

/* What the engine leaves out has a path that is too long: the folder that may hold such a one is told. */
static void test_changes_deep(void) {
  g_autofree char *text = NULL;
  g_autofree char *message = NULL;
  g_autoptr(GString) path = g_string_new("w");
  g_autofree char *name = g_strnfill(200, 'n');
  engine_tar = g_byte_array_new();
  struct archive *archive = tar_open(engine_tar);
  tar_add(archive, "w", AE_IFDIR, "");
  while (path->len + 201 < 4096) {
    g_string_append_printf(path, "/%s", name);
    tar_add(archive, path->str, AE_IFDIR, "");
  }
  tar_close(archive);
  g_assert_cmpint(list(&(struct sandhost_changes){0}, &text, &message), ==, SANDHOST_OK);
  g_autofree char *expected = g_strdup_printf("10 %s 0 0 -", path->str + 2);
  g_assert_cmpstr(text, ==, expected);
  g_byte_array_unref(engine_tar);
}

static void test_changes_known(void) {
  g_autofree char *text = NULL;
  g_autofree char *message = NULL;
  struct sandhost_known known[3] = {{.path = {.data = "a", .length = 1}},
                                    {.path = {.data = "d/b", .length = 3}},
                                    {.path = {.data = "d/hard", .length = 6}}};
  struct sha256_ctx sha;
  sha256_init(&sha);
  sha256_update(&sha, 1, (const uint8_t *)"a");
  sha256_digest(&sha, 32, known[0].sha256);
  sha256_update(&sha, 1, (const uint8_t *)"b");
  sha256_digest(&sha, 32, known[2].sha256); /* and that of d/b is another */
  engine_tar = make_listing();
  g_assert_cmpint(
      list(&(struct sandhost_changes){.known = known, .known_count = 3}, &text, &message), ==,
      SANDHOST_OK);
  g_assert_cmpstr(text, ==, "10 d/b 1 640 3e23|10 d/hard2 0 0 -|20 repo 0 0 -");
  g_byte_array_unref(engine_tar);
}

/* What is kept of a stream is counted, whatever it is kept for. */
static void test_changes_count_names(void) {
  static const struct {
    const char *end;
    enum tar_kind kind;
  } MEMBERS[] = {{"", TAR_FILE}, {"", TAR_HARD_LINK}, {"/.git", TAR_FOLDER}};
  for (gsize i = 0; i < G_N_ELEMENTS(MEMBERS); i++) {
    const struct sandhost_changes request = {.size = sizeof request};
    struct changes changes;
    int32_t status = SANDHOST_OK;
    changes_begin(&changes, &request);
    changes.name_bytes = MOST_NAMES - 10000;
    for (guint j = 0; j < 10000 && status == SANDHOST_OK; j++) {
      g_autofree char *path = g_strdup_printf("root/%u%s", j, MEMBERS[i].end);
      status = take_member(
          &changes,
          &(struct tar_member){.name = path, .link = "root/none", .kind = MEMBERS[i].kind});
    }
    g_assert_cmpint(status, ==, SANDHOST_LIMIT);
    g_assert_cmpuint(changes.name_bytes, <=, MOST_NAMES);
    changes_end(&changes);
  }
}

static void test_changes_bounds(void) {
  g_autofree char *text = NULL;
  g_autofree char *message = NULL;
  engine_tar = make_listing();
  g_assert_cmpint(list(&(struct sandhost_changes){.max_entries = 2}, &text, &message), ==,
                  SANDHOST_LIMIT);
  g_assert_cmpstr(message, ==, "more than 2 files changed");
  g_assert_nonnull(strchr(text, '|')); /* two were told */
  g_byte_array_unref(engine_tar);
  engine_tar = g_byte_array_new();
  struct archive *archive = tar_open(engine_tar);
  tar_add(archive, "w", AE_IFDIR, "");
  tar_add(archive, "w/large", AE_IFREG, "12345");
  tar_close(archive);
  g_clear_pointer(&text, g_free);
  g_clear_pointer(&message, g_free);
  g_assert_cmpint(list(&(struct sandhost_changes){.max_hash_bytes = 4}, &text, &message), ==,
                  SANDHOST_OK);
  g_assert_cmpstr(text, ==, "10 large 5 640 -");
  g_byte_array_unref(engine_tar);
}

static void test_changes_failures(void) {
  g_autofree char *text = NULL;
  g_autofree char *message = NULL;
  engine_tar = make_listing();
  engine_end = ARCHIVE_CUT;
  g_assert_cmpint(list(&(struct sandhost_changes){0}, &text, &message), ==, SANDHOST_CONFLICT);
  g_assert_cmpstr(message, ==, "files in the sandbox change faster than they can be listed");
  g_assert_cmpstr(text, ==, ""); /* nothing is told of what may not be all */
  g_clear_pointer(&text, g_free);
  g_clear_pointer(&message, g_free);
  engine_end = ARCHIVE_MISSING;
  g_assert_cmpint(list(&(struct sandhost_changes){0}, &text, &message), ==, SANDHOST_NOT_FOUND);
  g_assert_cmpstr(message, ==, "/w: No such file or directory");
  engine_end = ARCHIVE_WHOLE;
  g_byte_array_unref(engine_tar);
}

/* ---- Links ------------------------------------------------------------------------------------- */

static void put_tar(const char *path, mode_t type, const char *content) {
  GByteArray *bytes = g_byte_array_new();
  struct archive *archive = tar_open(bytes);
  tar_add(archive, strrchr(path, '/') + 1, type, content);
  tar_close(archive);
  g_hash_table_insert(engine_tars, g_strdup(path), bytes);
}

static void check_resolved(const char *below, const char *wanted) {
  static const struct sandhost_path ASKED = {.data = "/w/asked", .length = 8};
  struct sandhost_sandbox sandbox = {.host = &fake_host};
  struct sandhost_call call;
  char *path = NULL;
  fake_call_init(&call);
  int32_t status = plain_resolve(&sandbox, &call, "/w", below, &ASKED, &path);
  g_assert_cmpint(status, ==, wanted ? SANDHOST_OK : SANDHOST_INVALID);
  g_assert_cmpstr(path, ==, wanted);
  if (!wanted) {
    g_assert_cmpstr(call.message, ==, "Path /w/asked is outside the sandbox working directory");
  }
  g_free(path);
  fake_call_clear(&call);
}

static void test_links(void) {
  engine_tars =
      g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_byte_array_unref);
  put_tar("/w/d", AE_IFDIR, "");
  put_tar("/w/d/f", AE_IFREG, "f");
  put_tar("/w/d/up", AE_IFLNK, "../d/f");
  put_tar("/w/in", AE_IFLNK, "d");
  put_tar("/w/absolute", AE_IFLNK, "/w/d");
  put_tar("/w/out", AE_IFLNK, "/etc");
  put_tar("/w/climb", AE_IFLNK, "../etc");
  put_tar("/w/circle", AE_IFLNK, "circle");
  put_tar("/w/far", AE_IFLNK, "in/../../w/d"); /* by way of outside */
  check_resolved("d/f", "d/f");
  check_resolved("d/up", "d/f");
  check_resolved("in/f", "d/f");
  check_resolved("in/new/file", "d/new/file");
  check_resolved("absolute/up", "d/f");
  check_resolved("out/passwd", NULL);
  check_resolved("climb", NULL);
  check_resolved("circle", NULL);
  check_resolved("far/f", NULL);
  g_clear_pointer(&engine_tars, g_hash_table_destroy);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/docker-plain/tar/members", test_tar_members);
  g_test_add_func("/docker-plain/tar/cut", test_tar_cut);
  g_test_add_func("/docker-plain/tar/stop", test_tar_stop);
  g_test_add_func("/docker-plain/tar/hostile", test_tar_hostile);
  g_test_add_func("/docker-plain/tar/garbage", test_tar_garbage);
  g_test_add_func("/docker-plain/demux/pieces", test_demux_pieces);
  g_test_add_func("/docker-plain/demux/hostile", test_demux_hostile);
  g_test_add_func("/docker-plain/words", test_words);
  g_test_add_func("/docker-plain/words/alike", test_words_alike);
  g_test_add_func("/docker-plain/words/too-long", test_words_too_long);
  g_test_add_func("/docker-plain/path-below", test_path_below);
  g_test_add_func("/docker-plain/links", test_links);
  g_test_add_func("/docker-plain/changes/all", test_changes_all);
  g_test_add_func("/docker-plain/changes/changes-deep", test_changes_deep);
  g_test_add_func("/docker-plain/changes/known", test_changes_known);
  g_test_add_func("/docker-plain/changes/bounds", test_changes_bounds);
  g_test_add_func("/docker-plain/changes/count-names", test_changes_count_names);
  g_test_add_func("/docker-plain/changes/failures", test_changes_failures);
  return g_test_run();
}
