/* SPDX-License-Identifier: Apache-2.0 */
/* exercise.c: each operation once. Nothing of the suite's own is left behind: what grows is the provider's. */
#include "exercise.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

/* ---- Streams that take and give a little -------------------------------------------------------------------------------- */

static int32_t take_bytes(void *user, const void *data, size_t length) {
  (void)user;
  (void)data;
  (void)length;
  return SANDHOST_OK;
}

typedef struct {
  const void *data;
  gsize left;
} Given;

static int64_t give_bytes(void *user, void *buffer, size_t length) {
  Given *given = user;
  gsize take = MIN(given->left, length);
  memcpy(buffer, given->data, take);
  given->data = (const char *)given->data + take;
  given->left -= take;
  return (int64_t)take;
}

static const struct sandhost_sink SINK = {.size = sizeof SINK, .write = take_bytes};

static void started(void *user, uint64_t execution) {
  guint64 *last = user;
  *last = execution;
}

static int32_t take_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)stream;
  return take_bytes(user, data, length);
}

static int32_t take_entry(void *user, const struct sandhost_entry *entry) {
  (void)entry;
  return take_bytes(user, NULL, 0);
}

static int32_t take_orphan(void *user, const struct sandhost_orphan *orphan) {
  (void)orphan;
  return take_bytes(user, NULL, 0);
}

/* ---- In a sandbox ------------------------------------------------------------------------------------------------------ */

/* Returns the execution. */
static guint64 command(Box *box) {
  const struct sandhost_text argv[] = {as_text("sh"), as_text("-c"), as_text("echo one")};
  const struct sandhost_execute request = {
      .size = sizeof request, .argv = argv, .argc = G_N_ELEMENTS(argv)};
  guint64 execution = 0;
  const struct sandhost_observer observer = {
      .size = sizeof observer, .user = &execution, .started = started, .output = take_output};
  struct sandhost_result result = {.size = sizeof result};
  struct sandhost_call call;
  call_init(&call, 60);
  box->subject->table->execute(&call, box->handle, &request, &observer, &result);
  call_clear(&call);
  return execution;
}

static void run_execute(Box *box) {
  command(box);
}

static void run_signal(Box *box) {
  struct sandhost_call call;
  guint64 execution = command(box);
  call_init(&call, 60);
  box->subject->table->signal(&call, box->handle, execution, 15);
  call_clear(&call);
}

static void run_read(Box *box) {
  struct sandhost_call call;
  g_autofree char *path = below(box, "few/a");
  call_init(&call, 60);
  box->subject->table->read_file(&call, box->handle, as_path(path), &SINK);
  call_clear(&call);
}

static void run_write(Box *box) {
  g_autofree char *path = below(box, "to/written");
  write_from(box, path, "word\n", 5, 0644);
}

static la_ssize_t collect(struct archive *archive, void *user, const void *data, size_t length) {
  (void)archive;
  g_byte_array_append(user, data, (guint)length);
  return (la_ssize_t)length;
}

static void run_upload(Box *box) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *tar = archive_write_new();
  struct archive_entry *entry = archive_entry_new();
  archive_write_set_format_pax(tar);
  archive_write_set_options(tar, "hdrcharset=BINARY");
  archive_write_set_bytes_per_block(tar, 0);
  archive_write_open(tar, bytes, NULL, collect, NULL);
  archive_entry_copy_pathname(entry, "sent");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_size(entry, 5);
  archive_write_header(tar, entry);
  archive_write_data(tar, "word\n", 5);
  archive_entry_free(entry);
  archive_write_close(tar);
  archive_write_free(tar);
  Given given = {.data = bytes->data, .left = bytes->len};
  const struct sandhost_source source = {.size = sizeof source, .user = &given, .read = give_bytes};
  g_autofree char *dir = below(box, "to");
  struct sandhost_call call;
  call_init(&call, 60);
  box->subject->table->upload(&call, box->handle, as_path(dir), &source);
  call_clear(&call);
}

static void run_download(Box *box) {
  const struct sandhost_path names[] = {as_path("a"), as_path("b")};
  struct sandhost_call call;
  g_autofree char *dir = below(box, "few");
  call_init(&call, 60);
  box->subject->table->download(&call, box->handle, as_path(dir), names, G_N_ELEMENTS(names),
                                &SINK);
  call_clear(&call);
}

static void run_changes(Box *box) {
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .entry = take_entry};
  struct sandhost_call call;
  g_autofree char *root = below(box, "few");
  const struct sandhost_changes request = {.size = sizeof request, .root = as_path(root)};
  call_init(&call, 60);
  box->subject->table->changes(&call, box->handle, &request, &sink);
  call_clear(&call);
}

static void run_probe(Box *box) {
  const struct sandhost_probe probe = {
      .size = sizeof probe, .address = as_text("127.0.0.1"), .port = 9, .patience = SECOND};
  struct sandhost_call call;
  guint32 verdict = 0;
  call_init(&call, 60);
  box->subject->table->probe(&call, box->handle, &probe, &verdict);
  call_clear(&call);
}

/* As it is already. */
static void run_network(Box *box) {
  const struct sandhost_network network = {
      .size = sizeof network,
      .mode = box->subject->keeps_network_off ? SANDHOST_NETWORK_DENY : SANDHOST_NETWORK_ALLOW};
  struct sandhost_call call;
  call_init(&call, 60);
  box->subject->table->set_network_policy(&call, box->handle, &network);
  call_clear(&call);
}

static void run_snapshot(Box *box) {
  struct sandhost_call call;
  struct sandhost_call deletion;
  call_init(&call, 120);
  call_init(&deletion, 60);
  if (box->subject->table->snapshot(&call, box->handle) == SANDHOST_OK && call.snapshot) {
    box->subject->table->delete_snapshot(&deletion, box->subject->instance, as_text(call.snapshot));
  }
  call_clear(&call);
  call_clear(&deletion);
}

static void run_attach(Box *box) {
  struct sandhost_sandbox *handle = NULL;
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status = box->subject->table->attach(&call, box->subject->instance,
                                              as_text(box->ref ? box->ref : ""), &handle);
  if (status == SANDHOST_OK && handle) {
    box->subject->table->release(handle);
  }
  call_clear(&call);
}

static void run_sweep(Box *box) {
  const struct sandhost_sweep request = {
      .size = sizeof request, .run_id = as_text(box->subject->run_id), .dry_run = 1};
  const struct sandhost_orphan_sink sink = {.size = sizeof sink, .orphan = take_orphan};
  struct sandhost_call call;
  call_init(&call, 60);
  box->subject->table->sweep(&call, box->subject->instance, &request, &sink);
  call_clear(&call);
}

static void run_enforces(Box *box) {
  subject_level(box->subject, SANDHOST_SETTING_MEMORY);
}

static gboolean always(const struct sandhost_provider *table) {
  return table->execute != NULL;
}
#define HAS(NAME, SLOT)                                                                            \
  static gboolean NAME(const struct sandhost_provider *table) {                                    \
    return table->SLOT != NULL;                                                                    \
  }
HAS(has_signal, signal)
HAS(has_upload, upload)
HAS(has_download, download)
HAS(has_changes, changes)
HAS(has_probe, probe)
HAS(has_network, set_network_policy)
HAS(has_snapshot, delete_snapshot)
HAS(has_attach, attach)
HAS(has_sweep, sweep)
HAS(has_enforces, enforces_now)

const Exercise EXERCISES[] = {
    {"execute", always, run_execute},
    {"read_file", always, run_read},
    {"write_file", always, run_write},
    {"upload", has_upload, run_upload},
    {"download", has_download, run_download},
    {"changes", has_changes, run_changes},
    {"signal", has_signal, run_signal},
    {"probe", has_probe, run_probe},
    {"set_network_policy", has_network, run_network},
    {"snapshot", has_snapshot, run_snapshot},
    {"attach", has_attach, run_attach},
    {"sweep", has_sweep, run_sweep},
    {"enforces_now", has_enforces, run_enforces},
    {NULL, NULL, NULL},
};

gboolean exercise_prepare(Box *box, Verdict *verdict) {
  return want_run(box, "mkdir few to; echo a > few/a; echo b > few/b", 0, NULL, verdict);
}

/* ---- Around sandboxes --------------------------------------------------------------------------------------------------- */

static void verdict_clear(Verdict *verdict) {
  g_free(verdict->wrong);
  g_free(verdict->skipped);
  g_free(verdict->untried);
  g_free(verdict->noted);
}

void exercise_sandbox(Subject *subject) {
  Box box;
  Verdict scrap = {0};
  if (box_open(&box, subject, SANDHOST_NETWORK_DENY, &scrap)) {
    box_close(&box, &scrap);
  }
  verdict_clear(&scrap);
}

void exercise_instance(Subject *subject) {
  struct sandhost_instance *instance = NULL;
  struct sandhost_call call;
  call_init(&call, 60);
  if (subject->table->open(&call, subject->request, &instance) == SANDHOST_OK) {
    subject->table->close(instance);
  }
  call_clear(&call);
}

void exercise_everything(Subject *subject) {
  Box box;
  Verdict scrap = {0};
  if (box_open(&box, subject, SANDHOST_NETWORK_DENY, &scrap)) {
    exercise_prepare(&box, &scrap);
    for (const Exercise *exercise = EXERCISES; exercise->name; exercise++) {
      if (exercise->is_there(subject->table)) {
        exercise->run(&box);
      }
    }
    box_close(&box, &scrap);
  }
  verdict_clear(&scrap);
}
