/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate-changes.c: what changed in the sandbox, told by one command of its own tools.
 *
 * The command prints records whose fields end with NUL, so that any name comes through:
 *
 *   M tool                              there is no such tool; the end
 *   N                                   the root cannot be read; the end
 *   K path                              a checkout
 *   U path  stat                        a folder that cannot be read
 *   S count  name...  stat  sha256sum   regular files, with what these two printed of them
 *   L count  name...  stat              files that are too large to hash
 *   E                                   everything was listed
 *
 * The tools print one line per file that they could read, in the order of the names, each with the name at its
 * end; a line is taken for a file when it is exactly what the tool prints of that name. So a file that is gone in
 * between has no line and disturbs nobody. Everything is the sandbox's word and checked as such.
 */
#include <string.h>

#include "base/clock.h"
#include "provider/emulate.h"
#include "provider/text.h"

#define LISTING_LIMIT (60 * CLOCK_SECOND)
/* Of one field, and of the names of a batch: these are what one command line holds, and lines are little longer. */
#define MAX_FIELD (64u << 20)
#define MAX_BATCH 1000000u
/* Of a path that the contract can tell, with its NUL. */
#define MOST_PATH 4096u
#define NO_LIMIT_BYTES (G_GUINT64_CONSTANT(1) << 60)

/* Arguments: what to run for a folder, for small files and for large ones; from which size a file is large. */
static const char LIST[] =
    "for tool in find stat sha256sum; do\n"
    "  command -v $tool >/dev/null 2>&1 || { printf 'M%s\\0' $tool; exit 0; }\n"
    "done\n"
    "[ -r . ] && [ -x . ] || { printf 'N\\0'; exit 0; }\n"
    "find . -name '.?*' -prune -o -type d ! -name . -exec sh -c \"$1\" sh {} \\; -prune \\\n"
    "  -o -type f -size -\"$4\"c -exec sh -c \"$2\" sh {} + -o -type f -exec sh -c \"$3\" sh {} +\n"
    "printf 'E\\0'\n";
/* What it prints a record of is not entered. */
static const char FOLDER[] =
    "{ [ -r \"$1\" ] && [ -x \"$1\" ]; } || {\n"
    "  printf 'U%s\\0' \"$1\"; stat -c '%s %Y %a %n' \"$1\" 2>/dev/null; printf '\\0'; exit 0\n"
    "}\n"
    "{ [ -e \"$1/.git\" ] || [ -L \"$1/.git\" ]; } && printf 'K%s\\0' \"$1\"";
static const char SMALL[] = "printf 'S%s\\0' $#; printf '%s\\0' \"$@\"\n"
                            "stat -c '%s %Y %a %n' \"$@\" 2>/dev/null; printf '\\0'\n"
                            "sha256sum \"$@\" 2>/dev/null; printf '\\0'\n";
static const char LARGE[] = "printf 'L%s\\0' $#; printf '%s\\0' \"$@\"\n"
                            "stat -c '%s %Y %a %n' \"$@\" 2>/dev/null; printf '\\0'\n";

typedef enum { FIELD_RECORD, FIELD_NAME, FIELD_STAT, FIELD_SUMS } Field;

typedef struct {
  const struct sandhost_changes *request;
  const struct sandhost_entry_sink *sink;
  GString *field; /* the one that is being read */
  Field expected;
  gboolean hashed; /* the batch is of kind S */
  guint64 names_left;
  gsize names_length; /* in bytes */
  GPtrArray *names;   /* of the batch; owned strings */
  char *stats;        /* what stat printed of the batch */
  guint64 entries;
  char *missing;        /* the tool that is not there */
  gboolean unread;      /* N came */
  char *folder;         /* that cannot be read: of which stat prints now; NULL: of a batch */
  GHashTable *folders;  /* owned paths of those that were told */
  gboolean complete;    /* E came */
  const char *nonsense; /* why the output is none of ours; constant */
  gboolean too_many;
  gboolean stopped;
} Listing;

static gboolean refuse(Listing *listing, const char *why) {
  listing->nonsense = why;
  return FALSE;
}

/* ---- Entries --------------------------------------------------------------------------------------------------- */

/* ./a/b -> a/b; NULL for what is not below the root. Borrowed. */
static const char *name_below(const char *name) {
  if (!g_str_has_prefix(name, "./") || name[2] == '\0') {
    return NULL;
  }
  g_auto(GStrv) components = g_strsplit(name + 2, "/", -1);
  for (gsize i = 0; components[i]; i++) {
    if (components[i][0] == '\0' ||
        components[i][0] == '.') { /* hidden ones are not listed either */
      return NULL;
    }
  }
  return name + 2;
}

static int compare_paths(struct sandhost_path a, struct sandhost_path b) {
  int order = memcmp(a.data, b.data, MIN(a.length, b.length));
  return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static gboolean is_known(const struct sandhost_changes *request,
                         const struct sandhost_entry *entry) {
  gsize low = 0;
  gsize high = request->known_count;
  while (low < high) {
    gsize middle = low + (high - low) / 2;
    int order = compare_paths(entry->path, request->known[middle].path);
    if (order == 0) {
      return memcmp(request->known[middle].sha256, entry->sha256, sizeof entry->sha256) == 0;
    }
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return FALSE;
}

static gboolean give(Listing *listing, const struct sandhost_entry *entry) {
  if ((entry->flags & SANDHOST_ENTRY_SHA256) && is_known(listing->request, entry)) {
    return TRUE;
  }
  guint64 max = listing->request->max_entries;
  if (max != 0 && listing->entries >= max) {
    listing->too_many = TRUE;
    return FALSE;
  }
  listing->entries++;
  listing->stopped = listing->sink->entry(listing->sink->user, entry) != SANDHOST_OK;
  return !listing->stopped;
}

static gboolean is_too_long(const char *path) {
  return strlen(path) >= MOST_PATH;
}

/* The folder itself; where its path is too long, the last one above whose is not. */
static gboolean give_unread(Listing *listing, const char *path,
                            const struct sandhost_entry *facts) {
  g_autofree char *folder = g_strdup(path);
  for (char *slash = strrchr(folder, '/'); is_too_long(folder) && slash;
       slash = strrchr(folder, '/')) {
    *slash = '\0';
  }
  if (is_too_long(folder)) {
    return refuse(listing, "it listed a name that no file can have");
  }
  struct sandhost_entry entry = {.size = sizeof entry,
                                 .path = path_of(folder),
                                 .kind = SANDHOST_KIND_FILE,
                                 .flags = SANDHOST_ENTRY_UNREAD_FOLDER};
  if (facts) {
    entry.mtime = facts->mtime;
    entry.mode = facts->mode;
  }
  return !g_hash_table_add(listing->folders, g_strdup(folder)) || give(listing, &entry);
}

static gboolean give_checkout(Listing *listing, const char *name) {
  const char *path = name_below(name);
  if (!path) {
    return refuse(listing, "it listed a path that is not below the root");
  }
  if (is_too_long(path)) {
    return give_unread(listing, path, NULL);
  }
  const struct sandhost_entry entry = {
      .size = sizeof entry, .path = path_of(path), .kind = SANDHOST_KIND_CHECKOUT};
  return give(listing, &entry);
}

/* ---- What the tools print ----------------------------------------------------------------------------------- */

static gboolean take_number(const char **at, guint base, gint64 *ret_number) {
  char *end = NULL;
  if (!g_ascii_isdigit(**at) && **at != '-') {
    return FALSE;
  }
  *ret_number = g_ascii_strtoll(*at, &end, base);
  if (end == *at || *end != ' ') {
    return FALSE;
  }
  *at = end + 1;
  return TRUE;
}

/* A line of stat -c '%s %Y %a %n' of this name at *at; moves behind it. */
static gboolean take_stat(const char **at, const char *name, struct sandhost_entry *entry) {
  const char *here = *at;
  gint64 bytes = 0;
  gint64 seconds = 0;
  gint64 mode = 0;
  gsize length = strlen(name);
  if (!take_number(&here, 10, &bytes) || !take_number(&here, 10, &seconds) ||
      !take_number(&here, 8, &mode) || strncmp(here, name, length) != 0 || here[length] != '\n' ||
      bytes < 0) {
    return FALSE;
  }
  entry->bytes = (guint64)bytes;
  entry->mtime =
      CLAMP(seconds, G_MININT64 / CLOCK_SECOND, G_MAXINT64 / CLOCK_SECOND) * CLOCK_SECOND;
  entry->mode = (guint32)mode & 0777;
  *at = here + length + 1;
  return TRUE;
}

static gboolean take_hex(const char *at, guint8 digest[32]) {
  for (gsize i = 0; i < 32; i++) {
    int high = g_ascii_xdigit_value(at[2 * i]);
    int low = high < 0 ? -1 : g_ascii_xdigit_value(at[2 * i + 1]);
    if (low < 0) {
      return FALSE;
    }
    digest[i] = (guint8)(high * 16 + low);
  }
  return TRUE;
}

/* Where the line ends that holds name as the GNU tool writes one with a line break or a backslash. NULL: it does
 * not. */
static const char *match_escaped(const char *at, const char *name) {
  for (; *name; name++) {
    const char *code = *name == '\\'   ? "\\\\"
                       : *name == '\n' ? "\\n"
                       : *name == '\r' ? "\\r"
                                       : NULL;
    if (code && strncmp(at, code, 2) == 0) {
      at += 2;
    } else if (*at == *name && *name != '\\' && *name != '\n') {
      at++;
    } else {
      return NULL;
    }
  }
  return *at == '\n' ? at + 1 : NULL;
}

/* A line of sha256sum of this name at *at; moves behind it. */
static gboolean take_sum(const char **at, const char *name, struct sandhost_entry *entry) {
  const char *here = *at;
  gboolean escaped = *here == '\\';
  here += escaped ? 1 : 0;
  if (!take_hex(here, entry->sha256) || here[64] != ' ' || here[65] == '\0') {
    return FALSE;
  }
  here += 66;
  const char *end = NULL;
  gsize length = strlen(name);
  if (escaped) {
    end = match_escaped(here, name);
  } else if (strncmp(here, name, length) == 0 && here[length] == '\n') {
    end = here + length + 1;
  }
  if (!end) {
    return FALSE;
  }
  entry->flags = SANDHOST_ENTRY_SHA256;
  *at = end;
  return TRUE;
}

/* The batch is whole; sums is "" for one of kind L. */
static gboolean give_batch(Listing *listing, const char *sums) {
  const char *stats = listing->stats;
  for (guint i = 0; i < listing->names->len; i++) {
    const char *name = g_ptr_array_index(listing->names, i);
    const char *path = name_below(name);
    if (!path) {
      return refuse(listing, "it listed a path that is not below the root");
    }
    if (is_too_long(path)) {
      if (!give_unread(listing, path, NULL)) {
        return FALSE;
      }
      continue;
    }
    struct sandhost_entry entry = {
        .size = sizeof entry, .path = path_of(path), .kind = SANDHOST_KIND_FILE};
    gboolean there = take_stat(&stats, name, &entry);
    if (!take_sum(&sums, name, &entry)) {
      memset(entry.sha256, 0, sizeof entry.sha256);
    }
    if (there && !give(listing, &entry)) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean give_folder(Listing *listing, const char *stats) {
  const char *path = name_below(listing->folder);
  struct sandhost_entry facts = {0};
  take_stat(&stats, listing->folder, &facts);
  return path ? give_unread(listing, path, &facts)
              : refuse(listing, "it listed a path that is not below the root");
}

/* ---- Records --------------------------------------------------------------------------------------------------- */

static gboolean begin_batch(Listing *listing, const char *count, gboolean hashed) {
  listing->hashed = hashed;
  listing->expected = FIELD_NAME;
  listing->names_length = 0;
  g_ptr_array_set_size(listing->names, 0);
  return g_ascii_string_to_unsigned(count, 10, 1, MAX_BATCH, &listing->names_left, NULL) ||
         refuse(listing, "it counted no files");
}

static gboolean take_record(Listing *listing, const char *text) {
  if (listing->complete || listing->missing || listing->unread) {
    return refuse(listing, "it went on behind its end");
  }
  switch (text[0]) {
  case 'M':
    listing->missing = text_clean_string(text + 1, 32);
    return TRUE;
  case 'N':
    listing->unread = TRUE;
    return TRUE;
  case 'K':
    return give_checkout(listing, text + 1);
  case 'U':
    listing->folder = g_strdup(text + 1);
    listing->expected = FIELD_STAT;
    return TRUE;
  case 'S':
  case 'L':
    return begin_batch(listing, text + 1, text[0] == 'S');
  case 'E':
    listing->complete = TRUE;
    return TRUE;
  default:
    return refuse(listing, "it printed something else");
  }
}

static gboolean take_name(Listing *listing, const char *name) {
  gsize length = strlen(name) + 1;
  if (length > MAX_FIELD - listing->names_length) {
    return refuse(listing, "it printed names without an end");
  }
  listing->names_length += length;
  g_ptr_array_add(listing->names, g_strdup(name));
  listing->names_left--;
  if (listing->names_left == 0) {
    listing->expected = FIELD_STAT;
  }
  return TRUE;
}

static gboolean end_folder(Listing *listing, const char *stats) {
  listing->expected = FIELD_RECORD;
  gboolean ok = give_folder(listing, stats);
  g_clear_pointer(&listing->folder, g_free);
  return ok;
}

static gboolean end_batch(Listing *listing, const char *sums) {
  listing->expected = FIELD_RECORD;
  gboolean ok = give_batch(listing, sums);
  g_clear_pointer(&listing->stats, g_free);
  return ok;
}

static gboolean take_field(Listing *listing, const char *text) {
  switch (listing->expected) {
  case FIELD_RECORD:
    return take_record(listing, text);
  case FIELD_NAME:
    return take_name(listing, text);
  case FIELD_STAT:
    if (listing->folder) {
      return end_folder(listing, text);
    }
    listing->stats = g_strdup(text);
    listing->expected = FIELD_SUMS;
    return listing->hashed || end_batch(listing, "");
  case FIELD_SUMS:
    return end_batch(listing, text);
  }
  return FALSE;
}

static gboolean take_output(void *user, const char *data, gsize length) {
  Listing *listing = user;
  while (length > 0) {
    const char *end = memchr(data, 0, length);
    gsize part = end ? (gsize)(end - data) : length;
    if (part > MAX_FIELD - listing->field->len) {
      return refuse(listing, "it printed without an end");
    }
    g_string_append_len(listing->field, data, (gssize)part);
    if (!end) {
      return TRUE;
    }
    if (!take_field(listing, listing->field->str)) {
      return FALSE;
    }
    g_string_truncate(listing->field, 0);
    data += part + 1;
    length -= part + 1;
  }
  return TRUE;
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static gboolean fail(const char *name, gint32 status, const char *what, GError **error) {
  g_set_error(error, PROVIDER_ERROR, status, "what changed in the %s sandbox cannot be listed: %s",
              name, what);
  return FALSE;
}

static gboolean judge(const Listing *listing, const char *name,
                      const struct sandhost_result *result, const char *why, GError **error) {
  if (listing->missing) {
    g_autofree char *what = g_strdup_printf("it has no %s", listing->missing);
    return fail(name, SANDHOST_UNSUPPORTED, what, error);
  }
  if (listing->unread) {
    return fail(name, SANDHOST_DENIED, "its working directory cannot be read", error);
  }
  if (result->ended == SANDHOST_ENDED_EXIT && result->exit_code == 127 && !listing->complete) {
    return fail(name, SANDHOST_UNSUPPORTED, "it has no sh", error);
  }
  if (result->ended == SANDHOST_ENDED_LIMIT) {
    return fail(name, SANDHOST_TIMEOUT, "it took longer than 60 seconds", error);
  }
  if (!listing->complete) {
    return fail(name, SANDHOST_INTERNAL, *why ? why : "the listing ended early", error);
  }
  return TRUE;
}

gboolean emulate_changes(Sandbox *sandbox, const CallScope *scope,
                         const struct sandhost_changes *request,
                         const struct sandhost_entry_sink *sink, GError **error) {
  const char *name = provider_instance_name(sandbox->instance);
  g_autofree char *large =
      g_strdup_printf("%" G_GUINT64_FORMAT,
                      request->max_hash_bytes == 0 || request->max_hash_bytes >= NO_LIMIT_BYTES
                          ? NO_LIMIT_BYTES
                          : request->max_hash_bytes + 1);
  const char *const argv[] = {"sh", "-c", LIST, "sh", FOLDER, SMALL, LARGE, large, NULL};
  g_autoptr(GString) field = g_string_new(NULL);
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  g_autoptr(GHashTable) folders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  Listing listing = {
      .request = request, .sink = sink, .field = field, .names = names, .folders = folders};
  /* It runs in the working directory, which is the root that is asked for. */
  const EmulatedCommand command = {
      .argv = argv, .limit = LISTING_LIMIT, .take = take_output, .user = &listing};
  struct sandhost_result result = {0};
  g_autofree char *why = NULL;
  g_autoptr(GError) failure = NULL;
  gboolean ok = emulate_command(sandbox, scope, &command, &result, &why, &failure);
  if (listing.nonsense) {
    ok = fail(name, SANDHOST_PROTOCOL, listing.nonsense, error);
  } else if (listing.too_many) {
    ok = fail(name, SANDHOST_LIMIT, "there are too many files", error);
  } else if (listing.stopped) {
    ok = fail(name, SANDHOST_CANCELLED, "stopped by its sink", error);
  } else if (!ok) {
    g_propagate_error(error, g_steal_pointer(&failure));
  } else {
    ok = judge(&listing, name, &result, why, error);
  }
  g_free(listing.stats);
  g_free(listing.folder);
  g_free(listing.missing);
  return ok;
}
