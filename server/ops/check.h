/*
 * check.h - is everything that the catalogue names on disk, and as it was written?
 *
 * Uploads and mappings are named by their content; decoded files have their
 * SHA-256 in the catalogue, and older ones checksums in their frames.  What was
 * derived from something that is whole is made again: a decoded file from its
 * upload, a compiled mapping from its text.  Works beside a running server.
 * Thread: the caller's.
 */
#ifndef TW_CHECK_H
#define TW_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/catalogue/catalogue.h"
#include "server/storage/blob.h"

struct tw_finding {
	const char *project_id, *id; /* the trace or build; "" when it is the catalogue itself */
	const char *what;            /* "decoded", a part's name, "mapping", "catalogue", ... */
	const char *text;            /* a sentence */
	bool repaired;
};

struct tw_check_sums {
	uint64_t uploads, mappings, decoded; /* files looked at */
	uint64_t bytes;                      /* read */
	uint64_t wrong, repaired;
};

struct tw_check {
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	bool quick;  /* look whether files are there and as long as they should be, read nothing */
	bool repair; /* mend what can be */
	void (*found)(void *arg, const struct tw_finding *finding); /* borrowed during the call */
	/* Told of each file that was looked at; NULL: nobody. */
	void (*step)(void *arg, const struct tw_check_sums *so_far);
	void *arg;
};

/* TW_OK also when things are wrong: *ret says how many.  Another status: the check itself could not
 * go on. */
enum tw_status tw_check_run(
        const struct tw_check *check, struct tw_check_sums *ret, struct tw_err *err) TW_MUST_USE;

#endif
