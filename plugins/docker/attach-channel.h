/* SPDX-License-Identifier: Apache-2.0 */
/* attach-channel.h: the byte stream to a container's first process, without the engine's frames. */
#ifndef SANDHOST_DOCKER_ATTACH_CHANNEL_H
#define SANDHOST_DOCKER_ATTACH_CHANNEL_H

#include "guest-client.h"

/* Takes the raw channel of an attach. What comes out is stdout alone; stderr is kept up to 2 KiB for
 * attach_channel_complaint. A frame that makes no sense ends the stream with EPROTO. Returns owned. */
ByteChannel *attach_channel_new(ByteChannel *take_raw);

/* The first line of what the process wrote to stderr so far, clean, perhaps empty. Owned by the caller. */
char *attach_channel_complaint(ByteChannel *channel);

#endif
