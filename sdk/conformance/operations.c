/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c: the operations, their streams, and what is there before and after. */
#include "operations.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PIECE 65536u
#define LARGE 8000000u /* bytes of the file that is read */
/* A source ends here at last: what has not looked at its call until then never will. */
#define MOST_GIVEN ((guint64)64 << 20)
#define MANY 2000u /* files that are listed */

/* ---- Moments ---------------------------------------------------------------------------------------------------- */

static void stand_still_until(gint64 time) {
  for (gint64 left; (left = time - suite_now()) > 0;) {
    g_usleep((gulong)(left / 1000 + 1000));
  }
}

/* One more piece has come or is to go. FALSE: stop. */
static gboolean one_piece(Moment *moment, gsize length) {
  moment->late = moment->late || moment->over;
  moment->ignored = moment->ignored || (moment->act == ACT_STOP && moment->acted);
  moment->bytes += length;
  if (++moment->pieces != moment->at || moment->act == ACT_NONE || moment->over) {
    return TRUE;
  }
  switch (moment->act) {
  case ACT_CANCEL:
    call_cancel(moment->call);
    break;
  case ACT_DEADLINE:
    stand_still_until(moment->call->deadline);
    break;
  case ACT_HOOK:
    moment->hook(moment->user);
    break;
  default:
    break;
  }
  moment->acted = suite_now();
  return moment->act != ACT_STOP;
}

static int32_t write_piece(void *user, const void *data, size_t length) {
  (void)data;
  return one_piece(user, length) ? SANDHOST_OK : SANDHOST_LIMIT;
}

static int64_t read_piece(void *user, void *buffer, size_t length) {
  Moment *moment = user;
  gsize take = MIN(MIN(length, PIECE), MOST_GIVEN - moment->bytes); /* what is more is no tar */
  if (take == 0) {
    return 0;
  }
  memset(buffer, 'p', take);
  return one_piece(moment, take) ? (int64_t)take : -1;
}

/* ---- Commands --------------------------------------------------------------------------------------------------- */

static int32_t see_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)stream;
  return write_piece(user, data, length);
}

static gint32 execute(Box *box, struct sandhost_call *call, const char *script,
                      struct sandhost_observer *observer) {
  const struct sandhost_text argv[] = {as_text("sh"), as_text("-c"), as_text(script)};
  const struct sandhost_execute request = {.size = sizeof request,
                                           .argv = argv,
                                           .argc = G_N_ELEMENTS(argv),
                                           .flags = observer->input ? SANDHOST_EXECUTE_STDIN : 0};
  struct sandhost_result result = {.size = sizeof result};
  return box->subject->table->execute(call, box->handle, &request, observer, &result);
}

static gint32 run_execute(Box *box, struct sandhost_call *call, Moment *moment) {
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = moment, .output = see_output};
  return execute(box, call, "while :; do echo output; done", &observer);
}

static int64_t no_input(void *user, void *buffer, size_t length) {
  (void)user;
  (void)buffer;
  (void)length;
  return -1;
}

static int32_t never_ready(void *user) {
  return ((Moment *)user)->input_fd;
}

/* It says one word and then waits for input that never comes. */
static gint32 run_waiting(Box *box, struct sandhost_call *call, Moment *moment) {
  struct sandhost_observer observer = {.size = sizeof observer,
                                       .user = moment,
                                       .output = see_output,
                                       .input = no_input,
                                       .input_fd = never_ready};
  moment->input_fd = eventfd(0, EFD_CLOEXEC);
  gint32 status = execute(box, call, "echo waiting; cat; echo ended", &observer);
  close(moment->input_fd);
  return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

static gint32 run_read(Box *box, struct sandhost_call *call, Moment *moment) {
  const struct sandhost_sink sink = {.size = sizeof sink, .user = moment, .write = write_piece};
  g_autofree char *path = below(box, "from/large");
  return box->subject->table->read_file(call, box->handle, as_path(path), &sink);
}

static gint32 run_write(Box *box, struct sandhost_call *call, Moment *moment) {
  const struct sandhost_source source = {.size = sizeof source, .user = moment, .read = read_piece};
  g_autofree char *path = below(box, "to/kept");
  return box->subject->table->write_file(call, box->handle, as_path(path), 0644, &source);
}

static gint32 run_write_new(Box *box, struct sandhost_call *call, Moment *moment) {
  const struct sandhost_source source = {.size = sizeof source, .user = moment, .read = read_piece};
  g_autofree char *path = below(box, "to/new");
  return box->subject->table->write_file(call, box->handle, as_path(path), 0644, &source);
}

static gboolean all_read(const Moment *moment) {
  return moment->bytes >= LARGE;
}

/* ---- Tar streams ------------------------------------------------------------------------------------------------ */

typedef struct {
  Moment *moment;
  GByteArray *head;
  gsize at;
} Tar;

static la_ssize_t collect(struct archive *archive, void *user, const void *data, size_t length) {
  (void)archive;
  g_byte_array_append(user, data, (guint)length);
  return (la_ssize_t)length;
}

/* The header of one file that is as long as a source ever is; its content follows. */
static GByteArray *tar_head(void) {
  GByteArray *head = g_byte_array_new();
  struct archive *tar = archive_write_new();
  struct archive_entry *entry = archive_entry_new();
  archive_write_set_format_pax_restricted(tar);
  archive_write_set_bytes_per_block(tar, 0);
  archive_write_open(tar, head, NULL, collect, NULL);
  archive_entry_copy_pathname(entry, "new");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_size(entry, (la_int64_t)MOST_GIVEN);
  archive_write_header(tar, entry);
  archive_entry_free(entry);
  guint length = head->len;
  /* Failed, it is not filled up, which takes longer than a deadline on a slow machine; closed, it frees what it does not
   * free when it has failed. The end that it writes then is not ours to send. */
  archive_write_fail(tar);
  archive_write_close(tar);
  archive_write_free(tar);
  return g_byte_array_set_size(head, length);
}

static int64_t read_tar(void *user, void *buffer, size_t length) {
  Tar *tar = user;
  gsize take = MIN(length, tar->head->len - tar->at);
  if (take == 0) {
    return read_piece(tar->moment, buffer, length);
  }
  memcpy(buffer, tar->head->data + tar->at, take);
  tar->at += take;
  return (int64_t)take;
}

static gint32 run_upload(Box *box, struct sandhost_call *call, Moment *moment) {
  g_autoptr(GByteArray) head = tar_head();
  Tar tar = {.moment = moment, .head = head};
  const struct sandhost_source source = {.size = sizeof source, .user = &tar, .read = read_tar};
  g_autofree char *dir = below(box, "to");
  return box->subject->table->upload(call, box->handle, as_path(dir), &source);
}

static gint32 run_download(Box *box, struct sandhost_call *call, Moment *moment) {
  const struct sandhost_path names[] = {as_path("large")};
  const struct sandhost_sink sink = {.size = sizeof sink, .user = moment, .write = write_piece};
  g_autofree char *dir = below(box, "from");
  return box->subject->table->download(call, box->handle, as_path(dir), names, 1, &sink);
}

/* ---- What changed ----------------------------------------------------------------------------------------------- */

static int32_t see_entry(void *user, const struct sandhost_entry *entry) {
  return write_piece(user, entry->path.data, entry->path.length);
}

static gint32 run_changes(Box *box, struct sandhost_call *call, Moment *moment) {
  g_autofree char *root = below(box, "many");
  const struct sandhost_changes request = {.size = sizeof request, .root = as_path(root)};
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .user = moment, .entry = see_entry};
  return box->subject->table->changes(call, box->handle, &request, &sink);
}

static gboolean all_listed(const Moment *moment) {
  return moment->pieces == MANY;
}

/* ---- Without a stream --------------------------------------------------------------------------------------------- */

static gint32 run_probe(Box *box, struct sandhost_call *call, Moment *moment) {
  const struct sandhost_probe probe = {
      .size = sizeof probe, .address = as_text("192.0.2.1"), .port = 9, .patience = 30 * SECOND};
  guint32 verdict = 0;
  (void)moment;
  return box->subject->table->probe(call, box->handle, &probe, &verdict);
}

/* As it is already. */
static gint32 run_network(Box *box, struct sandhost_call *call, Moment *moment) {
  const struct sandhost_network network = {
      .size = sizeof network,
      .mode = box->subject->keeps_network_off ? SANDHOST_NETWORK_DENY : SANDHOST_NETWORK_ALLOW};
  (void)moment;
  return box->subject->table->set_network_policy(call, box->handle, &network);
}

static gint32 run_snapshot(Box *box, struct sandhost_call *call, Moment *moment) {
  (void)moment;
  gint32 status = box->subject->table->snapshot(call, box->handle);
  if (status == SANDHOST_OK && call->snapshot) {
    struct sandhost_call deletion;
    call_init(&deletion, 60);
    box->subject->table->delete_snapshot(&deletion, box->subject->instance,
                                         as_text(call->snapshot));
    call_clear(&deletion);
  }
  return status;
}

/* ---- All of them -------------------------------------------------------------------------------------------------- */

static gboolean always(const struct sandhost_provider *table) {
  return table->execute != NULL;
}
static gboolean has_upload(const struct sandhost_provider *table) {
  return table->upload != NULL;
}
static gboolean has_download(const struct sandhost_provider *table) {
  return table->download != NULL;
}
static gboolean has_changes(const struct sandhost_provider *table) {
  return table->changes != NULL;
}
static gboolean has_probe(const struct sandhost_provider *table) {
  return table->probe != NULL;
}
static gboolean has_network(const struct sandhost_provider *table) {
  return table->set_network_policy != NULL;
}
static gboolean has_snapshot(const struct sandhost_provider *table) {
  return table->snapshot != NULL && table->delete_snapshot != NULL;
}

const Operation OPERATIONS[] = {
    {"execute", always, run_execute, TRUE, FALSE, FALSE, NULL},
    {"execute (stdin waits)", always, run_waiting, TRUE, FALSE, FALSE, NULL},
    {"read_file", always, run_read, TRUE, TRUE, FALSE, all_read},
    {"write_file", always, run_write, TRUE, TRUE, FALSE, NULL},
    {"write_file (new)", always, run_write_new, TRUE, TRUE, FALSE, NULL},
    {"upload", has_upload, run_upload, TRUE, TRUE, TRUE, NULL},
    {"download", has_download, run_download, TRUE, TRUE, TRUE, all_read},
    {"changes", has_changes, run_changes, TRUE, TRUE, TRUE, all_listed},
    {"probe", has_probe, run_probe, FALSE, TRUE, TRUE, NULL},
    {"set_network_policy", has_network, run_network, FALSE, TRUE, FALSE, NULL},
    {"snapshot", has_snapshot, run_snapshot, FALSE, TRUE, FALSE, NULL},
    {NULL, NULL, NULL, FALSE, FALSE, FALSE, NULL},
};

gboolean operation_gives(const Operation *operation) {
  return operation->streams && (operation->is_whole || !operation->may_be_done);
}

gboolean operation_is_absent(const Operation *operation, const Moment *moment, gint32 status) {
  return operation->may_be_absent && status == SANDHOST_UNSUPPORTED && moment->pieces == 0;
}

gboolean operations_prepare(Box *box, Verdict *verdict) {
  g_autofree char *script = g_strdup_printf(
      "mkdir from to many; head -c %u /dev/zero > from/large; printf old > to/kept; cd many; i=0; "
      "while [ $i -lt %u ]; do : > f$i; i=$((i+1)); done",
      LARGE, MANY);
  return want_run(box, script, 0, "", verdict);
}

gboolean operations_left_nothing(Box *box, Verdict *verdict) {
  return want_run(box, "cat to/kept; ls -A to", 0, "oldkept\n", verdict);
}

gint32 operation_run(const Operation *operation, Box *box, struct sandhost_call *call,
                     Moment *moment) {
  moment->call = call;
  gint32 status = operation->run(box, call, moment);
  moment->over = TRUE;
  return status;
}
