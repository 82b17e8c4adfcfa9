/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bad-guest.c: a guest that is what a real one becomes in the hands of whoever broke it. It stands where the program
 * sandhost-guest stands, behind a real provider, and does what a command says:
 *
 *   violate NAME   breaks that rule of the protocol (violations.h)
 *   lie NAME       ends well, and tells that lie when it is next asked for what it can lie about
 *   anything else  says which command of this guest it is, counted from 1, and how many uploads came before
 *
 * What the file "greeting" beside it names, where it can be seen, is how it greets. With the word --names it prints
 * the violations.
 */
#include "../unit/raw-tar.h"
#include "../unit/violations.h"

#include "base/digest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
/* What cannot be traced, as in a sandbox, cannot be searched for leaks. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0";
}
#endif

static const char CONTENT[] = "from a bad guest";

static struct {
  char lie[64]; /* the next one; empty: none */
  unsigned commands;
  unsigned uploads;
} guest;

static gboolean lies(const char *name) {
  return strcmp(guest.lie, name) == 0;
}

/* ---- The stream ------------------------------------------------------------------------------ */

static void done(int fd, uint32_t request) {
  fake_send_done(fd, request, SANDHOST_OK, "", NULL, 0);
}

/* Passes what the host sends over, up to one of its END and CREDIT. FALSE: it cancelled, or is gone. */
static gboolean wait_for(int fd, uint8_t kind, uint32_t *ret_credit, size_t *ret_bytes) {
  struct fake_frame frame;
  gboolean found = FALSE;
  while (!found && fake_receive(fd, &frame)) {
    found = frame.header.kind == kind;
    if (found && kind == GUEST_CREDIT) {
      *ret_credit = guest_get_u32(frame.payload->data);
    }
    if (frame.header.kind == GUEST_DATA) {
      *ret_bytes += frame.payload->len;
      fake_send_u32(fd, GUEST_CREDIT, frame.header.request, frame.payload->len);
    } else if (frame.header.kind == GUEST_PING) {
      fake_send(fd, GUEST_PONG, 0, 0, frame.payload->data, frame.payload->len);
    }
    gboolean cancelled = frame.header.kind == GUEST_CANCEL;
    fake_frame_clear(&frame);
    if (cancelled) {
      return FALSE;
    }
  }
  return found;
}

/* Sends as the window allows. FALSE: the host has heard enough. */
static gboolean give(int fd, uint32_t request, size_t *window, const void *data, size_t length) {
  const unsigned char *at = data;
  while (length > 0) {
    size_t part = MIN(MIN(length, *window), (size_t)GUEST_MAX_FRAME);
    if (part == 0) {
      uint32_t credit = 0;
      size_t ignored = 0;
      if (!wait_for(fd, GUEST_CREDIT, &credit, &ignored)) {
        return FALSE;
      }
      *window += credit;
      continue;
    }
    fake_send(fd, GUEST_DATA, GUEST_OUT, request, at, part);
    at += part;
    length -= part;
    *window -= part;
  }
  return TRUE;
}

/* ---- Lies about files ------------------------------------------------------------------------ */

static void add_entry(GByteArray *entries, uint32_t kind, const char *path) {
  unsigned char fixed[64] = {0};
  guest_put_u32(fixed, kind);
  guest_put_u32(fixed + 4, SANDHOST_ENTRY_SHA256);
  guest_put_u64(fixed + 8, strlen(CONTENT));
  guest_put_u32(fixed + 24, 0644);
  digest_of(CONTENT, strlen(CONTENT), fixed + 28);
  guest_put_u32(fixed + 60, (uint32_t)strlen(path));
  g_byte_array_append(entries, fixed, sizeof fixed);
  g_byte_array_append(entries, (const guint8 *)path, (guint)strlen(path));
}

static const struct listing_lie {
  const char *name;
  uint32_t kind;
  const char *paths[2];
} LISTINGS[] = {
    {"list-unknown-kind", 77, {"a"}},
    {"list-leads-out", SANDHOST_KIND_FILE, {"../a"}},
    {"list-twice", SANDHOST_KIND_FILE, {"a", "a"}},
    {"list-cut", SANDHOST_KIND_FILE, {"a"}},
    {"list-long-path", SANDHOST_KIND_FILE, {"a"}},
    {"tar-leads-out", SANDHOST_KIND_FILE, {"a", "b"}},
    {"tar-link", SANDHOST_KIND_FILE, {"a", "b"}},
    {"tar-hard-link", SANDHOST_KIND_FILE, {"a", "b"}},
    {"tar-other-content", SANDHOST_KIND_FILE, {"a", "b"}},
    {"tar-sparse", SANDHOST_KIND_FILE, {"a", "b"}},
    {"tar-noise", SANDHOST_KIND_FILE, {"a", "b"}},
    {"tar-cut", SANDHOST_KIND_FILE, {"a", "b"}},
    {"tar-err-channel", SANDHOST_KIND_FILE, {"a", "b"}},
    {"honest", SANDHOST_KIND_FILE, {"a", "b"}},
};

/* Names without end, short ones or as long as a path may be. */
static gboolean flood(int fd, uint32_t request, size_t *window, int length) {
  for (unsigned i = 0; i <= 200000; i++) {
    g_autoptr(GByteArray) entry = g_byte_array_new();
    g_autofree char *path = g_strdup_printf("%0*u", length, i);
    add_entry(entry, SANDHOST_KIND_FILE, path);
    if (!give(fd, request, window, entry->data, entry->len)) {
      return FALSE;
    }
  }
  return TRUE;
}

static void serve_changes(int fd, uint32_t request) {
  g_autoptr(GByteArray) entries = g_byte_array_new();
  size_t window = GUEST_WINDOW;
  size_t ignored = 0;
  gboolean on = wait_for(fd, GUEST_END, NULL, &ignored);
  for (size_t i = 0; i < G_N_ELEMENTS(LISTINGS); i++) {
    for (size_t j = 0; lies(LISTINGS[i].name) && j < 2 && LISTINGS[i].paths[j]; j++) {
      add_entry(entries, LISTINGS[i].kind, LISTINGS[i].paths[j]);
    }
  }
  if (lies("list-cut")) {
    g_byte_array_set_size(entries, entries->len - 1);
  } else if (lies("list-long-path")) {
    guest_put_u32(entries->data + 60, PATH_MAX + 1);
  }
  if (lies("list-many") || lies("list-long-names")) {
    on = on && flood(fd, request, &window, lies("list-many") ? 8 : 4000);
  }
  on = on && give(fd, request, &window, entries->data, entries->len);
  if (g_str_has_prefix(guest.lie, "list-")) {
    guest.lie[0] = '\0';
  }
  if (on) {
    done(fd, request);
  } else {
    fake_send_done(fd, request, SANDHOST_CANCELLED, "", NULL, 0);
  }
}

static struct raw_tar_member content_named(const char *name) {
  return (struct raw_tar_member){
      .name = name, .type = '0', .data = CONTENT, .length = strlen(CONTENT)};
}

static void fill_tar(GByteArray *tar) {
  if (lies("tar-leads-out")) {
    raw_tar_add(tar, content_named("../a"));
  } else if (lies("tar-link") || lies("tar-hard-link")) {
    raw_tar_add(tar, (struct raw_tar_member){
                         .name = "a", .type = lies("tar-link") ? '2' : '1', .link = ".."});
    raw_tar_add(tar, content_named("a/b"));
  } else if (lies("tar-sparse")) {
    guint at = raw_tar_add(tar, (struct raw_tar_member){.name = "a", .type = 'S'});
    memcpy(tar->data + at + 483, "77777777777", 11); /* its real size */
    raw_tar_sum(tar->data + at);
  } else if (lies("tar-noise")) {
    g_byte_array_set_size(tar, 4096);
    memset(tar->data, 'Z', tar->len);
  } else {
    raw_tar_add(tar, content_named("a"));
    raw_tar_add(tar, content_named("b"));
  }
  if (lies("tar-other-content")) {
    tar->data[RAW_TAR_BLOCK] ^= 1;
    tar->data[3 * RAW_TAR_BLOCK] ^= 1;
  }
  raw_tar_end(tar);
  if (lies("tar-cut")) {
    g_byte_array_set_size(tar, RAW_TAR_BLOCK + 3);
  }
}

static void serve_download(int fd, uint32_t request) {
  g_autoptr(GByteArray) tar = g_byte_array_new();
  size_t window = GUEST_WINDOW;
  size_t ignored = 0;
  fill_tar(tar);
  if (lies("tar-err-channel")) {
    fake_send_data(fd, GUEST_ERR, request, "x");
    fake_wait_for_end(fd);
  } else if (wait_for(fd, GUEST_END, NULL, &ignored) &&
             give(fd, request, &window, tar->data, tar->len)) {
    done(fd, request);
  } else {
    fake_send_done(fd, request, SANDHOST_CANCELLED, "", NULL, 0);
  }
  guest.lie[0] = '\0';
}

static void serve_upload(int fd, uint32_t request) {
  size_t bytes = 0;
  guest.uploads++;
  if (lies("upload-data")) {
    fake_send_data(fd, GUEST_OUT, request, "x");
    fake_wait_for_end(fd);
  } else if (lies("upload-credit")) {
    fake_send_u32(fd, GUEST_CREDIT, request, 2 * GUEST_WINDOW);
    fake_wait_for_end(fd);
  } else if (wait_for(fd, GUEST_END, NULL, &bytes)) {
    done(fd, request);
  }
}

/* ---- Commands -------------------------------------------------------------------------------- */

/* What sh -c is to run. Owned. */
static char *script_of(const GByteArray *parameters) {
  struct guest_reader reader = {.data = parameters->data, .left = parameters->len};
  const char *word = "";
  size_t length = 0;
  (void)guest_read_raw(&reader, 4 + 8 + 8);
  (void)guest_read_bytes(&reader, &length); /* where to run it */
  uint32_t count = guest_read_u32(&reader);
  for (uint32_t i = 0; i < count; i++) {
    word = guest_read_bytes(&reader, &length);
  }
  return reader.bad || count == 0 ? g_strdup("") : g_strndup(word, length);
}

static void say(int fd, uint32_t request, const char *text) {
  fake_send_u32(fd, GUEST_STARTED, request, 2);
  fake_send_data(fd, GUEST_OUT, request, text);
  fake_send_ended(fd, request, SANDHOST_ENDED_EXIT, 0, 0, strlen(text), 0);
}

static void serve_execute(int fd, uint32_t request, const GByteArray *parameters) {
  g_autofree char *script = script_of(parameters);
  guest.commands++;
  if (g_str_has_prefix(script, "violate ")) {
    for (size_t i = 0; i < G_N_ELEMENTS(violations); i++) {
      if (strcmp(violations[i].name, script + strlen("violate ")) == 0) {
        violations[i].commit(fd, request);
        fake_wait_for_end(fd);
      }
    }
  } else if (g_str_has_prefix(script, "lie ")) {
    g_strlcpy(guest.lie, script + strlen("lie "), sizeof guest.lie);
    say(fd, request, "it will\n");
  } else {
    g_autofree char *text =
        g_strdup_printf("command %u after %u uploads\n", guest.commands, guest.uploads);
    say(fd, request, text);
  }
}

static void serve(int fd, struct guest_frame open, const GByteArray *parameters) {
  switch (open.channel) {
  case GUEST_EXECUTE:
    serve_execute(fd, open.request, parameters);
    break;
  case GUEST_UPLOAD:
    serve_upload(fd, open.request);
    break;
  case GUEST_CHANGES:
    serve_changes(fd, open.request);
    break;
  case GUEST_DOWNLOAD:
    serve_download(fd, open.request);
    break;
  default:
    fake_send_done(fd, open.request, SANDHOST_UNSUPPORTED, "a bad guest cannot", NULL, 0);
  }
}

static void serve_all(int fd) {
  struct fake_frame frame;
  g_autoptr(GByteArray) parameters = g_byte_array_new();
  while (fake_receive(fd, &frame)) {
    struct guest_frame header = frame.header;
    if (header.kind == GUEST_OPEN) {
      g_byte_array_append(parameters, frame.payload->data, frame.payload->len);
    } else if (header.kind == GUEST_PING) {
      fake_send(fd, GUEST_PONG, 0, 0, frame.payload->data, frame.payload->len);
    }
    fake_frame_clear(&frame);
    if (header.kind == GUEST_OPEN && !(header.flags & GUEST_MORE)) {
      serve(fd, header, parameters);
      g_byte_array_set_size(parameters, 0);
    }
  }
}

/* ---- The greeting ---------------------------------------------------------------------------- */

/* Owned; empty: a good one. */
static char *greeting_asked_for(void) {
  g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
  g_autofree char *folder = g_path_get_dirname(self ? self : "/");
  g_autofree char *path = g_build_filename(folder, "greeting", NULL);
  char *text = NULL;
  return g_file_get_contents(path, &text, NULL, NULL) ? g_strstrip(text) : g_strdup("");
}

static gboolean greet(int fd) {
  g_autofree char *how = greeting_asked_for();
  uint32_t flags = getpid() == 1 ? GUEST_IS_INIT : 0;
  if (strcmp(how, "another-program") == 0) {
    static const char usage[] = "usage: something else entirely\n";
    fake_write_all(fd, usage, strlen(usage));
    fake_wait_for_end(fd);
    return FALSE;
  }
  if (strcmp(how, "not-first") == 0) {
    fake_send_u32(fd, GUEST_STARTED, 1, 1);
    fake_wait_for_end(fd);
    return FALSE;
  }
  return fake_greet_as(fd, strcmp(how, "wrong-magic") == 0 ? 0x12345678 : GUEST_MAGIC,
                       strcmp(how, "wrong-version") == 0 ? 7 : GUEST_VERSION,
                       strcmp(how, "wrong-nonce") == 0, flags);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--names") == 0) {
    for (size_t i = 0; i < G_N_ELEMENTS(violations); i++) {
      printf("%s\t%s\n", violations[i].name, violations[i].reason);
    }
    return 0;
  }
  if (greet(STDIN_FILENO)) {
    serve_all(STDIN_FILENO);
  }
  return 0;
}
