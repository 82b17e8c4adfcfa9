/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.h: what a check of the conformance suite works with.
 *
 * A check is a function that gets the subject (the loaded provider, one open instance) and says what is wrong with
 * the first thing that is not as provider.h says, by calling wrong() and returning. Checks are independent: each
 * makes the sandboxes that it needs.
 */
#ifndef SANDHOST_CONFORMANCE_SUITE_H
#define SANDHOST_CONFORMANCE_SUITE_H

#include <glib.h>
#include <pthread.h>
#include <sandhost/provider.h>

#define SECOND G_GINT64_CONSTANT(1000000000)

/* The host's side of a call. */
struct sandhost_call {
  gint64 deadline;
  int cancel; /* eventfd, or -1 */
  gint cancelled;
  gboolean over;        /* lock: what is told from here on is too late, and forgotten */
  pthread_mutex_t lock; /* not GLib's: the thread sanitizer does not see those */
  gint32 failed;        /* first status given to fail; 0: none */
  char *message;
  char *ref;
  char *lost;
  char *snapshot;
  guint fails;
  gboolean may_have_happened; /* as fail_details said */
  gboolean did_not_happen;    /* the same */
  guint32 lowered[32];        /* settings of which SANDHOST_REPORT_LOWERED said why */
  guint lowered_count;
};

typedef struct {
  const struct sandhost_provider
      *table; /* checked copy: what lies beyond the plugin's size is zero */
  struct sandhost_instance *instance;
  const struct sandhost_open *request; /* by which it was opened */
  const char *working_dir;
  gboolean host_surface;
  gboolean keeps_network_off; /* SANDHOST_NETWORK_DENY may be asked for */
  char run_id[48];            /* this process's own: what others run is not ours to sweep */
} Subject;

typedef struct {
  char *wrong;   /* what was found; NULL while all is well */
  char *skipped; /* why the check does not apply */
  char *untried; /* why what it asks for could be neither seen nor refuted here */
  char *noted;   /* what its user should know and no clause forbids; beside any of the others */
} Verdict;

typedef struct {
  const char *name; /* "execute: exit code" */
  const char *rule; /* what provider.h asks for, in one sentence */
  void (*run)(Subject *subject, Verdict *verdict);
} Check;

extern const Check LIFECYCLE_CHECKS[], EXECUTE_CHECKS[], LIMIT_CHECKS[], FILE_CHECKS[],
    TRANSFER_CHECKS[], OPTIONAL_CHECKS[], PROCESS_CHECKS[], EARLY_CHECKS[], LOST_CHECKS[],
    SLOT_CHECKS[], MAKING_CHECKS[], PROMISE_CHECKS[], CHANGES_CHECKS[], ARCHIVE_CHECKS[],
    AGAIN_CHECKS[], KEPT_CHECKS[], SWEEP_CHECKS[], SNAPSHOT_CHECKS[], OBSERVER_CHECKS[],
    INHERITED_CHECKS[], RESULT_CHECKS[], AIM_CHECKS[], ATTACH_CHECKS[], PERSON_CHECKS[],
    LINK_CHECKS[], BESIDE_CHECKS[], WHOLE_CHECKS[], GROWTH_CHECKS[];
/* They judge what was seen around all calls, when nobody calls any more. */
extern const Check WATCHED_CHECKS[];

/* The first one counts; returns FALSE, so that a helper can report and return in one statement. */
gboolean wrong(Verdict *verdict, const char *format, ...) G_GNUC_PRINTF(2, 3);
void skipped(Verdict *verdict, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* No pass: what is wrong all the same still counts. */
void untried(Verdict *verdict, const char *format, ...) G_GNUC_PRINTF(2, 3);

void noted(Verdict *verdict, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* ---- Calls ---- */

extern const struct sandhost_host SUITE_HOST;
gint64 suite_now(void);
/* A call that may take that many seconds; cancellable. */
void call_init(struct sandhost_call *call, gint64 seconds);
void call_cancel(struct sandhost_call *call);
void call_clear(struct sandhost_call *call);
/* The first text that progress was given and that is no line; NULL: none was. Owned. */
char *bad_progress(void);
const char *status_name(gint32 status);

/* ---- Sandboxes ---- */

typedef struct {
  Subject *subject;
  struct sandhost_sandbox *handle;
  char *ref;
} Box;

/* How a setting is kept here and now; ENFORCED for everything where nothing is declared. */
guint32 subject_level(Subject *subject, guint32 setting);

/* network: SANDHOST_NETWORK_*; DENY becomes ALLOW where the provider does not keep it. FALSE: wrong() was called. */
gboolean box_open(Box *box, Subject *subject, guint32 network, Verdict *verdict);
/* A request to create as most checks make it, with a key of its own, to be changed before use. It points into itself. */
typedef struct {
  struct sandhost_create create;
  struct sandhost_network network;
  struct sandhost_pair environment[1];
  char key[64];
} MakeRequest;
void make_request_init(MakeRequest *request, Subject *subject, guint32 network);
gboolean box_open_as(Box *box, Subject *subject, const MakeRequest *request, Verdict *verdict);
/* The same, from a snapshot; NULL: none. */
gboolean box_open_from(Box *box, Subject *subject, guint32 network, const char *snapshot,
                       Verdict *verdict);
/* terminate and release; a failing terminate is wrong(). */
gboolean box_close(Box *box, Verdict *verdict);

/* ---- Commands ---- */

typedef struct {
  gint32 status;
  struct sandhost_result result;
  GString *out;
  GString *err;
  char *message;           /* of a failure */
  char *lost;              /* SANDHOST_REPORT_LOST */
  gboolean did_not_happen; /* as fail_details said */
  guint starts;
  gint64 took;
} Ran;

typedef struct {
  gint64 limit; /* seconds; 0: none */
  guint64 max_output;
  const char *input; /* NULL: no stdin */
  gsize input_length;
  gboolean input_stays_open;
  gint64 cancel_after; /* nanoseconds from the start; 0: never */
  gint64 deadline;     /* seconds; 0: 60 */
  gsize stop_after;    /* the observer says stop after that many bytes; 0: never */
  void (*on_started)(void *user, guint64 execution); /* NULL; in the thread of the execute */
  void (*on_output)(void *user, const char *data, gsize length); /* the same */
  void *user;
  const char *cwd;
  const struct sandhost_pair *environment;
  gsize environment_count;
} RunOptions;

void ran_clear(Ran *ran);
/* How often an observer was called, or a call told something, after its execute had returned; since the program began. */
guint late_calls(void);
/* sh -c script. */
void run_script(Box *box, const char *script, const RunOptions *options, Ran *ret_ran);
void run_argv(Box *box, const char *const *argv, const RunOptions *options, Ran *ret_ran);
/* Runs and wants an ordinary end: the exit code and, where not NULL, exactly this stdout. */
gboolean want_run(Box *box, const char *script, int exit_code, const char *out, Verdict *verdict);

/* ---- Bytes ---- */

/* What is still to be given, in pieces that are smaller than anything large. */
typedef struct {
  const char *data;
  gsize left;
} Rest;
/* rest: borrowed while the source is used. */
struct sandhost_source rest_source(Rest *rest);

gint32 read_into(Box *box, const char *path, GString *ret_content);
gint32 write_from(Box *box, const char *path, const char *content, gsize length, guint32 mode);
struct sandhost_path as_path(const char *text);
struct sandhost_text as_text(const char *text);
char *below(const Box *box, const char *name); /* working_dir/name; owned */

#endif
