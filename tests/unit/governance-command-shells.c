/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governance-command-shells.c: what is read of generated lines, against what shells run.
 *
 * Called as "--shells LINES SEED" it runs every readable line in dash and in bash, and wants them to have
 * started exactly what was read, word for word. tests/e2e/command-shells.sh does so, in a place where
 * /shells holds the two, /recorder is what every program is, and nothing else can be started. As a unit
 * test it only looks at what is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "governance-command-lines.h"
#include "governance/command-read.h"

/* ---- What is read ---------------------------------------------------------------------------- */

/* Every byte of a word stands in the text, in the same order. */
static void check_words(const CommandLine *line) {
  const char *at = line->text;
  for (guint i = 0; i < line->count; i++) {
    for (guint word = 0; word < line->commands[i].count; word++) {
      for (const char *c = line->commands[i].words[word]; *c; c++) {
        at = strchr(at, *c);
        g_assert_nonnull(at);
        at++;
      }
    }
  }
}

static void test_generated_lines(void) {
  g_autoptr(GRand) random = g_rand_new_with_seed(1);
  guint readable = 0;
  for (guint i = 0; i < 50000; i++) {
    g_autofree char *text = lines_next(random);
    g_autoptr(CommandLine) line = command_read_script(text);
    g_assert_true((line->reason == NULL) == (line->count > 0));
    check_words(line);
    readable += line->reason ? 0 : 1;
  }
  /* The generator makes enough of both. */
  g_assert_cmpuint(readable, >, 10000);
  g_assert_cmpuint(readable, <, 40000);
}

/* ---- What is run ----------------------------------------------------------------------------- */

#define LOG 9

typedef struct {
  const char *name;
  const char *path;
  const char *prelude; /* makes builtins programs */
  const char *builtin; /* those that it cannot, each between spaces */
  gboolean by_path;    /* the prelude starts them as /bin/NAME */
} Shell;

/* Regular builtins of dash, which functions come before; those that it looks for first stay. */
#define REGULAR                                                                                    \
  " bg cd chdir echo false fg getopts kill printf pwd test true type ulimit umask unalias wait "
#define SPECIAL                                                                                    \
  " : . [ break continue eval exec exit export readonly return set shift times trap unset "

static const Shell SHELLS[] = {
    {.name = "dash", .path = "/shells/dash", .builtin = SPECIAL, .by_path = TRUE},
    {.name = "bash",
     .path = "/shells/bash",
     .prelude = "enable -n . : [ bg break caller cd compopt continue dirs disown echo exit export "
                "false fg "
                "getopts help history kill logout popd printf pushd pwd readonly return set shift "
                "suspend test times true type ulimit umask unalias unset wait",
     .builtin = ""},
};

static gboolean is_among(const char *names, const char *name) {
  g_autofree char *wanted = g_strdup_printf(" %s ", name);
  return strstr(names, wanted) != NULL;
}

static char *make_prelude(const Shell *shell) {
  if (shell->prelude) {
    return g_strdup(shell->prelude);
  }
  GString *text = g_string_new(NULL);
  g_auto(GStrv) names = g_strsplit(g_strstrip(g_strdup(REGULAR)), " ", -1);
  for (char **name = names; *name; name++) {
    g_string_append_printf(text, "%s() { /bin/%s \"$@\"; };", *name, *name);
  }
  return g_string_free(text, FALSE);
}

/* Words of one start, each ended by a line of its own. */
static void add_start(GPtrArray *starts, const char *const *words, const char *first) {
  GString *text = g_string_new(first);
  for (guint i = 1; words[i]; i++) {
    g_string_append_printf(text, "\n|%s", words[i]);
  }
  g_ptr_array_add(starts, g_string_free(text, FALSE));
}

/* What has to be started where every program ends with status; *ret_exact: nothing that stays a builtin
 * is among it, which may stop the line. */
static GPtrArray *expect(const Shell *shell, const CommandLine *line, int status,
                         gboolean *ret_exact) {
  GPtrArray *starts = g_ptr_array_new_with_free_func(g_free);
  gboolean runs = TRUE; /* the pipeline */
  int last = 0;
  *ret_exact = TRUE;
  for (guint i = 0; i < line->count; i++) {
    const SimpleCommand *command = &line->commands[i];
    if (command->join != JOIN_PIPE) {
      runs = command->join == JOIN_NEXT || (command->join == JOIN_AND && last == 0) ||
             (command->join == JOIN_OR && last != 0);
    }
    const char *program = command->words[0];
    if (is_among(shell->builtin, program)) {
      *ret_exact = FALSE;
      continue;
    }
    last = runs ? status : last;
    if (runs || !*ret_exact) {
      g_autofree char *path = shell->by_path && is_among(REGULAR, program)
                                  ? g_strdup_printf("/bin/%s", program)
                                  : g_strdup(program);
      add_start(starts, command->words, path);
    }
  }
  return starts;
}

/* What the recorders wrote. */
static GPtrArray *read_log(int log) {
  GPtrArray *starts = g_ptr_array_new_with_free_func(g_free);
  off_t size = lseek(log, 0, SEEK_END);
  g_autofree char *bytes = g_malloc((gsize)size + 1);
  g_assert_cmpint(pread(log, bytes, (gsize)size, 0), ==, size);
  for (off_t at = 0; at < size;) {
    guint32 length;
    memcpy(&length, bytes + at, sizeof length);
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    at += (off_t)sizeof length;
    for (off_t end = at + (off_t)length; at < end; at += (off_t)strlen(bytes + at) + 1) {
      g_ptr_array_add(words, bytes + at);
    }
    g_ptr_array_add(words, NULL);
    add_start(starts, (const char *const *)words->pdata, words->pdata[0]);
  }
  return starts;
}

static int compare_texts(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether each start of got is one of wanted, and with exact each of wanted one of got. */
static gboolean agrees(GPtrArray *got, GPtrArray *wanted, gboolean exact) {
  g_ptr_array_sort(got, compare_texts);
  g_ptr_array_sort(wanted, compare_texts);
  guint at = 0;
  for (guint i = 0; i < got->len; i++) {
    while (at < wanted->len && strcmp(wanted->pdata[at], got->pdata[i]) != 0) {
      if (exact) {
        return FALSE;
      }
      at++;
    }
    if (at++ >= wanted->len) {
      return FALSE;
    }
  }
  return !exact || at == wanted->len;
}

/* Makes every program that the line names a recorder. FALSE: no file can have that name. */
static gboolean make_programs(const CommandLine *line) {
  for (guint i = 0; i < line->count; i++) {
    const char *program = line->commands[i].words[0];
    g_autofree char *path =
        strchr(program, '/') ? g_strdup(program) : g_build_filename("/bin", program, NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    const char *name = command_base_name(program);
    struct stat info;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        g_mkdir_with_parents(folder, 0755) < 0 ||
        (symlink("/recorder", path) < 0 && errno != EEXIST) || lstat(path, &info) < 0 ||
        !S_ISLNK(info.st_mode)) {
      return FALSE;
    }
  }
  return TRUE;
}

static int make_memory(const char *name) {
  int fd = memfd_create(name, MFD_CLOEXEC);
  g_assert_cmpint(fd, >=, 0);
  g_assert_cmpint(fcntl(fd, F_SETFL, O_APPEND), ==, 0);
  return fd;
}

typedef struct {
  pid_t pid;
  int log;
  int said; /* stdout and stderr */
} Attempt;

static void start_line(Attempt *attempt, const Shell *shell, const char *prelude, const char *text,
                       int status, gboolean utf8) {
  *attempt = (Attempt){.log = make_memory("log"), .said = make_memory("said")};
  g_autofree char *script = g_strdup_printf("%s\n%s", prelude, text);
  char *argv[] = {(char *)(gsize)shell->name, (char *)(gsize) "-c", script, NULL};
  char *environment[] = {(char *)(gsize) "PATH=/bin",
                         (char *)(gsize)(status ? "RECORDER_STATUS=1" : "RECORDER_STATUS=0"),
                         (char *)(gsize)(utf8 ? "LC_ALL=C.UTF-8" : "LC_ALL=C"), NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, attempt->said, 1);
  posix_spawn_file_actions_adddup2(&actions, attempt->said, 2);
  posix_spawn_file_actions_adddup2(&actions, attempt->log, LOG);
  g_assert_cmpint(posix_spawn(&attempt->pid, shell->path, &actions, NULL, argv, environment), ==,
                  0);
  posix_spawn_file_actions_destroy(&actions);
}

static void show(const char *what, const GPtrArray *starts) {
  for (guint i = 0; i < starts->len; i++) {
    g_autofree char *text = g_strescape(starts->pdata[i], NULL);
    printf("  %s: %s\n", what, text);
  }
}

/* Whether the shell ran what was read. Says what it ran instead. */
static gboolean finish_line(Attempt *attempt, const Shell *shell, const CommandLine *line,
                            int status) {
  int ended;
  g_assert_cmpint(waitpid(attempt->pid, &ended, 0), ==, attempt->pid);
  gboolean exact;
  g_autoptr(GPtrArray) wanted = expect(shell, line, status, &exact);
  g_autoptr(GPtrArray) got = read_log(attempt->log);
  char said[512] = "";
  gboolean quiet = pread(attempt->said, said, sizeof said - 1, 0) == 0;
  gboolean ok = agrees(got, wanted, exact) && (quiet || !exact) && WIFEXITED(ended);
  if (!ok) {
    g_autofree char *text = g_strescape(line->text, NULL);
    printf("%s, status %d: \"%s\"\n", shell->name, status, text);
    show("read", wanted);
    show("ran", got);
    printf("  said: %s\n", said);
  }
  close(attempt->log);
  close(attempt->said);
  return ok;
}

static int run_shells(guint lines, guint32 seed) {
  g_autoptr(GRand) random = g_rand_new_with_seed(seed);
  g_auto(GStrv) preludes = g_new0(char *, G_N_ELEMENTS(SHELLS) + 1);
  for (gsize i = 0; i < G_N_ELEMENTS(SHELLS); i++) {
    preludes[i] = make_prelude(&SHELLS[i]);
  }
  /* What the preludes name has to exist too. */
  g_autoptr(CommandLine) regular = command_read_script("cd; echo; printf; test; true; false");
  g_assert_true(make_programs(regular));
  guint run = 0;
  guint wrong = 0;
  for (guint made = 0; run < lines && wrong < 10; made++) {
    g_autofree char *text = lines_next(random);
    g_autoptr(CommandLine) line = command_read_script(text);
    if (line->reason || !make_programs(line)) {
      continue;
    }
    int status = (int)(run & 1);
    gboolean utf8 = (run & 2) != 0;
    Attempt attempts[G_N_ELEMENTS(SHELLS)];
    for (gsize i = 0; i < G_N_ELEMENTS(SHELLS); i++) {
      start_line(&attempts[i], &SHELLS[i], preludes[i], text, status, utf8);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(SHELLS); i++) {
      wrong += finish_line(&attempts[i], &SHELLS[i], line, status) ? 0 : 1;
    }
    run++;
  }
  printf("%u lines in each shell, %u differ (seed %u)\n", run, wrong, seed);
  return wrong > 0;
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "--shells") == 0) {
    return run_shells((guint)g_ascii_strtoull(argv[2], NULL, 10),
                      (guint32)g_ascii_strtoull(argv[3], NULL, 10));
  }
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/governance/command-shells/generated", test_generated_lines);
  return g_test_run();
}
