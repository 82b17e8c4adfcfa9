/* SPDX-License-Identifier: Apache-2.0 */
/* record-read-only.c: a file that cannot be written, and perhaps nothing beside it either. */
#include <sys/stat.h>

#include "base/error.h"
#include "record/record-private.h"

/* Commits that are not in the file yet. */
static gboolean has_log(const char *path) {
  g_autofree char *log = g_strconcat(path, "-wal", NULL);
  struct stat about;
  return stat(log, &about) == 0 && about.st_size > 0;
}

static int open_as(Record *record, const char *path, const char *how) {
  g_autofree char *name = g_uri_escape_string(path, "/", FALSE);
  g_autofree char *uri = g_strconcat("file:", name, how, NULL);
  sqlite3_close(record->db);
  record->db = NULL;
  int code = sqlite3_open_v2(
      uri, &record->db,
      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
  return code == SQLITE_OK
             ? sqlite3_exec(record->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL)
             : code;
}

static gboolean lacks_what_is_shared(int code) {
  return (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
}

int record_reopen_read_only(Record *record, const char *path, GError **error) {
  record->read_only = TRUE;
  int code = open_as(record, path, "?mode=ro");
  if (!lacks_what_is_shared(code)) {
    return code;
  }
  if (!has_log(path)) { /* nobody writes: a writer would have a log */
    return open_as(record, path, "?immutable=1");
  }
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
              "could not open the record %s: it cannot be written, and its last entries stand in "
              "%s-wal: copy both to where "
              "they can be, and name the copy with --record",
              record->path, record->path);
  return SQLITE_ERROR;
}
