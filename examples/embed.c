/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.c: a program with sandhost in it. It runs one command in a real sandbox, then the same task with a handler of
 * its own in place of the sandbox, as a test of an agent would.
 *
 *   cc -o embed embed.c $(pkg-config --cflags --libs sandhost)
 *   ./embed FOLDER RECORD.db
 */
#include <stdio.h>
#include <string.h>

#include <sandhost/sandhost.h>

static int complain(const char *what, char *error) {
  fprintf(stderr, "embed: %s: %s\n", what, error ? error : "no reason given");
  sandhost_free(error);
  return 1;
}

/* Shows what a command writes while it runs. */
static int show(void *user, const char *command, int stream, const void *data, size_t length) {
  (void)command;
  FILE *to = stream == 2 ? stderr : user;
  return fwrite(data, 1, length, to) == length ? 0 : 1;
}

/* Allows whatever the policy asks about; a real program asks a person here. */
static const char *allow(void *user, const struct sandhost_ask *ask) {
  (void)user;
  fprintf(stderr, "embed: %s %s: %s\n", ask->capability, ask->target, ask->reason);
  return "embed";
}

/* One run of one command. What the agent's model would be told is printed. */
static int run_one(sandhost *host, const char *command) {
  const struct sandhost_hooks hooks = {
      .size = sizeof hooks, .user = stdout, .answer = allow, .output = show};
  sandhost_run *run = NULL;
  char *result = NULL;
  char *error = NULL;
  if (sandhost_run_start(host, &hooks, &run, &error) != SANDHOST_STATUS_OK) {
    return complain("no run", error);
  }
  int failed = 0;
  if (sandhost_execute(run, command, 30, &result, &error) == SANDHOST_STATUS_OK) {
    printf("%s\n", result);
    sandhost_free(result);
  } else {
    failed = complain("no result", error);
    error = NULL;
  }
  if (sandhost_run_end(run, NULL, NULL, &error) != SANDHOST_STATUS_OK) {
    failed = complain("no end", error);
  }
  return failed;
}

/* Opens a host, tells which tool a model gets from it, runs the command. */
static int use(const char *config, const struct sandhost_settings *settings,
               sandhost_test_handler handler, const char *command) {
  sandhost *host = NULL;
  char *error = NULL;
  if (sandhost_open(config, settings, &host, &error) != SANDHOST_STATUS_OK) {
    return complain("not opened", error);
  }
  int failed = 0;
  if (handler && sandhost_add_test_command(host, "sh", handler, NULL, &error) != 0) {
    failed = complain("no handler", error);
    error = NULL;
  }
  char *tool = failed ? NULL : sandhost_tool(host, &error);
  if (tool) {
    printf("%s\n", tool);
    failed = run_one(host, command);
  } else if (!failed) {
    failed = complain("no tool", error);
  }
  sandhost_free(tool);
  sandhost_close(host);
  return failed;
}

/* argv is {"sh", "-c", command}. */
static int pretend(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  (void)user;
  *ret_stdout = strdup("pretended\n");
  *ret_stderr = strdup(argv[2]);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s FOLDER RECORD.db\n", argv[0]);
    return 2;
  }
  const struct sandhost_settings settings = {
      .size = sizeof settings, .workspace = argv[1], .record = argv[2]};
  const char *test_config = "{\"governance_config\": {\"sandbox_config\": \"local_test\","
                            " \"allow_test_sandbox_runtime\": true}}";
  int failed = use(NULL, &settings, NULL, "wc -c < in.txt | tee out.txt");
  return use(test_config, &settings, pretend, "rm -rf /") || failed;
}
