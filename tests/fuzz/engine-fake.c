/* SPDX-License-Identifier: Apache-2.0 */
/* engine-fake.c: sound answers by what is asked for, and the script's own. */
#include "engine-fake.h"

#include "contract.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define PATIENCE (30 * SECOND)
#define MOST_REQUESTS 20000u
#define MOST_TEXT 65536u
#define MAX_BODY ((size_t)1 << 20) /* unless the request says another */
#define MAX_ERROR ((size_t)64 << 10)

/* One at a time. */
static struct sandhost_call *call_now;
static const uint8_t *script;
static size_t script_left;
static size_t piece;
static unsigned cancel_after;
static unsigned requests;
static int64_t now;
static int64_t deadline;
static int null_fd = -1;
static GByteArray *tree; /* archives that an engine would make */
static GByteArray *file;

/* ---- The clock --------------------------------------------------------------------------------- */

int64_t contract_now(void) {
  return now += 1000;
}

/* In place of ppoll: a descriptor is ready, else the time has passed. */
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *patience,
                 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *patience,
                 const sigset_t *mask) {
  int ready = 0;
  (void)mask;
  for (nfds_t i = 0; i < count; i++) {
    fds[i].revents = fds[i].fd >= 0 ? fds[i].events : 0;
    ready += fds[i].revents != 0;
  }
  if (ready == 0) {
    g_assert_nonnull(patience); /* else it would wait for ever */
    now += patience->tv_sec * SECOND + patience->tv_nsec;
  }
  return ready;
}

/* ---- The host ---------------------------------------------------------------------------------- */

static void check_text(struct sandhost_text text) {
  g_assert_cmpuint(text.length, <=, MOST_TEXT);
  g_assert_true(text.length == 0 || g_utf8_validate(text.data, (gssize)text.length, NULL));
  for (size_t i = 0; i < text.length; i++) {
    g_assert_true((unsigned char)text.data[i] >= ' ' && text.data[i] != 0x7f);
  }
}

static int64_t fake_deadline(const struct sandhost_call *call) {
  (void)call;
  return deadline;
}

static int32_t fake_cancelled(const struct sandhost_call *call) {
  return call->is_over || now >= deadline;
}

static int32_t fake_cancel_fd(const struct sandhost_call *call) {
  (void)call;
  return -1;
}

static int32_t fake_wait(const struct sandhost_call *call, int32_t fd, int32_t events,
                         int64_t duration) {
  (void)events;
  if (call->is_over) {
    return SANDHOST_CANCELLED;
  }
  if (fd >= 0) {
    return SANDHOST_OK;
  }
  now = duration < 0 || duration > deadline - now ? deadline : now + duration;
  return SANDHOST_TIMEOUT;
}

static int32_t fake_fail(struct sandhost_call *call, int32_t status, struct sandhost_text message) {
  g_assert_cmpint(status, !=, SANDHOST_OK);
  g_assert_cmpuint(message.length, >, 0);
  check_text(message);
  if (!call->failed) {
    call->failed = TRUE;
    call->status = status;
  }
  return status;
}

static void fake_fail_details(struct sandhost_call *call, const struct sandhost_failure *details) {
  (void)call;
  g_assert_cmpint(details->retry_after, >=, 0);
}

static void fake_report(struct sandhost_call *call, uint32_t kind, struct sandhost_text value) {
  (void)kind;
  call->facts++;
  check_text(value);
}

static void fake_progress(struct sandhost_call *call, struct sandhost_text line) {
  call->lines++;
  check_text(line);
}

const struct sandhost_host engine_fake_host = {.size = sizeof(struct sandhost_host),
                                               .minor = SANDHOST_ABI_MINOR,
                                               .version = {.data = "0", .length = 1},
                                               .deadline = fake_deadline,
                                               .cancelled = fake_cancelled,
                                               .cancel_fd = fake_cancel_fd,
                                               .wait = fake_wait,
                                               .fail = fake_fail,
                                               .fail_details = fake_fail_details,
                                               .report = fake_report,
                                               .progress = fake_progress};

static int32_t fail(struct sandhost_call *call, const HttpClient *client, int32_t status,
                    const char *text) {
  const struct sandhost_host *host = *(const struct sandhost_host *const *)(const void *)client;
  return host->fail(call, status, (struct sandhost_text){.data = text, .length = strlen(text)});
}

/* ---- Sound answers ----------------------------------------------------------------------------- */

static la_ssize_t keep(struct archive *archive, void *user, const void *bytes, size_t length) {
  (void)archive;
  g_byte_array_append(user, bytes, (guint)length);
  return (la_ssize_t)length;
}

static GByteArray *make_tar(const char *const *names) {
  GByteArray *bytes = g_byte_array_new();
  struct archive *archive = archive_write_new();
  archive_write_set_format_pax_restricted(archive);
  archive_write_set_bytes_per_block(archive, 0);
  archive_write_open(archive, bytes, NULL, keep, NULL);
  for (; *names; names++) {
    gboolean is_folder = g_str_has_suffix(*names, "/");
    struct archive_entry *entry = archive_entry_new();
    archive_entry_copy_pathname(entry, *names);
    archive_entry_set_filetype(entry, is_folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, is_folder ? 0755 : 0644);
    archive_entry_set_size(entry, is_folder ? 0 : 3);
    archive_entry_set_mtime(entry, 1700000000, 0);
    archive_write_header(archive, entry);
    if (!is_folder) {
      archive_write_data(archive, "abc", 3);
    }
    archive_entry_free(entry);
  }
  archive_write_close(archive);
  archive_write_free(archive);
  return bytes;
}

struct answer {
  long status; /* 0: there is none */
  const void *body;
  size_t length;
};

#define ID ENGINE_FAKE_ID
#define NONCE ENGINE_FAKE_NONCE

/* The first that the request's method and address contain counts. */
static const struct {
  const char *method;
  const char *path;
  long status;
  const char *body;
} SOUND[] = {
    {"GET", "/version", 200,
     "{\"Version\":\"20.10.24\",\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\","
     "\"Arch\":\"amd64\",\"Os\":\"linux\"}"},
    {"GET", "/info", 200,
     "{\"MemoryLimit\":true,\"CpuCfsQuota\":true,\"PidsLimit\":true,\"SwapLimit\":true,"
     "\"CgroupVersion\":\"2\",\"Runtimes\":{\"runc\":{}},\"SystemTime\":\"2026-01-01T00:00:00Z\"}"},
    {"POST", "/images/create", 200,
     "{\"status\":\"Pulling fs layer\",\"id\":\"a\"}\n{\"status\":\"Downloading\",\"id\":\"a\","
     "\"progressDetail\":{\"current\":5,\"total\":10}}\r\n{\"status\":\"Pull complete\",\"id\":"
     "\"a\"}\n"},
    {"GET", "/images/", 200,
     "{\"Id\":\"sha256:" ID
     "\",\"Architecture\":\"amd64\",\"Os\":\"linux\",\"Config\":{\"Volumes\":"
     "{\"/data\":{}},\"Entrypoint\":[\"x\"]},\"RootFS\":{\"Layers\":[\"sha256:1\"]}}"},
    {"POST", "/containers/create", 201, "{\"Id\":\"" ID "\"}"},
    {"POST", "/volumes/create", 201, "{\"Name\":\"v\"}"},
    {"GET", "/volumes/", 200, "{\"Name\":\"v\",\"Options\":{\"o\":\"size=1\"}}"},
    {"GET", "/exec/", 200, "{\"Running\":false,\"ExitCode\":0}"},
    {"POST", "/exec", 201, "{\"Id\":\"" ID "\"}"},
    {"GET", "/containers/json", 200,
     "[{\"Id\":\"" ID "\",\"Created\":1,\"Labels\":{\"omnicoreagent.sandbox\":\"1\","
     "\"omnicoreagent.run\":\"r\"}}]"},
    {"GET", "/json", 200,
     "{\"Id\":\"" ID "\",\"Image\":\"sha256:" ID "\",\"State\":{\"Running\":true,\"ExitCode\":0},"
     "\"Config\":{\"User\":\"1000:1000\"},\"HostConfig\":{\"ReadonlyRootfs\":true,\"Privileged\":"
     "false,\"CapDrop\":[\"ALL\"],\"SecurityOpt\":[\"no-new-privileges\"],\"PidsLimit\":256,"
     "\"NetworkMode\":\"none\",\"Memory\":1048576,\"NanoCpus\":1000000000},\"Mounts\":[],"
     "\"NetworkSettings\":{\"Networks\":{}}}"},
    {"GET", "/events", 200,
     "{\"Action\":\"die\",\"Actor\":{\"Attributes\":{\"exitCode\":\"1\"}}}\n"},
    {"DELETE", "", 204, ""},
    {"PUT", "", 200, ""},
    {"POST", "/start", 204, ""},
    {"POST", "", 200, "{}"},
};

/* What a command's stream holds, for the words of our script. */
#define FRAME(stream, length, text) stream "\0\0\0\0\0\0" length text
static const char STREAM[] =
    FRAME("\1", "\x25", "\036" NONCE "B42\036") FRAME("\1", "\3", "hi\n") FRAME("\2", "\4", "oops")
        FRAME("\2", "\x23", "\036" NONCE "E\036") FRAME("\1", "\x26", "\036" NONCE "E0,0\036");
static const char SAID[] = FRAME("\1", "\5", "done\n");

static struct answer sound_answer(const struct http_request *request) {
  const char *url = request->url;
  if (strstr(url, "/archive") && strcmp(request->method, "GET") == 0) {
    const GByteArray *tar = g_str_has_suffix(url, "workspace") ? tree : file;
    return (struct answer){.status = 200, .body = tar->data, .length = tar->len};
  }
  if (strstr(url, "/exec/") && g_str_has_suffix(url, "/start")) {
    return request->sink
               ? (struct answer){.status = 200, .body = SAID, .length = sizeof SAID - 1}
               : (struct answer){.status = 101, .body = STREAM, .length = sizeof STREAM - 1};
  }
  if (strstr(url, "/attach")) {
    return (struct answer){.status = 101, .body = "", .length = 0};
  }
  for (size_t i = 0; i < G_N_ELEMENTS(SOUND); i++) {
    if (strcmp(request->method, SOUND[i].method) == 0 && strstr(url, SOUND[i].path)) {
      return (struct answer){
          .status = SOUND[i].status, .body = SOUND[i].body, .length = strlen(SOUND[i].body)};
    }
  }
  return (struct answer){.status = 404, .body = "{\"message\":\"no\"}", .length = 16};
}

/* ---- The script -------------------------------------------------------------------------------- */

/* Counts down where the script's next record stands: its bytes are not ours to change. */
static unsigned skipped;

static struct answer next_answer(const struct http_request *request) {
  static const long CODES[] = {200, 200, 201, 204, 304, 400, 401, 403,
                               404, 409, 429, 500, 502, 504, 101, 0};
  requests++;
  g_assert_cmpuint(requests, <, MOST_REQUESTS);
  call_now->is_over = call_now->is_over || requests > cancel_after;
  if (script_left < 4 || skipped < script[0]) {
    skipped++;
    return sound_answer(request);
  }
  size_t length = MIN(script[2] | (size_t)script[3] << 8, script_left - 4);
  struct answer answer = {.status = CODES[script[1] % 16], .body = script + 4, .length = length};
  script += 4 + length;
  script_left -= 4 + length;
  skipped = 0;
  return answer;
}

/* ---- In place of http-client.c ------------------------------------------------------------------ */

struct HttpClient {
  const struct sandhost_host *host; /* the first member */
};

HttpClient *http_client_new(const struct sandhost_host *host,
                            const struct http_client_settings *settings) {
  HttpClient *client = g_new0(HttpClient, 1);
  (void)settings;
  client->host = host;
  return client;
}

void http_client_free(HttpClient *client) {
  g_free(client);
}

void http_reply_clear(struct http_reply *reply) {
  g_free(reply->body);
  g_free(reply->content_type);
  *reply = (struct http_reply){0};
}

static void check_request(const struct http_request *request) {
  for (const char *at = request->url; *at; at++) {
    g_assert_true((unsigned char)*at > ' ' && (unsigned char)*at < 0x7f);
  }
  g_assert_null(strstr(request->url, "/../"));
  g_assert_false(g_str_has_suffix(request->url, "/.."));
  for (size_t i = 0; request->headers[i]; i++) {
    g_assert_null(strpbrk(request->headers[i], "\r\n"));
  }
}

/* FALSE: its source says stop. */
static gboolean take_upload(const struct http_request *request) {
  char bytes[4096];
  int64_t count = 1;
  while (request->upload && count > 0) {
    count = request->upload->read(request->upload->user, bytes, sizeof bytes);
    g_assert_cmpint(count, <=, (int64_t)sizeof bytes);
  }
  return count >= 0;
}

/* Each piece in memory of its own. FALSE: the sink says stop. */
static gboolean give_pieces(const struct sandhost_sink *sink, const struct answer *answer) {
  const uint8_t *at = answer->body;
  for (size_t left = answer->length; left > 0;) {
    size_t part = MIN(left, piece);
    g_autofree uint8_t *own = g_memdup2(at, part);
    if (sink->write(sink->user, own, part) != SANDHOST_OK) {
      return FALSE;
    }
    at += part;
    left -= part;
  }
  return TRUE;
}

static struct http_reply reply_of(const struct answer *answer, size_t length) {
  struct http_reply reply = {.status = answer->status, .length = length};
  reply.body = g_malloc(length + 1);
  if (length > 0) {
    memcpy(reply.body, answer->body, length);
  }
  reply.body[length] = '\0';
  reply.retry_after = answer->status == 429 ? SECOND : 0;
  return reply;
}

/* What ends a call ends its next request. */
static int32_t over(HttpClient *client, struct sandhost_call *call) {
  if (!client->host->cancelled(call)) {
    return SANDHOST_OK;
  }
  gboolean late = contract_now() >= client->host->deadline(call);
  return fail(call, client, late ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED,
              late ? "the deadline passed" : "cancelled");
}

int32_t http_client_send(HttpClient *client, struct sandhost_call *call, const char *peer,
                         const struct http_request *request, struct http_reply *ret_reply) {
  (void)peer;
  check_request(request);
  int32_t status = over(client, call);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (!take_upload(request)) {
    return fail(call, client, SANDHOST_CANCELLED, "the source stopped");
  }
  struct answer answer = next_answer(request);
  gboolean good = answer.status >= 200 && answer.status < 300;
  if (answer.status < 200) {
    return fail(call, client, answer.status ? SANDHOST_PROTOCOL : SANDHOST_UNAVAILABLE,
                "there is no answer");
  }
  if (good && request->sink) {
    answer.length = give_pieces(request->sink, &answer) ? 0 : SIZE_MAX;
    if (answer.length > 0) {
      return fail(call, client, SANDHOST_CANCELLED, "the receiver stopped");
    }
  }
  if (good && answer.length > (request->max_body ? request->max_body : MAX_BODY)) {
    return fail(call, client, SANDHOST_PROTOCOL, "the answer is too long");
  }
  *ret_reply = reply_of(&answer, good ? answer.length : MIN(answer.length, MAX_ERROR));
  return SANDHOST_OK;
}

int32_t http_client_upgrade(HttpClient *client, struct sandhost_call *call, const char *peer,
                            const struct http_request *request, struct http_reply *ret_reply,
                            ByteChannel **ret_channel) {
  (void)peer;
  check_request(request);
  int32_t status = over(client, call);
  if (status != SANDHOST_OK) {
    return status;
  }
  struct answer answer = next_answer(request);
  if (answer.status == 0) {
    return fail(call, client, SANDHOST_UNAVAILABLE, "there is no answer");
  }
  if (answer.status == 101 || answer.status == 200) {
    *ret_channel = engine_fake_channel(answer.body, answer.length, piece);
    *ret_reply = reply_of(&answer, 0);
    return SANDHOST_OK;
  }
  *ret_reply = reply_of(&answer, MIN(answer.length, MAX_ERROR));
  return SANDHOST_OK;
}

/* ---- Channels ---------------------------------------------------------------------------------- */

typedef struct {
  ByteChannel channel;
  const uint8_t *bytes; /* borrowed */
  size_t left;
  size_t piece;
} FakeChannel;

static ssize_t channel_receive(ByteChannel *channel, void *buffer, size_t length) {
  FakeChannel *self = (FakeChannel *)channel;
  size_t part = MIN(MIN(self->left, self->piece), length);
  if (part > 0) {
    memcpy(buffer, self->bytes, part);
  }
  self->bytes += part;
  self->left -= part;
  return (ssize_t)part;
}

static ssize_t channel_send(ByteChannel *channel, const void *data, size_t length) {
  (void)channel;
  (void)data;
  return (ssize_t)length;
}

static int channel_fd(ByteChannel *channel) {
  (void)channel;
  return null_fd;
}

static void channel_free(ByteChannel *channel) {
  g_free(channel);
}

ByteChannel *engine_fake_channel(const void *bytes, size_t length, size_t size) {
  FakeChannel *self = g_new0(FakeChannel, 1);
  self->channel = (ByteChannel){.receive = channel_receive,
                                .send = channel_send,
                                .receive_fd = channel_fd,
                                .send_fd = channel_fd,
                                .free = channel_free};
  self->bytes = bytes;
  self->left = length;
  self->piece = size;
  return &self->channel;
}

/* ---- One input --------------------------------------------------------------------------------- */

void engine_fake_init(void) {
  static const char *const TREE[] = {"workspace/",
                                     "workspace/a",
                                     "workspace/dir/",
                                     "workspace/dir/b",
                                     "workspace/.hidden",
                                     "workspace/repo/.git/",
                                     "workspace/repo/.git/x",
                                     "workspace/repo/d",
                                     NULL};
  static const char *const FILE_ONLY[] = {"a", NULL};
  null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  tree = make_tar(TREE);
  file = make_tar(FILE_ONLY);
}

void engine_fake_script(struct sandhost_call *call, const uint8_t *bytes, size_t length,
                        size_t size, unsigned cancel) {
  call_now = call;
  script = bytes;
  script_left = length;
  skipped = 0;
  piece = size;
  cancel_after = cancel;
  requests = 0;
  now = SECOND;
  deadline = now + PATIENCE;
}
