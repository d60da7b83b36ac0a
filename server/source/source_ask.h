/*
 * source_ask.h - questions about clones, each answered by a child that can read that clone alone.
 *
 * Clones lie in DIR/PROJECT/CLONE, where DIR is the server's setting and PROJECT the project's
 * name: no project reaches another's.  Children go by turns (source_turn.h); answers are kept
 * until the clone changes, for five minutes at most, 256 of them.  Thread: any.
 */
#ifndef TW_SOURCE_ASK_H
#define TW_SOURCE_ASK_H

#include <jansson.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "server/base/app.h"

struct tw_sources;

struct tw_sources *tw_sources_new(const struct tw_config *config); /* NULL: no memory */
struct tw_sources *tw_sources_free(struct tw_sources *s);

struct tw_source_question {
	const char *project; /* its name */
	const char *clone;
	json_t *task; /* worker_source.c's, without limits and time */
	uint64_t ms;  /* that are left */
};

/* The child's answer (json_decref is owed).  What has no answer is told in words: no such folder, a
 * child that died or took too long (TW_NOT_FOUND, TW_DEADLINE, TW_CORRUPT); TW_BUSY: later. */
enum tw_status tw_sources_ask(struct tw_sources *s, const struct tw_source_question *q,
        json_t **ret, struct tw_err *err) TW_MUST_USE;

/* A clone's folder below dir, open for reading; nothing outside of dir is reached, by no link. */
enum tw_status tw_sources_open(const char *dir, const char *project, const char *clone, int *ret,
        struct tw_err *err) TW_MUST_USE;

/* Lines of /metrics. */
void tw_sources_metrics(struct tw_sources *s, struct tw_buf *out);

/* A name that is a folder and nothing else. */
bool tw_sources_is_folder(const char *name);

#endif
