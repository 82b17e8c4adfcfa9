/* SPDX-License-Identifier: Apache-2.0 */
/* engine-hand.h: an Engine API client that does no more than a benchmark needs: what the same work costs by hand. */
#ifndef SANDHOST_BENCH_ENGINE_HAND_H
#define SANDHOST_BENCH_ENGINE_HAND_H

#include <glib.h>

/* A connection that is kept from one request to the next. */
typedef struct Hand Hand;

/* NULL where nothing answers at the unix socket. */
Hand *hand_new(const char *socket_path);
void hand_free(Hand *hand);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hand, hand_free)

/* Sends JSON (body may be NULL) and reads the whole answer. The status; -1 when the connection failed. *ret_answer, where
 * asked for, is owned and NUL-terminated. */
int hand_ask(Hand *hand, const char *method, const char *path, const void *body, size_t length,
             char **ret_answer);
/* Sends a tar. */
int hand_put(Hand *hand, const char *path, const void *tar, size_t length);

/* A connection of its own that the engine makes a stream of this request's (POST) output and, where it switches, input;
 * the head of the answer is taken off. -1 when it does not. */
int hand_stream(const char *socket_path, const char *path, const void *body, size_t length);

/* Reads a stream to its end and closes it; how many bytes there were, the engine's heads of them among them. */
gint64 hand_drain(int stream);

/* The string behind "key":" in an answer; owned; NULL where there is none. */
char *hand_text(const char *answer, const char *key);

#endif
