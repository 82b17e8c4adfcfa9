/* SPDX-License-Identifier: Apache-2.0 */
/* check-making.c: what create is asked for: a key that is there already, what is not kept, a limit of memory. */
#include <string.h>

#include "left.h"
#include "suite.h"

/* *ret_message: owned; of a failure. certain becomes FALSE where that may have left something; NULL: nobody asks. */
static gint32 make(Subject *subject, const MakeRequest *request, Box *ret_box, char **ret_message,
                   gboolean *certain) {
  struct sandhost_call call;
  *ret_box = (Box){.subject = subject};
  call_init(&call, 300);
  gint32 status =
      subject->table->create(&call, subject->instance, &request->create, &ret_box->handle);
  ret_box->ref = g_strdup(call.ref);
  *ret_message = g_strdup(call.message ? call.message : "no message");
  if (certain && status != SANDHOST_OK && call.may_have_happened) {
    *certain = FALSE;
  }
  call_clear(&call);
  return status;
}

/* ---- The same key ------------------------------------------------------------------------------------------------- */

/* The second is the first, or the first has made room for it. */
static void judge_second(Box *first, Box *second, Verdict *verdict) {
  Ran ran;
  run_script(first, "echo more >> mark", NULL, &ran);
  if (ran.status == SANDHOST_LOST) {
    want_run(second, "echo alive", 0, "alive\n", verdict);
  } else if (ran.status != SANDHOST_OK) {
    wrong(verdict, "the first of two with one key returned %s", status_name(ran.status));
  } else {
    Ran seen;
    run_script(second, "cat mark", NULL, &seen);
    if (seen.status != SANDHOST_OK || strcmp(seen.out->str, "first\nmore\n") != 0) {
      wrong(verdict, "there are two sandboxes of one key");
    }
    ran_clear(&seen);
  }
  ran_clear(&ran);
}

static void check_same_key(Subject *subject, Verdict *verdict) {
  MakeRequest request;
  Box first;
  Box second;
  make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
  if (!box_open_as(&first, subject, &request, verdict)) {
    return;
  }
  want_run(&first, "echo first > mark", 0, "", verdict);
  g_autofree char *message = NULL;
  gint32 status = make(subject, &request, &second, &message, NULL);
  if (status == SANDHOST_OK) {
    judge_second(&first, &second, verdict);
    box_close(&second, verdict);
  } else if (status == SANDHOST_EXISTS) {
    want_run(&first, "cat mark", 0, "first\n", verdict);
    g_free(second.ref);
  } else {
    wrong(verdict, "create with the key of a living sandbox returned %s: %s", status_name(status),
          message);
  }
  box_close(&first, verdict);
  /* The key of one that is gone is free. */
  if (box_open_as(&first, subject, &request, verdict)) {
    want_run(&first, "echo alive", 0, "alive\n", verdict);
    box_close(&first, verdict);
  }
}

/* ---- What is not kept ---------------------------------------------------------------------------------------------- */

static void want_unsupported(Subject *subject, guint32 setting, const MakeRequest *request,
                             const char *what, gboolean *certain, Verdict *verdict) {
  Box box;
  if (subject_level(subject, setting) != SANDHOST_LEVEL_NONE) {
    return;
  }
  g_autofree char *message = NULL;
  gint32 status = make(subject, request, &box, &message, certain);
  if (status != SANDHOST_UNSUPPORTED) {
    wrong(verdict, "create with %s, which is not declared, returned %s instead of UNSUPPORTED: %s",
          what, status_name(status), message);
  }
  if (status == SANDHOST_OK) {
    box_close(&box, verdict);
  } else {
    g_free(box.ref);
  }
}

static void check_unsupported(Subject *subject, Verdict *verdict) {
  const struct sandhost_text hosts[] = {as_text("example.org")};
  const struct sandhost_mount mounts[] = {{.size = sizeof(struct sandhost_mount),
                                           .source = as_path("/usr/share"),
                                           .target = as_path("/mnt")}};
  MakeRequest request;
  gboolean certain = TRUE;
#define ASK(SETTING, WHAT, ...)                                                                    \
  make_request_init(&request, subject, SANDHOST_NETWORK_ALLOW);                                    \
  __VA_ARGS__;                                                                                     \
  want_unsupported(subject, SANDHOST_SETTING_##SETTING, &request, WHAT, &certain, verdict)
  ASK(IMAGE, "an image", request.create.image = as_text("busybox:test"));
  ASK(SNAPSHOT, "a snapshot", request.create.snapshot = as_text("snapshot"));
  ASK(CPU, "a CPU limit", request.create.cpu_millis = 500);
  ASK(MEMORY, "a memory limit", request.create.memory_bytes = 256 << 20);
  ASK(GPU, "a GPU", request.create.gpu = 1);
  ASK(LIFETIME, "a lifetime", request.create.lifetime = 600 * SECOND);
  ASK(MOUNT, "a mount", request.create.mounts = mounts; request.create.mount_count = 1);
  ASK(ALLOWED_HOSTS, "allowed hosts", request.network.allowed_hosts = hosts;
      request.network.allowed_count = 1);
  ASK(DENIED_HOSTS, "denied hosts", request.network.denied_hosts = hosts;
      request.network.denied_count = 1);
  ASK(NETWORK_OFF, "no network", request.network.mode = SANDHOST_NETWORK_DENY);
#undef ASK
  want_none_left(subject, certain, verdict);
}

static void check_unknown_snapshot(Subject *subject, Verdict *verdict) {
  MakeRequest request;
  Box box;
  if (!subject->table->snapshot) {
    skipped(verdict, "no snapshots");
    return;
  }
  make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
  request.create.snapshot = as_text("sandhost-conformance-no-such-snapshot");
  g_autofree char *message = NULL;
  gboolean certain = TRUE;
  gint32 status = make(subject, &request, &box, &message, &certain);
  if (status == SANDHOST_OK) {
    box_close(&box, verdict);
  } else {
    g_free(box.ref);
  }
  if (status != SANDHOST_NOT_FOUND && status != SANDHOST_INVALID) {
    wrong(verdict, "create from a snapshot that is none returned %s instead of NOT_FOUND: %s",
          status_name(status), message);
  }
  want_none_left(subject, certain, verdict);
}

/* ---- Memory -------------------------------------------------------------------------------------------------------- */

#define MEMORY ((guint64)64 << 20)

static void check_memory(Subject *subject, Verdict *verdict) {
  MakeRequest request;
  Box box;
  Ran ran;
  if (subject->table->enforces_count == 0 ||
      subject_level(subject, SANDHOST_SETTING_MEMORY) < SANDHOST_LEVEL_ENFORCED) {
    skipped(verdict, "no limit of memory is enforced here");
    return;
  }
  make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
  request.create.memory_bytes = MEMORY;
  if (!box_open_as(&box, subject, &request, verdict)) {
    return;
  }
  /* A line without an end is held as a whole. */
  run_script(&box, "mkfifo p; tr '\\0' x < /dev/zero > p & exec sed -n '$p' < p",
             &(RunOptions){.limit = 60, .deadline = 120, .max_output = 1000}, &ran);
  if (ran.status != SANDHOST_LOST &&
      (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_MEMORY ||
       ran.result.exit_code != 137)) {
    wrong(verdict, "a command that uses up the memory: %s, ended %u, exit code %d",
          status_name(ran.status), ran.result.ended, ran.result.exit_code);
  } else if (ran.status == SANDHOST_OK) {
    want_run(&box, "echo alive", 0, "alive\n", verdict);
    want_run(&box, "exit 137", 137, "", verdict); /* nobody takes that for it */
  }
  ran_clear(&ran);
  box_close(&box, verdict);
}

const Check MAKING_CHECKS[] = {
    {"create: same key",
     "the same key again is the same sandbox, or EXISTS, or takes the place of one that is LOST "
     "then; never are there two",
     check_same_key},
    {"create: not kept",
     "what is asked for and not declared is UNSUPPORTED, never left out, and leaves nothing",
     check_unsupported},
    {"create: unknown snapshot", "a snapshot that does not exist is NOT_FOUND, and leaves nothing",
     check_unknown_snapshot},
    {"limit: memory", "a command that uses up the sandbox's memory is ENDED_MEMORY, 137",
     check_memory},
    {0},
};
