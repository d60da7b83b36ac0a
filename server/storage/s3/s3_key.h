/*
 * s3_key.h - by which key requests to a store are signed, and where it comes from.
 *
 * A file in the form of AWS's credentials (its first section), read again when it changes, as those
 * that are lent for an hour do; without one AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
 * AWS_SESSION_TOKEN of the environment.  Never a flag: lists of processes show those.
 * Thread: one at a time.
 */
#ifndef TW_S3_KEY_H
#define TW_S3_KEY_H

#include <stdint.h>

#include "decoder/base/err.h"

enum { TW_S3_KEY_ID = 160, TW_S3_SECRET = 257, TW_S3_TOKEN = 4096 };

struct tw_s3_key {
	char id[TW_S3_KEY_ID], secret[TW_S3_SECRET], token[TW_S3_TOKEN]; /* token "": none */
	int64_t read_ns; /* of its file's last change */
};

/* file "": of the environment.  Reads nothing when the file is as it was. */
enum tw_status tw_s3_key_read(
        const char *file, struct tw_s3_key *key, struct tw_err *err) TW_MUST_USE;

#endif
