/* SPDX-License-Identifier: Apache-2.0 */
/* provider-optional.c: optional operations: one that is there and does not serve its sandbox, what outlives a run
 * (sweep, attach, snapshots), and what a provider says there that it must not. */
#include "provider-files.h"

/* ---- A slot that is there and says that it cannot ---------------------------------------------------------- */

/* A tar of nothing. */
static gboolean upload_nothing(Sandbox *sandbox, GError **error) {
  Stream stream = stream_new();
  const struct sandhost_source source = {
      .size = sizeof source, .user = &stream, .read = stream_read};
  g_byte_array_set_size(stream.bytes, 1024);
  memset(stream.bytes->data, 0, 1024);
  gboolean ok = sandbox_upload(sandbox, minute(), &source, error);
  g_byte_array_unref(stream.bytes);
  return ok;
}

static gboolean download_one(Sandbox *sandbox, gsize *ret_length, GError **error) {
  Stream stream = stream_new();
  const struct sandhost_sink sink = {.size = sizeof sink, .user = &stream, .write = stream_write};
  const struct sandhost_path names[] = {{.data = "a", .length = 1}};
  gboolean ok = sandbox_download(sandbox, minute(), names, 1, &sink, error);
  *ret_length = stream.bytes->len;
  g_byte_array_unref(stream.bytes);
  return ok;
}

static int32_t count_entry(void *user, const struct sandhost_entry *entry) {
  guint *count = user;
  (void)entry;
  (*count)++;
  return SANDHOST_OK;
}

static gboolean list_changes(Sandbox *sandbox, guint *ret_count, GError **error) {
  *ret_count = 0;
  const struct sandhost_entry_sink sink = {
      .size = sizeof sink, .user = ret_count, .entry = count_entry};
  return sandbox_changes(sandbox, minute(), NULL, 0, 0, &sink, error);
}

static gboolean try_probe(Sandbox *sandbox, GError **error) {
  const struct sandhost_probe probe = {.size = sizeof probe,
                                       .address = {.data = "127.0.0.1", .length = 9},
                                       .port = 1,
                                       .patience = CLOCK_SECOND};
  guint32 verdict = 0;
  return sandbox_probe(sandbox, minute(), &probe, &verdict, error);
}

static void test_upload_falls_back(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("partial");
  g_autoptr(GError) error = NULL;
  upload_nothing(zoo.sandbox, &error);
  g_assert_no_error(error);
  upload_nothing(zoo.sandbox, &error);
  g_assert_no_error(error);
  assert_log(log, "open\ncreate\nupload\n"); /* it is asked once */
  zoo_close(&zoo);
  log_end(log);
}

static void test_download_falls_back(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("partial");
  g_autoptr(GError) error = NULL;
  gsize length = 0;
  put(zoo.sandbox, "a", "hello");
  download_one(zoo.sandbox, &length, &error);
  g_assert_no_error(error);
  g_assert_cmpuint(length, >=, 1024);
  download_one(zoo.sandbox, &length, &error);
  g_assert_no_error(error);
  assert_log(log, "open\ncreate\nwrite_file\ndownload\nexecute\nread_file\nexecute\nread_file\n");
  zoo_close(&zoo);
  log_end(log);
}

static void test_changes_fall_back(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("partial");
  guint count = 0;
  for (int i = 0; i < 2; i++) {
    g_autoptr(GError) error = NULL;
    g_assert_false(list_changes(zoo.sandbox, &count, &error));
    g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
    g_assert_cmpstr(error->message, ==,
                    "what changed in the partial sandbox cannot be listed: it has no sh");
  }
  assert_log(log, "open\ncreate\nchanges\nexecute\nexecute\n");
  zoo_close(&zoo);
  log_end(log);
}

static void test_probe_falls_back(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("partial");
  for (int i = 0; i < 2; i++) {
    g_autoptr(GError) error = NULL;
    g_assert_false(try_probe(zoo.sandbox, &error));
    g_assert_cmpstr(error->message, ==,
                    "The partial sandbox's network could not be checked: the image has no python "
                    "to run the check with");
  }
  /* python3, then python */
  assert_log(log, "open\ncreate\nprobe\nexecute\nexecute\nexecute\nexecute\n");
  zoo_close(&zoo);
  log_end(log);
}

/* What has gone through a stream cannot be done again by somebody else. */
static void test_touched_stream_fails(void) {
  g_setenv("PARTIAL_TOUCHES", "1", TRUE);
  Zoo zoo = zoo_open("partial");
  gsize length = 0;
  guint count = 0;
  for (int i = 0; i < 2; i++) {
    GError *errors[3] = {NULL};
    g_assert_false(upload_nothing(zoo.sandbox, &errors[0]));
    g_assert_false(download_one(zoo.sandbox, &length, &errors[1]));
    g_assert_false(list_changes(zoo.sandbox, &count, &errors[2]));
    for (gsize j = 0; j < G_N_ELEMENTS(errors); j++) {
      g_assert_error(errors[j], PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
      g_assert_cmpstr(errors[j]->message, ==, "not in this sandbox");
      g_error_free(errors[j]);
    }
  }
  zoo_close(&zoo);
  g_unsetenv("PARTIAL_TOUCHES");
}

/* Another sandbox of the same provider may have what this one has not. */
static void test_remembered_per_sandbox(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("partial");
  g_autoptr(GError) error = NULL;
  g_autoptr(Manifest) manifest = manifest_of(NULL);
  upload_nothing(zoo.sandbox, &error);
  Sandbox *second = sandbox_create(zoo.instance, manifest, "key-2", "run-1", minute(), &error);
  g_assert_no_error(error);
  upload_nothing(second, &error);
  g_assert_no_error(error);
  assert_log(log, "open\ncreate\nupload\ncreate\nupload\n");
  sandbox_end(second, &error);
  g_assert_no_error(error);
  zoo_close(&zoo);
  log_end(log);
}

static void test_signal_stays_unsupported(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("partial");
  for (int i = 0; i < 2; i++) {
    g_autoptr(GError) error = NULL;
    g_assert_false(sandbox_signal(zoo.sandbox, minute(), 1, 15, &error));
    g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
    g_assert_cmpstr(error->message, ==, "not in this sandbox");
  }
  assert_log(log, "open\ncreate\nsignal\nsignal\n");
  zoo_close(&zoo);
  log_end(log);
}

/* ---- sweep --------------------------------------------------------------------------------------------------- */

typedef struct {
  char *folder;
  ProviderRegistry *registry;
  ProviderInstance *instance;
  GPtrArray *orphans;
} Swept;

static Swept swept_open(const char *fault) {
  g_autoptr(GError) error = NULL;
  Swept swept = {.folder = folder_new(), .registry = zoo_registry()};
  swept.orphans = g_ptr_array_new_with_free_func((GDestroyNotify)orphan_free);
  g_autoptr(JsonObject) options = json_object_new_object();
  json_add_text(options, "folder", swept.folder);
  json_add_text(options, "fault", fault);
  Provider *provider = provider_registry_load(swept.registry, "sweeper", &error);
  g_assert_no_error(error);
  swept.instance = provider_instance_open(swept.registry, provider, options, &error);
  g_assert_no_error(error);
  return swept;
}

static void swept_close(Swept *swept) {
  g_ptr_array_unref(swept->orphans);
  provider_instance_close(swept->instance);
  provider_registry_free(swept->registry);
  folder_remove(swept->folder);
}

static void leave_sandbox(const Swept *swept, const char *ref, const char *run_id) {
  g_autofree char *file = g_build_filename(swept->folder, ref, NULL);
  g_assert_true(g_file_set_contents(file, run_id, -1, NULL));
}

static gboolean is_there(const Swept *swept, const char *ref) {
  g_autofree char *file = g_build_filename(swept->folder, ref, NULL);
  return g_file_test(file, G_FILE_TEST_EXISTS);
}

static void test_sweep_lists(void) {
  Swept swept = swept_open("");
  const SweepRequest request = {.dry_run = TRUE};
  g_autoptr(GError) error = NULL;
  leave_sandbox(&swept, "one", "run_a");
  g_assert_true(provider_instance_sweeps(swept.instance));
  provider_instance_sweep(swept.instance, &request, swept.orphans, minute(), &error);
  g_assert_no_error(error);
  g_assert_cmpuint(swept.orphans->len, ==, 1);
  const Orphan *orphan = g_ptr_array_index(swept.orphans, 0);
  g_assert_cmpstr(orphan->ref, ==, "one");
  g_assert_cmpstr(orphan->run_id, ==, "run_a");
  g_assert_cmpint(orphan->age, >=, 0);
  g_assert_false(orphan->removed);
  g_assert_true(is_there(&swept, "one"));
  swept_close(&swept);
}

static void test_sweep_removes_what_is_asked(void) {
  Swept swept = swept_open("");
  const char *const keep[] = {"kept", NULL};
  const SweepRequest request = {.run_id = "run_a", .keep = keep};
  g_autoptr(GError) error = NULL;
  leave_sandbox(&swept, "kept", "run_a");
  leave_sandbox(&swept, "gone", "run_a");
  leave_sandbox(&swept, "other", "run_b");
  provider_instance_sweep(swept.instance, &request, swept.orphans, minute(), &error);
  g_assert_no_error(error);
  g_assert_cmpuint(swept.orphans->len, ==, 1);
  g_assert_true(((const Orphan *)g_ptr_array_index(swept.orphans, 0))->removed);
  g_assert_true(is_there(&swept, "kept"));
  g_assert_true(is_there(&swept, "other"));
  g_assert_false(is_there(&swept, "gone"));
  swept_close(&swept);
}

static void test_sweep_spares_young(void) {
  Swept swept = swept_open("");
  const SweepRequest request = {.min_age = 3600 * CLOCK_SECOND};
  g_autoptr(GError) error = NULL;
  leave_sandbox(&swept, "one", "run_a");
  provider_instance_sweep(swept.instance, &request, swept.orphans, minute(), &error);
  g_assert_no_error(error);
  g_assert_cmpuint(swept.orphans->len, ==, 0);
  g_assert_true(is_there(&swept, "one"));
  swept_close(&swept);
}

/* A label that anybody may have written. */
static void test_sweep_odd_run(void) {
  Swept swept = swept_open("unnamed");
  const SweepRequest request = {.dry_run = TRUE};
  g_autoptr(GError) error = NULL;
  leave_sandbox(&swept, "one", "run_a");
  provider_instance_sweep(swept.instance, &request, swept.orphans, minute(), &error);
  g_assert_no_error(error);
  g_assert_null(((const Orphan *)g_ptr_array_index(swept.orphans, 0))->run_id);
  swept_close(&swept);
}

static void test_no_sweep(void) {
  Zoo zoo = zoo_open("good");
  const SweepRequest request = {.run_id = "run_a"};
  g_autoptr(GPtrArray) orphans = g_ptr_array_new();
  g_autoptr(GError) error = NULL;
  g_assert_false(provider_instance_sweeps(zoo.instance));
  g_assert_true(provider_instance_sweep(zoo.instance, &request, orphans, minute(), &error));
  g_assert_cmpuint(orphans->len, ==, 0);
  zoo_close(&zoo);
}

typedef struct {
  const char *fault;
  const char *run_id;
  gboolean dry_run;
  const char *text;
} Breach;

static const Breach BREACHES[] = {
    {"other-run", "run_a", TRUE, "sweeper: sweep listed a sandbox of another run"},
    {"no-ref", NULL, TRUE, "sweeper: sweep listed a sandbox without a name that is text"},
    {"control", NULL, TRUE, "sweeper: sweep listed a sandbox without a name that is text"},
    {"dry", NULL, TRUE, "sweeper: sweep removed a sandbox that was only to be listed"},
    {"kept", NULL, FALSE, "sweeper: sweep removed a sandbox that was to be kept"},
    {"many", NULL, TRUE, "sweeper: sweep listed more sandboxes than there can be"},
};

static void test_sweep_breach(gconstpointer data) {
  const Breach *breach = data;
  Swept swept = swept_open(breach->fault);
  const char *const keep[] = {"one", NULL};
  const SweepRequest request = {.run_id = breach->run_id, .keep = keep, .dry_run = breach->dry_run};
  /* A dry run that keeps nothing, or there would be nothing to list. */
  const SweepRequest listing = {.run_id = breach->run_id, .dry_run = TRUE};
  g_autoptr(GError) error = NULL;
  leave_sandbox(&swept, "one", "run_b");
  g_assert_false(provider_instance_sweep(swept.instance, breach->dry_run ? &listing : &request,
                                         swept.orphans, minute(), &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL);
  g_assert_cmpstr(error->message, ==, breach->text);
  g_assert_cmpuint(swept.orphans->len, <=, 100000);
  swept_close(&swept);
}

/* ---- attach and snapshots -------------------------------------------------------------------------------------- */

static void test_attach(void) {
  Swept swept = swept_open("");
  g_autoptr(GError) error = NULL;
  leave_sandbox(&swept, "one", "run_a");
  Sandbox *sandbox = sandbox_attach(swept.instance, "one", "/workspace", minute(), &error);
  g_assert_no_error(error);
  g_assert_cmpstr(sandbox_ref(sandbox), ==, "one");
  g_assert_cmpstr(sandbox_working_dir(sandbox), ==, "/workspace");
  shell(sandbox, "true");
  sandbox_end(sandbox, &error);
  g_assert_no_error(error);
  g_assert_false(is_there(&swept, "one"));
  swept_close(&swept);
}

static void test_attach_gone(void) {
  Swept swept = swept_open("");
  g_autoptr(GError) error = NULL;
  g_assert_null(sandbox_attach(swept.instance, "one", "/workspace", minute(), &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_NOT_FOUND);
  g_assert_cmpstr(error->message, ==, "it is gone");
  swept_close(&swept);
}

static void test_attach_absent(void) {
  Zoo zoo = zoo_open("good");
  g_autoptr(GError) error = NULL;
  g_assert_null(sandbox_attach(zoo.instance, "one", "/workspace", minute(), &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(error->message, ==, "a good sandbox cannot be taken up again; make a new one");
  zoo_close(&zoo);
}

static void test_delete_snapshot(void) {
  char *log = log_new();
  Swept swept = swept_open("");
  g_autoptr(GError) error = NULL;
  g_assert_true(provider_instance_delete_snapshot(swept.instance, "snap-1", minute(), &error));
  g_assert_false(provider_instance_delete_snapshot(swept.instance, "locked", minute(), &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_DENIED);
  g_assert_cmpstr(error->message, ==, "it is locked");
  assert_log(log, "open\nsnap-1\nlocked\n");
  swept_close(&swept);
  log_end(log);
}

static void test_delete_snapshot_absent(void) {
  Zoo zoo = zoo_open("good");
  g_autoptr(GError) error = NULL;
  g_assert_false(provider_instance_delete_snapshot(zoo.instance, "x", minute(), &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(error->message, ==, "the good sandbox keeps no snapshots");
  zoo_close(&zoo);
}

int main(int argc, char **argv) {
  use_plain_memory(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/optional/upload-falls-back", test_upload_falls_back);
  g_test_add_func("/optional/download-falls-back", test_download_falls_back);
  g_test_add_func("/optional/changes-fall-back", test_changes_fall_back);
  g_test_add_func("/optional/probe-falls-back", test_probe_falls_back);
  g_test_add_func("/optional/touched-stream-fails", test_touched_stream_fails);
  g_test_add_func("/optional/remembered-per-sandbox", test_remembered_per_sandbox);
  g_test_add_func("/optional/signal-stays-unsupported", test_signal_stays_unsupported);
  g_test_add_func("/sweep/lists", test_sweep_lists);
  g_test_add_func("/sweep/removes-what-is-asked", test_sweep_removes_what_is_asked);
  g_test_add_func("/sweep/spares-young", test_sweep_spares_young);
  g_test_add_func("/sweep/odd-run", test_sweep_odd_run);
  g_test_add_func("/sweep/absent", test_no_sweep);
  for (gsize i = 0; i < G_N_ELEMENTS(BREACHES); i++) {
    g_autofree char *path = g_strdup_printf("/sweep/breach/%s", BREACHES[i].fault);
    g_test_add_data_func(path, &BREACHES[i], test_sweep_breach);
  }
  g_test_add_func("/attach/adopts", test_attach);
  g_test_add_func("/attach/gone", test_attach_gone);
  g_test_add_func("/attach/absent", test_attach_absent);
  g_test_add_func("/snapshot/delete", test_delete_snapshot);
  g_test_add_func("/snapshot/delete-absent", test_delete_snapshot_absent);
  return g_test_run();
}
