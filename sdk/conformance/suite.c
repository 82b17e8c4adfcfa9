/* SPDX-License-Identifier: Apache-2.0 */
/* suite.c: a host that is only as large as the contract, and the helpers of the checks. */
#include "suite.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "interpose.h"

gint64 suite_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (gint64)now.tv_sec * SECOND + now.tv_nsec;
}

gboolean wrong(Verdict *verdict, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  if (verdict->wrong) {
    g_free(text);
  } else {
    verdict->wrong = text;
  }
  return FALSE;
}

void skipped(Verdict *verdict, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_free(verdict->skipped);
  verdict->skipped = g_strdup_vprintf(format, arguments);
  va_end(arguments);
}

void untried(Verdict *verdict, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_free(verdict->untried);
  verdict->untried = g_strdup_vprintf(format, arguments);
  va_end(arguments);
}

void noted(Verdict *verdict, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_free(verdict->noted);
  verdict->noted = g_strdup_vprintf(format, arguments);
  va_end(arguments);
}

struct sandhost_path as_path(const char *text) {
  return (struct sandhost_path){.data = text, .length = strlen(text)};
}

struct sandhost_text as_text(const char *text) {
  return (struct sandhost_text){.data = text, .length = strlen(text)};
}

const char *status_name(gint32 status) {
  static const struct {
    gint32 status;
    const char *name;
  } NAMES[] = {{SANDHOST_OK, "OK"},
               {SANDHOST_INVALID, "INVALID"},
               {SANDHOST_UNSUPPORTED, "UNSUPPORTED"},
               {SANDHOST_UNAUTHENTICATED, "UNAUTHENTICATED"},
               {SANDHOST_DENIED, "DENIED"},
               {SANDHOST_NOT_FOUND, "NOT_FOUND"},
               {SANDHOST_EXISTS, "EXISTS"},
               {SANDHOST_CONFLICT, "CONFLICT"},
               {SANDHOST_LIMIT, "LIMIT"},
               {SANDHOST_RATE_LIMITED, "RATE_LIMITED"},
               {SANDHOST_UNAVAILABLE, "UNAVAILABLE"},
               {SANDHOST_TIMEOUT, "TIMEOUT"},
               {SANDHOST_CANCELLED, "CANCELLED"},
               {SANDHOST_LOST, "LOST"},
               {SANDHOST_PROTOCOL, "PROTOCOL"},
               {SANDHOST_NO_MEMORY, "NO_MEMORY"},
               {SANDHOST_INTERNAL, "INTERNAL"}};
  for (gsize i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    if (NAMES[i].status == status) {
      return NAMES[i].name;
    }
  }
  return "an unknown status";
}

/* ---- The host's table ---------------------------------------------------------------------------------------- */

void call_init(struct sandhost_call *call, gint64 seconds) {
  memset(call, 0, sizeof *call);
  call->deadline = suite_now() + seconds * SECOND;
  call->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  pthread_mutex_init(&call->lock, NULL);
}

/* A call that a plugin may still use when it must not any more: its memory and its observer's stay. */
static struct sandhost_call *call_new_kept(gint64 seconds, gpointer watch) {
  static GPtrArray *kept;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  struct sandhost_call *call = g_new0(struct sandhost_call, 1);
  call_init(call, seconds);
  pthread_mutex_lock(&lock);
  if (!kept) {
    kept = g_ptr_array_new();
  }
  g_ptr_array_add(kept, call);
  g_ptr_array_add(kept, watch);
  pthread_mutex_unlock(&lock);
  return call;
}

static gint late_count;

guint late_calls(void) {
  return (guint)g_atomic_int_get(&late_count);
}

/* With the lock. */
static gboolean is_late(const struct sandhost_call *call) {
  if (call->over) {
    g_atomic_int_inc(&late_count);
  }
  return call->over;
}

void call_cancel(struct sandhost_call *call) {
  g_atomic_int_set(&call->cancelled, 1);
  eventfd_write(call->cancel, 1);
}

static void call_end_kept(struct sandhost_call *call) {
  call_cancel(call);
  pthread_mutex_lock(&call->lock);
  call->over = TRUE;
  close(call->cancel);
  call->cancel = -1;
  pthread_mutex_unlock(&call->lock);
}

void call_clear(struct sandhost_call *call) {
  close(call->cancel);
  pthread_mutex_destroy(&call->lock);
  g_free(call->message);
  g_free(call->ref);
  g_free(call->lost);
  g_free(call->snapshot);
}

static int64_t host_deadline(const struct sandhost_call *call) {
  return call->deadline;
}

static int32_t host_cancelled(const struct sandhost_call *call) {
  return __atomic_load_n(&call->cancelled, __ATOMIC_ACQUIRE) != 0 || suite_now() >= call->deadline;
}

static int32_t host_cancel_fd(const struct sandhost_call *call) {
  return call->cancel;
}

static int32_t host_wait(const struct sandhost_call *call, int32_t fd, int32_t events,
                         int64_t duration) {
  if (call->over) {
    return SANDHOST_CANCELLED;
  }
  gint64 until = duration < 0 || duration > call->deadline - suite_now() ? call->deadline
                                                                         : suite_now() + duration;
  for (;;) {
    struct pollfd watched[] = {{.fd = call->cancel, .events = POLLIN},
                               {.fd = fd, .events = (short)events}};
    gint64 left = until - suite_now();
    struct timespec wait = {.tv_sec = MAX(left, 0) / SECOND, .tv_nsec = MAX(left, 0) % SECOND};
    int ready = ppoll(watched, fd >= 0 ? 2 : 1, &wait, NULL);
    if (ready > 0) {
      return watched[0].revents ? SANDHOST_CANCELLED : SANDHOST_OK;
    }
    if (ready == 0) {
      return SANDHOST_TIMEOUT;
    }
  }
}

#define MAX_MESSAGE 4096u /* what is longer is cut, as provider.h says */

static int32_t host_fail(struct sandhost_call *call, int32_t status, struct sandhost_text message) {
  pthread_mutex_lock(&call->lock);
  if (!is_late(call) && call->fails++ == 0) {
    call->failed = status;
    call->message = g_strndup(message.data ? message.data : "", MIN(message.length, MAX_MESSAGE));
  }
  pthread_mutex_unlock(&call->lock);
  return status;
}

static void host_fail_details(struct sandhost_call *call, const struct sandhost_failure *details) {
  pthread_mutex_lock(&call->lock);
  if (!is_late(call)) {
    call->may_have_happened = details->may_have_happened != 0;
    call->did_not_happen = !call->may_have_happened;
  }
  pthread_mutex_unlock(&call->lock);
}

static void host_report(struct sandhost_call *call, uint32_t kind, struct sandhost_text value) {
  pthread_mutex_lock(&call->lock);
  char **place = kind == SANDHOST_REPORT_REF        ? &call->ref
                 : kind == SANDHOST_REPORT_LOST     ? &call->lost
                 : kind == SANDHOST_REPORT_SNAPSHOT ? &call->snapshot
                                                    : NULL;
  if (!is_late(call) && place) {
    g_free(*place);
    *place = g_strndup(value.data, value.length);
  } else if (kind > SANDHOST_REPORT_LOWERED && value.length > 0 &&
             call->lowered_count < G_N_ELEMENTS(call->lowered)) {
    call->lowered[call->lowered_count++] = kind - SANDHOST_REPORT_LOWERED;
  }
  pthread_mutex_unlock(&call->lock);
}

static char *first_bad_line; /* of progress */
static pthread_mutex_t bad_line_lock = PTHREAD_MUTEX_INITIALIZER;

char *bad_progress(void) {
  pthread_mutex_lock(&bad_line_lock);
  char *line = g_strdup(first_bad_line);
  pthread_mutex_unlock(&bad_line_lock);
  return line;
}

static gboolean is_one_line(struct sandhost_text line) {
  g_autofree char *copy = g_strndup(line.data, line.length);
  gboolean is_line = g_utf8_validate_len(line.data, line.length, NULL);
  for (char *at = copy; is_line && *at; at = g_utf8_next_char(at)) {
    is_line = !g_unichar_iscntrl(g_utf8_get_char(at));
  }
  return is_line;
}

static void host_progress(struct sandhost_call *call, struct sandhost_text line) {
  (void)call;
  if (line.length > 0 && !is_one_line(line)) {
    pthread_mutex_lock(&bad_line_lock);
    first_bad_line = first_bad_line ? first_bad_line : g_strndup(line.data, line.length);
    pthread_mutex_unlock(&bad_line_lock);
  }
}

const struct sandhost_host SUITE_HOST = {
    .size = sizeof(struct sandhost_host),
    .minor = SANDHOST_ABI_MINOR,
    .version = {.data = "conformance", .length = 11},
    .deadline = host_deadline,
    .cancelled = host_cancelled,
    .cancel_fd = host_cancel_fd,
    .wait = host_wait,
    .fail = host_fail,
    .fail_details = host_fail_details,
    .report = host_report,
    .progress = host_progress,
};

/* ---- Sandboxes -------------------------------------------------------------------------------------------------- */

gboolean box_open(Box *box, Subject *subject, guint32 network, Verdict *verdict) {
  return box_open_from(box, subject, network, NULL, verdict);
}

guint32 subject_level(Subject *subject, guint32 setting) {
  const struct sandhost_provider *table = subject->table;
  struct sandhost_call call;
  guint32 level = table->enforces_count == 0 ? SANDHOST_LEVEL_ENFORCED : SANDHOST_LEVEL_NONE;
  g_autofree guint32 *levels = g_new0(guint32, table->enforces_count + 1);
  for (gsize i = 0; i < table->enforces_count; i++) {
    levels[i] = table->enforces[i].level;
  }
  if (table->enforces_now) {
    call_init(&call, 60);
    table->enforces_now(&call, subject->instance, levels, table->enforces_count);
    call_clear(&call);
  }
  for (gsize i = 0; i < table->enforces_count; i++) {
    level = table->enforces[i].setting == setting ? levels[i] : level;
  }
  return level;
}

void make_request_init(MakeRequest *request, Subject *subject, guint32 network) {
  static gint number;
  *request = (MakeRequest){0};
  g_snprintf(request->key, sizeof request->key, "sandbox_conformance%d_%d", (int)getpid(),
             g_atomic_int_add(&number, 1));
  request->network = (struct sandhost_network){
      .size = sizeof request->network,
      .mode = subject->keeps_network_off ? network : SANDHOST_NETWORK_ALLOW};
  request->environment[0] =
      (struct sandhost_pair){as_text("CONFORMANCE"), as_text("from the manifest")};
  request->create = (struct sandhost_create){
      .size = sizeof request->create,
      .key = as_text(request->key),
      .run_id = as_text(subject->run_id),
      .working_dir = as_path(subject->working_dir),
      .network = &request->network,
      .environment = request->environment,
      .environment_count = G_N_ELEMENTS(request->environment),
  };
}

gboolean box_open_as(Box *box, Subject *subject, const MakeRequest *request, Verdict *verdict) {
  struct sandhost_call call;
  *box = (Box){.subject = subject};
  call_init(&call, 300);
  gint32 status = subject->table->create(&call, subject->instance, &request->create, &box->handle);
  if (status != SANDHOST_OK) {
    wrong(verdict, "create failed with %s: %s", status_name(status),
          call.message ? call.message : "no message");
    box->handle = NULL;
  } else if (!box->handle) {
    wrong(verdict, "create returned OK and no sandbox");
  }
  box->ref = g_strdup(call.ref);
  call_clear(&call);
  return box->handle != NULL;
}

gboolean box_open_from(Box *box, Subject *subject, guint32 network, const char *snapshot,
                       Verdict *verdict) {
  MakeRequest request;
  make_request_init(&request, subject, network);
  request.create.snapshot = as_text(snapshot ? snapshot : "");
  return box_open_as(box, subject, &request, verdict);
}

gboolean box_close(Box *box, Verdict *verdict) {
  struct sandhost_call call;
  call_init(&call, 30);
  gint32 status = box->subject->table->terminate(&call, box->handle);
  if (status != SANDHOST_OK) {
    wrong(verdict, "terminate failed with %s: %s", status_name(status),
          call.message ? call.message : "no message");
  }
  call_clear(&call);
  box->subject->table->release(box->handle);
  g_clear_pointer(&box->ref, g_free);
  box->handle = NULL;
  return status == SANDHOST_OK;
}

char *below(const Box *box, const char *name) {
  return g_build_filename(box->subject->working_dir, name, NULL);
}

/* ---- Commands ----------------------------------------------------------------------------------------------------- */

/* Kept as the call is: an observer that is called too late says so, and touches nothing else. */
typedef struct {
  Ran *ran;
  RunOptions options;
  struct sandhost_call *call;
  gsize given;
  gsize seen;
  int input_fd; /* readable when there is input to take */
  GThread *canceller;
  struct sandhost_observer observer;
} Watch;

/* With the lock of the call, until watch_leave. */
static gboolean watch_enter(Watch *watch) {
  pthread_mutex_lock(&watch->call->lock);
  if (is_late(watch->call)) {
    pthread_mutex_unlock(&watch->call->lock);
    return FALSE;
  }
  return TRUE;
}

static void watch_leave(Watch *watch) {
  pthread_mutex_unlock(&watch->call->lock);
}

static gpointer cancel_later(gpointer data) {
  Watch *watch = data;
  g_usleep((gulong)(watch->options.cancel_after / 1000));
  call_cancel(watch->call);
  return NULL;
}

static void on_started(void *user, uint64_t execution) {
  Watch *watch = user;
  if (!watch_enter(watch)) {
    return;
  }
  watch->ran->starts++;
  if (watch->options.cancel_after && !watch->canceller) {
    watch->canceller = suite_thread_new("cancel", cancel_later, watch);
  }
  watch_leave(watch);
  if (watch->options.on_started) {
    watch->options.on_started(watch->options.user, execution);
  }
}

static int32_t on_output(void *user, uint32_t stream, const void *data, size_t length) {
  Watch *watch = user;
  if (!watch_enter(watch)) {
    return SANDHOST_CANCELLED;
  }
  g_string_append_len(stream == SANDHOST_STDERR ? watch->ran->err : watch->ran->out, data,
                      (gssize)length);
  watch->seen += length;
  gboolean stop = watch->options.stop_after && watch->seen >= watch->options.stop_after;
  watch_leave(watch);
  if (watch->options.on_output) {
    watch->options.on_output(watch->options.user, data, length);
  }
  return stop ? SANDHOST_CANCELLED : SANDHOST_OK;
}

static int64_t give_input(Watch *watch, void *buffer, size_t length) {
  gsize left = watch->options.input_length - watch->given;
  gsize take = MIN(left, length);
  if (take == 0 && watch->options.input_stays_open) {
    eventfd_t taken;
    eventfd_read(watch->input_fd, &taken); /* nothing more will come: not readable any longer */
    return -1;
  }
  memcpy(buffer, watch->options.input + watch->given, take);
  watch->given += take;
  return (int64_t)take;
}

static int64_t on_input(void *user, void *buffer, size_t length) {
  Watch *watch = user;
  if (!watch_enter(watch)) {
    return 0;
  }
  int64_t given = give_input(watch, buffer, length);
  watch_leave(watch);
  return given;
}

static int32_t on_input_fd(void *user) {
  return ((Watch *)user)->input_fd;
}

void ran_clear(Ran *ran) {
  g_string_free(ran->out, TRUE);
  g_string_free(ran->err, TRUE);
  g_free(ran->message);
  g_free(ran->lost);
}

static Watch *watch_new(Ran *ran, const RunOptions *options) {
  Watch *watch = g_new0(Watch, 1);
  *watch = (Watch){
      .ran = ran,
      .options = *options,
      .call = call_new_kept(options->deadline ? options->deadline : 60, watch),
      .input_fd = options->input ? eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK) : -1,
      .observer = {.size = sizeof watch->observer,
                   .user = watch,
                   .started = on_started,
                   .output = on_output,
                   .input = options->input ? on_input : NULL,
                   .input_fd = options->input ? on_input_fd : NULL},
  };
  return watch;
}

void run_argv(Box *box, const char *const *argv, const RunOptions *options, Ran *ret_ran) {
  static const RunOptions NONE;
  struct sandhost_text words[16];
  gsize count = 0;
  options = options ? options : &NONE;
  for (; argv[count]; count++) {
    words[count] = as_text(argv[count]);
  }
  *ret_ran = (Ran){.out = g_string_new(NULL),
                   .err = g_string_new(NULL),
                   .result = {.size = sizeof ret_ran->result}};
  Watch *watch = watch_new(ret_ran, options);
  const struct sandhost_execute request = {
      .size = sizeof request,
      .argv = words,
      .argc = count,
      .cwd = as_path(options->cwd ? options->cwd : ""),
      .environment = options->environment,
      .environment_count = options->environment_count,
      .limit = options->limit * SECOND,
      .max_output_bytes = options->max_output,
      .flags = options->input ? SANDHOST_EXECUTE_STDIN : 0,
  };
  gint64 from = suite_now();
  ret_ran->status = box->subject->table->execute(watch->call, box->handle, &request,
                                                 &watch->observer, &ret_ran->result);
  ret_ran->took = suite_now() - from;
  if (watch->canceller) {
    g_thread_join(watch->canceller);
  }
  call_end_kept(watch->call);
  if (watch->input_fd >= 0) {
    close(watch->input_fd);
    watch->input_fd = -1;
  }
  ret_ran->message = g_strdup(watch->call->message);
  ret_ran->lost = g_strdup(watch->call->lost);
  ret_ran->did_not_happen = watch->call->did_not_happen;
}

void run_script(Box *box, const char *script, const RunOptions *options, Ran *ret_ran) {
  const char *const argv[] = {"sh", "-c", script, NULL};
  run_argv(box, argv, options, ret_ran);
}

gboolean want_run(Box *box, const char *script, int exit_code, const char *out, Verdict *verdict) {
  Ran ran;
  gboolean ok = FALSE;
  run_script(box, script, NULL, &ran);
  if (ran.status != SANDHOST_OK) {
    wrong(verdict, "'%.60s' failed with %s: %s", script, status_name(ran.status),
          ran.message ? ran.message : "");
  } else if (ran.result.ended != SANDHOST_ENDED_EXIT || ran.result.exit_code != exit_code) {
    wrong(verdict, "'%.60s' ended as %u with %d instead of exit %d; stderr: %.200s", script,
          ran.result.ended, ran.result.exit_code, exit_code, ran.err->str);
  } else if (out && strcmp(ran.out->str, out) != 0) {
    wrong(verdict, "'%.60s' printed '%.200s' instead of '%.200s'", script, ran.out->str, out);
  } else {
    ok = TRUE;
  }
  ran_clear(&ran);
  return ok;
}

/* ---- Bytes ----------------------------------------------------------------------------------------------------------- */

static int32_t sink_write(void *user, const void *data, size_t length) {
  g_string_append_len(user, data, (gssize)length);
  return SANDHOST_OK;
}

gint32 read_into(Box *box, const char *path, GString *ret_content) {
  struct sandhost_call call;
  const struct sandhost_sink sink = {.size = sizeof sink, .user = ret_content, .write = sink_write};
  call_init(&call, 60);
  gint32 status = box->subject->table->read_file(&call, box->handle, as_path(path), &sink);
  call_clear(&call);
  return status;
}

static int64_t give_rest(void *user, void *buffer, size_t length) {
  Rest *rest = user;
  gsize take = MIN(MIN(rest->left, length), 70000);
  memcpy(buffer, rest->data, take);
  rest->data += take;
  rest->left -= take;
  return (int64_t)take;
}

struct sandhost_source rest_source(Rest *rest) {
  return (struct sandhost_source){
      .size = sizeof(struct sandhost_source), .user = rest, .read = give_rest};
}

gint32 write_from(Box *box, const char *path, const char *content, gsize length, guint32 mode) {
  struct sandhost_call call;
  Rest rest = {.data = content, .left = length};
  const struct sandhost_source source = rest_source(&rest);
  call_init(&call, 60);
  gint32 status = box->subject->table->write_file(&call, box->handle, as_path(path), mode, &source);
  call_clear(&call);
  return status;
}
