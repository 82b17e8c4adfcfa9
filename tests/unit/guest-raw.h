/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-raw.h: speaks raw frames to the built sandhost-guest, an ordinary child over a socketpair.
 *
 * Nothing here checks what a client would check: a test sends what it likes and sees each answer.
 */
#ifndef SANDHOST_TEST_GUEST_RAW_H
#define SANDHOST_TEST_GUEST_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <sandhost/guest-protocol-private.h>
#include <sandhost/provider.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define RAW_PATIENCE 60000 /* milliseconds of silence after which a test has failed */
#define RAW_SECOND 1000000000ull
#define RAW_MILLISECOND 1000000ull

struct raw_answer { /* what came for one request */
  GString *out;
  GString *err;
  gboolean started;
  uint32_t pid;
  int done; /* DONE frames */
  int32_t status;
  char *message;
  uint32_t ended; /* the results of an execute */
  int32_t exit_code;
  int32_t signal;
  uint64_t out_bytes;
  uint64_t err_bytes;
  uint64_t duration;
  uint64_t max_rss;
  uint32_t verdict;  /* the result of a probe */
  uint64_t credited; /* CREDIT that came */
};

struct raw {
  int fd;
  pid_t pid;
  char *dir; /* a fresh folder, the guest's working directory */
  GHashTable *answers;
  gboolean is_init;
  gboolean keeps_credit; /* the test gives none */
  uint64_t pong;         /* payload of the last PONG */
};

static inline void raw_answer_free(void *data) {
  struct raw_answer *answer = data;
  g_string_free(answer->out, TRUE);
  g_string_free(answer->err, TRUE);
  g_free(answer->message);
  g_free(answer);
}

static inline struct raw_answer *raw_answer(struct raw *raw, uint32_t id) {
  struct raw_answer *answer = g_hash_table_lookup(raw->answers, GUINT_TO_POINTER(id));
  if (!answer) {
    answer = g_new0(struct raw_answer, 1);
    answer->out = g_string_new(NULL);
    answer->err = g_string_new(NULL);
    g_hash_table_insert(raw->answers, GUINT_TO_POINTER(id), answer);
  }
  return answer;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static inline void raw_send(struct raw *raw, struct guest_frame frame, const void *payload) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  unsigned char header[GUEST_HEADER];
  guest_frame_pack(header, frame);
  g_byte_array_append(bytes, header, sizeof header);
  if (frame.length > 0) {
    g_byte_array_append(bytes, payload, frame.length);
  }
  for (size_t at = 0; at < bytes->len;) {
    ssize_t count = send(raw->fd, bytes->data + at, bytes->len - at, MSG_NOSIGNAL);
    g_assert_cmpint(count, >, 0);
    at += (size_t)count;
  }
}

static inline void raw_send_u32(struct raw *raw, uint8_t kind, uint32_t id, uint32_t value) {
  unsigned char payload[4];
  guest_put_u32(payload, value);
  raw_send(raw, (struct guest_frame){.length = 4, .kind = kind, .request = id}, payload);
}

static inline void raw_send_data(struct raw *raw, uint32_t id, const void *data, size_t length) {
  const unsigned char *at = data;
  while (length > 0) {
    uint32_t part = (uint32_t)MIN(length, (size_t)GUEST_MAX_FRAME);
    raw_send(raw, (struct guest_frame){.length = part, .kind = GUEST_DATA, .request = id}, at);
    at += part;
    length -= part;
  }
}

static inline void raw_send_end(struct raw *raw, uint32_t id) {
  raw_send(raw, (struct guest_frame){.kind = GUEST_END, .request = id}, NULL);
}

static inline void raw_send_cancel(struct raw *raw, uint32_t id) {
  raw_send(raw, (struct guest_frame){.kind = GUEST_CANCEL, .request = id}, NULL);
}

static inline gboolean raw_read(struct raw *raw, void *bytes, size_t length) {
  unsigned char *at = bytes;
  while (length > 0) {
    struct pollfd ready = {.fd = raw->fd, .events = POLLIN};
    if (poll(&ready, 1, RAW_PATIENCE) != 1) {
      g_error("the guest says nothing");
    }
    ssize_t count = read(raw->fd, at, length);
    if (count <= 0) {
      return FALSE;
    }
    at += count;
    length -= (size_t)count;
  }
  return TRUE;
}

static inline void raw_take_done(struct raw_answer *answer, const unsigned char *payload,
                                 size_t length) {
  struct guest_reader reader = {.data = payload, .left = length};
  size_t text_length;
  answer->status = (int32_t)guest_read_u32(&reader);
  const char *text = guest_read_bytes(&reader, &text_length);
  g_assert_false(reader.bad);
  answer->done++;
  answer->message = g_strndup(text, text_length);
  if (reader.left == 4) {
    answer->verdict = guest_read_u32(&reader);
  } else if (reader.left > 0) {
    answer->ended = guest_read_u32(&reader);
    answer->exit_code = (int32_t)guest_read_u32(&reader);
    answer->signal = (int32_t)guest_read_u32(&reader);
    answer->out_bytes = guest_read_u64(&reader);
    answer->err_bytes = guest_read_u64(&reader);
    answer->duration = guest_read_u64(&reader);
    guest_read_u64(&reader);
    guest_read_u64(&reader);
    answer->max_rss = guest_read_u64(&reader);
    g_assert_false(reader.bad);
    g_assert_cmpuint(reader.left, ==, 0);
  }
}

/* Takes one frame. FALSE: the stream has ended. */
static inline gboolean raw_step(struct raw *raw) {
  unsigned char header[GUEST_HEADER];
  if (!raw_read(raw, header, sizeof header)) {
    return FALSE;
  }
  struct guest_frame frame = guest_frame_unpack(header);
  g_assert_cmpuint(frame.length, <=, GUEST_MAX_FRAME);
  g_autofree unsigned char *payload = g_malloc(frame.length + 1);
  g_assert_true(raw_read(raw, payload, frame.length));
  if (frame.kind == GUEST_PONG) {
    g_assert_cmpuint(frame.length, ==, 8);
    raw->pong = guest_get_u64(payload);
    return TRUE;
  }
  struct raw_answer *answer = raw_answer(raw, frame.request);
  g_assert_cmpint(answer->done, ==, 0); /* nothing more is said of it after DONE */
  switch (frame.kind) {
  case GUEST_STARTED:
    g_assert_cmpuint(frame.length, ==, 4);
    answer->started = TRUE;
    answer->pid = guest_get_u32(payload);
    break;
  case GUEST_DATA:
    g_string_append_len(frame.channel == GUEST_ERR ? answer->err : answer->out, (char *)payload,
                        frame.length);
    if (!raw->keeps_credit) {
      raw_send_u32(raw, GUEST_CREDIT, frame.request, frame.length);
    }
    break;
  case GUEST_CREDIT:
    g_assert_cmpuint(frame.length, ==, 4);
    answer->credited += guest_get_u32(payload);
    break;
  case GUEST_DONE:
    raw_take_done(answer, payload, frame.length);
    break;
  default:
    g_error("frame of kind %u", frame.kind);
  }
  return TRUE;
}

static inline struct raw_answer *raw_wait(struct raw *raw, uint32_t id) {
  struct raw_answer *answer = raw_answer(raw, id);
  while (!answer->done) {
    g_assert_true(raw_step(raw));
  }
  return answer;
}

static inline void raw_wait_started(struct raw *raw, uint32_t id) {
  while (!raw_answer(raw, id)->started) {
    g_assert_true(raw_step(raw));
  }
}

/* Until so many bytes of stdout are there. */
static inline void raw_wait_output(struct raw *raw, uint32_t id, size_t length) {
  while (raw_answer(raw, id)->out->len < length) {
    g_assert_true(raw_step(raw));
  }
}

static inline void raw_ping(struct raw *raw, uint64_t value) {
  unsigned char payload[8];
  guest_put_u64(payload, value);
  raw_send(raw, (struct guest_frame){.length = 8, .kind = GUEST_PING}, payload);
  while (raw->pong != value) {
    g_assert_true(raw_step(raw));
  }
}

/* ---- Requests -------------------------------------------------------------------------------- */

static inline void raw_put_u32(GByteArray *to, uint32_t value) {
  unsigned char bytes[4];
  guest_put_u32(bytes, value);
  g_byte_array_append(to, bytes, 4);
}

static inline void raw_put_u64(GByteArray *to, uint64_t value) {
  unsigned char bytes[8];
  guest_put_u64(bytes, value);
  g_byte_array_append(to, bytes, 8);
}

static inline void raw_put_bytes(GByteArray *to, const void *bytes, size_t length) {
  raw_put_u32(to, (uint32_t)length);
  g_byte_array_append(to, bytes, (guint)length);
}

static inline void raw_put_text(GByteArray *to, const char *text) {
  g_assert_nonnull(text);
  raw_put_bytes(to, text, strlen(text));
}

static inline void raw_open(struct raw *raw, uint32_t id, uint8_t operation,
                            const GByteArray *parameters) {
  size_t at = 0;
  do {
    uint32_t part = (uint32_t)MIN(parameters->len - at, (size_t)GUEST_MAX_FRAME);
    raw_send(raw,
             (struct guest_frame){.length = part,
                                  .kind = GUEST_OPEN,
                                  .channel = operation,
                                  .flags = at + part < parameters->len ? GUEST_MORE : 0,
                                  .request = id},
             parameters->data + at);
    at += part;
  } while (at < parameters->len);
}

struct raw_command {
  const char *const *argv;        /* or */
  const char *script;             /* for sh -c */
  const char *cwd;                /* NULL: that of the guest */
  const char *const *environment; /* NULL: nothing is added */
  uint32_t flags;
  uint64_t limit;
  uint64_t max_output;
};

static inline void raw_put_list(GByteArray *to, const char *const *list) {
  uint32_t count = list ? g_strv_length((char **)(uintptr_t)list) : 0;
  raw_put_u32(to, count);
  for (uint32_t i = 0; i < count; i++) {
    raw_put_text(to, list[i]);
  }
}

static inline void raw_execute(struct raw *raw, uint32_t id, struct raw_command command) {
  g_autoptr(GByteArray) parameters = g_byte_array_new();
  const char *const shell[] = {"sh", "-c", command.script, NULL};
  raw_put_u32(parameters, command.flags);
  raw_put_u64(parameters, command.limit);
  raw_put_u64(parameters, command.max_output);
  raw_put_text(parameters, command.cwd ? command.cwd : "");
  raw_put_list(parameters, command.argv ? command.argv : shell);
  raw_put_list(parameters, command.environment);
  raw_open(raw, id, GUEST_EXECUTE, parameters);
}

static inline struct raw_answer *raw_run(struct raw *raw, uint32_t id, const char *script) {
  raw_execute(raw, id, (struct raw_command){.script = script});
  return raw_wait(raw, id);
}

/* An operation whose parameters are texts. */
static inline void raw_open_texts(struct raw *raw, uint32_t id, uint8_t operation,
                                  const char *first, const char *second) {
  g_autoptr(GByteArray) parameters = g_byte_array_new();
  raw_put_text(parameters, first);
  if (second) {
    raw_put_text(parameters, second);
  }
  raw_open(raw, id, operation, parameters);
}

/* ---- The guest ------------------------------------------------------------------------------- */

/* guest-valgrind.sh names a folder of its own. */
static inline char *raw_program(void) {
  const char *folder = g_getenv("SANDHOST_TEST_GUESTS");
  struct utsname machine;
  g_assert_cmpint(uname(&machine), ==, 0);
  return g_strdup_printf("%s/sandhost-guest-%s", folder ? folder : TEST_GUEST_DIR, machine.machine);
}

/* Starts a program with the stream on 0 and 1, and nothing else. */
static inline void raw_spawn(struct raw *raw, const char *const *argv) {
  int pair[2];
  posix_spawn_file_actions_t actions;
  const char *const environment[] = {"PATH=/usr/bin:/bin", "BASE=of the guest", NULL};
  raw->dir = g_dir_make_tmp("sandhost-guest-XXXXXX", NULL);
  raw->answers = g_hash_table_new_full(NULL, NULL, NULL, raw_answer_free);
  g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
  posix_spawn_file_actions_addchdir_np(&actions, raw->dir);
  g_assert_cmpint(posix_spawnp(&raw->pid, argv[0], &actions, NULL, (char **)(uintptr_t)argv,
                               (char **)(uintptr_t)environment),
                  ==, 0);
  posix_spawn_file_actions_destroy(&actions);
  close(pair[1]);
  raw->fd = pair[0];
}

static inline void raw_send_hello(struct raw *raw, uint32_t magic, uint32_t version) {
  unsigned char hello[8 + GUEST_NONCE];
  guest_put_u32(hello, magic);
  guest_put_u32(hello + 4, version);
  memset(hello + 8, 0x5a, GUEST_NONCE);
  raw_send(raw, (struct guest_frame){.length = sizeof hello, .kind = GUEST_HELLO}, hello);
}

/* The guest's HELLO: the version. */
static inline uint32_t raw_take_hello(struct raw *raw) {
  unsigned char bytes[GUEST_HEADER + 8 + GUEST_NONCE + 12];
  g_assert_true(raw_read(raw, bytes, sizeof bytes));
  struct guest_frame frame = guest_frame_unpack(bytes);
  const unsigned char *payload = bytes + GUEST_HEADER;
  g_assert_cmpint(frame.kind, ==, GUEST_HELLO);
  g_assert_cmpuint(frame.length, ==, sizeof bytes - GUEST_HEADER);
  g_assert_cmpuint(guest_get_u32(payload), ==, GUEST_MAGIC);
  for (unsigned i = 0; i < GUEST_NONCE; i++) {
    g_assert_cmpint(payload[8 + i], ==, 0x5a);
  }
  raw->is_init = (guest_get_u32(payload + 24) & GUEST_IS_INIT) != 0;
  g_assert_cmpuint(guest_get_u32(payload + 32), ==, GUEST_WINDOW);
  return guest_get_u32(payload + 4);
}

static inline void raw_begin(struct raw *raw) {
  g_autofree char *program = raw_program();
  const char *const argv[] = {program, NULL};
  memset(raw, 0, sizeof *raw);
  raw_spawn(raw, argv);
  raw_send_hello(raw, GUEST_MAGIC, GUEST_VERSION);
  g_assert_cmpuint(raw_take_hello(raw), ==, GUEST_VERSION);
  g_assert_false(raw->is_init);
}

/* As PID 1 of a namespace of its own. FALSE: the test is skipped. */
static inline gboolean raw_begin_as_init(struct raw *raw) {
  g_autofree char *program = raw_program();
  const char *const argv[] = {"unshare",      "--pid", "--fork", "--mount-proc",
                              "--kill-child", program, NULL};
  int status = -1;
  memset(raw, 0, sizeof *raw);
  if (!g_spawn_command_line_sync("unshare --pid --fork --mount-proc true", NULL, NULL, &status,
                                 NULL) ||
      status != 0) {
    g_test_skip("no PID namespace can be made here");
    return FALSE;
  }
  raw_spawn(raw, argv);
  raw_send_hello(raw, GUEST_MAGIC, GUEST_VERSION);
  g_assert_cmpuint(raw_take_hello(raw), ==, GUEST_VERSION);
  g_assert_true(raw->is_init);
  return TRUE;
}

static inline int raw_remove_one(const char *path, const struct stat *status, int kind,
                                 struct FTW *where) {
  (void)status;
  (void)kind;
  (void)where;
  return remove(path);
}

static inline void raw_release(struct raw *raw) {
  g_assert_cmpint(nftw(raw->dir, raw_remove_one, 16, FTW_DEPTH | FTW_PHYS), ==, 0);
  g_hash_table_unref(raw->answers);
  g_free(raw->dir);
}

/* The end of the stream ends the guest. */
static inline void raw_end(struct raw *raw) {
  int status;
  close(raw->fd);
  g_assert_cmpint(waitpid(raw->pid, &status, 0), ==, raw->pid);
  g_assert_true(WIFEXITED(status));
  g_assert_cmpint(WEXITSTATUS(status), ==, 0);
  raw_release(raw);
}

/* ---- What else tests need -------------------------------------------------------------------- */

static inline char *raw_path(const struct raw *raw, const char *name) {
  return g_build_filename(raw->dir, name, NULL);
}

static inline void raw_put_file(const struct raw *raw, const char *name, const char *content) {
  g_autofree char *path = raw_path(raw, name);
  g_autofree char *parent = g_path_get_dirname(path);
  g_assert_cmpint(g_mkdir_with_parents(parent, 0755), ==, 0);
  g_assert_true(g_file_set_contents(path, content, -1, NULL));
}

static inline gboolean raw_is_alive(pid_t pid) {
  char path[64];
  g_autofree char *stat = NULL;
  g_snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (!g_file_get_contents(path, &stat, NULL, NULL)) {
    return FALSE;
  }
  const char *behind = strrchr(stat, ')');
  return behind && behind[2] != 'Z' && behind[2] != 'X';
}

/* Waits until a process is gone. */
static inline void raw_wait_gone(pid_t pid) {
  for (int i = 0; raw_is_alive(pid); i++) {
    g_assert_cmpint(i, <, RAW_PATIENCE);
    g_usleep(1000);
  }
}

static inline pid_t raw_number(const char *text) {
  gint64 number = g_ascii_strtoll(text, NULL, 10);
  g_assert_cmpint(number, >, 1);
  return (pid_t)number;
}

#endif
