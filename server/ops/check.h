/*
 * check.h - verifies that all files in the catalogue exist and are unchanged.
 *
 * Uploads and mappings are named by their content; decoded files have their SHA-256 in the
 * catalogue, older ones checksums in their frames.  Damaged derived files are made again from an
 * intact source: a decoded file from its upload, a compiled mapping from its text.  Works with a
 * running server. Thread: the caller's.
 */
#ifndef TW_CHECK_H
#define TW_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/storage/blob.h"

struct tw_catalogue;

struct tw_finding {
	const char *project_id, *id; /* the trace or build; "" for the catalogue itself */
	const char *what;            /* "decoded", a part's name, "mapping", "catalogue", ... */
	const char *text;            /* a message */
	bool repaired;
};

struct tw_check_sums {
	uint64_t uploads, mappings, decoded; /* numbers of checked files */
	uint64_t bytes;                      /* read */
	uint64_t wrong, repaired;
};

struct tw_check {
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	bool quick;  /* check only existence and size, read nothing */
	bool repair; /* repair what is possible */
	void (*found)(void *arg, const struct tw_finding *finding); /* borrowed during the call */
	/* Called for each checked file; may be NULL. */
	void (*step)(void *arg, const struct tw_check_sums *so_far);
	void *arg;
};

/* TW_OK also if defects were found: *ret has their number.  Another status: the check itself could
 * not continue. */
enum tw_status tw_check_run(
        const struct tw_check *check, struct tw_check_sums *ret, struct tw_err *err) TW_MUST_USE;

/* --- rebuild (rebuild.c) --- */

/* A catalogue from the records in storage (trace_record.h), after it was lost.  Restores traces
 * with their parts, titles, tags and annotations, and builds with their mappings.  A trace whose
 * decoded file exists is ready; one with only its upload is queued for decoding.  The server
 * computes fleet counts, names and ANR groups again.  Accounts, keys and settings are not in the
 * records. */
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
