/*
 * catalogue_turn.c - schedules both queues: the next job is of the project with the least decoder
 * or compiler time (fair.h), and of several such of the one after the project served last.
 *
 * So each project with queued jobs gets its share of the decoders, however long another's queue is
 * and however large its traces, and a new project waits for one decode to end.  Within a project
 * the oldest is first.  Projects are found by skipping along job_by_project, one index lookup each
 * and PAGE per statement; the search ends at the first project at the level, which is the minimum.
 * The job itself is claimed by one more statement.
 */
#include "decoder/base/list.h"
#include "server/base/age_clock.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"

#include <stdio.h>
#include <string.h>

enum { PAGE = 32 };

struct waiting { /* a project with queued jobs */
	char id[TW_ID_BYTES];
	bool due;
	unsigned claimed; /* by the owner of the claim */
};

struct page { /* of projects, by id */
	struct waiting of[PAGE];
	unsigned n;
	int64_t now;
	bool lapsed; /* the lease of a claim of any project expired */
};

struct best {
	char project[TW_ID_BYTES]; /* "": none yet */
	uint64_t level_us;         /* its account */
	bool least;                /* none can be lower */
};

/* The first row is the time and whether there is a claim with an expired lease. */
static enum tw_status read_page(struct tw_db *db, const struct tw_cat_turn *of, const char *after,
        struct page *ret, struct tw_err *err)
{
#define PROJECTS(table, id)                                                                        \
	"WITH RECURSIVE clock(ms) AS (SELECT " TW_EITHER("?4",                                     \
	        "?4*0+" TW_CAT_DATABASE_MS) "),"                                                   \
	                                    " waiting(project_id, n) AS (SELECT * FROM (SELECT "   \
	                                    "project_id, 1 FROM " table                            \
	                                    " WHERE claimed=0 AND project_id>?1 ORDER BY "         \
	                                    "project_id LIMIT 1) of_first UNION ALL"               \
	                                    " SELECT (SELECT q.project_id FROM " table             \
	                                    " q WHERE q.claimed=0 AND"                             \
	                                    " q.project_id>waiting.project_id ORDER BY "           \
	                                    "q.project_id LIMIT 1), n+1 FROM waiting"              \
	                                    " WHERE project_id IS NOT NULL AND n<?3)"              \
	                                    " SELECT '', ms, CASE WHEN EXISTS(SELECT 1 "           \
	                                    "FROM " table " WHERE claimed=1 AND due_ms<=ms)"       \
	                                    " THEN 1 ELSE 0 END FROM clock UNION ALL SELECT "      \
	                                    "project_id, (SELECT count(*) FROM " table             \
	                                    " q WHERE q.claimed=1 AND "                            \
	                                    "q.project_id=waiting.project_id AND q.owner=?2), "    \
	                                    "CASE WHEN"                                            \
	                                    " EXISTS(SELECT 1 FROM " table                         \
	                                    " q WHERE q.claimed=0 AND"                             \
	                                    " q.project_id=waiting.project_id AND q.due_ms<=ms) "  \
	                                    "THEN 1 ELSE 0 END FROM waiting, clock"                \
	                                    " WHERE project_id IS NOT NULL"
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(/* job_by_project */
	        &q, db, err, TW_OF_QUEUE(of->queue, PROJECTS), "ttii", after, of->owner,
	        (int64_t)PAGE, tw_wait_ms());

	if (st != TW_OK)
		return st;
	ret->n = 0;
	while (tw_cat_row(&q)) {
		const char *const id = tw_cat_str(&q, 0);
		struct waiting *p;

		if (!id || !id[0]) {
			ret->now = tw_cat_int(&q, 1);
			ret->lapsed = tw_cat_int(&q, 2);
			continue;
		}
		p = &ret->of[ret->n < PAGE ? ret->n++ : PAGE - 1];
		(void)snprintf(p->id, sizeof p->id, "%s", id);
		p->claimed = (unsigned)tw_cat_int(&q, 1);
		p->due = tw_cat_int(&q, 2);
	}
	return tw_cat_close(&q, err);
}

/* Takes the project if its account is lower than the best so far. */
static void compare_project(struct tw_catalogue *c, const struct tw_cat_turn *of,
        const struct waiting *p, struct best *io)
{
	uint64_t level;
	const uint64_t account = tw_fair_level(&c->turns[of->queue].fair, p->id, &level);

	if (!p->due || (of->per_project && p->claimed >= of->per_project) ||
	        (io->project[0] && account >= io->level_us))
		return;
	(void)snprintf(io->project, sizeof io->project, "%s", p->id);
	io->level_us = account;
	io->least = account == level;
}

/* The projects of a page that are after the project served last, or those up to it. */
static void compare_page(struct tw_catalogue *c, const struct tw_cat_turn *of,
        const struct page *page, bool after, struct best *io)
{
	const char *const served = c->turns[of->queue].served;

	for (unsigned i = 0; i < page->n && !io->least; i++)
		if ((strcmp(page->of[i].id, served) > 0) == after)
			compare_project(c, of, &page->of[i], io);
}

/* More projects than a page. */
static enum tw_status compare_pages(struct tw_catalogue *c, struct tw_db *db,
        const struct tw_cat_turn *of, bool after, struct best *io, struct tw_err *err)
{
	struct page page = {.n = PAGE};
	char last[TW_ID_BYTES] = "";

	if (after)
		memcpy(last, c->turns[of->queue].served, sizeof last);
	while (!io->least && page.n == PAGE) {
		enum tw_status st = read_page(db, of, last, &page, err);

		if (st != TW_OK)
			return st;
		compare_page(c, of, &page, after, io);
		if (page.n)
			memcpy(last, page.of[page.n - 1].id, sizeof last);
		if (!after && strcmp(last, c->turns[of->queue].served) > 0)
			break;
	}
	return TW_OK;
}

/* One round, from after the project served last to that project itself. */
static enum tw_status find_project(struct tw_catalogue *c, struct tw_db *db, struct tw_cat_turn *io,
        struct best *ret, bool *ret_lapsed, struct tw_err *err)
{
	struct page page;
	enum tw_status st = read_page(db, io, "", &page, err);

	*ret = (struct best){.level_us = 0};
	if (st != TW_OK)
		return st;
	io->now = page.now;
	*ret_lapsed = page.lapsed;
	if (page.lapsed)
		return TW_OK;
	for (int after = 1; st == TW_OK && after >= 0; after--)
		if (page.n < PAGE)
			compare_page(c, io, &page, after, ret);
		else
			st = compare_pages(c, db, io, after, ret, err);
	return st;
}

/* In PostgreSQL one statement, which skips a job that another server is claiming; its rows are the
 * parts.  ?1: the owner, ?2: the end of its lease, ?3: now, ?4: the project. */
#define TAKE(table, id, which, parts, of_parts)                                                    \
	TW_EITHER("UPDATE " table " SET claimed=1, due_ms=?2, attempts=attempts+1, owner=?1 WHERE" \
	          " (project_id," id ") IN (SELECT project_id," id " FROM " table " WHERE " which  \
	          " AND due_ms<=?3 ORDER BY due_ms LIMIT 1)"                                       \
	          " RETURNING project_id," id ",attempts,bytes,NULL",                              \
	        "WITH mine AS (SELECT project_id," id " FROM " table " WHERE " which               \
	        " AND due_ms<=?3 ORDER BY due_ms LIMIT 1 FOR UPDATE SKIP LOCKED), taken AS"        \
	        " (UPDATE " table " SET claimed=1, due_ms=?2, attempts=" table                     \
	        ".attempts+1, owner=?1"                                                            \
	        " FROM mine WHERE " table ".project_id=mine.project_id AND " table "." id          \
	        "=mine." id " RETURNING " table ".project_id," table "." id "," table              \
	        ".attempts," table ".bytes) SELECT taken.project_id,taken." id                     \
	        ",taken.attempts,taken.bytes," parts " FROM taken" of_parts)
#define TAKE_TRACE(which)                                                                          \
	TAKE("job", "trace_id", which, PART_COLUMNS,                                               \
	        " LEFT JOIN part p ON p.project_id=taken.project_id AND"                           \
	        " p.trace_id=taken.trace_id AND p.found=0 ORDER BY p.part")
#define TAKE_MAPPING(which) TAKE("mapping_job", "job_id", which, "NULL", "")
#define PART_COLUMNS        "p.part,p.sha256,p.format,p.bytes"
#define LAPSED              "claimed=1"
#define OF_PROJECT          "claimed=0 AND project_id=?4"

struct taking {
	struct tw_arena *arena;
	struct tw_job_row *job;
	struct tw_part *parts; /* of the job */
	uint64_t bytes;        /* of the upload */
	bool found;
};

static const struct tw_fields taken_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_job_row, project_id, "", NULL),
                TW_FIELD(struct tw_job_row, trace_id, "", NULL),
                TW_FIELD(struct tw_job_row, attempts, "", NULL));
/* PART_COLUMNS */
static const struct tw_fields part_fields = TW_FIELDS_OF(TW_FIELD(struct tw_part, part, "", NULL),
        TW_FIELD(struct tw_part, sha256, "", NULL), TW_FIELD(struct tw_part, format, "", NULL),
        TW_FIELD(struct tw_part, bytes, "", NULL));

/* The part in the row's columns from `at` on, if there is one. */
static enum tw_status read_part(
        const struct tw_cat_query *q, int at, struct taking *io, struct tw_err *err)
{
	struct tw_part *p = &io->parts[io->job->n_parts];

	if (!tw_cat_str(q, at) || !tw_cat_str(q, at)[0] || io->job->n_parts == TW_CATALOGUE_PARTS)
		return TW_OK;
	*p = (struct tw_part){.found = false};
	io->job->n_parts++;
	return tw_row_read(q, at, &part_fields, io->arena, p) < 0 ? tw_oom(err) : TW_OK;
}

static enum tw_status read_taken(
        struct tw_cat_query *q, const struct tw_cat_turn *of, struct taking *io, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_cat_row(q)) {
		if (!io->found) {
			*io->job = (struct tw_job_row){
			        .owner = of->owner, .queue = of->queue, .parts = io->parts};
			if (tw_row_read(q, 0, &taken_fields, io->arena, io->job) < 0)
				st = tw_oom(err);
		}
		io->found = true;
		io->bytes = (uint64_t)tw_cat_int(q, 3);
		if (st == TW_OK)
			st = read_part(q, 4, io, err);
	}
	return tw_cat_close_after(q, st, err);
}

/* PostgreSQL's statement returned them. */
static enum tw_status read_parts(struct tw_db *w, struct taking *io, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, w, err, /* primary key */
	        "SELECT " PART_COLUMNS " FROM part p WHERE project_id=? AND trace_id=? AND"
	        " found=0 ORDER BY part",
	        "tt", io->job->project_id, io->job->trace_id);

	while (st == TW_OK && tw_cat_row(&q))
		st = read_part(&q, 0, io, err);
	return tw_cat_close_after(&q, st, err);
}

/* The oldest job of the project; "": the claim whose lease expired first. */
static enum tw_status take(struct tw_db *w, const struct tw_cat_turn *of, const char *project,
        struct taking *io, struct tw_err *err)
{
	static const char *const sql[TW_QUEUES][2] = {/* job_by_project; part's primary key */
	        [TW_QUEUE_TRACES] = {TAKE_TRACE(LAPSED), TAKE_TRACE(OF_PROJECT)},
	        [TW_QUEUE_MAPPINGS] = {TAKE_MAPPING(LAPSED), TAKE_MAPPING(OF_PROJECT)}};
	struct tw_cat_query q;
	enum tw_status st = TW_OK;

	io->parts = tw_arena_alloc(io->arena, TW_CATALOGUE_PARTS, sizeof *io->parts);
	if (!io->parts)
		return tw_oom(err);
	st = tw_cat_query(&q, w, err, sql[of->queue][project[0] != '\0'],
	        project[0] ? "tiit" : "tii", of->owner, of->now + of->lease_ms, of->now, project);
	if (st == TW_OK)
		st = read_taken(&q, of, io, err);
	if (st == TW_OK && io->found && !w->engine->is_shared && of->queue == TW_QUEUE_TRACES)
		st = read_parts(w, io, err);
	return st;
}

/* Writes only once there is a job to claim: the dispatchers of idle servers poll often. */
static enum tw_status find(struct tw_catalogue *c, struct tw_cat_turn *io, struct best *ret,
        bool *ret_lapsed, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = find_project(c, db, io, ret, ret_lapsed, err);
	tw_cat_done(c, db);
	return st;
}

/* --- more jobs of the same project --- */

static bool is_small(const struct taking *t, uint64_t small_bytes)
{
	return t->job->n_parts == 1 && t->job->attempts == 1 && t->bytes <= small_bytes;
}

/* Of the project's oldest jobs those that are small. */
#define OLDEST "(SELECT * FROM job WHERE " OF_PROJECT " AND due_ms<=?3 ORDER BY due_ms LIMIT ?6"
#define SMALL_ONES                                                                                 \
	") oldest WHERE bytes<=?5 AND attempts=0 AND (SELECT count(*) FROM part p WHERE"           \
	" p.project_id=?4 AND p.trace_id=oldest.trace_id AND p.found=0)=1"
#define TAKE_SMALL                                                                                 \
	TW_EITHER("UPDATE job SET claimed=1, due_ms=?2, attempts=1, owner=?1 WHERE (project_id,"   \
	          " trace_id) IN (SELECT project_id, trace_id FROM " OLDEST SMALL_ONES             \
	          ") RETURNING trace_id",                                                          \
	        "WITH mine AS (SELECT project_id, trace_id FROM " OLDEST                           \
	        " FOR UPDATE SKIP LOCKED" SMALL_ONES                                               \
	        "), taken AS (UPDATE job SET claimed=1, due_ms=?2, attempts=1, owner=?1 FROM mine" \
	        " WHERE job.project_id=mine.project_id AND job.trace_id=mine.trace_id RETURNING"   \
	        " job.trace_id) SELECT taken.trace_id," PART_COLUMNS                               \
	        " FROM taken JOIN part p ON p.project_id=?4 AND p.trace_id=taken.trace_id AND"     \
	        " p.found=0 ORDER BY taken.trace_id")

static enum tw_status take_small(struct tw_db *w, const struct tw_cat_turn *of, struct tw_arena *a,
        struct tw_job_row *io, size_t cap, size_t *io_n, struct tw_err *err)
{
	const size_t first = *io_n;
	struct tw_part *parts = tw_arena_alloc(a, cap, sizeof *parts);
	struct tw_cat_query q;
	size_t n = first;
	enum tw_status st =
	        !parts ? tw_oom(err)
	               : tw_cat_query(&q, w, err, /* job_by_project, primary keys */
	                         TAKE_SMALL, "tiitii", of->owner, of->now + of->lease_ms, of->now,
	                         io->project_id, (int64_t)of->small_bytes, (int64_t)(cap - first));

	if (st != TW_OK)
		return st;
	while (st == TW_OK && n < cap && tw_cat_row(&q)) {
		struct tw_job_row *job = &io[n];

		*job = (struct tw_job_row){io->project_id, tw_cat_text(&q, 0, a), 1, of->owner,
		        of->queue, &parts[n], 0};
		st = job->trace_id ? TW_OK : tw_oom(err);
		if (st == TW_OK && w->engine->is_shared)
			st = read_part(&q, 1,
			        &(struct taking){.arena = a, .job = job, .parts = &parts[n]}, err);
		n++;
	}
	st = tw_cat_close_after(&q, st, err);
	for (size_t i = first; st == TW_OK && i < n && !w->engine->is_shared; i++)
		st = read_parts(
		        w, &(struct taking){.arena = a, .job = &io[i], .parts = &parts[i]}, err);
	if (st == TW_OK)
		*io_n = n;
	return st;
}

enum tw_status tw_cat_claim(struct tw_catalogue *c, struct tw_cat_turn *io, struct tw_arena *a,
        struct tw_job_row *ret, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct taking t = {.arena = a, .job = ret};
	struct tw_db *w = NULL;
	bool lapsed = false;
	struct best best;
	enum tw_status st = find(c, io, &best, &lapsed, err);

	*ret_n = 0;
	if (st != TW_OK || (!lapsed && !best.project[0]))
		return st;
	st = tw_cat_begin_one(c, &w, err);
	if (st != TW_OK)
		return st;
	st = take(w, io, lapsed ? "" : best.project, &t, err);
	*ret_n = t.found;
	if (st == TW_OK && t.found && !lapsed && cap > 1 && is_small(&t, io->small_bytes))
		st = take_small(w, io, a, ret, cap, ret_n, err);
	st = tw_cat_end(c, w, st, err);
	if (st != TW_OK || !t.found) {
		*ret_n = 0;
		return st;
	}
	if (!lapsed)
		(void)snprintf(c->turns[io->queue].served, TW_ID_BYTES, "%s", best.project);
	tw_fair_begin_group(
	        &c->turns[io->queue].fair, ret->project_id, ret->trace_id, t.bytes, *ret_n);
	return TW_OK;
}

/* --- waiting traces --- */

static const struct tw_fields waiting_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_waiting, project_id, "project_id", NULL),
                TW_FIELD(struct tw_waiting, traces, "count(*)", NULL),
                TW_FIELD(struct tw_waiting, bytes, "sum(bytes)", NULL));

static enum tw_status read_waiting(struct tw_db *db, struct tw_arena *a, struct tw_waiting **ret,
        size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_list all = {NULL};
	enum tw_status st = tw_cat_query_fields(&q, db, &waiting_fields,
	        err, /* a row per trace not yet decoded */
	        "SELECT {columns} FROM job GROUP BY project_id ORDER BY project_id", "");

	while (st == TW_OK && tw_cat_row(&q)) {
		struct tw_waiting *row = tw_list_add(&all, a, sizeof *row);

		if (!row || tw_row_read(&q, 0, &waiting_fields, a, row) < 0)
			st = tw_oom(err);
	}
	*ret = all.items;
	*ret_n = all.n;
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_waiting(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_waiting **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = read_waiting(db, a, ret, ret_n, err);
	tw_cat_done(c, db);
	return st;
}
