/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.h: what the files of this provider share.
 *
 *   example.c   the table, instances, the life of a sandbox: read it first
 *   files.c     one file in, one file out
 *   execute.c   one command as the host sees it: start, input, output, limit, end
 *   keeper.c    the process between us and a command, which can end all that the command started
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sandhost/provider.h>

#define SECOND INT64_C(1000000000)

struct keeper;

struct sandhost_sandbox {
  char *working_dir;      /* a folder of this machine, without a / at its end */
  char **environment;     /* NAME=value, of every command */
  struct keeper *keepers; /* of commands that may have left something behind */
  const char *gone;       /* why there is no sandbox any more; NULL: it lives */
};

/* The host's table: the one thing that lives outside a handle, constant once the entry was called. */
extern const struct sandhost_host *host;

/* Every failure goes through here: the call's error, and the status that the operation returns. error: an errno, or
 * 0. */
int32_t fail(struct sandhost_call *call, int32_t status, const char *what, int error);
/* SANDHOST_OK, or the failure of a call whose deadline has passed or whose caller has cancelled. */
int32_t check_call(struct sandhost_call *call);
/* What every operation on a sandbox asks first: the same, and whether the sandbox is still there. */
int32_t check_alive(struct sandhost_call *call, const struct sandhost_sandbox *sandbox);
/* That it is not: the failure of an operation that had begun. */
int32_t fail_lost(struct sandhost_call *call, const struct sandhost_sandbox *sandbox);
/* The status that fits an errno. */
int32_t status_of(int error);
/* The contract's clock. */
int64_t now(void);
/* NAME=value strings, NULL-terminated, of the pairs and of what they leave of base. Owned; NULL: no memory. */
char **make_environment(const char *const *base, const struct sandhost_pair *pairs, size_t count);
void free_environment(char **take_environment);

int32_t example_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                          struct sandhost_path path, const struct sandhost_sink *sink);
int32_t example_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                           struct sandhost_path path, uint32_t mode,
                           const struct sandhost_source *source);
int32_t example_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                        const struct sandhost_execute *request,
                        const struct sandhost_observer *observer,
                        struct sandhost_result *ret_result);

#endif
