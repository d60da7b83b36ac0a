/*
 * json.h - validates JSON objects and texts from clients before they are stored.
 *
 * Thread: any.
 */
#ifndef TW_JSON_H
#define TW_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

enum { TW_MAX_TEXT = 512 };

/* The object in the text; `what` names it in errors.  Free with json_decref.  TW_BAD_REQUEST with
 * the offset. */
enum tw_status tw_json_object_parse(
        struct tw_str text, const char *what, json_t **ret, struct tw_err *err) TW_MUST_USE;

/* The value of a string member; "" if missing or not a string. */
const char *tw_json_text(const json_t *o, const char *name);
/* The value of an integer member; 0 if missing or not an integer. */
int64_t tw_json_integer(const json_t *o, const char *name);
/* The same; 0 if it is negative. */
uint64_t tw_json_count(const json_t *o, const char *name);
/* A string value, with U+FFFD for each byte that is not UTF-8: one stored text must not fail a
 * whole response.  NULL: out of memory. */
json_t *tw_json_string(const char *text);
/* Whether all members of an object have one of these names, ended by NULL. */
bool tw_json_has_only(const json_t *o, const char *const *names);

/* Checks that a text can be stored and displayed: at most TW_MAX_TEXT bytes, no control
 * characters. */
enum tw_status tw_check_text(const char *name, const char *value, struct tw_err *err) TW_MUST_USE;

/* Values that are incomplete because memory ran out.
 *
 * jansson reports each failure individually, and a list whose append failed is shorter.  A
 * value built with many appends is complete only if none failed, so failed allocations are counted
 * per thread, and incomplete responses and tasks are not sent. */
/* Call once, before the first value is created. */
void tw_json_watch(void);
/* Whether an allocation for a JSON value failed in this thread since the last call. */
bool tw_json_oom(void);
/* json_dumps of a complete value; NULL if an allocation failed, and for NULL.  Free with free(). */
char *tw_json_dumps(const json_t *json, size_t flags);
/* The rest of a file, which is one value; NULL if it is not.  json_loadfd reads byte by byte. */
json_t *tw_json_load_fd(int fd);
/* The value, or NULL if it is NULL or a member could not be set (failed, not 0), which frees it:
 * tw_json_complete(o, json_object_set_new(o, ...) | json_object_set_new(o, ...)). */
json_t *tw_json_complete(json_t *json, int failed);

#endif
