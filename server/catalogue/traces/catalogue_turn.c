/*
 * catalogue_turn.c - schedules both queues: the next job is of the project with the least decoder
 * or compiler time (fair.h), and of several such of the one after the project served last.
 *
 * So each project with queued jobs gets its share of the decoders, however long another's queue is
 * and however large its traces, and a new project waits for one decode to end.  Within a project
 * the oldest is first.  Projects are found by skipping along job_by_project, one lookup each; the
 * search ends at the first project at the level, which is the minimum.
 */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_job.h"

#include <stdio.h>
#include <string.h>

/* Skips a job that another server is claiming. */
#define UNCLAIMED TW_EITHER("", " FOR UPDATE SKIP LOCKED")

struct turn {
	struct tw_job_row job;
	bool found;
	uint64_t bytes;    /* of the upload */
	uint64_t level_us; /* its project's account */
};

/* Claims with an expired lease: their jobs come first.  There are as many claims as decoders. */
static enum tw_status find_lapsed(struct tw_db *db, const struct tw_cat_turn *of,
        struct tw_arena *a, struct turn *ret, struct tw_err *err)
{
#define LAPSED(table, id)                                                                          \
	"SELECT project_id, " id ", tries, bytes FROM " table " WHERE claimed=1 AND due_ms<=?"     \
	" ORDER BY due_ms LIMIT 1" UNCLAIMED
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(/* job_by_project */
	        &q, db, err, TW_OF_QUEUE(of->queue, LAPSED), "i", of->now);

	if (st != TW_OK)
		return st;
	ret->found = tw_cat_row(&q);
	if (ret->found) {
		ret->job = (struct tw_job_row){tw_cat_text(&q, 0, a), tw_cat_text(&q, 1, a),
		        (uint32_t)tw_cat_int(&q, 2) + 1, "", of->queue};
		ret->bytes = (uint64_t)tw_cat_int(&q, 3);
		if (!ret->job.project_id || !ret->job.trace_id)
			st = tw_oom(err);
	}
	return tw_cat_close_after(&q, st, err);
}

/* The first project after `project` with a queued job; NULL at the end. */
static enum tw_status next_project(struct tw_db *db, enum tw_queue queue, const char *project,
        struct tw_arena *a, const char **ret, struct tw_err *err)
{
#define NEXT(table, id)                                                                            \
	"SELECT project_id FROM " table " WHERE claimed=0 AND project_id>? ORDER BY project_id"    \
	" LIMIT 1"
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(/* job_by_project */
	        &q, db, err, TW_OF_QUEUE(queue, NEXT), "t", project);

	if (st != TW_OK)
		return st;
	*ret = NULL;
	if (tw_cat_row(&q)) {
		*ret = tw_cat_text(&q, 0, a);
		if (!*ret)
			st = tw_oom(err);
	}
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status oldest_of(struct tw_db *db, const struct tw_cat_turn *of, const char *project,
        struct tw_arena *a, struct turn *ret, struct tw_err *err)
{
#define OLDEST(table, id)                                                                          \
	"SELECT " id ", tries, bytes FROM " table " WHERE claimed=0 AND project_id=? AND "         \
	"due_ms<=? ORDER BY due_ms LIMIT 1" UNCLAIMED
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(/* job_by_project */
	        &q, db, err, TW_OF_QUEUE(of->queue, OLDEST), "ti", project, of->now);

	if (st != TW_OK)
		return st;
	ret->found = tw_cat_row(&q);
	if (ret->found) {
		ret->job = (struct tw_job_row){project, tw_cat_text(&q, 0, a),
		        (uint32_t)tw_cat_int(&q, 1) + 1, "", of->queue};
		ret->bytes = (uint64_t)tw_cat_int(&q, 2);
		if (!ret->job.trace_id)
			st = tw_oom(err);
	}
	return tw_cat_close_after(&q, st, err);
}

/* Whether the owner has reached its limit of claims of the project. */
static enum tw_status has_enough(struct tw_db *db, const struct tw_cat_turn *of,
        const char *project, bool *ret, struct tw_err *err)
{
#define CLAIMED(table, id)                                                                         \
	"SELECT count(*) FROM " table " WHERE claimed=1 AND project_id=? AND owner=?"
	int64_t n = 0;
	enum tw_status st = TW_OK;

	if (of->per_project)
		st = tw_cat_first_int(/* job_by_project */
		        db, &n, err, TW_OF_QUEUE(of->queue, CLAIMED), "tt", project, of->owner);
	*ret = of->per_project && n >= of->per_project;
	return st;
}

/* Takes the project's oldest job if the project's account is lower than the best so far.
 * *ret_least: none can be lower. */
static enum tw_status compare_project(struct tw_catalogue *c, struct tw_db *w,
        const struct tw_cat_turn *of, const char *project, struct tw_arena *a, struct turn *best,
        bool *ret_least, struct tw_err *err)
{
	struct turn t = {.found = false};
	bool enough = false;
	uint64_t level;
	enum tw_status st;

	t.level_us = tw_fair_level(&c->turns[of->queue].fair, project, &level);
	if (best->found && t.level_us >= best->level_us)
		return TW_OK;
	st = has_enough(w, of, project, &enough, err);
	if (st == TW_OK && !enough)
		st = oldest_of(w, of, project, a, &t, err);
	if (st == TW_OK && t.found) {
		*best = t;
		*ret_least = t.level_us == level;
	}
	return st;
}

/* One round, from after the project served last to that project itself. */
static enum tw_status serve_round(struct tw_catalogue *c, struct tw_db *w,
        const struct tw_cat_turn *of, struct tw_arena *a, struct turn *best, struct tw_err *err)
{
	const char *const served = c->turns[of->queue].served;
	const char *project = served;
	bool wrapped = false;
	bool least = false;
	enum tw_status st;

	while (!least) {
		st = next_project(w, of->queue, project, a, &project, err);
		if (st != TW_OK)
			return st;
		if (!project && wrapped)
			return TW_OK;
		if (!project) {
			wrapped = true;
			project = "";
			continue;
		}
		if (wrapped && strcmp(project, served) > 0)
			return TW_OK;
		st = compare_project(c, w, of, project, a, best, &least, err);
		if (st != TW_OK)
			return st;
	}
	return TW_OK;
}

enum tw_status tw_cat_next_job(struct tw_catalogue *c, struct tw_db *w,
        const struct tw_cat_turn *of, struct tw_arena *a, struct tw_job_row *ret, bool *ret_found,
        struct tw_err *err)
{
	struct turn t = {.found = false};
	enum tw_status st = find_lapsed(w, of, a, &t, err);

	if (st == TW_OK && !t.found) {
		st = serve_round(c, w, of, a, &t, err);
		if (st == TW_OK && t.found)
			(void)snprintf(
			        c->turns[of->queue].served, TW_ID_BYTES, "%s", t.job.project_id);
	}
	if (st != TW_OK)
		return st;
	*ret_found = t.found;
	if (!t.found)
		return TW_OK;
	*ret = t.job;
	tw_fair_begin(&c->turns[of->queue].fair, t.job.project_id, t.job.trace_id, t.bytes);
	return TW_OK;
}

/* Whether a project with a queued job has fewer claims than the owner's limit. */
static enum tw_status any_project_below(struct tw_db *db, const struct tw_cat_turn *of,
        struct tw_arena *a, bool *ret, struct tw_err *err)
{
	const char *project = "";
	bool enough = true;
	enum tw_status st = TW_OK;

	while (st == TW_OK && enough) {
		st = next_project(db, of->queue, project, a, &project, err);
		if (st == TW_OK && !project)
			break;
		if (st == TW_OK)
			st = has_enough(db, of, project, &enough, err);
	}
	*ret = !enough;
	return st;
}

enum tw_status tw_cat_any_due(struct tw_db *db, const struct tw_cat_turn *of, struct tw_arena *a,
        bool *ret, struct tw_err *err)
{
#define DUE(table, id)                                                                             \
	"SELECT EXISTS(SELECT 1 FROM " table " WHERE claimed=0 AND due_ms<=?1),"                   \
	" EXISTS(SELECT 1 FROM " table " WHERE claimed=1 AND due_ms<=?1)"
	struct tw_cat_query q;
	bool queued = false;
	enum tw_status st = tw_cat_query(/* job_by_project, twice */
	        &q, db, err, TW_OF_QUEUE(of->queue, DUE), "i", of->now);

	if (st != TW_OK)
		return st;
	*ret = false;
	if (tw_cat_row(&q)) {
		queued = tw_cat_int(&q, 0);
		*ret = tw_cat_int(&q, 1);
	}
	st = tw_cat_close(&q, err);
	if (st == TW_OK && queued && !*ret)
		st = any_project_below(db, of, a, ret, err);
	return st;
}

/* --- waiting traces --- */

static enum tw_status read_waiting(struct tw_db *db, struct tw_arena *a, struct tw_waiting **ret,
        size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_waiting *all = NULL;
	size_t cap = 0;
	enum tw_status st = tw_cat_query(&q, db, err, /* a row per trace not yet decoded */
	        "SELECT project_id, count(*), sum(bytes) FROM job GROUP BY project_id ORDER BY"
	        " project_id",
	        "");

	if (st != TW_OK)
		return st;
	*ret_n = 0;
	while (st == TW_OK && tw_cat_row(&q)) {
		if (*ret_n == cap) {
			struct tw_waiting *more =
			        tw_arena_alloc(a, cap ? 2 * cap : 16, sizeof *more);

			if (more && cap)
				memcpy(more, all, cap * sizeof *all);
			all = more;
			cap = cap ? 2 * cap : 16;
		}
		if (!all) {
			st = tw_oom(err);
			break;
		}
		(void)snprintf(
		        all[*ret_n].project_id, sizeof all->project_id, "%s", tw_cat_str(&q, 0));
		all[*ret_n].traces = (uint64_t)tw_cat_int(&q, 1);
		all[(*ret_n)++].bytes = (uint64_t)tw_cat_int(&q, 2);
	}
	*ret = all;
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_waiting(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_waiting **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = read_waiting(db, a, ret, ret_n, err);
	tw_cat_done(c, db);
	return st;
}
