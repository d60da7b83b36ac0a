/*
 * trace_record.h - a record of each trace and build in storage, from which a lost catalogue can be
 * rebuilt (`tracewell check --rebuild`).
 *
 * records/X/<trace id>, by its last character, and records/x/<hash of project and build>, in the
 * data folder or as objects; the content is catalogue_record.h's.  A record is written after the
 * row was committed and removed before the row is deleted, so a record without a row shows that the
 * catalogue lost a committed row.  Records are not synced, and the first one of a trace is written
 * 10 seconds after its commit, unless it is decoded before: a power failure or a kill
 * may take the newest, and the next start writes them again from the catalogue
 * (tw_records_complete).  Only if the catalogue is lost at the same time do such uploads stay
 * without a row, as files.  Separate threads write records, so an upload does not wait for its own.
 * Thread: any.
 */
#ifndef TW_TRACE_RECORD_H
#define TW_TRACE_RECORD_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/err.h"
#include "server/storage/blob_store.h"

struct tw_catalogue;

struct tw_recorder;

enum tw_status tw_recorder_start(struct tw_catalogue *c, struct tw_blobs *b,
        struct tw_recorder **ret, struct tw_err *err) TW_MUST_USE;
/* Writes pending records first.  Accepts NULL; returns NULL. */
struct tw_recorder *tw_recorder_stop(struct tw_recorder *r);

/* Call after the commit of a change: queues the record.  A failure is logged, and the record is
 * written at the next start. */
void tw_record_trace(struct tw_recorder *r, const char *project_id, const char *trace_id);
void tw_record_new_trace(struct tw_recorder *r, const char *project_id, const char *trace_id);
void tw_record_build(struct tw_recorder *r, const char *project_id, const char *build_id);
/* The same, unless the build has a record. */
void tw_record_new_build(struct tw_recorder *r, const char *project_id, const char *build_id);
/* Call before the rows of a trace or build are deleted, and after. */
void tw_record_drop(struct tw_recorder *r, const char *trace_id);
void tw_record_drop_build(struct tw_recorder *r, const char *project_id, const char *build_id);

/* Starts writing missing records in the background; a failure is logged and attempted again after
 * a second, and each time after twice as long, at most an hour. */
void tw_records_complete(struct tw_recorder *r);

/* Reads a record.  TW_CORRUPT if it is not a record. */
enum tw_status tw_record_read(
        struct tw_blobs *b, const char *key, json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Whether the catalogue has the trace or build of a record. */
enum tw_status tw_record_known(struct tw_catalogue *c, struct tw_blobs *b, const char *key,
        bool *ret, struct tw_err *err) TW_MUST_USE;
/* The key of a trace's or build's record. */
void tw_record_key(const char *trace_id, char out[TW_STORE_KEY]);
void tw_record_build_key(const char *project_id, const char *build_id, char out[TW_STORE_KEY]);
/* Whether it is the record of a trace, whose id ends the key. */
bool tw_record_is_of_trace(const char *key);

#endif
