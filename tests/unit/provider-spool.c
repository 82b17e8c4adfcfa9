/* SPDX-License-Identifier: Apache-2.0 */
/* provider-spool.c: what is kept comes back as it was, and a full disk or no descriptor is a failure in words. */
#include "provider/spool.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define IN_MEMORY (1u << 20)

static int32_t put(Spool *spool, const void *data, size_t length) {
  struct sandhost_sink sink = spool_sink(spool);
  return sink.write(sink.user, data, length);
}

static gboolean append(void *user, const void *data, gsize length) {
  g_byte_array_append(user, data, (guint)length);
  return TRUE;
}

static gboolean refuse(void *user, const void *data, gsize length) {
  guint *calls = user;
  (void)data;
  (void)length;
  (*calls)++;
  return FALSE;
}

/* Owned. */
static guint8 *pattern(gsize length) {
  guint8 *bytes = g_malloc(length);
  for (gsize i = 0; i < length; i++) {
    bytes[i] = (guint8)(i * 7 + i / 251);
  }
  return bytes;
}

/* Puts the limit down and returns what it was. */
static struct rlimit lower(__rlimit_resource_t resource, rlim_t most) {
  struct rlimit before;
  g_assert_cmpint(getrlimit(resource, &before), ==, 0);
  const struct rlimit low = {.rlim_cur = most, .rlim_max = before.rlim_max};
  g_assert_cmpint(setrlimit(resource, &low), ==, 0);
  return before;
}

static void restore(__rlimit_resource_t resource, const struct rlimit *before) {
  g_assert_cmpint(setrlimit(resource, before), ==, 0);
}

static void test_comes_back(void) {
  static const gsize lengths[] = {0, 1, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY + 12345};
  for (gsize i = 0; i < G_N_ELEMENTS(lengths); i++) {
    Spool *spool = spool_new();
    g_autofree guint8 *bytes = pattern(lengths[i]);
    for (gsize at = 0; at < lengths[i]; at += 100000) {
      g_assert_cmpint(put(spool, bytes + at, MIN(100000, lengths[i] - at)), ==, SANDHOST_OK);
    }
    g_autoptr(GByteArray) back = g_byte_array_new();
    g_assert_true(spool_read_back(spool, append, back));
    g_assert_cmpuint(back->len, ==, lengths[i]);
    g_assert_true(lengths[i] == 0 || memcmp(back->data, bytes, lengths[i]) == 0);
    g_assert_cmpuint(spool_size(spool), ==, lengths[i]);
    g_assert_null(spool_failure(spool));
    spool_free(spool);
  }
}

/* Whoever takes no more is asked once. */
static void test_nobody_takes_it(void) {
  Spool *spool = spool_new();
  g_autofree guint8 *bytes = pattern(2 * IN_MEMORY);
  guint calls = 0;
  g_assert_cmpint(put(spool, bytes, 2 * IN_MEMORY), ==, SANDHOST_OK);
  g_assert_false(spool_read_back(spool, refuse, &calls));
  g_assert_cmpuint(calls, ==, 1);
  spool_free(spool);
}

static void test_full_disk(void) {
  Spool *spool = spool_new();
  g_autofree guint8 *bytes = pattern(IN_MEMORY);
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  struct rlimit before = lower(RLIMIT_FSIZE, IN_MEMORY + IN_MEMORY / 2);
  int32_t first = put(spool, bytes, IN_MEMORY);
  int32_t second = put(spool, bytes, IN_MEMORY);
  restore(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  g_assert_cmpint(first, ==, SANDHOST_OK);
  g_assert_cmpint(second, ==, SANDHOST_LIMIT);
  g_assert_cmpstr(spool_failure(spool), ==, "no room for a temporary file");
  g_assert_cmpuint(spool_size(spool), ==, IN_MEMORY);
  spool_free(spool);
}

static void test_no_descriptor(void) {
  Spool *spool = spool_new();
  g_autofree guint8 *bytes = pattern(IN_MEMORY);
  struct rlimit before = lower(RLIMIT_NOFILE, 0);
  int32_t first = put(spool, bytes, IN_MEMORY);
  int32_t second = put(spool, bytes, 1);
  restore(RLIMIT_NOFILE, &before);
  g_assert_cmpint(first, ==, SANDHOST_OK);
  g_assert_cmpint(second, ==, SANDHOST_LIMIT);
  g_assert_cmpstr(spool_failure(spool), ==, "no room for a temporary file");
  spool_free(spool);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/provider-spool/comes-back", test_comes_back);
  g_test_add_func("/provider-spool/nobody-takes-it", test_nobody_takes_it);
  g_test_add_func("/provider-spool/full-disk", test_full_disk);
  g_test_add_func("/provider-spool/no-descriptor", test_no_descriptor);
  return g_test_run();
}
