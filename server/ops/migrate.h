/*
 * migrate.h - copies a server's files and catalogue to other engines: the catalogue in a file or in
 * PostgreSQL, the files in a folder or in object storage.
 *
 * First everything is copied while the source's server runs; then writes to the source are blocked,
 * while it still serves reads; changes made in the meantime are copied, both sides are compared,
 * and only then the target may be served.  After an interruption a new run continues
 * (catalogue_migrate.h); the source is not changed.  Thread: the caller's.
 */
#ifndef TW_MIGRATE_H
#define TW_MIGRATE_H

#include "server/catalogue/catalogue_migrate.h"

struct tw_migrate_files {
	uint64_t files; /* referenced by the source's catalogue and existing */
	uint64_t linked, copied, bytes;
	uint64_t lost; /* missing or damaged in the source */
};

enum tw_migrate_state {
	TW_MIGRATE_DONE,
	TW_MIGRATE_COPIED, /* the source is still written to: run again after its server was stopped
	                    */
	TW_MIGRATE_COMPARED, /* by `only_compare`, without differences */
	TW_MIGRATE_DIFFERENT
};

struct tw_migrate {
	struct tw_migrate_rows rows; /* from, to, and the callbacks */
	struct tw_blobs *from, *to;
	bool served; /* a server runs on the source */
	bool hold;   /* finish nevertheless: `held` is called while writes to the source are blocked
	              */
	bool only_compare;
	struct tw_migrate_seen *seen; /* NULL: everything is checked */
	bool source_changes;          /* set while the source's server may still write */
	void (*held)(void *arg);      /* may close rows.to */
	/* Both are called by any thread, one at a time. */
	void (*lost)(void *arg, const char *id, const char *why);
	void (*step)(void *arg, const struct tw_migrate_files *so_far); /* may be NULL */
	void *arg;
};

/* Prevents servers from using the target.  Call before any other change of it, and before the run.
 * TW_CONFLICT if it belongs to another migration or server. */
enum tw_status tw_migrate_begin(struct tw_migrate *m, struct tw_err *err) TW_MUST_USE;
/* TW_CORRUPT, with *ret_state TW_MIGRATE_DIFFERENT, if the sides differ at the end. */
enum tw_status tw_migrate_run(struct tw_migrate *m, struct tw_migrate_files *ret,
        enum tw_migrate_state *ret_state, struct tw_err *err) TW_MUST_USE;

/* Copies all files that the source references, and those of the folder itself (migrate_files.c), a
 * few in parallel.  A repeated call copies only what is missing. */
enum tw_status tw_migrate_files(
        struct tw_migrate *m, struct tw_migrate_files *ret, struct tw_err *err) TW_MUST_USE;
/* Reads each file of the target; TW_CORRUPT if one differs from the source. */
enum tw_status tw_migrate_compare_files(
        struct tw_migrate *m, struct tw_migrate_files *ret, struct tw_err *err) TW_MUST_USE;

#endif
