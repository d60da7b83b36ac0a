/*
 * catalogue_record.h - the rows of one trace or build as a JSON document, and back.
 *
 * A record holds all catalogue data of a trace or build that cannot be derived from its files:
 * {"tracewell_record": 1, "project": [{...}], "trace": [{...}], "part": [...], ...}, an array of
 * rows per table with the columns of catalogue_tables.h.  Columns with derived values (counted,
 * named, indexed) and the keys of callers are omitted, so a trace added from its record is counted
 * and indexed again.
 * Thread: any; an adder belongs to one.
 */
#ifndef TW_CATALOGUE_RECORD_H
#define TW_CATALOGUE_RECORD_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

struct tw_catalogue;
struct tw_stored_file;

enum { TW_RECORD_BYTES = 4 << 20 };

/* Reads records over a separate connection, with statements that stay prepared. */
struct tw_record_reader;
enum tw_status tw_record_reader_new(
        struct tw_catalogue *c, struct tw_record_reader **ret, struct tw_err *err) TW_MUST_USE;
struct tw_record_reader *tw_record_reader_free(struct tw_record_reader *r); /* accepts NULL */

/* Appends the record to *out.  TW_NOT_FOUND: no such trace or build.  waits: also if it is decoded
 * by now, as the end of its decode writes the record. */
enum tw_status tw_record_of_trace(struct tw_record_reader *r, const char *project_id,
        const char *trace_id, bool waits, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_record_of_build(struct tw_record_reader *r, const char *project_id,
        const char *build_id, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* Pages of everything that has a record, its ids only: all traces, and builds with a mapping
 * (uploaded or in use) or a commit. */
enum tw_status tw_catalogue_recorded_traces(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_recorded_builds(struct tw_catalogue *c,
        const struct tw_stored_file *after, uint32_t limit, struct tw_arena *a,
        struct tw_stored_file **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* Number of traces and builds in the catalogue. */
enum tw_status tw_catalogue_record_rows(
        struct tw_catalogue *c, uint64_t *ret, struct tw_err *err) TW_MUST_USE;
/* Whether the audit log has the deletion of the trace.  Reads the complete log. */
enum tw_status tw_catalogue_trace_was_deleted(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err) TW_MUST_USE;

/* The first row of a table in a record, or NULL. */
json_t *tw_record_row(const json_t *record, const char *table);

/* Adds the rows of many records in few transactions. */
struct tw_record_adder;
/* TW_CONFLICT if the catalogue has a project, an account or a trace. */
enum tw_status tw_record_adder_new(
        struct tw_catalogue *c, struct tw_record_adder **ret, struct tw_err *err) TW_MUST_USE;
/* `queue`: the trace must be decoded.  On failure no row of this record is added; others can still
 * be added. */
enum tw_status tw_record_add(struct tw_record_adder *r, const json_t *record, bool queue,
        struct tw_err *err) TW_MUST_USE;
/* Sums the traces' counts per build, and commits.  Frees in any case. */
enum tw_status tw_record_adder_end(
        struct tw_record_adder *r, enum tw_status st, struct tw_err *err) TW_MUST_USE;

#endif
