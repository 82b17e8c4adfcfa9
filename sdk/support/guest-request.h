/* SPDX-License-Identifier: Apache-2.0 */
/* guest-request.h: one request from its OPEN to its DONE, whatever its operation. */
#ifndef SANDHOST_SUPPORT_GUEST_REQUEST_H
#define SANDHOST_SUPPORT_GUEST_REQUEST_H

#include "guest-connection.h"

/* Returned by consume for data that a guest must not send; exchange->violation says why. */
#define GUEST_VIOLATION (-1)

/* What an operation brings along. The functions are called from the thread of the call, without any
 * lock; they may block unless they say otherwise. */
struct guest_exchange {
  uint32_t operation;
  uint32_t results_expected; /* bytes after the message of a DONE with SANDHOST_OK */
  void *user;

  /* Gets the DATA of the guest. SANDHOST_OK; GUEST_VIOLATION; anything else stops the request. NULL
   * where the guest sends none. */
  int32_t (*consume)(void *user, uint32_t channel, const void *data, size_t length);
  const char *violation;  /* static */
  const char *stopped_by; /* static; the message when consume or produce stops the request */

  /* Gives the DATA for the guest: the count, 0 at the end, -1 to stop. NULL where there is none. */
  int64_t (*produce)(void *user, void *buffer, size_t length);
  /* Where it is not NULL, produce does not block: its -1 means that there is nothing until the
   * descriptor that this returns is readable (-1: until it is asked again). */
  int32_t (*produce_fd)(void *user);

  /* Told once, when a command has started. May be NULL. */
  void (*started)(void *user, uint64_t execution);
  int64_t limit; /* of a command, nanoseconds; 0: none */
};

/* Parameters under construction. Everything has been bounded before it is put here. */
GByteArray *guest_parameters_new(void);
void guest_parameters_u32(GByteArray *parameters, uint32_t value);
void guest_parameters_u64(GByteArray *parameters, uint64_t value);
void guest_parameters_bytes(GByteArray *parameters, const void *data, size_t length);

/* Runs the request. On SANDHOST_OK results has the results. On anything else the call's error is set,
 * and the loss of the client reported; fail_details says may_have_happened 0 where the client was lost before the guest
 * could be told. */
int32_t guest_request_run(GuestClient *client, struct sandhost_call *call,
                          struct guest_exchange *exchange, GByteArray *take_parameters,
                          unsigned char results[GUEST_RESULTS]);

/* Declares the client lost after results that make no sense. Returns SANDHOST_PROTOCOL. */
int32_t guest_request_violation(GuestClient *client, struct sandhost_call *call, const char *what);

/* Sets the call's error to the loss of the client, which it reports. Returns the status. */
int32_t guest_request_fail_lost(GuestClient *client, struct sandhost_call *call, gboolean broke);

/* Whether the call is over: 0, SANDHOST_TIMEOUT or SANDHOST_CANCELLED. Sets no error. */
int32_t guest_call_over(const GuestClient *client, const struct sandhost_call *call,
                        int64_t deadline, int64_t now);

/* SANDHOST_OK, or SANDHOST_INVALID with the call's error set, where a struct is too small. */
int32_t guest_check_size(const GuestClient *client, struct sandhost_call *call, const char *what,
                         size_t size, size_t first_size);

/* The same for a path that is empty, holds NUL, is too long, or is not absolute. */
int32_t guest_check_absolute(const GuestClient *client, struct sandhost_call *call,
                             const char *what, struct sandhost_path path);

/* How long a wait may take for a call without a descriptor for its cancel, nanoseconds. */
#define GUEST_CANCEL_TICK 50000000
/* How often an input without a descriptor is asked. */
#define GUEST_INPUT_TICK 10000000

#endif
