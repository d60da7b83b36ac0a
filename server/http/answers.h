/*
 * answers.h - answers that took long to make, kept for whoever asks the same.
 *
 * A key says all that the answer depends on: which project and trace, what read it, its names, the
 * question, how the bytes are compressed.  What was not asked for longest makes room.
 * Thread: any.
 */
#ifndef TW_ANSWERS_H
#define TW_ANSWERS_H

#include <stdbool.h>

#include "decoder/base/buf.h"

struct tw_answers;

/* 0: nothing is kept.  NULL: no memory. */
struct tw_answers *tw_answers_new(uint64_t max_bytes);
struct tw_answers *tw_answers_free(struct tw_answers *a); /* NULL is fine; returns NULL */

/* Appends a copy; false, with nothing appended: it is not there, or there is no memory. */
bool tw_answers_take(struct tw_answers *a, const char *key, struct tw_buf *out);

/* Copies it, unless it is too large beside the others to be worth it. */
void tw_answers_keep(struct tw_answers *a, const char *key, struct tw_str bytes);

void tw_answers_metrics(struct tw_answers *a, struct tw_buf *out);

#endif
