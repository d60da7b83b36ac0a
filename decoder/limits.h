/*
 * limits.h - all limits of a decode job, in one struct.
 *
 * tw_limits_default returns the documented defaults; the server overrides single fields from its
 * configuration.
 */
#ifndef TW_LIMITS_H
#define TW_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct tw_limits {
	uint64_t max_decoded_bytes; /* after decompression */
	uint32_t max_ratio;         /* decoded : compressed, checked after 1 MiB decoded */
	uint32_t max_nesting;       /* nested compressions */
	uint32_t max_window_log;    /* of zstd, whose window takes up to 2^max_window_log bytes */
	uint64_t max_slices;
	uint32_t max_depth; /* deeper calls are dropped and counted */
	uint32_t max_threads;
	uint32_t max_methods;    /* distinct methods and names of one trace */
	uint32_t max_name_bytes; /* longer names are truncated and counted */
	uint32_t max_notes;      /* markers, states, counters of one trace */
	uint32_t max_tree_nodes; /* of one thread's call tree; calls on further paths are only
	                          * counted */
	uint64_t max_memory_bytes;
	/* Salt of hash tables keyed by input (base/hash.h): random where inputs are untrusted, 0
	 * where runs must be reproducible. */
	uint64_t hash_salt;
};

static inline struct tw_limits tw_limits_default(void)
{
	return (struct tw_limits){
	        .max_decoded_bytes = (uint64_t)4 << 30,
	        .max_ratio = 200,
	        .max_nesting = 3,
	        .max_window_log = 27, /* the default limit of zstd's own tools */
	        .max_slices = (uint64_t)64 << 20,
	        .max_depth = 4096,
	        .max_threads = 4096,
	        .max_methods = 4 << 20,
	        .max_name_bytes = 4096,
	        .max_notes = 1 << 20,
	        .max_tree_nodes = 512 << 10,
	        .max_memory_bytes = (uint64_t)1536 << 20,
	};
}

#endif
