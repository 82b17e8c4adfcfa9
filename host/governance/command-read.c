/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command-read.c: the strict recogniser (behaviour 5.2): one pass from left to right, without
 * recursion. The first thing that is not literal words and plain joiners ends it.
 */
#include "governance/command-read.h"

#include <string.h>

#include "governance/command-private.h"

#define MAX_BYTES (COMMAND_MAX_CHARACTERS * 4)

typedef struct {
  const char *at;    /* what is read next; the script ends with NUL */
  CommandLine *line; /* the words so far; its commands are known at the end */
  char *free;        /* behind the last word in line->bytes */
  GArray *starts;    /* Start of each command */
  CommandJoin join;  /* of the command that begins next */
  guint count;       /* of words of the command that is being read */
  gboolean wanted;   /* a joiner waits for the command behind it */
} Reader;

typedef struct {
  CommandJoin join;
  guint first; /* among line->words */
  guint count;
} Start;

/* The word that is being read. */
typedef struct {
  char *start; /* its bytes, up to reader->free */
  gboolean quoted;
} Word;

static gboolean refuse(Reader *reader, const char *reason) {
  reader->line->reason = g_strdup(reason);
  return FALSE;
}

static gboolean is_blank(char c) {
  return c == ' ' || c == '\t';
}

/* Which characters end a word, quotes aside. */
static gboolean ends_word(char c) {
  return c == '\0' || c == '\n' || is_blank(c) || strchr(";&|<>()", c);
}

/* ---- Words ----------------------------------------------------------------------------------- */

static gboolean is_control(char c) {
  return ((guchar)c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

static void keep(Reader *reader, char c) {
  *reader->free++ = c;
}

/* A character outside ASCII: one that some locale might take for a blank proves nothing. */
static gboolean read_wide(Reader *reader) {
  gunichar c = g_utf8_get_char(reader->at);
  if (c < 0xa0 || g_unichar_isspace(c)) {
    return refuse(reader, UNREADABLE_GRAMMAR);
  }
  const char *next = reader->at + g_utf8_skip[(guchar)*reader->at];
  while (reader->at < next) {
    keep(reader, *reader->at++);
  }
  return TRUE;
}

static gboolean read_single(Reader *reader) {
  for (reader->at++; *reader->at != '\''; reader->at++) {
    if (!*reader->at || is_control(*reader->at)) {
      return refuse(reader, UNREADABLE_GRAMMAR);
    }
    keep(reader, *reader->at);
  }
  reader->at++;
  return TRUE;
}

static gboolean read_double(Reader *reader) {
  for (reader->at++; *reader->at != '"'; reader->at++) {
    char c = *reader->at;
    if (!c || is_control(c)) {
      return refuse(reader, UNREADABLE_GRAMMAR);
    }
    if (c == '\\') {
      return refuse(reader, "an escape");
    }
    /* A dollar that closes the quotes stands for itself, as at the end of a pattern. */
    if (c == '`' || (c == '$' && reader->at[1] != '"')) {
      return refuse(reader, "an expansion inside quotes");
    }
    keep(reader, c);
  }
  reader->at++;
  return TRUE;
}

static const char *name_dollar(const char *at) {
  switch (at[1]) {
  case '(':
    return at[2] == '(' ? "a variable" : "a command substitution";
  case '\'':
    return "a $'...' string";
  case '"':
    return "an expansion inside quotes";
  default:
    return "a variable";
  }
}

/* A brace alone where a command begins opens a group. */
static const char *name_brace(const Reader *reader, const Word *word) {
  gboolean alone = reader->count == 0 && reader->free == word->start && !word->quoted &&
                   ends_word(reader->at[1]);
  return alone ? "a { ... } group or (( ... ))" : "a brace expansion";
}

/* bash also expands a tilde behind = and :. */
static gboolean is_tilde_place(const Reader *reader, const Word *word) {
  return reader->free == word->start || reader->free[-1] == '=' || reader->free[-1] == ':';
}

/* Why the unquoted character at reader->at is no literal; NULL: it is one. */
static const char *name_special(const Reader *reader, const Word *word) {
  switch (*reader->at) {
  case '\\':
    return "an escape";
  case '`':
    return "a command substitution";
  case '$':
    return name_dollar(reader->at);
  case '*':
  case '?':
  case '[':
    return "a glob";
  case '{':
    return name_brace(reader, word);
  case '}':
    return UNREADABLE_GRAMMAR; /* closes a group, to zsh wherever it stands */
  case '~':
    return is_tilde_place(reader, word) ? "`~`" : NULL;
  case '=':
    if (reader->free == word->start) {
      return UNREADABLE_GRAMMAR; /* zsh: the path of a program */
    }
    /* Which names are assigned to differs between shells; no program has such a name. */
    return reader->count == 0 && !word->quoted ? "a variable set before the command" : NULL;
  default:
    return is_control(*reader->at) || *reader->at == '\r' ? UNREADABLE_GRAMMAR : NULL;
  }
}

static gboolean read_pieces(Reader *reader, Word *word) {
  while (!ends_word(*reader->at)) {
    char c = *reader->at;
    gboolean ok = TRUE;
    if (c == '\'' || c == '"') {
      word->quoted = TRUE;
      ok = c == '"' ? read_double(reader) : read_single(reader);
    } else if ((guchar)c >= 0x80) {
      ok = read_wide(reader);
    } else {
      const char *special = name_special(reader, word);
      ok = !special || refuse(reader, special);
      keep(reader, c);
      reader->at++;
    }
    if (!ok) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean read_word(Reader *reader) {
  Word word = {.start = reader->free};
  if (!read_pieces(reader, &word)) {
    return FALSE;
  }
  keep(reader, '\0');
  /* Quoted it is text here, but a builtin may evaluate it; also when it is put together of pieces. */
  if (strstr(word.start, "$(") || strchr(word.start, '`')) {
    return refuse(reader, "a command substitution inside quotes");
  }
  if (reader->count == 0) {
    reader->line->reason = command_check_first(word.start, word.quoted);
    if (reader->line->reason) {
      return FALSE;
    }
  }
  g_ptr_array_add(reader->line->words, word.start);
  reader->count++;
  return TRUE;
}

/* ---- Commands -------------------------------------------------------------------------------- */

/* Ends the command that is being read, if there is one. */
static gboolean end_command(Reader *reader) {
  if (reader->count == 0) {
    return TRUE;
  }
  GPtrArray *words = reader->line->words;
  guint first = words->len - reader->count;
  const char *const *command = (const char *const *)words->pdata + first;
  if (!*command[0]) {
    return refuse(reader, UNREADABLE_NOTHING);
  }
  if (*command[0] == '%') {
    return refuse(reader, UNREADABLE_GRAMMAR); /* bash: brings a job to the foreground */
  }
  reader->line->reason = command_check_words(command, reader->count);
  Start start = {.join = reader->join, .first = first, .count = reader->count};
  g_array_append_val(reader->starts, start);
  g_ptr_array_add(words, NULL);
  reader->count = 0;
  reader->join = JOIN_NEXT;
  reader->wanted = FALSE;
  return !reader->line->reason;
}

/* A joiner of length bytes. It stands behind a command; wanted: another one has to follow. */
static gboolean join(Reader *reader, gsize length, CommandJoin how, gboolean wanted) {
  if (reader->count == 0) {
    return refuse(reader, UNREADABLE_GRAMMAR);
  }
  if (!end_command(reader)) {
    return FALSE;
  }
  reader->at += length;
  reader->join = how;
  reader->wanted = wanted;
  return TRUE;
}

static gboolean read_semicolon(Reader *reader) {
  char next = reader->at[1];
  if (next == ';' || next == '&' || next == '|') {
    return refuse(reader, UNREADABLE_GRAMMAR); /* these stand in a case */
  }
  return join(reader, 1, JOIN_NEXT, FALSE);
}

static gboolean read_ampersand(Reader *reader) {
  if (reader->at[1] == '&') {
    return join(reader, 2, JOIN_AND, TRUE);
  }
  if (reader->at[1] == '>') {
    return refuse(reader, "a redirect");
  }
  return refuse(reader, reader->count ? "`&`" : UNREADABLE_GRAMMAR);
}

static gboolean read_bar(Reader *reader) {
  if (reader->at[1] == '|') {
    return join(reader, 2, JOIN_OR, TRUE);
  }
  if (reader->at[1] == '&') {
    return refuse(reader, reader->count ? "`|&`" : UNREADABLE_GRAMMAR);
  }
  return join(reader, 1, JOIN_PIPE, TRUE);
}

static gboolean read_parenthesis(Reader *reader) {
  if (reader->count == 0) {
    return refuse(reader, reader->at[1] == '(' ? "a { ... } group or (( ... ))" : "a subshell");
  }
  const char *next = reader->at + 1 + strspn(reader->at + 1, " \t");
  return refuse(reader, reader->count == 1 && *next == ')' ? "a function" : UNREADABLE_GRAMMAR);
}

static gboolean read_newline(Reader *reader) {
  reader->at++;
  return end_command(reader);
}

static gboolean read_token(Reader *reader) {
  switch (*reader->at) {
  case '\n':
    return read_newline(reader);
  case '#':
    for (; *reader->at && *reader->at != '\n'; reader->at++) {
      if (is_control(*reader->at)) {
        return refuse(reader, UNREADABLE_GRAMMAR);
      }
    }
    return TRUE;
  case ';':
    return read_semicolon(reader);
  case '&':
    return read_ampersand(reader);
  case '|':
    return read_bar(reader);
  case '<':
  case '>':
    return refuse(reader, reader->at[1] == '(' ? "a command substitution" : "a redirect");
  case '(':
    return read_parenthesis(reader);
  case ')':
    return refuse(reader, UNREADABLE_GRAMMAR);
  default:
    return read_word(reader);
  }
}

static gboolean read_all(Reader *reader) {
  for (;;) {
    reader->at += strspn(reader->at, " \t");
    if (!*reader->at) {
      break;
    }
    if (!read_token(reader)) {
      return FALSE;
    }
  }
  if (!end_command(reader)) {
    return FALSE;
  }
  if (reader->wanted) {
    return refuse(reader, UNREADABLE_GRAMMAR);
  }
  return reader->starts->len > 0 || refuse(reader, UNREADABLE_NOTHING);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* What is wrong with the script as a whole, or NULL. */
static const char *check_text(const char *script) {
  if (strnlen(script, MAX_BYTES + 1) > MAX_BYTES) {
    return "longer than 10000 characters";
  }
  if (!g_utf8_validate(script, -1, NULL)) {
    return UNREADABLE_GRAMMAR;
  }
  if (g_utf8_strlen(script, -1) > COMMAND_MAX_CHARACTERS) {
    return "longer than 10000 characters";
  }
  return strstr(script, "\\\n") ? "a line continuation" : NULL;
}

/* The words do not move any more. */
static void set_commands(CommandLine *line, const GArray *starts) {
  line->count = starts->len;
  line->commands = g_new0(SimpleCommand, starts->len);
  for (guint i = 0; i < starts->len; i++) {
    const Start *start = &g_array_index(starts, Start, i);
    line->commands[i] =
        (SimpleCommand){.join = start->join,
                        .count = start->count,
                        .words = (const char *const *)line->words->pdata + start->first};
  }
}

CommandLine *command_read_script(const char *script) {
  CommandLine *line = g_new0(CommandLine, 1);
  line->text = g_strdup(script);
  line->reason = g_strdup(check_text(script));
  if (line->reason) {
    return line;
  }
  /* A word is at most as long as its text, and something or the end stands behind it. */
  line->bytes = g_malloc(strlen(script) + 1);
  line->words = g_ptr_array_new();
  g_autoptr(GArray) starts = g_array_new(FALSE, FALSE, sizeof(Start));
  Reader reader = {.at = script, .line = line, .free = line->bytes, .starts = starts};
  if (read_all(&reader)) {
    set_commands(line, starts);
  }
  return line;
}

static char *join_words(const char *const *argv) {
  GString *text = g_string_new(NULL);
  for (gsize i = 0; argv && argv[i]; i++) {
    g_string_append_printf(text, "%s%s", i ? " " : "", argv[i]);
  }
  return g_string_free(text, FALSE);
}

/* One command that no shell reads. */
static CommandLine *read_words(const char *const *argv, guint count) {
  CommandLine *line = g_new0(CommandLine, 1);
  line->text = join_words(argv);
  line->words = g_ptr_array_new_full(count + 1, g_free);
  for (guint i = 0; i < count; i++) {
    g_ptr_array_add(line->words, g_strdup(argv[i]));
  }
  g_ptr_array_add(line->words, NULL);
  line->reason = command_check_words((const char *const *)line->words->pdata, count);
  if (!line->reason) {
    g_autoptr(GArray) starts = g_array_new(FALSE, FALSE, sizeof(Start));
    Start start = {.join = JOIN_NEXT, .first = 0, .count = count};
    g_array_append_val(starts, start);
    set_commands(line, starts);
  }
  return line;
}

CommandLine *command_read_argv(const char *const *argv) {
  guint count = 0;
  while (argv && argv[count]) {
    count++;
  }
  if (count == 0 || !*argv[0]) {
    CommandLine *line = g_new0(CommandLine, 1);
    line->text = join_words(argv);
    line->reason = g_strdup(UNREADABLE_NOTHING);
    return line;
  }
  /* A script that looks like a flag is one. */
  if (count >= 3 && command_is_shell(command_base_name(argv[0])) && command_takes_script(argv[1]) &&
      argv[2][0] != '-' && argv[2][0] != '+') {
    return command_read_script(argv[2]);
  }
  return read_words(argv, count);
}

void command_line_free(CommandLine *line) {
  if (!line) {
    return;
  }
  g_free(line->reason);
  g_free(line->text);
  g_free(line->commands);
  g_free(line->bytes);
  if (line->words) {
    g_ptr_array_unref(line->words);
  }
  g_free(line);
}
