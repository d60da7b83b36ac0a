/*
 * json_memory.h - memory that JSON values lacked.
 *
 * jansson tells of each failure by itself, and a list whose append failed is simply short.  What is
 * made of many appends is whole only when none of them lacked memory, so this counts them for each
 * thread: an answer or a task of which something is missing is not sent.
 */
#ifndef TW_JSON_MEMORY_H
#define TW_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>

/* Once, before the first value is made. */
void tw_json_watch(void);
/* Did this thread lack memory for a value since the last call? */
bool tw_json_lacked(void);
/* json_dumps of what lacks nothing; NULL otherwise, and for NULL.  free() is owed. */
char *tw_json_dumps(const json_t *json, size_t flags);

#endif
