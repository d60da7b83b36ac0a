/*
 * worker_internal.h - shared by the child's tasks: descriptors, limits, reading and writing.
 */
#ifndef TW_WORKER_INTERNAL_H
#define TW_WORKER_INTERNAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "decoder/limits.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/decode/worker.h"

/* Descriptors; inputs follow the first one. */
enum { TW_WORKER_OUTPUT = 4, TW_WORKER_INPUT = 6 };

typedef enum tw_status (*tw_worker_push_fn)(
        void *arg, const uint8_t *p, size_t n, struct tw_err *err);

/* The defaults, overridden by `o`, the task's "limits".  Uploads are untrusted: a random salt makes
 * positions in hash tables unpredictable. */
struct tw_limits tw_worker_limits(const json_t *o);
/* Feeds the remaining bytes of a descriptor to `push`. */
enum tw_status tw_worker_read(int fd, uint64_t *ret_bytes, tw_worker_push_fn push, void *arg,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_worker_write(int fd, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;

/* A line before the answer, for a parent that has set child.early or collects lines (child.h).
 * False: it was not sent. */
bool tw_worker_send_line(const json_t *o);

/* A task named by tw_mapping_kind_words: *ret has the counts; the caller frees with json_decref. */
enum tw_status tw_worker_mapping(enum tw_mapping_kind kind, const json_t *task, json_t **ret,
        struct tw_err *err) TW_MUST_USE;
/* Task "source": reads the clone that is the first input.  The working directory is the clone. */
enum tw_status tw_worker_source(const json_t *task, json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Call before the child enters its sandbox. */
enum tw_status tw_worker_source_begin(struct tw_err *err) TW_MUST_USE;

/* Makes the child misbehave, to test its limits: TRACEWELL_WORKER_FAULT=crash|loop|eat|sleep|run|
 * tire|unlocked in the server's environment, TRACEWELL_PREFLIGHT_FAULT for preflight processes
 * (preflight.h), TRACEWELL_SOURCE_FAULT for clone readers.  Only in test builds (property
 * test_faults of a profile); other builds read no environment variable here. */
#if TW_TEST_FAULTS
enum tw_status tw_worker_fault(const char *variable, struct tw_err *err) TW_MUST_USE;
#else
static inline enum tw_status tw_worker_fault(const char *variable, struct tw_err *err)
{
	(void)variable;
	(void)err;
	return TW_OK;
}
#endif

#endif
