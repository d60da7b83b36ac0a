/*
 * migrate.h - a server's files and its catalogue brought to another's, of whichever engines: the
 * catalogue a file or in PostgreSQL, the files in a folder or a store.
 *
 * First everything is copied while the source's server goes on, then nobody may write to the
 * source, which goes on answering, what has changed meanwhile is copied too, both are compared, and
 * only then the target may be served.  Cut short anywhere it is done again and goes on
 * (catalogue_migrate.h); the source stays as it was.  Thread: the caller's.
 */
#ifndef TW_MIGRATE_H
#define TW_MIGRATE_H

#include "server/catalogue/catalogue_migrate.h"

struct tw_migrate_files {
	uint64_t files; /* that the source's catalogue names and has */
	uint64_t linked, copied, bytes;
	uint64_t lost; /* missing or damaged in the source */
};

enum tw_migrate_state {
	TW_MIGRATE_DONE,
	TW_MIGRATE_COPIED, /* the source is being written: once more, when its server is stopped */
	TW_MIGRATE_COMPARED, /* by `only_compare`, and alike */
	TW_MIGRATE_DIFFERENT
};

struct tw_migrate {
	struct tw_migrate_rows rows; /* from, to, and who is told */
	struct tw_blobs *from, *to;
	bool served; /* has a server the source? */
	bool hold; /* end it all the same: `held` is called while nobody can write to the source */
	bool only_compare;
	struct tw_migrate_seen *seen; /* NULL: all is looked at */
	bool beside;                  /* set while the source's server may still write */
	void (*held)(void *arg);      /* may close rows.to */
	/* Both by any thread, one at a time. */
	void (*lost)(void *arg, const char *id, const char *why);
	void (*step)(void *arg, const struct tw_migrate_files *so_far); /* NULL: nobody is told */
	void *arg;
};

/* From here on nobody serves the target; before anything else is done to it, and before the run.
 * TW_CONFLICT when it is another's. */
enum tw_status tw_migrate_mark(struct tw_migrate *m, struct tw_err *err) TW_MUST_USE;
/* TW_CORRUPT, with *ret_state TW_MIGRATE_DIFFERENT, when both are not alike in the end. */
enum tw_status tw_migrate_run(struct tw_migrate *m, struct tw_migrate_files *ret,
        enum tw_migrate_state *ret_state, struct tw_err *err) TW_MUST_USE;

/* All files that the source names, and those that belong to the folder itself (migrate_files.c), a
 * few at a time.  Again, it only does what is left. */
enum tw_status tw_migrate_files(
        struct tw_migrate *m, struct tw_migrate_files *ret, struct tw_err *err) TW_MUST_USE;
/* Reads each file of the target; TW_CORRUPT when one is not what the source has. */
enum tw_status tw_migrate_compare_files(
        struct tw_migrate *m, struct tw_migrate_files *ret, struct tw_err *err) TW_MUST_USE;

#endif
