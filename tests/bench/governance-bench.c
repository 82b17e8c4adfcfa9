/* SPDX-License-Identifier: Apache-2.0 */
/* governance-bench.c: the goals are times of one call, so each line says the median and the slowest of a hundred rounds. */
#include "governance-bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "governance/requests.h"
#include "privacy-rows.h"

#define ROUNDS 100
#define RULES 1000

typedef void (*Work)(void *user);

static int compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Nanoseconds that this thread had a processor: nothing here waits, and others may be at work. */
static gint64 own_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (gint64)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* One line of the table. Each round takes the mean of calls. */
static void measure(const char *what, Work work, void *user, guint calls, double goal) {
  double rounds[ROUNDS];
  work(user);
  for (guint i = 0; i < ROUNDS; i++) {
    gint64 start = own_time();
    for (guint call = 0; call < calls; call++) {
      work(user);
    }
    rounds[i] = (double)(own_time() - start) / 1000 / calls;
  }
  qsort(rounds, ROUNDS, sizeof *rounds, compare);
  double median = rounds[ROUNDS / 2];
  printf("%-62s %9.2f %9.2f  <= %7.0f us  %s\n", what, median, rounds[ROUNDS - 1], goal,
         median <= goal ? "ok" : "MISSED");
  fflush(stdout);
}

/* ---- Decisions ------------------------------------------------------------------------------------ */

typedef struct {
  Policy *policy;
  PolicyRequest *request;
} Decision;

static void decide(void *user) {
  const Decision *decision = user;
  policy_decision_free(policy_decide(decision->policy, decision->request));
}

/* A policy of RULES rules; format has the number of the rule where it says %u, twice. */
static Policy *make_policy(const char *list, const char *format) {
  GString *text = g_string_new("{\"mode\": \"strict\", \"rules\": {\"");
  g_string_append_printf(text, "%s\": [", list);
  for (guint i = 0; i < RULES; i++) {
    g_autofree char *number = g_strdup_printf("%u", i);
    g_auto(GStrv) parts = g_strsplit(format, "%u", -1);
    g_autofree char *rule = g_strjoinv(number, parts);
    g_string_append_printf(text, "%s%s", i ? "," : "", rule);
  }
  g_string_append(text, "]}}");
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) source = json_parse("policy", text->str, text->len, &error);
  Policy *policy = source ? policy_new(source, &error) : NULL;
  if (!policy) {
    g_error("%s", error->message);
  }
  g_string_free(text, TRUE);
  return policy;
}

static void measure_decision(const char *what, const char *list, const char *format,
                             const char *script) {
  const char *const argv[] = {"sh", "-c", script, NULL};
  Decision decision = {.policy = make_policy(list, format), .request = request_command(argv, TRUE)};
  measure(what, decide, &decision, 100, 50);
  policy_request_free(decision.request);
  policy_unref(decision.policy);
}

static void measure_decisions(void) {
  measure_decision("1,000 rules of other capabilities", "deny",
                   "{\"rule_id\": \"r%u\", \"capability\": \"tool.n%u.call\"}", "git status");
  measure_decision("1,000 rules with a glob each", "deny",
                   "{\"rule_id\": \"r%u\", \"capability\": \"tool.*.n%u\"}", "git status");
  measure_decision("1,000 rules of this capability, other targets", "deny",
                   "{\"rule_id\": \"r%u\", \"capability\": \"process.exec\","
                   " \"target\": {\"resource\": \"/opt/n%u/*\"}}",
                   "git status");
  measure_decision("1,000 rules of this capability, other surfaces", "deny",
                   "{\"rule_id\": \"r%u\", \"capability\": \"process.exec\","
                   " \"conditions\": {\"execution_surface\": \"host\"}}",
                   "git status");
  measure_decision("1,000 command rules, other programs", "deny",
                   "{\"rule_id\": \"r%u\", \"capability\": \"process.exec\","
                   " \"command\": {\"program\": \"n%u\"}}",
                   "git status && git log | head");
  measure_decision("1,000 command rules, this program", "deny",
                   "{\"rule_id\": \"r%u\", \"capability\": \"process.exec\","
                   " \"command\": {\"prefix\": [\"git\", \"n%u\"]}}",
                   "git status");
  measure_decision("1,000 command rules, unreadable line", "deny",
                   "{\"rule_id\": \"r%u\", \"capability\": \"process.exec\","
                   " \"command\": {\"program\": \"n%u\"}}",
                   "git status > x");
}

/* ---- Reading -------------------------------------------------------------------------------------- */

static void read_script(void *user) {
  command_line_free(command_read_script(user));
}

static void measure_reading(const char *what, const char *piece) {
  g_autoptr(GString) script = g_string_new(NULL);
  while (script->len + strlen(piece) <= COMMAND_MAX_CHARACTERS) {
    g_string_append(script, piece);
  }
  g_autoptr(CommandLine) line = command_read_script(script->str);
  if (line->reason) {
    g_error("%s: %s", what, line->reason);
  }
  measure(what, read_script, script->str, 10, 1000);
}

void bench_governance(void) {
  printf("\n%-62s %9s %9s\n", "deciding and reading", "median us", "slowest");
  measure_decisions();
  measure_reading("10,000 characters: one long word", "a");
  measure_reading("10,000 characters: words", "a ");
  measure_reading("10,000 characters: commands", "a;");
  measure_reading("10,000 characters: quotes", "''\"\"a ");
  measure_reading("10,000 characters: lines",
                  "git log --oneline 'a b' \"c d\" && ls -l | head -5 # note\n");
  privacy_rows();
}
