/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandhost/provider.h: the whole contract between sandhost and a sandbox provider.
 *
 * A provider is a shared object, sandhost-NAME.so, that exports one function, sandhost_provider_1
 * (the digit is the ABI major). The host calls it once with its own table; it returns the
 * provider's table and does nothing else. From then on the two sides talk through the two tables.
 *
 *   entry -> start? -> open -> create -> execute ... -> terminate -> release -> close -> stop?
 *
 * The rules that hold everywhere:
 *
 * - Both tables and every struct that crosses begin with their byte size. Each side uses only the
 *   fields that lie within the smaller of the two sizes; fields are only ever appended. A size below
 *   that of this header's first release is refused.
 * - Elements of an array (values, pairs, texts, paths, mounts, known files, enforces) never grow, since
 *   both sides step by their size; only options have a stated distance (option_size).
 * - Zero means "not said" in every request, unless a member says otherwise.
 * - No memory changes owner. Arguments are borrowed until the call returns. Results go out through
 *   the host's sinks and setters, which copy. A handle is freed by the side that made it.
 * - Text is UTF-8 without NUL. Paths are bytes without NUL. Both carry a length and are, for
 *   convenience, followed by a NUL that the length does not count.
 * - Sizes and offsets are 64-bit bytes, durations 64-bit nanoseconds, points in time
 *   CLOCK_MONOTONIC nanoseconds.
 * - Every operation takes the call context first. It carries the deadline, the cancel signal and the
 *   one error. An operation returns SANDHOST_OK, or the status that it gave to host->fail.
 * - Calls block. The host runs each in a thread of its own and honours the declared thread level.
 *   Functions of the host table may be called from any thread while the call that they name runs.
 * - A provider never exits, aborts, prints, installs signal, exit or fork handlers, or changes what
 *   belongs to the whole process: the working directory, umask, locale, environment, resource limits,
 *   process group, session, or whether it is a child subreaper. It closes what it opened and nothing
 *   else, and opens with O_CLOEXEC. It is never unloaded.
 *
 * This file includes nothing of sandhost and compiles alone as C11 and as C++.
 * All of it is there since ABI 1.0.
 */
#ifndef SANDHOST_PROVIDER_H
#define SANDHOST_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The major is part of the entry's name: a plugin and a host of different majors never meet. */
#define SANDHOST_ABI_MAJOR 1
/* Raised when fields are appended. Put it into sandhost_provider.minor. */
#define SANDHOST_ABI_MINOR 0

/* ---- Text, paths, handles ------------------------------------------------------------------- */

struct sandhost_text {
  const char *data; /* UTF-8; never NULL where length is above 0 */
  size_t length;
};

struct sandhost_path {
  const char *data; /* bytes without NUL */
  size_t length;
};

struct sandhost_pair { /* one environment variable, label or header */
  struct sandhost_text name;
  struct sandhost_text value;
};

/* Owned by the host; valid only while the operation that received it runs. */
struct sandhost_call;

/* Owned by the provider, which completes these types privately. An instance is one configuration
 * (one account of one service); several may be open at once and share nothing. */
struct sandhost_instance;
struct sandhost_sandbox;

/* ---- Statuses ------------------------------------------------------------------------------- */

/* What an operation may return. The numbers have gaps so that a kind can be put between two others;
 * a number that the host does not know counts as SANDHOST_INTERNAL. A command that exits with 3 is
 * a successful execute that carries 3. */
#define SANDHOST_OK 0
#define SANDHOST_INVALID 10         /* an argument, option or setting makes no sense */
#define SANDHOST_UNSUPPORTED 20     /* this provider or this machine cannot do it */
#define SANDHOST_UNAUTHENTICATED 30 /* credentials are missing or refused */
#define SANDHOST_DENIED 40          /* the service or the system forbids it */
#define SANDHOST_NOT_FOUND 50       /* the file, image or snapshot does not exist */
#define SANDHOST_EXISTS 60          /* it exists already */
#define SANDHOST_CONFLICT 70        /* its state does not allow it now */
#define SANDHOST_LIMIT 80           /* a quota, size or count is exhausted */
#define SANDHOST_RATE_LIMITED 90    /* too many requests; see retry_after */
#define SANDHOST_UNAVAILABLE 100    /* not reachable, or missing on this machine */
#define SANDHOST_TIMEOUT 110        /* the call's deadline passed */
#define SANDHOST_CANCELLED 120      /* the caller cancelled, or a sink said stop */
#define SANDHOST_LOST 130           /* the sandbox is gone; only terminate and release make sense */
#define SANDHOST_PROTOCOL 140       /* the other side sent something that it must not */
#define SANDHOST_NO_MEMORY 150
#define SANDHOST_INTERNAL 160 /* a bug on this side */

/* ---- The host's table ----------------------------------------------------------------------- */

/* What report may tell of a call. The value is text; a later value replaces an earlier one. */
#define SANDHOST_REPORT_REF 10      /* create, attach: the service's own name of the sandbox */
#define SANDHOST_REPORT_IMAGE 20    /* create: the image that it really runs */
#define SANDHOST_REPORT_NETWORK 30  /* create: "checked", "unchecked" or "not required" */
#define SANDHOST_REPORT_SNAPSHOT 40 /* snapshot: the id to create from later (required there) */
#define SANDHOST_REPORT_LOST                                                                       \
  50 /* any: why the sandbox is gone, for the person who reads it;
                                     * whatever the status, the host gives the sandbox up. Required
                                     * beside SANDHOST_LOST of what ran when it went */

struct sandhost_failure { /* more about a failure than its text */
  size_t size;
  struct sandhost_text service_code; /* the service's own code, e.g. "quota_exceeded" */
  int64_t retry_after;               /* nanoseconds that the service asked to wait; 0: none */
  int32_t may_have_happened;         /* 1: the request may have taken effect all the same */
  int32_t reserved;                  /* 0 */
};

struct sandhost_host {
  size_t size;
  uint32_t minor;
  uint32_t reserved;            /* 0 */
  struct sandhost_text version; /* the host's release, for messages to a service */

  /* When the operation must be back: absolute CLOCK_MONOTONIC nanoseconds, INT64_MAX for never.
   * An operation that notices late still has two seconds to clean up. */
  int64_t (*deadline)(const struct sandhost_call *call);

  /* 1 once the caller has cancelled or the deadline has passed, else 0. Cheap. Which of the two it
   * was is seen at the deadline: where that has passed the operation returns SANDHOST_TIMEOUT, else
   * SANDHOST_CANCELLED. */
  int32_t (*cancelled)(const struct sandhost_call *call);

  /* A descriptor that becomes readable when the caller cancels. Poll it, never read or close it.
   * -1 where there is none; then ask cancelled now and then. The deadline does not make it
   * readable. */
  int32_t (*cancel_fd)(const struct sandhost_call *call);

  /* Sleeps until fd is ready for the poll(2) events (fd -1: only sleep), the duration is over
   * (negative: no end of its own), the deadline passes, or the caller cancels.
   * SANDHOST_OK: fd is ready. SANDHOST_TIMEOUT: the duration or the deadline is over.
   * SANDHOST_CANCELLED. Sets no error. */
  int32_t (*wait)(const struct sandhost_call *call, int32_t fd, int32_t events, int64_t duration);

  /* Sets the call's error and returns status, so that reporting is one statement. The message is
   * copied: lower case, what failed first, no secret, at most 4 KiB (longer is cut, bad UTF-8
   * replaced). The first failure of a call counts, later ones are ignored. */
  int32_t (*fail)(struct sandhost_call *call, int32_t status, struct sandhost_text message);

  /* Adds details to the failure; before or after fail. Copied. */
  void (*fail_details)(struct sandhost_call *call, const struct sandhost_failure *details);

  /* Tells a fact of SANDHOST_REPORT_*. Copied; an unknown kind is ignored. */
  void (*report)(struct sandhost_call *call, uint32_t kind, struct sandhost_text value);

  /* One line for a person who waits (an image being pulled), without control characters. Any number of
   * times. Copied. */
  void (*progress)(struct sandhost_call *call, struct sandhost_text line);
};

/* ---- Streams -------------------------------------------------------------------------------- */

/* Bytes out of the provider. write returns SANDHOST_OK, or any other status to stop: it is not called
 * again, and the operation cleans up and returns SANDHOST_CANCELLED. It may block; that is backpressure. */
struct sandhost_sink {
  size_t size;
  void *user;
  int32_t (*write)(void *user, const void *data, size_t length);
};

/* Bytes into the provider. read fills at most length bytes: the count, 0 at the end, -1 to stop, which
 * is as for a sink. It may block. */
struct sandhost_source {
  size_t size;
  void *user;
  int64_t (*read)(void *user, void *buffer, size_t length);
};

/* ---- What a provider declares --------------------------------------------------------------- */

/* Option types. In the configuration a boolean is true or false, an integer a whole number, a size a
 * whole number of bytes or text such as "64m" or "1g" (1024-based), a list an array of strings, a
 * map an object of strings. */
#define SANDHOST_OPTION_TEXT 10
#define SANDHOST_OPTION_BOOLEAN 20
#define SANDHOST_OPTION_INTEGER 30
#define SANDHOST_OPTION_SIZE 40
#define SANDHOST_OPTION_LIST 50
#define SANDHOST_OPTION_MAP 60

#define SANDHOST_OPTION_REQUIRED 0x1u /* open is not called without it */
#define SANDHOST_OPTION_SECRET 0x2u   /* redacted wherever the host prints or records options */
#define SANDHOST_OPTION_POSITIVE 0x4u /* an integer or size of at least 1 */

struct sandhost_option {
  size_t size;
  const char *name; /* lower-case letters, digits and _; begins with a letter */
  uint32_t type;
  uint32_t flags;
  const char *fallback; /* default as text ("true", "600", "1g"); NULL: none */
  const char
      *environment;    /* variable that gives the value when the configuration does not; or NULL */
  const char *choices; /* the only values of a text, separated by |; or NULL: any */
  const char *help;    /* one line: what it does */
};

/* A value that the host has checked against its option. */
struct sandhost_value {
  size_t size;
  uint32_t type;                     /* that of the option */
  uint32_t set;                      /* 0: neither given nor a fallback; the rest is then zero */
  int64_t integer;                   /* INTEGER, SIZE in bytes, BOOLEAN 0 or 1 */
  struct sandhost_text text;         /* TEXT */
  const struct sandhost_pair *pairs; /* MAP: name and value; LIST: name only */
  size_t pair_count;
};

/* What a manifest may ask for. The host refuses a manifest that asks for a setting whose level is
 * none, before anything is started. */
#define SANDHOST_SETTING_NETWORK_OFF 10 /* no network inside */
#define SANDHOST_SETTING_NETWORK_ON 20  /* the network inside, when asked for */
#define SANDHOST_SETTING_ALLOWED_HOSTS 30
#define SANDHOST_SETTING_DENIED_HOSTS 40
#define SANDHOST_SETTING_IMAGE 50
#define SANDHOST_SETTING_CPU 60
#define SANDHOST_SETTING_MEMORY 70
#define SANDHOST_SETTING_PIDS 80 /* a limit on processes, asked for by an option */
#define SANDHOST_SETTING_GPU 90
#define SANDHOST_SETTING_LIFETIME 100 /* resources.timeout_seconds */
#define SANDHOST_SETTING_MOUNT 110
#define SANDHOST_SETTING_SECRETS 120 /* not to be declared: nothing that create gets carries one */
#define SANDHOST_SETTING_ENVIRONMENT 130
#define SANDHOST_SETTING_SNAPSHOT 140
#define SANDHOST_SETTING_FILES 150 /* commands cannot see the files of the machine */

#define SANDHOST_LEVEL_NONE 0
#define SANDHOST_LEVEL_FORWARDED 10 /* passed on to a service, whose duty it is to keep or refuse */
#define SANDHOST_LEVEL_CHECKED 20   /* asked of a service, then tried from inside (see probe) */
#define SANDHOST_LEVEL_ENFORCED 30  /* kept by the provider itself */

struct sandhost_enforces {
  uint32_t setting;
  uint32_t level;
};

/* Which calls may run at once. Every level allows what the ones above it allow; terminate of one
 * sandbox beside calls of another is always serialised only as the level says. A cancelled call is
 * never waited for. */
#define SANDHOST_THREADS_PLUGIN 10   /* one call at a time in the whole plugin */
#define SANDHOST_THREADS_INSTANCE 20 /* one at a time per instance */
#define SANDHOST_THREADS_SANDBOX 30  /* one at a time per sandbox */
/* Any. Commands of one sandbox run at the same time then, and no operation waits until a command has
 * ended; what else two calls do in turn is the provider's affair. */
#define SANDHOST_THREADS_PARALLEL 40

/* Flags of a provider. */
#define SANDHOST_PROVIDER_HOST_SURFACE 0x1u /* commands run on this machine, not isolated */
#define SANDHOST_PROVIDER_TEST 0x2u         /* a test runtime: needs allow_test_sandbox_runtime */

/* ---- Requests ------------------------------------------------------------------------------- */

struct sandhost_open {
  size_t size;
  const struct sandhost_value *values; /* one per declared option, in the order declared */
  size_t value_count;
  struct sandhost_path guest_dir; /* folder of the guest programs, sandhost-guest-MACHINE (as uname
                                   * -m names it); empty where none are installed. See
                                   * sandhost-provider(3). */
};

#define SANDHOST_NETWORK_DENY 10
#define SANDHOST_NETWORK_ALLOW 20

struct sandhost_network {
  size_t size;
  uint32_t mode;                             /* SANDHOST_NETWORK_*; never 0 */
  uint32_t reserved;                         /* 0 */
  const struct sandhost_text *allowed_hosts; /* only with a level for it */
  size_t allowed_count;
  const struct sandhost_text *denied_hosts;
  size_t denied_count;
};

struct sandhost_mount {
  size_t size;
  struct sandhost_path source; /* on this machine; checked and resolved by the host */
  struct sandhost_path target; /* inside */
  int32_t writable;
  int32_t reserved; /* 0 */
};

struct sandhost_create {
  size_t size;
  /* Chosen by the host. The same key again means the same sandbox: where one of that key lives, create gives
   * that one, or ends it and makes a new one, or is SANDHOST_EXISTS. */
  struct sandhost_text key;
  struct sandhost_text run_id;      /* the owner; sweep finds the object by this label of it */
  struct sandhost_text image;       /* empty: the provider's own */
  struct sandhost_text snapshot;    /* an id of snapshot to start from; empty: none */
  struct sandhost_path working_dir; /* absolute; exists and is writable when create returns */
  const struct sandhost_network *network;  /* never NULL */
  const struct sandhost_pair *environment; /* the only variables that the manifest adds */
  size_t environment_count;
  const struct sandhost_mount *mounts;
  size_t mount_count;
  uint64_t cpu_millis; /* thousandths of a CPU */
  uint64_t memory_bytes;
  int64_t lifetime;  /* nanoseconds */
  uint32_t gpu;      /* 1: wanted */
  uint32_t reserved; /* 0 */
};

#define SANDHOST_EXECUTE_STDIN                                                                     \
  0x1u /* the observer's input is the command's stdin; else it is empty */

struct sandhost_execute {
  size_t size;
  /* At least one, argv[0] not empty; may hold any byte but NUL: the host has checked that much. The
   * script of sh -c SCRIPT may be 3 MB long, which no exec takes as a word: a provider gives it to the
   * shell as a file or a descriptor then (". /proc/self/fd/9"), never as stdin, which is the command's. $0 stays
   * what it was; messages of the shell may name the file, and the descriptor may be open in the command. */
  const struct sandhost_text *argv;
  size_t argc;
  /* Absolute; empty: the sandbox's working directory. One that is no folder inside is a command that
   * could not be started, see struct sandhost_result. */
  struct sandhost_path cwd;
  const struct sandhost_pair *environment; /* added to the sandbox's own for this command */
  size_t environment_count;
  int64_t limit; /* nanoseconds from the command's start; 0: none. At the limit the whole
                              * tree that the command started is killed, and the result says so */
  uint64_t
      max_output_bytes; /* per stream: what the observer gets at most; 0: everything. The rest is
                              * read, counted and dropped, so that the command does not block */
  uint32_t flags;       /* SANDHOST_EXECUTE_*; an unknown bit is SANDHOST_INVALID */
  uint32_t reserved;    /* 0 */
};

#define SANDHOST_STDOUT 1
#define SANDHOST_STDERR 2

/* Follows one command. Its functions are called from the thread of the execute call only. */
struct sandhost_observer {
  size_t size;
  void *user;

  /* Once, when the command has started. execution names it for signal while the call runs. */
  void (*started)(void *user, uint64_t execution);

  /* Output as it appears, in order per stream, cut at any byte. Returns SANDHOST_OK, or any other
   * status to end the command as a cancel would; it is not called again then. */
  int32_t (*output)(void *user, uint32_t stream, const void *data, size_t length);

  /* The next bytes of stdin, never blocking: the count, 0 at the end, -1 when there are none yet
   * (wait for input_fd). NULL without SANDHOST_EXECUTE_STDIN. */
  int64_t (*input)(void *user, void *buffer, size_t length);

  /* Becomes readable when input has something to say. -1: ask input at will. NULL without
   * SANDHOST_EXECUTE_STDIN. Do not read or close it. */
  int32_t (*input_fd)(void *user);
};

#define SANDHOST_ENDED_EXIT 10   /* it ended by itself: exit_code */
#define SANDHOST_ENDED_SIGNAL 20 /* a signal that nobody here sent: signal */
#define SANDHOST_ENDED_LIMIT 30  /* killed because its limit passed */
#define SANDHOST_ENDED_MEMORY 40 /* killed because the sandbox's memory was used up */

/* How a command ended. The host zeroes it and sets size before the call. A command that could not
 * be started is an exit with 127 (not found) or 126 (not allowed) and the reason on stderr. */
struct sandhost_result {
  size_t size;
  uint32_t ended;
  int32_t exit_code;     /* ENDED_EXIT; for the others 128 + signal, or 137 */
  int32_t signal;        /* ENDED_SIGNAL; 0 beside ENDED_EXIT */
  int32_t reserved;      /* 0 */
  uint64_t stdout_bytes; /* what the command wrote, delivered or not */
  uint64_t stderr_bytes;
  int64_t duration;  /* nanoseconds, as the provider saw it; 0: unknown */
  int64_t user_time; /* nanoseconds of the command and the children it waited for; 0: unknown */
  int64_t system_time;
  uint64_t max_rss; /* bytes of its largest process; 0: unknown */
};

#define SANDHOST_KIND_FILE 10 /* a regular file */
#define SANDHOST_KIND_CHECKOUT                                                                     \
  20 /* a folder below the root that holds .git; nothing in it is listed */

#define SANDHOST_ENTRY_SHA256 0x1u /* sha256 is filled */
/* With SANDHOST_KIND_FILE and without a hash: it is a folder, and what it holds could not be listed, or not all of it.
 * Who does not know this takes it for a file that could not be read. */
#define SANDHOST_ENTRY_UNREAD_FOLDER 0x2u

struct sandhost_entry {
  size_t size;
  struct sandhost_path path; /* below the root, no leading / */
  uint32_t kind;
  uint32_t flags;
  uint64_t bytes;    /* length of a file */
  int64_t mtime;     /* nanoseconds since 1970 */
  uint32_t mode;     /* permission bits */
  uint32_t reserved; /* 0 */
  uint8_t sha256[32];
};

struct sandhost_known { /* a file of which the caller has the content already */
  struct sandhost_path path;
  uint8_t sha256[32];
};

struct sandhost_changes {
  size_t size;
  struct sandhost_path root;          /* absolute folder */
  const struct sandhost_known *known; /* sorted by path as bytes, no path twice */
  size_t known_count;
  uint64_t max_hash_bytes; /* a larger file is listed without a hash; 0: no limit */
  uint64_t max_entries;    /* more is SANDHOST_LIMIT, after that many entries; 0: no limit */
};

struct sandhost_entry_sink {
  size_t size;
  void *user;
  int32_t (*entry)(void *user, const struct sandhost_entry *entry); /* as sandhost_sink.write */
};

struct sandhost_probe {
  size_t size;
  struct sandhost_text address; /* numeric, IPv4 or IPv6: no name is looked up */
  uint32_t port;
  uint32_t reserved; /* 0 */
  int64_t patience;  /* nanoseconds */
};

#define SANDHOST_PROBE_REACHED 10 /* connected, or refused by the far side */
#define SANDHOST_PROBE_BLOCKED 20 /* no route, not permitted, or silence until patience ended */

struct sandhost_sweep {
  size_t size;
  struct sandhost_text run_id;      /* only sandboxes of this run; empty: of any run of sandhost */
  const struct sandhost_text *keep; /* refs that are still valid; never touched */
  size_t keep_count;
  int64_t min_age;  /* nanoseconds: leave younger ones alone, as any of unknown age; 0: take all */
  int32_t dry_run;  /* 1: list only */
  int32_t reserved; /* 0 */
};

struct sandhost_orphan {
  size_t size;
  struct sandhost_text ref;
  struct sandhost_text run_id; /* empty: unknown; of a sweep of one run always that one */
  int64_t age;                 /* nanoseconds; -1: unknown */
  int32_t removed;             /* 1: it is gone, with all that ran in it */
  int32_t reserved;            /* 0 */
};

struct sandhost_orphan_sink {
  size_t size;
  void *user;
  int32_t (*orphan)(void *user, const struct sandhost_orphan *orphan); /* as sandhost_sink.write */
};

/* ---- The provider's table ------------------------------------------------------------------- */

struct sandhost_provider {
  size_t size;       /* sizeof(struct sandhost_provider) as the author compiled it */
  uint32_t minor;    /* SANDHOST_ABI_MINOR */
  uint32_t threads;  /* SANDHOST_THREADS_* */
  uint32_t flags;    /* SANDHOST_PROVIDER_*; an unknown bit is refused */
  uint32_t reserved; /* 0 */

  const char *name; /* lower-case letters, digits, - and _; 1 to 32; begins with a letter; the file
                        * is named sandhost-NAME.so */
  const char *version; /* of the plugin, for people */
  const char *summary; /* one line */

  /* Declared options; each element begins with its size, option_size is the distance between two. */
  const struct sandhost_option *options;
  size_t option_count;
  size_t option_size; /* sizeof(struct sandhost_option) */

  /* What the code can enforce. enforces_count 0: nothing is declared, the provider is trusted with
   * any manifest. One entry or more: whatever is not listed has level none. */
  const struct sandhost_enforces *enforces;
  size_t enforces_count;

  /* ---- Required ---- */

  /* open: makes an instance of a checked configuration. Cheap: no network, nothing started; what
   * needs a service waits for create.
   * When: before the first use of a configuration. Threads: as declared.
   * Ownership: *ret_instance is the provider's, given back through close.
   * Failure: *ret_instance is not looked at. */
  int32_t (*open)(struct sandhost_call *call, const struct sandhost_open *request,
                  struct sandhost_instance **ret_instance);

  /* close: frees an instance. When: after all its sandboxes are released. Cannot fail. */
  void (*close)(struct sandhost_instance *instance);

  /* create: makes a sandbox that keeps everything that the request asks for, or fails. Reports
   * SANDHOST_REPORT_REF.
   * Failure: nothing is left behind, and the key is free; where that is not certain, fail_details says
   * may_have_happened. What is not declared is SANDHOST_UNSUPPORTED, never left out. */
  int32_t (*create)(struct sandhost_call *call, struct sandhost_instance *instance,
                    const struct sandhost_create *request, struct sandhost_sandbox **ret_sandbox);

  /* execute: runs one command and returns when its own process has ended and what it wrote until
   * then is delivered, even if a process that it left behind holds the pipes open. Such processes
   * live on until the sandbox ends. A command's umask is 0022, whatever the host's is, no signal is
   * ignored or blocked in it, whatever the host ignores and blocks, and of the host's descriptors it
   * has none.
   * Cancel: ends the whole tree, returns SANDHOST_CANCELLED.
   * Failure: result is not looked at; SANDHOST_LOST when the sandbox died under the command, or
   * before it. Only where it is certain that the command was never begun, fail_details says so, by
   * may_have_happened 0. Never retried by the host. */
  int32_t (*execute)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     const struct sandhost_execute *request,
                     const struct sandhost_observer *observer, struct sandhost_result *ret_result);

  /* read_file: writes the content of the regular file at an absolute path inside to sink.
   * SANDHOST_NOT_FOUND where there is none; SANDHOST_INVALID for a folder, a device, or a path that
   * leads out of the working directory, by .. or by a link. A link that stays inside is followed, or
   * is SANDHOST_INVALID too. The file stays as it is, its mtime included. */
  int32_t (*read_file)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                       struct sandhost_path path, const struct sandhost_sink *sink);

  /* write_file: makes the file at an absolute path below the working directory hold what source
   * gives, with missing parents, and exactly the permission bits (0777) of mode. Readers see the old
   * content or the new one. Paths as for read_file. */
  int32_t (*write_file)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                        struct sandhost_path path, uint32_t mode,
                        const struct sandhost_source *source);

  /* terminate: destroys the sandbox and all that runs in it. Succeeds when it is gone already.
   * Snapshots of it stay.
   * When: once per sandbox, also after a failure or a cancel; has a deadline of its own.
   * A command that runs meanwhile, where the thread level lets one, and every operation afterwards
   * but terminate and release is SANDHOST_LOST; so it is on a sandbox that was lost or swept. What
   * ran meanwhile also reports SANDHOST_REPORT_LOST; what comes afterwards may. */
  int32_t (*terminate)(struct sandhost_call *call, struct sandhost_sandbox *sandbox);

  /* release: frees the handle, whatever terminate said. It ends nothing: where attach gave a second
   * handle of a sandbox, that one goes on. A host terminates before the last release. No other call
   * with the handle runs then. Cannot fail. */
  void (*release)(struct sandhost_sandbox *sandbox);

  /* ---- Optional; NULL has the stated default ----
   *
   * upload, download, changes and probe may also return SANDHOST_UNSUPPORTED before they have
   * touched their source or sink: the host then takes the slot for absent in this sandbox. */

  /* start, stop: where threads or a library are set up and taken down. Once per process, after any
   * fork of the host; stop joins what start began. Default: nothing. */
  int32_t (*start)(struct sandhost_call *call, const struct sandhost_host *host);
  void (*stop)(void);

  /* enforces_now: fills levels[i] for each declared enforces[i], for this machine and this account;
   * it may only lower them (the host takes the smaller). reason is where a sentence goes for each
   * lowered one: call report(call, SANDHOST_REPORT_LOWERED + setting, text).
   * Default: as declared. */
  int32_t (*enforces_now)(struct sandhost_call *call, struct sandhost_instance *instance,
                          uint32_t *levels, size_t count);

  /* set_network_policy: changes the network of a running sandbox, all of it or not at all.
   * Default: SANDHOST_UNSUPPORTED; the message says to put it in the manifest. */
  int32_t (*set_network_policy)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                const struct sandhost_network *network);

  /* snapshot: keeps the sandbox's files, at least all in the working directory, hidden ones and empty
   * folders too, under an id of its own, reported as SANDHOST_REPORT_SNAPSHOT. delete_snapshot removes
   * one, and no other; a missing one is no error.
   * Default: SANDHOST_UNSUPPORTED. Both or neither. */
  int32_t (*snapshot)(struct sandhost_call *call, struct sandhost_sandbox *sandbox);
  int32_t (*delete_snapshot)(struct sandhost_call *call, struct sandhost_instance *instance,
                             struct sandhost_text id);

  /* upload: unpacks a tar stream (pax) below the folder dir, with missing parents. Regular files and
   * folders only, whose names may begin with ./; any other member, or one that leads out of dir, fails
   * the whole call with SANDHOST_INVALID. Files belong to the sandbox's user and have the permission
   * bits (0777) of their members; the members' owners and times, and the modes of folders, count for
   * nothing. Whoever reads a file meanwhile may find a part of it. Where the call fails, members before
   * the one that failed may stay; of that one nothing does. A stream that ends inside a member is
   * SANDHOST_INVALID; a host ends it with two empty blocks.
   * Default: the host writes file by file. */
  int32_t (*upload)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                    struct sandhost_path dir, const struct sandhost_source *tar);

  /* download: writes a tar stream (pax) of the named regular files below dir, in the order named.
   * One that is missing, is no regular file any more, or has a link on its way below dir, is left
   * out. The names are below dir, and of any length. What counts is names and contents: the members'
   * modes and times tell nothing. The two empty blocks of an archive's end may be missing.
   * Default: the host reads file by file. */
  int32_t (*download)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                      struct sandhost_path dir, const struct sandhost_path *names,
                      size_t name_count, const struct sandhost_sink *tar);

  /* changes: lists, sorted by nothing in particular, every regular file below root whose content is
   * not the one that known holds for its path, and every checkout. Hidden files and folders (a
   * component that begins with .) and links are neither listed nor followed. A file that is gone is
   * not listed. A file over max_hash_bytes is always listed, without SANDHOST_ENTRY_SHA256. So is one
   * that cannot be read: the host fetches it neither by download nor by read_file, it tells that they stayed.
   * A folder that cannot be read, or one with a name in it whose path is longer than a path can be, is listed as
   * SANDHOST_ENTRY_UNREAD_FOLDER: nothing is left out without a word. Only a root that cannot be read is a failure.
   * Default: the host runs a listing command in the sandbox. */
  int32_t (*changes)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     const struct sandhost_changes *request,
                     const struct sandhost_entry_sink *sink);

  /* attach: adopts a living sandbox by its ref. SANDHOST_NOT_FOUND when it is gone.
   * SANDHOST_REPORT_REF need not be reported, since the host has the ref; where it is, it is the same.
   * Default: SANDHOST_UNSUPPORTED. */
  int32_t (*attach)(struct sandhost_call *call, struct sandhost_instance *instance,
                    struct sandhost_text ref, struct sandhost_sandbox **ret_sandbox);

  /* sweep: lists the sandboxes of sandhost that match, and removes them unless dry_run. It touches
   * nothing without sandhost's own label. Default: there are no orphans. */
  int32_t (*sweep)(struct sandhost_call *call, struct sandhost_instance *instance,
                   const struct sandhost_sweep *request, const struct sandhost_orphan_sink *sink);

  /* signal: sends a signal to the process that execute started and to its group. A finished
   * execution is SANDHOST_NOT_FOUND. Default: SANDHOST_UNSUPPORTED. */
  int32_t (*signal)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                    uint64_t execution, int32_t signal);

  /* probe: tries one TCP connection from inside. *ret_verdict is SANDHOST_PROBE_*.
   * Default: the host tries with python3 in the sandbox. */
  int32_t (*probe)(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                   const struct sandhost_probe *request, uint32_t *ret_verdict);
};

/* The base of the kinds by which enforces_now says why a setting is lowered. */
#define SANDHOST_REPORT_LOWERED 1000

/* ---- The entry ------------------------------------------------------------------------------ */

#if defined(__GNUC__)
#define SANDHOST_EXPORT __attribute__((visibility("default")))
#else
#define SANDHOST_EXPORT
#endif

/* The one exported function. Both tables are constant and live as long as the process. Keep host;
 * return the table, or NULL to say that this host will not do (host->size or ->minor too small). */
SANDHOST_EXPORT const struct sandhost_provider *
sandhost_provider_1(const struct sandhost_host *host);

#define SANDHOST_ENTRY_NAME "sandhost_provider_1"

#ifdef __cplusplus
}
#endif

#endif
