/* SPDX-License-Identifier: Apache-2.0 */
/* call.c: the host's table, and the statuses that come back. Its functions run in any thread of a plugin. */
#include "provider/call.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/build.h"
#include "base/clock.h"
#include "provider/text.h"

/* No plugin has more to tell: the five facts and one sentence for each setting. */
#define MAX_REPORTS 64u
#define MAX_SETTING 1000u

void call_init(struct sandhost_call *call) {
  pthread_mutex_init(&call->lock, NULL);
  pthread_mutex_init(&call->gate, NULL);
  call->over = TRUE;
  call->left = TRUE;
}

void call_begin(struct sandhost_call *call, const CallScope *scope, TestCommands *tests) {
  pthread_mutex_lock(&call->gate);
  pthread_mutex_lock(&call->lock);
  call->deadline = scope->deadline;
  call->cancel = scope->cancel ? cancel_ref(scope->cancel) : NULL;
  call->tests = tests;
  call->progress = scope->progress;
  call->user = scope->user;
  call->reports = g_hash_table_new_full(NULL, NULL, NULL, g_free);
  call->over = FALSE;
  call->left = FALSE;
  pthread_mutex_unlock(&call->lock);
  pthread_mutex_unlock(&call->gate);
}

void call_finish(struct sandhost_call *call) {
  pthread_mutex_lock(&call->lock);
  call->over = TRUE;
  pthread_mutex_unlock(&call->lock);
}

void call_end(struct sandhost_call *call) {
  pthread_mutex_lock(&call->gate);
  pthread_mutex_lock(&call->lock);
  call->over = TRUE;
  call->left = TRUE;
  call->progress = NULL;
  call->user = NULL;
  call->tests = NULL;
  call->failed = FALSE;
  call->retry_after = 0;
  call->may_have_happened = FALSE;
  call->did_not_happen = FALSE;
  g_clear_pointer(&call->cancel, cancel_unref);
  g_clear_pointer(&call->message, g_free);
  g_clear_pointer(&call->service_code, g_free);
  g_clear_pointer(&call->reports, g_hash_table_unref);
  pthread_mutex_unlock(&call->lock);
  pthread_mutex_unlock(&call->gate);
}

gboolean call_is_over(const struct sandhost_call *call) {
  return cancel_raised(call->cancel) || clock_now() >= call->deadline;
}

const char *call_reported(const struct sandhost_call *call, guint32 kind) {
  return call->reports ? g_hash_table_lookup(call->reports, GUINT_TO_POINTER(kind)) : NULL;
}

/* ---- The table ------------------------------------------------------------------------------------ */

/* The contract hands out constant calls for asking; their locks change all the same. */
static struct sandhost_call *writable(const struct sandhost_call *call) {
  union {
    const struct sandhost_call *given;
    struct sandhost_call *ours;
  } both = {.given = call};
  return both.ours;
}

/* What asking needs, taken at once; a finished call looks cancelled. The cancel is a reference of the caller's. */
static gint64 look(const struct sandhost_call *call, Cancel **ret_cancel) {
  struct sandhost_call *ours = writable(call);
  pthread_mutex_lock(&ours->lock);
  gint64 deadline = ours->over ? 0 : ours->deadline;
  *ret_cancel = !ours->over && ours->cancel ? cancel_ref(ours->cancel) : NULL;
  pthread_mutex_unlock(&ours->lock);
  return deadline;
}

static int64_t host_deadline(const struct sandhost_call *call) {
  g_autoptr(Cancel) cancel = NULL;
  return look(call, &cancel);
}

static int32_t host_cancelled(const struct sandhost_call *call) {
  g_autoptr(Cancel) cancel = NULL;
  gint64 deadline = look(call, &cancel);
  return cancel_raised(cancel) || clock_now() >= deadline ? 1 : 0;
}

static int32_t host_cancel_fd(const struct sandhost_call *call) {
  g_autoptr(Cancel) cancel = NULL;
  look(call, &cancel);
  return cancel_fd(cancel);
}

static int poll_until(struct pollfd *fds, nfds_t count, gint64 until) {
  gint64 left = until == G_MAXINT64 ? 0 : MAX(until - clock_now(), 0);
  const struct timespec timeout = {
      .tv_sec = (time_t)(left / CLOCK_SECOND),
      .tv_nsec = (long)(left % CLOCK_SECOND),
  };
  return ppoll(fds, count, until == G_MAXINT64 ? NULL : &timeout, NULL);
}

static int32_t host_wait(const struct sandhost_call *call, int32_t fd, int32_t events,
                         int64_t duration) {
  g_autoptr(Cancel) cancel = NULL;
  gint64 deadline = look(call, &cancel);
  if (deadline == 0) {
    return SANDHOST_CANCELLED;
  }
  gint64 until = MIN(deadline, clock_deadline(duration));
  for (;;) {
    /* poll ignores a descriptor of -1. */
    struct pollfd fds[] = {
        {.fd = cancel_fd(cancel), .events = POLLIN},
        {.fd = fd, .events = (short)events},
    };
    int ready = poll_until(fds, G_N_ELEMENTS(fds), until);
    if (cancel_raised(cancel)) {
      return SANDHOST_CANCELLED;
    }
    if (ready > 0 && fds[1].revents != 0) {
      return SANDHOST_OK;
    }
    if (clock_now() >= until) {
      return SANDHOST_TIMEOUT;
    }
    if (ready < 0 && errno != EINTR) {
      return SANDHOST_TIMEOUT; /* out of memory: a wait that is over early does no harm */
    }
  }
}

static int32_t host_fail(struct sandhost_call *call, int32_t status, struct sandhost_text message) {
  g_autofree char *clean = text_clean(message);
  pthread_mutex_lock(&call->lock);
  if (!call->over && !call->failed) {
    call->failed = TRUE;
    call->message = g_steal_pointer(&clean);
  }
  pthread_mutex_unlock(&call->lock);
  return status;
}

static void host_fail_details(struct sandhost_call *call, const struct sandhost_failure *details) {
  if (!details || details->size < offsetof(struct sandhost_failure, reserved) + sizeof(int32_t)) {
    return;
  }
  g_autofree char *code = text_clean(details->service_code);
  pthread_mutex_lock(&call->lock);
  if (!call->over) {
    if (*code != '\0') {
      g_free(call->service_code);
      call->service_code = g_steal_pointer(&code);
    }
    call->retry_after = MAX(details->retry_after, 0);
    call->may_have_happened = details->may_have_happened != 0;
    call->did_not_happen = details->may_have_happened == 0;
  }
  pthread_mutex_unlock(&call->lock);
}

static gboolean kind_is_known(uint32_t kind) {
  return kind == SANDHOST_REPORT_REF || kind == SANDHOST_REPORT_IMAGE ||
         kind == SANDHOST_REPORT_NETWORK || kind == SANDHOST_REPORT_SNAPSHOT ||
         kind == SANDHOST_REPORT_LOST ||
         (kind > SANDHOST_REPORT_LOWERED && kind <= SANDHOST_REPORT_LOWERED + MAX_SETTING);
}

static void host_report(struct sandhost_call *call, uint32_t kind, struct sandhost_text value) {
  /* Half of a name names something else: one that is too long counts as not told. */
  gboolean is_name = kind == SANDHOST_REPORT_REF || kind == SANDHOST_REPORT_SNAPSHOT;
  if (!kind_is_known(kind) || (is_name && value.length > TEXT_MAX_BYTES)) {
    return;
  }
  gpointer key = GUINT_TO_POINTER(kind);
  g_autofree char *clean = text_clean(value);
  pthread_mutex_lock(&call->lock);
  if (!call->over && (g_hash_table_size(call->reports) < MAX_REPORTS ||
                      g_hash_table_contains(call->reports, key))) {
    g_hash_table_replace(call->reports, key, g_steal_pointer(&clean));
  }
  pthread_mutex_unlock(&call->lock);
}

static void host_progress(struct sandhost_call *call, struct sandhost_text line) {
  g_autofree char *clean = text_clean(line);
  pthread_mutex_lock(&call->gate);
  if (!call->left && call->progress) {
    call->progress(call->user, clean);
  }
  pthread_mutex_unlock(&call->gate);
}

const struct sandhost_host call_host_table = {
    .size = sizeof(struct sandhost_host),
    .minor = SANDHOST_ABI_MINOR,
    .version = {.data = SANDHOST_VERSION, .length = sizeof SANDHOST_VERSION - 1},
    .deadline = host_deadline,
    .cancelled = host_cancelled,
    .cancel_fd = host_cancel_fd,
    .wait = host_wait,
    .fail = host_fail,
    .fail_details = host_fail_details,
    .report = host_report,
    .progress = host_progress,
};

/* ---- Statuses ---------------------------------------------------------------------------------------- */

const char *call_status_name(gint32 status) {
  static const struct {
    gint32 status;
    const char *name;
  } names[] = {
      {SANDHOST_OK, "ok"},
      {SANDHOST_INVALID, "invalid"},
      {SANDHOST_UNSUPPORTED, "unsupported"},
      {SANDHOST_UNAUTHENTICATED, "unauthenticated"},
      {SANDHOST_DENIED, "denied"},
      {SANDHOST_NOT_FOUND, "not found"},
      {SANDHOST_EXISTS, "exists"},
      {SANDHOST_CONFLICT, "conflict"},
      {SANDHOST_LIMIT, "limit"},
      {SANDHOST_RATE_LIMITED, "rate limited"},
      {SANDHOST_UNAVAILABLE, "unavailable"},
      {SANDHOST_TIMEOUT, "timeout"},
      {SANDHOST_CANCELLED, "cancelled"},
      {SANDHOST_LOST, "lost"},
      {SANDHOST_PROTOCOL, "protocol"},
      {SANDHOST_NO_MEMORY, "no memory"},
      {SANDHOST_INTERNAL, "internal"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    if (names[i].status == status) {
      return names[i].name;
    }
  }
  return NULL;
}

/* ---- The error ------------------------------------------------------------------------------------- */

typedef struct {
  char *service_code;
  gint64 retry_after;
  gboolean may_have_happened;
  gboolean did_not_happen;
} ProviderErrorPrivate;

static void provider_error_private_init(ProviderErrorPrivate *private_data) {
  (void)private_data; /* zeroed by GLib */
}

static void provider_error_private_copy(const ProviderErrorPrivate *from,
                                        ProviderErrorPrivate *to) {
  *to = *from;
  to->service_code = g_strdup(from->service_code);
}

static void provider_error_private_clear(ProviderErrorPrivate *private_data) {
  g_free(private_data->service_code);
}

/* GLib's own macro takes the const away. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
G_DEFINE_EXTENDED_ERROR(ProviderError, provider_error)
#pragma GCC diagnostic pop

gboolean provider_error_is(const GError *error, gint32 status) {
  return g_error_matches(error, PROVIDER_ERROR, status);
}

ProviderErrorDetails provider_error_details(const GError *error) {
  if (!error || error->domain != PROVIDER_ERROR) {
    return (ProviderErrorDetails){0};
  }
  const ProviderErrorPrivate *private_data = provider_error_get_private(error);
  return (ProviderErrorDetails){
      .service_code = private_data->service_code,
      .retry_after = private_data->retry_after,
      .may_have_happened = private_data->may_have_happened,
      .did_not_happen = private_data->did_not_happen,
  };
}

void provider_error_set_abandoned(GError *error) {
  ProviderErrorPrivate *private_data = provider_error_get_private(error);
  private_data->may_have_happened = TRUE;
  private_data->did_not_happen = FALSE;
}

void provider_error_set_not_happened(GError *error, gboolean certain) {
  if (error && error->domain == PROVIDER_ERROR) {
    provider_error_get_private(error)->did_not_happen = certain;
  }
}

gboolean call_settle(const struct sandhost_call *call, gint32 status, const char *provider,
                     const char *operation, GError **error) {
  if (status == SANDHOST_OK) {
    return TRUE;
  }
  const char *name = call_status_name(status);
  gint32 known = name ? status : SANDHOST_INTERNAL;
  GError *made = NULL;
  if (call->message && *call->message != '\0') {
    made = g_error_new_literal(PROVIDER_ERROR, known, call->message);
  } else {
    g_autofree char *number = g_strdup_printf("unknown status %d", status);
    made = g_error_new(PROVIDER_ERROR, known, "%s: %s failed (%s)", provider, operation,
                       name ? name : number);
  }
  ProviderErrorPrivate *private_data = provider_error_get_private(made);
  private_data->service_code = g_strdup(call->service_code);
  private_data->retry_after = call->retry_after;
  private_data->may_have_happened = call->may_have_happened;
  private_data->did_not_happen = call->did_not_happen;
  g_propagate_error(error, made);
  return FALSE;
}
