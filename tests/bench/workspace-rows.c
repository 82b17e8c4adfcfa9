/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-rows.c: files in, files out, and finding out what changed, beside the same work on bare files. */
#include "workspace-rows.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/digest.h"
#include "floor-files.h"
#include "ratio.h"
#include "subject.h"

#define FILES 500u
#define FILE_BYTES ((gsize)40000)
#define MANY 10000u

typedef struct {
  const char *scratch;
  char *files;
  char *copy; /* of the same files */
  char *to;   /* where the floor writes */
  char *many;
  char *empty;
} Folders;

static gint64 copy_floor(void *user) {
  const Folders *folders = user;
  return floor_copy(folders->files, folders->to);
}

/* ---- In and out -------------------------------------------------------------------------------------------------- */

/* A fresh run whose first command has every file copied in; what the sandbox and the command cost is taken off by
 * timing one in an empty folder. */
static gint64 files_in(void *user) {
  const Folders *folders = user;
  Subject full = {0};
  Subject bare = {0};
  subject_open(&full, folders->scratch, folders->files);
  gint64 with = subject_line(&full, "true");
  subject_close(&full);
  subject_open(&bare, folders->scratch, folders->empty);
  gint64 without = subject_line(&bare, "true");
  subject_close(&bare);
  return ratio_difference(with, without);
}

/* A command that rewrites every file, so that all come back; the same command writing to /tmp is taken off. */
static gint64 files_out(void *user) {
  static const char ELSEWHERE[] =
      "for d in 0 1 2 3 4; do mkdir -p /tmp/d$d; cp -r d$d/. /tmp/d$d; done; rm -r /tmp/*";
  static guint number;
  const Folders *folders = user;
  Subject subject = {0};
  subject_open(&subject, folders->scratch, folders->copy);
  (void)subject_line(&subject, "true");
  g_autofree char *write = g_strdup_printf(
      "for d in 0 1 2 3 4; do mkdir -p n%u/d$d; cp -r d$d/. n%u/d$d; done", number, number);
  number++;
  gint64 beside = subject_line(&subject, ELSEWHERE);
  gint64 out = subject_line(&subject, write);
  subject_close(&subject);
  g_autofree char *clean = g_strdup_printf("rm -rf '%s'/n*", folders->copy);
  return system(clean) == 0 ? ratio_difference(out, beside) : -1;
}

/* ---- Nothing changed --------------------------------------------------------------------------------------------- */

typedef struct {
  const Folders *folders;
  Subject full;
  Subject bare;
} Unchanged;

static gint64 unchanged(void *user) {
  const Unchanged *both = user;
  return ratio_difference(subject_line(&both->full, "true"), subject_line(&both->bare, "true"));
}

/* Both sides are walked: the workspace before the command, the sandbox after it. */
static gint64 two_walks(void *user) {
  const Unchanged *both = user;
  gint64 first = floor_stat_walk(both->folders->many);
  gint64 second = floor_stat_walk(both->folders->many);
  return first < 0 || second < 0 ? -1 : first + second;
}

static void bench_unchanged(const Folders *folders, guint times) {
  Unchanged both = {.folders = folders};
  subject_open(&both.full, folders->scratch, folders->many);
  subject_open(&both.bare, folders->scratch, folders->empty);
  ratio_compare("nothing changed in 10,000 files / two bare stat walks", (Meter){unchanged, &both},
                (Meter){two_walks, &both}, 2.0, times);
  subject_close(&both.full);
  subject_close(&both.bare);
}

/* ---- What changed ------------------------------------------------------------------------------------------------ */

/* The sandbox has what a hash is remembered by changed, and so hashes every file again. */
static gint64 listing_hashed(void *user) {
  Sandbox *sandbox = user;
  return sandbox_line(sandbox, "touch *") < 0 ? -1 : sandbox_listing(sandbox, FILES);
}

static gint64 listing(void *user) {
  return sandbox_listing(user, FILES);
}

static gint64 hash_floor(void *user) {
  guint8 digest[DIGEST_BYTES];
  gint64 from = clock_now();
  for (guint i = 0; i < FILES; i++) {
    digest_of((const char *)user + (gsize)i * FILE_BYTES, FILE_BYTES, digest);
  }
  return clock_now() - from;
}

static gint64 walk_floor(void *user) {
  return floor_stat_walk(user);
}

static void bench_changes(const Folders *folders, guint times) {
  static const char HASHED[] = "what changed: 500 files, 20 MB, all touched / bare SHA-256";
  static const char KNOWN[] = "what changed: 500 files, none touched / a bare stat walk";
  static const char FILL[] = "head -c 20000000 /dev/zero | split -a 3 -b 40000 - f";
  Subject subject = {0};
  subject_open(&subject, folders->scratch, folders->empty);
  Sandbox *sandbox = subject_sandbox(&subject);
  g_autofree char *content = g_malloc0(FILES * FILE_BYTES);
  if (sandbox && sandbox_line(sandbox, FILL) > 0) {
    ratio_compare(HASHED, (Meter){listing_hashed, sandbox}, (Meter){hash_floor, content}, 0, times);
    ratio_compare(KNOWN, (Meter){listing, sandbox}, (Meter){walk_floor, folders->files}, 0,
                  3 * times);
  } else {
    ratio_leave_out(HASHED, "the files could not be made");
  }
  sandbox_end(sandbox, NULL);
  subject_close(&subject);
}

void bench_workspace(const char *scratch, guint rounds) {
  Folders folders = {
      .scratch = scratch,
      .files = g_build_filename(scratch, "files", NULL),
      .copy = g_build_filename(scratch, "copy", NULL),
      .to = g_build_filename(scratch, "floor", NULL),
      .many = g_build_filename(scratch, "many", NULL),
      .empty = g_build_filename(scratch, "none", NULL),
  };
  floor_fill(folders.files, FILES, FILE_BYTES);
  floor_fill(folders.copy, FILES, FILE_BYTES);
  floor_fill(folders.many, MANY, 100);
  ratio_compare("500 files, 20 MB in / read, tar and write them", (Meter){files_in, &folders},
                (Meter){copy_floor, &folders}, 1.5, MAX(rounds / 6, 3));
  ratio_compare("500 files, 20 MB out / read, tar and write them", (Meter){files_out, &folders},
                (Meter){copy_floor, &folders}, 1.5, MAX(rounds / 6, 3));
  bench_unchanged(&folders, MAX(rounds / 3, 3));
  bench_changes(&folders, MAX(rounds / 3, 3));
  g_free(folders.files);
  g_free(folders.copy);
  g_free(folders.to);
  g_free(folders.many);
  g_free(folders.empty);
}
