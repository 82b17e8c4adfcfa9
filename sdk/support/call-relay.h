/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call-relay.h: a call that stands between a part of a provider and the host's call.
 *
 * A provider hands such a call to a part that tells its failures itself, where the provider knows better:
 * what really ended the sandbox, or that a failure does not matter. Everything but that is passed on; a
 * loss that was reported is the provider's to tell, whatever the status of the call.
 * A relay lives on the stack of the thread that runs the call and is used by that thread alone.
 */
#ifndef SANDHOST_SUPPORT_CALL_RELAY_H
#define SANDHOST_SUPPORT_CALL_RELAY_H

#include <glib.h>
#include <sandhost/provider.h>

struct call_relay {
  const struct sandhost_host *host; /* the real one, and the call that it gave */
  struct sandhost_call *call;
  gboolean quiet; /* no failure at all is passed on; else only that of a loss is held back */
  gboolean failed;
  char *failure; /* owned: the text that was held back; NULL */
  char *lost;    /* owned: the reason of a loss that was reported, and is held back with it; NULL */
  int64_t
      deadline; /* nanoseconds of CLOCK_MONOTONIC; above 0 it counts in place of the call's own deadline
                     * and its cancel: for cleaning up when the call is over */
};

/* The table to hand on with call_relay_call. Constant. */
extern const struct sandhost_host call_relay_host;

struct sandhost_call *call_relay_call(struct call_relay *relay);

void call_relay_clear(struct call_relay *relay);
typedef struct call_relay CallRelay;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CallRelay, call_relay_clear)

#endif
