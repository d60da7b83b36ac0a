/*
 * s3_key.h - the access key that signs requests to a store, and its source.
 *
 * A file in the format of AWS's credentials (its first section), read again when it changes, as for
 * temporary credentials; without one, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
 * AWS_SESSION_TOKEN of the environment.  Never a flag: process lists show those.
 * Thread: one at a time.
 */
#ifndef TW_S3_KEY_H
#define TW_S3_KEY_H

#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_S3_KEY_ID = 160, TW_S3_SECRET = 257, TW_S3_TOKEN = 4096 };

struct tw_s3_key {
	char id[TW_S3_KEY_ID], secret[TW_S3_SECRET], token[TW_S3_TOKEN]; /* token "": none */
	int64_t read_ns; /* modification time of its file */
};

/* file "": from the environment.  Does not read a file that has not changed. */
enum tw_status tw_s3_key_read(
        const char *file, struct tw_s3_key *key, struct tw_err *err) TW_MUST_USE;

#endif
