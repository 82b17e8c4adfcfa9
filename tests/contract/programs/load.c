/* SPDX-License-Identifier: Apache-2.0 */
/* load.c FILE: loads libsandhost, runs a command in it and unloads it, three times. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <sandhost/sandhost.h>

#define CONFIG                                                                                     \
  "{\"governance_config\": {\"sandbox_config\": \"local_test\", \"allow_test_sandbox_runtime\": "  \
  "true}}"

static int say(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  (void)user;
  (void)ret_stderr;
  *ret_stdout = strdup(argv[2]);
  return 0;
}

/* The functions of the header by its own types. */
#define FIND(LIBRARY, NAME)                                                                        \
  __typeof__(&NAME) NAME##_;                                                                       \
  *(void **)&NAME##_ = dlsym(LIBRARY, #NAME)

static int use(void *library) {
  FIND(library, sandhost_open);
  FIND(library, sandhost_add_test_command);
  FIND(library, sandhost_run_start);
  FIND(library, sandhost_execute);
  FIND(library, sandhost_run_end);
  FIND(library, sandhost_close);
  FIND(library, sandhost_free);
  const struct sandhost_settings settings = {.size = sizeof settings, .record = "record.db"};
  sandhost *host = NULL;
  sandhost_run *run = NULL;
  char *result = NULL;
  if (sandhost_open_(CONFIG, &settings, &host, NULL) ||
      sandhost_add_test_command_(host, "sh", say, NULL, NULL) ||
      sandhost_run_start_(host, NULL, &run, NULL) ||
      sandhost_execute_(run, "hello", 0, &result, NULL)) {
    return 1;
  }
  int wrong = !strstr(result, "\"stdout\":\"hello\"");
  sandhost_free_(result);
  wrong |= sandhost_run_end_(run, NULL, NULL, NULL) != 0;
  sandhost_close_(host);
  return wrong;
}

int main(int argc, char **argv) {
  for (int i = 0; argc == 2 && i < 3; i++) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library || use(library)) {
      fprintf(stderr, "load: round %d: %s\n", i, library ? "no result" : dlerror());
      return 1;
    }
    dlclose(library);
  }
  if (!dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) {
    fprintf(stderr, "load: it is gone\n");
    return 1;
  }
  return 0;
}
