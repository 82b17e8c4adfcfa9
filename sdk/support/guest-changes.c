/* SPDX-License-Identifier: Apache-2.0 */
/* guest-changes.c: known files go in, checked entries come out, both cut at any byte on the way. */
#include "failure.h"
#include "guest-request.h"

#include <limits.h>
#include <string.h>

#define SHA256_LENGTH 32u
/* An entry: kind, flags, size, mtime, mode, hash, and the length of the path that follows. */
#define ENTRY_FIXED (4u + 4u + 8u + 8u + 4u + SHA256_LENGTH + 4u)
#define ENTRY_MAX (ENTRY_FIXED + (size_t)PATH_MAX)

struct changes {
  const struct sandhost_changes *request;
  struct sandhost_entry_sink sink;
  const char **violation; /* of the exchange */

  size_t next;   /* known file to send */
  size_t offset; /* in its encoding */

  uint64_t entries;
  unsigned char cut[ENTRY_MAX]; /* the beginning of an entry whose end has not come */
  size_t cut_length;
};

/* ---- Known files ----------------------------------------------------------------------------- */

/* Copies what lies in both [offset, offset + room) and [at, at + length) of an encoding. */
static void copy_part(unsigned char *to, size_t offset, size_t room, const void *part, size_t at,
                      size_t length) {
  size_t begin = MAX(offset, at);
  size_t end = MIN(offset + room, at + length);
  if (begin < end) {
    memcpy(to + (begin - offset), (const unsigned char *)part + (begin - at), end - begin);
  }
}

static int64_t produce_known(void *user, void *buffer, size_t length) {
  struct changes *changes = user;
  unsigned char *to = buffer;
  size_t filled = 0;
  while (filled < length && changes->next < changes->request->known_count) {
    const struct sandhost_known *known = &changes->request->known[changes->next];
    unsigned char prefix[4];
    size_t whole = sizeof prefix + known->path.length + SHA256_LENGTH;
    size_t part = MIN(whole - changes->offset, length - filled);
    guest_put_u32(prefix, (uint32_t)known->path.length);
    copy_part(to + filled, changes->offset, part, prefix, 0, sizeof prefix);
    copy_part(to + filled, changes->offset, part, known->path.data, sizeof prefix,
              known->path.length);
    copy_part(to + filled, changes->offset, part, known->sha256, sizeof prefix + known->path.length,
              SHA256_LENGTH);
    filled += part;
    changes->offset += part;
    if (changes->offset == whole) {
      changes->offset = 0;
      changes->next++;
    }
  }
  return (int64_t)filled;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static int32_t refuse(struct changes *changes, const char *why) {
  *changes->violation = why;
  return GUEST_VIOLATION;
}

/* A path below the root as the contract has it: no empty, . or .. component, no NUL. */
static gboolean is_clean_path(const char *path, size_t length) {
  if (length == 0 || length >= PATH_MAX || memchr(path, 0, length)) {
    return FALSE;
  }
  for (size_t at = 0; at <= length;) {
    const char *slash = memchr(path + at, '/', length - at);
    size_t component = slash ? (size_t)(slash - (path + at)) : length - at;
    if (component == 0 ||
        (path[at] == '.' && (component == 1 || (component == 2 && path[at + 1] == '.')))) {
      return FALSE;
    }
    at += component + 1;
  }
  return TRUE;
}

static gboolean are_flags(uint32_t kind, uint32_t flags) {
  return flags == 0 || flags == SANDHOST_ENTRY_SHA256 ||
         (flags == SANDHOST_ENTRY_UNREAD_FOLDER && kind == SANDHOST_KIND_FILE);
}

static int32_t take_entry(struct changes *changes, const unsigned char *data, size_t length) {
  struct guest_reader reader = {.data = data, .left = length};
  char path[PATH_MAX];
  struct sandhost_entry entry = {.size = sizeof entry};
  entry.kind = guest_read_u32(&reader);
  entry.flags = guest_read_u32(&reader);
  entry.bytes = guest_read_u64(&reader);
  entry.mtime = (int64_t)guest_read_u64(&reader);
  entry.mode = guest_read_u32(&reader) & 07777u;
  const unsigned char *hash = guest_read_raw(&reader, SHA256_LENGTH);
  const char *bytes = guest_read_bytes(&reader, &entry.path.length);
  if (!hash || (entry.kind != SANDHOST_KIND_FILE && entry.kind != SANDHOST_KIND_CHECKOUT) ||
      !are_flags(entry.kind, entry.flags)) {
    return refuse(changes, "a listed file of an unknown kind");
  }
  if (!is_clean_path(bytes, entry.path.length)) {
    return refuse(changes, "a listed file whose path leads elsewhere");
  }
  if (changes->request->max_entries > 0 && changes->entries == changes->request->max_entries) {
    return refuse(changes, "more listed files than it was asked for");
  }
  changes->entries++;
  memcpy(path, bytes, entry.path.length);
  path[entry.path.length] = '\0';
  entry.path.data = path;
  if (entry.flags & SANDHOST_ENTRY_SHA256) {
    memcpy(entry.sha256, hash, SHA256_LENGTH);
  }
  return changes->sink.entry(changes->sink.user, &entry) == SANDHOST_OK ? SANDHOST_OK
                                                                        : SANDHOST_CANCELLED;
}

/* How long the entry is that begins here; 0: that is not there yet; above ENTRY_MAX: too long. */
static size_t entry_length(const unsigned char *data, size_t length) {
  if (length < ENTRY_FIXED) {
    return 0;
  }
  return ENTRY_FIXED + (size_t)guest_get_u32(data + ENTRY_FIXED - 4);
}

/* Adds to the cut entry until it has the wanted length, if that much is there. Returns the count. */
static size_t fill_cut(struct changes *changes, const unsigned char *data, size_t length,
                       size_t wanted) {
  size_t part = MIN(length, wanted - MIN(wanted, changes->cut_length));
  memcpy(changes->cut + changes->cut_length, data, part);
  changes->cut_length += part;
  return part;
}

static int32_t consume_entries(void *user, uint32_t channel, const void *data, size_t length) {
  struct changes *changes = user;
  const unsigned char *at = data;
  int32_t status = SANDHOST_OK;
  (void)channel; /* there is but one */
  while (length > 0 && status == SANDHOST_OK) {
    /* Straight from the buffer where an entry is whole there, else by way of the cut. */
    gboolean direct = changes->cut_length == 0;
    size_t whole =
        direct ? entry_length(at, length) : entry_length(changes->cut, changes->cut_length);
    if (whole > ENTRY_MAX) {
      return refuse(changes, "a listed file whose path is too long");
    }
    if (direct && whole > 0 && whole <= length) {
      status = take_entry(changes, at, whole);
      at += whole;
      length -= whole;
      continue;
    }
    size_t part = fill_cut(changes, at, length, whole > 0 ? whole : ENTRY_FIXED);
    at += part;
    length -= part;
    whole = entry_length(changes->cut, changes->cut_length);
    if (whole > ENTRY_MAX) {
      return refuse(changes, "a listed file whose path is too long");
    }
    if (whole > 0 && changes->cut_length == whole) {
      changes->cut_length = 0;
      status = take_entry(changes, changes->cut, whole);
    }
  }
  return status;
}

/* ---- The operation --------------------------------------------------------------------------- */

static int32_t check_request(const GuestClient *client, struct sandhost_call *call,
                             const struct sandhost_changes *request,
                             const struct sandhost_entry_sink *sink) {
  int32_t status = guest_check_size(client, call, "request for changes", request->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_changes, max_entries));
  if (status == SANDHOST_OK) {
    status = guest_check_size(client, call, "sink", sink->size,
                              CONTRACT_FIRST_SIZE(struct sandhost_entry_sink, entry));
  }
  if (status == SANDHOST_OK) {
    status = guest_check_absolute(client, call, "root", request->root);
  }
  for (size_t i = 0; status == SANDHOST_OK && i < request->known_count; i++) {
    if (request->known[i].path.length >= PATH_MAX) {
      status = fail_call(client->host, call, SANDHOST_INVALID,
                         "the path of known file %zu is too long", i + 1);
    }
  }
  return status;
}

int32_t guest_client_changes(GuestClient *client, struct sandhost_call *call,
                             const struct sandhost_changes *request,
                             const struct sandhost_entry_sink *sink) {
  int32_t status = check_request(client, call, request, sink);
  if (status != SANDHOST_OK) {
    return status;
  }
  struct changes changes = {.request = request, .sink = *sink};
  struct guest_exchange exchange = {.operation = GUEST_CHANGES,
                                    .user = &changes,
                                    .consume = consume_entries,
                                    .produce = produce_known,
                                    .stopped_by = "the receiver of the list stopped"};
  unsigned char results[GUEST_RESULTS];
  changes.violation = &exchange.violation;
  GByteArray *parameters = guest_parameters_new();
  guest_parameters_bytes(parameters, request->root.data, request->root.length);
  guest_parameters_u64(parameters, request->max_hash_bytes);
  guest_parameters_u64(parameters, request->max_entries);
  status = guest_request_run(client, call, &exchange, parameters, results);
  if (status == SANDHOST_OK && changes.cut_length > 0) {
    return guest_request_violation(client, call, "a list that ends within a file");
  }
  return status;
}
