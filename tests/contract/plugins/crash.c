/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c: takes its process along. CRASH_WHERE says in which operation (create is the default), CRASH_HOW by what: abort
 * (the default), segv, bus, fpe, exit (with 0, as if all were well), quit (the same without any handler), overflow. */
#include <signal.h>
#include <sys/mman.h>

#include "hooked.h"

static int is_word(const char *variable, const char *fallback, const char *word) {
  const char *said = getenv(variable);
  return strcmp(said ? said : fallback, word) == 0;
}

/* Nothing here is undefined: the machine itself refuses it, under a sanitizer too. */
static void touch_nothing(void) {
  volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *page = 1;
}

static void touch_beyond_the_end(void) {
  char name[] = "/tmp/crash-XXXXXX";
  int fd = mkstemp(name);
  volatile char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  unlink(name);
  close(fd);
  *page = 1;
}

static __attribute__((noinline)) int dig(volatile int *depth) {
  volatile char room[4096];
  room[0] = (char)*depth;
  *depth += 1;
  return *depth > 0 ? dig(depth) + room[0] : 0;
}

static void die(void) {
  volatile int depth = 1;
  if (is_word("CRASH_HOW", "abort", "segv")) {
    touch_nothing();
  } else if (is_word("CRASH_HOW", "abort", "bus")) {
    touch_beyond_the_end();
  } else if (is_word("CRASH_HOW", "abort", "fpe")) {
    raise(SIGFPE);
  } else if (is_word("CRASH_HOW", "abort", "exit")) {
    exit(0);
  } else if (is_word("CRASH_HOW", "abort", "quit")) {
    _exit(0);
  } else if (is_word("CRASH_HOW", "abort", "overflow")) {
    dig(&depth);
  }
  abort();
}

static void hook(const char *operation) {
  if (is_word("CRASH_WHERE", "create", operation)) {
    die();
  }
}

HOOKED_PLUGIN("crash")
