#include "server/catalogue/fleet/catalogue_found.h"

#include <string.h>

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_trace.h"

enum { POSTPONED = -2 }; /* trace.detected */

/* --- pending traces --- */

struct todo {
	const char *project_id;
	int64_t from, to; /* numbers of rules */
	uint32_t limit;
};

static bool read_row(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	return tw_cat_read_trace(q, a, ret_row);
}

static enum tw_status todo_of(struct tw_catalogue *c, const struct todo *t, struct tw_arena *a,
        struct tw_cat_list *ret, struct tw_err *err)
{
	*ret = (struct tw_cat_list){.arena = a,
	        .limit = t->limit,
	        .row_bytes = sizeof(struct tw_trace_row),
	        .read = read_row,
	        .fields = &tw_trace_fields};
	return tw_cat_list(c, ret, err, /* trace_stage_findings, or trace_stage */
	        "SELECT " TW_CAT_TRACE_COLUMNS " FROM trace WHERE project_id=?1 AND " TW_EITHER(
	                "state=2 AND rollup_state=1 AND detected BETWEEN ?2 AND ?3",
	                "trace_id=ANY(ARRAY(SELECT s.trace_id FROM trace_stage s WHERE"
	                " s.stage='findings' AND s.project_id=?1 AND s.rank BETWEEN ?2 AND ?3 ORDER"
	                " BY s.rank DESC, s.trace_id DESC LIMIT ?4))") " ORDER BY detected DESC,"
	                                                               " trace_id DESC LIMIT ?4",
	        "tiii", t->project_id, t->from, t->to, (int64_t)t->limit);
}

enum tw_status tw_catalogue_found_todo(struct tw_catalogue *c, const char *project_id,
        int64_t number, uint32_t limit, struct tw_arena *a, struct tw_trace_row **ret,
        size_t *ret_n, struct tw_err *err)
{
	const struct todo parts[] = {{project_id, 0, 0, limit}, {project_id, 1, number - 1, limit},
	        {project_id, number + 1, INT64_MAX, limit}};
	struct tw_cat_list list = {.n = 0};
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && list.n == 0 && i < 3; i++)
		st = todo_of(c, &parts[i], a, &list, err);
	if (st == TW_OK) {
		*ret = list.rows;
		*ret_n = list.n;
	}
	return st;
}

/* `rank` is `detected`. */
#define INSPECTED(project)                                                                         \
	TW_EITHER("(SELECT project_id, detected AS rank FROM trace WHERE state=2 AND"              \
	          " rollup_state=1) of_cells WHERE project_id=" project,                           \
	        "trace_stage WHERE stage='findings' AND project_id=" project)

enum tw_status tw_catalogue_found_waiting(struct tw_catalogue *c, const char *project_id,
        int64_t number, uint64_t *ret, struct tw_err *err)
{
	int64_t before = 0, after = 0;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = tw_cat_get_int(db, &before, err, /* trace_stage_findings, or trace_stage */
		        "SELECT count(*) FROM " INSPECTED(
		                "?1") " AND (rank=?3 OR (rank>=0 AND rank<?2))",
		        "tii", project_id, number, (int64_t)POSTPONED);
	if (st == TW_OK)
		st = tw_cat_get_int(db, &after, err, /* likewise */
		        "SELECT count(*) FROM " INSPECTED("?1") " AND rank>?2", "ti", project_id,
		        number);
	tw_cat_done(c, db);
	*ret = (uint64_t)(before + after);
	return st;
}

/* --- findings --- */

struct putting { /* tw_catalogue_found_put, as one transaction */
	const struct tw_found_trace *of;
	size_t n;
	int64_t number;
	struct tw_arena *arena;
	struct before {
		bool there;    /* ready, counted in rollups, and still named by the same */
		int64_t rules; /* with which it was inspected; 0 or below: none */
	} * before;
};

static bool same_names(const struct tw_found_trace *a, const struct tw_found_trace *b)
{
	return strcmp(a->of.build_id, b->of.build_id) == 0 &&
	       strcmp(a->of.mapping_id, b->of.mapping_id) == 0 &&
	       strcmp(a->by.map, b->by.map) == 0 && strcmp(a->by.retrace, b->by.retrace) == 0;
}

static enum tw_status find_named(struct tw_db *w, const struct putting *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < p->n; i++) {
		p->before[i] = (struct before){false, 0};
		if (i && same_names(&p->of[i], &p->of[i - 1]))
			p->before[i].there = p->before[i - 1].there;
		else
			st = tw_cat_is_named_by(
			        w, &p->of[i].of, &p->of[i].by, &p->before[i].there, err);
	}
	return st;
}

static enum tw_status find_symbols(struct tw_db *w, const struct putting *p, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < p->n; i++)
		if (p->before[i].there && p->of[i].libraries.n)
			st = tw_cat_has_images(w, p->of[i].of.project_id, &p->of[i].libraries,
			        &p->before[i].there, err);
	return st;
}

/* A trace that is not counted in rollups is inspected after that, so that cells for its findings
 * exist.  Locks the rows. */
static enum tw_status find_before(struct tw_db *w, const struct putting *p, struct tw_err *err)
{
	const char **ids = tw_arena_alloc(p->arena, p->n, sizeof *ids);
	bool *ready = tw_arena_zalloc(p->arena, p->n, sizeof *ready);
	const char *list = NULL;
	struct tw_cat_query q;
	enum tw_status st;

	for (size_t i = 0; ids && i < p->n; i++)
		ids[i] = p->of[i].of.trace_id;
	if (ids && ready)
		list = tw_cat_texts(w, ids, p->n, p->arena);
	st = list ? tw_cat_query(&q, w, err, /* primary key */
	                    "SELECT trace_id, detected FROM trace WHERE project_id=?1 AND"
	                    " trace_id" TW_CAT_AMONG_TEXTS(
	                            "?2") " AND state=2 AND rollup_state=1 ORDER BY"
	                                  " trace_id" TW_CAT_FOR_UPDATE,
	                    "tt", p->of[0].of.project_id, list)
	          : tw_oom(err);
	if (st != TW_OK)
		return st;
	while (tw_cat_row(&q))
		for (size_t i = 0; i < p->n; i++)
			if (strcmp(ids[i], tw_cat_str(&q, 0)) == 0) {
				ready[i] = true;
				p->before[i].rules = tw_cat_int(&q, 1);
			}
	for (size_t i = 0; i < p->n; i++)
		p->before[i].there = p->before[i].there && ready[i];
	return tw_cat_close(&q, err);
}

static enum tw_status mark_all(struct tw_db *w, const struct putting *p, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = w,
	        .types = "tti",
	        .sql = "UPDATE trace SET detected=r.c3 FROM {rows} WHERE trace.project_id=r.c1 AND"
	               " trace.trace_id=r.c2"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < p->n; i++)
		if (p->before[i].there)
			st = tw_cat_rows_add(&rows, err, p->of[i].of.project_id,
			        p->of[i].of.trace_id, p->number);
	return tw_cat_rows_end(&rows, st, err);
}

/* At the first inspection, and after its day was counted again, cells are selected again. */
static bool is_new(const struct putting *p, size_t i)
{
	return p->before[i].there && p->before[i].rules <= 0;
}

static enum tw_status delete_old(struct tw_db *w, const struct putting *p, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = w, /* finding_by_trace */
	        .types = "tt",
	        .sql = "DELETE FROM finding WHERE (project_id,trace_id) IN (SELECT c1,c2 FROM"
	               " {rows})"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < p->n; i++)
		if (is_new(p, i))
			st = tw_cat_rows_add(
			        &rows, err, p->of[i].of.project_id, p->of[i].of.trace_id);
	return tw_cat_rows_end(&rows, st, err);
}

/* Only in existing cells: labels indexed later have no cell for it, and those of an expired day are
 * deleted. */
static enum tw_status insert_new(struct tw_db *w, const struct putting *p, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = w, /* primary key */
	        .types = "titb",
	        .sql = "INSERT INTO finding(project_id,cell_id,trace_id,data) SELECT"
	               " c.project_id, c.cell_id, r.c3, r.c4 FROM {rows} CROSS JOIN rollup_cell c"
	               " ON c.project_id=r.c1 AND c.cell_id=r.c2"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < p->n; i++)
		for (size_t at = 0; st == TW_OK && is_new(p, i) && at < p->of[i].n_cells; at++)
			st = tw_cat_rows_add(&rows, err, p->of[i].of.project_id,
			        tw_rollup_cell_id(&p->of[i].cells[at]), p->of[i].of.trace_id,
			        &p->of[i].data);
	return tw_cat_rows_end(&rows, st, err);
}

/* After a rule change the findings stay in their cells, as labels indexed later are not those by
 * which the trace was counted. */
static enum tw_status replace(struct tw_db *w, const struct putting *p, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = w, /* finding_by_trace */
	        .types = "ttb",
	        .sql = "UPDATE finding SET data=r.c3 FROM {rows} WHERE finding.project_id=r.c1 AND"
	               " finding.trace_id=r.c2"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < p->n; i++)
		if (p->before[i].there && !is_new(p, i))
			st = tw_cat_rows_add(&rows, err, p->of[i].of.project_id,
			        p->of[i].of.trace_id, &p->of[i].data);
	return tw_cat_rows_end(&rows, st, err);
}

static enum tw_status put_all(struct tw_db *w, void *arg, struct tw_err *err)
{
	const struct putting *p = arg;
	enum tw_status st = find_named(w, p, err);

	if (st == TW_OK)
		st = find_before(w, p, err);
	if (st == TW_OK)
		st = find_symbols(w, p, err);
	if (st == TW_OK)
		st = mark_all(w, p, err);
	if (st == TW_OK)
		st = delete_old(w, p, err);
	if (st == TW_OK)
		st = insert_new(w, p, err);
	return st == TW_OK ? replace(w, p, err) : st;
}

enum tw_status tw_catalogue_found_put(struct tw_catalogue *c, const struct tw_found_trace *of,
        size_t n, int64_t number, struct tw_err *err)
{
	struct putting p = {of, n, number, tw_arena_new(4 << 20), NULL};
	enum tw_status st;

	if (p.arena)
		p.before = tw_arena_alloc(p.arena, n + 1, sizeof *p.before);
	st = !p.before ? tw_oom(err)
	     : n       ? tw_cat_transact(c, TW_SUBJECT_FLEET, put_all, &p, err)
	               : TW_OK;
	tw_arena_free(p.arena);
	return st;
}

/* --- reading --- */

static enum tw_status read_cell(struct tw_db *db, struct tw_stmt **prepared, int64_t cell_id,
        const struct tw_found_reading *r, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query_prepared(&q, db, prepared, err, /* primary key */
	        "SELECT trace_id, data FROM finding WHERE project_id=? AND cell_id=?", "ti",
	        r->project_id, cell_id);

	while (st == TW_OK && tw_cat_row(&q)) {
		const char *id = tw_cat_str(&q, 0);

		if (id && strlen(id) == TW_ROLLUP_ID)
			st = r->take(r->arg, id, tw_cat_blob(&q, 1), err);
	}
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_found_read(
        struct tw_catalogue *c, const struct tw_found_reading *r, struct tw_err *err)
{
	struct tw_stmt *prepared = NULL;
	struct tw_db *db;
	enum tw_status st = tw_cat_snapshot(c, &db, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < r->n; i++)
		st = read_cell(db, &prepared, r->cells[i]->cell_id, r, err);
	tw_stmt_drop(prepared);
	tw_cat_snapshot_done(c, db);
	return st;
}
