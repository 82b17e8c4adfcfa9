/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h: the parts of sandhost doctor: what this machine has, and what one provider can do on it. */
#ifndef SANDHOST_CLI_DOCTOR_H
#define SANDHOST_CLI_DOCTOR_H

#include "cli/cli.h"

/* ---- The machine (doctor-machine.c) ---- */

typedef struct {
  char *guest; /* file of the guest program for this machine */
  gboolean has_guest;
  char *record;       /* file */
  char *record_fault; /* NULL: it can be written */
  char *kernel;       /* "Linux 6.1.0 x86_64" */
  gboolean user_namespaces;
  const char *control_groups; /* "v2", "v1", "none"; constant */
  gboolean seccomp;
  gboolean openat2;
} Machine;

/* Forks once, so it comes before anything that starts threads. take_record is the file of the record. */
Machine machine_look(const char *guest_dir, char *take_record);
void machine_clear(Machine *machine);
JsonObject *machine_json(const Machine *machine);

/* ---- One provider ---- */

typedef struct {
  ProviderRegistry *registry;
  const Config *config; /* names the selected provider, its options and its manifest */
  gboolean tries;       /* make a sandbox and end it */
  Cancel *cancel;
} DoctorSettings;

/* doctor-provider.c: {name, version (null: it could not be loaded), file ("built in", a file, null: not installed),
 * selected, usable, tried, isolated (commands do not run on this machine itself), trusted (declares nothing, so nothing
 * is refused), remark (why it is not usable, or what to know; null), missing [{option, environment}], enforces {setting:
 * "yes", "checked", "forward" or "-"}, lowered {setting: why not here}}. file may be NULL. Returns owned. */
JsonObject *diagnose(const DoctorSettings *settings, const char *name, const char *file);

/* doctor-apart.c: the same in a process of its own, since a plugin may crash or hang; for a program that has one
 * thread. Returns owned; never NULL. */
JsonObject *diagnose_apart(const DoctorSettings *settings, const char *name, const char *file);

#endif
