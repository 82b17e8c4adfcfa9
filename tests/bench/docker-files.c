/* SPDX-License-Identifier: Apache-2.0 */
/* docker-files.c: files in and out of a container, what changed in it, and bytes that a command prints. */
#include "docker-bench.h"

#include <string.h>

#include "base/clock.h"
#include "floor-files.h"
#include "ratio.h"

#define FILES 500u
#define FILE_BYTES ((gsize)40000)
#define TAR_ROOM ((gsize)64 << 20)
#define PRINTED G_GINT64_CONSTANT(200000000)
#define PRINT "head -c 200000000 /dev/zero"

typedef struct {
  const Bench *bench;
  char *tar;
  gsize tar_length;
  struct sandhost_path names[FILES];
  gsize at; /* of a read or a write */
} Files;

static gboolean empty_workspace(const Files *files) {
  gboolean ok = sandbox_line(files->bench->sandbox, "rm -rf /workspace/*") > 0;
  docker_settle();
  return ok;
}

/* ---- In -------------------------------------------------------------------------------------------------------------- */

static int64_t read_tar(void *user, void *buffer, size_t length) {
  Files *files = user;
  size_t count = MIN(length, files->tar_length - files->at);
  memcpy(buffer, files->tar + files->at, count);
  files->at += count;
  return (int64_t)count;
}

static gint64 our_upload(void *user) {
  Files *files = user;
  const struct sandhost_source tar = {.size = sizeof tar, .user = files, .read = read_tar};
  const CallScope scope = {.deadline = G_MAXINT64};
  files->at = 0;
  if (!empty_workspace(files)) {
    return -1;
  }
  gint64 from = clock_now();
  return sandbox_upload(files->bench->sandbox, &scope, &tar, NULL) ? clock_now() - from : -1;
}

static gint64 hand_upload(void *user) {
  const Files *files = user;
  g_autofree char *path =
      g_strdup_printf("/containers/%s/archive?path=/workspace", sandbox_ref(files->bench->sandbox));
  if (!empty_workspace(files)) {
    return -1;
  }
  gint64 from = clock_now();
  int status = hand_put(files->bench->hand, path, files->tar, files->tar_length);
  return status == 200 ? clock_now() - from : -1;
}

/* ---- Out ------------------------------------------------------------------------------------------------------------- */

static int32_t count_bytes(void *user, const void *data, size_t length) {
  Files *files = user;
  (void)data;
  files->at += length;
  return SANDHOST_OK;
}

static gint64 our_download(void *user) {
  Files *files = user;
  const struct sandhost_sink sink = {.size = sizeof sink, .user = files, .write = count_bytes};
  const CallScope scope = {.deadline = G_MAXINT64};
  files->at = 0;
  docker_settle();
  gint64 from = clock_now();
  gboolean ok = sandbox_download(files->bench->sandbox, &scope, files->names, FILES, &sink, NULL);
  return ok && files->at > FILES * FILE_BYTES ? clock_now() - from : -1;
}

static gint64 hand_download(void *user) {
  const Files *files = user;
  g_autofree char *path =
      g_strdup_printf("/containers/%s/archive?path=/workspace", sandbox_ref(files->bench->sandbox));
  docker_settle();
  gint64 from = clock_now();
  int status = hand_ask(files->bench->hand, "GET", path, NULL, 0, NULL);
  return status == 200 ? clock_now() - from : -1;
}

/* ---- What changed ---------------------------------------------------------------------------------------------------- */

/* Touched first: nothing may be remembered. */
static gint64 our_listing(void *user) {
  const Files *files = user;
  Sandbox *sandbox = files->bench->sandbox;
  return sandbox_line(sandbox, "touch /workspace/*") < 0 ? -1 : sandbox_listing(sandbox, FILES);
}

static gint64 hand_listing(void *user) {
  const Bench *bench = ((const Files *)user)->bench;
  return by_hand_exec(bench->socket, bench->hand, sandbox_ref(bench->sandbox),
                      "sha256sum /workspace/*", -1);
}

/* ---- Printed --------------------------------------------------------------------------------------------------------- */

static gint64 our_output(void *user) {
  docker_settle();
  return sandbox_line(((const Files *)user)->bench->sandbox, PRINT);
}

static gint64 hand_output(void *user) {
  const Bench *bench = ((const Files *)user)->bench;
  docker_settle();
  return by_hand_exec(bench->socket, bench->hand, sandbox_ref(bench->sandbox), PRINT, PRINTED);
}

void docker_file_rows(Bench *bench, guint rounds) {
  static const char IN[] = "500 files, 20 MB in, faster than archive PUT";
  Files files = {.bench = bench, .tar = g_malloc0(TAR_ROOM)};
  char names[FILES][16];
  for (guint i = 0; i < FILES; i++) {
    int length = g_snprintf(names[i], sizeof names[i], "f%u.txt", i);
    files.names[i] = (struct sandhost_path){.data = names[i], .length = (size_t)length};
  }
  if (floor_tar(FILES, FILE_BYTES, files.tar, TAR_ROOM, &files.tar_length) < 0) {
    ratio_leave_out(IN, "no tar could be made");
  } else {
    ratio_compare_faster(IN, (Meter){our_upload, &files}, (Meter){hand_upload, &files}, 2, rounds);
    ratio_compare_faster("500 files, 20 MB out, faster than archive GET",
                         (Meter){our_download, &files}, (Meter){hand_download, &files}, 0, rounds);
    ratio_compare_faster("what changed: 500 files, 20 MB, faster than sha256sum by exec",
                         (Meter){our_listing, &files}, (Meter){hand_listing, &files}, 0,
                         MAX(rounds / 3, 3));
    ratio_compare_rate("200 MB of output, MB/s / of the engine's exec", (Meter){our_output, &files},
                       (Meter){hand_output, &files}, (guint64)PRINTED, 0, MAX(rounds / 6, 3));
  }
  g_free(files.tar);
}
