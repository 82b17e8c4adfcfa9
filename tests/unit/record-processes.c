/* SPDX-License-Identifier: Apache-2.0 */
/* record-processes.c: a record that several processes use, that die, and that the machine has no room for. */
#include "record-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "record/record-owner.h"
#include "record/record-verify.h"

#define PROCESSES 10
#define EVENTS 200

/* Whoever wrote, and whoever died: the chains of all runs hold. */
static gboolean is_chained(Record *record) {
  g_autoptr(JsonObject) all = record_verify_runs(record, NULL);
  gboolean whole = all && json_object_array_length(json_get(all, "faults")) == 0;
  JsonObject *ids = json_get(all, "runs");
  for (gsize i = 0; whole && i < json_object_array_length(ids); i++) {
    const char *id = json_object_get_string(json_object_array_get_idx(ids, i));
    g_autoptr(JsonObject) run = record_verify_run(record, id, NULL);
    whole = g_strcmp0(json_get_text(run, "state"), "whole") == 0;
  }
  return whole;
}

/* In a child: its way to say that something did not hold. */
static void child_assert(gboolean held) {
  if (!held) {
    _exit(1);
  }
}

/* The same, for what tells why. */
static void child_assert_ok(gboolean ok, const GError *error) {
  if (!ok) {
    g_printerr("# in a child: %s\n", error->message);
    _exit(1);
  }
}

static void assert_child_went_well(pid_t child) {
  int status = 0;
  g_assert_cmpint(waitpid(child, &status, 0), ==, child);
  g_assert_true(WIFEXITED(status));
  g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

/* ---- Many at once ------------------------------------------------------------------------------------------------ */

static void append_in_child(const char *path, int number, int gate) {
  char byte = 0;
  g_autofree char *id = g_strdup_printf("run_%d", number);
  g_autoptr(JsonObject) header = json_object_new_object();
  g_autoptr(GError) error = NULL;
  child_assert(read(gate, &byte, 1) == 0); /* all begin at once */
  Record *record = record_open(path, &error);
  child_assert_ok(record != NULL, error);
  child_assert_ok(record_begin(record, id, "trace", header, &error), error);
  for (int i = 0; i < EVENTS; i++) {
    g_autoptr(JsonObject) facts = json_object_new_object();
    json_add_int(facts, "i", i);
    child_assert_ok(record_append(record, id, "x", facts, NULL, &error), error);
  }
  child_assert_ok(record_end(record, id, "completed", NULL, &error), error);
  record_close(record);
  _exit(0);
}

static void test_ten_processes(Place *place, gconstpointer unused) {
  (void)unused;
  int gate[2];
  pid_t children[PROCESSES];
  g_assert_cmpint(pipe2(gate, O_CLOEXEC), ==, 0);
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    g_assert_cmpint(children[i], >=, 0);
    if (children[i] == 0) {
      close(gate[1]);
      append_in_child(place->path, i, gate[0]);
    }
  }
  close(gate[0]);
  close(gate[1]);
  for (int i = 0; i < PROCESSES; i++) {
    assert_child_went_well(children[i]);
  }

  g_autoptr(Record) record = open_record(place->path);
  g_assert_true(is_chained(record));
  for (int i = 0; i < PROCESSES; i++) {
    g_autofree char *id = g_strdup_printf("run_%d", i);
    g_autoptr(JsonObject) run = read_run(record, id);
    g_assert_cmpstr(json_get_text(run, "status"), ==, "completed");
    g_assert_cmpuint(json_object_array_length(json_get(run, "events")), ==, EVENTS + 2);
    for (gsize e = 1; e <= EVENTS; e++) {
      JsonObject *event = event_at(run, e);
      g_assert_cmpint(json_get_int(event, "seq", 0), ==, (gint64)e + 1);
      g_assert_cmpint(json_get_int(json_get(event, "metadata"), "i", -1), ==, (gint64)e - 1);
    }
  }
}

/* The file is made by all of them at once: nobody may take the half-made one for another program's. Most rounds
 * go well by chance, hence many. */
static void test_made_by_ten(Place *place, gconstpointer unused) {
  (void)unused;
  for (int round = 0; round < 30; round++) {
    int gate[2];
    pid_t children[PROCESSES];
    g_autofree char *path = g_strdup_printf("%s/%d/record.db", place->folder, round);
    g_assert_cmpint(pipe2(gate, O_CLOEXEC), ==, 0);
    for (int i = 0; i < PROCESSES; i++) {
      children[i] = fork();
      g_assert_cmpint(children[i], >=, 0);
      if (children[i] == 0) {
        char byte = 0;
        g_autoptr(GError) error = NULL;
        close(gate[1]);
        child_assert(read(gate[0], &byte, 1) == 0);
        Record *record = record_open(path, &error);
        child_assert_ok(record != NULL, error);
        record_close(record);
        _exit(0);
      }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < PROCESSES; i++) {
      assert_child_went_well(children[i]);
    }
  }
}

/* ---- Death --------------------------------------------------------------------------------------------------------- */

/* A child that writes until it is killed, and says so after each event. */
static void write_until_killed(const char *path, int told) {
  g_autoptr(JsonObject) header = json_object_new_object();
  Record *record = record_open(path, NULL);
  child_assert(record && record_begin(record, "run_1", "trace", header, NULL));
  for (;;) {
    child_assert(record_append(record, "run_1", "x", NULL, NULL, NULL));
    child_assert(write(told, "x", 1) == 1);
  }
}

/* Kills the child after it has told of `events` events; returns how many it told of. */
static gsize kill_after(const char *path, gsize events) {
  int told[2];
  g_assert_cmpint(pipe2(told, O_CLOEXEC), ==, 0);
  pid_t child = fork();
  g_assert_cmpint(child, >=, 0);
  if (child == 0) {
    close(told[0]);
    write_until_killed(path, told[1]);
  }
  close(told[1]);
  char byte = 0;
  gsize count = 0;
  while (count < events && read(told[0], &byte, 1) == 1) {
    count++;
  }
  kill(child, SIGKILL);
  while (read(told[0], &byte, 1) == 1) {
    count++;
  }
  close(told[0]);
  int status = 0;
  g_assert_cmpint(waitpid(child, &status, 0), ==, child);
  g_assert_true(WIFSIGNALED(status));
  return count;
}

static void assert_interrupted(JsonObject *run, gsize at_least) {
  gsize count = json_object_array_length(json_get(run, "events"));
  g_assert_cmpstr(json_get_text(run, "status"), ==, "interrupted");
  g_assert_nonnull(json_get_text(run, "ended_at"));
  g_assert_cmpuint(count, >=, at_least + 2);
  JsonObject *last = event_at(run, count - 1);
  assert_json(json_get(last, "type"), "\"run_interrupted\"");
  assert_json(json_get(last, "metadata"), "{\"cause\":\"process_gone\"}");
  g_assert_cmpint(json_get_int(last, "seq", 0), ==, (gint64)count);
}

static void test_killed(Place *place, gconstpointer unused) {
  (void)unused;
  for (gsize events = 1; events <= 9; events += 4) {
    gsize told = kill_after(place->path, events);
    {
      g_autoptr(Record) record = open_record(place->path);
      g_autoptr(JsonObject) run = read_run(record, "run_1");
      assert_interrupted(run, told);
      g_assert_true(is_chained(record));
    }
    g_assert_cmpint(g_unlink(place->path), ==, 0);
  }
}

static void test_marked_once(Place *place, gconstpointer unused) {
  (void)unused;
  kill_after(place->path, 1);
  record_close(open_record(place->path));
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  gsize count = json_object_array_length(json_get(run, "events"));
  assert_json(json_get(event_at(run, count - 1), "type"), "\"run_interrupted\"");
  assert_json(json_get(event_at(run, count - 2), "type"), "\"x\"");
}

/* A child that begins a run, says so, and lives until it is told to end it. */
static void run_until_told(const char *path, int told, int gate) {
  char byte = 0;
  Record *record = record_open(path, NULL);
  g_autoptr(JsonObject) header = json_object_new_object();
  child_assert(record && record_begin(record, "run_1", "trace", header, NULL));
  child_assert(write(told, "x", 1) == 1 && read(gate, &byte, 1) == 0);
  child_assert(record_end(record, "run_1", "completed", NULL, NULL));
  record_close(record);
  _exit(0);
}

/* Who opens the record leaves the run of a process that lives alone. */
static void test_living_owner(Place *place, gconstpointer unused) {
  (void)unused;
  char byte = 0;
  int told[2];
  int gate[2];
  g_assert_cmpint(pipe2(told, O_CLOEXEC) | pipe2(gate, O_CLOEXEC), ==, 0);
  pid_t child = fork();
  g_assert_cmpint(child, >=, 0);
  if (child == 0) {
    close(gate[1]);
    run_until_told(place->path, told[1], gate[0]);
  }
  g_assert_cmpint(read(told[0], &byte, 1), ==, 1);
  {
    g_autoptr(Record) record = open_record(place->path);
    g_autoptr(JsonObject) run = read_run(record, "run_1");
    g_assert_cmpstr(json_get_text(run, "status"), ==, "running");
  }
  close(gate[1]);
  assert_child_went_well(child);
  close(gate[0]);
  close(told[0]);
  close(told[1]);
}

static void assert_status_after(const char *path, const char *sql, const char *status) {
  run_sql(path, sql);
  g_autoptr(Record) record = open_record(path);
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(run, "status"), ==, status);
}

static void test_process_id_used_again(Place *place, gconstpointer unused) {
  (void)unused;
  Record *record = open_record(place->path);
  begin_run(record, "run_1");
  record_close(record);
  assert_status_after(place->path, "UPDATE runs SET owner_start = owner_start + 1", "interrupted");
}

static void test_another_boot(Place *place, gconstpointer unused) {
  (void)unused;
  Record *record = open_record(place->path);
  begin_run(record, "run_1");
  record_close(record);
  assert_status_after(place->path, "UPDATE runs SET owner_boot = 'before'", "interrupted");
}

/* A process of another container cannot be seen: nobody may say that it is gone. */
static void test_another_namespace(Place *place, gconstpointer unused) {
  (void)unused;
  Record *record = open_record(place->path);
  begin_run(record, "run_1");
  record_close(record);
  assert_status_after(place->path,
                      "UPDATE runs SET owner_namespace = 'pid:[1]', owner_pid = 2147483647",
                      "running");
}

/* Taken for dead, and yet it goes on: its own word counts. */
static void test_interrupted_run_ends(Place *place, gconstpointer unused) {
  (void)unused;
  Record *record = open_record(place->path);
  begin_run(record, "run_1");
  assert_status_after(place->path, "UPDATE runs SET owner_start = owner_start + 1", "interrupted");
  append_text(record, "run_1", "x", NULL, NULL);
  end_run(record, "run_1", "completed");
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(run, "status"), ==, "completed");
  g_assert_true(is_chained(record));
  record_close(record);
}

static void test_owner(void) {
  RecordOwner self = record_owner_self();
  g_assert_cmpint(self.pid, ==, getpid());
  g_assert_cmpint(self.start, >, 0);
  g_assert_cmpuint(strlen(self.boot), ==, 36);
  g_assert_true(g_str_has_prefix(self.namespace, "pid:["));
  g_assert_false(record_owner_is_gone(&self, &self));
  record_owner_clear(&self);
}

/* Dead, and not yet waited for. */
static void test_owner_zombie(void) {
  RecordOwner self = record_owner_self();
  pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  siginfo_t info;
  g_assert_cmpint(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), ==, 0);
  RecordOwner owner = self;
  owner.pid = child;
  owner.start = 0;
  g_assert_true(record_owner_is_gone(&owner, &self));
  assert_child_went_well(child);
  g_assert_true(record_owner_is_gone(&owner, &self));
  record_owner_clear(&self);
}

/* ---- No room, no right --------------------------------------------------------------------------------------------- */

#define EXIT_CANNOT 77
#define DISK_BYTES "size=512k"

static gboolean mount_small_disk(const char *folder) {
  return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("tmpfs", folder, "tmpfs", 0, DISK_BYTES) == 0;
}

/* Appends until the disk is full; then all that was told to be kept is there, and nothing of what was not. */
static void fill_disk(const char *folder) {
  g_autofree char *path = g_build_filename(folder, "record.db", NULL);
  g_autofree char *text = g_strnfill(20000, 'x');
  g_autoptr(JsonObject) header = json_object_new_object();
  g_autoptr(JsonObject) payload = json_object_new_object();
  g_autoptr(JsonObject) events = json_of("[{\"type\": \"a\"}, {\"type\": \"b\"}]");
  g_autoptr(GError) error = NULL;
  json_add_text(payload, "stdout", text);
  json_add_take(json_object_array_get_idx(events, 1), "payload", json_object_get(payload));
  g_autofree char *full =
      g_strdup_printf("could not write the record %s: database or disk is full", path);

  Record *record = record_open(path, NULL);
  child_assert(record && record_begin(record, "run_1", "trace", header, NULL));
  gsize kept = 0;
  while (record_append_many(record, "run_1", events, &error)) {
    kept++;
    child_assert(kept < 1000);
  }
  child_assert(kept > 0 && strcmp(error->message, full) == 0);
  JsonObject *run = record_run(record, "run_1", NULL);
  child_assert(json_object_array_length(json_get(run, "events")) == 1 + 2 * kept);
  record_close(record);

  record = record_open(path, NULL);
  json_object_put(run);
  run = record ? record_run(record, "run_1", NULL) : NULL;
  child_assert(run && json_object_array_length(json_get(run, "events")) == 1 + 2 * kept);
  child_assert(is_chained(record));
}

static void test_full_disk(Place *place, gconstpointer unused) {
  (void)unused;
  pid_t child = fork();
  if (child == 0) {
    if (!mount_small_disk(place->folder)) {
      _exit(EXIT_CANNOT);
    }
    fill_disk(place->folder);
    _exit(0);
  }
  int status = 0;
  g_assert_cmpint(waitpid(child, &status, 0), ==, child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CANNOT) {
    g_test_skip("a disk of a few kilobytes cannot be mounted here");
    return;
  }
  g_assert_true(WIFEXITED(status));
  g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

/* As somebody whom the folder does not belong to. */
static gboolean message_for_nobody(const char *path, const char *expected) {
  pid_t child = fork();
  if (child == 0) {
    g_autoptr(GError) error = NULL;
    if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0)) {
      _exit(EXIT_CANNOT);
    }
    child_assert(!record_open(path, &error) && strcmp(error->message, expected) == 0);
    _exit(0);
  }
  int status = 0;
  g_assert_cmpint(waitpid(child, &status, 0), ==, child);
  g_assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == EXIT_CANNOT) {
    g_test_skip("another user cannot be played here");
    return TRUE;
  }
  return WEXITSTATUS(status) == 0;
}

static void test_folder_without_right(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *path = g_build_filename(place->folder, "record.db", NULL);
  g_autofree char *expected =
      g_strdup_printf("could not open the record %s: Permission denied", path);
  g_assert_cmpint(g_chmod(place->folder, 0555), ==, 0);
  g_assert_true(message_for_nobody(path, expected));
  g_assert_cmpint(g_chmod(place->folder, 0700), ==, 0);
}

static void test_file_without_right(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *path = g_build_filename(place->folder, "record.db", NULL);
  g_autofree char *expected =
      g_strdup_printf("could not open the record %s: attempt to write a readonly database", path);
  record_close(open_record(path));
  g_assert_cmpint(g_chmod(place->folder, 0555), ==, 0);
  g_assert_cmpint(g_chmod(path, 0444), ==, 0);
  g_assert_true(message_for_nobody(path, expected));
  g_assert_cmpint(g_chmod(place->folder, 0700), ==, 0);
}

#define ADD(name, function)                                                                        \
  g_test_add("/record-processes/" name, Place, NULL, place_make, function, place_remove)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("ten-at-once", test_ten_processes);
  ADD("made-by-ten", test_made_by_ten);
  ADD("killed", test_killed);
  ADD("marked-once", test_marked_once);
  ADD("living-owner", test_living_owner);
  ADD("process-id-used-again", test_process_id_used_again);
  ADD("another-boot", test_another_boot);
  ADD("another-namespace", test_another_namespace);
  ADD("interrupted-run-ends", test_interrupted_run_ends);
  g_test_add_func("/record-processes/owner", test_owner);
  g_test_add_func("/record-processes/owner-zombie", test_owner_zombie);
  ADD("full-disk", test_full_disk);
  ADD("folder-without-right", test_folder_without_right);
  ADD("file-without-right", test_file_without_right);
  return g_test_run();
}
