/* file_copy.h - durable copies of files.  Thread: any. */
#ifndef TW_FILE_COPY_H
#define TW_FILE_COPY_H

#include "decoder/base/err.h"

/* Copies to `to`, which is replaced and readable by its owner only.  TW_NOT_FOUND if `from` does
 * not exist or is a link. */
enum tw_status tw_file_copy(const char *from, const char *to, struct tw_err *err) TW_MUST_USE;

/* Copies the rest of an open file. */
enum tw_status tw_file_copy_from(int from, const char *to, struct tw_err *err) TW_MUST_USE;

#endif
