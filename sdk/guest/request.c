/* SPDX-License-Identifier: Apache-2.0 */
/* request.c: the open requests by number, and what opens one. */
#include "guest.h"
#include "worker.h"

static struct request *table[GUEST_MAX_REQUESTS];

struct request *request_find(uint32_t id) {
  for (size_t i = 0; i < GUEST_MAX_REQUESTS; i++) {
    if (table[i] && table[i]->id == id) {
      return table[i];
    }
  }
  return NULL;
}

int request_add(struct request *request) {
  for (size_t i = 0; i < GUEST_MAX_REQUESTS; i++) {
    if (!table[i]) {
      table[i] = request;
      return 0;
    }
  }
  return -1;
}

void request_remove(struct request *request) {
  for (size_t i = 0; i < GUEST_MAX_REQUESTS; i++) {
    if (table[i] == request) {
      table[i] = NULL;
    }
  }
}

void request_wake_all(void) {
  for (size_t i = 0; i < GUEST_MAX_REQUESTS; i++) {
    if (table[i]) {
      table[i]->credited(table[i]);
    }
  }
}

void guest_open(uint32_t id, uint8_t operation, const unsigned char *parameters, size_t length) {
  struct guest_reader reader = {.data = parameters, .left = length};
  switch (operation) {
  case GUEST_EXECUTE:
    command_open(id, &reader);
    break;
  case GUEST_READ_FILE:
    worker_open(id, operation, parameters, length, file_read);
    break;
  case GUEST_WRITE_FILE:
    worker_open(id, operation, parameters, length, file_write);
    break;
  case GUEST_UPLOAD:
    worker_open(id, operation, parameters, length, tar_in);
    break;
  case GUEST_DOWNLOAD:
    worker_open(id, operation, parameters, length, tar_out);
    break;
  case GUEST_CHANGES:
    worker_open(id, operation, parameters, length, changes_list);
    break;
  case GUEST_PROBE:
    worker_open(id, operation, parameters, length, probe_connect);
    break;
  default:
    stream_done(id, SANDHOST_UNSUPPORTED, "this guest does not know the operation", NULL, 0);
  }
}
