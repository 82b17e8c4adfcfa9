/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine-ssh.c: connections to an engine over there: each is an ssh that runs `docker system dial-stdio`, with its
 * stdin and stdout as the connection.
 *
 * An ssh ends when its connection is closed. Those that ended are reaped whenever the next one starts, and by
 * engine_ssh_free. The lock guards the list and the complaint; nothing is called under it that takes another.
 */
#include "engine-private.h"

#include "guest-spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINE ENGINE_MAX_MESSAGE
/* How long ssh may take to end once its connection is closed, before it is killed. */
#define GRACE ENGINE_SECOND
#define STEP_MILLISECONDS 10

struct ssh_process {
  pid_t pid;
  int pidfd; /* -1: this kernel has none */
  int error_fd;
  GString *last; /* its last line so far; the newest MAX_LINE bytes of it */
  gboolean line_ended;
};

struct EngineSsh {
  char *program;   /* NULL: there is none */
  GPtrArray *argv; /* of char *, NULL-terminated */
  char **environment;

  pthread_mutex_t lock;
  GPtrArray *processes; /* of struct ssh_process * */
  char *complaint;      /* last line of the one that failed last */
};

/* ---- Making it ------------------------------------------------------------------------------- */

static void add(GPtrArray *argv, const char *word) {
  g_ptr_array_add(argv, g_strdup(word));
}

static GPtrArray *command_of(const struct engine_address *address, const char *program) {
  static const char *const options[] = {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-T"};
  GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
  add(argv, program);
  for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
    add(argv, options[i]);
  }
  if (address->ssh_user) {
    add(argv, "-l");
    add(argv, address->ssh_user);
  }
  if (address->ssh_port) {
    add(argv, "-p");
    add(argv, address->ssh_port);
  }
  add(argv, "--");
  add(argv, address->ssh_host);
  add(argv, "docker");
  if (address->ssh_path) {
    g_ptr_array_add(argv, g_strdup_printf("--host=unix://%s", address->ssh_path));
  }
  add(argv, "system");
  add(argv, "dial-stdio");
  g_ptr_array_add(argv, NULL);
  return argv;
}

EngineSsh *engine_ssh_new(const struct engine_address *address) {
  EngineSsh *ssh = g_new0(EngineSsh, 1);
  ssh->program = g_find_program_in_path("ssh");
  ssh->argv = command_of(address, ssh->program ? ssh->program : "ssh");
  ssh->environment = g_strdupv(environ);
  ssh->processes = g_ptr_array_new();
  pthread_mutex_init(&ssh->lock, NULL);
  return ssh;
}

/* ---- What they say --------------------------------------------------------------------------- */

static void take_words(struct ssh_process *process, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '\n' || text[i] == '\r') {
      process->line_ended = TRUE;
      continue;
    }
    if (process->line_ended) {
      g_string_truncate(process->last, 0);
      process->line_ended = FALSE;
    }
    if (process->last->len < MAX_LINE) {
      g_string_append_c(process->last, text[i]);
    }
  }
}

/* Empties the pipe of what is there now. */
static void read_words(struct ssh_process *process) {
  char buffer[1024];
  /* Bounded: who writes without end is read again the next time. */
  for (int i = 0; i < 64; i++) {
    ssize_t count = read(process->error_fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return;
    }
    take_words(process, buffer, (size_t)count);
  }
}

/* ---- Their end ------------------------------------------------------------------------------- */

static void process_free(struct ssh_process *process) {
  if (process->pidfd >= 0) {
    close(process->pidfd);
  }
  close(process->error_fd);
  g_string_free(process->last, TRUE);
  g_free(process);
}

/* TRUE: it has ended and is no more. With the lock. */
static gboolean reap(EngineSsh *ssh, struct ssh_process *process) {
  int how;
  pid_t pid = waitpid(process->pid, &how, WNOHANG);
  read_words(process);
  if (pid == 0) {
    return FALSE;
  }
  if (pid > 0 && how != 0 && process->last->len > 0) {
    g_free(ssh->complaint);
    ssh->complaint = engine_clean(process->last->str, process->last->len);
  }
  process_free(process);
  return TRUE;
}

/* How many still run. With the lock. */
static guint reap_all(EngineSsh *ssh) {
  for (guint i = ssh->processes->len; i > 0; i--) {
    if (reap(ssh, g_ptr_array_index(ssh->processes, i - 1))) {
      g_ptr_array_remove_index_fast(ssh->processes, i - 1);
    }
  }
  return ssh->processes->len;
}

static void kill_all(EngineSsh *ssh) {
  for (guint i = 0; i < ssh->processes->len; i++) {
    const struct ssh_process *process = g_ptr_array_index(ssh->processes, i);
    (void)kill(process->pid, SIGKILL); /* not reaped yet: the number is still its own */
  }
}

static void pause_briefly(void) {
  (void)poll(NULL, 0, STEP_MILLISECONDS);
}

void engine_ssh_free(EngineSsh *ssh) {
  if (!ssh) {
    return;
  }
  for (int64_t waited = 0; reap_all(ssh) > 0; waited += STEP_MILLISECONDS * 1000000) {
    if (waited >= GRACE) {
      kill_all(ssh);
    }
    pause_briefly();
  }
  pthread_mutex_destroy(&ssh->lock);
  g_ptr_array_unref(ssh->processes);
  g_ptr_array_unref(ssh->argv);
  g_strfreev(ssh->environment);
  g_free(ssh->program);
  g_free(ssh->complaint);
  g_free(ssh);
}

/* ---- Connections ----------------------------------------------------------------------------- */

int engine_ssh_connect(EngineSsh *ssh, char **ret_error) {
  struct ssh_process process = {.pidfd = -1, .error_fd = -1};
  int stream_fd = -1;
  if (!ssh->program) {
    *ret_error = g_strdup("there is no program ssh in PATH");
    return -1;
  }
  int error =
      guest_spawn((const char *const *)ssh->argv->pdata, (const char *const *)ssh->environment,
                  NULL, &process.pid, &process.pidfd, &stream_fd, &process.error_fd);
  if (error != 0) {
    *ret_error = g_strdup_printf("cannot start %s: %s", ssh->program, g_strerror(-error));
    return -1;
  }
  process.last = g_string_new(NULL);
  pthread_mutex_lock(&ssh->lock);
  reap_all(ssh);
  g_clear_pointer(&ssh->complaint, g_free);
  g_ptr_array_add(ssh->processes, g_memdup2(&process, sizeof process));
  pthread_mutex_unlock(&ssh->lock);
  return stream_fd;
}

char *engine_ssh_complaint(EngineSsh *ssh) {
  char *complaint = NULL;
  /* It closes its end of the connection a moment before it ends. */
  for (int64_t waited = 0; !complaint && waited < GRACE; waited += STEP_MILLISECONDS * 1000000) {
    pthread_mutex_lock(&ssh->lock);
    guint running = reap_all(ssh);
    complaint = g_strdup(ssh->complaint);
    pthread_mutex_unlock(&ssh->lock);
    if (complaint || running == 0) {
      break;
    }
    pause_briefly();
  }
  return complaint;
}
