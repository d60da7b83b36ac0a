/*
 * limits.h - every bound of a decode job, in one record.
 *
 * Constructors take it whole; tw_limits_default fills in the documented
 * defaults.  The server overrides single fields from its configuration.
 */
#ifndef TW_LIMITS_H
#define TW_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct tw_limits {
	uint64_t max_decoded_bytes; /* after decompression */
	uint32_t max_ratio;         /* decoded : compressed, checked past 1 MiB decoded */
	uint32_t max_nesting;       /* compressions inside each other */
	uint32_t max_window_log;    /* of zstd, which keeps 2 to that many bytes */
	uint64_t max_slices;
	uint32_t max_depth; /* deeper calls are left out and counted */
	uint32_t max_threads;
	uint32_t max_methods;    /* distinct methods and names of one trace */
	uint32_t max_name_bytes; /* longer names are cut and counted */
	uint32_t max_notes;      /* marks, states, counters of one trace */
	uint32_t max_tree_nodes; /* of one thread's call tree; more paths are only counted */
	uint64_t max_memory_bytes;
	/* Where tables put what the input chose (base/hash.h): random where inputs are a
	 * stranger's, 0 where each run is to do the same. */
	uint64_t hash_salt;
};

struct tw_limits tw_limits_default(void);

#endif
