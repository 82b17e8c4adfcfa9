/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated-native.c: what a provider does natively and what the host makes of its required operations come to the same,
 * over the same sandbox and the same files.
 *
 * The host takes a slot for missing in a sandbox where its bit in absent is set: that is how the emulation is chosen.
 * By default bubblewrap and local are compared; EMULATED_PROVIDER and EMULATED_OPTIONS (JSON) name another one.
 */
#include "provider-files.h"

#include "provider/provider-private.h"

#include <archive.h>
#include <archive_entry.h>
#include <arpa/inet.h>
#include <nettle/sha2.h>
#include <sys/socket.h>

/* ---- Sandboxes -------------------------------------------------------------------------------------------------- */

/* NULL: this machine makes none, and the test is skipped. */
static Zoo *open_real(const char *name) {
  const char *given = g_getenv("EMULATED_OPTIONS");
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) options =
      given ? json_parse("options", given, strlen(given), &error) : NULL;
  g_assert_no_error(error);
  Zoo *zoo = g_new0(Zoo, 1);
  gboolean local = strcmp(name, "local") == 0;
  zoo->registry = provider_registry_new();
  zoo->folder = folder_new();
  Provider *provider = provider_registry_load(zoo->registry, name, &error);
  g_assert_no_error(error);
  zoo->instance = provider_instance_open(zoo->registry, provider, options, &error);
  g_assert_no_error(error);
  g_autofree char *json =
      local ? g_strdup_printf("{\"network_policy\":{\"default\":\"allow\"},\"working_dir\":\"%s\"}",
                              zoo->folder)
            : g_strdup("{}");
  g_autoptr(Manifest) manifest = manifest_of(json);
  zoo->sandbox =
      sandbox_create(zoo->instance, manifest, "emulated-native", "run-1", minute(), &error);
  if (!zoo->sandbox) {
    g_test_skip(error->message);
    provider_instance_close(zoo->instance);
    provider_registry_free(zoo->registry);
    folder_remove(zoo->folder);
    g_clear_pointer(&zoo, g_free);
  }
  return zoo;
}

static void close_real(Zoo *take_zoo) {
  char *folder = g_steal_pointer(&take_zoo->folder);
  zoo_close(take_zoo);
  folder_remove(folder);
  g_free(take_zoo);
}

/* The way that is taken from here on. */
static void choose(Zoo *zoo, gboolean emulated) {
  const guint all = SLOT_UPLOAD | SLOT_DOWNLOAD | SLOT_CHANGES | SLOT_PROBE;
  g_atomic_int_set(&zoo->sandbox->absent, emulated ? all : 0);
}

/* What a line of shell prints. Owned. */
static char *ask(Zoo *zoo, const char *line) {
  const struct sandhost_text argv[] = {{"sh", 2}, {"-c", 2}, {line, strlen(line)}};
  const struct sandhost_execute request = {.size = sizeof request, .argv = argv, .argc = 3};
  Command command = command_new();
  const struct sandhost_observer observer = {
      .size = sizeof observer, .user = &command, .output = command_output};
  g_autoptr(GError) error = NULL;
  sandbox_execute(zoo->sandbox, minute(), &request, &observer, &command.result, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(command.err->str, ==, "");
  char *out = g_strdup(command.out->str);
  command_clear(&command);
  return out;
}

static void empty(Zoo *zoo) {
  shell(zoo->sandbox, "find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +");
}

static char *hex_of(const guint8 digest[32]) {
  GString *text = g_string_new(NULL);
  for (gsize i = 0; i < 32; i++) {
    g_string_append_printf(text, "%02x", digest[i]);
  }
  return g_string_free(text, FALSE);
}

/* Every outcome is text: "ok" and what came, or the status. Owned. */
static char *outcome(gboolean ok, GError *take_error, const char *what) {
  g_autoptr(GError) error = take_error;
  return ok ? g_strdup_printf("ok\n%s", what)
            : g_strdup_printf("%s %d", g_quark_to_string(error->domain), error->code);
}

static int compare_lines(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *sorted(GPtrArray *take_lines) {
  g_ptr_array_sort(take_lines, compare_lines);
  g_ptr_array_add(take_lines, NULL);
  char *text = g_strjoinv("\n", (char **)take_lines->pdata);
  g_ptr_array_unref(take_lines);
  return text;
}

/* ---- Upload ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  unsigned type;
  guint mode;
  gsize length;
} Member;

static la_ssize_t collect(struct archive *archive, void *user, const void *data, size_t length) {
  (void)archive;
  g_byte_array_append(user, data, (guint)length);
  return (la_ssize_t)length;
}

static char *content_of(gsize length) {
  char *content = g_malloc(length + 1);
  for (gsize i = 0; i < length; i++) {
    content[i] = (char)(i * 131 + (i >> 8));
  }
  return content;
}

static GByteArray *tar_of(const Member *members, gsize count) {
  GByteArray *bytes = g_byte_array_new();
  struct archive *tar = archive_write_new();
  archive_write_set_format_pax_restricted(tar);
  archive_write_set_options(tar, "hdrcharset=BINARY");
  archive_write_open(tar, bytes, NULL, collect, NULL);
  for (gsize i = 0; i < count; i++) {
    struct archive_entry *entry = archive_entry_new();
    g_autofree char *content = content_of(members[i].length);
    archive_entry_copy_pathname(entry, members[i].name);
    archive_entry_set_filetype(entry, members[i].type);
    archive_entry_set_perm(entry, members[i].mode);
    archive_entry_set_size(entry, (la_int64_t)members[i].length);
    if (members[i].type == AE_IFLNK) {
      archive_entry_copy_symlink(entry, "/etc");
    }
    g_assert_cmpint(archive_write_header(tar, entry), ==, ARCHIVE_OK);
    archive_write_data(tar, content, members[i].length);
    archive_entry_free(entry);
  }
  archive_write_close(tar);
  archive_write_free(tar);
  return bytes;
}

/* A tree as its files tell: types, modes, sizes, contents, links. Hidden names of ours would show. */
static const char TREE[] =
    "find . -mindepth 1 ! -type l -exec stat -c '%n|%F|%a|%s' {} + | sed "
    "'/|directory|/s/|[^|]*$//' "
    "| sort; find . -type l -exec ls -l {} + | sed 's/.* \\.\\//.\\//' | sort; "
    "find . -type f -exec sha256sum {} + | sort";

static char *upload_once(Zoo *zoo, const char *before, const GByteArray *tar, gboolean emulated) {
  Stream stream = {.bytes = g_byte_array_new(), .piece = 50000};
  const struct sandhost_source source = {
      .size = sizeof source, .user = &stream, .read = stream_read};
  GError *error = NULL;
  empty(zoo);
  shell(zoo->sandbox, before);
  choose(zoo, emulated);
  g_byte_array_append(stream.bytes, tar->data, tar->len);
  gboolean ok = sandbox_upload(zoo->sandbox, minute(), &source, &error);
  g_byte_array_unref(stream.bytes);
  g_autofree char *tree = ask(zoo, TREE);
  return outcome(ok, error, tree);
}

static void same_upload(Zoo *zoo, const char *before, const Member *members, gsize count,
                        gboolean succeeds) {
  g_autoptr(GByteArray) tar = tar_of(members, count);
  g_autofree char *native = upload_once(zoo, before, tar, FALSE);
  g_autofree char *emulated = upload_once(zoo, before, tar, TRUE);
  g_assert_cmpstr(native, ==, emulated);
  g_assert_cmpint(g_str_has_prefix(native, "ok\n"), ==, succeeds);
}

static void test_upload(gconstpointer name) {
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  Member odd[G_N_ELEMENTS(ODD_NAMES)];
  for (gsize i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    odd[i] = (Member){ODD_NAMES[i], AE_IFREG, 0644, i};
  }
  same_upload(zoo, "true", odd, G_N_ELEMENTS(odd), TRUE);
  static const Member modes[] = {
      {"plain", AE_IFREG, 0644, 5},       {"tool", AE_IFREG, 0755, 5},
      {"mine", AE_IFREG, 0600, 5},        {"read", AE_IFREG, 0444, 0},
      {"setuid", AE_IFREG, 04755, 5},     {"folder/", AE_IFDIR, 0755, 0},
      {"empty/deep/", AE_IFDIR, 0755, 0}, {"full/", AE_IFDIR, 0755, 0},
      {"full/file", AE_IFREG, 0644, 5},   {"pieces", AE_IFREG, 0644, 400000}};
  same_upload(zoo, "true", modes, G_N_ELEMENTS(modes), TRUE);
  /* What is there already. */
  static const Member onto[] = {
      {"old", AE_IFREG, 0644, 5}, {"dir/old", AE_IFREG, 0755, 5}, {"dir/", AE_IFDIR, 0755, 0}};
  same_upload(zoo,
              "echo older > old; chmod 600 old; mkdir dir; echo x > dir/old; echo y > dir/stays",
              onto, G_N_ELEMENTS(onto), TRUE);
  static const Member dotted[] = {{"./", AE_IFDIR, 0755, 0},
                                  {"./a", AE_IFREG, 0644, 5},
                                  {"./d/", AE_IFDIR, 0755, 0},
                                  {"./d/b", AE_IFREG, 0644, 5}};
  same_upload(zoo, "true", dotted, G_N_ELEMENTS(dotted), TRUE);
  same_upload(zoo, "true", NULL, 0, TRUE);
  close_real(zoo);
}

static void test_upload_refused(gconstpointer name) {
  static const Member BAD[] = {{"/tmp/absolute", AE_IFREG, 0644, 5},
                               {"../escape", AE_IFREG, 0644, 5},
                               {"a/../../escape", AE_IFREG, 0644, 5},
                               {"a/../b", AE_IFREG, 0644, 5},
                               {"link", AE_IFLNK, 0777, 0},
                               {"pipe", AE_IFIFO, 0644, 0},
                               {"dir", AE_IFREG, 0644, 5},
                               {"file/below", AE_IFREG, 0644, 5},
                               {"way/through", AE_IFREG, 0644, 5}};
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(BAD); i++) {
    g_test_message("member %s", BAD[i].name);
    same_upload(zoo, "mkdir dir; echo x > file; ln -s /tmp way", &BAD[i], 1, FALSE);
  }
  close_real(zoo);
}

/* ---- Download --------------------------------------------------------------------------------------------------- */

static const char FILES[] =
    "mkdir -p a/b dir .hid 'sub dir'; printf one > plain; : > empty; printf two > a/b/deep; "
    "i=0; while [ $i -lt 6000 ]; do printf 'line %s of a file that has many pieces\\n' $i; "
    "i=$((i+1)); done > pieces; "
    "printf h > .hidden; printf h > .hid/f; chmod 755 plain; chmod 600 empty; ln -s plain link; ln "
    "-s a way; ln -s . a/round; "
    "ln -s nowhere dangling; mkfifo pipe; printf n > \"$(printf 'new\\nline')\"; printf s > 'sub "
    "dir/two words'; "
    "printf b > \"$(printf 'bad-\\377')\"; printf b > 'back\\slash'";

static const char *const WANTED[] = {"pieces",
                                     "plain",
                                     "missing",
                                     "dir",
                                     "link",
                                     "a/b/deep",
                                     "pipe",
                                     "dangling",
                                     "new\nline",
                                     "bad-\377",
                                     "empty",
                                     ".hidden",
                                     ".hid/f",
                                     "dir/x",
                                     "plain/nothing",
                                     "back\\slash",
                                     "sub dir/two words",
                                     "way/b/deep",
                                     "a/round/b/deep"};

static char *members_of(const GByteArray *bytes) {
  GString *text = g_string_new(NULL);
  struct archive *tar = archive_read_new();
  struct archive_entry *entry = NULL;
  int result = ARCHIVE_OK;
  archive_read_support_format_tar(tar);
  archive_read_open_memory(tar, bytes->data, bytes->len);
  while ((result = archive_read_next_header(tar, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN) {
    struct sha256_ctx sha;
    guint8 digest[32];
    char piece[4096];
    sha256_init(&sha);
    for (la_ssize_t count; (count = archive_read_data(tar, piece, sizeof piece)) > 0;) {
      sha256_update(&sha, (size_t)count, (const uint8_t *)piece);
    }
    sha256_digest(&sha, sizeof digest, digest);
    g_autofree char *hex = hex_of(digest);
    g_string_append_printf(text, "%s|%o|%d|%s\n", archive_entry_pathname(entry),
                           archive_entry_filetype(entry), (int)archive_entry_size(entry), hex);
  }
  g_assert_cmpint(result, ==, ARCHIVE_EOF);
  archive_read_free(tar);
  return g_string_free(text, FALSE);
}

static char *download_once(Zoo *zoo, const char *const *names, gsize count, gboolean emulated) {
  g_autofree struct sandhost_path *paths = g_new0(struct sandhost_path, count + 1);
  Stream stream = stream_new();
  const struct sandhost_sink sink = {.size = sizeof sink, .user = &stream, .write = stream_write};
  GError *error = NULL;
  for (gsize i = 0; i < count; i++) {
    paths[i] = (struct sandhost_path){.data = names[i], .length = strlen(names[i])};
  }
  choose(zoo, emulated);
  gboolean ok = sandbox_download(zoo->sandbox, minute(), paths, count, &sink, &error);
  g_autofree char *members = ok ? members_of(stream.bytes) : NULL;
  g_byte_array_unref(stream.bytes);
  return outcome(ok, error, members);
}

static void same_download(Zoo *zoo, const char *const *names, gsize count, guint members) {
  g_autofree char *native = download_once(zoo, names, count, FALSE);
  g_autofree char *emulated = download_once(zoo, names, count, TRUE);
  g_assert_cmpstr(native, ==, emulated);
  g_assert_true(g_str_has_prefix(native, "ok\n"));
  guint found = 0;
  for (const char *at = native; (at = strstr(at, "|100000|")) != NULL; at++) {
    found++;
  }
  g_assert_cmpuint(found, ==, members);
}

static void test_download(gconstpointer name) {
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  shell(zoo->sandbox, FILES);
  same_download(zoo, WANTED, G_N_ELEMENTS(WANTED), 10);
  same_download(zoo, WANTED, 1, 1);
  same_download(zoo, WANTED + 2, 3, 0);
  same_download(zoo, WANTED, 0, 0);
  close_real(zoo);
}

/* More names than three command lines of the emulation hold, and a link among the last. */
static void test_download_many(gconstpointer name) {
  const char *names[201];
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  shell(zoo->sandbox,
        "i=0; while [ $i -lt 200 ]; do echo $i > f$i; i=$((i+1)); done; ln -s f0 f200; "
        "rm f3; ln -s f0 f3; rm f150");
  g_autoptr(GPtrArray) owned = g_ptr_array_new_with_free_func(g_free);
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    g_ptr_array_add(owned, g_strdup_printf("f%u", (guint)i));
    names[i] = g_ptr_array_index(owned, i);
  }
  same_download(zoo, names, G_N_ELEMENTS(names), 198);
  close_real(zoo);
}

/* ---- What changed ----------------------------------------------------------------------------------------------- */

static int32_t note_entry(void *user, const struct sandhost_entry *entry) {
  g_autofree char *path = g_strndup(entry->path.data, entry->path.length);
  g_autofree char *hex = hex_of(entry->sha256);
  gboolean is_file = entry->kind == SANDHOST_KIND_FILE;
  g_ptr_array_add(user, g_strdup_printf("%s|%u|%u|%" G_GUINT64_FORMAT "|%" G_GINT64_FORMAT "|%o|%s",
                                        path, entry->kind, entry->flags, is_file ? entry->bytes : 0,
                                        is_file ? entry->mtime / CLOCK_SECOND : 0,
                                        is_file ? entry->mode : 0, hex));
  return SANDHOST_OK;
}

static char *changes_once(Zoo *zoo, const struct sandhost_known *known, gsize count,
                          guint64 max_hash, gboolean emulated) {
  GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .user = lines, .entry = note_entry};
  GError *error = NULL;
  choose(zoo, emulated);
  gboolean ok = sandbox_changes(zoo->sandbox, minute(), known, count, max_hash, &sink, &error);
  g_autofree char *text = sorted(lines);
  return outcome(ok, error, text);
}

static void same_changes(Zoo *zoo, const struct sandhost_known *known, gsize count,
                         guint64 max_hash, guint entries) {
  g_autofree char *native = changes_once(zoo, known, count, max_hash, FALSE);
  g_autofree char *emulated = changes_once(zoo, known, count, max_hash, TRUE);
  g_assert_cmpstr(native, ==, emulated);
  guint found = 0;
  for (const char *at = native; (at = strpbrk(at, "|")) != NULL; at++) {
    found++;
  }
  g_assert_cmpuint(found, ==, 6 * entries);
}

/* An engine's own calls read what the sandbox's user may not. */
static gboolean engine_reads(void) {
  const char *options = g_getenv("EMULATED_OPTIONS");
  return options && strstr(options, "\"never\"");
}

static void test_changes(gconstpointer name) {
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  same_changes(zoo, NULL, 0, 0, 0);
  shell(zoo->sandbox, FILES);
  shell(zoo->sandbox, "mkdir repo repo/.git a/other; printf x > repo/f; : > a/other/.git; mkdir "
                      ".git; printf x > '*'; "
                      "printf x > -rf; printf x > 'tab\there'; chmod 4755 plain; touch -d @86399 "
                      "empty; printf x > secret; "
                      "printf abc > 'trailing '; printf r > \"$(printf 'cr\\r')\"");
  if (!engine_reads()) {
    shell(zoo->sandbox, "chmod 0 secret");
  }
  same_changes(zoo, NULL, 0, 0, 16);
  same_changes(zoo, NULL, 0, 3, 16);
  same_changes(zoo, NULL, 0, 2, 16);
  struct sandhost_known known[] = {{.path = {"a/b/deep", 8}},
                                   {.path = {"gone", 4}},
                                   {.path = {"new\nline", 8}},
                                   {.path = {"plain", 5}}};
  static const char *const CONTENTS[] = {"two", "gone", "n", "not one"};
  for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, strlen(CONTENTS[i]), (const uint8_t *)CONTENTS[i]);
    sha256_digest(&sha, 32, known[i].sha256);
  }
  same_changes(zoo, known, G_N_ELEMENTS(known), 0, 14);
  same_changes(zoo, known, G_N_ELEMENTS(known), 1, 15);
  close_real(zoo);
}

/* Ones that cannot be listed, entered, or named are told; what is beside them is listed as ever. */
static const char UNREAD[] =
    "mkdir shut dark blind blind/in a; for d in shut dark blind; do echo r > $d/r; done; echo r > "
    "a/r\n"
    "chmod 0 shut; chmod 300 dark; chmod 400 blind";

/* Deeper than a path can say. */
static const char DEEP[] =
    "n=$(printf '%0200d' 0); cd a; i=0\n"
    "while [ $i -lt 30 ]; do mkdir $n && cd -P $n || exit 1; i=$((i+1)); done; echo r > r";

/* To gVisor's kernel such a place has no name, which the shell takes for a fault of its own. */
static gboolean goes_deep(void) {
  const char *options = g_getenv("EMULATED_OPTIONS");
  return !options || !strstr(options, "runsc");
}

/* Busybox's passes over it without a word. */
static gboolean has_gnu_find(Zoo *zoo) {
  shell(zoo->sandbox, "find --version >/dev/null 2>&1 || touch plain-find");
  g_autofree char *list = changes_once(zoo, NULL, 0, 0, FALSE);
  shell(zoo->sandbox, "rm -f plain-find");
  return !strstr(list, "plain-find|");
}

static gboolean reads_all(const char *provider) {
  return engine_reads() || (strcmp(provider, "local") == 0 && geteuid() == 0);
}

static void test_changes_unread(gconstpointer name) {
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  if (!reads_all(name)) {
    gboolean is_gnu = has_gnu_find(zoo);
    shell(zoo->sandbox, UNREAD);
    if (goes_deep()) {
      shell(zoo->sandbox, DEEP);
    }
    g_autofree char *native = changes_once(zoo, NULL, 0, 0, FALSE);
    g_autofree char *emulated = changes_once(zoo, NULL, 0, 0, TRUE);
    g_test_message("native %s\nemulated %s", native, emulated);
    g_assert_nonnull(strstr(emulated, "blind|10|2|0|"));
    g_assert_nonnull(strstr(native, "blind/r|10|0|0|")); /* its names can be read */
    g_assert_nonnull(strstr(native, "blind/in|10|2|0|"));
    for (const char *const *at =
             (const char *const[]){"dark|10|2|0|", "shut|10|2|0|", "a/r|10|1|2|", NULL};
         *at; at++) {
      g_assert_nonnull(strstr(native, *at));
      g_assert_nonnull(strstr(emulated, *at));
    }
    g_assert_true(!goes_deep() || strstr(native, "00|10|2|0|"));
    g_assert_true(!goes_deep() || !is_gnu || strstr(emulated, "00|10|2|0|"));
    shell(zoo->sandbox, "chmod -R 700 shut dark blind");
    if (is_gnu) { /* to others the way is too long; it goes with its sandbox */
      shell(zoo->sandbox, "rm -r a");
    }
  }
  close_real(zoo);
}

/* A root that cannot be read is a failure that says so. */
static void test_changes_shut_root(gconstpointer name) {
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  if (strcmp(name, "bubblewrap") == 0) { /* no command runs there any more */
    shell(zoo->sandbox, "chmod 0 .");
    g_autofree char *native = changes_once(zoo, NULL, 0, 0, FALSE);
    g_autofree char *emulated = changes_once(zoo, NULL, 0, 0, TRUE);
    g_test_message("native %s\nemulated %s", native, emulated);
    g_assert_cmpstr(native, ==, "ProviderError 50");
    g_assert_true(g_str_has_prefix(emulated, "ProviderError "));
  }
  close_real(zoo);
}

/* More than fits into three pieces of any stream on the way. */
static void test_changes_many(gconstpointer name) {
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  shell(zoo->sandbox, "l=$(printf '%0150d' 7); mkdir many; cd many; i=0; "
                      "while [ $i -lt 2500 ]; do echo $i > $l$i; i=$((i+1)); done");
  same_changes(zoo, NULL, 0, 0, 2500);
  close_real(zoo);
}

/* ---- Probe ------------------------------------------------------------------------------------------------------ */

static char *probe_once(Zoo *zoo, const char *address, guint port, gboolean emulated) {
  const struct sandhost_probe probe = {.size = sizeof probe,
                                       .address = {address, strlen(address)},
                                       .port = port,
                                       .patience = 3 * CLOCK_SECOND};
  guint32 verdict = 0;
  GError *error = NULL;
  choose(zoo, emulated);
  gboolean ok = sandbox_probe(zoo->sandbox, minute(), &probe, &verdict, &error);
  g_autofree char *text = g_strdup_printf("%u", verdict);
  return outcome(ok, error, text);
}

static void same_probe(Zoo *zoo, const char *address, guint port) {
  g_test_message("%s port %u", address, port);
  g_autofree char *native = probe_once(zoo, address, port, FALSE);
  g_autofree char *emulated = probe_once(zoo, address, port, TRUE);
  g_assert_cmpstr(native, ==, emulated);
}

static void test_probe(gconstpointer name) {
  Zoo *zoo = open_real(name);
  if (!zoo) {
    return;
  }
  g_autofree char *python = ask(zoo, "command -v python3 || true");
  if (*python) {
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in bound;
    socklen_t length = sizeof bound;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(listening, (const struct sockaddr *)&any, sizeof any), ==, 0);
    g_assert_cmpint(listen(listening, 5), ==, 0);
    g_assert_cmpint(getsockname(listening, (struct sockaddr *)&bound, &length), ==, 0);
    same_probe(zoo, "127.0.0.1",
               ntohs(bound.sin_port)); /* there is one only where the network is this machine's */
    close(listening);
    same_probe(zoo, "127.0.0.1", 1);
    same_probe(zoo, "::1", 1);
    same_probe(zoo, "255.255.255.255", 80);
    same_probe(zoo, "localhost", 1); /* no name is looked up */
    same_probe(zoo, "127.0.0.1", 0);
    same_probe(zoo, "127.0.0.1", 70000);
    same_probe(zoo, "", 80);
  } else {
    g_test_skip("there is no python in the sandbox");
  }
  close_real(zoo);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(gconstpointer provider);
  } TESTS[] = {{"upload", test_upload},
               {"upload-refused", test_upload_refused},
               {"download", test_download},
               {"download-many", test_download_many},
               {"changes", test_changes},
               {"changes-many", test_changes_many},
               {"changes-unread", test_changes_unread},
               {"changes-shut-root", test_changes_shut_root},
               {"probe", test_probe}};
  const char *given = g_getenv("EMULATED_PROVIDER");
  const char *const providers[] = {given ? given : "bubblewrap", given ? NULL : "local"};
  use_plain_memory(argv);
  g_test_init(&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(providers) && providers[i]; i++) {
    for (gsize j = 0; j < G_N_ELEMENTS(TESTS); j++) {
      g_autofree char *path = g_strdup_printf("/emulated/%s/%s", providers[i], TESTS[j].name);
      g_test_add_data_func(path, providers[i], TESTS[j].run);
    }
  }
  int result = g_test_run();
  provider_stop_all();
  return result;
}
