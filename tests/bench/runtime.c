/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c: node is given a line for each command and answers with its milliseconds. */
#include "runtime.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "floors.h"

#define SETTINGS                                                                                   \
  "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": []},"                                 \
  " \"filesystem\": {\"denyRead\": [], \"allowWrite\": [\".\"], \"denyWrite\": []}}"

struct Runtime {
  pid_t pid;
  int fd;
  FILE *answers; /* of the same socket */
};

static const char script_text[] =
    "import { spawn } from 'node:child_process';\n"
    "import { createInterface } from 'node:readline';\n"
    "const { SandboxManager } = await import(process.argv[2] + '/dist/index.js');\n"
    "await SandboxManager.initialize(" SETTINGS ");\n"
    "console.log('ready');\n"
    "for await (const _ of createInterface({ input: process.stdin })) {\n"
    "  const from = performance.now();\n"
    "  const line = await SandboxManager.wrapWithSandbox('true');\n"
    "  const code = await new Promise((done) =>\n"
    "    spawn(line, { shell: true, stdio: 'ignore' }).on('exit', done));\n"
    "  console.log(code === 0 ? performance.now() - from : -1);\n"
    "}\n"
    "await SandboxManager.reset();\n"
    "process.exit(0);\n";

const char *runtime_package(const char **ret_reason) {
  const char *reason = g_getenv("SANDHOST_BENCH_NO_RUNTIME");
  *ret_reason = reason ? reason : "./bench installs it";
  return g_getenv("SANDHOST_BENCH_RUNTIME");
}

char *runtime_settings(const char *scratch) {
  char *path = g_build_filename(scratch, "runtime.json", NULL);
  g_file_set_contents(path, SETTINGS, -1, NULL);
  return path;
}

/* The next line without its end, owned; NULL at the end. */
static char *answer(Runtime *runtime) {
  char line[256];
  return fgets(line, sizeof line, runtime->answers) ? g_strdup(g_strchomp(line)) : NULL;
}

Runtime *runtime_open(const char *scratch, const char *package) {
  g_autofree char *script = g_build_filename(scratch, "runtime.mjs", NULL);
  const char *const argv[] = {"node", script, package, NULL};
  int ends[2];
  if (!g_file_set_contents(script, script_text, -1, NULL) ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return NULL;
  }
  Runtime *runtime = g_new0(Runtime, 1);
  runtime->pid = floor_start(argv, ends[1], ends[1]);
  runtime->fd = ends[0];
  runtime->answers = fdopen(ends[0], "r");
  close(ends[1]);
  g_autofree char *first = answer(runtime);
  if (g_strcmp0(first, "ready") != 0) {
    runtime_close(runtime);
    return NULL;
  }
  return runtime;
}

void runtime_close(Runtime *runtime) {
  if (runtime) {
    (void)shutdown(runtime->fd, SHUT_WR);
    if (runtime->pid > 0) {
      (void)waitpid(runtime->pid, NULL, 0);
    }
    (void)fclose(runtime->answers);
    g_free(runtime);
  }
}

gint64 runtime_command(void *runtime) {
  Runtime *session = runtime;
  if (send(session->fd, "\n", 1, MSG_NOSIGNAL) != 1) {
    return -1;
  }
  g_autofree char *said = answer(session);
  double milliseconds = said ? g_ascii_strtod(said, NULL) : -1;
  return milliseconds > 0 ? (gint64)(milliseconds * 1e6) : -1;
}
