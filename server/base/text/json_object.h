/*
 * json_object.h - validates JSON objects and texts from clients before they are stored.
 *
 * Thread: any.
 */
#ifndef TW_JSON_OBJECT_H
#define TW_JSON_OBJECT_H

#include <jansson.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

enum { TW_MAX_TEXT = 512 };

/* The object in the text; `what` names it in errors.  Free with json_decref.  TW_BAD_REQUEST with
 * the offset. */
enum tw_status tw_json_object_parse(
        struct tw_str text, const char *what, json_t **ret, struct tw_err *err) TW_MUST_USE;

/* Checks that a text can be stored and displayed: at most TW_MAX_TEXT bytes, no control
 * characters. */
enum tw_status tw_check_text(const char *name, const char *value, struct tw_err *err) TW_MUST_USE;

#endif
