/*
 * trace_sql_memory.h - limits the memory that SQLite allocates for a statement.
 *
 * SQLite checks its progress handler between instructions, but one call of a function can allocate
 * hundreds of megabytes.  So the limit is in SQLite's allocator: an allocation above it fails, and
 * the statement ends with SQLITE_NOMEM.
 * Thread: any; each thread has its own limit and counts its own allocations.
 */
#ifndef TW_TRACE_SQL_MEMORY_H
#define TW_TRACE_SQL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Installs the allocator.  Call before the first use of SQLite. */
void tw_sql_memory_watch(void);
/* This thread may allocate that many bytes more. */
void tw_sql_memory_limit(int64_t bytes);
void tw_sql_memory_unlimit(void);
/* Whether an allocation has failed for the limit in effect. */
bool tw_sql_memory_is_short(void);

#endif
