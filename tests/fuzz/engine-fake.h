/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine-fake.h: an engine without a connection. It answers each request as a sound engine would, unless the script has
 * another answer. In place of sdk/support's HTTP client and clock; no time passes that is waited for.
 *
 * A script is records of {skip u8, code u8, length u16, body}: after skip requests that are answered soundly, the next one
 * gets the status that code chooses, with the body.
 */
#ifndef SANDHOST_FUZZ_ENGINE_FAKE_H
#define SANDHOST_FUZZ_ENGINE_FAKE_H

#include "http-client.h"

#include <glib.h>
#include <stdint.h>

#define ENGINE_FAKE_ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ENGINE_FAKE_NONCE "00112233445566778899aabbccddeeff"

struct sandhost_call {
  gboolean failed;
  int32_t status;   /* of the first failure */
  unsigned facts;   /* reported */
  unsigned lines;   /* of progress */
  gboolean is_over; /* cancelled */
};

/* The host's table. Each text that comes through it is checked: valid, one line, bounded. */
extern const struct sandhost_host engine_fake_host;

/* Once, before all else. */
void engine_fake_init(void);
/* Whose call comes next, what is answered to it and in pieces of which size, and at which request it is cancelled. Time
 * begins anew. */
void engine_fake_script(struct sandhost_call *call, const uint8_t *script, size_t length,
                        size_t piece, unsigned cancel_after);

/* A channel that gives the bytes in pieces, and then ends. Owned by the caller. */
ByteChannel *engine_fake_channel(const void *bytes, size_t length, size_t piece);

#endif
