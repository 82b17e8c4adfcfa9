/* SPDX-License-Identifier: Apache-2.0 */
/* check-promises.c: what is declared and what is told, held against what a command can do. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "network.h"
#include "suite.h"

/* ---- The files of the machine ----------------------------------------------------------------------------------------- */

/* A file of this machine that everybody may read, with a word that nobody can guess. */
typedef struct {
  char *folder;
  char *path;
  char word[40];
} Planted;

static gboolean plant(const char *where, Planted *ret_planted) {
  Planted planted = {.folder = g_build_filename(where, ".sandhost-conformance-XXXXXX", NULL)};
  g_snprintf(planted.word, sizeof planted.word, "planted-%08x%08x", g_random_int(), g_random_int());
  if (!g_mkdtemp(planted.folder)) {
    g_free(planted.folder);
    return FALSE;
  }
  planted.path = g_build_filename(planted.folder, "word", NULL);
  /* Whatever the umask is. */
  if (chmod(planted.folder, 0755) != 0 ||
      !g_file_set_contents(planted.path, planted.word, -1, NULL) ||
      chmod(planted.path, 0644) != 0) {
    unlink(planted.path);
    rmdir(planted.folder);
    g_free(planted.path);
    g_free(planted.folder);
    return FALSE;
  }
  *ret_planted = planted;
  return TRUE;
}

static void uproot(Planted *planted) {
  unlink(planted->path);
  rmdir(planted->folder);
  g_free(planted->path);
  g_free(planted->folder);
}

static void look_for(Box *box, const Planted *planted, Verdict *verdict) {
  Ran ran;
  const char *const argv[] = {"cat", planted->path, NULL};
  run_argv(box, argv, NULL, &ran);
  if (strstr(ran.out->str, planted->word)) {
    wrong(verdict, "a command read %s, a file of this machine", planted->path);
  }
  ran_clear(&ran);
}

/* Says what no clause forbids: an ordinary user inside would be one wall more. */
static void note_privileges(Box *box, Verdict *verdict) {
  Ran ran;
  guint user = 1;
  guint64 capabilities = 0;
  run_script(box,
             "echo $(id -u) $(sed -n 's/^CapEff://p' /proc/self/status) $(cat /proc/self/uid_map)",
             NULL, &ran);
  g_auto(GStrv) words = g_strsplit(g_strstrip(ran.out->str), " ", -1);
  if (g_strv_length(words) == 5) {
    user = (guint)g_ascii_strtoull(words[0], NULL, 10);
    capabilities = g_ascii_strtoull(words[1], NULL, 16);
    /* The map of a machine's own users: all of them, each as itself. */
    if (user == 0 && (capabilities >> 21 & 1) && strcmp(words[2], "0") == 0 &&
        strcmp(words[3], "0") == 0 && strcmp(words[4], "4294967295") == 0) {
      noted(verdict, "commands run as root with CAP_SYS_ADMIN and without a user namespace, and "
                     "may undo what keeps them in; provider.h does not forbid it");
    }
  }
  ran_clear(&ran);
}

/* In so many words, and not lowered on this machine. */
static gboolean promises_files(Subject *subject) {
  return subject->table->enforces_count > 0 &&
         subject_level(subject, SANDHOST_SETTING_FILES) > SANDHOST_LEVEL_NONE;
}

static void check_files(Subject *subject, Verdict *verdict) {
  const char *const places[] = {"/var/tmp", g_get_tmp_dir(), g_get_home_dir()};
  Box box;
  guint tried = 0;
  if (!promises_files(subject)) {
    skipped(verdict, "SANDHOST_SETTING_FILES is not declared, or not kept on this machine");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
    Planted planted;
    if (plant(places[i], &planted)) {
      tried++;
      look_for(&box, &planted, verdict);
      uproot(&planted);
    }
  }
  if (tried == 0) {
    untried(verdict, "no file can be made in /var/tmp, %s or %s", places[1], places[2]);
  }
  note_privileges(&box, verdict);
  box_close(&box, verdict);
}

/* ---- What cannot be kept ------------------------------------------------------------------------------------------------ */

static void check_secrets(Subject *subject, Verdict *verdict) {
  if (subject->table->enforces_count > 0 &&
      declares_setting(subject->table, SANDHOST_SETTING_SECRETS)) {
    wrong(verdict, "SANDHOST_SETTING_SECRETS is declared");
  }
}

/* ---- What a command used ------------------------------------------------------------------------------------------------ */

#define TOUCHED 50000000u /* as bs says */
#define LEAST 40000000u

static void check_largest(Subject *subject, Verdict *verdict) {
  const char *const argv[] = {"dd", "if=/dev/zero", "of=/dev/null", "bs=50000000", "count=1", NULL};
  Box box;
  Ran ran;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  run_argv(&box, argv, NULL, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_EXIT ||
      ran.result.exit_code != 0) {
    untried(verdict, "dd with a block of %u bytes: %s, ended %u, exit code %d", TOUCHED,
            status_name(ran.status), ran.result.ended, ran.result.exit_code);
  } else if (ran.result.max_rss > 0 && ran.result.max_rss < LEAST) {
    wrong(verdict, "a command that used %u bytes has a max_rss of %" G_GUINT64_FORMAT, TOUCHED,
          ran.result.max_rss);
  }
  ran_clear(&ran);
  box_close(&box, verdict);
}

const Check PROMISE_CHECKS[] = {
    {"enforces: files", "with SANDHOST_SETTING_FILES commands cannot see the files of the machine",
     check_files},
    {"enforces: secrets", "nothing that create is given carries a secret, so nobody delivers one",
     check_secrets},
    {"execute: largest process", "max_rss is in bytes, and 0 where it is unknown", check_largest},
    {0},
};
