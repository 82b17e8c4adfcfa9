/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.h: what the files of the plain path share. It serves a sandbox in whose container no guest runs, through the
 * engine's exec and archive calls alone.
 *
 * Commands run below a small shell script of ours (plain-script.c), so an image needs /bin/sh for all of it; without
 * one, commands still run, but the end of their output is told by the engine only, and what does not end by itself is
 * ended together with the container.
 */
#ifndef SANDHOST_DOCKER_PLAIN_H
#define SANDHOST_DOCKER_PLAIN_H

#include "contract.h"
#include "engine-frames.h"
#include "instance.h"
#include "plain-tar.h"

#define PLAIN_SECOND ((int64_t)1000000000)
#define PLAIN_MILLISECOND ((int64_t)1000000)

/* SANDHOST_OK, or SANDHOST_INVALID with the call's error set, where a struct of the caller is too small. */
int32_t plain_check_size(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *what, size_t size, size_t first_size);

/* ---- plain-engine.c: one exec, and what the engine says of it ---------------------------------- */

/* What is to be run. All borrowed. */
struct plain_exec {
  const char *const *argv;        /* NULL-terminated */
  const char *const *environment; /* "NAME=value", NULL-terminated; or NULL */
  const char *cwd;                /* or NULL */
  gboolean has_input;
};

/* Makes an exec. *ret_id is owned. SANDHOST_LOST with the call's error set when the container is gone. */
int32_t plain_exec_create(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const struct plain_exec *exec, char **ret_id);

/* Starts it with its streams. */
int32_t plain_exec_start(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *id, ByteChannel **ret_channel);

/* Waits until it has ended. *ret_code is its exit code as the engine has it. */
int32_t plain_exec_code(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                        const char *id, int *ret_code);

/* Runs a shell script with arguments as the sandbox's user and collects what it says (both streams, at most 64 KiB).
 * A script that cannot be started is SANDHOST_UNSUPPORTED. *ret_said is owned. */
int32_t plain_run_script(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *script, const char *const *arguments, char **ret_said);

/* Turns an answer that is not 2xx into the call's error; one that says that the container is gone is SANDHOST_LOST. */
int32_t plain_refused(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                      const struct engine_reply *reply, const char *what);

/* ---- plain-script.c: the shell's part ----------------------------------------------------------- */

#define PLAIN_NONCE_LENGTH 32u
#define PLAIN_SHELL "/bin/sh"

/* How one command is told apart from all others in its sandbox. */
struct plain_mark {
  char nonce[PLAIN_NONCE_LENGTH + 1]; /* secret to us; begins each of the script's own words */
  uint64_t number; /* the resident set limit of all that the command starts, KiB */
};
/* FALSE: there is no randomness. */
gboolean plain_mark_make(struct plain_mark *ret_mark);
/* The execution's number in the contract, and back. pid is that of the command in its container. */
uint64_t plain_execution_of(const struct plain_mark *mark, uint32_t pid);
uint64_t plain_execution_mark(uint64_t execution, uint32_t *ret_pid);

/* The words to run. environment is what the command's own variables are, for the names that a shell would add. script_file:
 * NULL, or a file in the sandbox that stands for argv[2]. Owned. */
GPtrArray *plain_script_words(const struct plain_mark *mark, const struct sandhost_execute *request,
                              const char *cwd, GPtrArray *sandbox_environment,
                              const char *script_file);

/* Any bytes as text for printf's %b. Owned. */
char *plain_encode(const char *data, size_t length);

/* Whether argv is a shell's, with a script that is too long to be one argument. */
gboolean plain_script_is_long(const struct sandhost_execute *request);

extern const char plain_script_first[]; /* of the container's first process */
extern const char plain_script_kill[];  /* mark in bytes: kills what bears it, says "clean" */
/* folder, parent below it, name, temporary file in the folder (all encoded): moves the file to its place. Says "done", or
 * what is in the way. */
extern const char plain_script_place[];
/* The same arguments: gives the file a second name in the folder. Says "done", or what is in the way. */
extern const char plain_script_link[];
extern const char plain_script_signal[]; /* mark in bytes, pid, signal: says "sent" or "gone" */

/* ---- plain-words.c: our script's words in a stream ---------------------------------------------- */

/* Finds the words of our script in one stream: \036, nonce, a text without \036, \036. */
#define PLAIN_MOST_WORD 64u
struct plain_words {
  const char *nonce;
  unsigned char
      held[1 + PLAIN_NONCE_LENGTH + PLAIN_MOST_WORD + 1]; /* what may be the beginning of one */
  size_t held_length;
  gboolean ended; /* by a word that begins with E: whatever follows is another's */
};
struct plain_word_events {
  int32_t (*output)(void *user, const void *data, size_t length);
  int32_t (*word)(void *user, const char *word);
};
int32_t plain_words_feed(struct plain_words *words, const struct plain_word_events *events,
                         void *user, const void *data, size_t length);
/* At the stream's end: what was held back was no word. */
int32_t plain_words_finish(struct plain_words *words, const struct plain_word_events *events,
                           void *user);

/* ---- plain-kill.c ------------------------------------------------------------------------------- */

/* Ends everything that a command started. SANDHOST_OK; else nothing is certain. Sets no error and heeds no cancel. */
int32_t plain_kill_tree(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                        const struct plain_mark *mark, int64_t patience);
/* Ends everything in the sandbox but its first process, in one stroke. */
void plain_kill_all(struct sandhost_sandbox *sandbox, struct sandhost_call *call);
/* Ends the container, and remembers why the sandbox is lost. Returns SANDHOST_LOST with the call's error set. */
int32_t plain_stop(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                   const char *reason);
/* Whether the engine tells that the container ran out of memory within the last nanoseconds. */
gboolean plain_out_of_memory(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                             int64_t duration);

/* ---- plain-archive.c: the engine's tar streams --------------------------------------------------- */

/* SANDHOST_OK while the container runs; else SANDHOST_LOST with the call's error set. */
int32_t plain_check_alive(struct sandhost_sandbox *sandbox, struct sandhost_call *call);

enum archive_end {
  ARCHIVE_WHOLE,   /* the stream was read to its end */
  ARCHIVE_MISSING, /* nothing is at the path */
  ARCHIVE_TANGLED, /* its links lead nowhere */
  ARCHIVE_STOPPED, /* a function said stop: its status is returned */
  ARCHIVE_CUT,     /* the stream ended before its end: something changed while it was packed */
};

/* Fetches what is at path. SANDHOST_OK with *ret_end, or the call's error is set. */
int32_t plain_archive_get(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const char *path, const struct tar_events *events, void *user,
                          enum archive_end *ret_end);

/* Sends a tar to the folder at path. *ret_partial: the file that was cut short where there was no room, as the engine
 * names it (not checked); owned; NULL; the pointer may be NULL. */
int32_t plain_archive_put(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const char *path, const struct sandhost_source *tar, char **ret_partial);

/* ---- plain-spool.c: content whose length must be known before it is sent ------------------------ */

struct spool {
  int fd; /* owned: an unlinked file; -1: none yet */
  uint64_t length;
};
#define SPOOL_NONE                                                                                 \
  { .fd = -1 }
void spool_clear(struct spool *spool);
typedef struct spool Spool;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Spool, spool_clear)
/* 0, or -1 with errno. */
int spool_append(struct spool *spool, const void *data, size_t length);
/* Takes all that a source gives. */
int32_t spool_fill(struct spool *spool, struct sandhost_sandbox *sandbox,
                   struct sandhost_call *call, const struct sandhost_source *source);
/* Reads at most length bytes at an offset: the count, -1 with errno. */
ssize_t spool_read(const struct spool *spool, uint64_t offset, void *buffer, size_t length);

/* ---- plain-tar-source.c: a tar that is made while it is sent ------------------------------------ */

struct archive;
struct tar_source {
  struct archive *archive;
  GByteArray *out; /* made, and not yet taken */
  size_t at;
  gboolean ended;
  /* Makes the next part: 1, 0 at the end, -1 to stop. */
  int (*step)(void *user, struct tar_source *source);
  void *user;
  struct sandhost_source source; /* what to hand on */
};
void tar_source_init(struct tar_source *source, int (*step)(void *user, struct tar_source *source),
                     void *user);
void tar_source_clear(struct tar_source *source);
/* 0, or -1. A file's content follows through tar_source_data. */
int tar_source_file(struct tar_source *source, const char *name, uint64_t bytes, uint32_t mode,
                    uint32_t uid, uint32_t gid, int64_t mtime);
int tar_source_folder(struct tar_source *source, const char *name, uint32_t uid, uint32_t gid);
int tar_source_data(struct tar_source *source, const void *data, size_t length);

/* ---- plain-files.c ------------------------------------------------------------------------------ */

/* Puts a file that belongs to the sandbox's user into a folder that exists, by a name of its own. */
int32_t plain_put_file(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                       const char *folder, const char *name, uint32_t mode,
                       const struct spool *content);

/* Deletes a file that the engine left in a folder. Sets no error. */
void plain_drop_file(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                     const char *folder, const char *below);

/* ---- plain-path.c: paths in the container -------------------------------------------------------- */

/* The path below root (the folder itself: "") without . and .. and empty components; NULL: it leads out. Owned. */
char *plain_path_below(const char *root, struct sandhost_path path);
/* Whether each component of a relative path is a name: none empty, . or ... */
gboolean plain_path_is_clean(const char *path);
/* SANDHOST_OK, or INVALID for a path that is empty, holds NUL, is too long, or is not absolute. */
int32_t plain_check_absolute(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                             const char *what, struct sandhost_path path);
int32_t plain_fail_outside(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                           struct sandhost_path path);
/* Text for a message: valid UTF-8, bounded, no control characters. Owned. */
char *plain_clean(const char *text, size_t length);

/* Follows links below root, component by component, as far as they stay there; a component
 * that is missing is none. *ret_path is owned, below root. asked is for the message about a path that leads out; where it
 * is NULL that is no failure, and *ret_path is NULL. */
int32_t plain_resolve(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                      const char *root, const char *below, const struct sandhost_path *asked,
                      char **ret_path);

#endif
