/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approve.c: a run that waits for a person and goes on. The policy asks about every command; the run stops with nothing
 * done, somebody looks at what it waits for and allows it, and the run is resumed, here by a second host as another process
 * would. Then the calls of the whole run are printed.
 *
 *   cc -o approve approve.c $(pkg-config --cflags --libs sandhost)
 *   ./approve FOLDER RECORD.db COMMAND
 */
#include <stdio.h>
#include <string.h>

#include <sandhost/sandhost.h>

/* What is not about commands is allowed without a question. */
static const char CONFIG[] =
    "{\"governance_config\": {\"sandbox_config\": \"bubblewrap\", \"policy\": {\"mode\": "
    "\"permissive\","
    " \"rules\": {\"ask\": [{\"rule_id\": \"commands\", \"capability\": \"process.exec\","
    " \"reason\": \"Commands need a person.\"}]}}}}";

#define ID_BYTES 128 /* more than any id has */

static int complain(const char *what, char *error) {
  fprintf(stderr, "approve: %s: %s\n", what, error ? error : "no reason given");
  sandhost_free(error);
  return 1;
}

/* A program reads JSON with its own library; ids have nothing in them that is escaped, so this will do here. */
static int find_id(const char *json, const char *key, char *ret_id) {
  char member[64];
  int length = 0;
  snprintf(member, sizeof member, "\"%s\":\"", key);
  const char *at = strstr(json, member);
  return at && sscanf(at + strlen(member), "%127[a-z0-9_]%n", ret_id, &length) == 1;
}

static char on_call[] = "alice";

/* Who may decide: a real program looks at a session, a token or a directory of people. */
static int check(void *user, const struct sandhost_decision *decision, char **ret_refusal) {
  if (strcmp(decision->approver, user) == 0) {
    return 0;
  }
  *ret_refusal = strdup("only the one who is on call decides");
  return 1;
}

static sandhost *open_host(char **argv) {
  const struct sandhost_settings settings = {.size = sizeof settings,
                                             .workspace = argv[1],
                                             .record = argv[2],
                                             .check_approver = check,
                                             .user = on_call};
  sandhost *host = NULL;
  char *error = NULL;
  if (sandhost_open(CONFIG, &settings, &host, &error) != SANDHOST_STATUS_OK) {
    complain("not opened", error);
  }
  return host;
}

/* The run begins and waits. Its id is what the program has to remember, and even that can be found: sandhost_runs. */
static int begin(sandhost *host, const char *command, char *ret_run) {
  const struct sandhost_hooks hooks = {.size = sizeof hooks, .request = "{\"task\": \"example\"}"};
  sandhost_run *run = NULL;
  char *result = NULL;
  char *error = NULL;
  if (sandhost_run_start(host, &hooks, &run, &error) != SANDHOST_STATUS_OK) {
    return complain("no run", error);
  }
  snprintf(ret_run, ID_BYTES, "%s", sandhost_run_id(run));
  int failed = sandhost_execute(run, command, 30, &result, &error) != SANDHOST_STATUS_OK;
  if (failed) {
    complain("no result", error);
    error = NULL;
  } else {
    printf("begun: %s\n", result);
  }
  sandhost_free(result);
  if (sandhost_run_end(run, NULL, NULL, &error) != SANDHOST_STATUS_OK) {
    return complain("no end", error);
  }
  return failed;
}

/* What waits is shown, then allowed: by somebody who may not, and by somebody who may. */
static int decide(sandhost *host, const char *run) {
  char approval[ID_BYTES] = "";
  char *waiting = NULL;
  char *error = NULL;
  if (sandhost_approvals(host, run, 0, &waiting, &error) != SANDHOST_STATUS_OK) {
    return complain("nothing is listed", error);
  }
  printf("waiting: %s\n", waiting);
  int found = find_id(waiting, "approval_id", approval);
  sandhost_free(waiting);
  if (!found) {
    return complain("nothing waits", NULL);
  }
  int status = sandhost_approve(host, run, approval, "mallory", NULL, NULL, NULL, &error);
  if (status != SANDHOST_STATUS_DENIED) {
    return complain("anybody may decide", error);
  }
  printf("refused: %s\n", error);
  sandhost_free(error);
  error = NULL;
  if (sandhost_approve(host, run, approval, "alice", "looks fine", NULL, NULL, &error) !=
      SANDHOST_STATUS_OK) {
    return complain("not decided", error);
  }
  return 0;
}

/* The run goes on: what it had asked about runs now. */
static int go_on(sandhost *host, const char *id) {
  sandhost_run *run = NULL;
  char *results = NULL;
  char *error = NULL;
  if (sandhost_resume(host, id, NULL, &run, &error) != SANDHOST_STATUS_OK) {
    return complain("not resumed", error);
  }
  printf("request: %s\n", sandhost_run_request(run));
  int failed = sandhost_execute_stopped(run, &results, &error) != SANDHOST_STATUS_OK;
  if (failed) {
    complain("no results", error);
    error = NULL;
  } else {
    printf("resumed: %s\n", results);
  }
  sandhost_free(results);
  if (sandhost_run_end(run, NULL, NULL, &error) != SANDHOST_STATUS_OK) {
    return complain("no end", error);
  }
  return failed;
}

/* The calls of the whole run, each once, by how it ended. */
static int tell(sandhost *host, const char *run) {
  char *story = NULL;
  char *error = NULL;
  if (sandhost_run_trajectory(host, run, &story, &error) != SANDHOST_STATUS_OK) {
    return complain("no trajectory", error);
  }
  const char *calls = strstr(story, "\"tool_calls\":[");
  const char *end = calls ? strstr(calls, "],\"approvals\":") : NULL;
  /* The segments, which come first, have lists of that name too; the run's own is the last. */
  for (const char *next = calls; end && (next = strstr(next + 1, "\"tool_calls\":[")) != NULL;) {
    calls = next;
    end = strstr(calls, "],\"approvals\":");
  }
  if (end) {
    printf("calls: %.*s\n", (int)(end + 1 - calls), calls);
  }
  sandhost_free(story);
  return end ? 0 : complain("no calls", NULL);
}

int main(int argc, char **argv) {
  char run[ID_BYTES] = "";
  if (argc != 4) {
    fprintf(stderr, "usage: %s FOLDER RECORD.db COMMAND\n", argv[0]);
    return 2;
  }
  sandhost *host = open_host(argv);
  int failed = !host || begin(host, argv[3], run);
  sandhost_close(host);
  if (failed) {
    return 1;
  }
  host = open_host(argv);
  failed = !host || decide(host, run) || go_on(host, run) || tell(host, run);
  sandhost_close(host);
  return failed;
}
