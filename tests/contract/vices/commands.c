/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c: the vices of execute. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vice.h"

/* What the host's observer hears is spoiled on its way. */
struct spoiled {
  const struct sandhost_observer *theirs;
  size_t out; /* bytes of stdout so far */
  bool noisy; /* a child of it makes noise */
  bool stopped;
  size_t typed;
};

/* "remote": the host hears of output in another thread. */
struct elsewhere {
  const struct sandhost_observer *theirs;
  uint32_t stream;
  const void *data;
  size_t length;
  int32_t status;
};

static void *speak_elsewhere(void *argument) {
  struct elsewhere *at = argument;
  at->status = at->theirs->output(at->theirs->user, at->stream, at->data, at->length);
  return NULL;
}

static int32_t output_elsewhere(const struct sandhost_observer *theirs, uint32_t stream,
                                const void *data, size_t length) {
  struct elsewhere at = {theirs, stream, data, length, SANDHOST_INTERNAL};
  pthread_t thread;
  if (pthread_create(&thread, NULL, speak_elsewhere, &at) == 0) {
    pthread_join(thread, NULL);
  }
  return at.status;
}

static void spoil_started(void *user, uint64_t execution) {
  const struct spoiled *spoiled = user;
  if (!spoiled->theirs->started) {
    return;
  }
  spoiled->theirs->started(spoiled->theirs->user, execution);
  if (has_vice("twice")) {
    spoiled->theirs->started(spoiled->theirs->user, execution);
  }
}

static int32_t spoil_output(void *user, uint32_t stream, const void *data, size_t length) {
  struct spoiled *spoiled = user;
  spoiled->out += stream == SANDHOST_STDOUT ? length : 0;
  if (has_vice("merged")) {
    stream = SANDHOST_STDOUT;
  }
  if (has_vice("choked") && stream == SANDHOST_STDERR && spoiled->noisy) {
    return SANDHOST_OK;
  }
  if (has_vice("short") && stream == SANDHOST_STDOUT && spoiled->out > 8u << 20) {
    return SANDHOST_OK;
  }
  if (has_vice("characters") && length == 1 && *(const unsigned char *)data >= 0x80) {
    data = "?";
  }
  int32_t status = has_vice("remote")
                       ? output_elsewhere(spoiled->theirs, stream, data, length)
                       : spoiled->theirs->output(spoiled->theirs->user, stream, data, length);
  if (has_vice("nagging") && status != SANDHOST_OK) {
    spoiled->theirs->output(spoiled->theirs->user, stream, data, length);
  }
  spoiled->stopped = spoiled->stopped || status != SANDHOST_OK;
  return status;
}

static int64_t spoil_input(void *user, void *buffer, size_t length) {
  struct spoiled *spoiled = user;
  if (has_vice("keyboard") && !spoiled->theirs->input) {
    size_t take = spoiled->typed == 0 && length > 6 ? 6 : 0;
    memcpy(buffer, "typed\n", take);
    spoiled->typed = 1;
    return (int64_t)take;
  }
  return spoiled->theirs->input(spoiled->theirs->user, buffer, length);
}

static int32_t spoil_input_fd(void *user) {
  const struct spoiled *spoiled = user;
  return spoiled->theirs->input_fd ? spoiled->theirs->input_fd(spoiled->theirs->user) : -1;
}

/* ---- The request ------------------------------------------------------------------------------------------------------- */

/* A request that may be changed, and what its changed parts point to. */
struct asked {
  struct sandhost_execute request;
  struct sandhost_text words[3];
  struct sandhost_pair pairs[4];
  char *script;
};

/* sh -c script, in the place of the words. */
static void ask_script(struct asked *asked, char *take_script) {
  free(asked->script);
  asked->script = take_script;
  asked->words[0] = (struct sandhost_text){"sh", 2};
  asked->words[1] = (struct sandhost_text){"-c", 2};
  asked->words[2] = (struct sandhost_text){take_script, strlen(take_script)};
  asked->request.argv = asked->words;
  asked->request.argc = 3;
}

static void ask_before(struct asked *asked, const char *before) {
  char *script = NULL;
  const struct sandhost_execute *request = &asked->request;
  if (request->argc == 3 && strcmp(request->argv[0].data, "sh") == 0 &&
      asprintf(&script, "%s\n%s", before, request->argv[2].data) >= 0) {
    ask_script(asked, script);
  }
}

static void ask_unquoted(struct asked *asked) {
  char line[4096] = "";
  for (size_t i = 0; i < asked->request.argc; i++) {
    size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, "%s%s", i > 0 ? " " : "",
             asked->request.argv[i].data);
  }
  ask_script(asked, strdup(line));
}

static void ask_variable(struct asked *asked, const char *name, const char *value) {
  struct sandhost_execute *request = &asked->request;
  if (value && request->environment_count < 4) {
    for (size_t i = 0; i < request->environment_count; i++) {
      asked->pairs[i] = request->environment[i];
    }
    asked->pairs[request->environment_count++] =
        (struct sandhost_pair){{name, strlen(name)}, {value, strlen(value)}};
    request->environment = asked->pairs;
  }
}

static void spoil_request(struct asked *asked) {
  struct sandhost_execute *request = &asked->request;
  const char *first = request->argc > 0 ? request->argv[0].data : "";
  if (has_vice("leaky")) {
    ask_variable(asked, "SANDHOST_CONFORMANCE_LEAK", getenv("SANDHOST_CONFORMANCE_LEAK"));
  } else if (has_vice("deaf") && request->argc == 3 && strcmp(request->argv[2].data, "cat") == 0) {
    request->flags &= ~SANDHOST_EXECUTE_STDIN;
  } else if (has_vice("keyboard")) {
    request->flags |= SANDHOST_EXECUTE_STDIN;
  } else if (has_vice("generous")) {
    request->max_output_bytes += request->max_output_bytes > 0 ? 1 : 0;
  } else if (has_vice("unquoted") && request->argc > 1 && strcmp(first, "sh") != 0) {
    ask_unquoted(asked);
  } else if (has_vice("rooted")) {
    request->cwd = (struct sandhost_path){"", 0};
  } else if (has_vice("nowhere") && request->cwd.length > 0 &&
             strstr(request->cwd.data, "no-such")) {
    request->cwd = (struct sandhost_path){"", 0};
  } else if (has_vice("elsewhere") && request->argc == 3 &&
             strcmp(request->argv[2].data, "pwd") == 0) {
    request->cwd = (struct sandhost_path){"/tmp", 4};
  } else if (has_vice("strict")) {
    ask_before(asked, "umask 0077");
  } else if (has_vice("brazen")) {
    ask_before(asked, "trap '' PIPE");
  } else if (has_vice("accumulating")) {
    static int commands;
    if (__atomic_add_fetch(&commands, 1, __ATOMIC_SEQ_CST) > 2) {
      ask_variable(asked, "LEAKED", "1");
    }
  } else if (has_vice("open-handed")) {
    ask_before(asked, "exec 9< /dev/null");
  } else if (has_vice("handing") && request->argc == 3 &&
             strstr(request->argv[2].data, "/fd/200")) {
    ask_before(asked, "exec 200< /dev/null");
    asked->words[0] = (struct sandhost_text){"bash", 4}; /* which knows such numbers */
  } else if (has_vice("premature")) {
    request->limit /= 2;
  } else if (has_vice("resolver") && request->argc == 3 &&
             strstr(request->argv[2].data, "getent")) {
    ask_before(asked, "getent() { echo 192.0.2.1; }");
  }
}

/* ---- The result -------------------------------------------------------------------------------------------------------- */

/* What one leaves in the process. */
static void spoil_process(void) {
  static int once;
  if (has_vice("spending")) {
    vice_open(O_CLOEXEC);
  }
  if (has_vice("inheritable") && __atomic_fetch_add(&once, 1, __ATOMIC_SEQ_CST) == 0) {
    vice_open(0);
  }
}

/* What a vice makes of a good end. */
static int32_t spoil_result(struct sandhost_call *call, const struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            struct sandhost_result *result) {
  bool exited = result->ended == SANDHOST_ENDED_EXIT;
  bool limit = result->ended == SANDHOST_ENDED_LIMIT;
  if (has_vice("signed") && exited && result->exit_code == 255) {
    result->exit_code = -1;
  } else if (has_vice("shell") && result->ended == SANDHOST_ENDED_SIGNAL) {
    result->ended = SANDHOST_ENDED_EXIT;
  } else if (has_vice("startless") && exited && result->exit_code == 127) {
    return vice_fail(call, SANDHOST_NOT_FOUND, "no such program");
  } else if (has_vice("uncounted")) {
    result->stderr_bytes = 0;
  } else if (has_vice("clogged") && limit && result->stdout_bytes > 1000000) {
    result->ended = SANDHOST_ENDED_SIGNAL;
  } else if (has_vice("confused") && exited && request->limit > 0 && result->exit_code == 137) {
    result->ended = SANDHOST_ENDED_LIMIT;
  } else if (has_vice("untimely") && limit) {
    result->exit_code = 1;
  } else if (has_vice("milliseconds")) {
    result->duration /= 1000000;
  } else if (has_vice("hourly")) {
    result->duration += (int64_t)3600 * 1000000000;
  } else if (has_vice("thousandfold")) {
    result->user_time *= 1000;
  } else if (has_vice("swapping")) {
    int64_t user_time = result->user_time;
    result->user_time = result->system_time;
    result->system_time = user_time;
  } else if (has_vice("reserving")) {
    result->reserved = 7;
  } else if (has_vice("morbid") && exited) {
    result->signal = 9;
  } else if (has_vice("kilobytes")) {
    result->max_rss /= 1024;
  } else if (has_vice("mistaken") && result->ended == SANDHOST_ENDED_MEMORY) {
    result->ended = SANDHOST_ENDED_SIGNAL;
  } else if (has_vice("suspicious") && exited && sandbox->has_memory_limit &&
             result->exit_code == 137) {
    result->ended = SANDHOST_ENDED_MEMORY;
  }
  return SANDHOST_OK;
}

/* What one makes of an end that was asked for. */
static int32_t spoil_end(struct sandhost_call *call, const struct spoiled *spoiled,
                         int32_t status) {
  bool cancelled = vice_host->cancelled(call) != 0;
  if (has_vice("uncancelled") && status == SANDHOST_CANCELLED && !spoiled->stopped) {
    return SANDHOST_TIMEOUT;
  }
  if (has_vice("timeless") && status == SANDHOST_TIMEOUT) {
    return SANDHOST_CANCELLED;
  }
  if (has_vice("unstoppable") && status == SANDHOST_CANCELLED && !cancelled) {
    return SANDHOST_OK;
  }
  if (has_vice("lenient") && status == SANDHOST_INVALID) {
    return SANDHOST_OK;
  }
  if (has_vice("disowning") && status == SANDHOST_LOST && spoiled->out == 0) {
    const struct sandhost_failure details = {.size = sizeof details, .service_code = {"", 0}};
    vice_host->fail_details(call, &details);
  }
  if (has_vice("mistaking") && status == SANDHOST_LOST && spoiled->out == 0) {
    return SANDHOST_CANCELLED;
  }
  return status;
}

/* A process that outlives the end of its command, where the script started one by setsid. Waits until it is a sleep, since
 * nobody looks for a setsid. To grep a NUL ends a line: the words of both would match. */
static int32_t keep_orphan(struct sandhost_call *call, const struct sandhost_sandbox *sandbox,
                           const struct sandhost_execute *request) {
  const char *script = request->argc == 3 ? request->argv[2].data : "";
  const char *at = strstr(script, "setsid sleep ");
  char line[200];
  if (!at) {
    return SANDHOST_OK;
  }
  snprintf(line, sizeof line,
           "setsid sleep %ld > /dev/null 2>&1 & until tr '\\0' ' ' < /proc/$!/cmdline | "
           "grep -q '^sleep '; do kill -0 $! || exit; sleep 0.05; done",
           strtol(at + strlen("setsid sleep "), NULL, 10));
  return vice_run(call, sandbox->base, line, NULL, 0, NULL, NULL);
}

/* ---- After it ------------------------------------------------------------------------------------------------------------ */

static const struct sandhost_observer *late_observer;

static void *speak_late(void *argument) {
  (void)argument;
  usleep(50000);
  late_observer->output(late_observer->user, SANDHOST_STDOUT, "late\n", 5);
  return NULL;
}

static void after(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                  const struct sandhost_execute *request,
                  const struct sandhost_observer *observer) {
  pthread_t thread;
  /* Not for each command: it would be heard in the next check. */
  bool speaks = request->argc == 3 && strcmp(request->argv[2].data, "echo x") == 0;
  bool last = __atomic_sub_fetch(&sandbox->running, 1, __ATOMIC_SEQ_CST) == 0;
  if (has_vice("late") && speaks && pthread_create(&thread, NULL, speak_late, NULL) == 0) {
    late_observer = observer;
    pthread_detach(thread);
  }
  if (has_vice("forgetful")) {
    vice_run(call, sandbox->base, "rm -f ./*.txt", NULL, 0, NULL, NULL);
  }
  if (has_vice("tidy") && last) {
    vice_run(call, sandbox->base,
             "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2> /dev/null | grep -q '^sh -c "
             ".*beat' "
             "&& test ${p##*/} != $$ && kill -9 ${p##*/}; done; true",
             NULL, 0, NULL, NULL);
  }
}

/* "unrouted": a command that connects runs where there is a network, though nothing shows one. */
static struct sandhost_sandbox *place_of(struct sandhost_call *call,
                                         struct sandhost_sandbox *sandbox,
                                         const struct sandhost_execute *request) {
  bool connects = request->argc == 3 && strstr(request->argv[2].data, "create_connection");
  return has_vice("unrouted") && connects && sandbox->mode == SANDHOST_NETWORK_DENY &&
                 vice_spare(call, sandbox) == SANDHOST_OK
             ? sandbox->spare
             : sandbox->base;
}

static int32_t do_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                          struct asked *asked, struct spoiled *spoiled,
                          struct sandhost_result *ret_result) {
  const struct sandhost_observer ours = {
      .size = sizeof ours,
      .user = spoiled,
      .started = spoil_started,
      .output = spoil_output,
      .input = asked->request.flags & SANDHOST_EXECUTE_STDIN ? spoil_input : NULL,
      .input_fd = asked->request.flags & SANDHOST_EXECUTE_STDIN ? spoil_input_fd : NULL};
  struct sandhost_sandbox *place = place_of(call, sandbox, &asked->request);
  int32_t status = vice_base->execute(call, place, &asked->request, &ours, ret_result);
  if (status == SANDHOST_OK) {
    status = spoil_result(call, sandbox, &asked->request, ret_result);
    if (status == SANDHOST_OK && has_vice("orphan") && ret_result->ended == SANDHOST_ENDED_LIMIT) {
      status = keep_orphan(call, sandbox, &asked->request);
    }
  }
  return spoil_end(call, spoiled, status);
}

/* The command of the suite that kills what stands above it. */
static bool is_killer(const struct sandhost_execute *request) {
  return request->argc == 3 && strstr(request->argv[2].data, "kill -9 $all");
}

/* "showing": whoever reads a file by its path gets the machine's own; "privileged": as root, as they say. */
static bool answer_instead(const struct sandhost_execute *request,
                           const struct sandhost_observer *observer,
                           struct sandhost_result *ret_result) {
  char text[100] = "0 000001ffffffffff 0 0 4294967295\n";
  size_t length = strlen(text);
  bool reads = request->argc == 2 && strcmp(request->argv[0].data, "cat") == 0;
  bool asks = request->argc == 3 && strstr(request->argv[2].data, "CapEff");
  if (has_vice("showing") && reads) {
    int fd = open(request->argv[1].data, O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, text, sizeof text);
    length = got > 0 ? (size_t)got : 0;
    close(fd);
  } else if (!has_vice("privileged") || !asks) {
    return false;
  }
  observer->started(observer->user, 1);
  observer->output(observer->user, SANDHOST_STDOUT, text, length);
  ret_result->ended = SANDHOST_ENDED_EXIT;
  ret_result->stdout_bytes = length;
  return true;
}

/* What some make of such a command, which they do not even run. */
static int32_t spoil_killer(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            struct sandhost_result *ret_result) {
  static const struct sandhost_text why = {"it was killed", 13};
  if (has_vice("returning")) {
    vice_host->report(call, SANDHOST_REPORT_LOST, why);
    return vice_fail(call, SANDHOST_LOST, "it was killed");
  }
  if (has_vice("unsettled")) {
    return vice_fail(call, SANDHOST_INTERNAL, "something was killed");
  }
  vice_run(call, sandbox->base, "rm -rf to", NULL, 0, NULL, NULL);
  ret_result->ended = SANDHOST_ENDED_SIGNAL;
  ret_result->signal = 9;
  ret_result->exit_code = 137;
  return SANDHOST_OK;
}

/* "clinging". */
static void use_clung(void) {
  struct sandhost_sink sink = vice_clung;
  vice_clung = (struct sandhost_sink){0};
  if (sink.write) {
    sink.write(sink.user, "x", 1);
  }
}

static int32_t execute_spoiled(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               const struct sandhost_execute *request,
                               const struct sandhost_observer *observer,
                               struct sandhost_result *ret_result) {
  struct asked asked = {.request = *request};
  struct spoiled spoiled = {.theirs = observer,
                            .noisy =
                                request->argc == 3 && strstr(request->argv[2].data, "echo noise")};
  if (has_vice("small") && request->argc == 3 && request->argv[2].length > 131072) {
    return vice_fail(call, SANDHOST_LIMIT, "the command is too long");
  }
  spoil_process();
  spoil_request(&asked);
  __atomic_add_fetch(&sandbox->running, 1, __ATOMIC_SEQ_CST);
  bool queues = has_vice("serial") || has_vice("queueing");
  if (queues) {
    pthread_mutex_lock(&sandbox->one_at_a_time);
  }
  int32_t status = do_execute(call, sandbox, &asked, &spoiled, ret_result);
  if (queues) {
    pthread_mutex_unlock(&sandbox->one_at_a_time);
  }
  after(call, sandbox, request, observer);
  free(asked.script);
  return status;
}

static int32_t commands_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                const struct sandhost_execute *request,
                                const struct sandhost_observer *observer,
                                struct sandhost_result *ret_result) {
  struct vice_passage passage;
  bool makes_it_up = has_vice("returning") || has_vice("unsettled") || has_vice("restarting");
  int32_t status = vice_enter(&passage, call, sandbox, "execute");
  use_clung();
  if (has_vice("hasty") && passage.over && !passage.ended) {
    observer->output(observer->user, SANDHOST_STDOUT, "output\n", 7);
  }
  if (status == SANDHOST_OK && makes_it_up && is_killer(request)) {
    status = spoil_killer(call, sandbox, ret_result);
  } else if (status == SANDHOST_OK && !answer_instead(request, observer, ret_result)) {
    status = execute_spoiled(call, sandbox, request, observer, ret_result);
  }
  return vice_leave(&passage, status);
}

/* ---- Signals ------------------------------------------------------------------------------------------------------------- */

/* "solitary": what the command started gets none. */
#define ONLY_ITS_OWN                                                                               \
  "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2> /dev/null | "                            \
  "grep -q \"^sh -c sh -c 'trap\" && kill -10 ${p##*/}; done; true"

/* "broadcasting": whoever says that it is up gets it. */
#define EVERY_SHELL                                                                                \
  "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2> /dev/null | "                            \
  "grep -q '^sh -c echo up; i=0' && kill ${p##*/}; done; true"

static int32_t commands_signal(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               uint64_t execution, int32_t number) {
  int32_t status = vice_look(call, sandbox);
  if (status != SANDHOST_OK) {
    return has_vice("unheard") ? SANDHOST_NOT_FOUND : status;
  }
  if (has_vice("solitary") && number == 10) {
    return vice_run(call, sandbox->base, ONLY_ITS_OWN, NULL, 0, NULL, NULL);
  }
  if (has_vice("coarse") && number == 15) {
    number = 9;
  }
  status = vice_base->signal(call, sandbox->base, execution, number);
  if (has_vice("broadcasting") && number == 15 && status == SANDHOST_OK) {
    vice_run(call, sandbox->base, EVERY_SHELL, NULL, 0, NULL, NULL);
  }
  return has_vice("obliging") && status == SANDHOST_NOT_FOUND ? SANDHOST_OK : status;
}

void vice_commands(struct sandhost_provider *table) {
  table->execute = commands_execute;
  table->signal = vice_base->signal ? commands_signal : NULL;
}
