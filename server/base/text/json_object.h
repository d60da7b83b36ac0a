/*
 * json_object.h - JSON objects and texts of a stranger, checked before they are stored.
 *
 * Thread: any.
 */
#ifndef TW_JSON_OBJECT_H
#define TW_JSON_OBJECT_H

#include <jansson.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

enum { TW_MAX_TEXT = 512 };

/* The object that the text holds; `what` names it in refusals.  json_decref is owed.
 * TW_BAD_REQUEST with the offset. */
enum tw_status tw_json_object_parse(
        struct tw_str text, const char *what, json_t **ret, struct tw_err *err) TW_MUST_USE;

/* A text that may be stored and shown: at most TW_MAX_TEXT bytes, no control characters. */
enum tw_status tw_check_text(const char *name, const char *value, struct tw_err *err) TW_MUST_USE;

#endif
