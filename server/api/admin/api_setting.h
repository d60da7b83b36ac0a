/*
 * api_setting.h - all settings of a project that are JSON documents.  Thread: any.
 */
#ifndef TW_API_SETTING_H
#define TW_API_SETTING_H

#include "decoder/base/err.h"

/* Whether readers can use this stored text.  TW_BAD_REQUEST with the reason.  TW_OK for a key that
 * is not a document, such as an encrypted token. */
enum tw_status tw_setting_text_check(
        const char *key, const char *text, struct tw_err *err) TW_MUST_USE;

#endif
