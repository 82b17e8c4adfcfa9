/* SPDX-License-Identifier: Apache-2.0 */
/* asks.c: the last word of the events about each ask, and whether its row repeats it. */
#include "record/asks.h"

#include <string.h>

#include "base/ask-digest.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/millionths.h"
#include "record/lives-private.h"
#include "record/verify-private.h"

/* Text with this in it was changed on its way into an event, and cannot be compared. */
#define TAKEN_OUT "[REDACTED"

/* An ask as the events tell it. */
typedef struct {
  JsonObject *asked;   /* metadata of the last event that asks; NULL: none does */
  JsonObject *payload; /* of the same; NULL */
  JsonObject *decided; /* metadata of the last event that decides; NULL: none does */
  gboolean found;      /* it has its row */
} Told;

/* One row of the ask. */
typedef struct {
  const char *kind; /* "approval", "budget request" */
  const char *id;
  const char *status;  /* the column */
  JsonObject *content; /* NULL: it is no object */
  const Told *told;    /* NULL: no event does */
} Ask;

typedef struct {
  gboolean first;   /* of what keeps anything from being done, and no other */
  gboolean shown;   /* and what people read counts, too */
  const char *only; /* NULL: all */
  GHashTable *told; /* id to Told */
  JsonObject *faults;
  gboolean open; /* the run may go on: what its calls need is still whole */
} Check;

static void told_free(gpointer user) {
  Told *told = user;
  json_object_put(told->asked);
  json_object_put(told->payload);
  json_object_put(told->decided);
  g_free(told);
}

/* ---- What the events say ------------------------------------------------------------------------------------------ */

static Told *told_of(GHashTable *all, const char *id) {
  Told *told = g_hash_table_lookup(all, id);
  if (!told) {
    told = g_new0(Told, 1);
    g_hash_table_insert(all, g_strdup(id), told);
  }
  return told;
}

static void replace(JsonObject **place, JsonObject *take_value) {
  json_object_put(*place);
  *place = take_value;
}

static void read_event(GHashTable *all, sqlite3_stmt *statement) {
  const char *type = (const char *)sqlite3_column_text(statement, 0);
  g_autoptr(JsonObject) facts = record_json_column(statement, 1);
  const char *approval = json_get_text(facts, "approval_id");
  const char *id = approval ? approval : json_get_text(facts, "request_id");
  if (!id) {
    return; /* a budget that ends its run asks nobody */
  }
  Told *told = told_of(all, id);
  if (strcmp(type, "approval_request_created") == 0 || strcmp(type, "budget_exhausted") == 0) {
    replace(&told->asked, json_object_get(facts));
    replace(&told->payload, record_json_column(statement, 2));
  } else {
    replace(&told->decided, json_object_get(facts));
  }
}

static int read_told(Record *record, gint64 run, GHashTable *all) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT type, metadata,"
                     "       CASE type WHEN 'approval_request_created' THEN payload END"
                     "  FROM events WHERE run = ?1 AND type IN"
                     "    ('approval_request_created', 'approval_resolved', 'budget_exhausted',"
                     "     'budget_granted', 'budget_denied', 'budget_request_closed')"
                     "  ORDER BY seq",
                     &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, run);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    read_event(all, statement);
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* ---- A fault ------------------------------------------------------------------------------------------------------ */

static gboolean is_enough(const Check *check) {
  return check->first && json_object_array_length(check->faults) > 0;
}

static void tell(const Check *check, const Ask *ask, const char *what, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

static void tell(const Check *check, const Ask *ask, const char *what, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *wrong = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_autofree char *detail = g_strdup_printf("%s %s %s", ask->kind, ask->id, wrong);
  if (!is_enough(check)) {
    verify_add_fault(check->faults, "event", 0, what, detail);
  }
}

/* ---- What any ask has --------------------------------------------------------------------------------------------- */

/* Whether the row's value is the event's, as far as the event has it unchanged. */
static gboolean is_same(JsonObject *row, const char *key, JsonObject *event,
                        const char *event_key) {
  JsonObject *told = NULL;
  if (!json_object_object_get_ex(event, event_key, &told)) {
    return TRUE; /* written before events had it */
  }
  if (json_object_is_type(told, json_type_string) &&
      strstr(json_object_get_string(told), TAKEN_OUT)) {
    return TRUE;
  }
  g_autofree char *one = json_canonical(json_get(row, key));
  g_autofree char *other = json_canonical(told);
  return strcmp(one, other) == 0;
}

static void compare(const Check *check, const Ask *ask, JsonObject *event,
                    const char *const *keys) {
  for (gsize i = 0; event && keys[i]; i++) {
    if (!is_same(ask->content, keys[i], event, keys[i])) {
      tell(check, ask, "altered", "has another %s than its event", keys[i]);
    }
  }
}

/* The three that must agree before anything is done because of it. FALSE: nothing else need be looked at. */
static gboolean check_status(const Check *check, const Ask *ask) {
  const char *told =
      ask->told && ask->told->decided ? json_get_text(ask->told->decided, "status") : "pending";
  const char *content = json_get_text(ask->content, "status");
  if (!ask->told || !ask->told->asked) {
    tell(check, ask, "added", "is asked for by no event");
    return FALSE;
  }
  if (g_strcmp0(ask->status, content) != 0 || g_strcmp0(content, told) != 0) {
    tell(check, ask, "altered", "is %s by its row, %s by its content and %s by its events",
         ask->status, content ? content : "nothing", told ? told : "nothing");
    return FALSE;
  }
  return TRUE;
}

/* ---- Approvals ---------------------------------------------------------------------------------------------------- */

/* What was asked for, by the row: an edit has put another digest in its place. */
static const char *digest_key(JsonObject *content) {
  return json_get_text(content, "original_request_digest") ? "original_request_digest"
                                                           : "request_digest";
}

/* A yes holds for what has this digest, and for so long. */
static void check_binding(const Check *check, const Ask *ask, gint64 expires) {
  static const char *const DECIDED[] = {"request_digest", "decision", NULL};
  const Told *told = ask->told;
  const char *until = json_get_text(told->asked, "expires_at");
  g_autofree char *row = clock_format(expires);
  g_autofree char *content = clock_format(json_get_int(ask->content, "expires", 0));
  int later = until ? MAX(strcmp(row, until), strcmp(content, until)) : 0;
  int earlier = until ? MIN(strcmp(row, until), strcmp(content, until)) : 0;
  if (!is_same(ask->content, digest_key(ask->content), told->asked, "request_digest")) {
    tell(check, ask, "altered", "is about something else than its event");
  }
  if (later > 0 || (earlier < 0 && !check->first)) {
    tell(check, ask, "altered", "expires at another time than its event says");
  }
  compare(check, ask, told->decided, DECIDED);
}

/* What people are shown of it, and decide by. */
static void check_shown(const Check *check, const Ask *ask) {
  static const char *const SHOWN[] = {"tool_call_id",    "capability", "risk_level",
                                      "expires_at",      "request_id", "policy_hash",
                                      "manifest_digest", NULL};
  static const char *const DECIDED[] = {"approver", "note", NULL};
  JsonObject *content = ask->content;
  JsonObject *arguments = json_get(content, "arguments");
  JsonObject *sealed = json_get(content, APPROVAL_SEALED);
  JsonObject *asked = json_get(content, "asked");
  compare(check, ask, ask->told->asked, SHOWN);
  compare(check, ask, ask->told->decided, DECIDED);
  if (!json_object_equal(json_get(content, "target"), json_get(asked, "target"))) {
    tell(check, ask, "altered", "shows another target than it is about");
  }
  JsonObject *command = json_get(ask->told->payload, "command");
  if (json_get(json_get(content, "command"), "summary") &&
      !is_same(json_get(content, "command"), "summary", command, "summary")) {
    tell(check, ask, "altered", "shows another command than its event");
  }
  /* Later the arguments are what may stay of them. */
  gboolean waits = strcmp(ask->status, "pending") == 0 || strcmp(ask->status, "approved") == 0;
  if (check->open && waits && arguments) {
    g_autofree char *digest = ask_digest(asked, sealed ? sealed : arguments,
                                         json_get_text(content, "command_argv_digest"));
    if (g_strcmp0(digest, json_get_text(content, digest_key(content))) != 0) {
      tell(check, ask, "altered", "shows another call than it is about");
    }
  }
}

static void check_approval(const Check *check, const Ask *ask, sqlite3_stmt *statement) {
  gint64 expires = sqlite3_column_int64(statement, 3);
  if (!check_status(check, ask)) {
    return;
  }
  check_binding(check, ask, expires);
  if (check->shown) {
    check_shown(check, ask);
  }
}

/* ---- Budget requests ---------------------------------------------------------------------------------------------- */

static void check_amount(const Check *check, const Ask *ask, const char *key, gint64 amount) {
  g_autoptr(JsonObject) number = millionths_json(amount);
  g_autoptr(JsonObject) row = json_object_new_object();
  json_add_take(row, key, json_object_get(number));
  if (!is_same(row, key, ask->content, key)) {
    tell(check, ask, "altered", "has another %s in its row than in its content", key);
  }
}

static void check_request(const Check *check, const Ask *ask, sqlite3_stmt *statement) {
  static const char *const ASKED[] = {"scope", "meter", "window", "key", "needed", NULL};
  static const char *const DECIDED[] = {"scope",  "meter",    "window", "key",
                                        "amount", "approver", "note",   NULL};
  if (!check_status(check, ask)) {
    return;
  }
  compare(check, ask, ask->told->asked, ASKED);
  compare(check, ask, ask->told->decided, DECIDED);
  check_amount(check, ask, "needed", sqlite3_column_int64(statement, 3));
  check_amount(check, ask, "shortfall", sqlite3_column_int64(statement, 4));
}

/* ---- The rows ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *kind;
  const char *id_key;
  const char *sql; /* id, status, content, and what else check needs */
  void (*check)(const Check *check, const Ask *ask, sqlite3_stmt *statement);
} Kind;

static const Kind KINDS[] = {
    {"approval", "approval_id",
     "SELECT approval_id, status, content, expires_at FROM approvals WHERE run = ?1"
     "  ORDER BY number",
     check_approval},
    {"budget request", "request_id",
     "SELECT request_id, status, content, needed, shortfall FROM budget_requests WHERE run = ?1"
     "  ORDER BY number",
     check_request},
};

static void check_row(const Check *check, const Kind *kind, sqlite3_stmt *statement) {
  g_autofree char *id = record_text_column(statement, 0);
  g_autofree char *status = record_text_column(statement, 1);
  g_autoptr(JsonObject) content = record_json_column(statement, 2);
  if (check->only && strcmp(check->only, id) != 0) {
    return;
  }
  Told *told = g_hash_table_lookup(check->told, id);
  const Ask ask = {
      .kind = kind->kind, .id = id, .status = status, .content = content, .told = told};
  if (told) {
    told->found = TRUE;
  }
  if (g_strcmp0(json_get_text(content, kind->id_key), id) != 0) {
    tell(check, &ask, "altered", "has the content of another, or none");
  } else {
    kind->check(check, &ask, statement);
  }
}

static int check_rows(Record *record, gint64 run, const Check *check, const Kind *kind) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(record, kind->sql, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, run);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    check_row(check, kind, statement);
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* An ask without a row is asked again when its call is: that keeps nothing from being done. */
static void tell_missing(const Check *check) {
  GHashTableIter at;
  gpointer id = NULL;
  gpointer value = NULL;
  g_hash_table_iter_init(&at, check->told);
  while (g_hash_table_iter_next(&at, &id, &value)) {
    const Told *told = value;
    const Ask ask = {.kind = json_get_text(told->asked ? told->asked : told->decided, "approval_id")
                                 ? KINDS[0].kind
                                 : KINDS[1].kind,
                     .id = id};
    if (!told->found) {
      tell(check, &ask, "missing", "has no row");
    }
  }
}

static int check_all(Record *record, gint64 run, Check *check) {
  check->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, told_free);
  int code = read_told(record, run, check->told);
  for (gsize i = 0; code == SQLITE_OK && i < G_N_ELEMENTS(KINDS); i++) {
    code = check_rows(record, run, check, &KINDS[i]);
  }
  if (code == SQLITE_OK && !check->first) {
    tell_missing(check);
  }
  g_hash_table_unref(check->told);
  return code;
}

/* ---- Both uses ---------------------------------------------------------------------------------------------------- */

int asks_verify(Record *record, gint64 run, const char *status, JsonObject *faults) {
  Check check = {.shown = TRUE, .faults = faults, .open = status && life_is_open(status)};
  return check_all(record, run, &check);
}

int asks_check(Record *record, const char *run_id, const char *id, gboolean shown,
               GError **refusal) {
  g_auto(Life) life = {0};
  g_autoptr(JsonObject) faults = json_object_new_array();
  Check check = {.first = TRUE, .shown = shown, .only = id, .faults = faults};
  int code = life_read(record, run_id, &life);
  if (code == SQLITE_OK) {
    check.open = life_is_open(life.status);
    code = check_all(record, life.number, &check);
  }
  if (code == SQLITE_OK && json_object_array_length(faults) > 0) {
    g_set_error(refusal, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
                "the record contradicts itself: %s; nothing was done. sandhost record verify %s "
                "tells more, sandhost cancel %s ends the run",
                json_get_text(json_object_array_get_idx(faults, 0), "detail"), run_id, run_id);
  }
  return code;
}
