/* SPDX-License-Identifier: Apache-2.0 */
/* execute.c: one command as the host sees it. keeper.c does the rest. */
#include "example.h"

#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLISECOND INT64_C(1000000)
/* A longer word than 128 KiB cannot be handed to a program on this system. */
#define LONGEST_WORD (120 * 1024)

enum why { NOT_KILLED, LIMIT_PASSED, CANCELLED };

struct command {
  const struct sandhost_execute *request;
  const struct sandhost_observer *observer;
  struct sandhost_result *result;
  struct keeper *keeper; /* borrowed from the sandbox */
  /* Pipes, both ends: 0 is read. -1: closed. We keep the reading end of its stdin as well: then a write never raises
   * SIGPIPE, which is the host's. */
  int in[2], out[2], err[2];
  uint64_t given[2]; /* bytes that the observer got, per stream */
  char input[65536]; /* what the observer gave and the pipe has not taken yet */
  size_t input_at, input_length;
  int64_t started; /* 0: not yet */
  int64_t next;    /* its limit; once it is cancelled, until when we wait for its tree */
  enum why killed;
  int stopped;      /* the observer wants no more */
  struct word last; /* NO_FOLDER, NO_PROGRAM or ENDED; STARTED: it has not ended */
};

static void close_end(int *fd) {
  if (*fd >= 0) {
    close(*fd);
    *fd = -1;
  }
}

/* ---- Output and input ----------------------------------------------------------------------------------------- */

/* Counts everything, gives at most max_output_bytes. */
static void take_output(struct command *command, uint32_t stream, const char *data, size_t length) {
  uint64_t *given = &command->given[stream == SANDHOST_STDERR];
  uint64_t max = command->request->max_output_bytes;
  uint64_t room = max == 0 ? UINT64_MAX : max - *given;
  size_t give = length < room ? length : (size_t)room;
  if (stream == SANDHOST_STDERR) {
    command->result->stderr_bytes += length;
  } else {
    command->result->stdout_bytes += length;
  }
  *given += give;
  if (give > 0 && !command->stopped &&
      command->observer->output(command->observer->user, stream, data, give) != SANDHOST_OK) {
    command->stopped = 1;
  }
}

/* What is in the pipe now, or as much of it as a pipe can hold: a command that never stops writing must not keep
 * us from looking at the time. */
static void drain(struct command *command, uint32_t stream) {
  int *fd = stream == SANDHOST_STDERR ? &command->err[0] : &command->out[0];
  char buffer[65536];
  for (int i = 0; i < 16 && *fd >= 0; i++) {
    ssize_t count = read(*fd, buffer, sizeof buffer);
    if (count < 0) {
      return;
    }
    if (count == 0) {
      close_end(fd);
    } else {
      take_output(command, stream, buffer, (size_t)count);
    }
  }
}

static void feed(struct command *command) {
  if (command->in[1] < 0) {
    return;
  }
  if (command->input_at == command->input_length) {
    int64_t count =
        command->observer->input(command->observer->user, command->input, sizeof command->input);
    if (count == 0) {
      close_end(&command->in[1]);
    }
    command->input_at = 0;
    command->input_length = count > 0 ? (size_t)count : 0;
  }
  if (command->input_at < command->input_length) {
    ssize_t count = write(command->in[1], command->input + command->input_at,
                          command->input_length - command->input_at);
    command->input_at += count > 0 ? (size_t)count : 0;
  }
}

/* ---- Following ------------------------------------------------------------------------------------------------ */

/* Until there is output, room for input, a word of the keeper, a cancel, or time to look again. */
static void wait_for_news(struct sandhost_call *call, const struct command *command) {
  int has_input = command->input_at < command->input_length;
  int wants_input = command->in[1] >= 0 && !has_input;
  int input_fd = wants_input ? command->observer->input_fd(command->observer->user) : -1;
  int cancelled = command->killed == CANCELLED; /* its descriptor stays readable then */
  int cancel_fd = cancelled ? -1 : host->cancel_fd(call);
  struct pollfd fds[] = {
      {.fd = command->out[0], .events = POLLIN},
      {.fd = command->err[0], .events = POLLIN},
      {.fd = command->keeper->control, .events = POLLIN},
      {.fd = has_input ? command->in[1] : -1, .events = POLLOUT},
      {.fd = input_fd, .events = POLLIN},
      {.fd = cancel_fd, .events = POLLIN},
  };
  int64_t deadline = host->deadline(call);
  int64_t until = cancelled || command->next < deadline ? command->next : deadline;
  int64_t left = until - now();
  if ((wants_input && input_fd < 0) || (!cancelled && cancel_fd < 0)) {
    left = left < 20 * MILLISECOND ? left : 20 * MILLISECOND; /* nothing wakes us for those */
  }
  left = left < 60 * SECOND ? left : 60 * SECOND;
  poll(fds, sizeof fds / sizeof fds[0], left > 0 ? (int)(left / MILLISECOND) + 1 : 0);
}

static void note_word(struct command *command, struct word word) {
  if (word.kind != WORD_STARTED) {
    command->last = word;
    return;
  }
  int64_t limit = command->request->limit;
  command->started = now();
  if (!command->killed && limit > 0 && limit < INT64_MAX - command->started) {
    command->next = command->started + limit;
  }
  if (command->observer->started) {
    command->observer->started(command->observer->user, (uint64_t)word.number);
  }
}

/* Has everything killed when the time has come. The keeper tells when that is done. */
static void kill_in_time(struct sandhost_call *call, struct command *command) {
  if (command->killed != CANCELLED && (command->stopped || host->cancelled(call))) {
    command->killed = CANCELLED;
    command->next = now() + 2 * SECOND; /* so long the contract lets us clean up */
  } else if (!command->killed && now() >= command->next) {
    command->killed = LIMIT_PASSED;
    command->next = INT64_MAX;
  } else {
    return;
  }
  keeper_end(command->keeper);
}

/* Until its own process has ended, or, when it was killed, until nothing is left of it. */
static void follow(struct sandhost_call *call, struct command *command) {
  for (;;) {
    struct word word;
    int heard = keeper_hear(command->keeper, &word);
    if (heard > 0) {
      note_word(command, word);
    } else if (heard < 0 || (command->killed == CANCELLED && now() >= command->next)) {
      break;
    }
    if (command->started) {
      feed(command);
      drain(command, SANDHOST_STDOUT);
      drain(command, SANDHOST_STDERR);
    }
    if (command->last.kind != WORD_STARTED && !command->killed && !command->stopped) {
      break;
    }
    kill_in_time(call, command);
    if (heard == 0) {
      wait_for_news(call, command);
    }
  }
  /* What it wrote. A process that it left behind is not waited for. */
  drain(command, SANDHOST_STDOUT);
  drain(command, SANDHOST_STDERR);
}

/* ---- Starting ------------------------------------------------------------------------------------------------- */

/* A script that is too long for a word goes to the shell as a file without a name. The script closes that descriptor
 * before it begins. Returns the descriptor, or -1: nothing to do, or no memory, and then the start says so. */
static int long_script(char **argv, size_t argc) {
  static const char first[] = "exec 9<&-; "; /* EXTRA_FD */
  static char instead[] = ". /proc/self/fd/9";
  const char *slash = strrchr(argv[0], '/');
  const char *name = slash ? slash + 1 : argv[0];
  int is_shell = strcmp(name, "sh") == 0 || strcmp(name, "bash") == 0 || strcmp(name, "dash") == 0;
  if (!is_shell || argc < 3 || strcmp(argv[1], "-c") != 0 || strlen(argv[2]) <= LONGEST_WORD) {
    return -1;
  }
  int fd = memfd_create("script", MFD_CLOEXEC);
  if (fd < 0 || dprintf(fd, "%s%s", first, argv[2]) < 0) {
    close_end(&fd);
    return -1;
  }
  argv[2] = instead;
  return fd;
}

/* The command's ends are in plan.fds then. Returns an errno. */
static int make_pipes(struct command *command) {
  int wants_input = (command->request->flags & SANDHOST_EXECUTE_STDIN) != 0;
  if (wants_input ? pipe2(command->in, O_CLOEXEC) != 0
                  : (command->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
    return errno;
  }
  if (pipe2(command->out, O_CLOEXEC) != 0 || pipe2(command->err, O_CLOEXEC) != 0) {
    return errno;
  }
  fcntl(command->out[0], F_SETFL, O_NONBLOCK);
  fcntl(command->err[0], F_SETFL, O_NONBLOCK);
  if (wants_input) {
    fcntl(command->in[1], F_SETFL, O_NONBLOCK);
  }
  return 0;
}

/* Returns an errno. */
static int start(struct sandhost_sandbox *sandbox, struct command *command, char **argv,
                 char **environment) {
  const struct sandhost_path cwd = command->request->cwd;
  int error = make_pipes(command);
  if (error != 0) {
    return error;
  }
  int script = long_script(argv, command->request->argc);
  const struct plan plan = {.folder = cwd.length > 0 ? cwd.data : sandbox->working_dir,
                            .argv = argv,
                            .environment = environment,
                            .fds = {command->in[0], command->out[1], command->err[1], script}};
  command->keeper = keeper_start(&plan);
  error = command->keeper ? 0 : errno;
  close_end(&command->out[1]);
  close_end(&command->err[1]);
  close_end(&script);
  if (command->keeper) {
    command->keeper->next = sandbox->keepers;
    sandbox->keepers = command->keeper;
  }
  return error;
}

/* ---- The end -------------------------------------------------------------------------------------------------- */

/* A command that cannot be started is a result, not a failure. */
static void tell_not_started(struct command *command, const char *name, int error) {
  char message[512];
  int length = snprintf(message, sizeof message, "%.400s: %s\n", name, strerror(error));
  take_output(command, SANDHOST_STDERR, message, (size_t)length);
  command->result->ended = SANDHOST_ENDED_EXIT;
  command->result->exit_code = error == ENOENT || error == ENOTDIR ? 127 : 126;
}

static void tell_ended(const struct command *command, int status) {
  struct sandhost_result *result = command->result;
  result->duration = now() - command->started;
  if (command->killed) {
    result->ended = SANDHOST_ENDED_LIMIT;
    result->exit_code = 137;
  } else if (WIFEXITED(status)) {
    result->ended = SANDHOST_ENDED_EXIT;
    result->exit_code = WEXITSTATUS(status);
  } else {
    result->ended = SANDHOST_ENDED_SIGNAL;
    result->signal = WTERMSIG(status);
    result->exit_code = 128 + WTERMSIG(status);
  }
}

static int32_t run(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                   struct command *command, char **argv, char **environment) {
  command->next = INT64_MAX;
  int error = start(sandbox, command, argv, environment);
  if (error != 0) {
    return fail(call, status_of(error), "could not start a process for the command", error);
  }
  follow(call, command);
  if (command->killed == CANCELLED) {
    int timeout = !command->stopped && now() >= host->deadline(call);
    return fail(call, timeout ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED, "the command was ended", 0);
  }
  if (command->last.kind == WORD_NO_FOLDER) {
    tell_not_started(command,
                     command->request->cwd.length > 0 ? command->request->cwd.data
                                                      : sandbox->working_dir,
                     command->last.number);
    command->result->exit_code = 126; /* it is not the program that was not found */
  } else if (command->last.kind == WORD_NO_PROGRAM) {
    tell_not_started(command, argv[0], command->last.number);
  } else if (command->last.kind == WORD_ENDED || command->killed) {
    tell_ended(command, command->last.number);
  } else {
    /* What it kept can no longer be ended: nothing more is begun beside it. */
    sandbox->gone = "something killed the command's keeper";
    return fail_lost(call, sandbox);
  }
  return SANDHOST_OK;
}

/* The host checks as well, and another host may not: a bad request is no crash. */
static int is_request(const struct sandhost_execute *request) {
  if ((request->flags & ~SANDHOST_EXECUTE_STDIN) != 0 || request->argc == 0 ||
      request->argv[0].length == 0) {
    return 0;
  }
  for (size_t i = 0; i < request->argc; i++) {
    if (memchr(request->argv[i].data, 0, request->argv[i].length)) {
      return 0;
    }
  }
  return 1;
}

int32_t example_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                        const struct sandhost_execute *request,
                        const struct sandhost_observer *observer,
                        struct sandhost_result *ret_result) {
  if (!is_request(request)) {
    return fail(call, SANDHOST_INVALID, "no program, a NUL in a word, or an unknown flag", 0);
  }
  int32_t status = check_alive(call, sandbox);
  if (status != SANDHOST_OK) {
    return status;
  }
  keepers_collect(&sandbox->keepers, 0);
  struct command *command = calloc(1, sizeof *command);
  char **argv = calloc(request->argc + 1, sizeof *argv);
  char **environment = make_environment((const char *const *)sandbox->environment,
                                        request->environment, request->environment_count);
  if (command && argv && environment) {
    *command = (struct command){.request = request,
                                .observer = observer,
                                .result = ret_result,
                                .in = {-1, -1},
                                .out = {-1, -1},
                                .err = {-1, -1}};
    for (size_t i = 0; i < request->argc; i++) {
      argv[i] = (char *)(uintptr_t)request->argv[i].data; /* exec does not write there */
    }
    status = run(call, sandbox, command, argv, environment);
    for (int i = 0; i < 2; i++) {
      close_end(&command->in[i]);
      close_end(&command->out[i]);
      close_end(&command->err[i]);
    }
  } else {
    status = fail(call, SANDHOST_NO_MEMORY, "no memory for a command", 0);
  }
  free_environment(environment);
  free(argv);
  free(command);
  return status;
}
