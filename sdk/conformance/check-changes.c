/* SPDX-License-Identifier: Apache-2.0 */
/* check-changes.c: what each entry of a listing says, and that none is missing however deep it lies. A host compares hashes
 * and fetches what differs: a wrong one loses the file. */
#include <nettle/sha2.h>
#include <string.h>

#include "transfer.h"

typedef struct {
  char *path;
  struct sandhost_entry entry; /* without its path */
} Listed;

static void listed_free(gpointer data) {
  Listed *listed = data;
  g_free(listed->path);
  g_free(listed);
}

static int32_t keep_entry(void *user, const struct sandhost_entry *entry) {
  Listed *listed = g_new0(Listed, 1);
  memcpy(&listed->entry, entry, MIN(entry->size, sizeof *entry));
  listed->path = g_strndup(entry->path.data, entry->path.length);
  g_ptr_array_add(user, listed);
  return SANDHOST_OK;
}

/* Of the working directory, when nothing of it is known. NULL: wrong() or skipped() was called. */
static GPtrArray *list(Box *box, Verdict *verdict) {
  GPtrArray *all = g_ptr_array_new_with_free_func(listed_free);
  const struct sandhost_changes request = {.size = sizeof request,
                                           .root = as_path(box->subject->working_dir)};
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .user = all, .entry = keep_entry};
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status = box->subject->table->changes(&call, box->handle, &request, &sink);
  if (!slot_is_absent(status, "changes", all->len > 0, verdict) && status != SANDHOST_OK) {
    wrong(verdict, "changes returned %s: %s", status_name(status),
          call.message ? call.message : "no message");
  }
  call_clear(&call);
  if (status != SANDHOST_OK) {
    g_ptr_array_unref(all);
    all = NULL;
  }
  return all;
}

/* NULL: wrong() was called. */
static const struct sandhost_entry *find(const GPtrArray *all, const char *path, Verdict *verdict) {
  for (guint i = 0; i < all->len; i++) {
    const Listed *listed = g_ptr_array_index(all, i);
    if (strcmp(listed->path, path) == 0) {
      return &listed->entry;
    }
  }
  wrong(verdict, "changes did not list '%.300s'", path);
  return NULL;
}

/* Runs the script and lists what it left. */
static void with_listing(Subject *subject, const char *script,
                         void (*judge)(const GPtrArray *all, Verdict *verdict), Verdict *verdict) {
  Box box;
  if (!subject->table->changes) {
    skipped(verdict, "no changes: the host runs a listing command");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  GPtrArray *all = want_run(&box, script, 0, "", verdict) ? list(&box, verdict) : NULL;
  if (all) {
    judge(all, verdict);
    g_ptr_array_unref(all);
  }
  box_close(&box, verdict);
}

/* ---- Hashes ------------------------------------------------------------------------------------------------------ */

static void want_hash(const GPtrArray *all, const char *path, const char *content,
                      Verdict *verdict) {
  uint8_t expected[SHA256_DIGEST_SIZE];
  struct sha256_ctx sha;
  const struct sandhost_entry *entry = find(all, path, verdict);
  sha256_init(&sha);
  sha256_update(&sha, strlen(content), (const uint8_t *)content);
  sha256_digest(&sha, sizeof expected, expected);
  if (entry && (!(entry->flags & SANDHOST_ENTRY_SHA256) ||
                memcmp(entry->sha256, expected, sizeof expected) != 0)) {
    wrong(verdict, "'%s' was listed %s", path,
          entry->flags & SANDHOST_ENTRY_SHA256 ? "with a sha256 that is not its content's"
                                               : "without its sha256");
  }
}

#define LARGE 300000

static void judge_hashes(const GPtrArray *all, Verdict *verdict) {
  g_autofree char *large = g_strnfill(LARGE, 'x');
  want_hash(all, "abc", "abc", verdict);
  want_hash(all, "empty", "", verdict);
  want_hash(all, "large", large, verdict);
}

static void check_hashes(Subject *subject, Verdict *verdict) {
  with_listing(subject,
               "printf abc > abc; : > empty; "
               "head -c " G_STRINGIFY(LARGE) " /dev/zero | tr '\\0' x > large",
               judge_hashes, verdict);
}

/* ---- What else an entry says --------------------------------------------------------------------------------------- */

#define DAY (86400 * SECOND)
#define OLD_TIME (G_GINT64_CONSTANT(981173040) * SECOND) /* 3 February 2001, 04:04, UTC */

static void judge_entry(const GPtrArray *all, const char *path, guint32 mode, gint64 time,
                        Verdict *verdict) {
  const struct sandhost_entry *entry = find(all, path, verdict);
  if (!entry) {
    return;
  }
  if (entry->size < sizeof *entry || entry->size > 2 * sizeof *entry) {
    wrong(verdict, "the entry of '%s' says that it is %zu bytes", path, entry->size);
  } else if (entry->mode != mode) {
    wrong(verdict, "the mode of '%s' is told as 0%o instead of 0%o", path, entry->mode, mode);
  } else if (entry->mtime < time - DAY || entry->mtime > time + DAY) {
    wrong(verdict,
          "the mtime of '%s' is told as %" G_GINT64_FORMAT
          ", more than a day from %" G_GINT64_FORMAT,
          path, entry->mtime, time);
  } else if (entry->bytes != 3) {
    wrong(verdict, "'%s' has 3 bytes, not %" G_GUINT64_FORMAT, path, entry->bytes);
  } else if (entry->reserved != 0) {
    wrong(verdict, "reserved of '%s' is %u", path, entry->reserved);
  }
}

static void judge_entries(const GPtrArray *all, Verdict *verdict) {
  gint64 now = g_get_real_time() * 1000;
  judge_entry(all, "plain", 0644, now, verdict);
  judge_entry(all, "tool", 0755, now, verdict);
  judge_entry(all, "old", 0600, OLD_TIME, verdict);
}

static void check_entries(Subject *subject, Verdict *verdict) {
  with_listing(subject,
               "printf abc > plain; printf abc > tool; chmod 755 tool; printf abc > old; "
               "chmod 600 old; touch -t 200102030404 old",
               judge_entries, verdict);
}

/* ---- Depth ------------------------------------------------------------------------------------------------------- */

#define LEVELS 60

static void judge_depth(const GPtrArray *all, Verdict *verdict) {
  GString *path = g_string_new(NULL);
  for (int i = 0; i < LEVELS; i++) {
    g_string_append(path, "d/");
  }
  g_string_append(path, "file");
  find(all, path->str, verdict);
  g_string_assign(path, "d/d/d/beside");
  find(all, path->str, verdict);
  g_string_free(path, TRUE);
}

static void check_depth(Subject *subject, Verdict *verdict) {
  with_listing(subject,
               "p=; i=0; while [ $i -lt " G_STRINGIFY(
                   LEVELS) " ]; do p=${p}d/; i=$((i+1)); done; "
                           "mkdir -p \"$p\"; printf abc > \"${p}file\"; printf abc > d/d/d/beside",
               judge_depth, verdict);
}

const Check CHANGES_CHECKS[] = {
    {"changes: hashes", "the sha256 of an entry is that of the file's content", check_hashes},
    {"changes: entries",
     "an entry has its size, its permission bits, and its mtime in nanoseconds since 1970",
     check_entries},
    {"changes: deep folders", "nothing is left out without a word, however deep it lies",
     check_depth},
    {0},
};
