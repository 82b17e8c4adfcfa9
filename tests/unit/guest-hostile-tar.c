/* SPDX-License-Identifier: Apache-2.0 */
/* guest-hostile-tar.c: streams into a sandbox whose headers no host writes. Each is refused with its reason, leaves nothing
 * outside the folder that it was for, and costs the guest a bounded memory. */
#include "guest-raw.h"
#include "raw-tar.h"

/* Of the whole guest. Under a sanitizer it has another size. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GUEST_KIB ((guint64)1 << 30)
#else
#define GUEST_KIB ((guint64)16 * 1024)
#endif

struct target {
  struct raw raw;
  char *root; /* the only thing in raw.dir */
  GByteArray *tar;
  uint32_t id;
};

static void begin(struct target *self) {
  *self = (struct target){.tar = g_byte_array_new()};
  raw_begin(&self->raw);
  self->root = raw_path(&self->raw, "root");
  g_assert_cmpint(g_mkdir(self->root, 0755), ==, 0);
}

static void end(struct target *self) {
  raw_end(&self->raw);
  g_byte_array_unref(self->tar);
  g_free(self->root);
}

static void assert_peak(const struct raw *raw) {
  g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)raw->pid);
  g_autofree char *text = NULL;
  g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
  const char *line = strstr(text, "VmHWM:");
  g_assert_nonnull(line);
  g_assert_cmpuint(g_ascii_strtoull(line + strlen("VmHWM:"), NULL, 10), <, GUEST_KIB);
}

/* Sends what is in the tar stream, and begins another. */
static struct raw_answer *upload(struct target *self) {
  struct raw *raw = &self->raw;
  raw_tar_end(self->tar);
  uint32_t id = ++self->id;
  raw_open_texts(raw, id, GUEST_UPLOAD, self->root, NULL);
  struct raw_answer *answer = raw_answer(raw, id);
  for (size_t at = 0; at < self->tar->len && !answer->done;) {
    size_t may = GUEST_WINDOW + (size_t)answer->credited - at;
    if (may == 0) {
      g_assert_true(raw_step(raw));
      continue;
    }
    size_t part = MIN(may, self->tar->len - at);
    raw_send_data(raw, id, self->tar->data + at, part);
    at += part;
  }
  raw_send_end(raw, id);
  g_byte_array_set_size(self->tar, 0);
  return raw_wait(raw, id);
}

/* Every name below raw.dir, by line, as a shell that knows no locale sorts them. */
static void assert_tree(struct target *self, const char *expected) {
  struct raw_answer *answer = raw_run(&self->raw, ++self->id, "find . -mindepth 1 | LC_ALL=C sort");
  g_assert_cmpstr(answer->out->str, ==, expected);
}

/* Refused with this text, which may be the beginning of the real one; nothing is there. */
static void check_refused(struct target *self, const char *reason) {
  struct raw_answer *answer = upload(self);
  g_test_message("%d %s", answer->status, answer->message);
  g_assert_cmpint(answer->status, ==, SANDHOST_INVALID);
  g_assert_true(g_str_has_prefix(answer->message, reason));
  assert_peak(&self->raw);
  assert_tree(self, "./root\n");
}

static struct raw_tar_member file_named(const char *name) {
  return (struct raw_tar_member){.name = name, .type = '0', .data = "evil", .length = 4};
}

static struct raw_tar_member link_named(const char *name, char type, const char *to) {
  return (struct raw_tar_member){.name = name, .type = type, .link = to};
}

#define NO_FILE(name)                                                                              \
  "'" name "' in the tar stream is no file or folder below the working directory"

/* ---- Links ----------------------------------------------------------------------------------- */

static void test_links_in_the_stream(void) {
  struct target self;
  begin(&self);
  raw_tar_add(self.tar, link_named("a", '2', "b"));
  raw_tar_add(self.tar, link_named("b", '2', ".."));
  raw_tar_add(self.tar, file_named("a/out"));
  check_refused(&self, NO_FILE("a"));
  raw_tar_add(self.tar, link_named("a", '2', "later"));
  raw_tar_add(self.tar, link_named("later", '5', NULL));
  raw_tar_add(self.tar, file_named("a/out"));
  check_refused(&self, NO_FILE("a"));
  struct raw_tar_member hard = link_named("a", '1', "/etc/passwd");
  hard.data = "evil";
  hard.length = 4;
  raw_tar_add(self.tar, hard);
  raw_tar_add(self.tar, file_named("a"));
  check_refused(&self, NO_FILE("a"));
  end(&self);
}

/* What comes before the lie is there; through a link that takes its place nothing goes. */
static void test_link_behind_a_file(void) {
  struct target self;
  begin(&self);
  raw_tar_add(self.tar, file_named("a"));
  raw_tar_add(self.tar, link_named("a", '2', ".."));
  raw_tar_add(self.tar, file_named("a/out"));
  struct raw_answer *answer = upload(&self);
  g_assert_cmpint(answer->status, ==, SANDHOST_INVALID);
  g_assert_cmpstr(answer->message, ==, NO_FILE("a"));
  assert_tree(&self, "./root\n./root/a\n");
  end(&self);
}

/* A command has laid out the links, in two steps; the stream holds nothing but files. */
static void test_links_on_the_disk(void) {
  struct target self;
  begin(&self);
  raw_run(&self.raw, ++self.id, "cd root; ln -s b a; ln -s .. b; ln -s later c; mkdir ../later");
  static const char *const NAMES[] = {"a/out", "b/out", "c/out"};
  for (gsize i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    raw_tar_add(self.tar, file_named(NAMES[i]));
    struct raw_answer *answer = upload(&self);
    g_autofree char *reason = g_strdup_printf("could not write '%s': ", NAMES[i]);
    g_assert_cmpint(answer->status, ==, SANDHOST_INVALID);
    g_assert_true(g_str_has_prefix(answer->message, reason));
  }
  assert_tree(&self, "./later\n./root\n./root/a\n./root/b\n./root/c\n");
  raw_tar_add(self.tar, file_named("a")); /* in the place of the link */
  g_assert_cmpint(upload(&self)->status, ==, SANDHOST_OK);
  g_autofree char *path = g_build_filename(self.root, "a", NULL);
  g_assert_false(g_file_test(path, G_FILE_TEST_IS_SYMLINK));
  end(&self);
}

static void test_hard_link_on_the_disk(void) {
  struct target self;
  begin(&self);
  raw_run(&self.raw, ++self.id, "echo kept > outside; ln outside root/a");
  raw_tar_add(self.tar, file_named("a"));
  g_assert_cmpint(upload(&self)->status, ==, SANDHOST_OK);
  g_assert_cmpstr(raw_run(&self.raw, ++self.id, "cat outside root/a")->out->str, ==, "kept\nevil");
  end(&self);
}

static void test_file_and_folder_of_one_name(void) {
  struct target self;
  begin(&self);
  raw_tar_add(self.tar, link_named("a", '5', NULL));
  raw_tar_add(self.tar, file_named("a"));
  struct raw_answer *answer = upload(&self);
  g_assert_cmpint(answer->status, ==, SANDHOST_INVALID);
  g_assert_cmpstr(answer->message, ==, "could not write 'a': Is a directory");
  raw_tar_add(self.tar, file_named("b"));
  raw_tar_add(self.tar, file_named("b/c"));
  answer = upload(&self);
  g_assert_cmpint(answer->status, ==, SANDHOST_INVALID);
  g_assert_cmpstr(answer->message, ==, "could not write 'b/c': Not a directory");
  assert_tree(&self, "./root\n./root/a\n./root/b\n");
  end(&self);
}

/* ---- Sparse members -------------------------------------------------------------------------- */

#define HUGE_SIZE "8589934592"
#define HOLES "could not write 'a': Invalid argument"

static void check_pax(struct target *self, const char *const *records, const void *data,
                      gsize length, const char *reason) {
  raw_tar_pax(self->tar, records);
  raw_tar_add(self->tar,
              (struct raw_tar_member){.name = "a", .type = '0', .data = data, .length = length});
  check_refused(self, reason);
}

static void test_sparse(void) {
  struct target self;
  char data[RAW_TAR_BLOCK + 4] = "1\n0\n4\n";
  memcpy(data + RAW_TAR_BLOCK, "evil", 4);
  begin(&self);
  guint at = raw_tar_add(self.tar, (struct raw_tar_member){.name = "a", .type = 'S'});
  memcpy(self.tar->data + at + 483, "77777777777", 11);
  raw_tar_sum(self.tar->data + at);
  check_refused(&self, HOLES);
  check_pax(&self,
            (const char *const[]){"GNU.sparse.size", HUGE_SIZE, "GNU.sparse.numblocks", "1",
                                  "GNU.sparse.offset", "0", "GNU.sparse.numbytes", "4", NULL},
            "evil", 4, HOLES);
  check_pax(&self,
            (const char *const[]){"GNU.sparse.size", HUGE_SIZE, "GNU.sparse.map", "0,4", NULL},
            "evil", 4, HOLES);
  check_pax(
      &self,
      (const char *const[]){"GNU.sparse.size", HUGE_SIZE, "GNU.sparse.map", "8589934588,4", NULL},
      "evil", 4, HOLES);
  check_pax(&self,
            (const char *const[]){"GNU.sparse.major", "1", "GNU.sparse.minor", "0",
                                  "GNU.sparse.name", "a", "GNU.sparse.realsize", HUGE_SIZE, NULL},
            data, sizeof data, HOLES);
  check_pax(&self,
            (const char *const[]){"GNU.sparse.map", "0,4", "GNU.sparse.size", "4",
                                  "GNU.sparse.name", "../out", NULL},
            "evil", 4, NO_FILE("../out"));
  end(&self);
}

static void test_sparse_map_without_end(void) {
  struct target self;
  begin(&self);
  GString *map = g_string_new("100000000\n");
  while (map->len < (gsize)8 * 1000 * 1000) {
    g_string_append(map, "0\n0\n");
  }
  check_pax(&self,
            (const char *const[]){"GNU.sparse.major", "1", "GNU.sparse.minor", "0",
                                  "GNU.sparse.name", "a", "GNU.sparse.realsize", "4", NULL},
            map->str, map->len, "the tar stream cannot be read: a member's header is too long");
  g_string_free(map, TRUE);
  end(&self);
}

/* ---- Pax headers ----------------------------------------------------------------------------- */

static void test_sizes(void) {
  static const char *const SIZES[] = {
      "-1", "-9223372036854775808", HUGE_SIZE, "9223372036854775807", "99999999999999999999999999",
      "0"};
  static const char NEGATIVE[12] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
  struct target self;
  begin(&self);
  for (gsize i = 0; i < G_N_ELEMENTS(SIZES) - 1; i++) {
    check_pax(&self, (const char *const[]){"size", SIZES[i], NULL}, "evil", 4,
              i == 2 ? "could not write 'a': " : "the tar stream cannot be read: ");
  }
  raw_tar_add(self.tar,
              (struct raw_tar_member){
                  .name = "a", .type = '0', .data = "evil", .length = 4, .size = NEGATIVE});
  check_refused(&self, "the tar stream cannot be read: ");
  end(&self);
}

static void test_endless_values(void) {
  static const char *const KEYS[] = {"path", "comment", "GNU.sparse.map"};
  g_autofree char *value = g_strnfill(1500000, '1');
  struct target self;
  begin(&self);
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    check_pax(&self, (const char *const[]){KEYS[i], value, NULL}, "evil", 4,
              "the tar stream cannot be read: ");
  }
  g_autofree char *path = g_strnfill(PATH_MAX, 'p');
  check_pax(&self, (const char *const[]){"path", path, NULL}, "evil", 4,
            "a member of the tar stream has no usable name");
  end(&self);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void test_names(void) {
  static const struct {
    const char *name;
    const char *reason;
  } NAMES[] = {
      {"../new\nline", NO_FILE("../new\nline")},
      {"a\n/../../out", NO_FILE("a\n/../../out")},
      {"\xff/../../out", NO_FILE("\xff/../../out")},
      {"/\xff\n", NO_FILE("/\xff\n")},
      {"a\n//b", NO_FILE("a\n//b")},
  };
  struct target self;
  begin(&self);
  for (gsize i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    raw_tar_add(self.tar, file_named(NAMES[i].name));
    check_refused(&self, NAMES[i].reason);
    raw_tar_pax(self.tar, (const char *const[]){"path", NAMES[i].name, NULL});
    raw_tar_add(self.tar, file_named("a"));
    check_refused(&self, NAMES[i].reason);
  }
  /* They lead nowhere else, so they are names as any other. */
  raw_tar_add(self.tar, file_named("..\n/\xff..\n"));
  g_assert_cmpint(upload(&self)->status, ==, SANDHOST_OK);
  g_autofree char *path = g_build_filename(self.root, "..\n", "\xff..\n", NULL);
  g_autofree char *content = NULL;
  g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
  g_assert_cmpstr(content, ==, "evil");
  end(&self);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/hostile-tar/links/stream", test_links_in_the_stream);
  g_test_add_func("/guest/hostile-tar/links/behind-a-file", test_link_behind_a_file);
  g_test_add_func("/guest/hostile-tar/links/disk", test_links_on_the_disk);
  g_test_add_func("/guest/hostile-tar/links/hard-on-disk", test_hard_link_on_the_disk);
  g_test_add_func("/guest/hostile-tar/one-name", test_file_and_folder_of_one_name);
  g_test_add_func("/guest/hostile-tar/sparse/holes", test_sparse);
  g_test_add_func("/guest/hostile-tar/sparse/endless-map", test_sparse_map_without_end);
  g_test_add_func("/guest/hostile-tar/pax/sizes", test_sizes);
  g_test_add_func("/guest/hostile-tar/pax/endless-values", test_endless_values);
  g_test_add_func("/guest/hostile-tar/names", test_names);
  return g_test_run();
}
