/* SPDX-License-Identifier: Apache-2.0 */
/* raw-tar.h: tar streams put together block by block, so that a header can say what no library would let it say. */
#ifndef SANDHOST_TESTS_RAW_TAR_H
#define SANDHOST_TESTS_RAW_TAR_H

#include <glib.h>
#include <string.h>

#define RAW_TAR_BLOCK 512u
#define RAW_TAR_UNUSED __attribute__((unused))

struct raw_tar_member {
  const char *name; /* at most 99 bytes */
  char type; /* '0' file, '1' hard link, '2' link, '5' folder, 'S' sparse, 'x' pax header... */
  const char *link;
  const void *data;
  gsize length; /* of data, which is padded to whole blocks */
  const char
      *size; /* what the header says instead, 11 octal digits or 12 raw bytes; NULL: length */
};

RAW_TAR_UNUSED static void raw_tar_sum(guint8 *header) {
  guint sum = 0;
  memset(header + 148, ' ', 8);
  for (gsize i = 0; i < RAW_TAR_BLOCK; i++) {
    sum += header[i];
  }
  g_snprintf((char *)header + 148, 8, "%06o", sum);
}

RAW_TAR_UNUSED static void raw_tar_pad(GByteArray *tar) {
  static const guint8 zeros[RAW_TAR_BLOCK];
  guint over = tar->len % RAW_TAR_BLOCK;
  if (over > 0) {
    g_byte_array_append(tar, zeros, RAW_TAR_BLOCK - over);
  }
}

/* Where the header of the member begins, for whoever spoils it. */
RAW_TAR_UNUSED static guint raw_tar_add(GByteArray *tar, struct raw_tar_member member) {
  guint at = tar->len;
  guint8 header[RAW_TAR_BLOCK] = {0};
  g_assert_cmpuint(strlen(member.name), <, 100);
  memcpy(header, member.name, strlen(member.name));
  memcpy(header + 100, "0000644", 7);
  memcpy(header + 108, "0000000", 7);
  memcpy(header + 116, "0000000", 7);
  if (member.size) {
    memcpy(header + 124, member.size, (member.size[0] & 0x80) ? 12 : 11);
  } else {
    g_snprintf((char *)header + 124, 12, "%011" G_GSIZE_MODIFIER "o", member.length);
  }
  memcpy(header + 136, "00000000000", 11);
  header[156] = (guint8)member.type;
  if (member.link) {
    memcpy(header + 157, member.link, strlen(member.link));
  }
  memcpy(header + 257, member.type == 'S' ? "ustar  " : "ustar\00000", 8);
  raw_tar_sum(header);
  g_byte_array_append(tar, header, sizeof header);
  if (member.length > 0) {
    g_byte_array_append(tar, member.data, (guint)member.length);
    raw_tar_pad(tar);
  }
  return at;
}

/* One pax record more: its length counts itself. */
RAW_TAR_UNUSED static void raw_tar_record(GString *records, const char *key, const char *value) {
  gsize rest = strlen(key) + strlen(value) + 3;
  gsize length = rest + 1;
  for (;;) {
    g_autofree char *digits = g_strdup_printf("%" G_GSIZE_FORMAT, length);
    if (strlen(digits) + rest == length) {
      break;
    }
    length = strlen(digits) + rest;
  }
  g_string_append_printf(records, "%" G_GSIZE_FORMAT " %s=%s\n", length, key, value);
}

/* The pax header of the next member: keys and values in turn, NULL at the end. */
RAW_TAR_UNUSED static void raw_tar_pax(GByteArray *tar, const char *const *records) {
  GString *text = g_string_new(NULL);
  for (gsize i = 0; records[i]; i += 2) {
    raw_tar_record(text, records[i], records[i + 1]);
  }
  raw_tar_add(tar, (struct raw_tar_member){
                       .name = "PaxHeader", .type = 'x', .data = text->str, .length = text->len});
  g_string_free(text, TRUE);
}

RAW_TAR_UNUSED static void raw_tar_end(GByteArray *tar) {
  static const guint8 zeros[2 * RAW_TAR_BLOCK];
  g_byte_array_append(tar, zeros, sizeof zeros);
}

#endif
