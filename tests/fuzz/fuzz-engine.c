/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-engine.c: bytes as what a container engine says, to the docker provider as a whole. Every operation returns, tells
 * its failure in one clean line, and hands on only what its request and the contract allow. What is read in pieces is read
 * as the whole would be.
 *
 * An input is three bytes, then what they say. The first: enum what; the second: in which pieces bytes come (low four
 * bits), BIT_*; the third: at which request the call is cancelled (255: at none). Streams are taken as they are; for
 * operations, the rest is the script of engine-fake.h. */
#include <archive.h>
#include <archive_entry.h>
#include <glib/gstdio.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/random.h>

#include "attach-channel.h"
#include "credential-helper.h"
#include "engine-fake.h"
#include "engine-frames.h"
#include "image.h"
#include "plain-tar.h"
#include "tar-owner.h"
#include "tar-sums.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's */

#define BITS_PIECE 0x0fu
#define BIT_FIRST 0x10u /* what they choose stands with each of the readers and operations */
#define BIT_SECOND 0x20u
#define NO_CANCEL 255u
#define WORK "/workspace"

enum what {
  WHAT_FRAMES,
  WHAT_ATTACH,
  WHAT_TAR_FILTER,
  WHAT_TAR_READER,
  WHAT_LOGIN,
  WHAT_CREATE,
  WHAT_CREATE_GUEST,
  WHAT_EXECUTE,
  WHAT_READ,
  WHAT_WRITE,
  WHAT_CHANGES,
  WHAT_DOWNLOAD,
  WHAT_UPLOAD,
  WHAT_SWEEP,
  WHAT_SIGNAL,
  WHAT_NETWORK,
  WHAT_TERMINATE,
  WHATS,
};

static uint8_t bits;
static size_t piece;
static char *folder; /* of Docker's own configuration, and of a guest */
static const struct sandhost_provider *provider;

static struct sandhost_text text_of(const char *text) {
  return (struct sandhost_text){.data = text, .length = strlen(text)};
}

static struct sandhost_path path_of(const char *path) {
  return (struct sandhost_path){.data = path, .length = strlen(path)};
}

/* ---- Frames ------------------------------------------------------------------------------------- */

/* Keeps {stream, byte}, for each byte. */
static int32_t keep_frame(void *user, uint32_t stream, const void *bytes, size_t length) {
  g_assert_true(stream == SANDHOST_STDOUT || stream == SANDHOST_STDERR);
  g_assert_cmpuint(length, >, 0);
  for (size_t i = 0; i < length; i++) {
    const uint8_t pair[] = {(uint8_t)stream, ((const uint8_t *)bytes)[i]};
    g_byte_array_append(user, pair, sizeof pair);
  }
  return SANDHOST_OK;
}

/* Feeds it in pieces, each in memory of its own. */
static int32_t feed_frames(const uint8_t *bytes, size_t length, size_t size, GByteArray *heard) {
  struct engine_frames frames = {0};
  int32_t status = SANDHOST_OK;
  for (size_t at = 0; at < length && status == SANDHOST_OK; at += MIN(size, length - at)) {
    size_t part = MIN(size, length - at);
    g_autofree uint8_t *own = g_memdup2(bytes + at, part);
    status = engine_frames_feed(&frames, keep_frame, heard, own, part);
  }
  if (status != SANDHOST_OK) {
    guint before = heard->len;
    g_assert_cmpint(engine_frames_feed(&frames, keep_frame, heard, "x", 1), ==, SANDHOST_PROTOCOL);
    g_assert_cmpuint(heard->len, ==, before);
  }
  return status;
}

/* Whether each header says stdout or stderr, three zeros, and a length that an engine may have. */
static gboolean are_frames(const uint8_t *bytes, size_t length) {
  for (size_t at = 0; at + 8 <= length;) {
    const uint8_t *header = bytes + at;
    size_t part =
        (size_t)header[4] << 24 | (size_t)header[5] << 16 | (size_t)header[6] << 8 | header[7];
    if ((header[0] != 1 && header[0] != 2) || header[1] || header[2] || header[3] ||
        part > ENGINE_MOST_FRAME) {
      return FALSE;
    }
    at += 8 + part;
  }
  return TRUE;
}

static void assert_same(const GByteArray *a, const GByteArray *b) {
  g_assert_cmpmem(a->data, a->len, b->data, b->len);
}

static void fuzz_frames(const uint8_t *bytes, size_t length) {
  g_autoptr(GByteArray) pieces = g_byte_array_new();
  g_autoptr(GByteArray) whole = g_byte_array_new();
  int32_t status = feed_frames(bytes, length, piece, pieces);
  g_assert_cmpint(feed_frames(bytes, length, SIZE_MAX, whole), ==, status);
  g_assert_true((status == SANDHOST_OK) == are_frames(bytes, length));
  assert_same(pieces, whole);
}

/* What a channel gives is what the frames say of stdout. */
static void fuzz_attach(const uint8_t *bytes, size_t length) {
  g_autoptr(GByteArray) heard = g_byte_array_new();
  g_autoptr(GByteArray) out = g_byte_array_new();
  g_autoptr(GByteArray) given = g_byte_array_new();
  int32_t status = feed_frames(bytes, length, SIZE_MAX, heard);
  for (guint i = 0; i < heard->len; i += 2) {
    if (heard->data[i] == SANDHOST_STDOUT) {
      g_byte_array_append(out, heard->data + i + 1, 1);
    }
  }
  ByteChannel *channel = attach_channel_new(engine_fake_channel(bytes, length, piece));
  uint8_t buffer[64];
  ssize_t count = 0;
  while ((count = channel->receive(channel, buffer, sizeof buffer)) > 0) {
    g_assert_cmpint(count, <=, (ssize_t)sizeof buffer);
    g_byte_array_append(given, buffer, (guint)count);
  }
  g_assert_true((count < 0) == (status != SANDHOST_OK));
  /* What stands in one buffer with nonsense goes with it. */
  g_assert_true(given->len == out->len || (count < 0 && given->len < out->len));
  g_assert_cmpmem(given->data, given->len, out->data, given->len);
  g_autofree char *complaint = attach_channel_complaint(channel);
  g_assert_cmpuint(strlen(complaint), <=, 2048);
  for (const char *at = complaint; *at; at++) {
    g_assert_true(*at >= ' ' && *at < 0x7f);
  }
  channel->free(channel);
}

/* ---- Archives ----------------------------------------------------------------------------------- */

static const struct tar_owner OWNER = {.uid = 3000000, .gid = 1000};

static gboolean keep_bytes(void *user, const void *bytes, size_t length) {
  g_byte_array_append(user, bytes, (guint)length);
  return TRUE;
}

static enum tar_filter_result filter(const uint8_t *bytes, size_t length, size_t size,
                                     GByteArray *out, gboolean *ret_whole) {
  g_autoptr(TarFilter) tar = tar_filter_new(bits & BIT_FIRST ? NULL : &OWNER, keep_bytes, out);
  enum tar_filter_result result = TAR_FILTER_OK;
  for (size_t at = 0; at < length && result == TAR_FILTER_OK; at += MIN(size, length - at)) {
    size_t part = MIN(size, length - at);
    g_autofree uint8_t *own = g_memdup2(bytes + at, part);
    result = tar_filter_take(tar, own, part);
  }
  *ret_whole = result == TAR_FILTER_OK && tar_filter_is_whole(tar);
  return result;
}

/* Another reader finds no other owner, and nothing that a working directory cannot have. */
static void check_members(const GByteArray *bytes) {
  struct archive *tar = archive_read_new();
  struct archive_entry *entry = NULL;
  archive_read_support_format_tar(tar);
  (void)archive_read_open_memory(tar, bytes->data, bytes->len);
  while (archive_read_next_header(tar, &entry) == ARCHIVE_OK) {
    unsigned type = archive_entry_filetype(entry);
    g_assert_true(type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK || type == AE_IFIFO ||
                  archive_entry_hardlink(entry));
    if (!(bits & BIT_FIRST)) {
      g_assert_cmpint(archive_entry_uid(entry), ==, OWNER.uid);
      g_assert_cmpint(archive_entry_gid(entry), ==, OWNER.gid);
    }
  }
  archive_read_free(tar);
}

static void fuzz_tar_filter(const uint8_t *bytes, size_t length) {
  g_autoptr(GByteArray) pieces = g_byte_array_new();
  g_autoptr(GByteArray) whole = g_byte_array_new();
  g_autoptr(GByteArray) again = g_byte_array_new();
  gboolean is_whole = FALSE;
  gboolean is_still_whole = FALSE;
  enum tar_filter_result result = filter(bytes, length, piece, pieces, &is_whole);
  g_assert_cmpint(filter(bytes, length, SIZE_MAX, whole, &is_still_whole), ==, result);
  g_assert_true(is_whole == is_still_whole);
  assert_same(pieces, whole);
  /* What came out of it has nothing that it would change. */
  g_assert_cmpint(filter(whole->data, whole->len, SIZE_MAX, again, &is_still_whole), ==,
                  TAR_FILTER_OK);
  g_assert_true(!is_whole || is_still_whole);
  g_assert_cmpmem(whole->data, again->len, again->data, again->len);
  if (is_whole) {
    assert_same(again, whole);
    check_members(whole);
  }
}

struct told {
  GString *log;
  gboolean in_file;
  uint64_t left;
};

static gboolean is_clean(const char *path) {
  g_auto(GStrv) parts = g_strsplit(path, "/", -1);
  gboolean clean = *path != '\0';
  for (char **part = parts; clean && *part; part++) {
    clean = **part && strcmp(*part, ".") != 0 && strcmp(*part, "..") != 0;
  }
  return clean;
}

static int32_t tell_member(void *user, const struct tar_member *member) {
  struct told *told = user;
  g_assert_false(told->in_file);
  g_assert_true(strcmp(member->name, ".") == 0 || is_clean(member->name));
  g_assert_cmpuint(member->bytes, <=, (uint64_t)INT64_MAX);
  g_assert_cmpuint(member->mode & ~07777u, ==, 0);
  told->in_file = member->kind == TAR_FILE;
  told->left = member->bytes;
  g_string_append_printf(told->log, "%d %s %s %" G_GUINT64_FORMAT " %o %" G_GINT64_FORMAT "\n",
                         (int)member->kind, member->name, member->link, member->bytes,
                         (unsigned)member->mode, member->mtime);
  return SANDHOST_OK;
}

static int32_t tell_content(void *user, const void *bytes, size_t length) {
  struct told *told = user;
  g_assert_true(told->in_file && length > 0 && length <= told->left);
  told->left -= length;
  g_string_append_len(told->log, bytes, (gssize)length);
  return SANDHOST_OK;
}

static int32_t tell_end(void *user) {
  struct told *told = user;
  g_assert_true(told->in_file && told->left == 0);
  told->in_file = FALSE;
  g_string_append(told->log, "|");
  return SANDHOST_OK;
}

static int32_t read_tar(const uint8_t *bytes, size_t length, size_t size, GString *log) {
  static const struct tar_events EVENTS = {
      .member = tell_member, .content = tell_content, .member_end = tell_end};
  struct told told = {.log = log};
  g_autoptr(TarReader) tar = tar_reader_new(&EVENTS, &told);
  int32_t status = SANDHOST_OK;
  for (size_t at = 0; at < length && status == SANDHOST_OK; at += MIN(size, length - at)) {
    size_t part = MIN(size, length - at);
    g_autofree uint8_t *own = g_memdup2(bytes + at, part);
    status = tar_reader_feed(tar, own, part);
  }
  g_assert_true((status != SANDHOST_OK) == (tar_reader_complaint(tar) != NULL));
  g_assert_true(status == SANDHOST_OK || status == SANDHOST_PROTOCOL);
  g_string_append(log, tar_reader_at_end(tar) ? "end" : "cut");
  return status;
}

static void fuzz_tar_reader(const uint8_t *bytes, size_t length) {
  g_autoptr(GString) pieces = g_string_new(NULL);
  g_autoptr(GString) whole = g_string_new(NULL);
  g_assert_cmpint(read_tar(bytes, length, piece, pieces), ==,
                  read_tar(bytes, length, SIZE_MAX, whole));
  g_assert_cmpmem(pieces->str, pieces->len, whole->str, whole->len);
}

/* ---- Logins ------------------------------------------------------------------------------------- */

static const char *helper_says; /* NULL: there is none */
static size_t helper_length;

/* In place of a program. */
enum credential_answer __wrap_credential_helper_get(const char *name, const char *registry,
                                                    int cancel_fd, struct secret *ret_output,
                                                    char **ret_complaint);
enum credential_answer __wrap_credential_helper_get(const char *name, const char *registry,
                                                    int cancel_fd, struct secret *ret_output,
                                                    char **ret_complaint) {
  (void)cancel_fd;
  g_assert_true(name && *name && registry && *registry);
  if (!helper_says) {
    *ret_complaint = g_strdup("there is no helper");
    return CREDENTIAL_FAILED;
  }
  if (helper_length == 0) {
    return CREDENTIAL_NONE;
  }
  secret_init(ret_output, helper_length);
  memcpy(ret_output->data, helper_says, helper_length);
  ret_output->length = helper_length;
  return CREDENTIAL_FOUND;
}

/* Base64 of a JSON object that has texts alone, in the alphabet of a header. */
static void check_login(const char *value) {
  g_assert_true(value[strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-_=")] == '\0');
  g_autofree char *standard = g_strdup(value);
  g_strdelimit(standard, "-", '+');
  g_strdelimit(standard, "_", '/');
  gsize length = 0;
  g_autofree guchar *text = g_base64_decode(standard, &length);
  g_autofree char *json = g_strndup((const char *)text, length);
  json_object *login = json_tokener_parse(json);
  g_assert_true(json_object_is_type(login, json_type_object));
  json_object_object_foreach(login, key, member) {
    (void)key;
    g_assert_true(json_object_is_type(member, json_type_string));
  }
  json_object_put(login);
}

/* The bytes are Docker's configuration, and behind a NUL what a helper says. */
static void fuzz_login(const uint8_t *bytes, size_t length) {
  static const char *const REGISTRIES[] = {"https://index.docker.io/v1/", "ghcr.io", "h:5000", "x"};
  const uint8_t *end = memchr(bytes, '\0', length);
  size_t first = end ? (size_t)(end - bytes) : length;
  g_autofree char *own = end ? g_memdup2(end + 1, length - first - 1) : NULL;
  g_autofree char *path = g_build_filename(folder, "config.json", NULL);
  g_autofree char *complaint = NULL;
  helper_says = end ? (own ? own : "") : NULL;
  helper_length = end ? length - first - 1 : 0;
  FILE *file = g_fopen(path, "w");
  g_assert_nonnull(file);
  g_assert_cmpuint(fwrite(bytes, 1, first, file), ==, first);
  g_assert_cmpint(fclose(file), ==, 0);
  g_autofree char *value =
      registry_auth(folder, REGISTRIES[(bits >> 4) % G_N_ELEMENTS(REGISTRIES)], -1, &complaint);
  if (value) {
    check_login(value);
  }
  g_assert_true(!complaint || g_utf8_validate(complaint, -1, NULL));
  g_unlink(path);
}

/* ---- Operations --------------------------------------------------------------------------------- */

/* In place of getrandom: what our script marks its words with is known. */
ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags) {
  (void)flags;
  for (size_t i = 0; i < length; i++) {
    ((uint8_t *)bytes)[i] = (uint8_t)(0x11u * (i % 16)); /* ENGINE_FAKE_NONCE */
  }
  return (ssize_t)length;
}

static struct sandhost_instance *open_instance(struct sandhost_call *call, gboolean with_guest) {
  struct sandhost_value values[32];
  g_assert_cmpuint(provider->option_count, <=, G_N_ELEMENTS(values));
  for (size_t i = 0; i < provider->option_count; i++) {
    const struct sandhost_option *option = &provider->options[i];
    const char *text = strcmp(option->name, "host") == 0    ? "unix:///fuzz"
                       : strcmp(option->name, "user") == 0  ? "1000:1000"
                       : strcmp(option->name, "guest") == 0 ? (with_guest ? "always" : "never")
                                                            : option->fallback;
    values[i] = (struct sandhost_value){.size = sizeof values[i], .type = option->type};
    if (text && option->type == SANDHOST_OPTION_TEXT) {
      values[i].set = 1;
      values[i].text = text_of(text);
    } else if (strcmp(option->name, "pids_limit") == 0) {
      values[i].integer = 256;
    } else if (option->type == SANDHOST_OPTION_SIZE) {
      values[i].integer = 1 << 20;
    }
  }
  const struct sandhost_open request = {.size = sizeof request,
                                        .values = values,
                                        .value_count = provider->option_count,
                                        .guest_dir = path_of(folder)};
  struct sandhost_instance *instance = NULL;
  g_assert_cmpint(provider->open(call, &request, &instance), ==, SANDHOST_OK);
  return instance;
}

static int32_t create(struct sandhost_call *call, struct sandhost_instance *instance,
                      struct sandhost_sandbox **ret_sandbox) {
  const struct sandhost_network network = {.size = sizeof network, .mode = SANDHOST_NETWORK_DENY};
  const struct sandhost_create request = {.size = sizeof request,
                                          .key = text_of("key"),
                                          .run_id = text_of("run"),
                                          .image = text_of("ghcr.io/team/image:tag"),
                                          .snapshot = text_of(""),
                                          .working_dir = path_of(WORK),
                                          .network = &network,
                                          .cpu_millis = bits & BIT_SECOND ? 0 : 1000,
                                          .memory_bytes = bits & BIT_SECOND ? 0 : 1 << 20};
  return provider->create(call, instance, &request, ret_sandbox);
}

/* What comes out of an operation. */
struct seen {
  uint64_t count;
  gboolean stopped;
  GByteArray *bytes;
  GHashTable *paths;
};

static int32_t see_bytes(void *user, const void *bytes, size_t length) {
  struct seen *seen = user;
  g_assert_false(seen->stopped);
  g_byte_array_append(seen->bytes, bytes, (guint)length);
  seen->stopped = (bits & BIT_FIRST) && seen->bytes->len > 100;
  return seen->stopped ? SANDHOST_CANCELLED : SANDHOST_OK;
}

static int32_t see_output(void *user, uint32_t stream, const void *bytes, size_t length) {
  g_assert_true(stream == SANDHOST_STDOUT || stream == SANDHOST_STDERR);
  return see_bytes(user, bytes, length);
}

static int32_t see_entry(void *user, const struct sandhost_entry *entry) {
  struct seen *seen = user;
  const char *path = entry->path.data;
  g_assert_false(seen->stopped);
  g_assert_cmpuint(strlen(path), ==, entry->path.length);
  g_assert_true(is_clean(path) && path[0] != '.' && !strstr(path, "/."));
  g_assert_true(entry->kind == SANDHOST_KIND_FILE || entry->kind == SANDHOST_KIND_CHECKOUT);
  g_assert_cmpuint(entry->mode & ~0777u, ==, 0);
  g_assert_cmpuint(entry->bytes, <=, (uint64_t)INT64_MAX);
  seen->count++;
  seen->stopped = seen->count == 100;
  return seen->stopped ? SANDHOST_CANCELLED : SANDHOST_OK;
}

static int32_t see_orphan(void *user, const struct sandhost_orphan *orphan) {
  struct seen *seen = user;
  g_assert_cmpuint(orphan->ref.length, ==, 64);
  g_assert_cmpint(orphan->age, >=, -1);
  seen->count++;
  return seen->count == 100 ? SANDHOST_CANCELLED : SANDHOST_OK;
}

static int64_t give_input(void *user, void *buffer, size_t length) {
  GByteArray *bytes = user;
  size_t part = MIN(length, (size_t)bytes->len);
  memcpy(buffer, bytes->data, part);
  g_byte_array_remove_range(bytes, 0, (guint)part);
  return (int64_t)part;
}

static int64_t give_stdin(void *user, void *buffer, size_t length) {
  struct seen *seen = user;
  g_assert_cmpuint(length, >, 2);
  memcpy(buffer, "in", 2);
  return seen->count++ == 0 ? 2 : 0;
}

static int32_t no_fd(void *user) {
  (void)user;
  return -1;
}

static int32_t do_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                          struct seen *seen) {
  static const struct sandhost_text ARGV[] = {
      {.data = "sh", .length = 2}, {.data = "-c", .length = 2}, {.data = "true", .length = 4}};
  const struct sandhost_execute request = {.size = sizeof request,
                                           .argv = ARGV,
                                           .argc = G_N_ELEMENTS(ARGV),
                                           .cwd = path_of(WORK),
                                           .limit = bits & BIT_SECOND ? 1000000000 : 0,
                                           .max_output_bytes = 1000,
                                           .flags = bits & BIT_SECOND ? SANDHOST_EXECUTE_STDIN : 0};
  const struct sandhost_observer observer = {.size = sizeof observer,
                                             .user = seen,
                                             .output = see_output,
                                             .input = give_stdin,
                                             .input_fd = no_fd};
  struct sandhost_result result = {.size = sizeof result};
  int32_t status = provider->execute(call, sandbox, &request, &observer, &result);
  g_assert_cmpuint(seen->bytes->len, <=, 2 * request.max_output_bytes);
  if (status == SANDHOST_OK) {
    g_assert_cmpuint(seen->bytes->len, <=, result.stdout_bytes + result.stderr_bytes);
    g_assert_true(result.exit_code >= 0 && result.exit_code <= 255);
    g_assert_cmpint(result.duration, >=, 0);
  }
  return status;
}

static int32_t do_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                          struct seen *seen) {
  const struct sandhost_known known = {.path = path_of("a"), .sha256 = {0xba, 0x78}};
  const struct sandhost_changes request = {.size = sizeof request,
                                           .root = path_of(WORK),
                                           .known = &known,
                                           .known_count = 1,
                                           .max_hash_bytes = bits & BIT_FIRST ? 2 : 0,
                                           .max_entries = bits & BIT_SECOND ? 2 : 0};
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .user = seen, .entry = see_entry};
  int32_t status = provider->changes(call, sandbox, &request, &sink);
  g_assert_true(request.max_entries == 0 || seen->count <= request.max_entries);
  return status;
}

/* Nine names are more than are fetched one by one. */
static int32_t do_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                           struct seen *seen) {
  static const char *const NAMES[] = {"a", "dir/b", "c", "d", "e", "f", "g", "h", "i"};
  struct sandhost_path names[G_N_ELEMENTS(NAMES)];
  for (size_t i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    names[i] = path_of(NAMES[i]);
  }
  const struct sandhost_sink sink = {.size = sizeof sink, .user = seen, .write = see_bytes};
  int32_t status = provider->download(call, sandbox, path_of(WORK), names,
                                      bits & BIT_SECOND ? G_N_ELEMENTS(NAMES) : 2, &sink);
  struct archive *tar = archive_read_new();
  struct archive_entry *entry = NULL;
  size_t next = 0;
  archive_read_support_format_tar(tar);
  (void)archive_read_open_memory(tar, seen->bytes->data, seen->bytes->len);
  while (status == SANDHOST_OK && archive_read_next_header(tar, &entry) == ARCHIVE_OK) {
    while (next < G_N_ELEMENTS(NAMES) && strcmp(NAMES[next], archive_entry_pathname(entry)) != 0) {
      next++;
    }
    g_assert_cmpuint(next, <, G_N_ELEMENTS(NAMES));
    next++;
    g_assert_cmpuint(archive_entry_filetype(entry), ==, AE_IFREG);
  }
  archive_read_free(tar);
  return status;
}

static int32_t do_write(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                        gboolean upload) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  tar_append_folder(bytes, "x/y", 0755);
  tar_append_end(bytes);
  const struct sandhost_source source = {.size = sizeof source, .user = bytes, .read = give_input};
  return upload ? provider->upload(call, sandbox, path_of(WORK "/dir"), &source)
                : provider->write_file(call, sandbox, path_of(WORK "/dir/sub/b"), 0644, &source);
}

static int32_t do_sweep(struct sandhost_call *call, struct sandhost_instance *instance,
                        struct seen *seen) {
  const struct sandhost_text keep = text_of("kept");
  const struct sandhost_sweep request = {.size = sizeof request,
                                         .run_id = text_of(bits & BIT_FIRST ? "r" : ""),
                                         .keep = &keep,
                                         .keep_count = 1,
                                         .min_age = bits & BIT_SECOND ? 1000 : 0};
  const struct sandhost_orphan_sink sink = {
      .size = sizeof sink, .user = seen, .orphan = see_orphan};
  return provider->sweep(call, instance, &request, &sink);
}

static int32_t operate(enum what what, struct sandhost_call *call,
                       struct sandhost_instance *instance, struct sandhost_sandbox *sandbox,
                       struct seen *seen) {
  const struct sandhost_network network = {.size = sizeof network,
                                           .mode = bits & BIT_FIRST ? SANDHOST_NETWORK_ALLOW
                                                                    : SANDHOST_NETWORK_DENY};
  const struct sandhost_sink sink = {.size = sizeof sink, .user = seen, .write = see_bytes};
  switch (what) {
  case WHAT_EXECUTE:
    return do_execute(call, sandbox, seen);
  case WHAT_READ:
    return provider->read_file(call, sandbox,
                               path_of(bits & BIT_SECOND ? WORK "/dir/b" : WORK "/a"), &sink);
  case WHAT_WRITE:
  case WHAT_UPLOAD:
    return do_write(call, sandbox, what == WHAT_UPLOAD);
  case WHAT_CHANGES:
    return do_changes(call, sandbox, seen);
  case WHAT_DOWNLOAD:
    return do_download(call, sandbox, seen);
  case WHAT_SWEEP:
    return do_sweep(call, instance, seen);
  case WHAT_SIGNAL:
    return provider->signal(call, sandbox, ((uint64_t)7 << 32) | 42, 15);
  case WHAT_NETWORK:
    return provider->set_network_policy(call, sandbox, &network);
  default:
    return provider->terminate(call, sandbox);
  }
}

static void fuzz_operation(enum what what, const uint8_t *script, size_t length, unsigned cancel) {
  struct sandhost_call before = {0};
  struct sandhost_call call = {0};
  struct sandhost_sandbox *sandbox = NULL;
  struct seen seen = {.bytes = g_byte_array_new()};
  int32_t status = SANDHOST_OK;
  gboolean creates = what == WHAT_CREATE || what == WHAT_CREATE_GUEST;
  engine_fake_script(&before, NULL, 0, piece, UINT_MAX);
  struct sandhost_instance *instance = open_instance(&before, what == WHAT_CREATE_GUEST);
  if (!creates) {
    g_assert_cmpint(create(&before, instance, &sandbox), ==, SANDHOST_OK);
  }
  engine_fake_script(&call, script, length, piece, cancel);
  status =
      creates ? create(&call, instance, &sandbox) : operate(what, &call, instance, sandbox, &seen);
  g_assert_true(status == SANDHOST_OK || call.failed);
  g_assert_true((status == SANDHOST_OK && creates) == (creates && sandbox != NULL));
  if (sandbox) {
    provider->release(sandbox);
  }
  provider->close(instance);
  g_byte_array_unref(seen.bytes);
}

/* ---- One input ---------------------------------------------------------------------------------- */

static void remove_folder(void) {
  g_autofree char *guest = g_build_filename(folder, "sandhost-guest-x86_64", NULL);
  g_unlink(guest);
  g_rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  folder = g_dir_make_tmp("sandhost-fuzz-XXXXXX", NULL);
  g_assert_nonnull(folder);
  atexit(remove_folder);
  g_autofree char *guest = g_build_filename(folder, "sandhost-guest-x86_64", NULL);
  g_assert_true(g_file_set_contents(guest, "guest", 5, NULL));
  g_assert_true(g_setenv("DOCKER_CONFIG", folder, TRUE));
  g_unsetenv("DOCKER_HOST");
  engine_fake_init();
  provider = sandhost_provider_1(&engine_fake_host);
  g_assert_nonnull(provider);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const size_t PIECES[] = {1,   2,   3,   7,   8,   9,    31,   64,
                                  255, 256, 511, 512, 513, 1000, 4096, SIZE_MAX};
  if (size < 3) {
    return 0;
  }
  const uint8_t *rest = data + 3;
  const size_t length = size - 3;
  const enum what what = data[0] % WHATS;
  bits = data[1];
  piece = PIECES[bits & BITS_PIECE];
  switch (what) {
  case WHAT_FRAMES:
    fuzz_frames(rest, length);
    break;
  case WHAT_ATTACH:
    fuzz_attach(rest, length);
    break;
  case WHAT_TAR_FILTER:
    fuzz_tar_filter(rest, length);
    break;
  case WHAT_TAR_READER:
    fuzz_tar_reader(rest, length);
    break;
  case WHAT_LOGIN:
    fuzz_login(rest, length);
    break;
  default:
    fuzz_operation(what, rest, length, data[2] == NO_CANCEL ? UINT_MAX : data[2]);
  }
  return 0;
}

/* The sums of archives are put right for three inputs of four, also inside a script. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size <= 3 || seed % 4 == 0) {
    return size;
  }
  if (data[0] % WHATS < WHAT_LOGIN) {
    tar_sums_mend(data + 3, size - 3);
    return size;
  }
  for (size_t at = 3; at + 4 <= size;) {
    size_t length = MIN(data[at + 2] | (size_t)data[at + 3] << 8, size - at - 4);
    tar_sums_mend(data + at + 4, length);
    at += 4 + length;
  }
  return size;
}
