/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-beside.c: one command after the other is killed at its limit, and what others left behind in the background stays:
 * those that ran beside it, and those that began the moment that it was over. Of what was killed nobody stays.
 */
#include "guest-raw.h"

#define ROUNDS 100
#define KEPT "sleep 1000001"
#define KILLED "sleep 1000002"

/* A child, one in a session of its own, and one whose parents have ended: each prints its number when it is there. */
#define LEAVE                                                                                      \
  "sh -c 'echo $$; exec " KEPT " 2>/dev/null >&2' & setsid sh -c 'echo $$; exec " KEPT             \
  " 2>/dev/null >&2' & (setsid sh -c 'sh -c \"echo \\$\\$; exec " KEPT                             \
  " 2>/dev/null >&2\" & exit 0' &); "

/* The same, and some that come and go. */
#define VICTIM                                                                                     \
  "trap '' TERM HUP; " KILLED " & setsid " KILLED " & (setsid sh -c '" KILLED " & exit 0' &);"     \
  "while :; do (:); done & (setsid sh -c 'while :; do (:) & done' &); echo x; " KILLED

static uint32_t count(struct raw *raw, uint32_t id, const char *words) {
  g_autofree char *script = g_strdup_printf(
      "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null | grep -cx '%s '",
      words);
  return (uint32_t)g_ascii_strtoull(raw_run(raw, id, script)->out->str, NULL, 10);
}

/* The script ends when all three have said that they are there; only their exec may be to come. */
static void leave(struct raw *raw, uint32_t id) {
  raw_execute(raw, id, (struct raw_command){.script = "{ " LEAVE "} | head -n 3"});
}

static void test_left_behind(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  uint32_t id = 1;
  for (int i = 0; i < ROUNDS; i++, id += 4) {
    leave(&raw, id);
    raw_execute(&raw, id + 1,
                (struct raw_command){.script = VICTIM, .limit = 30 * RAW_MILLISECOND});
    leave(&raw, id + 2);
    g_assert_cmpuint(raw_wait(&raw, id + 1)->ended, ==, SANDHOST_ENDED_LIMIT);
    leave(&raw, id + 3);
    for (uint32_t at = id; at < id + 4; at++) {
      g_assert_cmpint(raw_wait(&raw, at)->status, ==, SANDHOST_OK);
    }
  }
  for (int i = 0; count(&raw, id++, KEPT) != ROUNDS * 9; i++) {
    g_assert_cmpint(i, <, 500);
    g_usleep(10000);
  }
  g_assert_cmpuint(count(&raw, id, KILLED), ==, 0);
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/beside/left-behind", test_left_behind);
  return g_test_run();
}
