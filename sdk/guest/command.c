/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c: execute requests. A command is opened, started by a keeper, followed through its
 * pipes, and done when its own process has ended and what was in the pipes at that moment is
 * delivered. Its pipes are read on and thrown away for as long as something that it left behind
 * holds them, so that such a process does not die of SIGPIPE.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inlet.h"
#include "keeper.h"
#include "mark.h"
#include "parameters.h"
#include "tree.h"

#define PIECE (64u * 1024u)
#define PIPE_SIZE (256 * 1024)
/* A keeper that says nothing for so many nanoseconds after a kill is killed too. */
#define KEEPER_PATIENCE 1000000000

struct command;

struct outlet { /* stdout or stderr */
  struct source source;
  struct command *command; /* NULL: whatever comes is thrown away */
  uint8_t channel;
  uint64_t total; /* bytes that the command wrote */
  int64_t drain;  /* after its end: bytes that were still in the pipe; -1: not ended */
};

struct command {
  struct request base;
  struct command *next;
  struct keeper *keeper; /* NULL once it died */
  pid_t pid;             /* 0: not started */
  uint64_t mark;
  struct outlet *outlets[2];
  struct inlet *inlet; /* NULL: /dev/null */
  uint64_t cap;        /* per stream; 0: none */
  int64_t limit;       /* nanoseconds; 0: none */
  int64_t deadline;    /* of the limit, or of the keeper's patience; 0: none */
  int at_limit;
  int cancelled;
  int seen_ended; /* at its limit; it may be that only its keeper is late */
  int ended;
  int unbegun;     /* it was never started */
  int adopted;     /* the guest itself waits for it */
  int64_t started; /* CLOCK_MONOTONIC */
  uint64_t kills;  /* for want of memory, before it began */
  struct keeper_message end;
};

static struct command *commands;
static uint64_t opened; /* so far */

/* ---- Finishing ------------------------------------------------------------------------------- */

static void unlink_command(struct command *gone) {
  for (struct command **at = &commands; *at; at = &(*at)->next) {
    if (*at == gone) {
      *at = gone->next;
      return;
    }
  }
}

/* From here on what comes is thrown away, until nobody holds the other end. */
static void outlet_release(struct outlet *outlet) {
  outlet->command = NULL;
  if (outlet->source.fd >= 0) {
    loop_watch(&outlet->source, EPOLLIN);
  } else {
    loop_free_later(outlet);
  }
}

/* Also a shell whose command was killed: it ends by itself, and says so with this exit code. */
static int is_memory_kill(const struct command *command) {
  int status = command->end.status;
  int killed =
      WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 128 + SIGKILL;
  return killed && memory_kills() > command->kills;
}

static size_t pack_results(const struct command *command, unsigned char *results) {
  const struct keeper_message *end = &command->end;
  uint32_t ended = SANDHOST_ENDED_EXIT;
  int32_t code = 0;
  int32_t number = 0;
  if (command->at_limit && WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGKILL) {
    ended = SANDHOST_ENDED_LIMIT; /* not where it ended by itself just before the kill */
    code = 137;
    number = SIGKILL;
  } else if (is_memory_kill(command)) {
    ended = SANDHOST_ENDED_MEMORY;
    code = 128 + SIGKILL;
    number = SIGKILL;
  } else if (WIFSIGNALED(end->status)) {
    ended = SANDHOST_ENDED_SIGNAL;
    number = WTERMSIG(end->status);
    code = 128 + number;
  } else {
    code = WEXITSTATUS(end->status);
  }
  guest_put_u32(results, ended);
  guest_put_u32(results + 4, (uint32_t)code);
  guest_put_u32(results + 8, (uint32_t)number);
  guest_put_u64(results + 12, command->outlets[0]->total);
  guest_put_u64(results + 20, command->outlets[1]->total);
  guest_put_u64(results + 28, (uint64_t)(end->ended - end->started));
  guest_put_u64(results + 36, (uint64_t)end->user_time);
  guest_put_u64(results + 44, (uint64_t)end->system_time);
  guest_put_u64(results + 52, end->max_rss);
  return 60;
}

static void finish(struct command *command) {
  unsigned char results[64];
  size_t length = pack_results(command, results);
  if (command->cancelled) {
    stream_done(command->base.id, SANDHOST_CANCELLED, "cancelled", NULL, 0);
  } else if (command->unbegun && !command->at_limit) {
    stream_done(command->base.id, SANDHOST_CONFLICT,
                "another command killed this one before it had begun", NULL, 0);
  } else {
    stream_done(command->base.id, SANDHOST_OK, NULL, results, length);
  }
  request_remove(&command->base);
  unlink_command(command);
  inlet_drop(command->inlet);
  outlet_release(command->outlets[0]);
  outlet_release(command->outlets[1]);
  loop_free_later(command);
  keeper_prepare();
}

static void finish_when_drained(struct command *command) {
  if (!command->ended) {
    return;
  }
  for (int i = 0; i < 2; i++) {
    if (!command->cancelled && command->outlets[i]->source.fd >= 0 &&
        command->outlets[i]->drain > 0) {
      return;
    }
  }
  finish(command);
}

/* ---- Output ---------------------------------------------------------------------------------- */

/* How many bytes may be read for the host now; 0: wait for credit or room. A cut stream needs
 * neither. */
static size_t readable(const struct outlet *outlet, int *ret_discard) {
  const struct command *command = outlet->command;
  uint64_t left = command->cap
                      ? command->cap - (outlet->total < command->cap ? outlet->total : command->cap)
                      : PIECE;
  size_t most = PIECE;
  *ret_discard = command->cap && left == 0;
  if (!*ret_discard) {
    if (command->base.credit <= 0 || !stream_has_room()) {
      return 0;
    }
    most = left < most ? (size_t)left : most;
    most = (int64_t)most > command->base.credit ? (size_t)command->base.credit : most;
  }
  if (outlet->drain >= 0 && (int64_t)most > outlet->drain) {
    most = (size_t)outlet->drain;
  }
  return most;
}

/* Reads once. 1: go on; 0: nothing more now. */
static int outlet_read(struct outlet *outlet) {
  static unsigned char bytes[PIECE];
  struct command *command = outlet->command;
  int discard = 0;
  size_t most = readable(outlet, &discard);
  if (most == 0) {
    loop_watch(&outlet->source, 0); /* credited or finished wakes it */
    return 0;
  }
  ssize_t count = read(outlet->source.fd, bytes, most);
  if (count < 0 && errno == EINTR) {
    return 1;
  }
  if (count < 0 && errno == EAGAIN) {
    outlet->drain = outlet->drain >= 0 ? 0 : -1;
    return 0;
  }
  if (count <= 0) {
    loop_drop(&outlet->source);
    return 0;
  }
  outlet->total += (uint64_t)count;
  outlet->drain -= outlet->drain >= 0 ? count : 0;
  if (!discard) {
    command->base.credit -= count;
    stream_send(GUEST_DATA, outlet->channel, command->base.id, bytes, (size_t)count);
  }
  return outlet->drain != 0;
}

static void outlet_discard(struct outlet *outlet) {
  static unsigned char bytes[PIECE];
  ssize_t count = read(outlet->source.fd, bytes, sizeof bytes);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
    loop_drop(&outlet->source);
    loop_free_later(outlet);
  }
}

static void outlet_ready(struct source *source, uint32_t events) {
  struct outlet *outlet = (struct outlet *)(void *)source;
  (void)events;
  if (!outlet->command) {
    outlet_discard(outlet);
    return;
  }
  /* A few reads, so that one command does not starve the others. */
  for (int i = 0; i < 4 && outlet->source.fd >= 0 && outlet_read(outlet); i++) {
  }
  finish_when_drained(outlet->command);
}

/* The command's own process has ended: exactly what is in the pipes now is still its output. */
static void drain(struct command *command) {
  for (int i = 0; i < 2; i++) {
    struct outlet *outlet = command->outlets[i];
    int left = 0;
    if (outlet->source.fd < 0 || ioctl(outlet->source.fd, FIONREAD, &left) < 0) {
      left = 0;
    }
    outlet->drain = left;
    while (!command->cancelled && outlet->source.fd >= 0 && outlet->drain > 0 &&
           outlet_read(outlet)) {
    }
  }
  finish_when_drained(command);
}

/* ---- Input ----------------------------------------------------------------------------------- */

static void command_data(struct request *request, const unsigned char *data, size_t length) {
  struct command *command = (struct command *)(void *)request;
  if (command->inlet) {
    inlet_data(command->inlet, data, length);
  } else {
    stream_credit(request->id, length);
  }
}

static void command_end(struct request *request) {
  struct command *command = (struct command *)(void *)request;
  if (command->inlet) {
    inlet_end(command->inlet);
  }
}

static void command_credited(struct request *request) {
  struct command *command = (struct command *)(void *)request;
  for (int i = 0; i < 2; i++) {
    struct outlet *outlet = command->outlets[i];
    if (outlet->source.fd >= 0 && outlet->drain != 0) {
      loop_watch(&outlet->source, EPOLLIN);
    }
  }
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* What must not be killed with an adopted command: keepers, and other adopted commands. */
static const struct command *being_killed;

static enum tree_place spare_kept(const struct tree_process *process) {
  int spared = keeper_is(process->pid) ||
               (process->pid != being_killed->pid && command_is_adopted(process->pid));
  return spared ? TREE_SPARED : TREE_AS_PARENT;
}

/* By marks. What has none that is known made itself one: whose it is cannot be told, so it goes too. */
static enum tree_place spare_marked(const struct tree_process *process) {
  const struct keeper *keeper = being_killed->keeper;
  if (process->mark == being_killed->mark || (keeper && process->parent == keeper->pid)) {
    return TREE_KILLED;
  }
  return keeper_is(process->pid) || mark_is_known(process->mark) ? TREE_SPARED : TREE_AS_PARENT;
}

static void kill_tree(struct command *command) {
  int looked = 0;
  being_killed = command;
  if (mark_is_needed()) {
    if (command->keeper) {
      kill(command->keeper->pid, SIGCONT);
    }
    looked = tree_kill(getpid(), spare_marked);
  } else if (command->keeper && !command->keeper->reaped) {
    looked = keeper_kill_tree(command->keeper);
  } else {
    looked =
        tree_kill(getpid(), spare_kept); /* its own tree, and whatever else has lost its keeper */
  }
  /* Else its group is gone, and the number may be another group's. */
  if (looked < 0 && command->pid > 1 && !command->ended) {
    kill(-command->pid, SIGKILL);
  }
  command->deadline = guest_now() + KEEPER_PATIENCE;
}

static void command_cancel(struct request *request) {
  struct command *command = (struct command *)(void *)request;
  if (command->cancelled) {
    return;
  }
  command->cancelled = 1;
  if (command->ended) {
    finish_when_drained(command);
  } else {
    kill_tree(command);
  }
}

void command_signal(struct request *request, int number) {
  if (request->operation == GUEST_EXECUTE && number > 0 && number < NSIG) {
    keeper_listen_all(); /* what has ended gives its number away */
    pid_t pid = ((struct command *)(void *)request)->pid;
    if (pid > 1 && !((struct command *)(void *)request)->ended) {
      kill(-pid, number);
    }
  }
}

static int64_t deadline_after(int64_t from, int64_t limit) {
  return limit == 0 ? 0 : limit > INT64_MAX - from ? INT64_MAX : from + limit;
}

void command_told(void *data, const struct keeper_message *message) {
  struct command *command = data;
  if (command->ended) {
    return;
  }
  if (message->kind == KEEPER_STARTED) {
    unsigned char payload[4];
    command->pid = message->pid;
    command->started = message->started;
    if (!command->at_limit && !command->cancelled) {
      command->deadline = deadline_after(message->started, command->limit);
    }
    guest_put_u32(payload, (uint32_t)message->pid);
    stream_send(GUEST_STARTED, 0, command->base.id, payload, sizeof payload);
    if (command->at_limit || command->cancelled) {
      kill_tree(command); /* its keeper had not come to begin it when it was killed */
    }
  } else if (message->kind == KEEPER_ENDED) {
    command->end = *message;
    command->ended = 1;
    command->deadline = 0;
    command->keeper = NULL; /* it may be another command's by the time this one is drained */
    drain(command);
  }
}

/* The end of a command whose keeper cannot tell it. usage may be NULL. */
static void end_adopted(struct command *command, int status, const struct rusage *usage) {
  int64_t now = guest_now();
  command->end = (struct keeper_message){
      .status = status, .started = command->started ? command->started : now, .ended = now};
  if (usage) {
    keeper_message_usage(&command->end, usage);
  }
  if (command->keeper) {
    command->keeper->command = NULL; /* whatever it still says is of no use */
    command->keeper = NULL;
  }
  command->ended = 1;
  command->deadline = 0;
  drain(command);
}

/* The keeper was killed. Its children are ours now, so we wait for the command ourselves. */
void command_keeper_gone(void *data, int unbegun) {
  struct command *command = data;
  command->keeper = NULL;
  if (command->ended) {
    return;
  }
  if (command->pid <= 0) { /* killed together with what it was about to start */
    command->unbegun = unbegun;
    end_adopted(command, SIGKILL, NULL);
    return;
  }
  command->adopted = 1;
  if (command->at_limit || command->cancelled) {
    kill_tree(command);
  }
}

int command_is_adopted(pid_t pid) {
  for (struct command *command = commands; command; command = command->next) {
    if (command->adopted && !command->ended && command->pid == pid) {
      return 1;
    }
  }
  return 0;
}

void command_reaped(pid_t pid, int status, const struct rusage *usage) {
  for (struct command *command = commands; command; command = command->next) {
    /* It may have ended, and be ours, before we hear that its keeper has. */
    if (command->pid == pid && !command->ended) {
      end_adopted(command, status, usage);
      return;
    }
  }
}

int64_t command_next_deadline(void) {
  int64_t next = -1;
  int64_t now = guest_now();
  for (struct command *command = commands; command; command = command->next) {
    if (command->deadline) {
      int64_t left = command->deadline > now ? command->deadline - now : 0;
      next = next < 0 || left < next ? left : next;
    }
  }
  return next;
}

/* It ended in time, and its keeper has not come to tell: what it left behind is not to be killed. It is stopped first, so
 * that it does not end between this look and the kill. Believed once, since a tracer could keep it from being waited for. */
static int has_just_ended(struct command *command) {
  int believed = command->seen_ended;
  pid_t guest = getpid();
  pid_t parent = command->keeper ? command->keeper->pid : guest;
  command->seen_ended = command->pid > 1 && tree_hold(command->pid, parent, guest) < 0;
  return command->seen_ended && !believed;
}

/* The first one whose time is up; the list may change while it is dealt with. */
static struct command *overdue(void) {
  int64_t now = guest_now();
  for (struct command *command = commands; command; command = command->next) {
    if (command->deadline && command->deadline <= now && !command->ended) {
      return command;
    }
  }
  return NULL;
}

static struct command *overdue_still(void) {
  if (!overdue()) {
    return NULL;
  }
  keeper_listen_all(); /* it may have been told just now that it has ended */
  return overdue();
}

void command_check_deadlines(void) {
  struct command *command = NULL;
  while ((command = overdue_still()) != NULL) {
    if (!command->at_limit && !command->cancelled && has_just_ended(command)) {
      if (command->keeper) {
        kill(command->keeper->pid, SIGCONT);
      }
      command->deadline = guest_now() + KEEPER_PATIENCE;
    } else if (!command->at_limit && !command->cancelled) {
      command->at_limit = 1;
      kill_tree(command);
    } else if (command->keeper && !command->keeper->reaped) {
      kill(command->keeper->pid, SIGKILL); /* SIGCHLD brings command_keeper_gone */
      command->deadline = guest_now() + KEEPER_PATIENCE;
    } else {
      end_adopted(command, SIGKILL, NULL);
    }
  }
}

uint64_t command_count(void) {
  return opened;
}

int command_any_alive(void) {
  return commands != NULL || keeper_any_busy();
}

/* ---- Opening --------------------------------------------------------------------------------- */

static struct outlet *outlet_new(struct command *command, uint8_t channel, int *ret_write_end) {
  int ends[2];
  struct outlet *outlet = calloc(1, sizeof *outlet);
  if (!outlet || pipe2(ends, O_CLOEXEC) < 0) {
    free(outlet);
    return NULL;
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE); /* as much as it may be; less is no fault */
  outlet->source = (struct source){.fd = ends[0], .ready = outlet_ready};
  outlet->command = command;
  outlet->channel = channel;
  outlet->drain = -1;
  *ret_write_end = ends[1];
  return outlet;
}

static void discard(struct command *command) {
  for (int i = 0; i < 2; i++) {
    if (command->outlets[i]) {
      loop_drop(&command->outlets[i]->source);
      free(command->outlets[i]);
    }
  }
  inlet_drop(command->inlet);
  request_remove(&command->base);
  free(command);
}

/* Pipes, a keeper, and off. 0, or -1 with errno. */
static int launch(struct command *command, const unsigned char *parameters, size_t length,
                  int has_input) {
  int fds[3] = {guest_null, -1, -1};
  int failed = -1;
  command->outlets[0] = outlet_new(command, GUEST_OUT, &fds[1]);
  command->outlets[1] = command->outlets[0] ? outlet_new(command, GUEST_ERR, &fds[2]) : NULL;
  if (has_input && command->outlets[1]) {
    fds[0] = -1;
    command->inlet = inlet_new(command->base.id, &fds[0]);
  }
  if (command->outlets[1] && fds[0] >= 0) {
    command->keeper = keeper_start(command, command->mark, parameters, length, fds);
    failed = command->keeper ? 0 : -1;
  }
  int saved = errno;
  if (fds[0] >= 0 && fds[0] != guest_null) {
    close(fds[0]);
  }
  for (int i = 1; i < 3; i++) {
    if (fds[i] >= 0) {
      close(fds[i]);
    }
  }
  errno = saved;
  return failed;
}

void command_open(uint32_t id, struct guest_reader *parameters) {
  uint32_t flags = guest_read_u32(parameters);
  int64_t limit = (int64_t)guest_read_u64(parameters);
  uint64_t cap = guest_read_u64(parameters);
  if (parameters->bad || (flags & ~SANDHOST_EXECUTE_STDIN) || limit < 0 ||
      !parameters_make_sense(*parameters)) {
    stream_done(id, SANDHOST_INVALID, "the request makes no sense", NULL, 0);
    return;
  }
  struct command *command = calloc(1, sizeof *command);
  if (!command) {
    stream_done(id, SANDHOST_NO_MEMORY, "the guest has no memory left", NULL, 0);
    return;
  }
  command->base = (struct request){.id = id,
                                   .operation = GUEST_EXECUTE,
                                   .credit = GUEST_WINDOW,
                                   .data = command_data,
                                   .end = command_end,
                                   .credited = command_credited,
                                   .cancel = command_cancel};
  command->cap = cap;
  command->limit = limit;
  command->kills = memory_kills();
  command->mark = mark_new();
  if (request_add(&command->base) < 0) {
    free(command);
    stream_done(id, SANDHOST_LIMIT, "the guest has too many requests open", NULL, 0);
    return;
  }
  if (launch(command, parameters->data, parameters->left, (flags & SANDHOST_EXECUTE_STDIN) != 0) <
      0) {
    char text[128] = "the sandbox cannot start a process: ";
    strncat(text, strerror(errno), sizeof text - strlen(text) - 1);
    discard(command);
    stream_done(id, SANDHOST_LIMIT, text, NULL, 0);
    return;
  }
  opened++;
  command->deadline = deadline_after(guest_now(), limit);
  command->next = commands;
  commands = command;
  loop_watch(&command->outlets[0]->source, EPOLLIN);
  loop_watch(&command->outlets[1]->source, EPOLLIN);
}
