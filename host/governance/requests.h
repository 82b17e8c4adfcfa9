/* SPDX-License-Identifier: Apache-2.0 */
/* requests.h: the authorisation requests that the runtime raises, each made in one place (behaviour 2.1,
 * 4.8, 4.9). All return owned. */
#ifndef SANDHOST_GOVERNANCE_REQUESTS_H
#define SANDHOST_GOVERNANCE_REQUESTS_H

#include "config/manifest.h"
#include "governance/policy.h"

/* The tool call: sandbox.execute, target tool_name "execute", low. */
PolicyRequest *request_execute(void);

/* The command: process.exec, target resource argv[0], high; surface "sandbox" or "host"; metadata command
 * {name, argc, digest, programs, opaque} without arguments (digest: SHA-256 of the JSON array of argv). */
PolicyRequest *request_command(const char *const *argv, gboolean isolated);

/* The command's text as sh is given it: sh would take one that begins with - or + for its own options; a space before it
 * changes nothing else. Owned. */
char *request_script(const char *command);

/* Everything that the manifest asks for, in the order of its fields; an empty array when it asks for
 * nothing. */
GPtrArray *request_manifest(const Manifest *manifest);

/* The runtime's own listing: sandbox.workspace.sync, actor runtime, low. */
PolicyRequest *request_sync(void);

/* workspace.files.read or .write of exactly this path, actor agent. */
PolicyRequest *request_file(gboolean write, const char *path);

/* A request as a person tells it: {capability, command, path, host, resource, tool_name, mcp_server, provider,
 * surface, method, risk, data_classes}, each optional but capability or command. command is a line for sh, and
 * means process.exec. What is not said is as above, or as behaviour 4.9 has it. where: its name in the CONFIG
 * errors. */
PolicyRequest *request_told(JsonObject *object, const char *where, GError **error);

#endif
