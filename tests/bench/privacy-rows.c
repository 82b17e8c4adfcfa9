/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-rows.c: a megabyte of output, in the pieces in which it arrives, beside a copy of it that is looked through
 * once for one byte (memcpy and memchr): less than that nobody can do who has to look at everything. */
#include "privacy-rows.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "privacy/credential-stream.h"
#include "privacy/credentials.h"
#include "privacy/personal-stream.h"
#include "ratio.h"

#define SIZE ((gsize)1 << 20)
#define PIECE ((gsize)64 << 10)
#define TURNS 8u /* passes in one sample */
#define TIMES 15u

typedef struct {
  char *text;
  char *target;
  gsize given;
  Needles *needles; /* NULL: personal data */
} Work;

static void take(void *user, const void *data, gsize length) {
  Work *work = user;
  gsize room = 2 * SIZE - work->given;
  memcpy(work->target + work->given, data, MIN(length, room));
  work->given += MIN(length, room);
}

static gint64 floor_sample(void *user) {
  Work *work = user;
  gint64 from = clock_now();
  for (guint turn = 0; turn < TURNS; turn++) {
    for (gsize at = 0; at < SIZE; at += PIECE) {
      memcpy(work->target + at, work->text + at, PIECE);
      work->given += memchr(work->text + at, '\x01', PIECE) ? 1 : 0;
    }
  }
  return clock_now() - from;
}

static void pass_once(Work *work) {
  const TextSink sink = {.put = take, .user = work};
  work->given = 0;
  g_autoptr(CredentialStream) credentials =
      work->needles ? credential_stream_new(work->needles, sink) : NULL;
  g_autoptr(PersonalStream) personal =
      work->needles ? NULL : personal_stream_new(PERSONAL_ALL, sink);
  for (gsize at = 0; at < SIZE; at += PIECE) {
    if (credentials) {
      credential_stream_add(credentials, work->text + at, PIECE);
    } else {
      personal_stream_add(personal, work->text + at, PIECE);
    }
  }
  if (credentials) {
    credential_stream_finish(credentials, FALSE);
  } else {
    personal_stream_finish(personal);
  }
}

static gint64 our_sample(void *user) {
  gint64 from = clock_now();
  for (guint turn = 0; turn < TURNS; turn++) {
    pass_once(user);
  }
  return clock_now() - from;
}

/* Fills a megabyte with a line again and again; the number of the line stands in the place of %u. */
static char *make_text(const char *format) {
  GString *text = g_string_new(NULL);
  g_auto(GStrv) parts = g_strsplit(format, "%u", -1);
  for (guint i = 0; text->len < SIZE; i++) {
    g_autofree char *number = g_strdup_printf("%u", i * 7919u);
    g_autofree char *line = g_strjoinv(number, parts);
    g_string_append(text, line);
  }
  g_string_truncate(text, SIZE);
  return g_string_free(text, FALSE);
}

static void row(const char *what, const char *format, guint count, double goal) {
  g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
  for (guint i = 0; i < count; i++) {
    g_ptr_array_add(values, g_strdup_printf("sk-%08x%08x%08x", i * 2654435761u, ~i * 40503u, i));
  }
  g_ptr_array_add(values, NULL);
  Work work = {
      .text = make_text(format),
      .target = g_malloc(2 * SIZE),
      .needles = count ? credentials_new((const char *const *)values->pdata, NULL) : NULL,
  };
  const Meter ours = {.take = our_sample, .user = &work};
  const Meter floor = {.take = floor_sample, .user = &work};
  ratio_compare(what, ours, floor, goal, TIMES);
  gint64 took = our_sample(&work);
  printf("%-62s %9.0f MB/s\n", "", (double)SIZE * TURNS / ((double)took / 1e3));
  needles_free(work.needles);
  g_free(work.text);
  g_free(work.target);
}

#define PROSE "the quick brown fox jumps over the lazy dog, and so on and so forth\n"
#define LOG "2026-11-29 22:00:15 INFO worker[%u]: task %u took 12.5 ms, sk-key of %u items\n"

void privacy_rows(void) {
  ratio_print_head("Redaction, 8 MB", "copy ms");
  row("1 credential, prose", PROSE, 1, 0);
  row("1 credential, a log", LOG, 1, 0);
  row("100 credentials, a log", LOG, 100, 0);
  row("2,000 credentials, a log", LOG, 2000, 0);
  row("1 credential, its beginning again and again", "sk-0000", 1, 0);
  row("personal data, prose", PROSE, 0, 0);
  row("personal data, a log", LOG, 0, 0);
  row("personal data, numbers", "%u\n", 0, 0);
  fflush(stdout);
}
