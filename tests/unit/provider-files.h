/* SPDX-License-Identifier: Apache-2.0 */
/* provider-files.h: files in and out of a sandbox, and a shell in it, for tests of the SDK's example, which leaves
 * out every optional operation. */
#ifndef TEST_PROVIDER_FILES_H
#define TEST_PROVIDER_FILES_H

#include "provider-testing.h"

/* Names that something on the way could trip over. */
static const char *const ODD_NAMES[] = {
    "plain.txt",    "a/b/c/deep.txt", "with space",       "new\nline",
    "back\\slash",  "pl\303\244in",   "nfd-a\314\210",    "bad-\377\376",
    "quote'\"$(x)", "-dash",          "sub/\346\227\245", "tab\there",
};

static inline const CallScope *minute(void) {
  static CallScope scope;
  scope = scope_of(60 * CLOCK_SECOND);
  return &scope;
}

/* ---- The example ------------------------------------------------------------------------------------------- */

/* Its working directory is a folder of this machine: a fresh one. path: where it finds programs; NULL: as usual. */
static inline Zoo example_open_with(const char *path) {
  g_autoptr(GError) error = NULL;
  Zoo zoo = {.registry = zoo_registry(), .folder = folder_new()};
  Provider *provider = provider_registry_load(zoo.registry, "example", &error);
  g_assert_no_error(error);
  zoo.instance = provider_instance_open(zoo.registry, provider, NULL, &error);
  g_assert_no_error(error);
  g_autofree char *variable = path ? g_strdup_printf("\"PATH\":\"%s\"", path) : g_strdup("");
  g_autofree char *json =
      g_strdup_printf("{\"network_policy\":{\"default\":\"allow\"},\"working_dir\":\"%s\","
                      "\"environment\":{\"plain\":{%s}}}",
                      zoo.folder, variable);
  g_autoptr(Manifest) manifest = manifest_of(json);
  zoo.sandbox = sandbox_create(zoo.instance, manifest, "key-1", "run-1", minute(), &error);
  g_assert_no_error(error);
  return zoo;
}

static inline Zoo example_open(void) {
  return example_open_with(NULL);
}

static inline void example_close(Zoo *zoo) {
  char *folder = g_steal_pointer(&zoo->folder);
  zoo_close(zoo);
  folder_remove(folder);
}

/* ---- Streams ---------------------------------------------------------------------------------------------- */

typedef struct {
  GByteArray *bytes;
  gsize at;
  gsize piece;   /* at most so many bytes at once */
  gint32 answer; /* of the sink */
} Stream;

static inline Stream stream_new(void) {
  return (Stream){.bytes = g_byte_array_new(), .piece = 1000};
}

static inline int64_t stream_read(void *user, void *buffer, size_t length) {
  Stream *stream = user;
  gsize count = MIN(MIN(length, stream->piece), stream->bytes->len - stream->at);
  memcpy(buffer, stream->bytes->data + stream->at, count);
  stream->at += count;
  return (int64_t)count;
}

static inline int32_t stream_write(void *user, const void *data, size_t length) {
  Stream *stream = user;
  g_byte_array_append(stream->bytes, data, (guint)length);
  return stream->answer;
}

static inline void put(Sandbox *sandbox, const char *name, const char *content) {
  g_autoptr(GError) error = NULL;
  Stream stream = stream_new();
  g_byte_array_append(stream.bytes, (const guint8 *)content, (guint)strlen(content));
  const struct sandhost_source source = {
      .size = sizeof source, .user = &stream, .read = stream_read};
  g_autofree char *path = g_build_filename(sandbox_working_dir(sandbox), name, NULL);
  sandbox_write_file(sandbox, minute(), path, 0644, &source, &error);
  g_assert_no_error(error);
  g_byte_array_unref(stream.bytes);
}

static inline char *get(Sandbox *sandbox, const char *name) {
  Stream stream = stream_new();
  const struct sandhost_sink sink = {.size = sizeof sink, .user = &stream, .write = stream_write};
  g_autofree char *path = g_build_filename(sandbox_working_dir(sandbox), name, NULL);
  gboolean ok = sandbox_read_file(sandbox, minute(), path, &sink, NULL);
  char *content = ok ? g_strndup((const char *)stream.bytes->data, stream.bytes->len) : NULL;
  g_byte_array_unref(stream.bytes);
  return content;
}

/* Runs a line of shell that must succeed. */
static inline void shell(Sandbox *sandbox, const char *line) {
  const struct sandhost_text argv[] = {
      {.data = "sh", .length = 2},
      {.data = "-c", .length = 2},
      {.data = line, .length = strlen(line)},
  };
  const struct sandhost_execute request = {.size = sizeof request, .argv = argv, .argc = 3};
  Command command = command_new();
  const struct sandhost_observer observer = {
      .size = sizeof observer, .user = &command, .output = command_output};
  struct sandhost_result result = {0};
  g_autoptr(GError) error = NULL;
  sandbox_execute(sandbox, minute(), &request, &observer, &result, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(command.err->str, ==, "");
  g_assert_cmpint(result.exit_code, ==, 0);
  command_clear(&command);
}

#endif
