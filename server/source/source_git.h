/*
 * source_git.h - one clone, read with libgit2 in a child of its own (worker_source.c).
 *
 * The clone is the working folder.  Nothing in it is run: no hook, no filter, no configuration of
 * the machine or the user is read, and names are looked up as names, not as expressions.  What is
 * missing is told in words for people (TW_NOT_FOUND), as are limits (TW_TOO_LARGE) and the deadline
 * (TW_DEADLINE).  Thread: one.
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
	TW_SOURCE_ENTRIES = 500000,     /* of a tree that are walked */
	TW_SOURCE_COMMITS = 200000,     /* that are walked */
	TW_SOURCE_LISTED = 20           /* commits in an answer */
};

struct tw_source_git {
	git_repository *repo;
	struct tw_arena *a;
	int64_t deadline_ms; /* CLOCK_MONOTONIC */
};

/* Before the process is locked in: what the library itself loads. */
void tw_source_git_begin(void);

enum tw_status tw_source_git_open(struct tw_source_git *g, struct tw_arena *a, int64_t deadline_ms,
        struct tw_err *err) TW_MUST_USE;
void tw_source_git_close(struct tw_source_git *g);

/* TW_DEADLINE when the time is over. */
enum tw_status tw_source_git_late(const struct tw_source_git *g, struct tw_err *err) TW_MUST_USE;

/* The first of these names (tags, branches, commit ids of 7 digits and more) that is here; none:
 * the tip of the clone.  JSON's null: what was asked for cannot be a name, TW_NOT_FOUND. */
enum tw_status tw_source_git_commit(const struct tw_source_git *g, const json_t *names,
        git_commit **ret, struct tw_err *err) TW_MUST_USE;

/* What is odd about asking for what came between them, in words; NULL nothing. */
const char *tw_source_git_between(
        const struct tw_source_git *g, const git_commit *base, const git_commit *head);

/* Seconds since 1970, within the years 1970 to 9999 whatever the commit says. */
int64_t tw_source_git_time(const git_commit *c);

/* Its time, of the newest commit that a branch or tag names; 0 none, or not known in a moment. */
int64_t tw_source_git_newest(const struct tw_source_git *g);

/* What is looked for in a tree. */
struct tw_source_want {
	const json_t *roots; /* folders in which packages begin, with * and **; none: anywhere */
	const struct tw_source_name *name;
	const char *file; /* its file's name, where the trace says it, "" not */
	uint32_t line;
};

struct tw_source_found {
	const char *path;
	struct tw_source_place place;
};

enum tw_status tw_source_git_find(const struct tw_source_git *g, const git_tree *tree,
        const struct tw_source_want *want, struct tw_source_found *ret,
        struct tw_err *err) TW_MUST_USE;

/* The text of a file, in the arena; TW_NOT_FOUND, TW_TOO_LARGE. */
enum tw_status tw_source_git_text(const struct tw_source_git *g, const git_tree *tree,
        const char *path, struct tw_arena *a, struct tw_str *ret, struct tw_err *err) TW_MUST_USE;

/* Commits that changed these lines of the file in head, newest first, as far as base does not have
 * them (NULL: the newest few): [{"id","author","email","time_ms","summary"}…].  *ret_more: there
 * may be others.  On failure too *ret has those found before (json_decref is owed; or NULL). */
enum tw_status tw_source_git_log(const struct tw_source_git *g, const git_commit *head,
        const git_commit *base, const struct tw_source_found *of, json_t **ret, bool *ret_more,
        struct tw_err *err) TW_MUST_USE;

#endif
