/*
 * delete.h - deletes a trace, or only its upload or its decoded file, or the data of a project: the
 * rows first, then files without references.
 *
 * Files left by a crash in between are removed by the next sweep (I9).
 * Thread: any.
 */
#ifndef TW_DELETE_H
#define TW_DELETE_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_blobs;
struct tw_catalogue;
struct tw_pipeline;
struct tw_recorder;
struct tw_store_job;

struct tw_deleter { /* the parts that have to do with a trace's end */
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	struct tw_recorder *recorder;
	struct tw_store_job *store_job;
	struct tw_pipeline *pipeline; /* subtracts the traces; NULL: another server does */
};

/* Expired traces remain counted in rollups.  Traces deleted by a user are also subtracted from
 * rollups in ClickHouse; rollups in the catalogue do not support subtraction. */
enum tw_delete_sums { TW_DELETE_FILES, TW_DELETE_WITH_SUMS };
/* TW_NOT_FOUND if the trace does not exist. */
enum tw_status tw_delete_trace(const struct tw_deleter *d, const char *project_id,
        const char *trace_id, enum tw_delete_sums sums, struct tw_arena *a,
        struct tw_err *err) TW_MUST_USE;
/* Deletes the upload, not the decoded file.  TW_NOT_FOUND if the trace is not ready, or pinned, or
 * if its decoded file is missing: the trace is then queued for decoding from its upload. */
enum tw_status tw_delete_upload(const struct tw_deleter *d, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_err *err) TW_MUST_USE;
/* Deletes the decoded file; the upload remains, and the trace is archived until it is opened.
 * TW_NOT_FOUND as above. */
enum tw_status tw_delete_decoded(const struct tw_deleter *d, const char *project_id,
        const char *trace_id, struct tw_err *err) TW_MUST_USE;
/* Deletes a part of the data of a project: some traces, then builds, then rows without files.
 * *ret_any: there was something.  After a crash, the next call continues. */
enum tw_status tw_delete_project_part(const struct tw_deleter *d, const char *project_id,
        struct tw_arena *a, bool *ret_any, struct tw_err *err) TW_MUST_USE;

#endif
