/*
 * catalogue_move.h - copies a project from one catalogue into another.
 *
 * Copied: its traces with parts, titles, tags and annotations, its builds with their mappings, its
 * settings (rules of retention and of frames) and saved filters.  Not copied: keys, members,
 * sessions and all other data that is secret or belongs to the server.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_MOVE_H
#define TW_CATALOGUE_MOVE_H

#include "decoder/base/err.h"
#include "server/base/ulid.h"

struct tw_catalogue;

struct tw_project_move {
	const char *path;                   /* of the source catalogue */
	const char *from_id, *to_id, *name; /* to_id and name: of the project in the target */
	/* Queues traces with a stored upload for decoding; otherwise they keep their state. */
	bool decode;
	/* Called for each trace without an upload before it becomes visible, so that its decoded
	 * file can be stored under its new id; NULL: not called.  Called while other writers are
	 * blocked, unless decoded_first: then before its row is written, which may still fail. */
	enum tw_status (*decoded)(
	        void *arg, const char *old_id, const char *new_id, struct tw_err *err);
	bool decoded_first;
	void *arg;
};

struct tw_project_sums {
	uint64_t traces, builds; /* copied */
	uint64_t existing;       /* traces that existed already */
	uint64_t renamed;        /* traces whose id exists in another project */
};

/* TW_UNSUPPORTED for a catalogue in PostgreSQL: projects are copied between two files only. */
enum tw_status tw_catalogue_must_be_file(
        const struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
/* The project of that name in `c`; TW_NOT_FOUND. */
enum tw_status tw_catalogue_project_find(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;

enum { TW_MOVE_AT_ONCE = 64 }; /* traces */

/* Can be repeated: existing rows stay unchanged.  A trace keeps its id, or gets a deterministic new
 * one if the id exists in another project.  Both catalogues must have this program's schema.
 * Creates the project's row if it is missing.
 *
 * With `decode`, the project with its builds and settings is copied with the first TW_MOVE_AT_ONCE
 * traces, then as many per transaction, with other writers in between: a failure leaves earlier
 * transactions in place, each trace complete.  Otherwise it is one transaction. */
enum tw_status tw_catalogue_project_move(struct tw_catalogue *to,
        const struct tw_project_move *move, struct tw_project_sums *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
