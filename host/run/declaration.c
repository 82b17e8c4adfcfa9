/* SPDX-License-Identifier: Apache-2.0 */
/* declaration.c: the execute tool as a model is told of it (behaviour 7.1). */
#include "run/execute.h"

static const char IN_SANDBOX[] =
    "Run a shell command in an isolated sandbox and get its exit code, stdout and stderr. There is "
    "no network "
    "unless the policy allows it, and nothing of the host's files or credentials can be seen. "
    "Files in the "
    "working directory stay until the task ends. Workspace files are there before the command "
    "starts; text "
    "files that it creates or changes are saved back to the workspace.";

static const char IN_SANDBOX_WITHOUT_FILES[] =
    "Run a shell command in an isolated sandbox and get its exit code, stdout and stderr. There is "
    "no network "
    "unless the policy allows it, and nothing of the host's files or credentials can be seen. "
    "Files in the "
    "working directory stay until the task ends.";

static const char ON_HOST[] =
    "Run a shell command directly on this machine and get its exit code, stdout and stderr. It is "
    "not isolated: "
    "it changes real files, it can reach the network, and what it changes stays changed.";

static const char *description(const Harness *harness) {
  if (!provider_instance_isolates(harness->instance)) {
    return ON_HOST;
  }
  return harness->config->enable_workspace_files ? IN_SANDBOX : IN_SANDBOX_WITHOUT_FILES;
}

JsonObject *execute_declaration(const Harness *harness) {
  JsonObject *command = json_object_new_object();
  json_add_text(command, "type", "string");
  json_add_text(command, "description", "The command, run with sh -c in the working directory.");
  JsonObject *timeout = json_object_new_object();
  json_add_text(timeout, "type", "integer");
  json_add_int(timeout, "minimum", 1);
  json_add_int(timeout, "maximum", harness->config->tool_call_timeout);
  json_add_text(timeout, "description", "Most seconds that the command may take; 60 unless given.");

  JsonObject *properties = json_object_new_object();
  json_add_take(properties, "command", command);
  json_add_take(properties, "timeout", timeout);
  const char *const required[] = {"command", NULL};
  JsonObject *parameters = json_object_new_object();
  json_add_text(parameters, "type", "object");
  json_add_take(parameters, "properties", properties);
  json_add_take(parameters, "required", json_from_strv(required));
  json_add_bool(parameters, "additionalProperties", FALSE);

  JsonObject *tool = json_object_new_object();
  json_add_text(tool, "name", "execute");
  json_add_text(tool, "description", description(harness));
  json_add_take(tool, "parameters", parameters);
  return tool;
}
