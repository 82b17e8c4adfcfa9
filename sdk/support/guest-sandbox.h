/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-sandbox.h: a sandbox that is one process of this machine with sandhost-guest behind its stream.
 *
 * For plugins that start such a process with guest_spawn. The provider's struct sandhost_sandbox has a
 * struct guest_sandbox as its first member; the operations below then are ready for its table. What is
 * lost is told with the reason that the plugin knows.
 *
 * All functions but guest_sandbox_init and guest_sandbox_clear may be called from any thread.
 */
#ifndef SANDHOST_SUPPORT_GUEST_SANDBOX_H
#define SANDHOST_SUPPORT_GUEST_SANDBOX_H

#include "guest-client.h"

#include <pthread.h>
#include <sys/types.h>

struct guest_sandbox {
  const struct sandhost_host *host; /* constant, as is all down to error_fd */
  GuestClient *client;              /* owned */
  pid_t pid;
  int pidfd;     /* owned; or -1 */
  int stream_fd; /* the client's */
  int error_fd;  /* owned; stderr of the process, not blocking */
  int64_t grace; /* nanoseconds from the end of the stream to a kill */

  /* Tells why the sandbox is gone when its process ended with this wait status, or NULL. Owned by the
   * caller. Constant; may be NULL. */
  char *(*describe_end)(struct guest_sandbox *sandbox, int status);

  pthread_mutex_t lock; /* guards what follows; no callback is called under it but describe_end */
  gboolean reaped;
  char *lost_reason; /* owned; set once */
};

/* What guest_spawn returned. */
struct guest_process {
  pid_t pid;
  int pidfd;
  int stream_fd;
  int error_fd;
};

/* Takes the descriptors and the process. Borrows host, which is constant. */
void guest_sandbox_init(struct guest_sandbox *sandbox, const struct sandhost_host *host,
                        const struct guest_process *take_process, const char *working_dir,
                        int64_t grace);

/* Ends the sandbox if that has not been done, and frees what is in it. No other call runs. */
void guest_sandbox_clear(struct guest_sandbox *sandbox);

/* Greets the guest. When the process ends instead, nothing is told to the host, *ret_complaint is what it
 * wrote to stderr (one line without control characters, perhaps empty; owned by the caller), and
 * SANDHOST_LOST is returned. */
int32_t guest_sandbox_greet(struct guest_sandbox *sandbox, struct sandhost_call *call,
                            gboolean *ret_is_init, char **ret_complaint);

/* Ends the stream, waits for the process, kills it after the grace. call may be NULL. */
int32_t guest_sandbox_end(struct guest_sandbox *sandbox, struct sandhost_call *call);

/* Whether the process has ended. It stays unreaped. *ret_status is as waitpid has it. */
gboolean guest_sandbox_has_ended(struct guest_sandbox *sandbox, int *ret_status);

/* The contract's operations, for a table. */
int32_t guest_sandbox_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              const struct sandhost_execute *request,
                              const struct sandhost_observer *observer,
                              struct sandhost_result *ret_result);
int32_t guest_sandbox_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                struct sandhost_path path, const struct sandhost_sink *sink);
int32_t guest_sandbox_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                 struct sandhost_path path, uint32_t mode,
                                 const struct sandhost_source *source);
int32_t guest_sandbox_upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             struct sandhost_path dir, const struct sandhost_source *tar);
int32_t guest_sandbox_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               struct sandhost_path dir, const struct sandhost_path *names,
                               size_t name_count, const struct sandhost_sink *tar);
int32_t guest_sandbox_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              const struct sandhost_changes *request,
                              const struct sandhost_entry_sink *sink);
int32_t guest_sandbox_signal(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             uint64_t execution, int32_t signal);
int32_t guest_sandbox_probe(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_probe *request, uint32_t *ret_verdict);

/* What a request to create asks for and a sandbox on this machine may not have. */
#define GUEST_SANDBOX_LIMITS 0x1u      /* cpu, memory */
#define GUEST_SANDBOX_NETWORK_OFF 0x2u /* deny */

/* Checks a request to create: its size, its variables, and that it asks for nothing but GUEST_SANDBOX_*
 * kept. SANDHOST_OK or the status of the error that it set. */
int32_t guest_sandbox_check_create(const struct sandhost_host *host, struct sandhost_call *call,
                                   const struct sandhost_create *request, uint32_t kept);

/* The part of it that holds for every provider: sizes, network mode, variables, working directory. */
int32_t guest_sandbox_check_request(const struct sandhost_host *host, struct sandhost_call *call,
                                    const struct sandhost_create *request);

#endif
