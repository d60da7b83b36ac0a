/*
 * source_git.h - reads one clone with libgit2 in a separate child process (worker_source.c).
 *
 * The clone is the working folder.  Nothing in it is executed: hooks, filters and configuration of
 * the machine or the user are not read, and names are looked up as names, not as expressions.
 * Errors have a message for users: missing objects (TW_NOT_FOUND), limits (TW_TOO_LARGE) and the
 * deadline (TW_DEADLINE).  Thread: one.
 */
#ifndef TW_SOURCE_GIT_H
#define TW_SOURCE_GIT_H

#include <git2.h>
#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/source/source_name.h"

enum {
	TW_SOURCE_FILE_BYTES = 2 << 20, /* of one source file */
	TW_SOURCE_ENTRIES = 500000,     /* of a tree, at most visited */
	TW_SOURCE_COMMITS = 200000,     /* at most visited */
	TW_SOURCE_LISTED = 20           /* commits in a result */
};

struct tw_source_git {
	git_repository *repo;
	struct tw_arena *a;
	int64_t deadline_ms; /* CLOCK_MONOTONIC */
};

/* Call before the process enters its sandbox: loads the library's own files. */
void tw_source_git_begin(void);

enum tw_status tw_source_git_open(struct tw_source_git *g, struct tw_arena *a, int64_t deadline_ms,
        struct tw_err *err) TW_MUST_USE;
void tw_source_git_close(struct tw_source_git *g);

/* TW_DEADLINE after the deadline. */
enum tw_status tw_source_git_late(const struct tw_source_git *g, struct tw_err *err) TW_MUST_USE;

/* The first of these names (tags, branches, commit ids of at least 7 digits) that exists; without
 * names, the tip of the clone.  JSON null: an invalid name, TW_NOT_FOUND. */
enum tw_status tw_source_git_commit(const struct tw_source_git *g, const json_t *names,
        git_commit **ret, struct tw_err *err) TW_MUST_USE;

/* A message if the range between the two commits is unusual, otherwise NULL. */
const char *tw_source_git_between(
        const struct tw_source_git *g, const git_commit *base, const git_commit *head);

/* Seconds since 1970, limited to the years 1970 to 9999 whatever the commit contains. */
int64_t tw_source_git_time(const git_commit *c);

/* The time of the newest commit of a branch or tag; 0 if none, or not found quickly. */
int64_t tw_source_git_newest(const struct tw_source_git *g);

/* A search in a tree. */
struct tw_source_want {
	const json_t *roots; /* folders in which packages begin, with * and **; empty: anywhere */
	const struct tw_source_name *name;
	const char *file; /* file name from the trace, "" unknown */
	uint32_t line;
};

struct tw_source_found {
	const char *path;
	struct tw_source_location location;
};

enum tw_status tw_source_git_find(const struct tw_source_git *g, const git_tree *tree,
        const struct tw_source_want *want, struct tw_source_found *ret,
        struct tw_err *err) TW_MUST_USE;

/* The text of a file, in the arena; TW_NOT_FOUND, TW_TOO_LARGE. */
enum tw_status tw_source_git_text(const struct tw_source_git *g, const git_tree *tree,
        const char *path, struct tw_arena *a, struct tw_str *ret, struct tw_err *err) TW_MUST_USE;

/* Commits that changed these lines of the file in head, newest first, except those in base (NULL:
 * the newest few): [{"id","author","email","time_ms","summary","lines"}…], lines: number of these
 * lines that it changed.  *ret_more: there may be others.
 * On failure *ret has those found before, or NULL.  The caller frees with json_decref. */
enum tw_status tw_source_git_log(const struct tw_source_git *g, const git_commit *head,
        const git_commit *base, const struct tw_source_found *of, json_t **ret, bool *ret_more,
        struct tw_err *err) TW_MUST_USE;

#endif
