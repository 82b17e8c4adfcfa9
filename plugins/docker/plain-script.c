/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain-script.c: the shell scripts below which commands run and by which they are ended. They need a POSIX shell and
 * nothing else of the image: every program in them is built into it.
 *
 * The engine tells the end of an exec only when both its streams are closed, which a process that was left behind
 * prevents, and keeps no children together. So the script says the end itself, in words that it writes into each stream
 * behind whatever the command wrote: these begin with a number that nobody else knows. And all that a command starts is
 * marked by a resident set limit, which Linux hands on to every child, keeps for good (it can only be lowered) and
 * otherwise does not heed.
 */
#include "plain.h"

#include <string.h>
#include <sys/random.h>

/* Where marks begin, KiB: far above any memory. Each is in [MARK_BASE, 2 * MARK_BASE). */
#define MARK_BASE ((uint64_t)1 << 39)
#define PID_BITS 22 /* as Linux has it at most */
/* Linux takes no argument of 128 KiB. */
#define LONGEST_SCRIPT ((size_t)120 * 1024)

/*
 * nonce, mark in KiB, folder, variables that only the shell has set, whether the words are encoded, file of a long
 * script; then the command. A shell of its own (the inner one) collects what the shell says of a killed command: that is
 * how a signal is told from an exit code. The traps keep both alive when a command signals its whole group. A command that
 * kills the inner one is told as killed like it: its own code nobody can know any more.
 */
static const char RUN[] =
    "sandhost_n=$1 sandhost_k=$2 sandhost_d=$3 sandhost_u=$4 sandhost_e=$5 sandhost_f=$6\n"
    "shift 6\n"
    "trap : 1 2 3 10 12 13 14 15\n"
    "exec 3>&1 4>&2 5<&0\n"
    "sandhost_m=$(trap : 1 2 3 10 12 13 14 15\n"
    "{ (\n"
    "sandhost_no() { printf 'sandhost: %s: %s\\n' \"$1\" \"$2\" >&4; exit \"$3\"; }\n"
    "if [ \"$sandhost_e\" ]; then\n"
    "  sandhost_i=$#\n"
    "  while [ $sandhost_i -gt 0 ]; do\n"
    "    sandhost_a=$(printf '%b.' \"$1\"); shift\n"
    "    set -- \"$@\" \"${sandhost_a%.}\"; sandhost_i=$((sandhost_i - 1))\n"
    "  done\n"
    "fi\n"
    "if [ \"$sandhost_f\" ]; then\n"
    "  exec 9<\"$sandhost_f\" && rm -f \"$sandhost_f\" 2>/dev/null\n"
    "fi\n"
    "if ! cd \"$sandhost_d\" 2>/dev/null; then\n"
    "  [ -e \"$sandhost_d\" ] || sandhost_no \"$sandhost_d\" 'No such file or directory' 126\n"
    "  [ -d \"$sandhost_d\" ] || sandhost_no \"$sandhost_d\" 'Not a directory' 126\n"
    "  sandhost_no \"$sandhost_d\" 'Permission denied' 126\n"
    "fi\n"
    "sandhost_r=2\n"
    "case $1 in\n"
    "*/*)\n"
    "  if [ -f \"$1\" ] && [ -x \"$1\" ]; then sandhost_r=0\n"
    "  elif [ -e \"$1\" ]; then sandhost_r=13; fi;;\n"
    "*)\n"
    "  sandhost_o=$IFS; IFS=:; set -f\n"
    "  for sandhost_p in ${PATH-/usr/local/bin:/usr/bin:/bin}; do\n"
    "    [ -f \"${sandhost_p:-.}/$1\" ] || continue\n"
    "    if [ -x \"${sandhost_p:-.}/$1\" ]; then sandhost_r=0; break; fi\n"
    "    sandhost_r=13\n"
    "  done\n"
    "  IFS=$sandhost_o; set +f\n"
    "  case $1 in -*) sandhost_a=${sandhost_p:-.}/$1; shift; set -- \"$sandhost_a\" \"$@\";; "
    "esac;;\n"
    "esac\n"
    "[ $sandhost_r != 2 ] || sandhost_no \"$1\" 'No such file or directory' 127\n"
    "[ $sandhost_r != 13 ] || sandhost_no \"$1\" 'Permission denied' 126\n"
    "ulimit -m \"$sandhost_k\" 2>/dev/null\n"
    "read -r sandhost_p sandhost_x </proc/self/stat\n"
    "printf '\\036%sB%s\\036' \"$sandhost_n\" \"$sandhost_p\" >&3\n"
    "unset $sandhost_u\n"
    "exec \"$@\" <&5 >&3 2>&4 3>&- 4>&- 5<&-\n"
    "); printf 'X%s' \"$?\"; } 2>&1)\n"
    "sandhost_w=$?\n"
    "case $sandhost_m in X*) sandhost_s=0;; *) sandhost_s=1;; esac\n"
    "[ -z \"$BASH_VERSION\" ] || sandhost_s=2\n"
    "case ${sandhost_m##*X} in ''|*[!0-9]*) sandhost_m=X$sandhost_w sandhost_s=1;; esac\n"
    "printf '\\036%sE%s,%s\\036' \"$sandhost_n\" \"${sandhost_m##*X}\" \"$sandhost_s\" >&3\n"
    "printf '\\036%sE\\036' \"$sandhost_n\" >&4\n";

/*
 * Sets h to the mark of a process, empty where it has ended, and l to its facts from the state on. The name before them
 * may hold anything, an end of a line as well. The state is that of the first thread: with that one ended and others
 * running (field 20) the process goes on.
 */
#define READ_MARK                                                                                  \
  "mark_of() {\n"                                                                                  \
  "  h=\n"                                                                                         \
  "  while read -r a b c s v e; do\n"                                                              \
  "    [ \"$a$b$c\" != Maxresidentset ] || { h=$v; break; }\n"                                     \
  "  done 2>/dev/null <\"$1/limits\"\n"                                                            \
  "  l=\n"                                                                                         \
  "  while read -r a; do l=\"$l$a \"; done 2>/dev/null <\"$1/stat\"\n"                             \
  "  l=${l##*) }\n"                                                                                \
  "  set -- $l\n"                                                                                  \
  "  case $1 in X*) h=;; Z*) [ \"${18:-1}\" -gt 1 ] || h=;; esac\n"                                \
  "}\n"

/*
 * Kills whatever bears the mark, again and again until a look finds nothing. A limit below all marks is that of a
 * process that lowered its own: whose it is cannot be known, so it goes too. Others' marks and processes without a
 * limit (the first process, the scripts) stay.
 *
 * Processes that each live for a moment and leave a successor can be elsewhere at every look. So a look counts only
 * when no process began meanwhile, which the last number given out tells; otherwise everybody has to stand still for
 * the next one, and then goes on, but for those that stood still before.
 */
const char plain_script_kill[] = READ_MARK
    "m=$1 n=0\n"
    "own=$(ulimit -m)\n"
    "newest() { w=; read -r a b c s w 2>/dev/null </proc/loadavg; }\n"
    "look() {\n"
    "  found=\n"
    "  for d in /proc/[0-9]*; do\n"
    "    p=${d#/proc/}\n"
    "    case $p in 1|$$) continue;; esac\n"
    "    mark_of \"$d\"\n"
    "    case $h in ''|unlimited) continue;; esac\n"
    "    if [ \"$h\" = \"$m\" ] || { [ \"$own\" = unlimited ] && [ ${#h} -lt 15 ]; }; then\n"
    "      kill -9 \"$p\" 2>/dev/null && found=1\n"
    "    fi\n"
    "  done\n"
    "}\n"
    "look_at_all() {\n"
    "  still=\" 1 $$ \"\n"
    "  for d in /proc/[0-9]*; do\n"
    "    mark_of \"$d\"\n"
    "    case $l in T*|t*) still=\"$still${d#/proc/} \";; esac\n"
    "  done\n"
    "  kill -STOP -1 2>/dev/null\n"
    "  look\n"
    "  for d in /proc/[0-9]*; do\n"
    "    case $still in *\" ${d#/proc/} \"*) ;; *) kill -CONT \"${d#/proc/}\" 2>/dev/null;; esac\n"
    "  done\n"
    "}\n"
    "while [ $n -lt 100 ]; do\n"
    "  newest\n"
    "  before=$w\n"
    "  look\n"
    "  newest\n"
    "  [ \"$found\" ] || [ \"$w\" = \"$before\" ] || look_at_all\n"
    "  [ \"$found\" ] || { echo clean; exit; }\n"
    "  n=$((n + 1))\n"
    "done\n"
    "echo busy\n";

const char plain_script_signal[] =
    READ_MARK "m=$1 n=$3\n"
              "mark_of \"/proc/$2\"\n"
              "[ \"$h\" = \"$m\" ] || { echo gone; exit; }\n"
              "group_of() { g=$3; }\n"
              "group_of $l\n"
              "w=$g\n"
              "for d in /proc/[0-9]*; do\n"
              "  mark_of \"$d\"\n"
              "  [ \"$h\" = \"$m\" ] || continue\n"
              "  group_of $l\n"
              "  [ \"$g\" != \"$w\" ] || kill -\"$n\" \"${d#/proc/}\" 2>/dev/null\n"
              "done\n"
              "echo sent\n";

/* Goes down folder by folder, so that a link that leads out makes nothing there. */
const char plain_script_place[] =
    "r=$(printf '%b.' \"$1\") d=$(printf '%b.' \"$2\") n=$(printf '%b.' \"$3\") t=$4\n"
    "r=${r%.} d=${d%.} n=${n%.}\n"
    "no() { rm -f \"$t\" 2>/dev/null; echo \"$1\"; exit; }\n"
    "for c in mv rm mkdir; do command -v $c >/dev/null || { echo tools; exit; }; done\n"
    "cd -P \"$r\" 2>/dev/null || no denied\n"
    "top=$PWD t=$PWD/$t\n"
    "IFS=/; set -f\n"
    "for c in $d; do\n"
    "  if [ -L \"./$c\" ] || [ -e \"./$c\" ]; then\n"
    "    [ -d \"./$c\" ] || [ -L \"./$c\" ] || no folder\n"
    "  else mkdir \"./$c\" 2>/dev/null || no denied; fi\n"
    "  cd -P \"./$c\" 2>/dev/null || no denied\n"
    "  case $PWD/ in \"$top\"/*) ;; *) no outside;; esac\n"
    "done\n"
    "[ ! -L \"./$n\" ] || no outside\n"
    "[ ! -d \"./$n\" ] || no directory\n"
    "[ ! -e \"./$n\" ] || [ -f \"./$n\" ] || no irregular\n"
    "mv -f \"$t\" \"./$n\" 2>/dev/null || no denied\n"
    "echo done\n";

/* The same way down; a second name for the file, which holds its content whatever happens to the first. */
const char plain_script_link[] =
    "r=$(printf '%b.' \"$1\") d=$(printf '%b.' \"$2\") n=$(printf '%b.' \"$3\") t=$4\n"
    "r=${r%.} d=${d%.} n=${n%.}\n"
    "no() { echo \"$1\"; exit; }\n"
    "command -v ln >/dev/null || no tools\n"
    "cd -P \"$r\" 2>/dev/null || no missing\n"
    "top=$PWD t=$PWD/$t\n"
    "IFS=/; set -f\n"
    "for c in $d; do\n"
    "  cd -P \"./$c\" 2>/dev/null || no missing\n"
    "  case $PWD/ in \"$top\"/*) ;; *) no outside;; esac\n"
    "done\n"
    "[ ! -L \"./$n\" ] || no outside\n"
    "[ -e \"./$n\" ] || no missing\n"
    "[ -f \"./$n\" ] || no irregular\n"
    "ln \"./$n\" \"$t\" 2>/dev/null || no denied\n"
    "echo done\n";

/*
 * The first process: it ends when its input does. A signal makes it end everything else, in one stroke that leaves no time
 * to fork, and without forking itself, since there may be no room to: all stops, and what is not the first process's own
 * reader is killed.
 */
const char plain_script_first[] =
    "exec 3<&0\n"
    "trap 'kill -STOP -1; for p in /proc/[0-9]*; do case $p in /proc/1|/proc/$r) ;; "
    "*) kill -9 ${p#/proc/};; esac; done; kill -CONT $r' USR1\n"
    "while :; do { while read -r l; do :; done; } <&3 & r=$!\n"
    "while kill -0 $r; do wait $r && exit; done; done 2>/dev/null";

/* ---- Marks ------------------------------------------------------------------------------------ */

gboolean plain_mark_make(struct plain_mark *ret_mark) {
  unsigned char random[PLAIN_NONCE_LENGTH / 2 + 8];
  if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
    return FALSE;
  }
  for (size_t i = 0; i < PLAIN_NONCE_LENGTH / 2; i++) {
    ret_mark->nonce[2 * i] = "0123456789abcdef"[random[i] >> 4];
    ret_mark->nonce[2 * i + 1] = "0123456789abcdef"[random[i] & 15];
  }
  ret_mark->nonce[PLAIN_NONCE_LENGTH] = '\0';
  uint64_t number = 0;
  memcpy(&number, random + PLAIN_NONCE_LENGTH / 2, 8);
  ret_mark->number = MARK_BASE + number % MARK_BASE;
  return TRUE;
}

uint64_t plain_execution_of(const struct plain_mark *mark, uint32_t pid) {
  return (mark->number - MARK_BASE) << PID_BITS | pid;
}

uint64_t plain_execution_mark(uint64_t execution, uint32_t *ret_pid) {
  *ret_pid = (uint32_t)(execution & (((uint64_t)1 << PID_BITS) - 1));
  return (execution >> PID_BITS) % MARK_BASE + MARK_BASE;
}

/* ---- Words ------------------------------------------------------------------------------------ */

gboolean plain_script_is_long(const struct sandhost_execute *request) {
  static const char *const SHELLS[] = {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"};
  if (request->argc < 3 || request->argv[2].length <= LONGEST_SCRIPT ||
      request->argv[1].length != 2 || memcmp(request->argv[1].data, "-c", 2) != 0) {
    return FALSE;
  }
  g_autofree char *program = g_strndup(request->argv[0].data, request->argv[0].length);
  const char *slash = strrchr(program, '/');
  for (size_t i = 0; i < G_N_ELEMENTS(SHELLS); i++) {
    if (strcmp(slash ? slash + 1 : program, SHELLS[i]) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

/* For printf's %b. */
char *plain_encode(const char *data, size_t length) {
  GString *text = g_string_sized_new(length);
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)data[i];
    if (byte < ' ' || byte >= 0x7f || byte == '\\') {
      g_string_append_printf(text, "\\0%03o", byte);
    } else {
      g_string_append_c(text, (char)byte);
    }
  }
  return g_string_free(text, FALSE);
}

static gboolean has_variable(const struct sandhost_execute *request, GPtrArray *sandbox_environment,
                             const char *name) {
  size_t length = strlen(name);
  for (size_t i = 0; i < request->environment_count; i++) {
    const struct sandhost_text *given = &request->environment[i].name;
    if (given->length == length && memcmp(given->data, name, length) == 0) {
      return TRUE;
    }
  }
  for (guint i = 0; sandbox_environment && i < sandbox_environment->len; i++) {
    const char *given = sandbox_environment->pdata[i];
    if (strncmp(given, name, length) == 0 && given[length] == '=') {
      return TRUE;
    }
  }
  return FALSE;
}

/* The variables that shells make up. */
static char *made_up(const struct sandhost_execute *request, GPtrArray *sandbox_environment) {
  static const char *const NAMES[] = {"PWD", "OLDPWD", "SHLVL", "_"};
  GString *names = g_string_new("sandhost_x");
  for (size_t i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    if (!has_variable(request, sandbox_environment, NAMES[i])) {
      g_string_append_printf(names, " %s", NAMES[i]);
    }
  }
  return g_string_free(names, FALSE);
}

GPtrArray *plain_script_words(const struct plain_mark *mark, const struct sandhost_execute *request,
                              const char *cwd, GPtrArray *sandbox_environment,
                              const char *script_file) {
  GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
  gboolean encoded = FALSE;
  for (size_t i = 0; i < request->argc; i++) {
    encoded =
        encoded || (!(script_file && i == 2) &&
                    !g_utf8_validate_len(request->argv[i].data, request->argv[i].length, NULL));
  }
  g_ptr_array_add(words, g_strdup(PLAIN_SHELL));
  g_ptr_array_add(words, g_strdup("-c"));
  g_ptr_array_add(words, g_strdup(RUN));
  g_ptr_array_add(words, g_strdup("sandhost"));
  g_ptr_array_add(words, g_strdup(mark->nonce));
  g_ptr_array_add(words, g_strdup_printf("%" G_GUINT64_FORMAT, mark->number));
  g_ptr_array_add(words, g_strdup(cwd));
  g_ptr_array_add(words, made_up(request, sandbox_environment));
  g_ptr_array_add(words, g_strdup(encoded ? "1" : ""));
  g_ptr_array_add(words, g_strdup(script_file ? script_file : ""));
  for (size_t i = 0; i < request->argc; i++) {
    const struct sandhost_text *word = &request->argv[i];
    if (script_file && i == 2) {
      g_ptr_array_add(words, g_strdup(". /proc/self/fd/9"));
    } else {
      g_ptr_array_add(words, encoded ? plain_encode(word->data, word->length)
                                     : g_strndup(word->length ? word->data : "", word->length));
    }
  }
  g_ptr_array_add(words, NULL);
  return words;
}
