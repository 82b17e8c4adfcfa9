/* SPDX-License-Identifier: Apache-2.0 */
/* doctor-apart.c: what is said of a provider that takes its process along. */
#include "cli/apart.h"
#include "cli/doctor.h"

typedef struct {
  const DoctorSettings *settings;
  const char *name;
  const char *file;
} Subject;

static JsonObject *look(void *user) {
  const Subject *subject = user;
  return diagnose(subject->settings, subject->name, subject->file);
}

static JsonObject *failed(const Subject *subject, const char *why) {
  const DoctorSettings *settings = subject->settings;
  JsonObject *object = json_object_new_object();
  json_add_text(object, "name", subject->name);
  json_add_text(object, "version", NULL);
  json_add_text(object, "file", subject->file);
  json_add_bool(object, "selected", g_strcmp0(settings->config->provider, subject->name) == 0);
  json_add_bool(object, "usable", FALSE);
  json_add_bool(object, "tried", settings->tries);
  json_add_bool(object, "isolated", TRUE);
  json_add_bool(object, "trusted", FALSE);
  json_add_text(object, "remark", why);
  json_add_take(object, "missing", json_object_new_array());
  json_add_take(object, "enforces", json_object_new_object());
  json_add_take(object, "lowered", json_object_new_object());
  return object;
}

JsonObject *diagnose_apart(const DoctorSettings *settings, const char *name, const char *file) {
  Subject subject = {.settings = settings, .name = name, .file = file};
  const Apart apart = {.look = look, .user = &subject, .cancel = settings->cancel};
  g_autofree char *why = NULL;
  JsonObject *diagnosis = apart_look(&apart, &why);
  return diagnosis ? diagnosis : failed(&subject, why);
}
