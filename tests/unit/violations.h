/* SPDX-License-Identifier: Apache-2.0 */
/* violations.h: every rule of the guest's protocol that a guest can break while a command runs, by name, and how the
 * host names it. */
#ifndef SANDHOST_TESTS_VIOLATIONS_H
#define SANDHOST_TESTS_VIOLATIONS_H

#include "fake-guest.h"

struct violation {
  const char *name;
  const char *reason; /* behind "it broke the protocol: " */
  void (*commit)(int fd, uint32_t request);
};

static void commit_long_frame(int fd, uint32_t request) {
  unsigned char header[GUEST_HEADER];
  guest_frame_pack(header, (struct guest_frame){.length = GUEST_MAX_FRAME + 1,
                                                .kind = GUEST_DATA,
                                                .channel = GUEST_OUT,
                                                .request = request});
  fake_write_all(fd, header, sizeof header);
}

static void commit_long_control(int fd, uint32_t request) {
  unsigned char header[GUEST_HEADER];
  guest_frame_pack(header,
                   (struct guest_frame){.length = 100000, .kind = GUEST_DONE, .request = request});
  fake_write_all(fd, header, sizeof header);
}

static void commit_unknown_kind(int fd, uint32_t request) {
  fake_send(fd, 77, 0, request, NULL, 0);
}

static void commit_host_kind(int fd, uint32_t request) {
  fake_send(fd, GUEST_CANCEL, 0, request, NULL, 0);
}

static void commit_second_hello(int fd, uint32_t request) {
  (void)request;
  fake_send(fd, GUEST_HELLO, 0, 0, NULL, 0);
}

static void commit_unknown_request(int fd, uint32_t request) {
  fake_send_data(fd, GUEST_OUT, request + 1, "x");
}

static void commit_old_request(int fd, uint32_t request) {
  fake_send_data(fd, GUEST_OUT, request + GUEST_MAX_REQUESTS, "x");
}

static void commit_stdin_channel(int fd, uint32_t request) {
  fake_send_data(fd, GUEST_IN, request, "x");
}

static void commit_data_after_end(int fd, uint32_t request) {
  fake_send(fd, GUEST_END, GUEST_ERR, request, NULL, 0);
  fake_send_data(fd, GUEST_ERR, request, "x");
}

static void commit_end_twice(int fd, uint32_t request) {
  fake_send(fd, GUEST_END, GUEST_OUT, request, NULL, 0);
  fake_send(fd, GUEST_END, GUEST_OUT, request, NULL, 0);
}

static void commit_end_with_payload(int fd, uint32_t request) {
  fake_send(fd, GUEST_END, GUEST_OUT, request, "x", 1);
}

static void commit_started_twice(int fd, uint32_t request) {
  fake_send_u32(fd, GUEST_STARTED, request, 2);
  fake_send_u32(fd, GUEST_STARTED, request, 2);
}

static void commit_started_short(int fd, uint32_t request) {
  fake_send(fd, GUEST_STARTED, 0, request, "x", 1);
}

static void commit_done_twice(int fd, uint32_t request) {
  /* In one write, so that both are there when the first is read. */
  unsigned char frames[2 * (GUEST_HEADER + 8)] = {0};
  for (size_t i = 0; i < 2; i++) {
    unsigned char *frame = frames + i * (GUEST_HEADER + 8);
    guest_frame_pack(frame,
                     (struct guest_frame){.length = 8, .kind = GUEST_DONE, .request = request});
    guest_put_u32(frame + GUEST_HEADER, SANDHOST_NOT_FOUND);
  }
  fake_write_all(fd, frames, sizeof frames);
}

static void commit_done_short(int fd, uint32_t request) {
  fake_send(fd, GUEST_DONE, 0, request, "abc", 3);
}

static void commit_done_without_results(int fd, uint32_t request) {
  fake_send_done(fd, request, SANDHOST_OK, "", NULL, 0);
}

static void commit_done_long_text(int fd, uint32_t request) {
  g_autofree char *text = g_strnfill(GUEST_MAX_MESSAGE + 1, 'x');
  fake_send_done(fd, request, SANDHOST_INVALID, text, NULL, 0);
}

static void commit_done_lying_length(int fd, uint32_t request) {
  unsigned char payload[8];
  guest_put_u32(payload, SANDHOST_INVALID);
  guest_put_u32(payload + 4, 0xffffffffu);
  fake_send(fd, GUEST_DONE, 0, request, payload, sizeof payload);
}

static void commit_ended_unknown(int fd, uint32_t request) {
  fake_send_ended(fd, request, 99, 0, 0, 0, 0);
}

static void commit_ended_exit_code(int fd, uint32_t request) {
  fake_send_ended(fd, request, SANDHOST_ENDED_EXIT, 256, 0, 0, 0);
}

static void commit_ended_signal(int fd, uint32_t request) {
  fake_send_ended(fd, request, SANDHOST_ENDED_SIGNAL, 0, 65, 0, 0);
}

static void commit_ended_too_few_bytes(int fd, uint32_t request) {
  fake_send_data(fd, GUEST_OUT, request, "four");
  fake_send_ended(fd, request, SANDHOST_ENDED_EXIT, 0, 0, 3, 0);
}

static void commit_too_much_credit(int fd, uint32_t request) {
  fake_send_u32(fd, GUEST_CREDIT, request, 1);
}

static void commit_credit_short(int fd, uint32_t request) {
  fake_send(fd, GUEST_CREDIT, 0, request, "x", 1);
}

static void commit_pong(int fd, uint32_t request) {
  (void)request;
  unsigned char number[8] = {1};
  fake_send(fd, GUEST_PONG, 0, 0, number, sizeof number);
}

static const struct violation violations[] = {
    {"long-frame", "a frame that is too long", commit_long_frame},
    {"long-control", "a frame that is too long", commit_long_control},
    {"unknown-kind", "a frame of an unknown kind", commit_unknown_kind},
    {"host-kind", "a frame of an unknown kind", commit_host_kind},
    {"second-hello", "a frame of an unknown kind", commit_second_hello},
    {"unknown-request", "a frame for a request that is not open", commit_unknown_request},
    {"old-request", "a frame for a request that is not open", commit_old_request},
    {"stdin-channel", "data on a channel that the request does not have", commit_stdin_channel},
    {"data-after-end", "data on a channel that has ended", commit_data_after_end},
    {"end-twice", "a channel ended twice", commit_end_twice},
    {"end-with-payload", "a malformed end of a channel", commit_end_with_payload},
    {"started-twice", "a command started twice", commit_started_twice},
    {"started-short", "a malformed start", commit_started_short},
    {"done-twice", "a request ended twice", commit_done_twice},
    {"done-short", "a malformed end of a request", commit_done_short},
    {"done-without-results", "a malformed end of a request", commit_done_without_results},
    {"done-long-text", "a malformed end of a request", commit_done_long_text},
    {"done-lying-length", "a malformed end of a request", commit_done_lying_length},
    {"ended-unknown", "a command that ended in no possible way", commit_ended_unknown},
    {"ended-exit-code", "a command that ended in no possible way", commit_ended_exit_code},
    {"ended-signal", "a command that ended in no possible way", commit_ended_signal},
    {"ended-too-few-bytes", "a command that ended in no possible way", commit_ended_too_few_bytes},
    {"too-much-credit", "credit for data that was not sent", commit_too_much_credit},
    {"credit-short", "a malformed credit", commit_credit_short},
    {"pong", "an answer to a ping that was not sent", commit_pong},
};

#endif
