/*
 * catalogue_files.h - the files that rows refer to, for sweeps, checks and backups: one, a page, or
 * each of them.  Thread: any.
 */
#ifndef TW_CATALOGUE_FILES_H
#define TW_CATALOGUE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/ulid.h"

struct tw_catalogue;

struct tw_blob_list { /* content hashes */
	const char **sha256;
	size_t n;
};

/* Whether a row refers to this blob / trace file.  Archived traces have no trace file, and files in
 * rows (small_file.h) are not referred to. */
enum tw_status tw_catalogue_has_blob(
        struct tw_catalogue *c, const char *sha256, bool *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_has_decoded(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_has_trace(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err) TW_MUST_USE;
/* The project of a trace, "" if there is no such trace. */
enum tw_status tw_catalogue_project_of_trace(struct tw_catalogue *c, const char *trace_id,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;

/* The same for many names in one statement.  TW_NAME_PIECE: objects of resumable uploads. */
enum tw_name_kind { TW_NAME_BLOB, TW_NAME_DECODED, TW_NAME_TRACE, TW_NAME_PIECE };
enum tw_status tw_catalogue_have(struct tw_catalogue *c, enum tw_name_kind what,
        const char *const *names, size_t n, bool *ret, struct tw_err *err) TW_MUST_USE;

struct tw_stored_file {
	const char *project_id, *id; /* of a trace, or of a build */
	const char *what; /* a part's name; "mapping", "retrace", their "... image", "... upload" */
	const char *sha256; /* "" unknown: a decoded file that a rebuild found (rebuild.c) */
	uint64_t bytes;     /* 0 unknown */
	bool has_upload;    /* of a decoded file: its trace can be decoded again */
};
/* A page of files in a fixed order, after the row `after` (the last row of the previous page; NULL:
 * the first page); at most `limit`, none at the end. */
typedef enum tw_status (*tw_stored_page_fn)(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err);
enum tw_status tw_catalogue_stored_parts(struct tw_catalogue *c, const struct tw_stored_file *after,
        uint32_t limit, struct tw_arena *a, struct tw_stored_file **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_stored_mappings(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Of ready traces; `what` is "decoded". */
enum tw_status tw_catalogue_stored_traces(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* `f` may be modified; it, everything it points to and `a` are valid until the next page.  Within a
 * page, the previous rows precede it in memory. */
typedef enum tw_status (*tw_stored_fn)(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err);

/* Calls `one` for every file, and stops at its first failure.  Reads a page at a time, so that
 * neither memory nor a snapshot of the catalogue grows with their number. */
enum tw_status tw_stored_each(struct tw_catalogue *c, tw_stored_page_fn page, tw_stored_fn one,
        void *arg, struct tw_err *err) TW_MUST_USE;

/* Number of files; 0 if it cannot be determined. */
uint64_t tw_stored_count(struct tw_catalogue *c, tw_stored_page_fn page);

#endif
