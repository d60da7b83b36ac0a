/*
 * json_memory.h - detects JSON values that are incomplete because memory ran out.
 *
 * jansson reports each failure individually, and a list whose append failed is simply shorter.  A
 * value built with many appends is complete only if none failed, so failed allocations are counted
 * per thread, and incomplete responses and tasks are not sent.
 */
#ifndef TW_JSON_MEMORY_H
#define TW_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>

/* Call once, before the first value is created. */
void tw_json_watch(void);
/* Whether an allocation for a JSON value failed in this thread since the last call. */
bool tw_json_oom(void);
/* json_dumps of a complete value; NULL if an allocation failed, and for NULL.  Free with free(). */
char *tw_json_dumps(const json_t *json, size_t flags);
/* The value, or NULL if it is NULL or a member could not be set (failed, not 0), which frees it:
 * tw_json_complete(o, json_object_set_new(o, ...) | json_object_set_new(o, ...)). */
json_t *tw_json_complete(json_t *json, int failed);

#endif
