/* SPDX-License-Identifier: Apache-2.0 */
/*
 * good.h: a well-behaved provider in memory, of which each plugin of the zoo spoils one thing.
 *
 * Commands: echo WORDS, fail N, cat (stdin to stdout), hang (until cancelled), nap MILLISECONDS, flood N, lost.
 * Where GOOD_LOG names a file, each call appends its name as a line.
 */
#ifndef SANDHOST_CONTRACT_GOOD_H
#define SANDHOST_CONTRACT_GOOD_H

#include <fcntl.h>
#include <pthread.h>
#include <sandhost/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct sandhost_host *good_host;

struct good_file {
  char *path;
  char *data;
  size_t length;
  struct good_file *next;
};

struct sandhost_instance {
  int open;
};

struct sandhost_sandbox {
  char *working_dir;
  struct good_file *files;
};

static inline struct sandhost_text good_text(const char *string) {
  return (struct sandhost_text){.data = string, .length = strlen(string)};
}

/* Of a command's word; what is no number is 0. */
static inline int good_number(const char *word) {
  return (int)strtol(word, NULL, 10);
}

static inline int32_t good_fail(struct sandhost_call *call, int32_t status, const char *message) {
  return good_host->fail(call, status, good_text(message));
}

static inline void good_log(const char *what) {
  const char *path = getenv("GOOD_LOG");
  int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (fd >= 0) {
    dprintf(fd, "%s\n", what);
    close(fd);
  }
}

static inline int32_t good_open(struct sandhost_call *call, const struct sandhost_open *request,
                                struct sandhost_instance **ret_instance) {
  (void)call;
  (void)request;
  good_log("open");
  *ret_instance = calloc(1, sizeof **ret_instance);
  return SANDHOST_OK;
}

static inline void good_close(struct sandhost_instance *instance) {
  good_log("close");
  free(instance);
}

static inline int32_t good_create(struct sandhost_call *call, struct sandhost_instance *instance,
                                  const struct sandhost_create *request,
                                  struct sandhost_sandbox **ret_sandbox) {
  (void)instance;
  good_log("create");
  struct sandhost_sandbox *sandbox = calloc(1, sizeof *sandbox);
  sandbox->working_dir = strndup(request->working_dir.data, request->working_dir.length);
  good_host->report(call, SANDHOST_REPORT_REF, good_text("good-1"));
  good_host->report(call, SANDHOST_REPORT_IMAGE, good_text("memory"));
  good_host->report(call, SANDHOST_REPORT_NETWORK, good_text("not required"));
  good_host->progress(call, good_text("making\na sandbox"));
  *ret_sandbox = sandbox;
  return SANDHOST_OK;
}

static inline void good_say(const struct sandhost_observer *observer,
                            struct sandhost_result *result, const char *data, size_t length) {
  result->stdout_bytes += length;
  observer->output(observer->user, SANDHOST_STDOUT, data, length);
}

static inline int32_t good_hang(struct sandhost_call *call) {
  int32_t status = good_host->wait(call, -1, 0, -1);
  return good_fail(call, status,
                   status == SANDHOST_TIMEOUT ? "the time was over" : "was cancelled");
}

static inline void good_cat(const struct sandhost_observer *observer,
                            struct sandhost_result *result) {
  char buffer[4096];
  int64_t count = 0;
  while (observer->input && (count = observer->input(observer->user, buffer, sizeof buffer)) != 0) {
    if (count > 0) {
      good_say(observer, result, buffer, (size_t)count);
    }
  }
}

static inline int32_t good_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                   const struct sandhost_execute *request,
                                   const struct sandhost_observer *observer,
                                   struct sandhost_result *ret_result) {
  (void)sandbox;
  const char *name = request->argv[0].data;
  const char *argument = request->argc > 1 ? request->argv[1].data : "0";
  good_log("execute");
  if (observer->started) {
    observer->started(observer->user, 7);
  }
  ret_result->ended = SANDHOST_ENDED_EXIT;
  if (strcmp(name, "echo") == 0) {
    for (size_t i = 1; i < request->argc; i++) {
      good_say(observer, ret_result, request->argv[i].data, request->argv[i].length);
      good_say(observer, ret_result, i + 1 < request->argc ? " " : "\n", 1);
    }
  } else if (strcmp(name, "fail") == 0) {
    ret_result->exit_code = good_number(argument);
  } else if (strcmp(name, "cat") == 0) {
    good_cat(observer, ret_result);
  } else if (strcmp(name, "hang") == 0) {
    return good_hang(call);
  } else if (strcmp(name, "nap") == 0) {
    good_host->wait(call, -1, 0, good_number(argument) * 1000000LL);
  } else if (strcmp(name, "flood") == 0) {
    char block[1000];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < good_number(argument); i++) {
      good_say(observer, ret_result, block, sizeof block);
    }
  } else if (strcmp(name, "lost") == 0) {
    good_host->report(call, SANDHOST_REPORT_LOST, good_text("somebody removed it"));
    return good_fail(call, SANDHOST_LOST, "the sandbox is gone");
  } else {
    ret_result->exit_code = 127;
  }
  return SANDHOST_OK;
}

static inline struct good_file *good_find(struct sandhost_sandbox *sandbox, const char *path) {
  struct good_file *file = sandbox->files;
  while (file && strcmp(file->path, path) != 0) {
    file = file->next;
  }
  return file;
}

static inline int32_t good_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                     struct sandhost_path path, const struct sandhost_sink *sink) {
  const struct good_file *file = good_find(sandbox, path.data);
  good_log("read_file");
  if (!file) {
    return good_fail(call, SANDHOST_NOT_FOUND, "no such file");
  }
  return file->length == 0 || sink->write(sink->user, file->data, file->length) == SANDHOST_OK
             ? SANDHOST_OK
             : SANDHOST_CANCELLED;
}

static inline int32_t good_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                      struct sandhost_path path, uint32_t mode,
                                      const struct sandhost_source *source) {
  (void)mode;
  good_log("write_file");
  char *data = NULL;
  size_t length = 0;
  char buffer[4096];
  int64_t count = 0;
  while ((count = source->read(source->user, buffer, sizeof buffer)) > 0) {
    char *longer = realloc(data, length + (size_t)count);
    if (!longer) {
      abort();
    }
    data = longer;
    memcpy(data + length, buffer, (size_t)count);
    length += (size_t)count;
  }
  if (count < 0) {
    free(data);
    return good_fail(call, SANDHOST_CANCELLED, "the source stopped");
  }
  struct good_file *file = good_find(sandbox, path.data);
  if (!file) {
    file = calloc(1, sizeof *file);
    file->path = strndup(path.data, path.length);
    file->next = sandbox->files;
    sandbox->files = file;
  }
  free(file->data);
  file->data = data;
  file->length = length;
  return SANDHOST_OK;
}

static inline int32_t good_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  (void)call;
  (void)sandbox;
  good_log("terminate");
  return SANDHOST_OK;
}

static inline void good_release(struct sandhost_sandbox *sandbox) {
  good_log("release");
  while (sandbox->files) {
    struct good_file *file = sandbox->files;
    sandbox->files = file->next;
    free(file->path);
    free(file->data);
    free(file);
  }
  free(sandbox->working_dir);
  free(sandbox);
}

/* A table without a fault. */
static inline struct sandhost_provider good_table(const char *name) {
  return (struct sandhost_provider){
      .size = sizeof(struct sandhost_provider),
      .minor = SANDHOST_ABI_MINOR,
      .threads = SANDHOST_THREADS_PARALLEL,
      .name = name,
      .version = "1.0",
      .summary = "a provider for tests",
      .open = good_open,
      .close = good_close,
      .create = good_create,
      .execute = good_execute,
      .read_file = good_read_file,
      .write_file = good_write_file,
      .terminate = good_terminate,
      .release = good_release,
  };
}

/* The entry of a plugin whose table is good_table(NAME) after the statements that follow. */
#define GOOD_PLUGIN(NAME, ...)                                                                     \
  const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *host) {          \
    static struct sandhost_provider table;                                                         \
    good_host = host;                                                                              \
    table = good_table(NAME);                                                                      \
    __VA_ARGS__;                                                                                   \
    return &table;                                                                                 \
  }

#endif
