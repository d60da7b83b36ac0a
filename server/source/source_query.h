/*
 * source_query.h - queries on clones, each executed by a child process that can read only that
 * clone.
 *
 * Clones are stored in DIR/PROJECT/CLONE, where DIR is the server's setting and PROJECT the
 * project's name: no project reaches another's.  Children are scheduled fairly
 * (source_scheduler.h); up to 256 results are cached until the clone changes, for five minutes at
 * most.  Thread: any.
 */
#ifndef TW_SOURCE_QUERY_H
#define TW_SOURCE_QUERY_H

#include <jansson.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"

struct tw_config;
struct tw_sources;

struct tw_sources *tw_sources_new(const struct tw_config *config); /* NULL: out of memory */
struct tw_sources *tw_sources_free(struct tw_sources *s);

struct tw_source_request {
	const char *project; /* its name */
	const char *clone;
	json_t *task; /* as for worker_source.c, without limits and time */
	uint64_t ms;  /* that are left until the deadline */
};

/* The child's result (the caller frees with json_decref).  Errors have a message: no such
 * folder, a child that died or took too long (TW_NOT_FOUND, TW_DEADLINE, TW_CORRUPT); TW_BUSY:
 * retry later. */
enum tw_status tw_sources_query(struct tw_sources *s, const struct tw_source_request *q,
        json_t **ret, struct tw_err *err) TW_MUST_USE;

/* Opens a clone's folder below dir for reading; links cannot lead outside of dir. */
enum tw_status tw_sources_open(const char *dir, const char *project, const char *clone, int *ret,
        struct tw_err *err) TW_MUST_USE;

/* Lines of /metrics. */
void tw_sources_metrics(struct tw_sources *s, struct tw_buf *out);

/* Returns whether the name is a plain folder name. */
bool tw_sources_is_folder(const char *name);

#endif
