/*
 * quota.h - how much a key and a device may send: requests in a minute and bytes in a day.
 *
 * Each is a bucket that fills with use and runs dry evenly over its window, so that a burst of a
 * whole window's worth is fine and what comes after it is held to the pace.  What is remembered has
 * a fixed size (1.6 MiB, touched as it is used): ids are hashed with a secret into slots, and of
 * those that share a set the one with the emptiest buckets is forgotten first.  So ids that nobody
 * has seen before push out each other, and never one that is at its limit.
 * The buckets are kept in a file, so that a restart gives nobody a new day.
 * Thread: any.
 */
#ifndef TW_QUOTA_H
#define TW_QUOTA_H

#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum tw_quota_who { TW_QUOTA_KEY, TW_QUOTA_DEVICE, TW_QUOTA_WHO };
enum tw_quota_what { TW_QUOTA_REQUESTS, TW_QUOTA_BYTES, TW_QUOTA_WHAT };

struct tw_quota_limits { /* 0: no limit */
	uint64_t most[TW_QUOTA_WHO][TW_QUOTA_WHAT];
};

struct tw_quota_left {
	const char *name;     /* "key-requests" */
	uint64_t limit, left; /* limit 0: there is none */
	unsigned window_s;
	unsigned reset_s; /* until all of it is there again */
};

struct tw_quota;

struct tw_quota *tw_quota_new(const struct tw_quota_limits *limits); /* NULL: no memory */
struct tw_quota *tw_quota_free(struct tw_quota *q);                  /* NULL is fine */

/* One request of so many bytes.  TW_RATE, and nothing is counted, where there is no room for it;
 * *ret_wait_s is then when there is.  More bytes than a day has count as a day's. */
enum tw_status tw_quota_take(struct tw_quota *q, enum tw_quota_who who, const char *id,
        uint64_t bytes, int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err) TW_MUST_USE;
/* The same judgement; nothing is counted. */
enum tw_status tw_quota_judge(struct tw_quota *q, enum tw_quota_who who, const char *id,
        uint64_t bytes, int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err) TW_MUST_USE;
/* What was taken turned out to be so many bytes more, or fewer. */
void tw_quota_settle(struct tw_quota *q, enum tw_quota_who who, const char *id, int64_t more_bytes,
        int64_t now_ms);
void tw_quota_look(struct tw_quota *q, enum tw_quota_who who, const char *id, int64_t now_ms,
        struct tw_quota_left ret[TW_QUOTA_WHAT]);

/* Writes the buckets that are not empty to the file, or reads them from it.  A file that is not
 * there, or not whole, is as if nothing had been sent: TW_NOT_FOUND, TW_CORRUPT. */
enum tw_status tw_quota_save(
        struct tw_quota *q, const char *path, int64_t now_ms, struct tw_err *err);
enum tw_status tw_quota_load(
        struct tw_quota *q, const char *path, int64_t now_ms, struct tw_err *err);

/* Refusals and slots in use, in Prometheus' form. */
void tw_quota_metrics(struct tw_quota *q, int64_t now_ms, struct tw_buf *out);

#endif
