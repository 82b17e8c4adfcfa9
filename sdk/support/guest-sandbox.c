/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-sandbox.c: a process, its stream and its client, ended together.
 *
 * The client is given a host table of our own, which passes everything on to the real one but the loss of
 * the sandbox: of that, the process knows more than the end of its stream tells.
 */
#include "guest-sandbox.h"

#include "call-relay.h"
#include "failure.h"
#include "guest-request.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLISECOND ((int64_t)1000000)
#define COMPLAINT_BYTES 2048u
/* How long the process may take to end once its stream has; then the stream is all that is known. */
#define END_PATIENCE (200 * MILLISECOND)
/* And to end once it is killed. */
#define KILL_PATIENCE (5000 * MILLISECOND)

/* ---- The call that the client sees ------------------------------------------------------------- */

static struct call_relay relay_for(const struct guest_sandbox *sandbox,
                                   struct sandhost_call *call) {
  return (struct call_relay){.host = sandbox->host, .call = call};
}

/* ---- The process ------------------------------------------------------------------------------ */

/* Waits until the process has ended, without reaping it. FALSE: it has not. */
static gboolean wait_for_end(const struct guest_sandbox *sandbox, int64_t patience,
                             siginfo_t *ret_info) {
  const int64_t until = contract_now() + patience;
  for (;;) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)sandbox->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
      if (errno == EINTR) {
        continue;
      }
      *ret_info = (siginfo_t){0}; /* ECHILD: somebody else reaped it */
      return TRUE;
    }
    if (info.si_pid != 0) {
      *ret_info = info;
      return TRUE;
    }
    int64_t left = until - contract_now();
    if (left <= 0) {
      return FALSE;
    }
    struct pollfd ready = {.fd = sandbox->pidfd, .events = POLLIN};
    int64_t tick = sandbox->pidfd < 0 ? MIN(left, MILLISECOND) : left;
    struct timespec timeout = {.tv_sec = tick / (1000 * MILLISECOND),
                               .tv_nsec = tick % (1000 * MILLISECOND)};
    (void)ppoll(&ready, 1, &timeout, NULL);
  }
}

static int status_of(const siginfo_t *info) {
  if (info->si_code == CLD_EXITED) {
    return (info->si_status & 0xff) << 8;
  }
  return info->si_pid == 0 ? 0 : info->si_status & 0x7f;
}

/* The pid is a child that nobody but this library reaps, so the plain kill hits no stranger. */
static void kill_process(const struct guest_sandbox *sandbox) {
  if (sandbox->pidfd < 0 || syscall(SYS_pidfd_send_signal, sandbox->pidfd, SIGKILL, NULL, 0) < 0) {
    (void)kill(sandbox->pid, SIGKILL);
  }
}

/* With the lock. */
static void reap(struct guest_sandbox *sandbox) {
  while (waitpid(sandbox->pid, NULL, 0) < 0 && errno == EINTR) {
  }
  sandbox->reaped = TRUE;
}

gboolean guest_sandbox_has_ended(struct guest_sandbox *sandbox, int *ret_status) {
  siginfo_t info = {0};
  pthread_mutex_lock(&sandbox->lock);
  gboolean ended = !sandbox->reaped && wait_for_end(sandbox, 0, &info);
  pthread_mutex_unlock(&sandbox->lock);
  if (ended) {
    *ret_status = status_of(&info);
  }
  return ended;
}

/* ---- Life ------------------------------------------------------------------------------------- */

void guest_sandbox_init(struct guest_sandbox *sandbox, const struct sandhost_host *host,
                        const struct guest_process *take_process, const char *working_dir,
                        int64_t grace) {
  *sandbox = (struct guest_sandbox){
      .host = host,
      .client = guest_client_new(
          &call_relay_host, byte_channel_for_fds(take_process->stream_fd, take_process->stream_fd),
          working_dir),
      .pid = take_process->pid,
      .pidfd = take_process->pidfd,
      .stream_fd = take_process->stream_fd,
      .error_fd = take_process->error_fd,
      .grace = grace};
  pthread_mutex_init(&sandbox->lock, NULL);
}

void guest_sandbox_clear(struct guest_sandbox *sandbox) {
  (void)guest_sandbox_end(sandbox, NULL);
  guest_client_free(g_steal_pointer(&sandbox->client));
  if (sandbox->pidfd >= 0) {
    close(sandbox->pidfd);
  }
  close(sandbox->error_fd);
  pthread_mutex_destroy(&sandbox->lock);
  g_clear_pointer(&sandbox->lost_reason, g_free);
}

int32_t guest_sandbox_end(struct guest_sandbox *sandbox, struct sandhost_call *call) {
  siginfo_t info = {0};
  guest_client_lose(sandbox->client, "it was ended");
  pthread_mutex_lock(&sandbox->lock);
  if (!sandbox->lost_reason) {
    sandbox->lost_reason = g_strdup("it was ended");
  }
  if (!sandbox->reaped) {
    (void)shutdown(sandbox->stream_fd, SHUT_RDWR);
    gboolean ended = wait_for_end(sandbox, sandbox->grace, &info);
    if (!ended) {
      kill_process(sandbox);
      ended = wait_for_end(sandbox, KILL_PATIENCE, &info);
    }
    if (ended) {
      reap(sandbox);
    }
  }
  gboolean reaped = sandbox->reaped;
  pthread_mutex_unlock(&sandbox->lock);
  if (!reaped && call) {
    return fail_call(sandbox->host, call, SANDHOST_INTERNAL,
                     "process %d of the sandbox does not end although it was killed",
                     (int)sandbox->pid);
  }
  return reaped ? SANDHOST_OK : SANDHOST_INTERNAL;
}

/* The first line that the process wrote to stderr, clean. */
static char *read_complaint(const struct guest_sandbox *sandbox) {
  char buffer[COMPLAINT_BYTES];
  ssize_t count = read(sandbox->error_fd, buffer, sizeof buffer);
  if (count <= 0) {
    return g_strdup("");
  }
  const char *end = memchr(buffer, '\n', (size_t)count);
  return guest_text_clean(buffer, end ? (size_t)(end - buffer) : (size_t)count);
}

int32_t guest_sandbox_greet(struct guest_sandbox *sandbox, struct sandhost_call *call,
                            gboolean *ret_is_init, char **ret_complaint) {
  struct call_relay relay = relay_for(sandbox, call);
  siginfo_t info = {0};
  relay.quiet = TRUE;
  int32_t status = guest_client_greet(sandbox->client, call_relay_call(&relay), ret_is_init);
  g_autofree char *failure = g_steal_pointer(&relay.failure);
  call_relay_clear(&relay);
  if (status == SANDHOST_OK) {
    return status;
  }
  if (status == SANDHOST_LOST && wait_for_end(sandbox, END_PATIENCE, &info)) {
    *ret_complaint = read_complaint(sandbox);
    return status;
  }
  status = status == SANDHOST_LOST ? SANDHOST_UNAVAILABLE : status;
  return fail_call(sandbox->host, call, status, "the sandbox's guest did not greet: %s",
                   failure ? failure : "unknown");
}

/* ---- Why it is gone --------------------------------------------------------------------------- */

static char *describe_signal(struct guest_sandbox *sandbox, int status) {
  char *text = sandbox->describe_end ? sandbox->describe_end(sandbox, status) : NULL;
  if (!text && WIFSIGNALED(status)) {
    text = g_strdup_printf("it was killed by signal %d", WTERMSIG(status));
  }
  return text;
}

/* Tells the host of the loss, always with the same words. */
static int32_t fail_lost(struct guest_sandbox *sandbox, struct sandhost_call *call,
                         const char *failure) {
  siginfo_t info = {0};
  pthread_mutex_lock(&sandbox->lock);
  if (!sandbox->lost_reason) {
    if (!sandbox->reaped && wait_for_end(sandbox, END_PATIENCE, &info) && info.si_pid != 0) {
      sandbox->lost_reason = describe_signal(sandbox, status_of(&info));
    }
    if (!sandbox->lost_reason) {
      sandbox->lost_reason = g_strdup(failure && failure[0] ? failure : "it stopped");
    }
  }
  const char *reason = sandbox->lost_reason; /* never changes again */
  pthread_mutex_unlock(&sandbox->lock);
  report_fact(sandbox->host, call, SANDHOST_REPORT_LOST, reason);
  return fail_call(sandbox->host, call, SANDHOST_LOST, "%s", reason);
}

/* A guest that broke the protocol is no guest any more, whether its process has ended or not: the rule that it
 * broke is the reason, and the error has been told. */
static void report_broken(struct guest_sandbox *sandbox, struct sandhost_call *call,
                          const char *rule) {
  pthread_mutex_lock(&sandbox->lock);
  if (!sandbox->lost_reason) {
    sandbox->lost_reason = g_strdup(rule);
  }
  const char *reason = sandbox->lost_reason;
  pthread_mutex_unlock(&sandbox->lock);
  report_fact(sandbox->host, call, SANDHOST_REPORT_LOST, reason);
}

static int32_t finish(struct guest_sandbox *sandbox, struct call_relay *relay, int32_t status) {
  if (status == SANDHOST_LOST) {
    status = fail_lost(sandbox, relay->call, relay->failure);
  } else if (relay->lost) {
    report_broken(sandbox, relay->call, relay->lost);
  }
  call_relay_clear(relay);
  return status;
}

/* ---- Operations ------------------------------------------------------------------------------- */

static struct guest_sandbox *base(struct sandhost_sandbox *sandbox) {
  return (struct guest_sandbox *)sandbox;
}

int32_t guest_sandbox_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              const struct sandhost_execute *request,
                              const struct sandhost_observer *observer,
                              struct sandhost_result *ret_result) {
  struct call_relay relay = relay_for(base(sandbox), call);
  return finish(base(sandbox), &relay,
                guest_client_execute(base(sandbox)->client, call_relay_call(&relay), request,
                                     observer, ret_result));
}

int32_t guest_sandbox_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                struct sandhost_path path, const struct sandhost_sink *sink) {
  struct call_relay relay = relay_for(base(sandbox), call);
  return finish(base(sandbox), &relay,
                guest_client_read_file(base(sandbox)->client, call_relay_call(&relay), path, sink));
}

int32_t guest_sandbox_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                 struct sandhost_path path, uint32_t mode,
                                 const struct sandhost_source *source) {
  struct call_relay relay = relay_for(base(sandbox), call);
  return finish(
      base(sandbox), &relay,
      guest_client_write_file(base(sandbox)->client, call_relay_call(&relay), path, mode, source));
}

int32_t guest_sandbox_upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             struct sandhost_path dir, const struct sandhost_source *tar) {
  struct call_relay relay = relay_for(base(sandbox), call);
  return finish(base(sandbox), &relay,
                guest_client_upload(base(sandbox)->client, call_relay_call(&relay), dir, tar));
}

int32_t guest_sandbox_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               struct sandhost_path dir, const struct sandhost_path *names,
                               size_t name_count, const struct sandhost_sink *tar) {
  struct call_relay relay = relay_for(base(sandbox), call);
  return finish(base(sandbox), &relay,
                guest_client_download(base(sandbox)->client, call_relay_call(&relay), dir, names,
                                      name_count, tar));
}

int32_t guest_sandbox_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              const struct sandhost_changes *request,
                              const struct sandhost_entry_sink *sink) {
  struct call_relay relay = relay_for(base(sandbox), call);
  return finish(
      base(sandbox), &relay,
      guest_client_changes(base(sandbox)->client, call_relay_call(&relay), request, sink));
}

int32_t guest_sandbox_signal(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             uint64_t execution, int32_t signal) {
  struct call_relay relay = relay_for(base(sandbox), call);
  return finish(
      base(sandbox), &relay,
      guest_client_signal(base(sandbox)->client, call_relay_call(&relay), execution, signal));
}

int32_t guest_sandbox_probe(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_probe *request, uint32_t *ret_verdict) {
  struct call_relay relay = relay_for(base(sandbox), call);
  return finish(
      base(sandbox), &relay,
      guest_client_probe(base(sandbox)->client, call_relay_call(&relay), request, ret_verdict));
}

/* ---- Requests to create ----------------------------------------------------------------------- */

static const char *unkept_setting(const struct sandhost_create *request, uint32_t kept) {
  if (request->image.length > 0) {
    return "have an image";
  }
  if (request->snapshot.length > 0) {
    return "have a snapshot";
  }
  if (request->mount_count > 0) {
    return "have mounts";
  }
  if (request->gpu) {
    return "have a GPU";
  }
  if (request->lifetime != 0) {
    return "have a lifetime";
  }
  if (request->network->allowed_count > 0 || request->network->denied_count > 0) {
    return "have lists of hosts";
  }
  if (!(kept & GUEST_SANDBOX_LIMITS) && (request->cpu_millis > 0 || request->memory_bytes > 0)) {
    return "have CPU or memory limits";
  }
  if (!(kept & GUEST_SANDBOX_NETWORK_OFF) && request->network->mode != SANDHOST_NETWORK_ALLOW) {
    return "be without the network";
  }
  return NULL;
}

int32_t guest_sandbox_check_request(const struct sandhost_host *host, struct sandhost_call *call,
                                    const struct sandhost_create *request) {
  if (request->size < CONTRACT_FIRST_SIZE(struct sandhost_create, reserved) || !request->network ||
      request->network->size < CONTRACT_FIRST_SIZE(struct sandhost_network, denied_count) ||
      request->reserved != 0) {
    return fail_call(host, call, SANDHOST_INVALID, "the request to create makes no sense");
  }
  if (request->network->mode != SANDHOST_NETWORK_DENY &&
      request->network->mode != SANDHOST_NETWORK_ALLOW) {
    return fail_call(host, call, SANDHOST_INVALID, "network mode %u is unknown",
                     request->network->mode);
  }
  for (size_t i = 0; i < request->environment_count; i++) {
    const struct sandhost_text *name = &request->environment[i].name;
    const struct sandhost_text *value = &request->environment[i].value;
    if (name->length == 0 || memchr(name->data, '=', name->length) ||
        memchr(name->data, 0, name->length) ||
        (value->length > 0 && memchr(value->data, 0, value->length))) {
      return fail_call(host, call, SANDHOST_INVALID,
                       "a variable of the sandbox has no sensible name or value");
    }
  }
  const struct sandhost_path *dir = &request->working_dir;
  if (dir->length == 0 || dir->length >= PATH_MAX || dir->data[0] != '/' ||
      memchr(dir->data, 0, dir->length)) {
    return fail_call(host, call, SANDHOST_INVALID, "the working directory is no absolute path");
  }
  return SANDHOST_OK;
}

int32_t guest_sandbox_check_create(const struct sandhost_host *host, struct sandhost_call *call,
                                   const struct sandhost_create *request, uint32_t kept) {
  int32_t status = guest_sandbox_check_request(host, call, request);
  const char *unkept = status == SANDHOST_OK ? unkept_setting(request, kept) : NULL;
  if (unkept) {
    return fail_call(host, call, SANDHOST_UNSUPPORTED, "this sandbox cannot %s", unkept);
  }
  return status;
}
