/* quota_int.h - shared by the buckets (quota.c) and their file (quota_file.c). */
#ifndef TW_QUOTA_INT_H
#define TW_QUOTA_INT_H

#include <pthread.h>
#include <sodium.h>

#include "server/http/limit/quota.h"

enum { TW_QUOTA_WAYS = 8, TW_QUOTA_KEY_SETS = 512, TW_QUOTA_DEVICE_SETS = 8192 };

struct tw_quota_slot {
	uint64_t key; /* of an id; 0: unused */
	int64_t empty_us[TW_QUOTA_WHAT];
};

struct tw_quota {
	pthread_mutex_t lock;
	uint8_t secret[crypto_shorthash_KEYBYTES]; /* prevents clients from choosing ids that share
	                                            * a set */
	struct tw_quota_limits limits;
	int64_t (*clock_ms)(void);
	int64_t last_us; /* the clock at the last use */
	struct tw_quota_slot *slots[TW_QUOTA_WHO];
	uint64_t refused[TW_QUOTA_WHO][TW_QUOTA_WHAT];
};

/* The slot of that key, created by evicting another if necessary.  Hold the lock. */
struct tw_quota_slot *tw_quota_slot(
        struct tw_quota *q, enum tw_quota_who who, uint64_t key, int64_t now_us);

#endif
