/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-client.h: the host side of sandhost-guest, for provider authors.
 *
 * A plugin that can start one process with a byte stream to it starts sandhost-guest there, hands the
 * stream to a GuestClient, and gets every operation of the contract from it. Many calls may run at
 * once from different threads: the one that waits longest reads the stream for all. Nothing runs
 * between calls, and there is no thread of its own.
 *
 * Everything that the guest says is checked. When the stream ends, the guest breaks the protocol, or
 * it stays silent past a deadline, the client is lost: every running and later call returns
 * SANDHOST_LOST with the same reason, and reports it. The one call that found the protocol broken
 * returns SANDHOST_PROTOCOL and reports the loss as well: the sandbox is given up.
 *
 * All functions but guest_client_new and guest_client_free may be called from any thread.
 */
#ifndef SANDHOST_SUPPORT_GUEST_CLIENT_H
#define SANDHOST_SUPPORT_GUEST_CLIENT_H

#include <glib.h>
#include <sandhost/provider.h>
#include <sys/types.h>

/* Ordered bytes to a guest and back. A plugin whose stream is a plain descriptor uses
 * byte_channel_for_fds. No function may block, and no two of one channel ever run at once. */
typedef struct ByteChannel ByteChannel;
struct ByteChannel {
  /* Fills at most length bytes: the count, 0 at the end, -1 with errno (EAGAIN: nothing now). */
  ssize_t (*receive)(ByteChannel *channel, void *buffer, size_t length);
  /* Takes at most length bytes: the count (may be short), -1 with errno (EAGAIN: full now). */
  ssize_t (*send)(ByteChannel *channel, const void *data, size_t length);
  /* The descriptor to poll for reading, and for writing. */
  int (*receive_fd)(ByteChannel *channel);
  int (*send_fd)(ByteChannel *channel);
  /* Closes and frees. */
  void (*free)(ByteChannel *channel);
  /* Optional: 1 where receive has bytes to give although receive_fd is not readable (a TLS record
   * read before its time). */
  int (*pending)(ByteChannel *channel);
};

/* Takes both descriptors (they may be the same one) and makes them non-blocking. Returns owned. */
ByteChannel *byte_channel_for_fds(int receive_fd, int send_fd);

typedef struct GuestClient GuestClient;

/* Takes the channel. Borrows host, which is constant. working_dir is copied: relative results and the
 * bounds of read_file and write_file refer to it. Returns owned. */
GuestClient *guest_client_new(const struct sandhost_host *host, ByteChannel *take_channel,
                              const char *working_dir);

/* Closes the channel and frees. No call may be running. NULL is allowed. */
void guest_client_free(GuestClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GuestClient, guest_client_free)

/* Sends the greeting and waits for the guest's. Before any other call. *ret_is_init, where not NULL,
 * tells whether the guest is PID 1 of its namespace. */
int32_t guest_client_greet(GuestClient *client, struct sandhost_call *call, gboolean *ret_is_init);

/* The contract's operations of the same names. A cancel or a passed deadline is told to the guest;
 * one that does not answer it within two seconds is lost. execute backs the command's limit up: ten
 * seconds past it the client is lost, with the text "Command exceeded its time limit and the sandbox
 * was stopped". */
int32_t guest_client_execute(GuestClient *client, struct sandhost_call *call,
                             const struct sandhost_execute *request,
                             const struct sandhost_observer *observer,
                             struct sandhost_result *ret_result);
int32_t guest_client_read_file(GuestClient *client, struct sandhost_call *call,
                               struct sandhost_path path, const struct sandhost_sink *sink);
int32_t guest_client_write_file(GuestClient *client, struct sandhost_call *call,
                                struct sandhost_path path, uint32_t mode,
                                const struct sandhost_source *source);
int32_t guest_client_upload(GuestClient *client, struct sandhost_call *call,
                            struct sandhost_path dir, const struct sandhost_source *tar);
int32_t guest_client_download(GuestClient *client, struct sandhost_call *call,
                              struct sandhost_path dir, const struct sandhost_path *names,
                              size_t name_count, const struct sandhost_sink *tar);
int32_t guest_client_changes(GuestClient *client, struct sandhost_call *call,
                             const struct sandhost_changes *request,
                             const struct sandhost_entry_sink *sink);
int32_t guest_client_signal(GuestClient *client, struct sandhost_call *call, uint64_t execution,
                            int32_t signal);
int32_t guest_client_probe(GuestClient *client, struct sandhost_call *call,
                           const struct sandhost_probe *request, uint32_t *ret_verdict);

/* Declares the client lost, so that calls that run return. reason is copied. For a plugin that knows
 * better (its process ended). The first reason counts. TRUE: calls were running. */
gboolean guest_client_lose(GuestClient *client, const char *reason);

/* Whether it is lost, and why (borrowed until free; NULL while it lives). */
const char *guest_client_lost_reason(GuestClient *client);

#endif
