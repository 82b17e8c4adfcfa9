/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command-check.c: programs that run more than their words say.
 *
 * The table holds every name of behaviour 5.2, and those that do the same in some shell that may be
 * called sh: a line must mean one thing in all of them.
 */
#include "governance/command-private.h"

#include <string.h>

#include "governance/command-read.h"

typedef enum {
  WORD_PLAIN,
  /* Words of the grammar, which only their quotes make plain. */
  WORD_NEGATION,
  WORD_IF,
  WORD_CASE,
  WORD_LOOP,
  WORD_MISPLACED,
  /* Take a command as their words; zsh has most of them. Quotes do not always help. */
  WORD_KEYWORD,
  /* Run an argument now or later (bash's jobs -x, zsh's sched), change how the rest of the line is read
   * (shopt), or evaluate expressions, which may run commands (declare). */
  WORD_RUNS_TEXT,
  /* Looked into when they are what is started. */
  WORD_SHELL,
  /* Shells as well: nothing looks into their scripts, and nobody may feed them one unread. */
  WORD_OTHER_SHELL,
  /* Harmless builtins but for some of their arguments. */
  WORD_SET,
  WORD_SUBSCRIPT,
  WORD_PRINT,
  WORD_ASSIGN,
} WordKind;

typedef struct {
  const char *word;
  WordKind kind;
} Row;

/* In the order of strcmp. */
static const Row ROWS[] = {
    {"!", WORD_NEGATION},
    {"-", WORD_KEYWORD},
    {".", WORD_RUNS_TEXT},
    {"[", WORD_SUBSCRIPT},
    {"]]", WORD_MISPLACED},
    {"alias", WORD_RUNS_TEXT},
    {"ash", WORD_SHELL},
    {"autoload", WORD_RUNS_TEXT},
    {"bash", WORD_SHELL},
    {"bind", WORD_RUNS_TEXT},
    {"builtin", WORD_RUNS_TEXT},
    {"busybox", WORD_SHELL},
    {"case", WORD_CASE},
    {"command", WORD_RUNS_TEXT},
    {"compgen", WORD_RUNS_TEXT},
    {"complete", WORD_RUNS_TEXT},
    {"coproc", WORD_KEYWORD},
    {"csh", WORD_OTHER_SHELL},
    {"dash", WORD_SHELL},
    {"declare", WORD_RUNS_TEXT},
    {"do", WORD_MISPLACED},
    {"done", WORD_MISPLACED},
    {"elif", WORD_MISPLACED},
    {"else", WORD_MISPLACED},
    {"emulate", WORD_RUNS_TEXT},
    {"enable", WORD_RUNS_TEXT},
    {"end", WORD_MISPLACED},
    {"esac", WORD_MISPLACED},
    {"eval", WORD_RUNS_TEXT},
    {"exec", WORD_RUNS_TEXT},
    {"export", WORD_ASSIGN},
    {"fc", WORD_RUNS_TEXT},
    {"fi", WORD_MISPLACED},
    {"fish", WORD_OTHER_SHELL},
    {"float", WORD_RUNS_TEXT},
    {"for", WORD_LOOP},
    {"foreach", WORD_KEYWORD},
    {"function", WORD_KEYWORD},
    {"getopts", WORD_SUBSCRIPT},
    {"hash", WORD_RUNS_TEXT},
    {"hist", WORD_RUNS_TEXT},
    {"hush", WORD_OTHER_SHELL},
    {"if", WORD_IF},
    {"in", WORD_MISPLACED},
    {"integer", WORD_RUNS_TEXT},
    {"jobs", WORD_RUNS_TEXT},
    {"ksh", WORD_SHELL},
    {"ksh93", WORD_OTHER_SHELL},
    {"let", WORD_RUNS_TEXT},
    {"lksh", WORD_OTHER_SHELL},
    {"local", WORD_RUNS_TEXT},
    {"mapfile", WORD_RUNS_TEXT},
    {"mksh", WORD_SHELL},
    {"nameref", WORD_RUNS_TEXT},
    {"nocorrect", WORD_KEYWORD},
    {"noglob", WORD_KEYWORD},
    {"oksh", WORD_OTHER_SHELL},
    {"pdksh", WORD_OTHER_SHELL},
    {"posh", WORD_OTHER_SHELL},
    {"print", WORD_PRINT},
    {"printf", WORD_PRINT},
    {"rbash", WORD_OTHER_SHELL},
    {"read", WORD_RUNS_TEXT},
    {"readarray", WORD_RUNS_TEXT},
    {"readonly", WORD_ASSIGN},
    {"repeat", WORD_KEYWORD},
    {"rksh", WORD_OTHER_SHELL},
    {"sched", WORD_RUNS_TEXT},
    {"select", WORD_KEYWORD},
    {"set", WORD_SET},
    {"setopt", WORD_RUNS_TEXT},
    {"sh", WORD_SHELL},
    {"shopt", WORD_RUNS_TEXT},
    {"source", WORD_RUNS_TEXT},
    {"tcsh", WORD_OTHER_SHELL},
    {"test", WORD_SUBSCRIPT},
    {"then", WORD_MISPLACED},
    {"time", WORD_KEYWORD},
    {"trap", WORD_RUNS_TEXT},
    {"typeset", WORD_RUNS_TEXT},
    {"unset", WORD_SUBSCRIPT},
    {"unsetopt", WORD_RUNS_TEXT},
    {"until", WORD_LOOP},
    {"wait", WORD_SUBSCRIPT},
    {"while", WORD_LOOP},
    {"yash", WORD_OTHER_SHELL},
    {"zsh", WORD_SHELL},
};

static WordKind kind_of(const char *word) {
  gsize low = 0;
  gsize high = G_N_ELEMENTS(ROWS);
  while (low < high) {
    gsize middle = (low + high) / 2;
    int order = strcmp(word, ROWS[middle].word);
    if (order == 0) {
      return ROWS[middle].kind;
    }
    low = order > 0 ? middle + 1 : low;
    high = order > 0 ? high : middle;
  }
  return WORD_PLAIN;
}

static gboolean is_in(const char *const *list, const char *word) {
  return g_strv_contains(list, word);
}

const char *command_base_name(const char *program) {
  const char *slash = strrchr(program, '/');
  return slash ? slash + 1 : program;
}

gboolean command_is_shell(const char *base) {
  return kind_of(base) == WORD_SHELL;
}

/* Flags that every shell here takes without a word behind them, and that leave the grammar alone. An
 * interactive shell (i) has aliases, and in zsh no comments. */
static gboolean is_plain_flags(const char *flags, const char *letters) {
  return flags[0] == '-' && flags[1] && strspn(flags + 1, letters) == strlen(flags + 1);
}

gboolean command_takes_script(const char *flags) {
  return is_plain_flags(flags, "acefluvx") && strchr(flags, 'c');
}

static char *runs_text(const char *name) {
  return g_strdup_printf("`%s` runs text as a command", name);
}

char *command_check_first(const char *word, gboolean quoted) {
  static const char *const REASONS[] = {
      [WORD_NEGATION] = "a negated command",
      [WORD_IF] = "an if",
      [WORD_CASE] = "a case",
      [WORD_LOOP] = "a loop",
      [WORD_MISPLACED] = UNREADABLE_GRAMMAR,
  };
  WordKind kind = kind_of(word);
  if (kind == WORD_KEYWORD) {
    return g_strdup_printf("the shell keyword `%s`", word);
  }
  if (kind == WORD_RUNS_TEXT) {
    return runs_text(word);
  }
  return quoted || kind > WORD_MISPLACED ? NULL : g_strdup(REASONS[kind]);
}

/* ---- Shells ---------------------------------------------------------------------------------- */

static char *runs_argument(const char *shell) {
  return g_strdup_printf("`%s -c` runs text as a command", shell);
}

static char *reads_input(const char *shell) {
  return g_strdup_printf("`%s` reads commands from its input", shell);
}

/* Other names of what a shell reads when it is given no file. */
static gboolean is_input(const char *file) {
  static const char *const NAMES[] = {"stdin", "tty", "console", "ptmx", NULL};
  return is_in(NAMES, command_base_name(file)) || strstr(file, "fd/") || strstr(file, "pts/");
}

/* What the words of a shell make it run, from words[at] on. */
static char *check_shell(const char *shell, const char *const *words, guint count, guint at) {
  static const char *const LONG[] = {"--login", "--noprofile", "--norc",
                                     "--posix", "--verbose",   NULL};
  for (; at < count && (words[at][0] == '-' || words[at][0] == '+'); at++) {
    const char *word = words[at];
    if (strcmp(word, "-") == 0 || strcmp(word, "--") == 0) {
      at++;
      break;
    }
    if (is_in(LONG, word) || is_plain_flags(word, "aefluvxn")) {
      continue;
    }
    /* Another flag may take the next word for itself, so that what follows is no script file. */
    for (guint i = at; i < count; i++) {
      if (words[i][0] == '-' && strchr(words[i], 'c')) {
        return runs_argument(shell);
      }
    }
    return reads_input(shell);
  }
  return at >= count || !words[at][0] || is_input(words[at]) ? reads_input(shell) : NULL;
}

static gboolean is_any_shell(const char *base) {
  WordKind kind = kind_of(base);
  return kind == WORD_SHELL || kind == WORD_OTHER_SHELL;
}

/* NULL: words[0] is no shell, or runs a script that is a file. */
static char *check_shells(const char *const *words, guint count) {
  guint at = 0;
  const char *base = command_base_name(words[at]);
  while (strcmp(base, "busybox") == 0 && at + 1 < count && words[at + 1][0] != '-') {
    base = command_base_name(words[++at]);
    if (!is_any_shell(base)) {
      return NULL; /* another program of the box */
    }
  }
  return is_any_shell(base) ? check_shell(base, words, count, at + 1) : NULL;
}

/* ---- Builtins -------------------------------------------------------------------------------- */

/* set may switch history expansion on, or take assignments out of what follows. */
static gboolean is_plain_set(const char *const *words, guint count) {
  static const char *const OPTIONS[] = {"errexit", "nounset", "pipefail", "noglob",
                                        "xtrace",  "verbose", NULL};
  for (guint i = 1; i < count; i++) {
    const char *flags = words[i];
    if ((flags[0] != '-' && flags[0] != '+') || strcmp(flags, "--") == 0) {
      return TRUE; /* only the positional parameters follow */
    }
    gsize plain = strspn(flags + 1, "efuvx");
    gboolean takes_name = flags[1 + plain] == 'o';
    if (!flags[1] || flags[1 + plain + (takes_name ? 1 : 0)] != '\0' ||
        (takes_name && (i + 1 >= count || !is_in(OPTIONS, words[++i])))) {
      return FALSE;
    }
  }
  return TRUE;
}

/* Whether an argument may be a subscript, which is evaluated with all that stands in it. */
static gboolean has_subscript(const char *const *words, guint count) {
  for (guint i = 1; i < count; i++) {
    if (strchr(words[i], '[') && strchr(words[i], '$')) {
      return TRUE;
    }
  }
  return FALSE;
}

/* Whether a value is put together of pieces, each of which alone is harmless to evaluate. */
static gboolean appends(const char *const *words, guint count) {
  for (guint i = 1; i < count; i++) {
    if (strstr(words[i], "+=")) {
      return TRUE;
    }
  }
  return FALSE;
}

/* Whether print or printf writes into a variable. */
static gboolean prints_to_variable(const char *const *words, guint count) {
  return count > 1 && words[1][0] == '-' && strchr(words[1], 'v');
}

char *command_check_words(const char *const *words, guint count) {
  gboolean runs = FALSE;
  switch (kind_of(words[0])) {
  case WORD_RUNS_TEXT:
    runs = TRUE;
    break;
  case WORD_SET:
    runs = !is_plain_set(words, count);
    break;
  case WORD_SUBSCRIPT:
    runs = has_subscript(words, count);
    break;
  case WORD_PRINT:
    runs = has_subscript(words, count) || prints_to_variable(words, count);
    break;
  case WORD_ASSIGN:
    runs = has_subscript(words, count) || appends(words, count);
    break;
  case WORD_PLAIN:
    if (!strchr(words[0], '/')) {
      return NULL; /* nor is its base name a shell */
    }
    break;
  default:
    break;
  }
  return runs ? runs_text(words[0]) : check_shells(words, count);
}
