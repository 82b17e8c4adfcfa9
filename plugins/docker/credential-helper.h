/* SPDX-License-Identifier: Apache-2.0 */
/* credential-helper.h: Docker's credential helpers, programs that keep logins in a key chain. */
#ifndef SANDHOST_DOCKER_CREDENTIAL_HELPER_H
#define SANDHOST_DOCKER_CREDENTIAL_HELPER_H

#include <glib.h>

/* Bytes that may hold a secret. They are wiped when they are freed. */
struct secret {
  char *data; /* NUL-terminated */
  size_t length;
  size_t capacity;
};
/* Room for capacity bytes and a NUL; never grows, so that no copy is left behind. */
void secret_init(struct secret *secret, size_t capacity);
void secret_clear(struct secret *secret);

enum credential_answer {
  CREDENTIAL_FOUND,  /* *ret_output holds what it printed */
  CREDENTIAL_NONE,   /* it works, and knows no login for this registry */
  CREDENTIAL_FAILED, /* *ret_complaint says why */
};

/* Runs `docker-credential-NAME get` with the registry on its stdin, for at most ten seconds, and
 * kills what it leaves behind in its session. ret_output is filled for CREDENTIAL_FOUND only.
 * Threads: any. */
enum credential_answer credential_helper_get(const char *name, const char *registry, int cancel_fd,
                                             struct secret *ret_output, char **ret_complaint);

#endif
