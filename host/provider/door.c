/* SPDX-License-Identifier: Apache-2.0 */
/* door.c: mapping a file; its entry, the table that it gives, and its name. */
#include "provider/door.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "provider/file-check.h"
#include "provider/text.h"

/* ---- Mapping ------------------------------------------------------------------------------------------------------------ */

#define MACHINE_AT (EI_NIDENT + sizeof(Elf64_Half)) /* of e_machine, in 32 and 64 bits alike */

/* 0: it cannot be told. */
static guint machine_of(const char *file) {
  guint8 head[MACHINE_AT + 2] = {0};
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd >= 0 ? read(fd, head, sizeof head) : -1;
  if (fd >= 0) {
    close(fd);
  }
  if (length != (ssize_t)sizeof head || memcmp(head, ELFMAG, SELFMAG) != 0) {
    return 0;
  }
  gboolean little = head[EI_DATA] == ELFDATA2LSB;
  return (guint)head[MACHINE_AT + (little ? 1 : 0)] << 8 | head[MACHINE_AT + (little ? 0 : 1)];
}

static char *machine_name(guint machine) {
  switch (machine) {
  case EM_X86_64:
    return g_strdup("x86-64");
  case EM_386:
    return g_strdup("x86");
  case EM_AARCH64:
    return g_strdup("aarch64");
  case EM_ARM:
    return g_strdup("arm");
  case EM_RISCV:
    return g_strdup("riscv");
  default:
    return g_strdup_printf("ELF number %u", machine);
  }
}

/* What the linker says of one is that there is no such file. NULL: it is for this one. */
static char *machine_fault(const char *file) {
  guint theirs = machine_of(file);
  guint ours = machine_of("/proc/self/exe");
  if (theirs == 0 || ours == 0 || theirs == ours) {
    return NULL;
  }
  g_autofree char *their_name = machine_name(theirs);
  g_autofree char *our_name = machine_name(ours);
  return g_strdup_printf("it is built for another machine (%s, this one is %s)", their_name,
                         our_name);
}

char *door_map(const char *file, void **ret_handle) {
  char *reason = NULL;
  g_autofree char *resolved = file_check(file, &reason);
  if (!resolved) {
    return reason;
  }
  reason = machine_fault(resolved);
  if (reason) {
    return reason;
  }
  void *handle = dlopen(resolved, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    return text_clean_string(dlerror(), 512);
  }
  *ret_handle = handle;
  return NULL;
}

/* ---- The entry ----------------------------------------------------------------------------------------------------------- */

/* Functions and data are different kinds of pointers to C, and the same to dlsym. */
static ProviderEntry entry_of(gpointer symbol) {
  ProviderEntry entry = NULL;
  memcpy(&entry, &symbol, sizeof entry);
  return entry;
}

/* Which other major it was built for; -1: none. */
static int other_major(void *handle) {
  for (int major = 0; major <= 9; major++) {
    g_autofree char *symbol = g_strdup_printf("sandhost_provider_%d", major);
    if (major != SANDHOST_ABI_MAJOR && dlsym(handle, symbol)) {
      return major;
    }
  }
  return -1;
}

ProviderEntry door_entry(void *handle, char **ret_reason) {
  gpointer symbol = dlsym(handle, SANDHOST_ENTRY_NAME);
  if (symbol) {
    return entry_of(symbol);
  }
  int major = other_major(handle);
  *ret_reason = major < 0 ? g_strdup("it has no entry " SANDHOST_ENTRY_NAME)
                          : g_strdup_printf("it was built for ABI major %d, this host speaks %d",
                                            major, SANDHOST_ABI_MAJOR);
  return NULL;
}

char *door_ask(ProviderEntry entry, const struct sandhost_host *host,
               struct sandhost_provider *ret_table) {
  const struct sandhost_provider *theirs = entry(host);
  if (!theirs) {
    return g_strdup_printf("it will not work with this host (ABI %d.%d, host table of %zu bytes)",
                           SANDHOST_ABI_MAJOR, SANDHOST_ABI_MINOR, sizeof(struct sandhost_host));
  }
  return table_check(theirs, ret_table);
}

char *door_name_fault(const struct sandhost_provider *table, const char *name) {
  return strcmp(table->name, name) == 0
             ? NULL
             : g_strdup_printf("its name '%s' differs from the file's '%s'", table->name, name);
}
