/* SPDX-License-Identifier: Apache-2.0 */
/* api-private.h: what the files of this door share: the host behind its handle, and how errors get out. */
#ifndef SANDHOST_API_API_PRIVATE_H
#define SANDHOST_API_API_PRIVATE_H

#include <pthread.h>

#include "record/record.h"
#include "run/harness.h"
#include "sandhost.h"

struct sandhost {
  gint references;    /* atomic: one of the program, one of each run */
  JsonObject *config; /* as given; NULL: the defaults. Not changed once made */
  char *workspace;    /* these three: of the settings; NULL: not set */
  char *provider;
  char *record_path;
  ProviderRegistry *registry;

  pthread_mutex_t lock; /* guards what follows; held while it is made, not while it is used */
  Harness *harness;     /* NULL: not checked yet. Does not change once made */
  Record *record;       /* NULL: not needed yet. Does not change once made */
};

sandhost *host_ref(sandhost *host);
/* The last reference frees. */
void host_unref(sandhost *host);

/* The host's harness and record, made when they are first needed; borrowed until the last reference is gone. NULL:
 * *error. */
const Harness *host_harness(sandhost *host, GError **error);
Record *host_record(sandhost *host, GError **error);

/* Give an error out: *ret_error (may be NULL) gets its text; returns its status, which is never OK. error is
 * borrowed. */
int api_fail(const GError *error, char **ret_error);
/* The same for a status with a text of ours. */
int api_refuse(int status, const char *text, char **ret_error);

/* A value in the program's hands: owned text where ret_text is not NULL. */
void api_give(JsonObject *value, char **ret_text);

/* Copies a sized struct of the program to the library's own, of size bytes, which is zeroed beyond what was given. least
 * is the size of the first release. FALSE: the size is below that, or the program set something that this library does
 * not know. Both begin with their size. */
gboolean api_take_sized(const void *given, size_t least, void *ret_own, size_t size);

/* The bytes of a struct up to the end of a member: its size in the release in which the member was the last. */
#define API_SIZE_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

#endif
