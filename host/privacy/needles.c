/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needles.c: a tree of all needles in which each node also knows the node of its longest proper suffix (Aho and
 * Corasick), so that no byte is looked at again. Before a needle may have begun, whole stretches are jumped over by what
 * stands at the end of the shortest needle's length (Wu and Manber), which is where nearly all text is spent.
 */
#include "privacy/needles.h"

#include <string.h>

#define BLOCKS 65536u /* pairs of bytes */

typedef struct {
  guint32 child;   /* first of a list; 0: none */
  guint32 sibling; /* next of the list */
  guint32 suffix;  /* node of the longest proper suffix that is a beginning too */
  guint32 depth;   /* bytes from the root */
  guint32 match;   /* longest needle that is a suffix of what leads here; 0: none */
  guint8 byte;     /* that leads here */
} Node;

struct Needles {
  GArray *nodes;     /* Node; the root is 0 */
  guint32 root[256]; /* its children */
  gsize shortest;
  guint8 jumps
      [BLOCKS]; /* by the pair at the end of a window of the shortest length: bytes until a needle may end its
                         * first such bytes there; 0: it may have done so here */
};

static Node *node_at(const Needles *needles, guint32 number) {
  return &g_array_index(needles->nodes, Node, number);
}

static guint32 find_child(const Needles *needles, guint32 state, guint8 byte) {
  if (state == 0) {
    return needles->root[byte];
  }
  guint32 child = node_at(needles, state)->child;
  while (child != 0 && node_at(needles, child)->byte != byte) {
    child = node_at(needles, child)->sibling;
  }
  return child;
}

static guint32 step(const Needles *needles, guint32 state, guint8 byte) {
  for (;;) {
    guint32 child = find_child(needles, state, byte);
    if (child != 0 || state == 0) {
      return child;
    }
    state = node_at(needles, state)->suffix;
  }
}

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static guint32 add_child(Needles *needles, guint32 parent, guint8 byte) {
  const Node node = {
      .byte = byte,
      .depth = node_at(needles, parent)->depth + 1,
      .sibling = parent == 0 ? 0 : node_at(needles, parent)->child,
  };
  guint32 number = needles->nodes->len;
  g_array_append_val(needles->nodes, node);
  if (parent == 0) {
    needles->root[byte] = number;
  } else {
    node_at(needles, parent)->child = number;
  }
  return number;
}

static void add_needle(Needles *needles, const char *text, gsize length) {
  guint32 state = 0;
  for (gsize i = 0; i < length; i++) {
    guint32 child = find_child(needles, state, (guint8)text[i]);
    state = child != 0 ? child : add_child(needles, state, (guint8)text[i]);
  }
  node_at(needles, state)->match = (guint32)length;
}

static void queue_children(const Needles *needles, guint32 state, GArray *queue) {
  for (guint32 child = node_at(needles, state)->child; child != 0;
       child = node_at(needles, child)->sibling) {
    g_array_append_val(queue, child);
  }
}

/* By depth, so that a suffix is done before what it is a suffix of. */
static void link_suffixes(Needles *needles) {
  g_autoptr(GArray) queue = g_array_new(FALSE, FALSE, sizeof(guint32));
  for (guint byte = 0; byte < 256; byte++) {
    if (needles->root[byte] != 0) {
      g_array_append_val(queue, needles->root[byte]);
    }
  }
  for (guint i = 0; i < queue->len; i++) {
    guint32 parent = g_array_index(queue, guint32, i);
    for (guint32 child = node_at(needles, parent)->child; child != 0;
         child = node_at(needles, child)->sibling) {
      Node *node = node_at(needles, child);
      node->suffix = step(needles, node_at(needles, parent)->suffix, node->byte);
      node->match = MAX(node->match, node_at(needles, node->suffix)->match);
    }
    queue_children(needles, parent, queue);
  }
}

static guint pair_at(const guint8 *data) {
  return (guint)data[0] << 8 | data[1];
}

static void make_jumps(Needles *needles, const char *const *texts, gsize count) {
  gsize window = needles->shortest;
  memset(needles->jumps, (int)(window - 1), sizeof needles->jumps);
  for (gsize i = 0; i < count; i++) {
    for (gsize at = 0; at + 2 <= window; at++) {
      guint8 *jump = &needles->jumps[pair_at((const guint8 *)texts[i] + at)];
      *jump = MIN(*jump, (guint8)(window - 2 - at));
    }
  }
}

Needles *needles_new(const char *const *texts, gsize count) {
  if (count == 0) {
    return NULL;
  }
  Needles *needles = g_new0(Needles, 1);
  const Node root = {.depth = 0};
  needles->nodes = g_array_new(FALSE, FALSE, sizeof(Node));
  g_array_append_val(needles->nodes, root);
  needles->shortest = 255; /* a jump is a byte */
  for (gsize i = 0; i < count; i++) {
    gsize length = strlen(texts[i]);
    needles->shortest = MIN(needles->shortest, length);
    add_needle(needles, texts[i], length);
  }
  link_suffixes(needles);
  if (needles->shortest >= 2) {
    make_jumps(needles, texts, count);
  }
  return needles;
}

void needles_free(Needles *needles) {
  if (needles) {
    g_array_unref(needles->nodes);
    g_free(needles);
  }
}

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

/* Where the next needle may begin, from at on, while none is open. */
static gsize jump(const Needles *needles, const guint8 *data, gsize length, gsize at) {
  gsize window = needles->shortest;
  while (at + window <= length) {
    guint8 by = needles->jumps[pair_at(data + at + window - 2)];
    if (by == 0) {
      return at;
    }
    at += by;
  }
  return MIN(at, length);
}

gsize needles_next(const Needles *needles, NeedlesPlace *place, const guint8 *data, gsize length,
                   gsize *at) {
  guint32 state = place->state;
  gsize i = *at;
  while (i < length) {
    if (state == 0 && needles->shortest >= 2) {
      i = jump(needles, data, length, i);
      if (i == length) {
        break;
      }
    }
    state = step(needles, state, data[i++]);
    if (node_at(needles, state)->match != 0) {
      place->state = state;
      *at = i;
      return node_at(needles, state)->match;
    }
  }
  place->state = state;
  *at = i;
  return 0;
}

gsize needles_open(const Needles *needles, NeedlesPlace place) {
  return node_at(needles, place.state)->depth;
}

gboolean needles_any(const Needles *needles, const void *data, gsize length) {
  NeedlesPlace place = {0};
  gsize at = 0;
  return needles_next(needles, &place, data, length, &at) > 0;
}
