/* SPDX-License-Identifier: Apache-2.0 */
/* check-files.c: one file in, one file out. */
#include <string.h>

#include "suite.h"

static void round_trip(Box *box, const char *name, const char *content, gsize length,
                       Verdict *verdict) {
  g_autofree char *path = below(box, name);
  GString *back = g_string_new(NULL);
  gint32 status = write_from(box, path, content, length, 0644);
  if (status != SANDHOST_OK) {
    wrong(verdict, "write_file of %zu bytes to '%s' returned %s", (size_t)length, name,
          status_name(status));
  } else if ((status = read_into(box, path, back)) != SANDHOST_OK) {
    wrong(verdict, "read_file of '%s' returned %s", name, status_name(status));
  } else if (back->len != length || memcmp(back->str, content, length) != 0) {
    wrong(verdict, "'%s' came back with %zu bytes, not the %zu written", name, (size_t)back->len,
          (size_t)length);
  }
  g_string_free(back, TRUE);
}

static void check_sizes(Subject *subject, Verdict *verdict) {
  static const gsize SIZES[] = {0, 1, 65536, 1 << 20, 50 << 20};
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(SIZES); i++) {
    g_autofree char *content = g_malloc(SIZES[i] + 1);
    for (gsize at = 0; at < SIZES[i]; at++) {
      content[at] = (char)(at * 131 + (at >> 8));
    }
    round_trip(&box, "sized", content, SIZES[i], verdict);
  }
  box_close(&box, verdict);
}

static const char *const NAMES[] = {"two words", "new\nline", "\xff\xfe", "\xc3\xa9",  "-rf",
                                    "*",         "$HOME",     "a/b/c/d",  "quote'\"`", "trailing "};

static void check_names(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    round_trip(&box, NAMES[i], "named", 5, verdict);
  }
  g_autofree char *longest = g_strnfill(255, 'n');
  round_trip(&box, longest, "named", 5, verdict);
  box_close(&box, verdict);
}

/* A provider that keeps files elsewhere, or under other names, agrees with itself: a command does not. */
static void check_seen(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    g_autofree char *path = below(&box, NAMES[i]);
    const char *const argv[] = {"cat", path, NULL};
    Ran ran;
    gint32 status = write_from(&box, path, "named", 5, 0644);
    run_argv(&box, argv, NULL, &ran);
    if (status != SANDHOST_OK || strcmp(ran.out->str, "named") != 0) {
      wrong(verdict, "write_file of '%s' returned %s, and a command reads '%.100s' there", NAMES[i],
            status_name(status), ran.out->str);
    }
    ran_clear(&ran);
  }
  box_close(&box, verdict);
}

static void check_modes(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *path = below(&box, "tool");
  write_from(&box, path, "#!/bin/sh\necho ran\n", 19, 0755);
  want_run(&box, "./tool", 0, "ran\n", verdict);
  write_from(&box, path, "plain", 5, 0644);
  want_run(&box, "test ! -x tool && cat tool", 0, "plain", verdict);
  want_run(&box, "echo more >> tool && cat tool", 0, "plainmore\n", verdict);
  box_close(&box, verdict);
}

static void refuse(Box *box, const char *path, Verdict *verdict) {
  GString *content = g_string_new(NULL);
  gint32 read = read_into(box, path, content);
  gint32 written = write_from(box, path, "x", 1, 0644);
  if (read == SANDHOST_OK || content->len > 0) {
    wrong(verdict, "read_file of '%s' was answered", path);
  } else if (written == SANDHOST_OK) {
    wrong(verdict, "write_file to '%s' was accepted", path);
  }
  g_string_free(content, TRUE);
}

static void refuse_inside(Box *box, const char *format, const char *mark, Verdict *verdict) {
  g_auto(GStrv) parts = g_strsplit(format, "MARK", -1);
  g_autofree char *name = g_strjoinv(mark, parts);
  g_autofree char *path = below(box, name);
  refuse(box, path, verdict);
}

/* MARK: nobody else's name, since without isolation /tmp is the machine's. */
static void bounds(Box *box, const char *mark, Verdict *verdict) {
  static const char *const INSIDE[] = {"../MARK.escape",  "a/../../MARK.escape", "link",
                                       "out/MARK.escape", "up/MARK.escape",      "dir",
                                       "two/MARK.escape", "three/MARK.escape"};
  g_autofree char *outside = g_strdup_printf("/tmp/%s.outside", mark);
  g_autofree char *created = g_strdup_printf("/tmp/%s.created", mark);
  g_autofree char *before =
      g_strdup_printf("printf old > %s && ln -s %s link; ln -s /tmp out; ln -s .. up; mkdir dir; "
                      "mkfifo pipe; ln -s /tmp two; ln -s two three",
                      outside, outside);
  want_run(box, before, 0, "", verdict);
  for (gsize i = 0; i < G_N_ELEMENTS(INSIDE); i++) {
    refuse_inside(box, INSIDE[i], mark, verdict);
  }
  GString *content = g_string_new(NULL);
  g_autofree char *pipe = below(box, "pipe");
  if (read_into(box, pipe, content) == SANDHOST_OK ||
      read_into(box, "/etc/passwd", content) == SANDHOST_OK || content->len > 0) {
    wrong(verdict, "read_file of a pipe or of /etc/passwd was answered");
  }
  g_string_free(content, TRUE);
  refuse(box, outside, verdict);
  refuse(box, created, verdict);
  /* Whatever was answered: what is there now? */
  g_autofree char *after =
      g_strdup_printf("cat %s; ls -d /tmp/%s.created /tmp/%s.escape ../%s.escape 2> /dev/null; "
                      "rm -f /tmp/%s.* ../%s.escape",
                      outside, mark, mark, mark, mark, mark);
  want_run(box, after, 0, "old", verdict);
}

static void check_bounds(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *mark = g_strdup_printf("conformance-%08x%08x", g_random_int(), g_random_int());
  bounds(&box, mark, verdict);
  box_close(&box, verdict);
}

static void check_missing(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  GString *content = g_string_new(NULL);
  g_autofree char *path = below(&box, "missing");
  gint32 status = read_into(&box, path, content);
  if (status != SANDHOST_NOT_FOUND) {
    wrong(verdict, "read_file of a missing file returned %s instead of NOT_FOUND",
          status_name(status));
  }
  g_string_free(content, TRUE);
  box_close(&box, verdict);
}

typedef struct {
  gsize left;
} Giving;

static int64_t give_up(void *user, void *buffer, size_t length) {
  Giving *giving = user;
  if (giving->left == 0) {
    return -1;
  }
  gsize take = MIN(giving->left, length);
  memset(buffer, 'n', take);
  giving->left -= take;
  return (int64_t)take;
}

static void check_whole_or_old(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *path = below(&box, "kept");
  write_from(&box, path, "old", 3, 0644);
  Giving giving = {.left = 200000};
  const struct sandhost_source source = {.size = sizeof source, .user = &giving, .read = give_up};
  struct sandhost_call call;
  call_init(&call, 30);
  gint32 status = subject->table->write_file(&call, box.handle, as_path(path), 0644, &source);
  if (status != SANDHOST_CANCELLED) {
    wrong(verdict, "a source that gives up: %s instead of CANCELLED", status_name(status));
  }
  call_clear(&call);
  want_run(&box, "cat kept; ls", 0, "oldkept\n", verdict);
  box_close(&box, verdict);
}

const Check FILE_CHECKS[] = {
    {"files: sizes", "files of 0, 1 and 50 MB come back as they went in", check_sizes},
    {"files: names", "a name is bytes", check_names},
    {"files: seen", "a command finds what write_file wrote, under that name", check_seen},
    {"files: modes", "write_file sets the permission bits", check_modes},
    {"files: bounds", "nothing outside the working directory, nothing but regular files",
     check_bounds},
    {"files: missing", "a missing file is SANDHOST_NOT_FOUND", check_missing},
    {"files: whole or old", "a write that stops half way leaves the old content and nothing else",
     check_whole_or_old},
    {0},
};
