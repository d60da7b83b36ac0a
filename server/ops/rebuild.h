/*
 * rebuild.h - a catalogue from the records in storage (trace_record.h), after it was lost.
 *
 * Restores traces with their parts, titles, tags and annotations, and builds with their mappings. A
 * trace whose decoded file exists is ready; one with only its upload is queued for decoding.  The
 * server computes fleet counts, names and ANR groups again.  Accounts, keys and settings are not
 * in the records. Thread: the caller's.
 */
#ifndef TW_REBUILD_H
#define TW_REBUILD_H

#include "decoder/base/err.h"
#include "server/storage/blob.h"

struct tw_catalogue;

struct tw_rebuild_sums {
	uint64_t records;               /* number of records read */
	uint64_t ready, queued, failed; /* traces */
	uint64_t builds;                /* with a mapping or a commit */
	uint64_t skipped;               /* records that are damaged or whose files are missing */
};

struct tw_rebuild {
	struct tw_catalogue *catalogue; /* empty, or TW_CONFLICT */
	struct tw_blobs *blobs;
	/* Called for each record that was skipped, with the reason. */
	void (*skip)(void *arg, const char *key, const char *why);
	void (*step)(void *arg, const struct tw_rebuild_sums *so_far); /* NULL: not called */
	void *arg;
};

/* On failure the caller must delete the catalogue. */
enum tw_status tw_rebuild_run(
        const struct tw_rebuild *of, struct tw_rebuild_sums *ret, struct tw_err *err) TW_MUST_USE;

#endif
