/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-listing.c: any bytes as the entries that a sandbox lists. What comes out is sorted, has no path
 * twice, leads nowhere else, hides nothing and has nothing inside a checkout.
 *
 * An entry is a byte of bits (below), a byte of the path's length, and the path; what the bits ask for
 * beside it is made of the input's offset, since nothing here depends on its value. */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "workspace/names.h"
#include "workspace/sandbox-list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BIT_CHECKOUT 0x1u
#define BIT_HASHED 0x2u
#define BIT_STRANGE 0x4u /* a kind that is none */
#define BIT_LONG 0x8u    /* the path is given 64 times, so that it can be longer than one may be */
#define BIT_FAIL 0x10u   /* the transport fails here */
#define BIT_DEAF 0x20u   /* and goes on after it was told to stop */

typedef struct {
  const uint8_t *data;
  size_t size;
} Input;

static int32_t give(const struct sandhost_entry_sink *sink, uint8_t bits, const char *path,
                    size_t length, size_t at) {
  struct sandhost_entry entry = {
      .size = sizeof entry,
      .path = {.data = path, .length = length},
      .kind = bits & BIT_CHECKOUT ? SANDHOST_KIND_CHECKOUT : SANDHOST_KIND_FILE,
      .flags = bits & BIT_HASHED ? SANDHOST_ENTRY_SHA256
               : at % 3 == 0     ? SANDHOST_ENTRY_UNREAD_FOLDER
                                 : 0,
      .bytes = at * 0x123456789u,
      .mtime = -(int64_t)at,
      .mode = bits,
  };
  if (bits & BIT_STRANGE) {
    entry.kind = (uint32_t)at;
  }
  memset(entry.sha256, (int)(at & 0xff), sizeof entry.sha256);
  return sink->entry(sink->user, &entry);
}

static gboolean changes(void *user, const struct sandhost_known *known, gsize known_count,
                        guint64 max_hash_bytes, const struct sandhost_entry_sink *sink,
                        GError **error) {
  const Input *input = user;
  (void)known;
  g_assert_cmpuint(known_count, ==, 0);
  g_assert_cmpuint(max_hash_bytes, ==, 1000);
  for (size_t at = 0; at + 2 <= input->size;) {
    uint8_t bits = input->data[at];
    size_t length = MIN((size_t)input->data[at + 1], input->size - at - 2);
    /* A copy of its own size, so that one byte too many that is read is found. */
    g_autoptr(GByteArray) path = g_byte_array_new();
    for (int i = 0; i < (bits & BIT_LONG ? 64 : 1); i++) {
      g_byte_array_append(path, input->data + at + 2, (guint)length);
    }
    size_t whole = path->len;
    g_byte_array_append(path, (const guint8 *)"", 1); /* as the contract has it */
    g_autofree char *own = g_memdup2(path->data, whole + 1);
    if (bits & BIT_FAIL) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_FAILED, "the transport failed");
      return FALSE;
    }
    int32_t status = give(sink, bits, own, whole, at);
    if (status != SANDHOST_OK && !(bits & BIT_DEAF)) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_FAILED, "stopped");
      return FALSE;
    }
    at += 2 + length;
  }
  return TRUE;
}

static void check_above(GHashTable *checkouts, const char *path) {
  g_autofree char *above = g_strdup(path);
  for (char *slash = strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
    *slash = '\0';
    g_assert_false(g_hash_table_contains(checkouts, above));
  }
}

static void check_list(const SandboxList *list) {
  g_autoptr(GHashTable) checkouts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (gsize i = 0; i < sandbox_list_count(list); i++) {
    const SandboxFile *file = sandbox_list_at(list, i);
    g_assert_true(name_is_proper(file->path, strlen(file->path)));
    g_assert_false(g_path_is_absolute(file->path));
    g_assert_false(name_is_hidden(file->path, strlen(file->path)));
    g_assert_false(file->checkout && file->has_digest);
    g_assert_false(file->unread_folder && (file->checkout || file->has_digest));
    g_assert_true(i == 0 || strcmp(sandbox_list_at(list, i - 1)->path, file->path) < 0);
    (void)name_is_run_record(file->path);
    if (file->checkout) {
      g_hash_table_add(checkouts, g_strdup(file->path));
    }
  }
  for (gsize i = 0; i < sandbox_list_count(list); i++) {
    check_above(checkouts, sandbox_list_at(list, i)->path);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Input input = {.data = data, .size = size};
  const BridgeTransport transport = {.user = &input, .changes = changes};
  g_autoptr(GError) error = NULL;
  g_autoptr(SandboxList) list = sandbox_list_get(&transport, NULL, 0, 1000, &error);
  g_assert_true((list == NULL) == (error != NULL));
  if (list) {
    check_list(list);
  } else {
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
    g_assert_cmpstr(error->message, !=, "stopped"); /* the list's own reason counts */
  }
  return 0;
}
