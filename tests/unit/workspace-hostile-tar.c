/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-hostile-tar.c: streams out of a sandbox whose headers no honest program writes: links in steps, sparse
 * members, pax headers, odd names. Each ends with its reason, changes nothing outside, and costs a bounded memory. */
#include "memory-peak.h"
#include "raw-tar.h"
#include "workspace-fake.h"

/* What one stream may cost, whatever it says; the ring, a file, and what a header can hold. */
#define STREAM_KIB MEMORY_PEAK_KIB(16 * 1024)

/* a and b are listed, with this content. */
static Fake *fake_asking(void) {
  Fake *fake = fake_new(NULL);
  sandbox_put(fake, "a", "evil");
  sandbox_put(fake, "b", "evil");
  fake->answer = g_byte_array_new();
  return fake;
}

static void assert_nothing_outside(Fake *fake) {
  g_autoptr(GDir) around = g_dir_open(fake->around, 0, NULL);
  g_assert_cmpstr(g_dir_read_name(around), ==, "files");
  g_assert_null(g_dir_read_name(around));
}

static void assert_empty(Fake *fake) {
  assert_nothing_outside(fake);
  g_autoptr(GDir) files = g_dir_open(fake->folder, 0, NULL);
  g_assert_null(g_dir_read_name(files));
}

static struct raw_tar_member file_named(const char *name) {
  return (struct raw_tar_member){.name = name, .type = '0', .data = "evil", .length = 4};
}

static struct raw_tar_member link_named(const char *name, char type, const char *to) {
  return (struct raw_tar_member){.name = name, .type = type, .link = to};
}

/* The stream is refused with this text behind "could not read the sandbox's files: "; one that ends with * begins so. */
static void check_refused(Fake *fake, const char *reason) {
  raw_tar_end(fake->answer);
  gsize start = memory_peak_reset();
  g_autofree char *text = copy_back_fails(fake);
  gsize peak = memory_peak_above(start);
  g_autofree char *pattern = g_strconcat("could not read the sandbox's files: ", reason, NULL);
  g_test_message("%s", text);
  if (g_str_has_suffix(pattern, "*")) {
    pattern[strlen(pattern) - 1] = '\0';
    g_assert_true(g_str_has_prefix(text, pattern));
  } else {
    g_assert_cmpstr(text, ==, pattern);
  }
  g_assert_cmpuint(peak, <, STREAM_KIB);
  assert_nothing_outside(fake);
}

/* The stream is read, and neither file is believed. */
static void check_passed_over(Fake *fake) {
  raw_tar_end(fake->answer);
  gsize start = memory_peak_reset();
  copy_back(fake);
  gsize peak = memory_peak_above(start);
  assert_skips(fake, "a: changed while it was being copied\nb: changed while it was being copied");
  g_assert_cmpuint(peak, <, STREAM_KIB);
  assert_empty(fake);
}

#define NOT_REGULAR "a member is no regular file: "
#define TOO_LONG "a member's header is too long"
#define NOT_ASKED "a member that was not asked for: "

/* ---- Links ----------------------------------------------------------------------------------- */

static void test_links_in_two_steps(void) {
  g_autoptr(Fake) fake = fake_asking();
  raw_tar_add(fake->answer, link_named("a", '2', "b"));
  raw_tar_add(fake->answer, link_named("b", '2', ".."));
  raw_tar_add(fake->answer, file_named("a/out"));
  check_refused(fake, NOT_REGULAR "'a'");
  assert_empty(fake);
}

/* What came before a lie stays; what comes after it does not. */
static void test_link_behind_a_file(void) {
  g_autoptr(Fake) fake = fake_asking();
  raw_tar_add(fake->answer, file_named("a"));
  raw_tar_add(fake->answer, link_named("b", '2', ".."));
  raw_tar_add(fake->answer, file_named("b/out"));
  check_refused(fake, NOT_REGULAR "'b'");
  assert_workspace(fake, "a", "evil");
  assert_workspace(fake, "b", NULL);
}

static void test_link_to_a_later_folder(void) {
  g_autoptr(Fake) fake = fake_asking();
  raw_tar_add(fake->answer, link_named("a", '2', "later"));
  raw_tar_add(fake->answer, link_named("later", '5', NULL));
  raw_tar_add(fake->answer, file_named("a/out"));
  check_refused(fake, NOT_REGULAR "'a'");
  assert_empty(fake);
}

static void test_hard_link_written_through(void) {
  g_autoptr(Fake) fake = fake_asking();
  struct raw_tar_member link = link_named("a", '1', "/etc/passwd");
  link.data = "evil";
  link.length = 4;
  raw_tar_add(fake->answer, link);
  raw_tar_add(fake->answer, file_named("a"));
  check_refused(fake, NOT_REGULAR "'a'");
  assert_empty(fake);
}

/* A file that says in a pax header that it is a link. */
static void test_link_in_a_pax_header(void) {
  g_autoptr(Fake) fake = fake_asking();
  raw_tar_pax(fake->answer, (const char *const[]){"linkpath", "/etc/passwd", NULL});
  raw_tar_add(fake->answer, link_named("a", '2', "b"));
  raw_tar_add(fake->answer, file_named("b"));
  check_refused(fake, NOT_REGULAR "'a'");
  assert_empty(fake);
}

/* ---- The end -------------------------------------------------------------------------------- */

/* Behind its last member a stream is whole, with the two empty blocks or without. */
static void test_end_without_blocks(void) {
  g_autoptr(Fake) fake = fake_asking();
  raw_tar_add(fake->answer, file_named("a"));
  raw_tar_add(fake->answer, file_named("b"));
  copy_back(fake);
  assert_workspace(fake, "a", "evil");
  assert_workspace(fake, "b", "evil");
  assert_nothing_outside(fake);
}

/* ---- Sparse members -------------------------------------------------------------------------- */

#define HUGE_SIZE "8589934592"

/* The member a with these pax records, and this data. */
static Fake *fake_with_pax(const char *const *records, const void *data, gsize length) {
  Fake *fake = fake_asking();
  raw_tar_pax(fake->answer, records);
  raw_tar_add(fake->answer,
              (struct raw_tar_member){.name = "a", .type = '0', .data = data, .length = length});
  return fake;
}

static void test_sparse_old(void) {
  g_autoptr(Fake) fake = fake_asking();
  guint at = raw_tar_add(fake->answer, (struct raw_tar_member){.name = "a", .type = 'S'});
  memcpy(fake->answer->data + at + 483, "77777777777", 11);
  raw_tar_sum(fake->answer->data + at);
  check_passed_over(fake);
}

static void test_sparse_0_0(void) {
  g_autoptr(Fake) fake = fake_with_pax(
      (const char *const[]){"GNU.sparse.size", HUGE_SIZE, "GNU.sparse.numblocks", "1",
                            "GNU.sparse.offset", "0", "GNU.sparse.numbytes", "4", NULL},
      "evil", 4);
  check_passed_over(fake);
}

static void test_sparse_0_1(void) {
  g_autoptr(Fake) fake = fake_with_pax(
      (const char *const[]){"GNU.sparse.size", HUGE_SIZE, "GNU.sparse.map", "0,4", NULL}, "evil",
      4);
  check_passed_over(fake);
}

static void test_sparse_1_0(void) {
  char data[RAW_TAR_BLOCK + 4] = "1\n0\n4\n";
  memcpy(data + RAW_TAR_BLOCK, "evil", 4);
  g_autoptr(Fake) fake = fake_with_pax(
      (const char *const[]){"GNU.sparse.major", "1", "GNU.sparse.minor", "0", "GNU.sparse.name",
                            "a", "GNU.sparse.realsize", HUGE_SIZE, NULL},
      data, sizeof data);
  check_passed_over(fake);
}

/* Holes within the limit are zeros, and no more than that is made of them. */
static void test_sparse_of_a_fair_size(void) {
  g_autoptr(Fake) fake = fake_with_pax(
      (const char *const[]){"GNU.sparse.size", "1999999", "GNU.sparse.map", "1999990,4", NULL},
      "evil", 4);
  check_passed_over(fake);
}

static void test_sparse_with_another_name(void) {
  g_autoptr(Fake) fake =
      fake_with_pax((const char *const[]){"GNU.sparse.map", "0,4", "GNU.sparse.size", "4",
                                          "GNU.sparse.name", "../out", NULL},
                    "evil", 4);
  check_refused(fake, NOT_ASKED "'../out'");
  assert_empty(fake);
}

/* Files are listed that allow for the longest stream. */
static Fake *fake_asking_for_much(void) {
  Fake *fake = fake_new(NULL);
  g_autofree char *content = g_strnfill(2000000, 'c');
  for (guint i = 0; i < 10; i++) {
    char name[16];
    g_snprintf(name, sizeof name, "file%u", i);
    sandbox_put(fake, name, content);
  }
  fake->answer = g_byte_array_new();
  return fake;
}

/* Each hole of a map costs a dozen times its four bytes; a map may be as long as the stream. */
static void test_sparse_map_without_end(void) {
  g_autoptr(Fake) fake = fake_asking_for_much();
  GString *map = g_string_new("100000000\n");
  while (map->len < (gsize)30 * 1000 * 1000) {
    g_string_append(map, "0\n0\n");
  }
  raw_tar_pax(fake->answer,
              (const char *const[]){"GNU.sparse.major", "1", "GNU.sparse.minor", "0",
                                    "GNU.sparse.name", "file0", "GNU.sparse.realsize", "4", NULL});
  raw_tar_add(
      fake->answer,
      (struct raw_tar_member){.name = "file0", .type = '0', .data = map->str, .length = map->len});
  g_string_free(map, TRUE);
  check_refused(fake, TOO_LONG);
  assert_empty(fake);
}

/* The same of the older kind, whose map goes on in block after block. */
static void test_sparse_blocks_without_end(void) {
  g_autoptr(Fake) fake = fake_asking_for_much();
  guint at = raw_tar_add(fake->answer, (struct raw_tar_member){.name = "file0", .type = 'S'});
  memcpy(fake->answer->data + at + 386, "00000000001\00000000000001", 24);
  fake->answer->data[at + 482] = 1;
  raw_tar_sum(fake->answer->data + at);
  guint8 block[RAW_TAR_BLOCK] = {0};
  for (gsize i = 0; i < 21; i++) {
    memcpy(block + 24 * i, "00000000001\00000000000001", 24);
  }
  block[504] = 1;
  for (gsize i = 0; i < 60000; i++) {
    g_byte_array_append(fake->answer, block, sizeof block);
  }
  check_refused(fake, TOO_LONG);
  assert_empty(fake);
}

static void test_sparse_map_of_nonsense(void) {
  static const char *const MAPS[] = {"-1,4", "0,-4", "99999999999999999999,4", "8,4,0,4", "x", ","};
  for (gsize i = 0; i < G_N_ELEMENTS(MAPS); i++) {
    g_autoptr(Fake) fake = fake_with_pax(
        (const char *const[]){"GNU.sparse.size", "12", "GNU.sparse.map", MAPS[i], NULL}, "evil", 4);
    raw_tar_end(fake->answer);
    g_autoptr(GError) error = NULL;
    fake_fresh_report(fake);
    gsize start = memory_peak_reset();
    if (!bridge_copy_back(fake->bridge, &fake->transport, fake->report, &error)) {
      g_assert_true(g_str_has_prefix(error->message, "could not read the sandbox's files: "));
    }
    g_assert_cmpuint(memory_peak_above(start), <, STREAM_KIB);
    assert_empty(fake);
  }
}

/* ---- Pax headers ----------------------------------------------------------------------------- */

static void test_pax_sizes(void) {
  static const struct {
    const char *size;
    const char *reason; /* NULL: passed over */
  } SIZES[] = {
      {"-1", "*"},
      {"-9223372036854775808", "*"},
      {HUGE_SIZE, "*"},
      {"9223372036854775807", "*"},
      {"99999999999999999999999999", "*"},
      {"0", "*"}, /* so the content is a header, and a bad one */
      {"4", NULL},
      {"4x", NULL},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(SIZES); i++) {
    g_autoptr(Fake) fake =
        fake_with_pax((const char *const[]){"size", SIZES[i].size, NULL}, "else", 4);
    g_test_message("size=%s", SIZES[i].size);
    if (SIZES[i].reason) {
      check_refused(fake, SIZES[i].reason);
    } else {
      check_passed_over(fake);
    }
  }
}

static void test_header_sizes(void) {
  static const char NEGATIVE[12] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
  static const char ENORMOUS[12] = "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff";
  static const char *const SIZES[] = {NEGATIVE, ENORMOUS};
  for (gsize i = 0; i < G_N_ELEMENTS(SIZES); i++) {
    g_autoptr(Fake) fake = fake_asking();
    raw_tar_add(fake->answer,
                (struct raw_tar_member){
                    .name = "a", .type = '0', .data = "evil", .length = 4, .size = SIZES[i]});
    check_refused(fake, "*");
    assert_empty(fake);
  }
}

static void test_pax_path(void) {
  static const char *const PATHS[] = {"../out", "/etc/passwd", "a/../../out", "./a", "a\nb"};
  for (gsize i = 0; i < G_N_ELEMENTS(PATHS); i++) {
    g_autoptr(Fake) fake = fake_with_pax((const char *const[]){"path", PATHS[i], NULL}, "evil", 4);
    g_autofree char *reason = g_strconcat(NOT_ASKED "'", PATHS[i], "'", NULL);
    check_refused(fake, reason);
    assert_empty(fake);
  }
}

static void test_pax_of_endless_values(void) {
  static const char *const KEYS[] = {"path", "comment", "SCHILY.xattr.user.x", "GNU.sparse.map"};
  g_autofree char *value = g_strnfill(1500000, '1');
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    g_autoptr(Fake) fake = fake_with_pax((const char *const[]){KEYS[i], value, NULL}, "evil", 4);
    check_refused(fake, "*");
    assert_empty(fake);
  }
}

/* Headers of headers: nobody calls himself once more for each. */
static void test_headers_without_end(void) {
  static const char TYPES[] = {'x', 'g', 'L', 'K', 'A', 'V'};
  for (gsize i = 0; i < G_N_ELEMENTS(TYPES); i++) {
    g_autoptr(Fake) fake = fake_asking_for_much();
    for (gsize j = 0; j < 60000; j++) {
      raw_tar_add(fake->answer, (struct raw_tar_member){.name = "more", .type = TYPES[i]});
    }
    raw_tar_add(fake->answer, file_named("file0"));
    check_refused(fake, "*");
    assert_empty(fake);
  }
}

/* A header that is never over: its length is that of the stream. */
static void test_header_of_the_whole_stream(void) {
  static const char TYPES[] = {'x', 'g', 'L', 'K'};
  for (gsize i = 0; i < G_N_ELEMENTS(TYPES); i++) {
    g_autoptr(Fake) fake = fake_asking();
    g_autofree char *data = g_strnfill(2000000, 'x');
    raw_tar_add(
        fake->answer,
        (struct raw_tar_member){.name = "long", .type = TYPES[i], .data = data, .length = 2000000});
    check_refused(fake, "*");
    assert_empty(fake);
  }
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* As they are, but for what is no text: JSON escapes them, and the program's own lines hold no control character. */
static void test_names_are_told(void) {
  static const struct {
    const char *name;
    const char *told;
  } NAMES[] = {
      {"a\nb", "a\nb"},
      {"a\r\033[2Jb", "a\r\033[2Jb"},
      {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"../\xff\n", "../\xef\xbf\xbd\n"},
      {"a\xff", "a\xef\xbf\xbd"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    g_autoptr(Fake) fake = fake_asking();
    g_autofree char *reason = g_strconcat(NOT_ASKED "'", NAMES[i].told, "'", NULL);
    raw_tar_add(fake->answer, file_named(NAMES[i].name));
    check_refused(fake, reason);
    assert_empty(fake);
  }
}

/* A newline in a name is part of it; a name that is no UTF-8 never comes back. */
static void test_odd_names_that_were_listed(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "new\nline", "evil");
  sandbox_put(fake, "not\xff\nutf-8", "evil");
  fake->answer = g_byte_array_new();
  raw_tar_add(fake->answer, file_named("new\nline"));
  raw_tar_end(fake->answer);
  copy_back(fake);
  assert_texts(fake->report->written, "new\nline");
  assert_skips(fake, "not\xef\xbf\xbd\nutf-8: name is not UTF-8");
  assert_workspace(fake, "new\nline", "evil");
  assert_nothing_outside(fake);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/workspace/hostile-tar/links/two-steps", test_links_in_two_steps);
  g_test_add_func("/workspace/hostile-tar/links/behind-a-file", test_link_behind_a_file);
  g_test_add_func("/workspace/hostile-tar/links/later-folder", test_link_to_a_later_folder);
  g_test_add_func("/workspace/hostile-tar/links/hard", test_hard_link_written_through);
  g_test_add_func("/workspace/hostile-tar/links/pax", test_link_in_a_pax_header);
  g_test_add_func("/workspace/hostile-tar/end/without-blocks", test_end_without_blocks);
  g_test_add_func("/workspace/hostile-tar/sparse/old", test_sparse_old);
  g_test_add_func("/workspace/hostile-tar/sparse/0.0", test_sparse_0_0);
  g_test_add_func("/workspace/hostile-tar/sparse/0.1", test_sparse_0_1);
  g_test_add_func("/workspace/hostile-tar/sparse/1.0", test_sparse_1_0);
  g_test_add_func("/workspace/hostile-tar/sparse/fair", test_sparse_of_a_fair_size);
  g_test_add_func("/workspace/hostile-tar/sparse/name", test_sparse_with_another_name);
  g_test_add_func("/workspace/hostile-tar/sparse/endless-map", test_sparse_map_without_end);
  g_test_add_func("/workspace/hostile-tar/sparse/endless-blocks", test_sparse_blocks_without_end);
  g_test_add_func("/workspace/hostile-tar/sparse/nonsense", test_sparse_map_of_nonsense);
  g_test_add_func("/workspace/hostile-tar/pax/sizes", test_pax_sizes);
  g_test_add_func("/workspace/hostile-tar/pax/header-sizes", test_header_sizes);
  g_test_add_func("/workspace/hostile-tar/pax/path", test_pax_path);
  g_test_add_func("/workspace/hostile-tar/pax/endless-values", test_pax_of_endless_values);
  g_test_add_func("/workspace/hostile-tar/headers/many", test_headers_without_end);
  g_test_add_func("/workspace/hostile-tar/headers/whole-stream", test_header_of_the_whole_stream);
  g_test_add_func("/workspace/hostile-tar/names/told", test_names_are_told);
  g_test_add_func("/workspace/hostile-tar/names/listed", test_odd_names_that_were_listed);
  return g_test_run();
}
