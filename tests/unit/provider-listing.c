/* SPDX-License-Identifier: Apache-2.0 */
/* provider-listing.c: what changed, and whether there is a network, asked with the sandbox's own tools. */
#include "provider-files.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/digest.h"

/* ---- Changes ------------------------------------------------------------------------------------------------- */

static int32_t note_entry(void *user, const struct sandhost_entry *entry) {
  g_autofree char *path = g_strndup(entry->path.data, entry->path.length);
  g_autofree char *hex = digest_to_hex(entry->sha256);
  char *line = g_strdup_printf(
      "%s %" G_GUINT64_FORMAT " %s %s", entry->kind == SANDHOST_KIND_CHECKOUT ? "checkout" : "file",
      entry->bytes, entry->flags & SANDHOST_ENTRY_SHA256 ? hex : "-", path);
  g_ptr_array_add(user, line);
  return SANDHOST_OK;
}

static int by_text(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *changes(Sandbox *sandbox, const struct sandhost_known *known, gsize count,
                          guint64 max_hash) {
  g_autoptr(GError) error = NULL;
  GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .user = lines, .entry = note_entry};
  sandbox_changes(sandbox, minute(), known, count, max_hash, &sink, &error);
  g_assert_no_error(error);
  g_ptr_array_sort(lines, by_text);
  return lines;
}

static char *line_of(const char *name, const char *content) {
  g_autofree char *hex = digest_hex(content, strlen(content));
  return g_strdup_printf("file %zu %s %s", strlen(content), hex, name);
}

static void test_changes_names(void) {
  Zoo zoo = example_open();
  g_autoptr(GPtrArray) expected = g_ptr_array_new_with_free_func(g_free);
  for (gsize i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    put(zoo.sandbox, ODD_NAMES[i], ODD_NAMES[i]);
    g_ptr_array_add(expected, line_of(ODD_NAMES[i], ODD_NAMES[i]));
  }
  g_ptr_array_sort(expected, by_text);
  g_autoptr(GPtrArray) lines = changes(zoo.sandbox, NULL, 0, 0);
  g_assert_cmpuint(lines->len, ==, expected->len);
  for (guint i = 0; i < lines->len; i++) {
    g_assert_cmpstr(g_ptr_array_index(lines, i), ==, g_ptr_array_index(expected, i));
  }
  example_close(&zoo);
}

static void test_changes_hidden_and_links(void) {
  Zoo zoo = example_open();
  shell(zoo.sandbox, "mkdir .hidden a a/.h; echo 1 >.hidden/x; echo 1 >a/.h/x; echo 1 >.y; "
                     "ln -s /etc/passwd link; ln -s /etc folder; mkfifo pipe; printf 1 >a/seen");
  g_autoptr(GPtrArray) lines = changes(zoo.sandbox, NULL, 0, 0);
  g_autofree char *seen = line_of("a/seen", "1");
  g_assert_cmpuint(lines->len, ==, 1);
  g_assert_cmpstr(g_ptr_array_index(lines, 0), ==, seen);
  example_close(&zoo);
}

static void test_changes_checkouts(void) {
  Zoo zoo = example_open();
  shell(zoo.sandbox, "mkdir -p .git one/.git one/src deep/two; echo gitdir: x >deep/two/.git; "
                     "echo 1 >one/src/x; echo 1 >deep/two/x; printf 1 >top");
  g_autoptr(GPtrArray) lines = changes(zoo.sandbox, NULL, 0, 0);
  g_autofree char *top = line_of("top", "1");
  g_assert_cmpuint(lines->len, ==, 3);
  g_assert_cmpstr(g_ptr_array_index(lines, 0), ==, "checkout 0 - deep/two");
  g_assert_cmpstr(g_ptr_array_index(lines, 1), ==, "checkout 0 - one");
  g_assert_cmpstr(g_ptr_array_index(lines, 2), ==, top);
  example_close(&zoo);
}

static void test_changes_known(void) {
  Zoo zoo = example_open();
  struct sandhost_known known[] = {
      {.path = {.data = "gone", .length = 4}},
      {.path = {.data = "other", .length = 5}},
      {.path = {.data = "same", .length = 4}},
  };
  put(zoo.sandbox, "same", "1");
  put(zoo.sandbox, "other", "2");
  put(zoo.sandbox, "new", "3");
  digest_of("1", 1, known[1].sha256);
  digest_of("1", 1, known[2].sha256);
  g_autoptr(GPtrArray) lines = changes(zoo.sandbox, known, G_N_ELEMENTS(known), 0);
  g_autofree char *other = line_of("other", "2");
  g_autofree char *new = line_of("new", "3");
  g_assert_cmpuint(lines->len, ==, 2);
  g_assert_true(g_ptr_array_find_with_equal_func(lines, other, g_str_equal, NULL));
  g_assert_true(g_ptr_array_find_with_equal_func(lines, new, g_str_equal, NULL));
  example_close(&zoo);
}

static void test_changes_large_without_hash(void) {
  Zoo zoo = example_open();
  struct sandhost_known known = {.path = {.data = "over", .length = 4}};
  digest_of("123456", 6, known.sha256);
  put(zoo.sandbox, "over", "123456");
  put(zoo.sandbox, "just", "12345");
  g_autoptr(GPtrArray) lines = changes(zoo.sandbox, &known, 1, 5);
  g_autofree char *just = line_of("just", "12345");
  g_assert_cmpuint(lines->len, ==, 2);
  g_assert_cmpstr(g_ptr_array_index(lines, 0), ==, just);
  g_assert_cmpstr(g_ptr_array_index(lines, 1), ==, "file 6 - over");
  example_close(&zoo);
}

/* Several command lines of names, and more output than any cap on what a model sees. */
static void test_changes_many(void) {
  Zoo zoo = example_open();
  shell(zoo.sandbox, "d=$(printf '%0200d' 0); mkdir $d; cd $d; i=0; "
                     "while [ $i -lt 3000 ]; do : >$d$i; i=$((i+1)); done");
  g_autoptr(GPtrArray) lines = changes(zoo.sandbox, NULL, 0, 1000);
  g_assert_cmpuint(lines->len, ==, 3000);
  example_close(&zoo);
}

static int32_t stop_entry(void *user, const struct sandhost_entry *entry) {
  (void)user;
  (void)entry;
  return SANDHOST_LIMIT;
}

static void test_changes_stopped(void) {
  Zoo zoo = example_open();
  put(zoo.sandbox, "x", "1");
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .entry = stop_entry};
  GError *error = NULL;
  g_assert_false(sandbox_changes(zoo.sandbox, minute(), NULL, 0, 0, &sink, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  g_assert_cmpstr(error->message, ==,
                  "what changed in the example sandbox cannot be listed: stopped by its sink");
  g_error_free(error);
  example_close(&zoo);
}

/* A sandbox whose PATH leads to nothing but what is in tools. */
static Zoo zoo_with_tools(const char *const *tools, char **ret_folder) {
  char *folder = folder_new();
  for (gsize i = 0; tools[i]; i++) {
    g_autofree char *from = g_find_program_in_path(tools[i]);
    g_autofree char *to = g_build_filename(folder, tools[i], NULL);
    g_assert_cmpint(symlink(from, to), ==, 0);
  }
  *ret_folder = folder;
  return example_open_with(folder);
}

static void test_changes_missing_tool(void) {
  const char *const tools[] = {"sh", "find", "stat", NULL};
  char *folder = NULL;
  Zoo zoo = zoo_with_tools(tools, &folder);
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .entry = stop_entry};
  GError *error = NULL;
  g_assert_false(sandbox_changes(zoo.sandbox, minute(), NULL, 0, 0, &sink, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(error->message, ==,
                  "what changed in the example sandbox cannot be listed: it has no sha256sum");
  g_error_free(error);
  example_close(&zoo);
  folder_remove(folder);
}

/* What a find that is not the sandbox's own may print. */
static void test_changes_hostile(void) {
  static const struct {
    const char *script;
    const char *reason;
  } CASES[] = {
      {"printf 'Mone\\0Mtwo\\0'", "it went on behind its end"},
      {"printf 'E\\0K./a\\0'", "it went on behind its end"},
      {"printf 'K../a\\0'", "it listed a path that is not below the root"},
      {"printf 'K./\\0'", "it listed a path that is not below the root"},
      {"printf 'S0\\0'", "it counted no files"},
      {"printf 'anything\\0'", "it printed something else"},
      {"/usr/bin/head -c 70000000 /dev/zero | /usr/bin/tr '\\0' x", "it printed without an end"},
      /* Each name is short enough, all of them are not. */
      {"printf 'S9\\0'; for i in 1 2 3; do /usr/bin/head -c 30000000 /dev/zero | "
       "/usr/bin/tr '\\0' x; printf '\\0'; done",
       "it printed names without an end"},
  };
  const char *const tools[] = {"sh", "stat", "sha256sum", NULL};
  char *folder = NULL;
  Zoo zoo = zoo_with_tools(tools, &folder);
  g_autofree char *find = g_build_filename(folder, "find", NULL);
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .entry = stop_entry};
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *script = g_strdup_printf("#!/bin/sh\n%s\n", CASES[i].script);
    g_assert_true(
        g_file_set_contents_full(find, script, -1, G_FILE_SET_CONTENTS_NONE, 0755, &error));
    g_assert_no_error(error);
    g_assert_false(sandbox_changes(zoo.sandbox, minute(), NULL, 0, 0, &sink, &error));
    g_assert_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL);
    g_autofree char *message = g_strdup_printf(
        "what changed in the example sandbox cannot be listed: %s", CASES[i].reason);
    g_assert_cmpstr(error->message, ==, message);
  }
  example_close(&zoo);
  folder_remove(folder);
}

/* ---- Probe ----------------------------------------------------------------------------------------------------- */

static guint32 probe(Sandbox *sandbox, const char *address, guint32 port, GError **error) {
  const struct sandhost_probe request = {
      .size = sizeof request,
      .address = {.data = address, .length = strlen(address)},
      .port = port,
      .patience = CLOCK_SECOND,
  };
  guint32 verdict = 0;
  sandbox_probe(sandbox, minute(), &request, &verdict, error);
  return verdict;
}

static void test_probe_reached(void) {
  Zoo zoo = example_open();
  g_autoptr(GError) error = NULL;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = g_htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(bind(listener, (struct sockaddr *)&address, length), ==, 0);
  g_assert_cmpint(listen(listener, 1), ==, 0);
  getsockname(listener, (struct sockaddr *)&address, &length);
  guint32 port = g_ntohs(address.sin_port);
  g_assert_cmpuint(probe(zoo.sandbox, "127.0.0.1", port, &error), ==, SANDHOST_PROBE_REACHED);
  close(listener);
  /* Refused by the far side: there is a way to it. */
  g_assert_cmpuint(probe(zoo.sandbox, "127.0.0.1", port, &error), ==, SANDHOST_PROBE_REACHED);
  g_assert_no_error(error);
  example_close(&zoo);
}

/* Multicast addresses take no connections: there is no way, whatever the machine's network is. */
static void test_probe_blocked(void) {
  Zoo zoo = example_open();
  g_autoptr(GError) error = NULL;
  g_assert_cmpuint(probe(zoo.sandbox, "224.0.0.1", 80, &error), ==, SANDHOST_PROBE_BLOCKED);
  g_assert_no_error(error);
  example_close(&zoo);
}

static void test_probe_without_python(void) {
  const char *const tools[] = {"find", NULL};
  char *folder = NULL;
  Zoo zoo = zoo_with_tools(tools, &folder);
  GError *error = NULL;
  g_assert_cmpuint(probe(zoo.sandbox, "127.0.0.1", 80, &error), ==, 0);
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(error->message, ==,
                  "The example sandbox's network could not be checked: the image has no python to "
                  "run the check with");
  g_error_free(error);
  example_close(&zoo);
  folder_remove(folder);
}

static void test_probe_with_broken_python(void) {
  const char *const tools[] = {"find", NULL};
  char *folder = NULL;
  Zoo zoo = zoo_with_tools(tools, &folder);
  g_autofree char *python = g_build_filename(folder, "python3", NULL);
  g_file_set_contents(python, "#!/bin/sh\nexit 1\n", -1, NULL);
  g_chmod(python, 0755);
  GError *error = NULL;
  g_assert_cmpuint(probe(zoo.sandbox, "127.0.0.1", 80, &error), ==, 0);
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_INTERNAL);
  g_assert_cmpstr(error->message, ==,
                  "The example sandbox's network could not be checked: the check gave no clear "
                  "answer");
  g_error_free(error);
  example_close(&zoo);
  folder_remove(folder);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/listing/" name, function)
  TEST("changes-names", test_changes_names);
  TEST("changes-hidden-and-links", test_changes_hidden_and_links);
  TEST("changes-checkouts", test_changes_checkouts);
  TEST("changes-known", test_changes_known);
  TEST("changes-large-without-hash", test_changes_large_without_hash);
  TEST("changes-many", test_changes_many);
  TEST("changes-stopped", test_changes_stopped);
  TEST("changes-missing-tool", test_changes_missing_tool);
  TEST("changes-hostile", test_changes_hostile);
  TEST("probe-reached", test_probe_reached);
  TEST("probe-blocked", test_probe_blocked);
  TEST("probe-without-python", test_probe_without_python);
  TEST("probe-with-broken-python", test_probe_with_broken_python);
  return g_test_run();
}
