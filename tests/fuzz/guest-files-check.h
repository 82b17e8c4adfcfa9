/* SPDX-License-Identifier: Apache-2.0 */
/* guest-files-check.h: what the guest's operations on files have said and done, held against the files themselves. */
#ifndef SANDHOST_FUZZ_GUEST_FILES_CHECK_H
#define SANDHOST_FUZZ_GUEST_FILES_CHECK_H

#include <glib.h>
#include <stdint.h>

/* After an upload that went well: the stream has files and folders alone, and each file is there. */
void check_unpacked(const uint8_t *tar, size_t length);

/* A download: only files that were asked for, in that order, as they are there. names: each ended by NUL. */
void check_packed(const GByteArray *tar, const uint8_t *names, size_t length, int is_disturbed);

/* A list of changes. */
struct listed {
  const GByteArray *output;
  const uint8_t *known; /* as it was sent */
  size_t known_length;
  uint64_t max_hash;
  uint64_t max_entries;
  int is_whole;     /* the operation went well */
  int is_disturbed; /* files changed meanwhile */
};
/* Whole entries of files that are there, with their size, mode and hash, none hidden or in a checkout; and when it is whole
 * and nothing disturbed it, every other file is known. */
void check_listed(const struct listed *listed);

/* Nothing that the guest writes under a name of its own is left, unless the input has such a name. */
void check_no_temporary(const uint8_t *data, size_t size);

#endif
