/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hashes.h: hashes of files that were read or written already, bound to what stat says of them.
 *
 * The key is the inode; size, mtime and ctime must be the same. A command cannot set ctime back, so
 * an entry is only wrong when a file changes within the same tick of the clock as its ctime: an
 * entry is therefore kept only when that tick was over when the content was known.
 *
 * A memory file system (tmpfs) does not tell of what is written through a shared mapping that was
 * read first: neither mtime nor ctime moves. But mapping a file counts as an access. There the time
 * of access must be the same too, and must be one that the next access would change (relatime
 * changes one that is not younger than mtime or ctime). Our own reading leaves no trace.
 *
 * Thread-safe; bounded.
 */
#ifndef SANDHOST_GUEST_HASHES_H
#define SANDHOST_GUEST_HASHES_H

#include <stdint.h>
#include <sys/stat.h>

/* The coarse clock, in which ctime is counted. */
struct timespec hashes_tick(void);

/* By what a file system shows that a file was changed. */
enum hashes_trust { HASHES_BY_CTIME, HASHES_BY_ATIME, HASHES_NEVER };

enum hashes_trust hashes_trust_of(int folder);

/* Opens for reading so that the time of access stays what it was, where that is allowed. */
int hashes_open(int folder, const char *name);

/* 1 and the hash when it is known. */
int hashes_find(const struct stat *facts, enum hashes_trust trust, uint8_t ret_sha256[32]);

/* Remembers, unless facts->st_ctim is not before tick. */
void hashes_keep(const struct stat *facts, struct timespec tick, const uint8_t sha256[32]);

#endif
