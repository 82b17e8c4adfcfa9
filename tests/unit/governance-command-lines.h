/* SPDX-License-Identifier: Apache-2.0 */
/* governance-command-lines.h: lines that nobody would write by hand, the same for the same seed. Included
 * once by a test program. */
#ifndef SANDHOST_TESTS_GOVERNANCE_COMMAND_LINES_H
#define SANDHOST_TESTS_GOVERNANCE_COMMAND_LINES_H

#include <glib.h>
#include <string.h>

#define LINES_PICK(random, list) ((list)[g_rand_int_range(random, 0, (gint32)G_N_ELEMENTS(list))])

static const char *const LINES_SEEDS[] = {
    "git status",
    "git status && rm -rf x",
    "ls | head -5; pwd",
    "ls\npwd",
    "git commit -m 'two words'",
    "\"rm\" -rf x",
    "git push # note",
    "set -e; make -j4 all\nmake install PREFIX='/usr local'",
    "grep -n \"x$\" a.txt | sort -u | head -n 3",
    "printf '%s\\n' \"a b\" 'c;d'",
    "bash build.sh --fast || /bin/echo failed",
    "git log --format='%H %s' HEAD~3..HEAD -- 'a b' c\xc3\xa9",
    "echo x > f",
    "rm -rf $(pwd)",
    "r\\m -rf x",
    "FOO=1 make",
    "(cd x && rm y)",
    "f() { rm x; }",
    "time rm x &",
    "echo 'rm x' | sh",
};

static inline void lines_add_piece(GString *out, GRand *random) {
  /* clang-format off */
  static const char *const PIECES[] = {
      "a", "bc", "-rf", "--x=y", "x.txt", "a/b", "1", "HEAD~1", "a#b", "!", "!x", "%1", "^a^b",
      "a^", "@", "+", ",", "a:b", "]", "x]", "a=b", "=", "''", "\"\"", "'a b'", "'\n'", "'#'",
      "';'", "'\"'", "'\\'", "'$x'", "'*'", "'~'", "'{a,b}'", "'|'", "'&&'", "\"a b\"", "\"'\"",
      "\"#\"", "\"\n\"", "\";\"", "\"$\"", "\"x$\"", "\"*\"", "\"~\"", "\"{a}\"", "\"!\"", "\"|\"",
      "\t", "\xc3\xa9", "'\xe2\x82\xac'", "x\xc2\xa0y", "\xf0\x9f\x98\x80", "-", "--", "if", "in",
      "do", "then", "time", "a=~", "x:~/b", "'$'"};
  /* clang-format on */
  g_string_append(out, LINES_PICK(random, PIECES));
}

static inline void lines_add_word(GString *out, GRand *random) {
  gint32 pieces = g_rand_int_range(random, 0, 4) ? 1 : g_rand_int_range(random, 1, 5);
  while (pieces-- > 0) {
    lines_add_piece(out, random);
  }
}

static inline void lines_add_program(GString *out, GRand *random) {
  /* clang-format off */
  static const char *const PROGRAMS[] = {
      "git", "rm", "ls", "make", "r\"m\"", "'ls'", "g'i't", "./x.sh", "/bin/ls", "a/b/c", "echo",
      "printf", "test", "true", "false", "cd", "pwd", "kill", "wait", "type", "umask", "'if'",
      "\"do\"", "'!'", "'{'", "'}'", "f\"i\"", "in\"\"", "'case'", "export", "set", "unset", ":",
      "exit", "shift", "return", "bash x", "sh ./y", "busybox", "sudo", "env", "xargs", "find",
      "a b", "'a b'", "\"[\"", "]", "a=\"b\"", "'a'=b", "a\"=\"b", "1a", "a.b", "a-b",
      "\xc3\xa9t\xc3\xa9", "%", "^", "@", "+x", "-x", "--", "!x", "x!", "a:b", "a,b", "a#", "'#'",
      "\"#\"a", "'~'", "a~", "'*'", "\"\t\"", "'\n'", "in", "then", "end", "]]", "a=b"};
  /* clang-format on */
  g_string_append(out, LINES_PICK(random, PROGRAMS));
}

static inline void lines_add_blanks(GString *out, GRand *random) {
  static const char *const BLANKS[] = {" ", " ", " ", " ", "  ", "\t", " \t "};
  g_string_append(out, LINES_PICK(random, BLANKS));
}

static inline void lines_add_command(GString *out, GRand *random) {
  lines_add_program(out, random);
  for (gint32 words = g_rand_int_range(random, 0, 5); words > 0; words--) {
    lines_add_blanks(out, random);
    lines_add_word(out, random);
  }
}

/* Of the grammar that can be read, mostly. */
static inline void lines_add_list(GString *out, GRand *random) {
  /* clang-format off */
  static const char *const JOINERS[] = {
      ";", "; ", " ; ", "&&", " && ", "||", " || ", "|", " | ", "\n", "\n\n", ";\n", "&&\n",
      " |\n ", "||\n", " # note\n", " #'\n", "&&#x\n", "\n #y ; z\n"};
  /* clang-format on */
  for (gint32 commands = g_rand_int_range(random, 1, 5); commands > 0; commands--) {
    lines_add_command(out, random);
    if (commands > 1) {
      g_string_append(out, LINES_PICK(random, JOINERS));
    }
  }
  static const char *const ENDS[] = {"", "", "", "", ";", "\n", " ", " # end", ";#", " #"};
  g_string_append(out, LINES_PICK(random, ENDS));
}

/* Of no grammar: short, of what has a meaning to a shell. */
static inline void lines_add_noise(GString *out, GRand *random) {
  /* clang-format off */
  static const char *const BITS[] = {
      "a", "b", "ls", "x", " ", " ", "'", "\"", "'", "\"", "#", ";", "&&", "|", "||", "&", "\n",
      "=", "~", "!", "$", "-", "%", "^", ":", ",", ".", "@", "+", "]", "/", "\\", "{", "}", "(",
      ")", "<", ">", "*", "?", "[", "`", "\t", "1", "if", "do", "\xc3\xa9"};
  /* clang-format on */
  for (gint32 bits = g_rand_int_range(random, 1, 16); bits > 0; bits--) {
    g_string_append(out, LINES_PICK(random, BITS));
  }
}

static inline void lines_mutate(GString *line, GRand *random) {
  static const char BYTES[] = " '\"#;&|\n=~!$-%^:,.@+]/\\{}()<>*?[`\tab0";
  for (gint32 edits = g_rand_int_range(random, 1, 4); edits > 0 && line->len > 0; edits--) {
    gssize at = g_rand_int_range(random, 0, (gint32)line->len);
    char byte = BYTES[g_rand_int_range(random, 0, (gint32)sizeof BYTES - 1)];
    switch (g_rand_int_range(random, 0, 4)) {
    case 0:
      g_string_insert_c(line, at, byte);
      break;
    case 1:
      g_string_erase(line, at, 1);
      break;
    case 2:
      line->str[at] = byte;
      break;
    default:
      g_string_insert_c(line, at, line->str[g_rand_int_range(random, 0, (gint32)line->len)]);
      break;
    }
  }
}

/* The next line. Returns owned. */
static inline char *lines_next(GRand *random) {
  GString *line = g_string_new(NULL);
  gint32 kind = g_rand_int_range(random, 0, 10);
  if (kind < 6) {
    lines_add_list(line, random);
  } else if (kind < 8) {
    g_string_append(line, LINES_PICK(random, LINES_SEEDS));
  } else {
    lines_add_noise(line, random);
  }
  if (kind >= 4 && kind < 8) {
    lines_mutate(line, random);
  }
  return g_string_free(line, FALSE);
}

#endif
