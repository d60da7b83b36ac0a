/*
 * err.h - error reporting of all functions that can fail.
 *
 * A function that can fail returns enum tw_status and takes struct tw_err * as its last parameter.
 * The code that detects an error fills the record with tw_fail; its callers return the status
 * unchanged.  The record is not modified on success.  NULL is accepted if only the status matters.
 * Thread: any; a record belongs to one caller.
 */
#ifndef TW_ERR_H
#define TW_ERR_H

#include <stdint.h>

/* name, word in JSON responses, HTTP status */
#define TW_STATUS_MAP(X)                                                                           \
	X(OK, "ok", 200)                                                                           \
	X(BAD_REQUEST, "bad_request", 400)                                                         \
	X(NO_TOKEN, "no_token", 401)                                                               \
	X(DENIED, "denied", 403)                                                                   \
	X(NOT_FOUND, "not_found", 404)                                                             \
	X(NO_METHOD, "method_not_allowed", 405)                                                    \
	X(CONFLICT, "conflict", 409)                                                               \
	X(NO_LENGTH, "length_required", 411)                                                       \
	X(PRECONDITION, "precondition_failed", 412)                                                \
	X(TOO_LARGE, "too_large", 413)                                                             \
	X(LONG_TARGET, "target_too_long", 414)                                                     \
	X(UNSUPPORTED, "unsupported", 415)                                                         \
	X(CORRUPT, "malformed", 422)                                                               \
	X(LOCKED, "locked", 423)                                                                   \
	X(RATE, "too_many_requests", 429)                                                          \
	X(LONG_HEADER, "headers_too_large", 431)                                                   \
	X(CHECKSUM, "checksum_mismatch", 460)                                                      \
	X(BUG, "internal", 500)                                                                    \
	X(IO, "storage", 503)                                                                      \
	X(BUSY, "busy", 503)                                                                       \
	X(NOMEM, "out_of_memory", 503)                                                             \
	X(DEADLINE, "deadline", 504)                                                               \
	X(FULL, "disk_full", 507)

enum tw_status {
#define X(name, word, http) TW_##name,
	TW_STATUS_MAP(X)
#undef X
};

struct tw_err {
	enum tw_status code;
	uint64_t offset; /* bytes into the decompressed input; UINT64_MAX: no offset */
	char msg[200];   /* one line, safe to show to the sender of the input */
};

#define TW_NO_OFFSET UINT64_MAX
#define TW_MUST_USE  __attribute__((warn_unused_result))

/* Each of these fills *err (if not NULL) and returns the code, so that callers can write `return
 * tw_fail(...)`.  Control characters (tw_utf8_is_control) and invalid UTF-8 in the text become
 * '?'. */
enum tw_status tw_fail(struct tw_err *err, enum tw_status code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4), nonnull(3)));

/* An error at an offset of the input. */
enum tw_status tw_fail_at(struct tw_err *err, enum tw_status code, uint64_t offset, const char *fmt,
        ...) __attribute__((format(printf, 4, 5), nonnull(4)));

/* The text, a colon and the description of errno. */
enum tw_status tw_fail_errno(struct tw_err *err, enum tw_status code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4), nonnull(3)));

/* Copies a record: *err = *from, unless err is NULL. */
void tw_err_copy(struct tw_err *err, const struct tw_err *from) __attribute__((nonnull(2)));

/* TW_NOMEM. */
enum tw_status tw_oom(struct tw_err *err);

/* The JSON word ("malformed") and the HTTP status (422) of a code. */
const char *tw_status_name(enum tw_status code);
int tw_status_http(enum tw_status code);

/* The code of a JSON word; TW_BUG if unknown. */
enum tw_status tw_status_of_name(const char *word);

#endif
