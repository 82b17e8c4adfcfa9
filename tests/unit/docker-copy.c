/* SPDX-License-Identifier: Apache-2.0 */
/* An archive on its way from one container to another, while either side fails. */
#include "docker-fixture.h"

/* The parts under test. */
#include "../../plugins/docker/archive-copy.c"
#include "../../plugins/docker/tar-owner.c"

/* Several times the buffer between the two requests. */
#define BLOCKS_OF_CONTENT 4096u

enum trouble {
  TROUBLE_NONE,
  TROUBLE_MISSING,    /* the folder to read is not there */
  TROUBLE_REFUSED,    /* the other side refuses at once, while the archive has no end */
  TROUBLE_CUT,        /* the engine dies while it is read */
  TROUBLE_NO_END,     /* the answer ends well, the archive does not */
  TROUBLE_NO_ARCHIVE, /* it is something else */
  TROUBLE_ENDLESS,    /* it never ends */
  TROUBLE_MUTE,       /* nobody says anything */
};

struct copied {
  FakeHttp *http;
  Engine *engine;
  enum trouble trouble;
  GByteArray *archive;
  GByteArray *received; /* of the connection that puts; read after the end */
  int asked;            /* atomic: requests that have come */
};

/* A header that says how much content follows, and that content. */
static GByteArray *make_archive(void) {
  GByteArray *tar = g_byte_array_new();
  tar_append_folder(tar, "./", 0700);
  tar_append_folder(tar, "./file", 0600);
  uint8_t *block = tar->data + BLOCK;
  block[AT_TYPE] = '0';
  write_octal(block + AT_SIZE, SIZE_LENGTH, (uint64_t)BLOCKS_OF_CONTENT * BLOCK);
  write_sum(block);
  g_autofree char *content = g_strnfill((gsize)BLOCKS_OF_CONTENT * BLOCK, 'c');
  g_byte_array_append(tar, (const guint8 *)content, BLOCKS_OF_CONTENT * BLOCK);
  tar_append_end(tar);
  return tar;
}

/* Writes until all is written or the other side has gone. */
static gboolean offer(int fd, const void *data, size_t length) {
  const char *at = data;
  while (length > 0) {
    ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
    if (sent <= 0) {
      return FALSE;
    }
    at += sent;
    length -= (size_t)sent;
  }
  return TRUE;
}

static gboolean offer_chunk(int fd, const void *data, size_t length) {
  g_autofree char *head = g_strdup_printf("%zx\r\n", length);
  return offer(fd, head, strlen(head)) && offer(fd, data, length) && offer(fd, "\r\n", 2);
}

static void give(struct copied *copied, int fd) {
  static const char start[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  GByteArray *archive = copied->archive;
  if (copied->trouble == TROUBLE_MISSING) {
    fake_http_answer(fd, "404 Not Found", "{\"message\":\"no such folder\"}");
    return;
  }
  (void)offer(fd, start, strlen(start));
  switch (copied->trouble) {
  case TROUBLE_CUT:
    (void)offer_chunk(fd, archive->data, archive->len / 2);
    break;
  case TROUBLE_NO_END:
    (void)offer_chunk(fd, archive->data, archive->len - 2 * BLOCK);
    (void)offer(fd, "0\r\n\r\n", 5);
    break;
  case TROUBLE_NO_ARCHIVE:
    (void)offer_chunk(fd, archive->data + 2 * BLOCK, BLOCK);
    (void)offer(fd, "0\r\n\r\n", 5);
    break;
  case TROUBLE_ENDLESS:
  case TROUBLE_REFUSED:
    while (offer_chunk(fd, archive->data, archive->len - 2 * BLOCK)) {
    }
    break;
  default:
    (void)offer_chunk(fd, archive->data, archive->len);
    (void)offer(fd, "0\r\n\r\n", 5);
  }
}

/* One byte; FALSE: the other side has gone, or the test is over. */
static gboolean next(struct copied *copied, int fd, char *ret_byte) {
  return fake_http_wait(copied->http, fd, -1) && recv(fd, ret_byte, 1, 0) == 1;
}

/* Takes the chunks of an upload. FALSE: it was given up. */
static gboolean take(struct copied *copied, int fd) {
  for (;;) {
    g_autoptr(GString) line = g_string_new(NULL);
    char byte;
    while (!strchr(line->str, '\n')) {
      if (!next(copied, fd, &byte)) {
        return FALSE;
      }
      g_string_append_c(line, byte);
    }
    gsize length = (gsize)g_ascii_strtoull(line->str, NULL, 16);
    g_autofree char *chunk = g_malloc(length + 2);
    if (!fake_read_all(fd, chunk, length + 2)) {
      return FALSE;
    }
    if (length == 0) {
      return TRUE;
    }
    g_byte_array_append(copied->received, (const guint8 *)chunk, (guint)length);
  }
}

static void script(FakeHttp *http, int fd, int number) {
  struct copied *copied = http->data;
  (void)number;
  for (;;) {
    g_autofree char *text = fake_http_read(http, fd);
    if (!text) {
      return;
    }
    if (strstr(text, " /version")) {
      fake_http_answer(fd, "200 OK", fake_version);
      continue;
    }
    if (strstr(text, "/info")) {
      fake_http_answer(fd, "200 OK", fake_info);
      continue;
    }
    __atomic_fetch_add(&copied->asked, 1, __ATOMIC_SEQ_CST);
    if (copied->trouble == TROUBLE_MUTE) {
      fake_http_keep_still(http, fd);
    } else if (g_str_has_prefix(text, "GET ")) {
      give(copied, fd);
    } else if (copied->trouble == TROUBLE_REFUSED) {
      fake_http_answer(fd, "409 Conflict", "{\"message\":\"not now\"}");
    } else {
      if (strstr(text, "Expect: 100-continue")) {
        fake_http_say(fd, "HTTP/1.1 100 Continue\r\n\r\n");
      }
      if (take(copied, fd)) {
        fake_http_answer(fd, "200 OK", "");
        continue;
      }
    }
    return;
  }
}

static void copied_begin(struct copied *copied, enum trouble trouble) {
  *copied = (struct copied){
      .trouble = trouble, .archive = make_archive(), .received = g_byte_array_new()};
  copied->http = fake_http_start(script, copied);
  g_autofree char *address = g_strdup_printf("unix://%s", copied->http->path);
  char *error = NULL;
  struct engine_settings settings = {.host = address};
  copied->engine = engine_new(&call_relay_host, &settings, &error);
  g_assert_cmpstr(error, ==, NULL);
}

static void copied_end(struct copied *copied) {
  engine_free(copied->engine);
  fake_http_end(copied->http);
  g_byte_array_unref(copied->archive);
  g_byte_array_unref(copied->received);
}

static int32_t copy(struct copied *copied, struct sandhost_call *call,
                    const struct tar_owner *owner) {
  struct archive_copy what = {.engine = copied->engine,
                              .host = &call_relay_host,
                              .from = "a",
                              .from_path = "/from",
                              .to = "b",
                              .to_path = "/to",
                              .owner = owner,
                              .max_bytes = 4 * (uint64_t)BLOCKS_OF_CONTENT * BLOCK};
  return archive_copy(&what, call);
}

static void test_good(void) {
  struct copied copied;
  struct engine_call call;
  const struct tar_owner owner = {.uid = 7, .gid = 8};
  copied_begin(&copied, TROUBLE_NONE);
  int32_t status = copy(&copied, engine_call_begin(&call), &owner);
  g_assert_cmpstr(call.call.message, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_OK);
  engine_free(g_steal_pointer(&copied.engine)); /* what the peer keeps is complete */
  g_assert_cmpuint(copied.received->len, ==, copied.archive->len);
  for (size_t i = 0; i < 2; i++) { /* the two headers have the new owner */
    uint8_t *block = copied.archive->data + i * BLOCK;
    write_id(block + AT_UID, 7);
    write_id(block + AT_GID, 8);
    write_sum(block);
  }
  g_assert_cmpint(memcmp(copied.received->data, copied.archive->data, copied.archive->len), ==, 0);
  engine_call_end(&call);
  copied_end(&copied);
}

/* message NULL: any. */
static void check(enum trouble trouble, int32_t status, const char *message) {
  struct copied copied;
  struct engine_call call;
  copied_begin(&copied, trouble);
  int32_t got = copy(&copied, engine_call_begin(&call), NULL);
  if (message) {
    g_assert_cmpstr(call.call.message, ==, message);
  }
  g_assert_nonnull(call.call.message);
  g_assert_cmpint(got, ==, status);
  g_assert_cmpint(call.call.status, ==, status);
  engine_call_end(&call);
  copied_end(&copied);
}

static void test_missing(void) {
  check(TROUBLE_MISSING, SANDHOST_NOT_FOUND, "cannot read the folder /from: no such folder");
}

static void test_refused(void) {
  check(TROUBLE_REFUSED, SANDHOST_CONFLICT, "cannot write the folder /to: not now");
}

static void test_cut(void) {
  check(TROUBLE_CUT, SANDHOST_UNAVAILABLE, NULL);
}

static void test_no_end(void) {
  check(TROUBLE_NO_END, SANDHOST_CONFLICT,
        "the engine's archive of /from has no end: something changed a file while it was read; try "
        "again when no command runs");
}

static void test_no_archive(void) {
  check(TROUBLE_NO_ARCHIVE, SANDHOST_PROTOCOL,
        "the engine's archive of /from is none of files and folders");
}

static void test_endless(void) {
  check(TROUBLE_ENDLESS, SANDHOST_LIMIT,
        "the folder /from holds more than 8388608 bytes, files with holes counted in full");
}

static void test_cancelled(void) {
  struct copied copied;
  struct engine_call call;
  copied_begin(&copied, TROUBLE_MUTE);
  struct sandhost_call *relayed = engine_call_begin(&call);
  struct fake_canceller canceller = {.call = &call.call, .flag = &copied.asked};
  GThread *thread = g_thread_new("cancel", fake_cancel_when, &canceller);
  g_assert_cmpint(copy(&copied, relayed, NULL), ==, SANDHOST_CANCELLED);
  g_thread_join(thread);
  engine_call_end(&call);
  copied_end(&copied);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/docker/copy/good", test_good);
  g_test_add_func("/docker/copy/missing", test_missing);
  g_test_add_func("/docker/copy/refused", test_refused);
  g_test_add_func("/docker/copy/cut", test_cut);
  g_test_add_func("/docker/copy/no-end", test_no_end);
  g_test_add_func("/docker/copy/no-archive", test_no_archive);
  g_test_add_func("/docker/copy/endless", test_endless);
  g_test_add_func("/docker/copy/cancelled", test_cancelled);
  return g_test_run();
}
