/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.c: a complete sandbox provider in one file, to be copied and changed.
 *
 * It keeps the files of a sandbox in a private temporary folder and runs commands there as ordinary
 * processes. That is a place of its own for files, not isolation, so it declares what is true: commands run on this
 * machine (SANDHOST_PROVIDER_HOST_SURFACE), the network cannot be cut, an environment can be set. The host refuses
 * every manifest that asks for more.
 *
 * It needs nothing but libc and sandhost/provider.h, and leaves out every optional operation.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <sandhost/provider.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ll
/* Groups of finished commands that may still have processes; see remember_group. */
#define MAX_GROUPS 64

/* The one thing that lives outside a handle: the host's table, set before any call and constant. */
static const struct sandhost_host *host;

struct sandhost_instance {
  char *parent; /* where the folders of sandboxes are made */
};

struct sandhost_sandbox {
  char *folder;      /* of this machine */
  char *working_dir; /* what it is called inside: /workspace/a is folder/a */
  char **environment;
  pid_t groups[MAX_GROUPS];
  size_t group_count;
};

/* ---- Telling what went wrong ------------------------------------------------------------------------------ */

static struct sandhost_text text(const char *string) {
  struct sandhost_text result = {string, strlen(string)};
  return result;
}

/* Every failure goes through here: the call's error, and the status that the operation returns. */
static int32_t fail(struct sandhost_call *call, int32_t status, const char *what, int error) {
  char message[512];
  snprintf(message, sizeof message, "%s%s%s", what, error ? ": " : "",
           error ? strerror(error) : "");
  return host->fail(call, status, text(message));
}

static int32_t status_of(int error) {
  switch (error) {
  case ENOENT:
    return SANDHOST_NOT_FOUND;
  case ENOTDIR: /* a file or a link where a folder should be */
  case EISDIR:
  case ELOOP:
  case EINVAL:
    return SANDHOST_INVALID;
  case ENOSPC:
  case EDQUOT:
    return SANDHOST_LIMIT;
  case ENOMEM:
    return SANDHOST_NO_MEMORY;
  default:
    return SANDHOST_INTERNAL;
  }
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * SECOND + time.tv_nsec;
}

/* ---- Instances -------------------------------------------------------------------------------------------- */

/* The host has checked the values against the table at the end of this file: there is one for each. */
static int32_t example_open(struct sandhost_call *call, const struct sandhost_open *request,
                            struct sandhost_instance **ret_instance) {
  const struct sandhost_value *parent = &request->values[0];
  struct sandhost_instance *instance = calloc(1, sizeof *instance);
  if (!instance || !(instance->parent = strndup(parent->text.data, parent->text.length))) {
    free(instance);
    return fail(call, SANDHOST_NO_MEMORY, "no memory for an instance", 0);
  }
  *ret_instance = instance;
  return SANDHOST_OK;
}

static void example_close(struct sandhost_instance *instance) {
  free(instance->parent);
  free(instance);
}

/* ---- Sandboxes -------------------------------------------------------------------------------------------- */

static void free_environment(char **environment) {
  for (char **pair = environment; pair && *pair; pair++) {
    free(*pair);
  }
  free(environment);
}

static void free_sandbox(struct sandhost_sandbox *sandbox) {
  free_environment(sandbox->environment);
  free(sandbox->working_dir);
  free(sandbox->folder);
  free(sandbox);
}

/* Whether a NAME=value string is of one of the pairs. */
static int is_of(const char *string, const struct sandhost_pair *pairs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strncmp(string, pairs[i].name.data, pairs[i].name.length) == 0 &&
        string[pairs[i].name.length] == '=') {
      return 1;
    }
  }
  return 0;
}

/* NAME=value strings, NULL-terminated, of the pairs and of what they leave of base; NULL without memory. */
static char **make_environment(const char *const *base, const struct sandhost_pair *pairs,
                               size_t count) {
  size_t have = 0;
  while (base[have]) {
    have++;
  }
  char **made = calloc(have + count + 1, sizeof *made);
  size_t used = 0;
  int ok = made != NULL;
  for (size_t i = 0; ok && i < count; i++, used += (size_t)ok) {
    ok = asprintf(&made[used], "%s=%s", pairs[i].name.data, pairs[i].value.data) >= 0;
  }
  for (size_t i = 0; ok && i < have; i++) {
    if (!is_of(base[i], pairs, count)) {
      ok = (made[used] = strdup(base[i])) != NULL;
      used += (size_t)ok;
    }
  }
  if (made && !ok) {
    made[used] = NULL; /* what a failed asprintf leaves there is nobody's */
    free_environment(made);
    made = NULL;
  }
  return made;
}

static int32_t example_create(struct sandhost_call *call, struct sandhost_instance *instance,
                              const struct sandhost_create *request,
                              struct sandhost_sandbox **ret_sandbox) {
  static const char *const base[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp",
                                     "LANG=C.UTF-8", NULL};
  struct sandhost_sandbox *sandbox = calloc(1, sizeof *sandbox);
  if (!sandbox) {
    return fail(call, SANDHOST_NO_MEMORY, "no memory for a sandbox", 0);
  }
  sandbox->working_dir = strndup(request->working_dir.data, request->working_dir.length);
  sandbox->environment = make_environment(base, request->environment, request->environment_count);
  if (!sandbox->working_dir || !sandbox->environment ||
      asprintf(&sandbox->folder, "%s/sandhost-example-XXXXXX", instance->parent) < 0) {
    sandbox->folder = NULL;
    free_sandbox(sandbox);
    return fail(call, SANDHOST_NO_MEMORY, "no memory for a sandbox", 0);
  }
  if (!mkdtemp(sandbox->folder)) { /* mode 0700 */
    int error = errno;
    free_sandbox(sandbox);
    return fail(call, status_of(error), "could not make a folder for the sandbox", error);
  }
  /* Facts go out through report: here the name by which a person finds it. */
  host->report(call, SANDHOST_REPORT_REF, text(sandbox->folder));
  *ret_sandbox = sandbox;
  return SANDHOST_OK;
}

/* Ends every process of a finished command's group, and gives its number back. */
static void end_group(pid_t group) {
  kill(-group, SIGKILL);
  while (waitpid(group, NULL, 0) < 0 && errno == EINTR) {
  }
}

/* Processes that a command leaves behind live until the sandbox ends. Its own process is left unreaped so long:
 * then nobody else can get the number of its group, and the group can be ended for sure. */
static void remember_group(struct sandhost_sandbox *sandbox, pid_t group) {
  if (sandbox->group_count == MAX_GROUPS) {
    end_group(sandbox->groups[0]);
    memmove(sandbox->groups, sandbox->groups + 1, (MAX_GROUPS - 1) * sizeof *sandbox->groups);
    sandbox->group_count--;
  }
  sandbox->groups[sandbox->group_count++] = group;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
  (void)status;
  (void)kind;
  (void)where;
  return remove(path);
}

static int32_t example_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  while (sandbox->group_count > 0) {
    end_group(sandbox->groups[--sandbox->group_count]);
  }
  /* Depth first, links not followed. A folder that is gone already is no failure. */
  if (nftw(sandbox->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT) {
    return fail(call, SANDHOST_INTERNAL, "could not remove the sandbox's folder", errno);
  }
  return SANDHOST_OK;
}

static void example_release(struct sandhost_sandbox *sandbox) {
  free_sandbox(sandbox);
}

/* ---- Files ------------------------------------------------------------------------------------------------ */

/* The part of an absolute path that lies below the working directory; NULL for any other path. */
static const char *path_below(const struct sandhost_sandbox *sandbox, struct sandhost_path path) {
  size_t length = strlen(sandbox->working_dir);
  if (path.length <= length + 1 || memcmp(path.data, sandbox->working_dir, length) != 0 ||
      path.data[length] != '/') {
    return NULL;
  }
  return path.data + length + 1; /* a NUL follows every path */
}

/* Opens the folder that holds a file, one component at a time and without following links, so that no path leads
 * out. make: missing folders are made. Returns -1 with errno; name gets the last component. */
static int open_parent(const struct sandhost_sandbox *sandbox, const char *below, int make,
                       char name[NAME_MAX + 1]) {
  int dir = open(sandbox->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  while (dir >= 0) {
    size_t length = strcspn(below, "/");
    if (length == 0 || length > NAME_MAX || (length == 1 && below[0] == '.') ||
        (length == 2 && memcmp(below, "..", 2) == 0)) {
      close(dir);
      errno = EINVAL;
      return -1;
    }
    memcpy(name, below, length);
    name[length] = '\0';
    if (below[length] == '\0') {
      return dir;
    }
    if (make) {
      mkdirat(dir, name, 0755); /* if that fails so does openat */
    }
    int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    close(dir);
    errno = error;
    dir = next;
    below += length + 1;
  }
  return -1;
}

static int32_t example_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                 struct sandhost_path path, const struct sandhost_sink *sink) {
  const char *below = path_below(sandbox, path);
  if (!below) {
    return fail(call, SANDHOST_INVALID, "the path is outside the working directory", 0);
  }
  char name[NAME_MAX + 1];
  int dir = open_parent(sandbox, below, 0, name);
  /* O_NONBLOCK: a FIFO must not hold the call up before it is refused. */
  int fd = dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  int error = errno;
  if (dir >= 0) {
    close(dir);
  }
  if (fd < 0) {
    return fail(call, status_of(error), "could not open the file", error);
  }
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return fail(call, SANDHOST_INVALID, "it is not a regular file", 0);
  }
  char buffer[65536];
  ssize_t count;
  int32_t answer = SANDHOST_OK;
  while (answer == SANDHOST_OK && (count = read(fd, buffer, sizeof buffer)) != 0) {
    if (count < 0) {
      answer = fail(call, SANDHOST_INTERNAL, "could not read the file", errno);
    } else if (sink->write(sink->user, buffer, (size_t)count) != SANDHOST_OK) {
      answer = fail(call, SANDHOST_CANCELLED, "stopped while reading", 0);
    }
  }
  close(fd);
  return answer;
}

/* Returns 0, an errno, or -1 when the source said stop. */
static int copy_from(const struct sandhost_source *source, int fd) {
  char buffer[65536];
  int64_t count;
  while ((count = source->read(source->user, buffer, sizeof buffer)) > 0) {
    for (int64_t done = 0; done < count;) {
      ssize_t written = write(fd, buffer + done, (size_t)(count - done));
      if (written < 0 && errno != EINTR) {
        return errno;
      }
      done += written > 0 ? written : 0;
    }
  }
  return count < 0 ? -1 : 0;
}

static int32_t example_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                  struct sandhost_path path, uint32_t mode,
                                  const struct sandhost_source *source) {
  const char *below = path_below(sandbox, path);
  if (!below) {
    return fail(call, SANDHOST_INVALID, "the path is outside the working directory", 0);
  }
  char name[NAME_MAX + 1];
  int dir = open_parent(sandbox, below, 1, name);
  if (dir < 0) {
    return fail(call, status_of(errno), "could not open the folder", errno);
  }
  /* Readers see the old content or the new: the file gets its name when it is whole. */
  char temporary[64];
  snprintf(temporary, sizeof temporary, ".example-%lld", (long long)now());
  int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  int error = fd < 0 ? errno : copy_from(source, fd);
  if (fd >= 0 && error == 0 &&
      (fchmod(fd, mode & 0777) != 0 || renameat(dir, temporary, dir, name) != 0)) {
    error = errno;
  }
  if (fd >= 0) {
    close(fd);
  }
  if (fd >= 0 && error != 0) {
    unlinkat(dir, temporary, 0);
  }
  close(dir);
  if (error < 0) {
    return fail(call, SANDHOST_CANCELLED, "stopped while writing", 0);
  }
  return error == 0 ? SANDHOST_OK : fail(call, status_of(error), "could not write the file", error);
}

/* ---- Commands --------------------------------------------------------------------------------------------- */

struct command {
  const struct sandhost_execute *request;
  const struct sandhost_observer *observer;
  struct sandhost_result *result;
  pid_t pid;
  int in, out[2]; /* our ends of its pipes; -1: closed. out[0] is its stdout, out[1] its stderr */
  uint64_t given[2]; /* bytes that the observer got, per stream */
  char input[65536]; /* what the observer gave and the pipe has not taken yet */
  size_t input_at, input_length;
  int64_t deadline;          /* of its limit */
  int limit_passed, stopped; /* why we killed it */
};

static void close_pipe(int *fd) {
  if (*fd >= 0) {
    close(*fd);
    *fd = -1;
  }
}

static uint64_t *counter(struct command *command, int stream) {
  return stream == 0 ? &command->result->stdout_bytes : &command->result->stderr_bytes;
}

/* Counts everything, gives at most max_output_bytes. */
static void take_output(struct command *command, int stream, const char *data, size_t length) {
  uint64_t max = command->request->max_output_bytes;
  uint64_t room = max == 0 ? UINT64_MAX : max - command->given[stream];
  size_t give = length < room ? length : (size_t)room;
  *counter(command, stream) += length;
  command->given[stream] += give;
  if (give > 0 && !command->stopped &&
      command->observer->output(command->observer->user, (uint32_t)stream + SANDHOST_STDOUT, data,
                                give) != SANDHOST_OK) {
    command->stopped = 1;
  }
}

/* What is in the pipe now, or as much of it as a pipe can hold: a command that never stops writing must not keep
 * us from looking at the time. */
static void drain(struct command *command, int stream) {
  char buffer[65536];
  for (int i = 0; i < 16 && command->out[stream] >= 0; i++) {
    ssize_t count = read(command->out[stream], buffer, sizeof buffer);
    if (count < 0) {
      return;
    }
    if (count == 0) {
      close_pipe(&command->out[stream]);
    } else {
      take_output(command, stream, buffer, (size_t)count);
    }
  }
}

static void feed(struct command *command) {
  if (command->in < 0) {
    return;
  }
  if (command->input_at == command->input_length) {
    int64_t count =
        command->observer->input(command->observer->user, command->input, sizeof command->input);
    if (count == 0) {
      close_pipe(&command->in);
    }
    command->input_at = 0;
    command->input_length = count > 0 ? (size_t)count : 0;
  }
  if (command->input_at < command->input_length) {
    ssize_t count = write(command->in, command->input + command->input_at,
                          command->input_length - command->input_at);
    if (count > 0) {
      command->input_at += (size_t)count;
    } else if (errno != EAGAIN && errno != EINTR) {
      close_pipe(&command->in); /* it reads no more */
    }
  }
}

/* Waits for output, room for input, a cancel, or a moment, after which the process is looked at again. */
static void wait_for_news(struct sandhost_call *call, struct command *command) {
  int has_input = command->input_at < command->input_length;
  int input_fd =
      command->in >= 0 && !has_input ? command->observer->input_fd(command->observer->user) : -1;
  struct pollfd fds[] = {
      {.fd = command->out[0], .events = POLLIN},
      {.fd = command->out[1], .events = POLLIN},
      {.fd = has_input ? command->in : -1, .events = POLLOUT},
      {.fd = input_fd, .events = POLLIN},
      {.fd = host->cancel_fd(call), .events = POLLIN},
  };
  int quiet = command->out[0] < 0 && command->out[1] < 0; /* it is about to end */
  poll(fds, sizeof fds / sizeof fds[0], quiet ? 1 : 20);
}

/* Runs it to its end. Its own process stays unreaped. */
static siginfo_t follow(struct sandhost_call *call, struct command *command) {
  siginfo_t end = {0};
  for (;;) {
    feed(command);
    drain(command, 0);
    drain(command, 1);
    int past = now() >= command->deadline;
    if ((past || command->stopped || host->cancelled(call)) && !command->limit_passed) {
      command->limit_passed = past && !command->stopped && !host->cancelled(call);
      kill(-command->pid, SIGKILL);
    }
    if (waitid(P_PID, (id_t)command->pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        end.si_pid == command->pid) {
      break;
    }
    wait_for_news(call, command);
  }
  drain(command, 0); /* what it wrote; a process that it left behind is not waited for */
  drain(command, 1);
  return end;
}

/* Finds a program in the sandbox's PATH, not in ours. A name with a / is a path already. */
static const char *find_program(const char *name, char *const environment[], char path[PATH_MAX]) {
  const char *folders = "";
  for (size_t i = 0; environment[i]; i++) {
    folders = strncmp(environment[i], "PATH=", 5) == 0 ? environment[i] + 5 : folders;
  }
  while (!strchr(name, '/') && *folders != '\0') {
    int length = (int)strcspn(folders, ":");
    int needed = snprintf(path, PATH_MAX, "%.*s/%s", length, folders, name);
    if (length > 0 && needed < PATH_MAX && access(path, X_OK) == 0) {
      return path;
    }
    folders += length + (folders[length] == ':');
  }
  return strchr(name, '/') ? name : NULL;
}

/* posix_spawn of argv in the sandbox's folder, as the head of a group of its own. Returns an errno. */
static int start(const struct sandhost_sandbox *sandbox, struct command *command,
                 char *const argv[], char *const environment[], const char *cwd) {
  char path[PATH_MAX];
  const char *program = find_program(argv[0], environment, path);
  if (!program) {
    return ENOENT;
  }
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
  int wants_input = (command->request->flags & SANDHOST_EXECUTE_STDIN) != 0;
  if ((wants_input && pipe2(in, O_CLOEXEC) != 0) || pipe2(out, O_CLOEXEC) != 0 ||
      pipe2(err, O_CLOEXEC) != 0) {
    int error = errno;
    for (int i = 0; i < 2; i++) {
      close_pipe(&in[i]), close_pipe(&out[i]), close_pipe(&err[i]);
    }
    return error;
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (wants_input) {
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  posix_spawn_file_actions_addchdir_np(&actions, sandbox->folder);
  if (*cwd != '\0') {
    posix_spawn_file_actions_addchdir_np(&actions, cwd);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, 3); /* whatever the host left open */
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  int error = posix_spawn(&command->pid, program, &actions, &attributes, argv, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close_pipe(&in[0]);
  close_pipe(&out[1]);
  close_pipe(&err[1]);
  command->in = in[1];
  command->out[0] = out[0];
  command->out[1] = err[0];
  for (int i = 0; i < 2; i++) {
    fcntl(command->out[i], F_SETFL, O_NONBLOCK);
  }
  if (command->in >= 0) {
    fcntl(command->in, F_SETFL, O_NONBLOCK);
  }
  return error;
}

static void fill_result(const struct command *command, const siginfo_t *end) {
  struct sandhost_result *result = command->result;
  if (command->limit_passed) {
    result->ended = SANDHOST_ENDED_LIMIT;
    result->exit_code = 137;
  } else if (end->si_code == CLD_EXITED) {
    result->ended = SANDHOST_ENDED_EXIT;
    result->exit_code = end->si_status;
  } else {
    result->ended = SANDHOST_ENDED_SIGNAL;
    result->signal = end->si_status;
    result->exit_code = 128 + end->si_status;
  }
}

/* A command that cannot be started is a result, not a failure. */
static int32_t tell_not_started(struct command *command, const char *name, int error) {
  char message[512];
  int length = snprintf(message, sizeof message, "%.400s: %s\n", name, strerror(error));
  take_output(command, 1, message, (size_t)length);
  command->result->ended = SANDHOST_ENDED_EXIT;
  command->result->exit_code = error == ENOENT ? 127 : 126;
  return SANDHOST_OK;
}

static int32_t run(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                   struct command *command, char *const argv[], char *const environment[]) {
  const struct sandhost_path cwd = command->request->cwd;
  const char *below = "";
  if (cwd.length > 0 && (strlen(sandbox->working_dir) != cwd.length ||
                         memcmp(cwd.data, sandbox->working_dir, cwd.length) != 0)) {
    below = path_below(sandbox, cwd);
    if (!below) {
      return fail(call, SANDHOST_INVALID, "the folder is outside the working directory", 0);
    }
  }
  int error = start(sandbox, command, argv, environment, below);
  int64_t started = now();
  if (error != 0) {
    return tell_not_started(command, argv[0], error);
  }
  command->deadline = command->request->limit > 0 ? started + command->request->limit : INT64_MAX;
  if (command->observer->started) {
    command->observer->started(command->observer->user, (uint64_t)command->pid);
  }
  siginfo_t end = follow(call, command);
  remember_group(sandbox, command->pid);
  command->result->duration = now() - started;
  fill_result(command, &end);
  if (host->cancelled(call) || command->stopped) {
    int timeout = !command->stopped && now() >= host->deadline(call);
    return fail(call, timeout ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED, "the command was ended", 0);
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

static int32_t example_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               const struct sandhost_execute *request,
                               const struct sandhost_observer *observer,
                               struct sandhost_result *ret_result) {
  if (!is_request(request)) {
    return fail(call, SANDHOST_INVALID, "no program, a NUL in a word, or an unknown flag", 0);
  }
  if (access(sandbox->folder, F_OK) != 0) {
    host->report(call, SANDHOST_REPORT_LOST, text("its folder is gone"));
    return fail(call, SANDHOST_LOST, "the sandbox is gone", 0);
  }
  struct command *command = calloc(1, sizeof *command);
  char **argv = calloc(request->argc + 1, sizeof *argv);
  char **environment = make_environment((const char *const *)sandbox->environment,
                                        request->environment, request->environment_count);
  int32_t status = SANDHOST_NO_MEMORY;
  if (command && argv && environment) {
    command->request = request;
    command->observer = observer;
    command->result = ret_result;
    command->in = command->out[0] = command->out[1] = -1;
    for (size_t i = 0; i < request->argc; i++) {
      argv[i] = (char *)(uintptr_t)request->argv[i].data; /* posix_spawn does not write there */
    }
    status = run(call, sandbox, command, argv, environment);
    close_pipe(&command->in);
    close_pipe(&command->out[0]);
    close_pipe(&command->out[1]);
  } else {
    fail(call, SANDHOST_NO_MEMORY, "no memory for a command", 0);
  }
  free_environment(environment);
  free(argv);
  free(command);
  return status;
}

/* ---- The table ---------------------------------------------------------------------------------------------- */

static const struct sandhost_option options[] = {
    {
        .size = sizeof(struct sandhost_option),
        .name = "folder",
        .type = SANDHOST_OPTION_TEXT,
        .fallback = "/tmp",
        .help = "Where the private folders of sandboxes are made",
    },
    {
        .size = sizeof(struct sandhost_option),
        .name = "max_output_bytes",
        .type = SANDHOST_OPTION_INTEGER,
        .flags = SANDHOST_OPTION_POSITIVE,
        .fallback = "1000000",
        .help = "Output kept per stream; the rest is cut",
    },
};

/* What is not listed here is not kept, and a manifest that asks for it is refused before anything starts. */
static const struct sandhost_enforces enforces[] = {
    {SANDHOST_SETTING_NETWORK_ON, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_ENVIRONMENT, SANDHOST_LEVEL_ENFORCED},
};

static const struct sandhost_provider provider = {
    .size = sizeof provider,
    .minor = SANDHOST_ABI_MINOR,
    .threads =
        SANDHOST_THREADS_SANDBOX, /* a sandbox's groups are not guarded: one call at a time */
    .flags = SANDHOST_PROVIDER_HOST_SURFACE,
    .name = "example",
    .version = "1.0",
    .summary =
        "runs commands in a private folder of this machine, to show how a provider is written",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_size = sizeof options[0],
    .enforces = enforces,
    .enforces_count = sizeof enforces / sizeof enforces[0],
    .open = example_open,
    .close = example_close,
    .create = example_create,
    .execute = example_execute,
    .read_file = example_read_file,
    .write_file = example_write_file,
    .terminate = example_terminate,
    .release = example_release,
};

const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *given) {
  host = given;
  return &provider;
}
