/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c: sandhost session, a run of many commands for a program.
 *
 * In: one JSON object a line, {"id", "command", "timeout"}. Out: one a line, the id with the observation, in the
 * order in which commands end; with --stream also {"id", "stream", "data"} as output appears. Several commands may
 * be in flight; the end of input ends the run when the last has ended, and so does input that cannot be read.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "run/resume.h"

#define MAX_LINE (16u << 20)
#define MAX_IN_FLIGHT 64

typedef struct {
  CliRun run;   /* first */
  char *run_id; /* also while the run ends */
  gboolean stream;
  pthread_mutex_t writing;  /* guards stdout and gone */
  gboolean gone;            /* nobody reads what we write */
  Cancel *paused;           /* raised when a command met an ask: nothing more is read */
  pthread_mutex_t counting; /* guards in_flight */
  pthread_cond_t counted;
  guint in_flight;
} Server;

typedef struct {
  Server *server;
  JsonObject *id; /* any JSON value, echoed; NULL: null */
  char *command;
  gint64 timeout;
  char *tool_call_id;  /* of a call that an earlier segment left; NULL: a new one */
  GByteArray *tail[2]; /* an incomplete last character of stdout and stderr */
} Job;

/* ---- Out ------------------------------------------------------------------------------------------------------ */

static gboolean put_line(Server *server, JsonObject *object) {
  pthread_mutex_lock(&server->writing);
  if (!server->gone && !json_write_line(object, cli_put_stdout, NULL)) {
    server->gone = TRUE;
    cancel_raise(server->run.cancel);
  }
  gboolean ok = !server->gone;
  pthread_mutex_unlock(&server->writing);
  return ok;
}

/* The number of bytes at the end that begin a character without ending it. */
static gsize incomplete(const guint8 *data, gsize length) {
  for (gsize back = 1; back <= 3 && back <= length; back++) {
    guint8 byte = data[length - back];
    if ((byte & 0xc0) == 0x80) {
      continue;
    }
    gsize wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > back ? back : 0;
  }
  return 0;
}

static gboolean put_output(Job *job, guint32 stream, const void *data, gsize length,
                           gboolean last) {
  GByteArray *tail = job->tail[stream == SANDHOST_STDERR];
  g_byte_array_append(tail, data, (guint)length);
  gsize held = last ? 0 : incomplete(tail->data, tail->len);
  gsize whole = tail->len - held;
  if (whole == 0) {
    return TRUE;
  }
  g_autoptr(JsonObject) line = json_object_new_object();
  json_add_take(line, "id", json_object_get(job->id));
  json_add_text(line, "stream", stream == SANDHOST_STDERR ? "stderr" : "stdout");
  json_add_take(line, "data", json_from_bytes((const char *)tail->data, whole));
  g_byte_array_remove_range(tail, 0, (guint)whole);
  return put_line(job->server, line);
}

static void on_started(void *user, guint64 execution) {
  const Job *job = user;
  (void)execution;
  progress_end(&job->server->run.progress);
}

static gboolean on_output(void *user, guint32 stream, const void *data, gsize length) {
  return put_output(user, stream, data, length, FALSE);
}

/* A sandbox may live on. The server's first member is the run. */
static void put_warning(CliRun *run, const char *text) {
  Server *server = (Server *)run;
  g_autoptr(JsonObject) line = json_object_new_object();
  json_add_text(line, "run_id", server->run_id);
  json_add_text(line, "notice", text);
  put_line(server, line);
}

static void put_outcome(Server *server, JsonObject *id, const ExecuteOutcome *outcome) {
  g_autoptr(JsonObject) line = json_object_new_object();
  json_add_take(line, "id", json_object_get(id));
  json_add_text(line, "run_id", run_id(server->run.run));
  json_object_object_foreach(outcome->observation, key, value) {
    json_add_take(line, key, json_object_get(value));
  }
  put_line(server, line);
}

/* ---- Work ------------------------------------------------------------------------------------------------------- */

static void job_free(Job *job) {
  json_object_put(job->id);
  g_byte_array_unref(job->tail[0]);
  g_byte_array_unref(job->tail[1]);
  g_free(job->command);
  g_free(job->tool_call_id);
  g_free(job);
}

/* No more commands are begun. */
static gboolean stops(Run *run) {
  g_autofree char *exhausted = run_exhausted(run);
  return exhausted || run_is_paused(run);
}

static gpointer work(gpointer data) {
  Job *job = data;
  Server *server = job->server;
  const ExecuteCall call = {
      .command = job->command,
      .timeout = job->timeout,
      .tool_call_id = job->tool_call_id,
      .tag = job->id,
      .user = job,
      .started = on_started,
      .output = server->stream ? on_output : NULL,
  };
  ExecuteOutcome outcome;
  execute_run(server->run.run, &call, &outcome);
  progress_end(&server->run.progress);
  if (server->stream) {
    put_output(job, SANDHOST_STDOUT, NULL, 0, TRUE);
    put_output(job, SANDHOST_STDERR, NULL, 0, TRUE);
  }
  put_outcome(server, job->id, &outcome);
  if (stops(server->run.run)) {
    cancel_raise(server->paused);
  }
  execute_outcome_clear(&outcome);
  job_free(job);

  pthread_mutex_lock(&server->counting);
  server->in_flight--;
  pthread_cond_broadcast(&server->counted);
  pthread_mutex_unlock(&server->counting);
  return NULL;
}

/* Waits until fewer than most commands are in flight. */
static void wait_below(Server *server, guint most) {
  pthread_mutex_lock(&server->counting);
  while (server->in_flight >= most) {
    pthread_cond_wait(&server->counted, &server->counting);
  }
  pthread_mutex_unlock(&server->counting);
}

/* ---- In ---------------------------------------------------------------------------------------------------------- */

static void reject(Server *server, JsonObject *id, JsonObject *arguments, const char *message) {
  ExecuteOutcome outcome;
  execute_reject(server->run.run, arguments, message, &outcome);
  put_outcome(server, id, &outcome);
  execute_outcome_clear(&outcome);
}

/* What is wrong with a request, or NULL. */
static char *fault_of(const Server *server, JsonObject *object) {
  gint64 most = server->run.harness->config->tool_call_timeout;
  JsonObject *command = json_get(object, "command");
  JsonObject *timeout = json_get(object, "timeout");
  json_object_object_foreach(object, key, value) {
    (void)value;
    if (strcmp(key, "id") != 0 && strcmp(key, "command") != 0 && strcmp(key, "timeout") != 0) {
      return g_strdup_printf("unknown key '%s'; a request has id, command and timeout", key);
    }
  }
  if (!json_object_is_type(command, json_type_string)) {
    return g_strdup("command must be a string");
  }
  if (timeout &&
      (!json_object_is_type(timeout, json_type_int) || json_object_get_int64(timeout) < 1)) {
    return g_strdup_printf(
        "timeout must be a whole number of seconds between 1 and %" G_GINT64_FORMAT, most);
  }
  return NULL;
}

static void start_job(Server *server, JsonObject *id, JsonObject *arguments,
                      const char *tool_call_id) {
  wait_below(server, MAX_IN_FLIGHT);
  Job *job = g_new0(Job, 1);
  job->server = server;
  if (id) { /* a copy: json-c counts references without atomics */
    json_object_deep_copy(id, &job->id, NULL);
  }
  job->command = g_strdup(json_get_text(arguments, "command"));
  job->timeout = json_get_int(arguments, "timeout", 0);
  job->tool_call_id = g_strdup(tool_call_id);
  job->tail[0] = g_byte_array_new();
  job->tail[1] = g_byte_array_new();
  pthread_mutex_lock(&server->counting);
  server->in_flight++;
  pthread_mutex_unlock(&server->counting);
  GThread *thread = g_thread_try_new("command", work, job, NULL);
  if (thread) {
    g_thread_unref(thread);
  } else { /* no room for one more: this one runs here, and nothing is read meanwhile */
    work(job);
  }
}

static void take_line(Server *server, const char *text, gsize length) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = json_parse("the request", text, length, &error);
  if (error || !json_object_is_type(object, json_type_object)) {
    reject(server, NULL, NULL, error ? error->message : "the request must be a JSON object");
    return;
  }
  JsonObject *id = json_get(object, "id");
  g_autofree char *fault = fault_of(server, object);
  if (fault) {
    reject(server, id, object, fault);
    return;
  }
  start_job(server, id, object, NULL);
}

static gboolean is_blank(const char *text, gsize length) {
  for (gsize i = 0; i < length; i++) {
    if (!g_ascii_isspace(text[i])) {
      return FALSE;
    }
  }
  return TRUE;
}

/* Hands every whole line of the buffer on, and keeps the rest. */
static void take_lines(Server *server, GByteArray *buffer) {
  gsize from = 0;
  const guint8 *end = NULL;
  while ((end = memchr(buffer->data + from, '\n', buffer->len - from)) != NULL) {
    gsize length = (gsize)(end - buffer->data) - from;
    if (!is_blank((const char *)buffer->data + from, length)) {
      take_line(server, (const char *)buffer->data + from, length);
    }
    from += length + 1;
  }
  if (from > 0) {
    g_byte_array_remove_range(buffer, 0, (guint)from);
  }
}

/* One read's worth of stdin into the buffer. FALSE at the end, or when the run is cancelled. */
static gboolean take_bytes(Server *server, GByteArray *buffer) {
  struct pollfd watched[] = {
      {.fd = STDIN_FILENO, .events = POLLIN},
      {.fd = cancel_fd(server->run.cancel), .events = POLLIN},
      {.fd = cancel_fd(server->paused), .events = POLLIN},
  };
  if (poll(watched, G_N_ELEMENTS(watched), -1) < 0) {
    return errno == EINTR;
  }
  if (watched[1].revents || watched[2].revents) {
    return FALSE;
  }
  guint8 chunk[65536];
  ssize_t count = input_read(chunk, sizeof chunk);
  if (count > 0) {
    g_byte_array_append(buffer, chunk, (guint)count);
  }
  return input_goes_on(count);
}

/* Drops the rest of a line that is too long. TRUE when the next one begins in the buffer. */
static gboolean skip_line(GByteArray *buffer) {
  const guint8 *end = buffer->len > 0 ? memchr(buffer->data, '\n', buffer->len) : NULL;
  g_byte_array_remove_range(buffer, 0, end ? (guint)(end - buffer->data) + 1 : buffer->len);
  return end != NULL;
}

static void serve(Server *server) {
  g_autoptr(GByteArray) buffer = g_byte_array_new();
  gboolean skipping = FALSE;
  while (take_bytes(server, buffer)) {
    if (skipping && !skip_line(buffer)) {
      continue;
    }
    skipping = FALSE;
    take_lines(server, buffer);
    if (buffer->len > MAX_LINE) {
      reject(server, NULL, NULL, "the request is longer than 16 MiB");
      skipping = !skip_line(buffer);
    }
  }
  g_autofree char *fault = input_fault(); /* then nobody knows how the last line goes on */
  if (!skipping && !fault && !cancel_raised(server->run.cancel) && !cancel_raised(server->paused) &&
      !is_blank((const char *)buffer->data, buffer->len)) {
    take_line(server, (const char *)buffer->data,
              buffer->len); /* a last line without its newline */
  }
  wait_below(server, 1);
}

/* ---- The run ---------------------------------------------------------------------------------------------------- */

/* A call that was never begun, and of which the record has not all. */
static void put_withheld(Server *server, const ResumeCall *call) {
  ExecuteOutcome outcome;
  execute_withheld(server->run.run, call->tool_call_id, call->arguments, RESUME_WITHHELD_TEXT,
                   &outcome);
  put_outcome(server, call->tag, &outcome);
  execute_outcome_clear(&outcome);
}

/* What an earlier segment left: told as unknown, or run before anything is read. FALSE: the record cannot be read. */
static gboolean go_on(Server *server, const char *id) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) recorded = NULL;
  g_autoptr(GPtrArray) calls = resume_find_calls(server->run.record, id, &recorded, &error);
  if (!calls) {
    cli_complain("%s", error->message);
    return FALSE;
  }
  if (resume_lost_sandbox(recorded)) {
    g_autoptr(JsonObject) line = json_object_new_object();
    json_add_text(line, "run_id", id);
    json_add_text(line, "notice", RESUME_RESET_TEXT);
    put_line(server, line);
  }
  for (guint i = 0; i < calls->len; i++) {
    const ResumeCall *call = g_ptr_array_index(calls, i);
    if (call->remains == REMAINS_AGAIN && call->withheld) {
      put_withheld(server, call);
    } else if (call->remains == REMAINS_AGAIN) {
      start_job(server, call->tag, call->arguments, call->tool_call_id);
    } else if (call->remains == REMAINS_UNKNOWN) {
      ExecuteOutcome outcome;
      execute_unknown(server->run.run, call->tool_call_id, call->arguments, call->reported,
                      &outcome);
      put_outcome(server, call->tag, &outcome);
      execute_outcome_clear(&outcome);
    }
  }
  return TRUE;
}

static int session_run(const CliRunOptions *options, const CliPurpose *purpose, gboolean stream) {
  Server server = {.stream = stream};
  int code = EXIT_SANDHOST;
  if (!input_is_readable() || !cli_run_begin(&server.run, options, purpose, FALSE, &code)) {
    return code;
  }
  pthread_mutex_init(&server.writing, NULL);
  pthread_mutex_init(&server.counting, NULL);
  pthread_cond_init(&server.counted, NULL);
  server.paused = cancel_new();
  server.run_id = g_strdup(run_id(server.run.run));
  gboolean readable = !purpose->resume || go_on(&server, purpose->resume);
  wait_below(&server, 1); /* what was left comes before what is new */
  if (readable && !stops(server.run.run)) {
    serve(&server);
  }
  wait_below(&server, 1);

  gboolean cancelled = cancel_raised(server.run.cancel);
  if (run_is_interrupted(server.run.run)) {
    cli_complain("not every command had begun; sandhost resume %s goes on", run_id(server.run.run));
  }
  gboolean paused = run_is_paused(server.run.run);
  g_autofree char *exhausted = run_exhausted(server.run.run);
  g_autofree char *fault = input_fault();
  if (fault) {
    cli_complain("%s", fault);
  }
  gboolean finished = cli_run_finish(&server.run,
                                     !readable   ? "interrupted"
                                     : cancelled ? "cancelled"
                                     : paused    ? "awaiting_approval"
                                     : fault     ? "failed"
                                                 : "completed",
                                     paused || cancelled ? NULL : fault);
  cli_run_clear(&server.run);
  cancel_unref(server.paused);
  g_free(server.run_id);
  pthread_mutex_destroy(&server.writing);
  pthread_mutex_destroy(&server.counting);
  pthread_cond_destroy(&server.counted);
  if (cancelled && !cli_caught_signal() && cli_stdout_fault()) {
    return EXIT_SANDHOST;
  }
  if (cancelled) {
    return 128 + (cli_caught_signal() ? cli_caught_signal() : SIGPIPE);
  }
  if (exhausted && finished) {
    return EXIT_DENIED;
  }
  if (paused && finished) {
    return EXIT_WAITING;
  }
  return finished && readable && !fault ? 0 : EXIT_SANDHOST;
}

int cli_session_resume(const CliRunOptions *options, const char *run_id, gboolean stream) {
  const CliPurpose purpose = {.resume = run_id, .warned = put_warning};
  return session_run(options, &purpose, stream);
}

static int session_begin(const CliRunOptions *options, gboolean stream) {
  g_autoptr(JsonObject) request = cli_request_new(options, "session");
  json_add_bool(request, "stream", stream);
  const CliPurpose purpose = {.request = request, .warned = put_warning};
  return session_run(options, &purpose, stream);
}

int cli_session(int argc, char **argv) {
  CliRunOptions options = {0};
  gboolean stream = FALSE;
  const GOptionEntry entries[] = {
      CLI_RUN_OPTIONS(options),
      {"stream", 's', 0, G_OPTION_ARG_NONE, &stream, "Also print output as it appears", NULL},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse(&argc, &argv, NULL,
                "Runs many commands in one sandbox. Reads {\"id\", \"command\", \"timeout\"} as "
                "JSON lines; prints "
                "each result as a JSON line. The end of input ends the run.",
                entries)) {
    if (argc > 1) {
      cli_complain("session takes no argument '%s'; commands come as JSON lines on stdin", argv[1]);
    } else {
      code = session_begin(&options, stream);
    }
  }
  cli_run_options_clear(&options);
  return code;
}
