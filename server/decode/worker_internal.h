/*
 * worker_internal.h - what the child's tasks share: its descriptors, its limits, reading and
 * writing.
 */
#ifndef TW_WORKER_INTERNAL_H
#define TW_WORKER_INTERNAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "decoder/limits.h"
#include "server/decode/worker.h"

/* Descriptors; inputs follow the first one. */
enum { TW_WORKER_OUTPUT = 4, TW_WORKER_INPUT = 6 };

typedef enum tw_status (*tw_worker_push_fn)(
        void *arg, const uint8_t *p, size_t n, struct tw_err *err);

/* The defaults, with what `o`, the task's "limits", says. */
struct tw_limits tw_worker_limits(const json_t *o);
/* Uploads are strangers': nobody can know where tables put what is in them. */
enum tw_status tw_worker_salt(struct tw_limits *l, struct tw_err *err) TW_MUST_USE;
/* Feeds what is left of a descriptor to `push`. */
enum tw_status tw_worker_read(int fd, uint64_t *ret_bytes, tw_worker_push_fn push, void *arg,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_worker_write(int fd, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;

/* A line before the answer, for a parent that asked for it (child.h, early). */
void tw_worker_send_line(const json_t *o);

/* Tasks "map" and "retrace": *ret is what was counted, owed to json_decref. */
enum tw_status tw_worker_map(const json_t *task, json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Task "judge": answers questions (preflight_line.h) until there are no more. */
enum tw_status tw_worker_preflight(
        const json_t *task, json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Task "source": reads the clone that is the first input, into which it has gone. */
enum tw_status tw_worker_source(const json_t *task, json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Before the child is locked in. */
enum tw_status tw_worker_source_begin(struct tw_err *err) TW_MUST_USE;
enum tw_status tw_worker_retrace(const json_t *task, json_t **ret, struct tw_err *err) TW_MUST_USE;

#endif
