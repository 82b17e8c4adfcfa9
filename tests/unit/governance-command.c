/* SPDX-License-Identifier: Apache-2.0 */
/* governance-command.c: what a line is read as, and why not (behaviour 5.2). */
#include <glib.h>
#include <string.h>

#include "governance/command-read.h"
#include "governance/command-tell.h"

/* A readable line as "git status ; rm x"; with | && || where they stand. "!" and the reason where it is
 * unreadable. A word that needs it stands in <>. Owned. */
static char *tell(const CommandLine *line) {
  static const char *const JOINS[] = {
      [JOIN_NEXT] = " ; ", [JOIN_AND] = " && ", [JOIN_OR] = " || ", [JOIN_PIPE] = " | "};
  if (line->reason) {
    g_assert_cmpuint(line->count, ==, 0);
    return g_strdup_printf("!%s", line->reason);
  }
  GString *out = g_string_new(NULL);
  g_assert_cmpuint(line->count, >, 0);
  g_assert_cmpint(line->commands[0].join, ==, JOIN_NEXT);
  for (guint i = 0; i < line->count; i++) {
    const SimpleCommand *command = &line->commands[i];
    g_string_append(out, i ? JOINS[command->join] : "");
    g_assert_null(command->words[command->count]);
    for (guint word = 0; word < command->count; word++) {
      const char *text = command->words[word];
      gboolean plain = *text && !strpbrk(text, " \t\n;|&<>");
      g_string_append_printf(out, plain ? "%s%s" : "%s<%s>", word ? " " : "", text);
    }
  }
  return g_string_free(out, FALSE);
}

typedef struct {
  const char *script;
  const char *wanted;
} Case;

static void reads_all(const Case *cases, gsize count) {
  for (gsize i = 0; i < count; i++) {
    g_autoptr(CommandLine) line = command_read_script(cases[i].script);
    g_autofree char *told = tell(line);
    if (strcmp(told, cases[i].wanted) != 0) {
      g_error("%s\n  is read as %s\n  instead of %s", cases[i].script, told, cases[i].wanted);
    }
    g_assert_cmpstr(line->text, ==, cases[i].script);
  }
}
#define READS(cases) reads_all(cases, G_N_ELEMENTS(cases))

static void test_acceptance_readable(void) {
  static const Case CASES[] = {
      {"git status", "git status"},
      {"git status && rm -rf x", "git status && rm -rf x"},
      {"ls | head -5; pwd", "ls | head -5 ; pwd"},
      {"ls\npwd", "ls ; pwd"},
      {"git commit -m 'two words'", "git commit -m <two words>"},
      {"\"rm\" -rf x", "rm -rf x"},
      {"git push # note", "git push"},
  };
  READS(CASES);
}

static void test_acceptance_unreadable(void) {
  static const Case CASES[] = {
      {"echo x > f", "!a redirect"},
      {"cat < f", "!a redirect"},
      {"rm -rf $(pwd)", "!a command substitution"},
      {"echo $HOME", "!a variable"},
      {"echo \"$HOME\"", "!an expansion inside quotes"},
      {"rm *.py", "!a glob"},
      {"cat ~/.ssh/id_rsa", "!`~`"},
      {"r\\m -rf x", "!an escape"},
      {"FOO=1 make", "!a variable set before the command"},
      {"(cd x && rm y)", "!a subshell"},
      {"{ ls; }", "!a { ... } group or (( ... ))"},
      {"f() { rm x; }", "!a function"},
      {"eval 'rm x'", "!`eval` runs text as a command"},
      {"source ./x.sh", "!`source` runs text as a command"},
      {"sh -c 'rm x'", "!`sh -c` runs text as a command"},
      {"bash -lc 'rm x'", "!`bash -c` runs text as a command"},
      {"rm x &", "!`&`"},
      {"{rm,-rf,x}", "!a brace expansion"},
      {"time rm x", "!the shell keyword `time`"},
      {"! rm x", "!a negated command"},
      {"$'rm' x", "!a $'...' string"},
      {"echo 'rm x' | sh", "!`sh` reads commands from its input"},
      {"bash", "!`bash` reads commands from its input"},
      {"sh -s", "!`sh` reads commands from its input"},
  };
  READS(CASES);
}

static void test_joiners(void) {
  static const Case CASES[] = {
      {"a;b", "a ; b"},
      {"a ;", "a"},
      {"a&&b||c|d", "a && b || c | d"},
      {"a &&\n\n b", "a && b"},
      {"a |\n# note\nb", "a | b"},
      {"a ||# note\nb", "a || b"},
      {"\n\n a \n\n b \n", "a ; b"},
      {"a;\nb;\n", "a ; b"},
      {" \ta\t b ", "a b"},
      {"a;b && ", "!the shell grammar cannot read it"},
      {"a |", "!the shell grammar cannot read it"},
      {"; a", "!the shell grammar cannot read it"},
      {"a ; ; b", "!the shell grammar cannot read it"},
      {"a\n;b", "!the shell grammar cannot read it"},
      {"a && ; b", "!the shell grammar cannot read it"},
      {"a && || b", "!the shell grammar cannot read it"},
      {"&& a", "!the shell grammar cannot read it"},
      {"| a", "!the shell grammar cannot read it"},
      {"& a", "!the shell grammar cannot read it"},
      {"a ;; b", "!the shell grammar cannot read it"},
      {"a ;& b", "!the shell grammar cannot read it"},
      {"a ;| b", "!the shell grammar cannot read it"},
      {"a & b", "!`&`"},
      {"a &", "!`&`"},
      {"a |& b", "!`|&`"},
  };
  READS(CASES);
}

static void test_comments(void) {
  static const Case CASES[] = {
      {"# only\n a # x ; rm y\n# more", "a"},
      {"a b#c", "a b#c"},
      {"a ''#c", "a #c"},
      {"a;#c", "a"},
      {"a # $(x) `y` > z 'open", "a"},
      {"# a", "!no command"},
  };
  READS(CASES);
}

static void test_quotes(void) {
  static const Case CASES[] = {
      {"r\"m\" x", "rm x"},
      {"'r'm''\"\" x", "rm x"},
      {"a ''", "a <>"},
      {"a \"\" b", "a <> b"},
      {"a 'b\nc'", "a <b\nc>"},
      {"a 'b;c' \"d|e\" 'f>g'", "a <b;c> <d|e> <f>g>"},
      {"a '\\' '$HOME' '*' '~' '!' '{'", "a \\ $HOME * ~ ! {"},
      {"a \"*\" \"~\" \"{a,b}\" \"#\" \"'\"", "a * ~ {a,b} # '"},
      {"a '\"'", "a \""},
      {"grep \"x$\" f", "grep x$ f"},
      {"a 'b", "!the shell grammar cannot read it"},
      {"a \"b", "!the shell grammar cannot read it"},
      {"a \"\\n\"", "!an escape"},
      {"a \"$\"\"(x)\"", "!a command substitution inside quotes"},
      {"a '$'\"(x)\"", "!a command substitution inside quotes"},
      {"a '$(x)'", "!a command substitution inside quotes"},
      {"a '`x`'", "!a command substitution inside quotes"},
      {"a \"$(x)\"", "!an expansion inside quotes"},
      {"a \"`x`\"", "!an expansion inside quotes"},
      {"a \"${x}\"", "!an expansion inside quotes"},
      {"a \"$x", "!an expansion inside quotes"},
      {"a $\"x\"", "!an expansion inside quotes"},
  };
  READS(CASES);
}

static void test_expansions(void) {
  static const Case CASES[] = {
      {"a ${x}", "!a variable"},
      {"a $((1))", "!a variable"},
      {"a $1", "!a variable"},
      {"a $", "!a variable"},
      {"$x", "!a variable"},
      {"a `x`", "!a command substitution"},
      {"`x`", "!a command substitution"},
      {"a <(x)", "!a command substitution"},
      {"a >(x)", "!a command substitution"},
      {"a x?y", "!a glob"},
      {"[ -f x ]", "!a glob"},
      {"[[ -f x ]]", "!a glob"},
      {"a {}", "!a brace expansion"},
      {"a {b,c}", "!a brace expansion"},
      {"a }", "!the shell grammar cannot read it"},
      {"~/x", "!`~`"},
      {"a ~", "!`~`"},
      {"a ''~", "!`~`"},
      {"a --x=~/y", "!`~`"},
      {"a x:~/y", "!`~`"},
      {"a x~ HEAD~2", "a x~ HEAD~2"},
      {"a \\", "!an escape"},
  };
  READS(CASES);
}

static void test_redirects(void) {
  static const Case CASES[] = {
      {"a 2>&1", "!a redirect"}, {"a >> f", "!a redirect"},       {"a >| f", "!a redirect"},
      {"a &> f", "!a redirect"}, {"a << x\ny\nx", "!a redirect"}, {"a <<< x", "!a redirect"},
      {"> f", "!a redirect"},    {"a <> f", "!a redirect"},       {"a >/dev/null", "!a redirect"},
  };
  READS(CASES);
}

static void test_compounds(void) {
  static const Case CASES[] = {
      {"((1))", "!a { ... } group or (( ... ))"},
      {"{ ls", "!a { ... } group or (( ... ))"},
      {"(a)", "!a subshell"},
      {"a; (b)", "!a subshell"},
      {"f () { a; }", "!a function"},
      {"f(){ a; }", "!a function"},
      {"a b()", "!the shell grammar cannot read it"},
      {"a (b)", "!the shell grammar cannot read it"},
      {"a )", "!the shell grammar cannot read it"},
      {"if a; then b; fi", "!an if"},
      {"for x in a; do b; done", "!a loop"},
      {"while a; do b; done", "!a loop"},
      {"until a; do b; done", "!a loop"},
      {"case a in b) c;; esac", "!a case"},
      {"! a", "!a negated command"},
      {"a && ! b", "!a negated command"},
      {"a | ! b", "!a negated command"},
      {"a; then b", "!the shell grammar cannot read it"},
      {"do a", "!the shell grammar cannot read it"},
      {"fi", "!the shell grammar cannot read it"},
      {"in a", "!the shell grammar cannot read it"},
      {"]] a", "!the shell grammar cannot read it"},
      {"coproc a", "!the shell keyword `coproc`"},
      {"function f { a; }", "!the shell keyword `function`"},
      {"select x in a; do b; done", "!the shell keyword `select`"},
      {"a | time b", "!the shell keyword `time`"},
      {"'time' b", "!the shell keyword `time`"},
      {"noglob rm x", "!the shell keyword `noglob`"},
      {"- rm x", "!the shell keyword `-`"},
      /* As arguments, and quoted, they are words. */
      {"a if then ! do", "a if then ! do"},
      {"'if' a", "if a"},
      {"i\"f\" a", "if a"},
      {"!a", "!a"},
  };
  /* "!a" is a word, not a reason. */
  READS(CASES);
}

static void test_assignments(void) {
  static const Case CASES[] = {
      {"FOO=1", "!a variable set before the command"},
      {"FOO= a", "!a variable set before the command"},
      {"FOO+=1 a", "!a variable set before the command"},
      {"FOO='x y' a", "!a variable set before the command"},
      {"FOO=(a b)", "!a variable set before the command"},
      {"a.b=1 c", "!a variable set before the command"},
      {"1=x a", "!a variable set before the command"},
      {"a && FOO=1 b", "!a variable set before the command"},
      {"FOO=$(x) a", "!a variable set before the command"},
      {"'FOO'=1 a", "FOO=1 a"},
      {"make FOO=1", "make FOO=1"},
      {"a =b", "!the shell grammar cannot read it"},
      {"=ls", "!the shell grammar cannot read it"},
      {"a '=b'", "a =b"},
  };
  READS(CASES);
}

static void names_read_as(const char *names, const char *script, const char *wanted) {
  g_auto(GStrv) each = g_strsplit(names, " ", -1);
  for (char **name = each; *name; name++) {
    g_auto(GStrv) script_parts = g_strsplit(script, "{}", -1);
    g_auto(GStrv) wanted_parts = g_strsplit(wanted, "{}", -1);
    g_autofree char *text = g_strjoinv(*name, script_parts);
    g_autofree char *reason = g_strjoinv(*name, wanted_parts);
    const Case cases[] = {{text, reason}};
    READS(cases);
  }
}

static void test_every_name(void) {
  names_read_as(
      "eval source . exec command builtin trap alias hash fc bind complete compgen mapfile "
      "readarray let read enable autoload emulate hist jobs sched setopt shopt unsetopt declare "
      "float integer local nameref typeset",
      "ls; '{}' x", "!`{}` runs text as a command");
  names_read_as("time coproc function select foreach nocorrect noglob repeat", "ls | '{}' x",
                "!the shell keyword `{}`");
  names_read_as(
      "sh bash dash zsh ksh mksh ash csh fish hush ksh93 lksh oksh pdksh posh rbash rksh tcsh yash",
      "/bin/{} -c 'x y'", "!`{} -c` runs text as a command");
  names_read_as(
      "sh bash dash zsh ksh mksh ash busybox csh fish hush ksh93 lksh oksh pdksh posh rbash rksh "
      "tcsh yash",
      "ls | {}", "!`{}` reads commands from its input");
  names_read_as("then elif else fi do done esac in end ]]", "{} x",
                "!the shell grammar cannot read it");
  names_read_as("getopts test unset wait printf print export readonly", "{} 'a[$b]'",
                "!`{}` runs text as a command");
}

/* A builtin that changes how the rest is read, or evaluates what it is given. */
static void test_builtins(void) {
  static const Case CASES[] = {
      {"set -e; a", "set -e ; a"},
      {"set -euo pipefail\na", "set -euo pipefail ; a"},
      {"set -- a -k", "set -- a -k"},
      {"set +x", "set +x"},
      {"set -k; a b=1", "!`set` runs text as a command"},
      {"set -eH", "!`set` runs text as a command"},
      {"set -o history -o histexpand", "!`set` runs text as a command"},
      {"set -o", "!`set` runs text as a command"},
      {"printf '%s' a", "printf %s a"},
      {"printf -v x a", "!`printf` runs text as a command"},
      {"printf '[%s]' a", "printf [%s] a"},
      {"unset 'a[${b@P}]'", "!`unset` runs text as a command"},
      {"test -v 'a[$b]'", "!`test` runs text as a command"},
      {"\"[\" -v 'a[$b]' ]", "!`[` runs text as a command"},
      {"export FOO=1", "export FOO=1"},
      {"export FOO+=1", "!`export` runs text as a command"},
      {"%1", "!the shell grammar cannot read it"},
      {"'' a", "!no command"},
  };
  READS(CASES);
}

static void test_shells(void) {
  static const Case CASES[] = {
      {"bash build.sh", "bash build.sh"},
      {"bash -e build.sh -c x", "bash -e build.sh -c x"},
      {"/bin/sh ./build.sh -s", "/bin/sh ./build.sh -s"},
      {"bash --norc build.sh", "bash --norc build.sh"},
      {"bash -- build.sh", "bash -- build.sh"},
      {"/bin/sh -c x", "!`sh -c` runs text as a command"},
      {"zsh -ec x", "!`zsh -c` runs text as a command"},
      {"bash -e -c x", "!`bash -c` runs text as a command"},
      {"bash -o posix -c x", "!`bash -c` runs text as a command"},
      {"bash --rcfile x -c y", "!`bash -c` runs text as a command"},
      {"bash -", "!`bash` reads commands from its input"},
      {"bash --", "!`bash` reads commands from its input"},
      {"bash -e", "!`bash` reads commands from its input"},
      {"bash -s x", "!`bash` reads commands from its input"},
      {"dash -es x", "!`dash` reads commands from its input"},
      {"bash -o posix x", "!`bash` reads commands from its input"},
      {"bash +O extglob x", "!`bash` reads commands from its input"},
      {"bash ''", "!`bash` reads commands from its input"},
      {"a | sh /dev/stdin", "!`sh` reads commands from its input"},
      {"a | sh /proc/self/fd/0", "!`sh` reads commands from its input"},
      {"ksh", "!`ksh` reads commands from its input"},
      {"mksh", "!`mksh` reads commands from its input"},
      {"ash", "!`ash` reads commands from its input"},
      {"fish -c x", "!`fish -c` runs text as a command"},
      {"busybox", "!`busybox` reads commands from its input"},
      {"busybox rm x", "busybox rm x"},
      {"busybox sh", "!`sh` reads commands from its input"},
      {"busybox sh -c x", "!`sh -c` runs text as a command"},
      {"busybox sh x", "busybox sh x"},
      /* Wrappers are not looked into. */
      {"sudo rm x", "sudo rm x"},
      {"env bash -c x", "env bash -c x"},
  };
  READS(CASES);
}

static void test_characters(void) {
  static const Case CASES[] = {
      {"a \xc3\xa9", "a \xc3\xa9"},
      {"a 'b\tc\r'", "a <b\tc\r>"},
      {"a b\r", "!the shell grammar cannot read it"},
      {"a \x01", "!the shell grammar cannot read it"},
      {"a '\x01'", "!the shell grammar cannot read it"},
      {"a \"\x7f\"", "!the shell grammar cannot read it"},
      {"a # \x1b", "!the shell grammar cannot read it"},
      {"a\xc2\xa0z", "!the shell grammar cannot read it"},
      {"a\xc2\x85z", "!the shell grammar cannot read it"},
      {"a\xe3\x80\x80z", "!the shell grammar cannot read it"},
      {"a '\xc2\xa0'", "a \xc2\xa0"},
      {"a \xff", "!the shell grammar cannot read it"},
      {"a '\xc3'", "!the shell grammar cannot read it"},
  };
  READS(CASES);
}

static void test_whole_text(void) {
  static const Case CASES[] = {
      {"", "!no command"},
      {" \t\n ", "!no command"},
      {"a \\\n b", "!a line continuation"},
      {"a 'b\\\nc'", "!a line continuation"},
      {"a > f # \\\n", "!a line continuation"},
  };
  READS(CASES);
}

/* The first thing from the left is the reason. */
static void test_first_reason(void) {
  static const Case CASES[] = {
      {"a *; b > f", "!a glob"},
      {"a > *", "!a redirect"},
      {"eval x; b > f", "!`eval` runs text as a command"},
      {"eval x > f", "!`eval` runs text as a command"},
      {"a & b *", "!`&`"},
  };
  READS(CASES);
}

static char *repeat(const char *piece, gsize count, const char *end) {
  GString *text = g_string_new(NULL);
  for (gsize i = 0; i < count; i++) {
    g_string_append(text, piece);
  }
  g_string_append(text, end);
  return g_string_free(text, FALSE);
}

static void test_length_counts_characters(void) {
  g_autofree char *fits = repeat("\xc3\xa9", 9998, " b");
  g_autofree char *longer = repeat("\xc3\xa9", 9999, " b");
  g_autofree char *much = repeat("abcdefgh", 100000, "");
  g_autoptr(CommandLine) line = command_read_script(fits);
  g_assert_null(line->reason);
  g_autoptr(CommandLine) too_long = command_read_script(longer);
  g_assert_cmpstr(too_long->reason, ==, "longer than 10000 characters");
  g_autoptr(CommandLine) much_too_long = command_read_script(much);
  g_assert_cmpstr(much_too_long->reason, ==, "longer than 10000 characters");
}

static void test_many_of_everything(void) {
  g_autofree char *commands = repeat("a;", 5000, "");
  g_autofree char *words = repeat("a ", 5000, "");
  g_autofree char *pieces = repeat("''", 4999, "a");
  g_autoptr(CommandLine) line = command_read_script(commands);
  g_assert_cmpuint(line->count, ==, 5000);
  g_autoptr(CommandLine) one = command_read_script(words);
  g_assert_cmpuint(one->count, ==, 1);
  g_assert_cmpuint(one->commands[0].count, ==, 5000);
  g_autoptr(CommandLine) joined = command_read_script(pieces);
  g_assert_cmpstr(joined->commands[0].words[0], ==, "a");
}

/* ---- What is started ------------------------------------------------------------------------- */

static void reads_argv(const char *words, const char *wanted) {
  g_auto(GStrv) argv = g_strsplit(words, "|", -1);
  g_autoptr(CommandLine) line = command_read_argv((const char *const *)argv);
  g_autofree char *told = tell(line);
  g_assert_cmpstr(told, ==, wanted);
}

static void test_argv(void) {
  reads_argv("sh|-c|ls; rm x", "ls ; rm x");
  reads_argv("/bin/bash|-ec|ls; rm x", "ls ; rm x");
  reads_argv("bash|-lc|ls", "ls");
  reads_argv("busybox|-c|ls", "ls");
  reads_argv("sh|-c|ls|name|argument", "ls");
  reads_argv("ls|*|$(x)|a b", "ls * $(x) <a b>");
  reads_argv("rm|-rf|x", "rm -rf x");
  reads_argv("bash|build.sh", "bash build.sh");
  reads_argv("sh|-c|", "!no command");
}

/* The script is not where it seems to be. */
static void test_argv_of_shells(void) {
  reads_argv("bash", "!`bash` reads commands from its input");
  reads_argv("bash|-c", "!`bash -c` runs text as a command");
  reads_argv("bash|-oc|posix|rm x", "!`bash -c` runs text as a command");
  reads_argv("bash|-ic|ls", "!`bash -c` runs text as a command");
  reads_argv("bash|-kc|ls", "!`bash -c` runs text as a command");
  reads_argv("sh|-sc|ls", "!`sh -c` runs text as a command");
  reads_argv("sh|-c|-e|rm x", "!`sh -c` runs text as a command");
  reads_argv("sh|-c|--|rm x", "!`sh -c` runs text as a command");
  reads_argv("sh|-c|+e|rm x", "!`sh -c` runs text as a command");
  reads_argv("sh|-e|-c|rm x", "!`sh -c` runs text as a command");
  reads_argv("busybox|sh|-c|rm x", "!`sh -c` runs text as a command");
  reads_argv("fish|-c|rm x", "!`fish -c` runs text as a command");
  reads_argv("|x", "!no command");
}

static void test_empty_argv(void) {
  static const char *const NONE[] = {NULL};
  g_autoptr(CommandLine) empty = command_read_argv(NONE);
  g_assert_cmpstr(empty->reason, ==, "no command");
  g_autoptr(CommandLine) null = command_read_argv(NULL);
  g_assert_cmpstr(null->reason, ==, "no command");
}

/* ---- What is told ---------------------------------------------------------------------------- */

static void summary_is(const char *script, const char *wanted) {
  g_autoptr(CommandLine) line = command_read_script(script);
  g_autofree char *summary = command_summary(line);
  g_assert_cmpstr(summary, ==, wanted);
}

static void test_summary(void) {
  summary_is("git status && rm -rf 'a b' ''", "git status\nrm -rf 'a b' ''");
  summary_is("a 'b\nc\td\re'", "a 'b\\nc\\td\\re'");
  summary_is("a \"it's\"", "a 'it'\"'\"'s'");
  summary_is("a x > f\n\x1b[2J\x7f", "a x > f\\n\\x1b[2J\\x7f");
  summary_is("a 'b\xe2\x80\xae\xc2\x85\xe2\x80\xa8\xf3\xa0\x80\x81'",
             "a b\\u202e\\u0085\\u2028\\U000e0001");
  summary_is("a > \xff", "a > \\xff");
}

static void test_metadata(void) {
  static const char *const READABLE[] = {"sh", "-c", "git a; /bin/rm secret | git b", NULL};
  static const char *const OPAQUE[] = {"sh", "-c", "rm *", NULL};
  g_autoptr(CommandLine) line = command_read_argv(READABLE);
  g_autoptr(JsonObject) metadata = command_metadata(READABLE, line);
  g_autofree char *text = json_text(metadata);
  g_assert_cmpstr(json_get_text(metadata, "name"), ==, "sh");
  g_assert_cmpint(json_get_int(metadata, "argc", 0), ==, 3);
  g_assert_cmpuint(strlen(json_get_text(metadata, "digest")), ==, 64);
  g_assert_nonnull(strstr(text, "\"programs\":[\"git\",\"/bin/rm\"],\"opaque\":false}"));
  g_assert_null(strstr(text, "secret"));
  g_autoptr(JsonObject) no_reasons = command_opaque_reasons(line);
  g_assert_cmpuint(json_object_array_length(no_reasons), ==, 0);

  g_autoptr(CommandLine) opaque = command_read_argv(OPAQUE);
  g_autoptr(JsonObject) unread = command_metadata(OPAQUE, opaque);
  g_autofree char *unread_text = json_text(unread);
  g_assert_nonnull(strstr(unread_text, "\"programs\":[],\"opaque\":true}"));
  g_autoptr(JsonObject) reasons = command_opaque_reasons(opaque);
  g_autofree char *reasons_text = json_text(reasons);
  g_assert_cmpstr(reasons_text, ==, "[\"a glob\"]");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/governance/command/" name, function)
  ADD("acceptance/readable", test_acceptance_readable);
  ADD("acceptance/unreadable", test_acceptance_unreadable);
  ADD("joiners", test_joiners);
  ADD("comments", test_comments);
  ADD("quotes", test_quotes);
  ADD("expansions", test_expansions);
  ADD("redirects", test_redirects);
  ADD("compounds", test_compounds);
  ADD("assignments", test_assignments);
  ADD("names", test_every_name);
  ADD("builtins", test_builtins);
  ADD("shells", test_shells);
  ADD("characters", test_characters);
  ADD("whole-text", test_whole_text);
  ADD("first-reason", test_first_reason);
  ADD("length", test_length_counts_characters);
  ADD("many", test_many_of_everything);
  ADD("argv", test_argv);
  ADD("argv/shells", test_argv_of_shells);
  ADD("argv/empty", test_empty_argv);
  ADD("summary", test_summary);
  ADD("metadata", test_metadata);
#undef ADD
  return g_test_run();
}
