/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: what is said of each check. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apart.h"

static const Check *const GROUPS[] = {
    LIFECYCLE_CHECKS, EXECUTE_CHECKS, OBSERVER_CHECKS, RESULT_CHECKS,   INHERITED_CHECKS,
    LIMIT_CHECKS,     FILE_CHECKS,    KEPT_CHECKS,     LINK_CHECKS,     BESIDE_CHECKS,
    TRANSFER_CHECKS,  CHANGES_CHECKS, ARCHIVE_CHECKS,  OPTIONAL_CHECKS, SNAPSHOT_CHECKS,
    SWEEP_CHECKS,     PROCESS_CHECKS, WHOLE_CHECKS,    SLOT_CHECKS,     AIM_CHECKS,
    ATTACH_CHECKS,    MAKING_CHECKS,  AGAIN_CHECKS,    EARLY_CHECKS,    LOST_CHECKS,
    PROMISE_CHECKS,   PERSON_CHECKS,  GROWTH_CHECKS,   WATCHED_CHECKS};
#define BEFORE_CLOSE (G_N_ELEMENTS(GROUPS) - 1)

static struct {
  const GPtrArray *only;
  gsize group;        /* where we are */
  const Check *check; /* the one that is being run; NULL: none is */
  guint passed;
  guint failed;
  guint skipped;
  guint untried;
  gboolean tells;
  gboolean terminal;    /* where a line can be taken back */
  pthread_mutex_t lock; /* whoever says something, and where we are */
} report = {.lock = PTHREAD_MUTEX_INITIALIZER};

gboolean report_knows(const char *text) {
  gboolean found = FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS(GROUPS); i++) {
    for (const Check *check = GROUPS[i]; check->name; check++) {
      found = found || strstr(check->name, text);
    }
  }
  return found;
}

static gboolean is_asked_for(const char *name) {
  gboolean asked = report.only->len == 0;
  for (guint i = 0; i < report.only->len; i++) {
    asked = asked || strstr(name, g_ptr_array_index(report.only, i));
  }
  return asked;
}

/* One line that commands no terminal, whatever a provider or a command gave. Owned. */
static char *shown(const char *text) {
  g_autofree char *valid = g_utf8_make_valid(text, -1);
  GString *line = g_string_new(NULL);
  for (char *at = valid; *at; at = g_utf8_next_char(at)) {
    gunichar c = g_utf8_get_char(at);
    GUnicodeType type = g_unichar_type(c);
    if (c == '\n') {
      g_string_append(line, "\\n");
    } else if (type == G_UNICODE_CONTROL || type == G_UNICODE_FORMAT ||
               type == G_UNICODE_LINE_SEPARATOR || type == G_UNICODE_PARAGRAPH_SEPARATOR) {
      g_string_append_printf(line, "\\u%04x", c);
    } else {
      g_string_append_unichar(line, c);
    }
  }
  return g_string_free(line, FALSE);
}

/* ---- Lines; with the lock --------------------------------------------------------------------------------------------- */

static void say_begun(const char *name) {
  if (report.tells) {
    fprintf(apart_out, "running %s\n", name);
  } else if (report.terminal) {
    fprintf(apart_out, "running %s", name);
  }
  fflush(apart_out);
}

static void say_failed(const char *name, const char *found, const char *rule) {
  g_autofree char *line = shown(found);
  fprintf(apart_out, "FAILED  %s\n        found: %s\n        asked: %s\n", name, line, rule);
  report.failed++;
}

static void say_untried(const char *name, const char *why) {
  fprintf(apart_out, "untried %s: could not be tried: %s\n", name, why);
  report.untried++;
}

static void take_back(void) {
  if (report.terminal && !report.tells) {
    fputs("\r\033[K", apart_out);
  }
}

static void say_verdict(const Check *check, const Verdict *verdict) {
  take_back();
  if (verdict->wrong) {
    say_failed(check->name, verdict->wrong, check->rule);
  } else if (verdict->untried) {
    say_untried(check->name, verdict->untried);
  } else if (verdict->skipped) {
    fprintf(apart_out, "skipped %s: %s\n", check->name, verdict->skipped);
    report.skipped++;
  } else {
    fprintf(apart_out, "passed  %s\n", check->name);
    report.passed++;
  }
  if (verdict->noted) {
    fprintf(apart_out, "note    %s: %s\n", check->name, verdict->noted);
  }
  fflush(apart_out);
}

/* Owned. */
static char *sum_up(void) {
  GString *text = g_string_new(NULL);
  g_string_printf(text, "%u passed, %u failed, %u skipped", report.passed, report.failed,
                  report.skipped);
  if (report.untried > 0) {
    g_string_append_printf(text, ", %u could not be tried", report.untried);
  }
  return g_string_free(text, FALSE);
}

/* ---- All of them -------------------------------------------------------------------------------------------------------- */

static void run_one(const Subject *subject, const Check *check, ReportRun run) {
  Verdict verdict = {0};
  pthread_mutex_lock(&report.lock);
  report.check = check;
  say_begun(check->name);
  pthread_mutex_unlock(&report.lock);
  run(subject, check, &verdict);
  pthread_mutex_lock(&report.lock);
  say_verdict(check, &verdict);
  report.check = NULL;
  pthread_mutex_unlock(&report.lock);
  g_free(verdict.wrong);
  g_free(verdict.skipped);
  g_free(verdict.untried);
  g_free(verdict.noted);
}

static void run_group(const Subject *subject, ReportRun run) {
  for (const Check *check = GROUPS[report.group]; check->name; check++) {
    if (is_asked_for(check->name)) {
      run_one(subject, check, run);
    }
  }
}

void report_all(const Subject *subject, const GPtrArray *only, gboolean tells, ReportRun run) {
  const char *kind = g_getenv("TERM");
  report.only = only;
  report.tells = tells;
  report.terminal = isatty(fileno(apart_out)) && kind && strcmp(kind, "dumb") != 0;
  fprintf(apart_out, "%s %s: %s\n", subject->table->name, subject->table->version,
          subject->table->summary);
  for (report.group = 0; report.group < BEFORE_CLOSE; report.group++) {
    run_group(subject, run);
  }
}

gboolean report_watches(void) {
  gboolean asked = FALSE;
  for (const Check *check = WATCHED_CHECKS; check->name; check++) {
    asked = asked || is_asked_for(check->name);
  }
  return asked;
}

void report_watched(const Subject *subject, ReportRun run) {
  run_group(subject, run);
}

char *report_sum(int *ret_code) {
  pthread_mutex_lock(&report.lock);
  char *sum = sum_up();
  *ret_code = report.failed || report.passed == 0 ? 1 : 0;
  pthread_mutex_unlock(&report.lock);
  return sum;
}

/* ---- The end before the end ----------------------------------------------------------------------------------------------- */

static void say_rest_untried(void) {
  const Check *check = report.check ? report.check + 1 : GROUPS[report.group];
  for (;;) {
    for (; check->name; check++) {
      if (is_asked_for(check->name)) {
        say_untried(check->name, "an operation before it did not come back");
      }
    }
    if (++report.group >= G_N_ELEMENTS(GROUPS)) {
      return;
    }
    check = GROUPS[report.group];
  }
}

void report_stuck(const char *operation, gint64 seconds) {
  g_autofree char *found =
      g_strdup_printf("%s did not come back within %" G_GINT64_FORMAT " s", operation, seconds);
  pthread_mutex_lock(&report.lock);
  take_back();
  say_failed(report.check ? report.check->name : operation, found,
             "an operation is back two seconds after its deadline at the latest");
  say_rest_untried();
  g_autofree char *sum = sum_up();
  apart_end(1, sum);
  _exit(1); /* the thread that hangs would not let any other way end */
}
