/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-emulated-listing.c: any bytes as what a sandbox's own tools print of what changed. Each entry that comes out is
 * below the root, not hidden, of a size that a file can have, not one that is known already, and there are no more of
 * them than asked for.
 *
 * The first byte says how many pieces the output comes in, how the command ends, and the limit on entries. */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "provider/emulate.h"
#include "provider/provider-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BITS_PIECE 0x0fu
#define BITS_END 0x30u
#define BIT_FEW 0x40u   /* at most three entries */
#define BIT_KNOWN 0x80u /* one file is known */

static const uint8_t *output;
static size_t output_length;
static uint8_t bits;

typedef struct {
  const struct sandhost_changes *request;
  guint64 count;
  gboolean stopped;
} Seen;

/* In place of the command: gives the input, each piece in memory of its own size. */
gboolean emulate_command(Sandbox *sandbox, const CallScope *scope, const EmulatedCommand *command,
                         struct sandhost_result *ret_result, char **ret_stderr, GError **error) {
  static const guint32 ENDS[] = {SANDHOST_ENDED_EXIT, SANDHOST_ENDED_EXIT, SANDHOST_ENDED_LIMIT,
                                 SANDHOST_ENDED_SIGNAL};
  static const size_t PIECES[] = {1,   2,   3,   5,    7,    16,   31,   64,
                                  100, 255, 256, 1000, 4096, 5000, 8191, SIZE_MAX};
  const size_t piece = PIECES[bits & BITS_PIECE];
  guint end = (bits & BITS_END) >> 4;
  (void)sandbox;
  (void)scope;
  for (size_t at = 0; at < output_length;) {
    size_t part = MIN(piece, output_length - at);
    g_autofree char *own = g_memdup2(output + at, part);
    if (!command->take(command->user, own, part)) {
      g_set_error_literal(error, PROVIDER_ERROR, SANDHOST_CANCELLED, "the command was stopped");
      return FALSE;
    }
    at += part;
  }
  ret_result->ended = ENDS[end];
  ret_result->exit_code = end == 1 ? 127 : 0;
  *ret_stderr = g_strdup(end == 1 ? "sh: not found" : "");
  return TRUE;
}

static int32_t take_entry(void *user, const struct sandhost_entry *entry) {
  Seen *seen = user;
  const char *path = entry->path.data;
  g_assert_false(seen->stopped);
  seen->count++;
  g_assert_true(seen->request->max_entries == 0 || seen->count <= seen->request->max_entries);
  g_assert_cmpuint(strlen(path), ==, entry->path.length);
  g_assert_cmpuint(entry->path.length, >, 0);
  g_assert_cmpuint(entry->path.length, <=, 4096);
  g_assert_true(path[0] != '/' && path[0] != '.' && !strstr(path, "/.") && !strstr(path, "//"));
  g_assert_cmpuint(entry->bytes, <=, (guint64)G_MAXINT64);
  g_assert_cmpuint(entry->mode & ~07777u, ==, 0);
  if (seen->request->known_count > 0 && (entry->flags & SANDHOST_ENTRY_SHA256)) {
    const struct sandhost_known *known = seen->request->known;
    g_assert_false(known->path.length == entry->path.length &&
                   memcmp(known->path.data, path, entry->path.length) == 0 &&
                   memcmp(known->sha256, entry->sha256, sizeof entry->sha256) == 0);
  }
  seen->stopped = seen->count == 100;
  return seen->stopped ? SANDHOST_CANCELLED : SANDHOST_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct Provider provider = {.table = {.name = "fuzzed"}};
  ProviderInstance instance = {.provider = &provider};
  Sandbox sandbox = {.instance = &instance};
  struct sandhost_known known = {.path = {.data = "a", .length = 1}};
  if (size == 0) {
    return 0;
  }
  bits = data[0];
  output = data + 1;
  output_length = size - 1;
  memset(known.sha256, 0x11, sizeof known.sha256);
  const struct sandhost_changes request = {
      .size = sizeof request,
      .root = {.data = "/workspace", .length = 10},
      .known = &known,
      .known_count = bits & BIT_KNOWN ? 1 : 0,
      .max_entries = bits & BIT_FEW ? 3 : 0,
  };
  Seen seen = {.request = &request};
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .user = &seen, .entry = take_entry};
  g_autoptr(GError) error = NULL;
  gboolean ok = emulate_changes(&sandbox, NULL, &request, &sink, &error);
  g_assert_true(ok == (error == NULL));
  g_assert_false(ok && seen.stopped);
  if (error) {
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
  }
  return 0;
}
