/*
 * catalogue_move.h - what a catalogue says of one project, put into another catalogue.
 *
 * Goes with a project: its traces with parts, titles, tags and annotations, its
 * builds with their mappings, its settings (rules of retention and of frames) and
 * the lists that people keep.  Does not go: keys, members, sessions and anything
 * else that is a secret or of the server.
 */
#ifndef TW_CATALOGUE_MOVE_H
#define TW_CATALOGUE_MOVE_H

#include "server/catalogue/catalogue.h"

struct tw_project_move {
	const char *path;                   /* of the catalogue that it is read from */
	const char *from_id, *to_id, *name; /* to_id and name: of the project in the other one */
	/* Queued to be decoded again, those whose upload is kept; else they stay as they are. */
	bool decode;
	/* Called for each trace without an upload before anybody sees it, so that its decoded file
	 * can be put under its new id; NULL: not called.  Called while others cannot write, unless
	 * decoded_first: then before its row is written, which may not happen after all. */
	enum tw_status (*decoded)(
	        void *arg, const char *old_id, const char *new_id, struct tw_err *err);
	bool decoded_first;
	void *arg;
};

struct tw_project_sums {
	uint64_t traces, builds; /* that came */
	uint64_t there;          /* traces that were there already */
	uint64_t renamed;        /* traces whose id another project has */
};

/* TW_UNSUPPORTED, in words, of a catalogue in PostgreSQL: rows are moved between two files. */
enum tw_status tw_catalogue_must_be_file(
        const struct tw_catalogue *c, struct tw_err *err) TW_MUST_USE;
/* The project of that name in the catalogue at `path`; TW_NOT_FOUND. */
enum tw_status tw_catalogue_project_find(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;

enum { TW_MOVE_AT_ONCE = 64 }; /* traces */

/* Again without harm: what is there stays as it is.  A trace keeps its id, or, when another project
 * has that, gets one that is the same each time.  Both catalogues must be of this program's schema.
 * The project's row is made when it is not there.
 *
 * With `decode` the project with its builds and settings comes first, with TW_MOVE_AT_ONCE traces,
 * then as many more at a time, and between them others write: a failure leaves what was moved
 * before it, each trace whole.  Else it is all or nothing. */
enum tw_status tw_catalogue_project_move(struct tw_catalogue *to,
        const struct tw_project_move *move, struct tw_project_sums *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
