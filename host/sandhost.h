/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandhost/sandhost.h: libsandhost, for programs that give an agent a safe place for its commands.
 *
 *   sandhost_open -> register_sandbox_provider? -> sandhost_check? -> sandhost_run_start
 *     -> sandhost_execute ... -> sandhost_run_end -> sandhost_close
 *
 * A run that has to wait for a person, and goes on later, maybe in another process:
 *
 *   ... -> sandhost_execute: "awaiting_approval" -> sandhost_run_end
 *   sandhost_approvals -> sandhost_approve | sandhost_deny
 *   sandhost_resume -> sandhost_execute_stopped -> sandhost_execute ... -> sandhost_run_end
 *
 * So does one that has used up a budget: "awaiting_budget", sandhost_grant | sandhost_deny_budget. What a program uses
 * beside commands, such as a model, is charged with sandhost_run_charge, sandhost_run_hold and sandhost_run_settle.
 *
 * A host is a configuration with its providers and its record. A run is one task of an agent: it has one sandbox,
 * made by its first command and shared by all of them. libsandhost(3) has an example.
 *
 * What holds everywhere:
 *
 * - Results: a function returns SANDHOST_STATUS_OK (0) or a negative status, or NULL where it returns a pointer. Its
 *   ret_ parameters are written on success only; ret_error, always the last parameter, on failure only: one line of
 *   UTF-8 without a line break, for a person. Any of them may be NULL unless its function says otherwise.
 * - Ownership: every text that comes out through a char ** or char * is the caller's, and freed with sandhost_free.
 *   Arguments are copied: they need to live only until the function returns. What a callback is given is borrowed
 *   until it returns. The user pointers are never touched; how long they must live stands where they are given.
 * - Text is UTF-8 that ends with a NUL. JSON that comes out is one line. Durations are seconds. JSON that is given is read
 *   strictly: at most 16 MiB and 64 levels deep, no key twice in an object, no integer beyond 64 bits, no number that a
 *   double cannot hold.
 * - Structs that the program fills begin with their size, so that members can be appended: set size to sizeof the
 *   struct and what is not used to zero. Refused, as INVALID, are a struct that is longer than this library knows and
 *   not zero there, a size that ends within a member, and one of more than 1 MiB, which was never set.
 * - Threads: every function may be called from any thread at any time, except that a handle must not be used any more
 *   once sandhost_close or sandhost_run_end has been called with it. What blocks says so.
 * - Callbacks (hooks, check_approver, test handlers, a provider that is linked in): each returns. None may be left by an
 *   exception, longjmp or the end of its thread: an exception out of a hook, check_approver or a handler ends the program
 *   (std::terminate), whoever would catch it; the others leave the run locked for ever.
 * - Processes: a handle does not survive a fork. In the child every function refuses it as STATE and touches nothing of the
 *   parent's: sandhost_close and sandhost_cancel do nothing, sandhost_run_id and sandhost_run_request still tell. Its
 *   memory stays until the child ends. A child opens its own host, if it was forked while no host of the parent was in
 *   use: from what first needs its record, such as sandhost_run_start, until sandhost_close and the end of its runs, and
 *   while it is checked. Otherwise sandhost_open fails, as STATE: fork before the first host is opened, or execute a new
 *   program. A fork that is none of fork(2), such as clone(2), is not noticed. The library starts children of its own and waits for them by id:
 *   a program must not ignore SIGCHLD, and must not reap children that are not its own (waitpid with -1).
 * - Descriptors: all are closed on exec. With bubblewrap a host that is in use has about 12 open, each run with its sandbox
 *   6, each command that runs 2, and for a moment each start of a sandbox 20 more. Where they run out, what fails says so,
 *   how many the process may have, and what to do.
 * - dlclose: the library stays loaded, since its threads do: those that worked for a host wait, idle, also after
 *   sandhost_close, and serve the next one.
 * - The library installs no signal handler, prints nothing and does not end the program, except that it aborts where
 *   no memory can be had.
 *
 * This file includes <stddef.h> alone, and compiles as C11 and as C++. All of it is there since 0.1.
 */
#ifndef SANDHOST_SANDHOST_H
#define SANDHOST_SANDHOST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#if defined(__GNUC__)
/* sandhost/provider.h has structs that are named as two functions here; "struct sandhost_open" still means the struct,
 * but g++ warns that the function hides its constructor. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#endif

#if defined(__GNUC__)
#define SANDHOST_API __attribute__((visibility("default")))
#else
#define SANDHOST_API
#endif

typedef struct sandhost sandhost;
typedef struct sandhost_run sandhost_run;

/* ---- Statuses --------------------------------------------------------------------------------------------------- */

/* What functions return. The numbers have gaps; a program treats one that it does not know as
 * SANDHOST_STATUS_FAILED. */
enum sandhost_status {
  SANDHOST_STATUS_OK = 0,
  SANDHOST_STATUS_INVALID =
      -10, /* an argument makes no sense: a NULL, a size, a word that is not known */
  SANDHOST_STATUS_CONFIG =
      -20, /* the configuration makes no sense, names a provider that nobody registered, or asks for
            * what its provider cannot keep */
  SANDHOST_STATUS_STATE = -30, /* not now: the host is in use already, or the run is ending */
  SANDHOST_STATUS_NOT_FOUND =
      -40, /* no such run or file, or a provider that is known and not installed */
  SANDHOST_STATUS_PROVIDER = -50,  /* the provider failed */
  SANDHOST_STATUS_RECORD = -60,    /* the record could not be read or written */
  SANDHOST_STATUS_WORKSPACE = -70, /* the workspace could not be read or written */
  SANDHOST_STATUS_CANCELLED = -80,
  SANDHOST_STATUS_DENIED = -90, /* the policy refused, or a budget has no room */
  SANDHOST_STATUS_FAILED = -100 /* anything else */
};

/* ---- The host --------------------------------------------------------------------------------------------------- */

/* A decision of a person, before it is stored. All borrowed. */
struct sandhost_decision {
  size_t size;
  const char *run_id;
  const char *approval_id; /* NULL: it is about budgets */
  const char *decision;    /* "approve" or "deny"; about budgets "grant" or "deny" */
  const char *approver;    /* the name that is claimed */
  const char *note;        /* NULL: none */
  const char *arguments;   /* JSON: the call as it was edited; NULL: as it was asked about */
  const char
      *approval; /* JSON: the ask, as sandhost_approvals tells it; NULL: it is about budgets */
  const char
      *budget_requests; /* JSON: an array of what is decided of budgets; NULL: it is about an ask */
  const char
      *amount; /* a number: how much more is granted; NULL: what is missing, or it is no grant */
};

/* What a program sets beside the configuration; each member wins over it. NULL: what the configuration says; "" is
 * INVALID. */
struct sandhost_settings {
  size_t size;
  const char *workspace; /* folder whose files go in and come back; it must exist */
  const char *provider;  /* name of the sandbox provider */
  const char *record;    /* file that keeps the record; made when it is missing */

  /* Says whether the one who decides is who the name claims; names are not authenticated otherwise. Asked by
   * sandhost_approve, sandhost_deny, sandhost_grant and sandhost_deny_budget before anything is stored, after the
   * program that the configuration names (governance_config.approver_check), and only about an ask that still waits.
   * 0: yes. Any other: the decision is refused as DENIED, with the text in *ret_refusal (NULL before; allocated with
   * malloc, freed by the library) as the reason. NULL function: a name is taken as given.
   * Threads: from the thread of the function that decides, so several at once. It may block. user must live until
   * the host is closed and its runs have ended. */
  int (*check_approver)(void *user, const struct sandhost_decision *decision, char **ret_refusal);
  void *user;
};

/* Opens a host.
 * config_json: the content of a sandhost.json(5), in which the files of register_sandbox_provider have absolute paths.
 * NULL: the defaults, with the provider bubblewrap unless settings names another one. settings: NULL: nothing is set.
 * ret_host: must not be NULL; owned, given back with sandhost_close.
 *
 * Only the JSON and settings are looked at here. The configuration itself is checked when the host is first needed, by
 * sandhost_check, sandhost_tool, sandhost_run_start, sandhost_resume or whatever reads the record, so that providers can
 * be registered in between. Relative paths in it are taken from what is the current folder then.
 * Errors: INVALID, CONFIG, STATE (this process was forked while a host of its parent was in use). */
SANDHOST_API int sandhost_open(const char *config_json, const struct sandhost_settings *settings,
                               sandhost **ret_host, char **ret_error);

/* Gives the handle back; NULL: nothing. Runs that have not ended go on, and what they need of the host is freed with
 * the last of them. Blocks while the provider is closed. */
SANDHOST_API void sandhost_close(sandhost *host);

/* Checks all that can be checked with nothing started: configuration, policy, provider, and whether the provider can
 * keep what is asked of it. What is found holds for the whole life of the host; after a failure the check is made
 * anew, for example once the missing provider is registered.
 * ret_warnings: JSON, [{"code", "message"}]: what is allowed and yet may surprise, such as commands that run on this
 * machine; "[]" for none.
 * Errors: CONFIG (also a provider's name that is neither the product's nor registered), NOT_FOUND (the provider is known,
 * and not installed), PROVIDER. */
SANDHOST_API int sandhost_check(sandhost *host, char **ret_warnings, char **ret_error);

/* The execute tool as a model is told of it: JSON, {"name", "description", "parameters"}. NULL where there is no such
 * tool; then *ret_error says why, and what to do. It is NULL in just those cases in which sandhost_run_start fails
 * before it touches the record. Owned. */
SANDHOST_API char *sandhost_tool(sandhost *host, char **ret_error);

/* ---- Providers -------------------------------------------------------------------------------------------------- */

struct sandhost_host;     /* of sandhost/provider.h */
struct sandhost_provider; /* of sandhost/provider.h */

/* The type of sandhost_provider_1 in sandhost/provider.h. */
typedef const struct sandhost_provider *(*sandhost_provider_entry)(
    const struct sandhost_host *host);

/* Registers a provider that is linked into the program; its name then works wherever a provider's name does. It is
 * asked for its table and checked at once. The name must be the table's own. entry is kept, and what it returns is
 * used, for the life of the process. The same name and entry again are no error.
 * Errors: INVALID, CONFIG (a bad name or table, a name that is taken), STATE (the host was checked or used already). */
SANDHOST_API int register_sandbox_provider(sandhost *host, const char *name,
                                           sandhost_provider_entry entry, char **ret_error);

/* Registers a provider's shared object. path must be absolute; the file is loaded and checked when the provider is
 * used, and stays loaded for the life of the process. Errors: as above. */
SANDHOST_API int register_sandbox_provider_file(sandhost *host, const char *name, const char *path,
                                                char **ret_error);

/* Stands in for a command of the provider local_test, for tests of an agent. argv is NULL-terminated; what a model
 * runs is {"sh", "-c", command}. Returns the exit code, 0 to 255. What it prints goes to *ret_stdout and *ret_stderr,
 * which are NULL before: texts allocated with malloc (asprintf, strdup), freed by the library.
 * Any other exit code fails the command, whose result says so.
 * It is not interrupted. When it comes back after its command's limit, the command is told as timed out (exit code 137), with
 * what it printed; when it is not back some seconds after its command is cancelled or out of time, the command is given
 * up, and its sandbox is lost.
 * Threads: called from a thread of the library, for several commands at once. */
typedef int (*sandhost_test_handler)(void *user, const char *const *argv, char **ret_stdout,
                                     char **ret_stderr);

/* Has the provider local_test call handler for the commands whose argv[0] is name; "sh" gets all that a model runs. A
 * later handler replaces an earlier one, also while runs go on. An agent gets a test runtime only with
 * governance_config.allow_test_sandbox_runtime. user must live until the host is closed, its runs have ended, and
 * handler has returned. Errors: INVALID (also a name that is empty or no UTF-8). */
SANDHOST_API int sandhost_add_test_command(sandhost *host, const char *name,
                                           sandhost_test_handler handler, void *user,
                                           char **ret_error);

/* ---- Runs ------------------------------------------------------------------------------------------------------- */

/* What the policy asks about. All borrowed. */
struct sandhost_ask {
  size_t size;
  const char *run_id;
  const char *capability; /* "process.exec", "sandbox.network.enable", ... */
  const char *target;     /* the host, path or resource that it is about; "" for none */
  const char *risk;       /* "low", "medium", "high", "critical" */
  const char *reason;     /* why the policy asks */
  const char *request;    /* JSON: the whole request, as it is recorded */
};

/* How a program follows its run; each function may be NULL. None may call a function with the same run but
 * sandhost_run_id and sandhost_cancel. user must live until sandhost_run_end has returned. */
struct sandhost_hooks {
  size_t size;
  void *user;

  /* Answers an ask at once: the name of who allows it, once; it goes into the record. NULL or "" for no: the command
   * is then refused, also where there is a request. A name that sandhost_approve would refuse denies the ask. The text
   * must stay as it is until the next call of this function or sandhost_run_end; it is copied. NULL function: nobody
   * answers.
   * Threads: from the thread of sandhost_execute, one at a time in a run. It may block: the command waits. */
  const char *(*answer)(void *user, const struct sandhost_ask *ask);

  /* What a command writes, as it appears, without credentials, also what is over the cap of the result. command is the very pointer that
   * sandhost_execute was given, so that commands at once can be told apart. stream: 1 stdout, 2 stderr. data are
   * bytes; a character may be cut. Non-zero ends the command, as cancelled.
   * Threads: from a thread of the library while the command's sandhost_execute runs, one at a time for each command. It
   * may block: the command waits for it. */
  int (*output)(void *user, const char *command, int stream, const void *data, size_t length);

  /* One line about something that takes long, such as an image that is pulled.
   * Threads: from any, one at a time for each command. */
  void (*progress)(void *user, const char *line);

  /* What the program needs to go on with this run in another process, such as its task: a JSON object, at most 1 MiB,
   * which is kept in the record, without credentials that the host knows, and given back by sandhost_run_request: the same
   * value with its keys in the same order, as one line without spaces, and not byte for byte. "{}" will do. With it an ask
   * that nobody answers makes the run wait (governance_config.approval_mode "fail" still refuses at once), and a run whose
   * process died can be resumed. NULL: such an ask is refused. sandhost_resume does not look at it. */
  const char *request;

  /* What the run belongs to (the budgets of a session), and whose run it is (those of an agent): UTF-8, not empty, at most
   * 256 bytes, as the configuration's session_id and name, over which they win. NULL: those; without any, the run is a
   * session of its own. sandhost_resume does not look at them: the run keeps what it was begun with. */
  const char *session_id;
  const char *agent_name;

  /* One line: a sandbox of the run did not end and may live on, which can cost money: which one, why, and what finds it.
   * It is in the record too. Where its end takes long, progress says so. Or, once for a run: a command was given more time
   * than the configuration's tool_call_timeout, and gets that.
   * Threads: from any; also while sandhost_run_end runs. */
  void (*warning)(void *user, const char *line);
};

/* Starts a run and its row in the record. The sandbox itself is made by the first command. hooks: NULL: none. ret_run:
 * must not be NULL; owned, given back with sandhost_run_end. A host has any number of runs at once.
 * Errors: INVALID (also a request that is no JSON object, and names that make no sense), those of sandhost_check,
 * CONFIG (there is no execute tool: the reason is sandhost_tool's), RECORD. */
SANDHOST_API int sandhost_run_start(sandhost *host, const struct sandhost_hooks *hooks,
                                    sandhost_run **ret_run, char **ret_error);

/* "run_" and 32 hex digits. Borrowed until sandhost_run_end; NULL for a NULL run. */
SANDHOST_API const char *sandhost_run_id(const sandhost_run *run);

/* Runs one command of the agent, with sh -c in the sandbox's working directory, after the policy allowed it and the
 * workspace's files were copied in; what it changed is copied back. Blocks until all that is done.
 * timeout_seconds: most that the command itself may take, at most the configuration's tool_call_timeout; 0: 60. The
 * steps around it have limits of their own.
 * ret_result: must not be NULL. JSON, as sandhost exec --json prints it: {"run_id", "trace_id", "status": "success" or
 * "error", "data": {"exit_code", "stdout", "stderr", "timed_out", ...} or null, "message", "workspace_sync":
 * {"copied_in", "written", "skipped"} or null}, and where they apply "governance_error_code", "error_type",
 * "record_error".
 *
 * The status is "awaiting_approval" where the policy asks and the run waits (hooks->request): then nothing that was asked
 * about has happened, and "approvals" has the asks: [{"approval_id", "tool_call_id", "capability", "target", "arguments",
 * "risk_level", "reason", "expires_at", ...}]. Commands that run go on, no new one begins: end the run with
 * sandhost_run_end(run, NULL, ...).
 *
 * It is "awaiting_budget" where a budget has no room that the run can wait for (hooks->request, on_exhausted "pause"): the
 * same holds, nothing was used, and "budget_request" is {"request_id", "scope", "meter", "window", "limit", "used",
 * "needed", "shortfall"}. Where it cannot wait this command is refused, and the next may have room. A budget that ends the
 * run (on_exhausted "terminate") gives "error" with "termination_reason": "budget_exhausted" and the text for whoever asked
 * in "response": no command of the run is begun any more, and its end is "failed".
 *
 * Whatever becomes of the command is a result, and OK: a command that fails, one that the policy denies, a sandbox that
 * is lost, an empty command, a negative timeout. A failure means that there was no call at all, and nothing was
 * recorded.
 * Threads: several may execute in one run at once, and share the sandbox; asking, making the sandbox and each copy
 * happen one after the other, commands run side by side.
 * Errors: INVALID, STATE (the run is ending). */
SANDHOST_API int sandhost_execute(sandhost_run *run, const char *command, int timeout_seconds,
                                  char **ret_result, char **ret_error);

/* sandhost_execute for a call that the program knows under a name of its own, such as the id that a model gave it. tag: valid
 * UTF-8, at most 1024 bytes; it is kept with the call in the record and stands in the result as "tag", also in what
 * sandhost_execute_stopped gives in another process. NULL: none. Errors: as sandhost_execute. */
SANDHOST_API int sandhost_execute_tagged(sandhost_run *run, const char *tag, const char *command,
                                         int timeout_seconds, char **ret_result, char **ret_error);

/* Ends all commands of the run, as cancelled, and lets no more begin. Returns at once; sandhost_execute returns soon
 * after. From any thread, from a hook, and from a signal handler. NULL: nothing. */
SANDHOST_API void sandhost_cancel(sandhost_run *run);

/* Waits for the run's commands, ends its sandbox, writes the end into the record and frees the run. The run is gone
 * whatever is returned. Not from a hook.
 * status: "completed", "failed" or "cancelled"; NULL: "cancelled" after sandhost_cancel, else "failed" when a budget
 * has ended the run, else "awaiting_approval" or "awaiting_budget" when it waits, else "completed". Any other word is
 * INVALID, and recorded as "failed". reason: for the record; NULL: none.
 * Errors: INVALID, RECORD (the end could not be written), STATE (the run was ended, or taken over, from outside). */
SANDHOST_API int sandhost_run_end(sandhost_run *run, const char *status, const char *reason,
                                  char **ret_error);

/* ---- Waiting and going on --------------------------------------------------------------------------------------- */

/* The asks that wait for a decision, oldest first, or with all also those that were decided, used or expired: a JSON array
 * of {"approval_id", "run_id", "run_status", "status": "pending", "approved", "denied", "used" or "expired", "capability",
 * "target", "arguments", "command", "risk_level", "reason", "created_at", "expires_at", "approver", "note", "decision",
 * "edited_arguments", ...}. run_id: of this run; a unique beginning of at least 8 characters will do. NULL: of all runs in
 * the record. ret_json: must not be NULL.
 * Errors: INVALID, NOT_FOUND ("No run {id}"), those of sandhost_trajectory. */
SANDHOST_API int sandhost_approvals(sandhost *host, const char *run_id, int all, char **ret_json,
                                    char **ret_error);

/* Allows exactly the call that was asked about, once, when its run is resumed. The decision is final, and of two at once
 * the first one counts. It is made in the record, so the run may belong to any program.
 * approver: who decides; UTF-8 on one line, not blank, at most 256 bytes. settings->check_approver and governance_config.approver_check say
 * whether that is true. note: the agent reads it; at most 4096 bytes; NULL: none. arguments: JSON {"command", "timeout"}:
 * this call in the place of the one that was asked about, and only this one; NULL: as it was asked about.
 * ret_approval: JSON: what the ask has become, as sandhost_approvals tells it. Blocks as long as check_approver does.
 * Errors: INVALID ("approver is required", ...), NOT_FOUND ("No run {id}", "No approval {id} on run {run}"), STATE
 * ("Approval {id} is already {status}", "Approval {id} expired at {time}"), DENIED (the approver is refused), CONFIG and
 * FAILED (the program approver_check cannot be asked), RECORD (also where the ask is not as its events say). After an error nothing was decided. */
SANDHOST_API int sandhost_approve(sandhost *host, const char *run_id, const char *approval_id,
                                  const char *approver, const char *note, const char *arguments,
                                  char **ret_approval, char **ret_error);

/* Refuses the call; when its run is resumed the agent reads "Denied by {approver}: {note}". The rest as
 * sandhost_approve. */
SANDHOST_API int sandhost_deny(sandhost *host, const char *run_id, const char *approval_id,
                               const char *approver, const char *note, char **ret_approval,
                               char **ret_error);

/* Goes on with a run of a program that waited and is decided, or whose process died, which is judged here: it is gone, or
 * its heartbeat is older than run_lease_seconds by the clock of whoever resumes, so machines that share a record must agree
 * on the time. It goes on in a segment, and a trace, of its own, with a fresh sandbox and with the configuration of this
 * host. Of several that try, one wins. What was decided under
 * another policy or for another sandbox does not count: then the run waits again. hooks, ret_run: as for
 * sandhost_run_start. Blocks while sandboxes that an earlier process left are removed; runs no command yet.
 * Errors: INVALID, NOT_FOUND ("No run {id}"), STATE ("Run {id} is still waiting for approval: {ids}", "Run {id} is
 * still waiting for a budget decision: {ids}", "Run {id} is running in another process (its heartbeat is current)", or
 * "in this process", "Run {id} is {status}; only a waiting or stopped run can resume", "Run {id} cannot be resumed: its request was
 * never stored", a run of the program sandhost: that resumes it), those of sandhost_run_start. */
SANDHOST_API int sandhost_resume(sandhost *host, const char *run_id,
                                 const struct sandhost_hooks *hooks, sandhost_run **ret_run,
                                 char **ret_error);

/* What the run waits for, or what has ended it, at this moment: JSON {"run_id", "status": what sandhost_run_end with a NULL
 * status would record, "approvals": as in the result of sandhost_execute, "budget_requests": [as "budget_request" there],
 * "termination_reason": "budget_exhausted" or null, "message": why, or null}. ret_json: must not be NULL.
 * Errors: INVALID, STATE (the run is ending). */
SANDHOST_API int sandhost_run_waiting(sandhost_run *run, char **ret_json, char **ret_error);

/* The request that the run was begun with (hooks->request), as JSON; NULL: there is none. Borrowed until
 * sandhost_run_end. */
SANDHOST_API const char *sandhost_run_request(const sandhost_run *run);

/* Runs what the earlier segments of a resumed run left: calls that waited are asked about again, and what was decided
 * counts; calls that were never begun run; one that had begun is not repeated, and its result says so ("error_type":
 * "unknown_outcome"). Blocks until all are done; they run side by side, as sandhost_execute would run them. Where the output
 * hook is told of one, command is a text of the library's.
 * ret_results: must not be NULL. JSON {"run_id", "trace_id", "notice": what the agent is to be told where the sandbox that
 * it had is gone, or null, "results": in the order in which the calls were made, each as sandhost_execute gives it, with
 * "tool_call_id", "tag" (null where it had none) and "arguments"}. Calls whose results are in the record already are not among them. A second call, and one
 * for a run that was not resumed, has no results.
 * Errors: INVALID, STATE (the run is ending). */
SANDHOST_API int sandhost_execute_stopped(sandhost_run *run, char **ret_results, char **ret_error);

/* Ends a run from outside, whichever program has it: one that waits, one whose process died, and one that goes on, whose
 * process notices within a second. Then removes the sandboxes that this host's provider has of it.
 * status: "cancelled", "failed" or "timeout"; NULL: "cancelled". reason: for the record; NULL: none in particular.
 * ret_status: the run's status in the record; one that had ended already stays as it was.
 * Errors: INVALID, NOT_FOUND, RECORD, PROVIDER and others (the run is ended, and sandboxes of it may be left). */
SANDHOST_API int sandhost_abandon(sandhost *host, const char *run_id, const char *status,
                                  const char *reason, char **ret_status, char **ret_error);

/* ---- Budgets ---------------------------------------------------------------------------------------------------- */

/* Amounts are whole millionths of a meter's unit, at most 9000000000000000000 (nine million million units): 1500000 is one and a half dollars of "model_cost_usd", 2000000 two calls
 * of "model_calls". Meters: "model_cost_usd", "model_tokens", "model_calls", "tool_calls", "sandbox_seconds",
 * "subagent_runs". The library charges commands and their sandbox's seconds itself; the others are the program's to charge.
 * A charge counts for every limit that covers the run, in this and all other processes with the same record, and for
 * nothing where no limit is on the meter. */

/* How an amount is charged. The numbers have gaps. */
enum sandhost_charge {
  SANDHOST_CHARGE_SPEND = 0, /* before the work: spent, if there is room for it in every limit */
  SANDHOST_CHARGE_LOOK = 10, /* is there room? nothing is spent */
  SANDHOST_CHARGE_DONE = 20  /* for work that is done: never refused, also beyond a limit */
};

/* Charges the run for something that the program does. meter: above. millionths: not negative. how: enum sandhost_charge.
 * DENIED: there is no room, nothing was charged, and the work must not be done. *ret_error says which budget. What that
 * means for the run tells sandhost_run_waiting: it waits ("awaiting_budget": end it, to be granted more and resumed), it is
 * over ("failed"), or, where it cannot wait, goes on without this work.
 * Errors: INVALID, DENIED, STATE (the run is ending, or was taken over from outside), RECORD. */
SANDHOST_API int sandhost_run_charge(sandhost_run *run, const char *meter, long long millionths,
                                     int how, char **ret_error);

/* Holds an amount for work whose real amount is known only afterwards: nobody else gets it meanwhile. ret_hold: must not be
 * NULL; the name of the hold, for sandhost_run_settle. What is not settled is free again with the end of the run, whoever
 * notices that. The rest, and errors, as sandhost_run_charge. */
SANDHOST_API int sandhost_run_hold(sandhost_run *run, const char *meter, long long millionths,
                                   char **ret_hold, char **ret_error);

/* Ends a hold: millionths were used in its place, be it 0, less or more; that is never refused. After RECORD it is written
 * with whatever is written next.
 * Errors: INVALID, NOT_FOUND (this run has no such hold, or it was settled), STATE, RECORD. */
SANDHOST_API int sandhost_run_settle(sandhost_run *run, const char *hold, long long millionths,
                                     char **ret_error);

/* What was used of budgets: a JSON array of {"scope", "meter", "window", "key", "window_starts", "limit", "granted", "spent",
 * "reserved", "remaining"}, numbers in the meter's unit: of those that cover a run, or with a NULL run_id of all. all: also
 * days and months that are over. run_id and ret_json as for sandhost_approvals. A budget appears with the first run that
 * uses it.
 * Errors: INVALID, NOT_FOUND ("No run {id}"), those of sandhost_trajectory. */
SANDHOST_API int sandhost_budgets(sandhost *host, const char *run_id, int all, char **ret_json,
                                  char **ret_error);

/* Raises what a run waits for, for everybody whom that budget covers; sandhost_resume goes on with the run. request_id: one
 * of its requests; NULL: all. millionths: how much more; 0: what is missing. approver, note, and whether the approver is who
 * the name says: as for sandhost_approve. The decision is final, and the run may belong to any program.
 * ret_requests: JSON: an array of what the requests have become: {"request_id", "status": "granted", "scope", "meter",
 * "window", "key", "amount", "approver", "note", "decided_at", ...}.
 * Errors: INVALID (also an amount for several requests at once, or one beyond which no budget is counted), NOT_FOUND, STATE ("Run {id} is not waiting for a budget
 * decision"), DENIED, CONFIG, FAILED, RECORD. After an error nothing was decided. */
SANDHOST_API int sandhost_grant(sandhost *host, const char *run_id, const char *request_id,
                                const char *approver, const char *note, long long millionths,
                                char **ret_requests, char **ret_error);

/* The other answer: when the run is resumed it ends, as "failed" with "termination_reason": "budget_exhausted". The rest as
 * sandhost_grant; the status of the requests is "denied". */
SANDHOST_API int sandhost_deny_budget(sandhost *host, const char *run_id, const char *request_id,
                                      const char *approver, const char *note, char **ret_requests,
                                      char **ret_error);

/* ---- The record ------------------------------------------------------------------------------------------------- */

/* Everything that happened in one segment of a run of this host's record, whichever program made it: JSON, the trajectory
 * that sandhost show --json prints. id: the id of a trace: that segment; the id of a run, or a unique beginning of it of at
 * least 8 characters: its last segment, with the others in "other_trace_ids_for_run". ret_json: must not be NULL. A segment
 * that goes on has evidence_status "partial".
 * Errors: INVALID, NOT_FOUND, RECORD, CONFIG, and those of sandhost_check where the configuration names the
 * record's file. */
SANDHOST_API int sandhost_trajectory(sandhost *host, const char *id, char **ret_json,
                                     char **ret_error);

/* The whole run: JSON {"run_id", "session_id", "agent_name", "status", "attempt", "previous_attempts", "segments":
 * [{"trace_id", "status", "trajectory", "trace_kept"}], "traces_missing", "totals", "tool_calls", "approvals", "budget_requests",
 * "usage"}.
 * A call that waited is in several segments; totals and tool_calls count it once, by how it finally ended. run_id: also the
 * id of a trace. ret_json: must not be NULL. Errors: as sandhost_trajectory. */
SANDHOST_API int sandhost_run_trajectory(sandhost *host, const char *run_id, char **ret_json,
                                         char **ret_error);

/* The runs on record, newest first: a JSON array of {"run_id", "trace_id", "status", "created_at", "ended_at",
 * "agent_name", "provider", "commands"}. filter: JSON, all members optional: {"status", "provider", "since": a time as
 * "2026-01-31T12:00:00Z", "limit": 1 to 100000, 100 where it is missing}. NULL: no filter. ret_json: must not be NULL.
 * Errors: INVALID (also a filter that makes no sense), those of sandhost_trajectory. */
SANDHOST_API int sandhost_runs(sandhost *host, const char *filter, char **ret_json,
                               char **ret_error);

/* Whether the record is what was written: JSON {"whole": true or false, "runs": [{"run_id", "state", "events", "head",
 * "faults"}], "head", "pruned", "faults"}, as sandhost record verify --json prints it. run_id: this run alone, and the last
 * three are null; NULL: all. A record that was altered is a result, and OK. Reads the whole record.
 * Errors: those of sandhost_trajectory. */
SANDHOST_API int sandhost_record_verify(sandhost *host, const char *run_id, char **ret_json,
                                        char **ret_error);

/* ---- The library ------------------------------------------------------------------------------------------------ */

/* Frees a text that a function gave out. NULL: nothing. */
SANDHOST_API void sandhost_free(void *text);

/* "0.1.0". Constant. */
SANDHOST_API const char *sandhost_version(void);

#ifdef __cplusplus
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
}
#endif

#endif
