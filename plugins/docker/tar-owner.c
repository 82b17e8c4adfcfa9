/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar-owner.c: walks the 512-byte blocks of a tar stream. Headers get the owner and a new checksum;
 * records of extended headers that say otherwise are taken out; content passes as it is. Devices
 * are refused: an image from somewhere may carry a forged archive.
 */
#include "tar-owner.h"

#include <string.h>

#define BLOCK 512u
/* Names, link targets and extended attributes of one member. */
#define MAX_EXTENDED ((uint64_t)1024 * 1024)
#define MAX_CONTENT ((uint64_t)1 << 60)

/* Fields of a header: offset and length. */
enum {
  AT_MODE = 100,
  AT_UID = 108,
  AT_GID = 116,
  ID_LENGTH = 8,
  AT_SIZE = 124,
  SIZE_LENGTH = 12,
  AT_SUM = 148,
  SUM_LENGTH = 8,
  AT_TYPE = 156,
  AT_MAGIC = 257,
  AT_USER = 265,
  AT_GROUP = 297,
  NAME_LENGTH = 32,
};

struct TarFilter {
  struct tar_owner owner;
  gboolean keep_owner;
  tar_filter_write write;
  void *user;

  uint8_t block[BLOCK];  /* the header that is being gathered */
  size_t have;           /* bytes of it */
  uint64_t content;      /* bytes of the member's content, with padding, that are still to pass */
  uint64_t content_size; /* of an extended header: what of its body counts */
  GByteArray *extended;  /* the body of an extended header, gathered; NULL: not in one */
  gboolean has_size;     /* the extended header says how long the next member's content is */
  uint64_t size;
  guint zero_blocks; /* that ended the stream */
};

TarFilter *tar_filter_new(const struct tar_owner *owner, tar_filter_write write, void *user) {
  TarFilter *filter = g_new0(TarFilter, 1);
  filter->keep_owner = !owner;
  if (owner) {
    filter->owner = *owner;
  }
  filter->write = write;
  filter->user = user;
  return filter;
}

void tar_filter_free(TarFilter *filter) {
  if (filter) {
    g_clear_pointer(&filter->extended, g_byte_array_unref);
    g_free(filter);
  }
}

/* ---- Numbers ---------------------------------------------------------------------------------- */

static uint32_t sum_of(const uint8_t *block) {
  uint32_t sum = 0;
  for (size_t i = 0; i < BLOCK; i++) {
    sum += i >= AT_SUM && i < AT_SUM + SUM_LENGTH ? (uint8_t)' ' : block[i];
  }
  return sum;
}

/* Octal digits, with spaces and NULs around; or, with the top bit set, a big-endian number. */
static gboolean read_number(const uint8_t *field, size_t length, uint64_t *ret_value) {
  uint64_t value = 0;
  if (field[0] & 0x80u) {
    value = field[0] & 0x7fu;
    for (size_t i = 1; i < length; i++) {
      if (value >> 55) {
        return FALSE;
      }
      value = value << 8 | field[i];
    }
    *ret_value = value;
    return TRUE;
  }
  size_t i = 0;
  while (i < length && field[i] == ' ') {
    i++;
  }
  for (; i < length && field[i] >= '0' && field[i] <= '7'; i++) {
    value = value << 3 | (uint64_t)(field[i] - '0'); /* twelve digits of three bits */
  }
  for (; i < length; i++) {
    if (field[i] != ' ' && field[i] != '\0') {
      return FALSE;
    }
  }
  *ret_value = value;
  return TRUE;
}

static void write_octal(uint8_t *field, size_t length, uint64_t value) {
  field[length - 1] = '\0';
  for (size_t i = length - 1; i-- > 0;) {
    field[i] = (uint8_t)('0' + (value & 7u));
    value >>= 3;
  }
}

static void write_id(uint8_t *field, uint32_t value) {
  if (value < 1u << 21) {
    write_octal(field, ID_LENGTH, value);
    return;
  }
  memset(field, 0, ID_LENGTH);
  field[0] = 0x80u;
  for (size_t i = 0; i < 4; i++) {
    field[ID_LENGTH - 1 - i] = (uint8_t)(value >> (8 * i));
  }
}

static void write_sum(uint8_t *block) {
  write_octal(block + AT_SUM, SUM_LENGTH - 1, sum_of(block));
  block[AT_SUM + SUM_LENGTH - 1] = ' ';
}

/* ---- Extended headers ------------------------------------------------------------------------- */

static gboolean is_owner_record(const char *record, size_t length) {
  static const char *const names[] = {"uid=", "gid=", "uname=", "gname="};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    size_t name = strlen(names[i]);
    if (length >= name && memcmp(record, names[i], name) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

/* The content of files that a header's digits cannot hold. value ends with a line feed. */
static gboolean read_size(const char *value, uint64_t *ret_size) {
  guint64 size = 0;
  g_autofree char *digits = g_strndup(value, strcspn(value, "\n"));
  if (!g_ascii_string_to_unsigned(digits, 10, 0, MAX_CONTENT, &size, NULL)) {
    return FALSE;
  }
  *ret_size = size;
  return TRUE;
}

/* "LENGTH NAME=VALUE\n", again and again, where LENGTH counts all of it. Keeps what is not about
 * the owner. */
static gboolean keep_records(TarFilter *filter, const GByteArray *body, GByteArray *kept) {
  const size_t size = (size_t)filter->content_size;
  for (size_t at = 0; at < size;) {
    const char *record = (const char *)body->data + at;
    size_t total = 0;
    size_t digits = 0;
    while (at + digits < size && g_ascii_isdigit(record[digits]) && digits < 8) {
      total = total * 10 + (size_t)(record[digits] - '0');
      digits++;
    }
    if (digits == 0 || total < digits + 3 || total > size - at || record[digits] != ' ' ||
        record[total - 1] != '\n') {
      return FALSE;
    }
    const char *pair = record + digits + 1;
    size_t length = total - digits - 1;
    if (length > 5 && memcmp(pair, "size=", 5) == 0) {
      filter->has_size = read_size(pair + 5, &filter->size);
      if (!filter->has_size) {
        return FALSE;
      }
    }
    if (filter->keep_owner || !is_owner_record(pair, length)) {
      g_byte_array_append(kept, (const guint8 *)record, (guint)total);
    }
    at += total;
  }
  return TRUE;
}

static enum tar_filter_result put(TarFilter *filter, const void *data, size_t length) {
  return length == 0 || filter->write(filter->user, data, length) ? TAR_FILTER_OK
                                                                  : TAR_FILTER_STOPPED;
}

/* The header of the extended header is still in block. */
static enum tar_filter_result end_extended(TarFilter *filter) {
  g_autoptr(GByteArray) body = g_steal_pointer(&filter->extended);
  g_autoptr(GByteArray) kept = g_byte_array_new();
  if (!keep_records(filter, body, kept)) {
    return TAR_FILTER_BROKEN;
  }
  if (kept->len == 0) {
    return TAR_FILTER_OK;
  }
  write_octal(filter->block + AT_SIZE, SIZE_LENGTH, kept->len);
  write_sum(filter->block);
  static const guint8 zeros[BLOCK];
  g_byte_array_append(kept, zeros, (BLOCK - kept->len % BLOCK) % BLOCK);
  enum tar_filter_result result = put(filter, filter->block, BLOCK);
  return result == TAR_FILTER_OK ? put(filter, kept->data, kept->len) : result;
}

/* ---- Headers ---------------------------------------------------------------------------------- */

/* Regular files, links of both kinds, folders, pipes; and what GNU tar puts before long names. */
static gboolean is_member(uint8_t type) {
  return type == '\0' || (type != '\0' && strchr("01256"
                                                 "7LK",
                                                 type) != NULL);
}

/* Links, folders and pipes have no content, whatever their size says. */
static gboolean has_content(uint8_t type) {
  return !strchr("1256", type) || type == '\0';
}

static gboolean is_zero(const uint8_t *block) {
  for (size_t i = 0; i < BLOCK; i++) {
    if (block[i]) {
      return FALSE;
    }
  }
  return TRUE;
}

static enum tar_filter_result take_header(TarFilter *filter) {
  uint8_t *block = filter->block;
  if (is_zero(block)) {
    filter->zero_blocks++;
    return put(filter, block, BLOCK);
  }
  uint64_t sum = 0;
  uint64_t size = 0;
  uint8_t type = block[AT_TYPE];
  if (filter->zero_blocks > 0 || !read_number(block + AT_SUM, SUM_LENGTH, &sum) ||
      sum != sum_of(block) || !read_number(block + AT_SIZE, SIZE_LENGTH, &size) ||
      size > MAX_CONTENT) {
    return TAR_FILTER_BROKEN;
  }
  uint64_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
  if (type == 'x') {
    if (size > MAX_EXTENDED) {
      return TAR_FILTER_BROKEN;
    }
    filter->extended = g_byte_array_new();
    filter->content = padded;
    filter->content_size = size;
    return padded > 0 ? TAR_FILTER_OK : end_extended(filter);
  }
  if (!is_member(type)) {
    return TAR_FILTER_BROKEN;
  }
  /* What GNU tar puts before a long name is no member yet. */
  if (filter->has_size && type != 'L' && type != 'K') {
    padded = (filter->size + BLOCK - 1) / BLOCK * BLOCK;
    filter->has_size = FALSE;
  }
  filter->content = has_content(type) ? padded : 0;
  if (!filter->keep_owner) {
    write_id(block + AT_UID, filter->owner.uid);
    write_id(block + AT_GID, filter->owner.gid);
    memset(block + AT_USER, 0, NAME_LENGTH);
    memset(block + AT_GROUP, 0, NAME_LENGTH);
    write_sum(block);
  }
  return put(filter, block, BLOCK);
}

/* Takes content. Returns how much of it. */
static size_t take_content(TarFilter *filter, const uint8_t *data, size_t length,
                           enum tar_filter_result *ret_result) {
  size_t part = (size_t)MIN(filter->content, (uint64_t)length);
  filter->content -= part;
  if (!filter->extended) {
    *ret_result = put(filter, data, part);
    return part;
  }
  g_byte_array_append(filter->extended, data, (guint)part);
  if (filter->content == 0) {
    *ret_result = end_extended(filter);
  }
  return part;
}

enum tar_filter_result tar_filter_take(TarFilter *filter, const void *data, size_t length) {
  const uint8_t *at = data;
  enum tar_filter_result result = TAR_FILTER_OK;
  while (length > 0 && result == TAR_FILTER_OK) {
    size_t part = 0;
    if (filter->content > 0) {
      part = take_content(filter, at, length, &result);
    } else {
      part = MIN(BLOCK - filter->have, length);
      memcpy(filter->block + filter->have, at, part);
      filter->have += part;
      if (filter->have == BLOCK) {
        filter->have = 0;
        result = take_header(filter);
      }
    }
    at += part;
    length -= part;
  }
  return result;
}

gboolean tar_filter_is_whole(const TarFilter *filter) {
  return filter->zero_blocks >= 2 && filter->have == 0 && filter->content == 0 && !filter->extended;
}

/* ---- Archives of our own ---------------------------------------------------------------------- */

void tar_append_folder(GByteArray *tar, const char *name, uint32_t mode) {
  uint8_t block[BLOCK] = {0};
  memcpy(block, name, MIN(strlen(name), (size_t)AT_MODE));
  write_octal(block + AT_MODE, ID_LENGTH, mode);
  write_octal(block + AT_UID, ID_LENGTH, 0);
  write_octal(block + AT_GID, ID_LENGTH, 0);
  write_octal(block + AT_SIZE, SIZE_LENGTH, 0);
  write_octal(block + AT_SIZE + SIZE_LENGTH, SIZE_LENGTH, 0); /* the time */
  block[AT_TYPE] = '5';
  memcpy(block + AT_MAGIC, "ustar\00000", 8);
  write_sum(block);
  g_byte_array_append(tar, block, BLOCK);
}

void tar_append_end(GByteArray *tar) {
  static const guint8 zeros[2 * BLOCK];
  g_byte_array_append(tar, zeros, sizeof zeros);
}
