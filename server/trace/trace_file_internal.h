/* trace_file_internal.h - shared by writing and reading of trace files. */
#ifndef TW_TRACE_FILE_INTERNAL_H
#define TW_TRACE_FILE_INTERNAL_H

#include <sqlite3.h>

#include "server/trace/trace_file.h"

enum { TW_TRACE_APPLICATION_ID = 0x54575452 /* "TWTR" */, TW_TRACE_SCHEMA_VERSION = 2 };
/* Limits on the decoded size of a frame: a chunk of 65,536 slices with every column at its longest,
 * or a call tree of 64 M nodes. */
enum { TW_CHUNK_MAX_BYTES = 8 << 20 };
#define TW_TRACE_SYSTEM_KEY "system" /* the one row of trace_meta that is not a scalar */
#define TW_TREE_MAX_BYTES   ((uint64_t)1 << 30)

/* TW_FULL, TW_NOMEM, TW_CORRUPT or TW_IO, with SQLite's message. */
enum tw_status tw_trace_sql_fail(sqlite3 *db, const char *doing, struct tw_err *err);

/* Binds text after making it valid UTF-8; `clean` is scratch space. */
void tw_trace_bind_text(sqlite3_stmt *s, int at, struct tw_str text, struct tw_buf *clean);

/* Text of a column, "" for NULL. */
struct tw_str tw_trace_text_at(sqlite3_stmt *s, int col);
/* Returns whether, since the last call, this thread got "" for a text because memory ran out; the
 * values read are then wrong. */
bool tw_trace_text_oom(void);
/* Whether the thread's slices have times. */
bool tw_trace_has_times(const struct tw_thread_info *t);
/* As tw_trace_file_duration_ns; `timed`: a thread's slices have times. */
int64_t tw_trace_duration_ns(const struct tw_trace_info *i, bool timed);

sqlite3 *tw_trace_file_db(struct tw_trace_file *f);

/* Positions of the chunks of all threads (trace_file_chunks.c).  Read in one pass, as the table has
 * no index by thread: a query per thread would scan the table each time. */
struct tw_chunk_directory {
	struct tw_chunk_row *rows; /* by thread, level, time */
	uint32_t n, cap;
	bool loaded;
};
/* Reads the directory once. */
enum tw_status tw_chunk_directory_load(
        struct tw_chunk_directory *d, sqlite3 *db, struct tw_err *err) TW_MUST_USE;
void tw_chunk_directory_of(const struct tw_chunk_directory *d, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n);

#endif
