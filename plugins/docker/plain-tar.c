/* SPDX-License-Identifier: Apache-2.0 */
/* plain-tar.c: see plain-tar.h. */
#include "plain-tar.h"

#include <limits.h>
#include <string.h>

#define BLOCK ((size_t)512)
#define SECOND INT64_C(1000000000)
/* Of the extended headers of one member. */
#define MOST_EXTENDED ((uint64_t)1 << 20)

/* Where the fields of a header are. */
enum {
  NAME_AT = 0,
  NAME_LENGTH = 100,
  MODE_AT = 100,
  SIZE_AT = 124,
  MTIME_AT = 136,
  SUM_AT = 148,
  TYPE_AT = 156,
  LINK_AT = 157,
  MAGIC_AT = 257,
  PREFIX_AT = 345,
  PREFIX_LENGTH = 155,
  NUMBER_LENGTH = 12,
  MODE_LENGTH = 8,
  SUM_LENGTH = 8,
};

enum state { IN_HEADER, IN_EXTENDED, IN_CONTENT, AT_END };

struct TarReader {
  struct tar_events events;
  void *user;
  enum state state;
  const char *complaint;

  unsigned char block[512];
  size_t filled;

  uint64_t left; /* of the content, or of the extended header */
  size_t padding;
  gboolean is_file;

  char extended_type;
  GByteArray *extended;

  char *name; /* from extended headers, for the next member; owned */
  char *link;
  gboolean has_bytes;
  uint64_t bytes;
  gboolean has_mtime;
  int64_t mtime;
};

TarReader *tar_reader_new(const struct tar_events *events, void *user) {
  TarReader *reader = g_new0(TarReader, 1);
  reader->events = *events;
  reader->user = user;
  reader->extended = g_byte_array_new();
  return reader;
}

static void forget_extended(TarReader *reader) {
  g_clear_pointer(&reader->name, g_free);
  g_clear_pointer(&reader->link, g_free);
  reader->has_bytes = FALSE;
  reader->has_mtime = FALSE;
}

void tar_reader_free(TarReader *reader) {
  if (reader) {
    forget_extended(reader);
    g_byte_array_free(reader->extended, TRUE);
    g_free(reader);
  }
}

gboolean tar_reader_at_end(const TarReader *reader) {
  return reader->state == AT_END;
}

const char *tar_reader_complaint(const TarReader *reader) {
  return reader->complaint;
}

static int32_t complain(TarReader *reader, const char *what) {
  reader->complaint = what;
  return SANDHOST_PROTOCOL;
}

/* ---- Fields ----------------------------------------------------------------------------------- */

/* Octal text, or base 256 as GNU has it. FALSE: neither, or too large. */
static gboolean read_number(const unsigned char *field, size_t length, uint64_t *ret_number) {
  uint64_t number = 0;
  size_t at = 0;
  if (field[0] & 0x80) {
    number = field[0] & 0x7f;
    for (at = 1; at < length; at++) {
      if (number >> 55) {
        return FALSE;
      }
      number = number << 8 | field[at];
    }
    *ret_number = number;
    return TRUE;
  }
  while (at < length && field[at] == ' ') {
    at++;
  }
  for (; at < length && field[at] >= '0' && field[at] <= '7'; at++) {
    if (number >> 60) {
      return FALSE;
    }
    number = number << 3 | (uint64_t)(field[at] - '0');
  }
  for (; at < length; at++) {
    if (field[at] != ' ' && field[at] != '\0') {
      return FALSE;
    }
  }
  *ret_number = number;
  return TRUE;
}

static gboolean sum_is_right(const unsigned char *block) {
  uint64_t wanted = 0;
  uint64_t sum = 0;
  for (size_t i = 0; i < BLOCK; i++) {
    sum += i >= SUM_AT && i < SUM_AT + SUM_LENGTH ? (unsigned char)' ' : block[i];
  }
  return read_number(block + SUM_AT, SUM_LENGTH, &wanted) && wanted == sum;
}

static gboolean is_zero(const unsigned char *block) {
  for (size_t i = 0; i < BLOCK; i++) {
    if (block[i]) {
      return FALSE;
    }
  }
  return TRUE;
}

static char *copy_field(const unsigned char *field, size_t length) {
  return g_strndup((const char *)field, strnlen((const char *)field, length));
}

static char *header_name(const unsigned char *block) {
  g_autofree char *name = copy_field(block + NAME_AT, NAME_LENGTH);
  if (memcmp(block + MAGIC_AT, "ustar\0", 6) == 0 && block[PREFIX_AT]) {
    g_autofree char *prefix = copy_field(block + PREFIX_AT, PREFIX_LENGTH);
    return g_strconcat(prefix, "/", name, NULL);
  }
  return g_steal_pointer(&name);
}

/* Takes "./" from the front and slashes from the end; what is left must be names. FALSE: it leads elsewhere. */
static gboolean tidy_name(char *name) {
  size_t length = strlen(name);
  char *from = name;
  while (g_str_has_prefix(from, "./")) {
    from += 2;
  }
  length -= (size_t)(from - name);
  memmove(name, from, length + 1);
  while (length > 0 && name[length - 1] == '/') {
    name[--length] = '\0';
  }
  if (length == 0 || (length == 1 && name[0] == '.')) {
    name[0] = '.'; /* a name of at least one byte was there */
    name[1] = '\0';
    return TRUE;
  }
  for (const char *at = name;;) {
    size_t part = strcspn(at, "/");
    if (part == 0 || (part == 1 && at[0] == '.') || (part == 2 && at[0] == '.' && at[1] == '.')) {
      return FALSE;
    }
    if (!at[part]) {
      return length < PATH_MAX;
    }
    at += part + 1;
  }
}

/* ---- Extended headers ------------------------------------------------------------------------- */

static gboolean read_decimal(const char *text, size_t length, uint64_t *ret_number) {
  uint64_t number = 0;
  if (length == 0 || length > 19) {
    return FALSE;
  }
  for (size_t i = 0; i < length; i++) {
    if (!g_ascii_isdigit(text[i])) {
      return FALSE;
    }
    number = 10 * number + (uint64_t)(text[i] - '0');
  }
  *ret_number = number;
  return TRUE;
}

/* "-12.5": a time that makes no sense is none. */
static void read_time(TarReader *reader, const char *text, size_t length) {
  gboolean negative = length > 0 && text[0] == '-';
  const char *dot = memchr(text, '.', length);
  size_t start = negative ? 1 : 0;
  size_t whole = dot ? (size_t)(dot - text) : length;
  uint64_t seconds = 0;
  int64_t part = 0;
  int64_t scale = SECOND;
  if (whole < start || !read_decimal(text + start, whole - start, &seconds) ||
      seconds > (uint64_t)(INT64_MAX / SECOND - 1)) {
    return;
  }
  for (size_t i = whole + 1; dot && i < length && g_ascii_isdigit(text[i]) && scale > 1; i++) {
    scale /= 10;
    part += scale * (text[i] - '0');
  }
  reader->mtime = (int64_t)seconds * SECOND + part;
  reader->mtime = negative ? -reader->mtime : reader->mtime;
  reader->has_mtime = TRUE;
}

static int32_t take_record(TarReader *reader, const char *key, size_t key_length, const char *value,
                           size_t length) {
#define IS(text) (key_length == sizeof(text) - 1 && memcmp(key, text, key_length) == 0)
  if (IS("path") || IS("linkpath")) {
    char **to = IS("path") ? &reader->name : &reader->link;
    if (memchr(value, 0, length)) {
      return complain(reader, "a name with a NUL");
    }
    g_free(*to);
    *to = length > 0 ? g_strndup(value, length) : NULL;
  } else if (IS("size")) {
    reader->has_bytes = read_decimal(value, length, &reader->bytes);
    if (!reader->has_bytes) {
      return complain(reader, "a size that is no number");
    }
  } else if (IS("mtime")) {
    read_time(reader, value, length);
  } else if (key_length >= 10 && memcmp(key, "GNU.sparse", 10) == 0) {
    return complain(reader, "a file with holes");
  }
#undef IS
  return SANDHOST_OK;
}

/* "LENGTH KEY=VALUE\n" again and again. */
static int32_t take_records(TarReader *reader) {
  const char *at = (const char *)reader->extended->data;
  size_t left = reader->extended->len;
  while (left > 0 && *at) { /* some pad with NUL */
    uint64_t length = 0;
    const char *space = memchr(at, ' ', left);
    if (!space || !read_decimal(at, (size_t)(space - at), &length) || length > left ||
        length < (uint64_t)(space - at) + 3 || at[length - 1] != '\n') {
      return complain(reader, "an extended header that makes no sense");
    }
    const char *key = space + 1;
    const char *end = at + length - 1;
    const char *equals = memchr(key, '=', (size_t)(end - key));
    if (!equals) {
      return complain(reader, "an extended header that makes no sense");
    }
    int32_t status =
        take_record(reader, key, (size_t)(equals - key), equals + 1, (size_t)(end - equals - 1));
    if (status != SANDHOST_OK) {
      return status;
    }
    at += length;
    left -= length;
  }
  return SANDHOST_OK;
}

static int32_t take_extended(TarReader *reader) {
  char **to = reader->extended_type == 'L' ? &reader->name : &reader->link;
  switch (reader->extended_type) {
  case 'x':
    return take_records(reader);
  case 'L':
  case 'K':
    g_free(*to);
    *to = copy_field(reader->extended->data, reader->extended->len);
    return SANDHOST_OK;
  default:
    return SANDHOST_OK; /* g: nothing of it is used */
  }
}

/* ---- Members ---------------------------------------------------------------------------------- */

static enum tar_kind kind_of(char type) {
  switch (type) {
  case '0':
  case '\0':
  case '7':
    return TAR_FILE;
  case '5':
    return TAR_FOLDER;
  case '2':
    return TAR_LINK;
  case '1':
    return TAR_HARD_LINK;
  default:
    return TAR_OTHER;
  }
}

static int32_t tell_member(TarReader *reader, uint64_t bytes) {
  const unsigned char *block = reader->block;
  g_autofree char *name = reader->name ? g_strdup(reader->name) : header_name(block);
  g_autofree char *link =
      reader->link ? g_strdup(reader->link) : copy_field(block + LINK_AT, NAME_LENGTH);
  uint64_t mode = 0;
  uint64_t seconds = 0;
  struct tar_member member = {.name = name, .link = link, .kind = kind_of((char)block[TYPE_AT])};
  size_t length = strlen(name);
  if (member.kind == TAR_FILE && length > 0 && name[length - 1] == '/') {
    member.kind = TAR_FOLDER; /* as tar was before it had folders */
  }
  if (length == 0 || !tidy_name(name)) {
    return complain(reader, "a name that leads elsewhere");
  }
  if (!read_number(block + MODE_AT, MODE_LENGTH, &mode) ||
      !read_number(block + MTIME_AT, NUMBER_LENGTH, &seconds)) {
    return complain(reader, "a header that makes no sense");
  }
  bytes = reader->has_bytes ? reader->bytes : bytes;
  if (bytes > INT64_MAX) {
    return complain(reader, "a size that makes no sense");
  }
  member.mode = (uint32_t)(mode & 07777u);
  member.mtime = reader->has_mtime                          ? reader->mtime
                 : seconds < (uint64_t)(INT64_MAX / SECOND) ? (int64_t)seconds * SECOND
                                                            : 0;
  /* Only files have content; links may state the size of what they lead to. */
  member.bytes = member.kind == TAR_FILE || member.kind == TAR_OTHER ? bytes : 0;
  forget_extended(reader);
  reader->left = member.bytes;
  reader->padding = (size_t)((BLOCK - member.bytes % BLOCK) % BLOCK);
  reader->is_file = member.kind == TAR_FILE;
  reader->state = IN_CONTENT;
  return reader->events.member(reader->user, &member);
}

static int32_t take_header(TarReader *reader) {
  const unsigned char *block = reader->block;
  uint64_t bytes = 0;
  char type = (char)block[TYPE_AT];
  if (is_zero(block)) {
    reader->state = AT_END;
    return SANDHOST_OK;
  }
  if (!sum_is_right(block) || !read_number(block + SIZE_AT, NUMBER_LENGTH, &bytes)) {
    return complain(reader, "a header that makes no sense");
  }
  if (type == 'S') {
    return complain(reader, "a file with holes");
  }
  if (type != 'x' && type != 'g' && type != 'L' && type != 'K') {
    return tell_member(reader, bytes);
  }
  if (bytes > MOST_EXTENDED) {
    return complain(reader, "an extended header that is too long");
  }
  reader->extended_type = type;
  g_byte_array_set_size(reader->extended, 0);
  reader->left = bytes;
  reader->padding = (size_t)((BLOCK - bytes % BLOCK) % BLOCK);
  reader->state = IN_EXTENDED;
  return SANDHOST_OK;
}

/* Goes on to the next header where content and padding are over. */
static int32_t end_part(TarReader *reader) {
  enum state was = reader->state;
  if (reader->left > 0 || reader->padding > 0) {
    return SANDHOST_OK;
  }
  reader->state = IN_HEADER;
  reader->filled = 0;
  return was == IN_EXTENDED ? take_extended(reader)
         : reader->is_file  ? reader->events.member_end(reader->user)
                            : SANDHOST_OK;
}

static int32_t take_part(TarReader *reader, const unsigned char *data, size_t length,
                         size_t *ret_used) {
  size_t part = (size_t)MIN((uint64_t)length, reader->left);
  int32_t status = SANDHOST_OK;
  if (part > 0 && reader->state == IN_EXTENDED) {
    g_byte_array_append(reader->extended, data, (guint)part);
  } else if (part > 0 && reader->is_file) {
    status = reader->events.content(reader->user, data, part);
  }
  reader->left -= part;
  if (reader->left == 0) {
    size_t padding = MIN(length - part, reader->padding);
    reader->padding -= padding;
    part += padding;
  }
  *ret_used = part;
  return status == SANDHOST_OK ? end_part(reader) : status;
}

static int32_t take_block(TarReader *reader, const unsigned char *data, size_t length,
                          size_t *ret_used) {
  size_t part = MIN(length, BLOCK - reader->filled);
  memcpy(reader->block + reader->filled, data, part);
  reader->filled += part;
  *ret_used = part;
  if (reader->filled < BLOCK) {
    return SANDHOST_OK;
  }
  reader->filled = 0;
  int32_t status = take_header(reader);
  return status == SANDHOST_OK && (reader->state == IN_CONTENT || reader->state == IN_EXTENDED)
             ? end_part(reader)
             : status;
}

int32_t tar_reader_feed(TarReader *reader, const void *data, size_t length) {
  const unsigned char *at = data;
  int32_t status = reader->complaint ? SANDHOST_PROTOCOL : SANDHOST_OK;
  while (length > 0 && status == SANDHOST_OK && reader->state != AT_END) {
    size_t used = 0;
    status = reader->state == IN_HEADER ? take_block(reader, at, length, &used)
                                        : take_part(reader, at, length, &used);
    at += used;
    length -= used;
  }
  return status;
}
