/* SPDX-License-Identifier: Apache-2.0 */
/* plain-execute-output.c: what comes through the stream of a command: its output, and our script's words. */
#include "plain-execute.h"

#include "failure.h"

#include <errno.h>
#include <string.h>

#define PIECE ((size_t)64 * 1024)
/* Of what comes before the command has begun: the engine's complaint at most. */
#define MOST_HEAD ((size_t)16 * 1024)

int32_t execution_deliver(struct execution *execution, uint32_t stream, const void *data,
                          size_t length) {
  uint64_t most = execution->request->max_output_bytes;
  uint64_t before = execution->written[stream];
  size_t part = most == 0 ? length : (size_t)MIN((uint64_t)length, most - MIN(most, before));
  execution->written[stream] += length;
  if (part == 0 || execution->over) {
    return SANDHOST_OK;
  }
  int64_t began = contract_now();
  int32_t status = execution->observer.output(execution->observer.user, stream, data, part);
  execution->callback_time += contract_now() - began;
  if (status != SANDHOST_OK) {
    execution->over = SANDHOST_CANCELLED;
    execution->over_why = "the receiver of the output stopped";
  }
  return SANDHOST_OK;
}

/* Whether what came first may still be the engine's complaint. */
static gboolean may_be_complaint(const struct execution *execution) {
  size_t compared = MIN(execution->head->len, sizeof ENGINE_COMPLAINT - 1);
  return execution->head->len <= MOST_HEAD &&
         memcmp(execution->head->str, ENGINE_COMPLAINT, compared) == 0;
}

int32_t execution_close_head(struct execution *execution) {
  execution->head_open = FALSE;
  return execution->head->len > 0 ? execution_deliver(execution, SANDHOST_STDOUT,
                                                      execution->head->str, execution->head->len)
                                  : SANDHOST_OK;
}

static int32_t command_output(void *user, const void *data, size_t length) {
  struct execution *execution = user;
  if (execution->stream != SANDHOST_STDOUT || !execution->head_open) {
    return execution_deliver(execution, execution->stream, data, length);
  }
  g_string_append_len(execution->head, data, (gssize)length);
  if (may_be_complaint(execution)) {
    return SANDHOST_OK;
  }
  return execution->how == HOW_BARE ? execution_close_head(execution) : SANDHOST_PROTOCOL;
}

static gboolean read_number(const char **at, guint64 most, guint64 *ret_number) {
  char *end = NULL;
  if (!g_ascii_isdigit(**at)) {
    return FALSE;
  }
  *ret_number = g_ascii_strtoull(*at, &end, 10);
  *at = end;
  return *ret_number <= most;
}

/* B PID, E CODE,TOLD on stdout; E on stderr. */
static int32_t command_word(void *user, const char *word) {
  struct execution *execution = user;
  const char *at = word + 1;
  guint64 number = 0;
  guint64 told = 0;
  if (word[0] == 'E') {
    execution->ended[execution->stream] = TRUE;
    if (execution->stream == SANDHOST_STDERR) {
      return *at ? SANDHOST_PROTOCOL : SANDHOST_OK;
    }
    execution->ended_at = contract_now();
    if (!read_number(&at, 255, &number) || *at++ != ',' || !read_number(&at, 2, &told) || *at) {
      return SANDHOST_PROTOCOL;
    }
    execution->code = (int)number;
    execution->told = (int)told;
    return SANDHOST_OK;
  }
  if (word[0] != 'B' || execution->stream != SANDHOST_STDOUT || execution->begun_at ||
      !read_number(&at, (1u << 22) - 1, &number) || *at) {
    return SANDHOST_PROTOCOL;
  }
  execution->begun_at = contract_now();
  execution->head_open = FALSE;
  if (execution->observer.started) {
    execution->observer.started(execution->observer.user,
                                plain_execution_of(&execution->mark, (uint32_t)number));
  }
  return SANDHOST_OK;
}

static const struct plain_word_events WORDS = {.output = command_output, .word = command_word};

static int32_t stream_output(void *user, uint32_t stream, const void *data, size_t length) {
  struct execution *execution = user;
  execution->stream = stream;
  return execution->how == HOW_BARE
             ? command_output(execution, data, length)
             : plain_words_feed(&execution->words[stream], &WORDS, execution, data, length);
}

gboolean execution_is_ended(const struct execution *execution) {
  return execution->at_end ||
         (execution->ended[SANDHOST_STDOUT] && execution->ended[SANDHOST_STDERR]);
}

/* Reads what is there, a bounded while. */
int32_t execution_receive(struct execution *execution) {
  g_autofree unsigned char *bytes = g_malloc(PIECE);
  int32_t status = SANDHOST_OK;
  for (int i = 0; i < 16 && status == SANDHOST_OK && !execution_is_ended(execution); i++) {
    ssize_t count = execution->channel->receive(execution->channel, bytes, PIECE);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      break;
    }
    if (count <= 0) {
      execution->at_end = TRUE;
      break;
    }
    status = engine_frames_feed(&execution->frames, stream_output, execution, bytes, (size_t)count);
  }
  return status == SANDHOST_OK
             ? status
             : fail_call(execution->sandbox->host, execution->call, SANDHOST_PROTOCOL,
                         "%s sent output of a command that makes no sense",
                         engine_name(execution->sandbox->instance->engine));
}

void execution_release_held(struct execution *execution) {
  for (uint32_t stream = SANDHOST_STDOUT; stream <= SANDHOST_STDERR; stream++) {
    execution->stream = stream;
    (void)plain_words_finish(&execution->words[stream], &WORDS, execution);
  }
}
