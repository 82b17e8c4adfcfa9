/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed.h: what a person types about a run (who decides and why, another call, the reason of its end) as it may be
 * recorded: without the credentials that are known here, and without the personal data that the run's own configuration
 * keeps from its record. The run's process need not be there, so its settings are those that are recorded with it.
 */
#ifndef SANDHOST_RUN_TYPED_H
#define SANDHOST_RUN_TYPED_H

#include "privacy/privacy.h"

typedef struct Typed Typed;

/* What a configuration, as it was written, holds as credentials. Returns owned. */
Privacy *typed_known(JsonObject *config);

/* life: as record_life tells it. known: what the door knows of credentials beside this process's environment; borrowed;
 * NULL: nothing. Returns owned. */
Typed *typed_new(JsonObject *life, const Privacy *known);
void typed_free(Typed *typed);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Typed, typed_free)

/* Owned; NULL for NULL. */
char *typed_text(const Typed *typed, const char *text);
/* An edited call, owned; NULL: it may be recorded as it is. */
JsonObject *typed_arguments(const Typed *typed, JsonObject *arguments);

#endif
