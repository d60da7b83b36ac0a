/*
 * quota.h - quotas of keys and devices: requests per minute and bytes per day.
 *
 * Each quota is a leaky bucket that drains evenly over its window: a burst of a full window is
 * allowed, and after it the average rate.  Memory has a fixed size (1.6 MiB, touched as it is
 * used): ids are hashed with a secret into slots, and within a set the id with the emptiest buckets
 * is evicted first.  So new ids evict each other, and never one that is at its limit.
 * The buckets are saved to a file, so that a restart does not reset quotas.
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
	uint64_t limit, left; /* limit 0: none */
	unsigned window_s;
	unsigned reset_s; /* until the quota is completely restored */
};

struct tw_quota;

struct tw_quota *tw_quota_new(const struct tw_quota_limits *limits); /* NULL: out of memory */
struct tw_quota *tw_quota_free(struct tw_quota *q);                  /* accepts NULL */

/* One request of that many bytes.  TW_RATE, without counting, if the quota is used up; *ret_wait_s
 * is the time until two requests, or that many bytes, are allowed.  More bytes than a day's quota
 * count as a day's. */
enum tw_status tw_quota_take(struct tw_quota *q, enum tw_quota_who who, const char *id,
        uint64_t bytes, int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err) TW_MUST_USE;
/* The same check without counting. */
enum tw_status tw_quota_check(struct tw_quota *q, enum tw_quota_who who, const char *id,
        uint64_t bytes, int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err) TW_MUST_USE;
/* Corrects an earlier take by that many bytes. */
void tw_quota_adjust(struct tw_quota *q, enum tw_quota_who who, const char *id, int64_t more_bytes,
        int64_t now_ms);
void tw_quota_remaining(struct tw_quota *q, enum tw_quota_who who, const char *id, int64_t now_ms,
        struct tw_quota_left ret[TW_QUOTA_WHAT]);

/* Writes the buckets that are not empty to the file, or reads them.  A missing or incomplete file
 * counts as empty: TW_NOT_FOUND, TW_CORRUPT. */
enum tw_status tw_quota_save(
        struct tw_quota *q, const char *path, int64_t now_ms, struct tw_err *err);
enum tw_status tw_quota_load(
        struct tw_quota *q, const char *path, int64_t now_ms, struct tw_err *err);

/* Refusals and slots in use, in Prometheus' format. */
void tw_quota_metrics(struct tw_quota *q, int64_t now_ms, struct tw_buf *out);

#endif
