/*
 * file_copy.h - a file copied into another, durably.  Thread: any.
 */
#ifndef TW_FILE_COPY_H
#define TW_FILE_COPY_H

#include "decoder/base/err.h"

/* Into `to`, which is replaced, for its owner alone.  TW_NOT_FOUND when there is no `from`, or it
 * is a link. */
enum tw_status tw_file_copy(const char *from, const char *to, struct tw_err *err) TW_MUST_USE;

/* All that is left to read from an open one. */
enum tw_status tw_file_copy_from(int from, const char *to, struct tw_err *err) TW_MUST_USE;

#endif
