#include "server/trace/trace_sql_memory.h"

#include <sqlite3.h>
#include <stddef.h>

static sqlite3_mem_methods below;  /* SQLite's own allocator */
static _Thread_local int64_t used; /* allocated less freed: negative if others allocated it */
static _Thread_local int64_t most = INT64_MAX;
static _Thread_local bool is_short;

static bool may_add(int64_t bytes)
{
	bool may = used + bytes <= most;

	is_short = is_short || !may;
	return may;
}

static void *limited_malloc(int bytes)
{
	void *p = may_add(bytes) ? below.xMalloc(bytes) : NULL;

	if (p)
		used += below.xSize(p);
	return p;
}

static void *limited_realloc(void *old, int bytes)
{
	int before = below.xSize(old);
	void *p = may_add((int64_t)bytes - before) ? below.xRealloc(old, bytes) : NULL;

	if (p)
		used += below.xSize(p) - before;
	return p;
}

static void counted_free(void *p)
{
	used -= below.xSize(p);
	below.xFree(p);
}

void tw_sql_memory_watch(void)
{
	sqlite3_mem_methods limited;

	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &below) != SQLITE_OK)
		return;
	limited = below;
	limited.xMalloc = limited_malloc;
	limited.xRealloc = limited_realloc;
	limited.xFree = counted_free;
	(void)sqlite3_config(SQLITE_CONFIG_MALLOC, &limited);
}

void tw_sql_memory_limit(int64_t bytes)
{
	most = used + bytes;
}

void tw_sql_memory_unlimit(void)
{
	most = INT64_MAX;
	is_short = false;
}

bool tw_sql_memory_is_short(void)
{
	return is_short;
}
