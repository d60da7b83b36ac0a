/*
 * catalogue_annotation.h - a trace's title, tags and annotations, set by people.  Thread: any.
 */
#ifndef TW_CATALOGUE_ANNOTATION_H
#define TW_CATALOGUE_ANNOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/ulid.h"

struct tw_catalogue;
struct tw_fields; /* catalogue_row.h: the JSON of rows */

/* Tags have no commas, so that several fit one query parameter. */
enum { TW_TITLE_BYTES = 200, TW_TAG_BYTES = 64, TW_TAGS_MAX = 20 };

struct tw_tag_list { /* duplicates are ignored */
	const char *const *tags;
	size_t n;
};
struct tw_trace_edit {     /* unset fields stay unchanged */
	const char *title; /* NULL: unset */
	bool sets_pinned, pinned;
	bool sets_tags;                                 /* `tags` replaces all */
	struct tw_tag_list tags, add_tags, remove_tags; /* in this order */
};
/* TW_NOT_FOUND.  TW_CONFLICT if the trace would have more than TW_TAGS_MAX tags. */
enum tw_status tw_catalogue_trace_edit(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_trace_edit *edit, struct tw_err *err) TW_MUST_USE;

enum { TW_ANNOTATION_BYTES = 4000, TW_ANNOTATIONS_MAX = 500, TW_METHOD_KEY_BYTES = 512 };

struct tw_annotation {
	const char *id, *author, *text;
	int64_t created_ms, edited_ms; /* edited_ms 0: never */
	int64_t ts_ns;                 /* from the trace's clock base; -1: no time */
	int64_t dur_ns;                /* 0: an instant */
	int64_t tid;                   /* -1: no thread */
	int64_t method_index;          /* -1: no method */
	const char *method_key;        /* finds the method again if its index changes */
};
extern const struct tw_fields tw_annotation_fields; /* its JSON lacks the method */
/* id, created_ms and edited_ms of *a are ignored.  TW_CONFLICT if the trace has
 * TW_ANNOTATIONS_MAX. */
enum tw_status tw_catalogue_annotation_add(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_annotation *a, char ret_id[TW_ID_BYTES],
        struct tw_err *err) TW_MUST_USE;
/* In the order of creation; none if the trace does not exist. */
enum tw_status tw_catalogue_annotations(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *arena, struct tw_annotation **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_annotation_edit(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, const char *text, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_annotation_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, struct tw_err *err) TW_MUST_USE;

#endif
