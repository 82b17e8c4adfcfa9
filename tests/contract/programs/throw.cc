// SPDX-License-Identifier: Apache-2.0
// throw.cc CALLBACK: throws out of that callback, and would catch it around the function of the library.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <sandhost/sandhost.h>

static std::string thrower;

static void maybe_throw(const char *name) {
  if (thrower == name) {
    throw std::runtime_error(name);
  }
}

static int handler(void *, const char *const *, char **ret_stdout, char **) {
  maybe_throw("handler");
  *ret_stdout = strdup("hello");
  return 0;
}

static const char *answer(void *, const struct sandhost_ask *) {
  maybe_throw("answer");
  return "ada";
}

static int output(void *, const char *, int, const void *, size_t) {
  maybe_throw("output");
  return 0;
}

static int approver(void *, const struct sandhost_decision *, char **) {
  maybe_throw("approver");
  return 0;
}

static const char config[] =
    "{\"governance_config\": {\"sandbox_config\": \"local_test\", \"allow_test_sandbox_runtime\": true,"
    " \"policy\": {\"mode\": \"permissive\", \"rules\": {\"ask\": [{\"rule_id\": \"look\","
    " \"capability\": \"process.exec\"}]}}}}";

static void approve(sandhost *host, const char *run_id) {
  char *json = nullptr;
  if (sandhost_approvals(host, run_id, 0, &json, nullptr) != 0) {
    return;
  }
  const char *key = "\"approval_id\":\"";
  const char *at = strstr(json, key);
  if (at) {
    std::string id(at + strlen(key), strcspn(at + strlen(key), "\""));
    sandhost_approve(host, run_id, id.c_str(), "ada", nullptr, nullptr, nullptr, nullptr);
  }
  sandhost_free(json);
}

static int use() {
  sandhost *host = nullptr;
  sandhost_run *run = nullptr;
  char *result = nullptr;
  struct sandhost_settings settings = {};
  settings.size = sizeof settings;
  settings.record = "record.db";
  settings.check_approver = approver;
  struct sandhost_hooks hooks = {};
  hooks.size = sizeof hooks;
  hooks.answer = thrower == "approver" ? nullptr : answer; // then the run waits
  hooks.output = output;
  hooks.request = "{}";
  if (sandhost_open(config, &settings, &host, nullptr) != 0 ||
      sandhost_add_test_command(host, "sh", handler, nullptr, nullptr) != 0 ||
      sandhost_run_start(host, &hooks, &run, nullptr) != 0 ||
      sandhost_execute(run, "hello", 0, &result, nullptr) != 0) {
    return 1;
  }
  std::string id = sandhost_run_id(run);
  sandhost_free(result);
  sandhost_run_end(run, nullptr, nullptr, nullptr);
  approve(host, id.c_str());
  sandhost_close(host);
  return 0;
}

int main(int argc, char **argv) {
  thrower = argc == 2 ? argv[1] : "";
  try {
    return use();
  } catch (const std::exception &caught) {
    std::printf("caught: %s\n", caught.what());
    return 3;
  }
}
