/* SPDX-License-Identifier: Apache-2.0 */
/* guest-files.c: single files and tar streams: a sink or a source, and the paths beside them. */
#include "failure.h"
#include "guest-request.h"

#include <limits.h>
#include <string.h>

/* ---- Sinks and sources ----------------------------------------------------------------------- */

static int32_t consume_to_sink(void *user, uint32_t channel, const void *data, size_t length) {
  const struct sandhost_sink *sink = user;
  (void)channel; /* there is but one */
  return sink->write(sink->user, data, length) == SANDHOST_OK ? SANDHOST_OK : SANDHOST_CANCELLED;
}

static int64_t produce_from_source(void *user, void *buffer, size_t length) {
  const struct sandhost_source *source = user;
  return source->read(source->user, buffer, length);
}

static int32_t check_sink(const GuestClient *client, struct sandhost_call *call,
                          const struct sandhost_sink *sink) {
  return guest_check_size(client, call, "sink", sink->size,
                          CONTRACT_FIRST_SIZE(struct sandhost_sink, write));
}

static int32_t check_source(const GuestClient *client, struct sandhost_call *call,
                            const struct sandhost_source *source) {
  return guest_check_size(client, call, "source", source->size,
                          CONTRACT_FIRST_SIZE(struct sandhost_source, read));
}

/* ---- Paths below the working directory ------------------------------------------------------- */

static int32_t fail_outside(const GuestClient *client, struct sandhost_call *call,
                            struct sandhost_path path) {
  g_autofree char *text = guest_text_clean(path.data, MIN(path.length, (size_t)PATH_MAX));
  return fail_call(client->host, call, SANDHOST_INVALID,
                   "Path %s is outside the sandbox working directory", text);
}

/* The part of an absolute path below root. FALSE: it is not below. */
static gboolean strip_root(const char *root, struct sandhost_path *path) {
  size_t length = strlen(root);
  while (length > 0 && root[length - 1] == '/') {
    length--;
  }
  if (path->length < length || memcmp(path->data, root, length) != 0 ||
      (path->length > length && path->data[length] != '/')) {
    return FALSE;
  }
  while (length < path->length && path->data[length] == '/') {
    length++;
  }
  path->data += length;
  path->length -= length;
  return TRUE;
}

/* Whether .. leads out at any point, and how deep the path ends. Links are the guest's to follow. */
static gboolean leads_out(struct sandhost_path path, size_t *ret_depth) {
  size_t depth = 0;
  for (size_t at = 0; at < path.length;) {
    const char *component = path.data + at;
    const char *slash = memchr(component, '/', path.length - at);
    size_t length = slash ? (size_t)(slash - component) : path.length - at;
    at += length + 1;
    if (length == 2 && component[0] == '.' && component[1] == '.') {
      if (depth == 0) {
        return TRUE;
      }
      depth--;
    } else if (length > 0 && !(length == 1 && component[0] == '.')) {
      depth++;
    }
  }
  *ret_depth = depth;
  return FALSE;
}

/* Makes the parameters root and path of one file. */
static int32_t file_parameters(const GuestClient *client, struct sandhost_call *call,
                               struct sandhost_path path, GByteArray **ret_parameters) {
  struct sandhost_path below = path;
  size_t depth;
  int32_t status = guest_check_absolute(client, call, "path of the file", path);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (!strip_root(client->working_dir, &below) || leads_out(below, &depth)) {
    return fail_outside(client, call, path);
  }
  if (depth == 0) {
    return fail_call(client->host, call, SANDHOST_INVALID, "the path is that of a folder");
  }
  if (client->working_dir[0] == '\0') {
    below = path; /* any file: then the guest wants it absolute */
  }
  GByteArray *parameters = guest_parameters_new();
  guest_parameters_bytes(parameters, client->working_dir, strlen(client->working_dir));
  guest_parameters_bytes(parameters, below.data, below.length);
  *ret_parameters = parameters;
  return SANDHOST_OK;
}

/* ---- The operations -------------------------------------------------------------------------- */

int32_t guest_client_read_file(GuestClient *client, struct sandhost_call *call,
                               struct sandhost_path path, const struct sandhost_sink *sink) {
  GByteArray *parameters = NULL;
  struct sandhost_sink copy;
  struct guest_exchange exchange = {.operation = GUEST_READ_FILE,
                                    .user = &copy,
                                    .consume = consume_to_sink,
                                    .stopped_by = "the receiver of the file stopped"};
  unsigned char results[GUEST_RESULTS];
  int32_t status = check_sink(client, call, sink);
  if (status == SANDHOST_OK) {
    status = file_parameters(client, call, path, &parameters);
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  copy = *sink;
  return guest_request_run(client, call, &exchange, parameters, results);
}

int32_t guest_client_write_file(GuestClient *client, struct sandhost_call *call,
                                struct sandhost_path path, uint32_t mode,
                                const struct sandhost_source *source) {
  GByteArray *parameters = NULL;
  struct sandhost_source copy;
  struct guest_exchange exchange = {.operation = GUEST_WRITE_FILE,
                                    .user = &copy,
                                    .produce = produce_from_source,
                                    .stopped_by = "the source of the file stopped"};
  unsigned char results[GUEST_RESULTS];
  int32_t status = check_source(client, call, source);
  if (status == SANDHOST_OK) {
    status = file_parameters(client, call, path, &parameters);
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  copy = *source;
  guest_parameters_u32(parameters, mode & 07777u);
  return guest_request_run(client, call, &exchange, parameters, results);
}

int32_t guest_client_upload(GuestClient *client, struct sandhost_call *call,
                            struct sandhost_path dir, const struct sandhost_source *tar) {
  struct sandhost_source copy;
  struct guest_exchange exchange = {.operation = GUEST_UPLOAD,
                                    .user = &copy,
                                    .produce = produce_from_source,
                                    .stopped_by = "the source of the files stopped"};
  unsigned char results[GUEST_RESULTS];
  int32_t status = check_source(client, call, tar);
  if (status == SANDHOST_OK) {
    status = guest_check_absolute(client, call, "folder", dir);
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  copy = *tar;
  GByteArray *parameters = guest_parameters_new();
  guest_parameters_bytes(parameters, dir.data, dir.length);
  return guest_request_run(client, call, &exchange, parameters, results);
}

/* ---- Download: names go in while the tar stream comes out ------------------------------------- */

struct download {
  struct sandhost_sink sink;
  const struct sandhost_path *names;
  size_t count;
  size_t next;   /* name */
  size_t offset; /* in it; its length stands for the NUL */
};

static int32_t consume_download(void *user, uint32_t channel, const void *data, size_t length) {
  struct download *download = user;
  return consume_to_sink(&download->sink, channel, data, length);
}

static int64_t produce_names(void *user, void *buffer, size_t length) {
  struct download *download = user;
  char *to = buffer;
  size_t filled = 0;
  while (filled < length && download->next < download->count) {
    const struct sandhost_path *name = &download->names[download->next];
    size_t part = MIN(name->length - download->offset, length - filled);
    memcpy(to + filled, name->data + download->offset, part);
    filled += part;
    download->offset += part;
    if (download->offset == name->length && filled < length) {
      to[filled++] = '\0';
      download->offset = 0;
      download->next++;
    }
  }
  return (int64_t)filled;
}

static int32_t check_names(const GuestClient *client, struct sandhost_call *call,
                           const struct sandhost_path *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (names[i].length == 0 || names[i].length >= PATH_MAX || names[i].data[0] == '/' ||
        memchr(names[i].data, 0, names[i].length)) {
      return fail_call(client->host, call, SANDHOST_INVALID,
                       "the name of file %zu of the download is no relative path", i + 1);
    }
  }
  return SANDHOST_OK;
}

int32_t guest_client_download(GuestClient *client, struct sandhost_call *call,
                              struct sandhost_path dir, const struct sandhost_path *names,
                              size_t name_count, const struct sandhost_sink *tar) {
  struct download download = {.names = names, .count = name_count};
  struct guest_exchange exchange = {.operation = GUEST_DOWNLOAD,
                                    .user = &download,
                                    .consume = consume_download,
                                    .produce = produce_names,
                                    .stopped_by = "the receiver of the files stopped"};
  unsigned char results[GUEST_RESULTS];
  int32_t status = check_sink(client, call, tar);
  if (status == SANDHOST_OK) {
    status = guest_check_absolute(client, call, "folder", dir);
  }
  if (status == SANDHOST_OK) {
    status = check_names(client, call, names, name_count);
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  download.sink = *tar;
  GByteArray *parameters = guest_parameters_new();
  guest_parameters_bytes(parameters, dir.data, dir.length);
  return guest_request_run(client, call, &exchange, parameters, results);
}
