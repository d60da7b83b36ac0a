/* catalogue_rollup.c - counts traces in rollups: stores names, marks the trace as counted, adds
 * deltas. */
#include "server/catalogue/fleet/catalogue_rollup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/fleet/catalogue_rollup_int.h"

/* --- names --- */

/* A method once: a row is changed only once by a statement. */
static bool is_first(const struct tw_rollup_names *names, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (names->methods[k].id == names->methods[i].id)
			return false;
	return true;
}

static enum tw_status add_methods(
        struct tw_db *db, const struct tw_rollup_names *names, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "titttttii",
	        .sql = "INSERT INTO rollup_method(project_id,method_id,build_id,mapping_id,raw,"
	               "name,descriptor,named,seen_day) SELECT c1,c2,c3,c4,c5,c6,c7,c8,c9 FROM"
	               " {rows} WHERE 1=1 ON CONFLICT(project_id,method_id) DO UPDATE SET"
	               " seen_day=max(rollup_method.seen_day,excluded.seen_day)"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < names->n; i++) {
		const struct tw_rollup_naming *m = &names->methods[i];

		if (is_first(names, i))
			st = tw_cat_rows_add(&rows, err, names->project_id, (int64_t)m->id,
			        m->build_id, m->mapping_id, m->raw, m->name, m->descriptor,
			        (int64_t)m->named, names->day);
	}
	return tw_cat_rows_end(&rows, st, err);
}

/* A mapping that arrived in the meantime was applied before these names were stored. */
static enum tw_status name_again_if_mapped(
        struct tw_db *db, const struct tw_rollup_names *names, struct tw_err *err)
{
	const struct tw_rollup_naming *m = &names->methods[0];
	const struct tw_named_trace of = {names->project_id, "", m->build_id, m->mapping_id};
	bool same = true;
	enum tw_status st = tw_cat_is_named_by(db, &of, &names->by, &same, err);

	if (st == TW_OK && !same && m->build_id[0])
		st = tw_cat_rename(db, "rollup", names->project_id, m->build_id, err);
	if (st == TW_OK && !same && m->mapping_id[0])
		st = tw_cat_rename(db, "rollup", names->project_id, m->mapping_id, err);
	return st;
}

static enum tw_status name_all(struct tw_db *w, void *arg, struct tw_err *err)
{
	const struct tw_rollup_names *names = arg;
	enum tw_status st = add_methods(w, names, err);

	return st == TW_OK && names->n ? name_again_if_mapped(w, names, err) : st;
}

enum tw_status tw_catalogue_rollup_name(
        struct tw_catalogue *c, const struct tw_rollup_names *names, struct tw_err *err)
{
	struct tw_rollup_names of = *names;

	return tw_cat_transact(c, TW_SUBJECT_FLEET, name_all, &of, err);
}

/* --- counting --- */

struct counting { /* tw_catalogue_rollup_put, as one transaction */
	const struct tw_rollup_reading *of;
	size_t n;
	struct tw_arena *arena;
	bool *waits;                /* whether it is to be counted now */
	struct tw_in_cell *counted; /* of those, in all their cells */
	size_t n_counted;
};

/* Locks the traces that were neither counted nor deleted since. */
static enum tw_status find_waiting(struct tw_db *db, struct counting *k, struct tw_err *err)
{
	const char **ids = tw_arena_alloc(k->arena, k->n, sizeof *ids);
	const char *list = NULL;
	struct tw_cat_query q;
	enum tw_status st;

	for (size_t i = 0; ids && i < k->n; i++)
		ids[i] = k->of[i].trace_id;
	if (ids)
		list = tw_cat_texts(db, ids, k->n, k->arena);
	st = list ? tw_cat_query(&q, db, err, /* primary key */
	                    "SELECT trace_id FROM trace WHERE project_id=?1 AND"
	                    " trace_id" TW_CAT_AMONG_TEXTS(
	                            "?2") " AND state=2 AND rollup_state=0 ORDER BY"
	                                  " trace_id" TW_CAT_FOR_UPDATE,
	                    "tt", k->of[0].project_id, list)
	          : tw_oom(err);
	if (st != TW_OK)
		return st;
	memset(k->waits, 0, k->n * sizeof *k->waits);
	while (tw_cat_row(&q))
		for (size_t i = 0; i < k->n; i++)
			if (strcmp(k->of[i].trace_id, tw_cat_str(&q, 0)) == 0)
				k->waits[i] = true;
	return tw_cat_close(&q, err);
}

static enum tw_status find_current(struct tw_db *db, struct counting *k, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < k->n; i++) {
		const struct tw_rollup_reading *f = &k->of[i];

		if (!k->waits[i] || f->natives.of.n == 0)
			continue;
		st = tw_cat_has_images(db, f->project_id, &f->natives.of, &k->waits[i], err);
		if (st == TW_OK && k->waits[i])
			st = tw_cat_add_libraries(db, f->project_id, &f->natives, err);
	}
	return st;
}

static enum tw_status mark_counted(struct tw_db *db, struct counting *k, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "tt",
	        .sql = "UPDATE trace SET rollup_state=1 FROM {rows} WHERE trace.project_id=r.c1 AND"
	               " trace.trace_id=r.c2"};
	enum tw_status st = find_waiting(db, k, err);

	if (st == TW_OK)
		st = find_current(db, k, err);
	k->n_counted = 0;
	for (size_t i = 0; st == TW_OK && i < k->n; i++) {
		if (!k->waits[i])
			continue;
		for (size_t at = 0; at < k->of[i].n_cells; at++)
			k->counted[k->n_counted++] = (struct tw_in_cell){&k->of[i],
			        &k->of[i].cells[at], tw_rollup_cell_id(&k->of[i].cells[at])};
		st = tw_cat_rows_add(&rows, err, k->of[i].project_id, k->of[i].trace_id);
	}
	return tw_cat_rows_end(&rows, st, err);
}

size_t tw_cat_first_in_cell(const struct tw_in_cell *of, size_t i)
{
	size_t first = 0;

	while (of[first].cell_id != of[i].cell_id)
		first++;
	return first;
}

/* A cell once, with the number of its traces. */
static enum tw_status add_cells(struct tw_db *db, const struct counting *k, struct tw_err *err)
{
	const struct tw_str no_head = {"", 0};
	struct tw_cat_rows rows = {.db = db,
	        .types = "tiittttttttib",
	        .sql = "INSERT INTO rollup_cell(project_id,cell_id,day,app,version_name,build_id,"
	               "mapping_id,scenario,device_class,os,label,traces,pending,head) SELECT c1,"
	               "c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c12,c13 FROM {rows} WHERE 1=1 ON"
	               " CONFLICT(project_id,cell_id) DO UPDATE SET"
	               " traces=rollup_cell.traces+excluded.traces,"
	               " pending=rollup_cell.pending+excluded.pending"};
	int64_t *traces = tw_arena_zalloc(k->arena, k->n_counted + 1, sizeof *traces);
	enum tw_status st = traces ? TW_OK : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < k->n_counted; i++)
		traces[tw_cat_first_in_cell(k->counted, i)]++;
	for (size_t i = 0; st == TW_OK && i < k->n_counted; i++) {
		const struct tw_in_cell *c = &k->counted[i];
		const struct tw_rollup_dims *d = c->dims;

		if (traces[i])
			st = tw_cat_rows_add(&rows, err, c->f->project_id, c->cell_id, d->day,
			        d->app, d->version_name, d->build_id, d->mapping_id, d->scenario,
			        d->device_class, d->os, d->label, traces[i], &no_head);
	}
	return tw_cat_rows_end(&rows, st, err);
}

static enum tw_status add_deltas(struct tw_db *db, const struct counting *k, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "titib",
	        .sql = "INSERT INTO rollup_delta(project_id,cell_id,trace_id,duration_ns,data)"
	               " SELECT c1,c2,c3,c4,c5 FROM {rows}"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < k->n_counted; i++) {
		const struct tw_rollup_reading *f = k->counted[i].f;

		st = tw_cat_rows_add(&rows, err, f->project_id, k->counted[i].cell_id, f->trace_id,
		        f->duration_ns, &f->facts);
	}
	return tw_cat_rows_end(&rows, st, err);
}

static enum tw_status count_all(struct tw_db *w, void *arg, struct tw_err *err)
{
	struct counting *k = arg;
	enum tw_status st = mark_counted(w, k, err);

	if (st == TW_OK)
		st = add_cells(w, k, err);
	if (st == TW_OK)
		st = add_deltas(w, k, err);
	if (st == TW_OK)
		st = tw_cat_index_add(w, k->counted, k->n_counted, err);
	return st == TW_OK ? tw_cat_trees_add(w, k->counted, k->n_counted, k->arena, err) : st;
}

enum tw_status tw_catalogue_rollup_put(
        struct tw_catalogue *c, const struct tw_rollup_reading *f, size_t n, struct tw_err *err)
{
	struct counting k = {f, n, tw_arena_new(4 << 20), NULL, NULL, 0};
	enum tw_status st;

	if (k.arena) {
		k.waits = tw_arena_alloc(k.arena, n + 1, sizeof *k.waits);
		k.counted = tw_arena_alloc(k.arena, n * TW_ROLLUP_CELLS_MAX + 1, sizeof *k.counted);
	}
	st = !k.waits || !k.counted ? tw_oom(err)
	     : n                    ? tw_cat_transact(c, TW_SUBJECT_FLEET, count_all, &k, err)
	                            : TW_OK;
	tw_arena_free(k.arena);
	return st;
}

/* --- names of methods ---
 *
 * After a new mapping, in batches.  Counts do not change; only the names of the methods' ids do.
 */

static const struct tw_fields method_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_rollup_naming, id, "method_id", NULL),
                TW_FIELD(struct tw_rollup_naming, build_id, "build_id", NULL),
                TW_FIELD(struct tw_rollup_naming, mapping_id, "mapping_id", NULL),
                TW_FIELD(struct tw_rollup_naming, raw, "raw", NULL),
                TW_FIELD(struct tw_rollup_naming, name, "name", NULL),
                TW_FIELD(struct tw_rollup_naming, descriptor, "descriptor", NULL));

enum tw_status tw_catalogue_rollup_renames(struct tw_catalogue *c, const struct tw_rename *after,
        struct tw_arena *a, struct tw_rename *ret, struct tw_rollup_naming **ret_methods,
        size_t *ret_n, struct tw_err *err)
{
	const size_t limit = TW_ROLLUP_NAMED_AT_ONCE;
	uint64_t after_id = 0;
	enum tw_status st = tw_cat_rename_next(c, "rollup", after, a, ret, err);

	if (st != TW_OK)
		return st;
	(void)tw_str_u64(tw_str_of(ret->after_id), INT64_MAX, &after_id); /* "": 0 */
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &method_fields, ret_methods, ret_n), err,
	        /* rollup_method_by_build, _by_mapping */
	        "SELECT {columns} FROM (SELECT * FROM (SELECT * FROM rollup_method WHERE"
	        " project_id=?1 AND build_id=?2 AND method_id>?3 ORDER BY method_id LIMIT ?4)"
	        " of_build UNION SELECT * FROM (SELECT * FROM rollup_method WHERE project_id=?1"
	        " AND mapping_id=?2 AND mapping_id<>'' AND method_id>?3 ORDER BY method_id LIMIT"
	        " ?4) of_mapping) of_both ORDER BY method_id LIMIT ?4",
	        "ttii", ret->project_id, ret->build_id, (int64_t)after_id, (int64_t)limit);
}

enum tw_status tw_catalogue_rollup_renamed(struct tw_catalogue *c, const struct tw_rename *of,
        const struct tw_rollup_naming *methods, size_t n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_stmt *prepared = NULL;
	bool ours = false;
	char last[24];
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(last, sizeof last, "%" PRIi64, n ? (int64_t)methods[n - 1].id : 0);
	st = tw_cat_rename_done(w, "rollup", of, n ? last : NULL, &ours, err);
	for (size_t i = 0; st == TW_OK && ours && i < n; i++)
		st = tw_cat_exec_prepared(w, &prepared, err, /* primary key */
		        "UPDATE rollup_method SET name=?, descriptor=?, named=?"
		        " WHERE project_id=? AND method_id=?",
		        "ttiti", methods[i].name, methods[i].descriptor, (int64_t)methods[i].named,
		        of->project_id, (int64_t)methods[i].id);
	tw_stmt_drop(prepared);
	return tw_cat_end(c, w, st, err);
}

/* --- adding traces to a cell ---
 *
 * Due cells, and the replacement of their parts.  The sums are computed outside any transaction
 * (derive/rollup/rollup_add.c).  The replacement succeeds only if the cell's version and all deltas
 * are unchanged.
 */

enum { DELTAS_AT_ONCE = 512 };

static const struct tw_fields due_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_rollup_due, project_id, "project_id", NULL),
                TW_FIELD(struct tw_rollup_due, cell_id, "cell_id", NULL));

enum tw_status tw_catalogue_rollup_due(struct tw_catalogue *c, const struct tw_rollup_when *when,
        uint32_t limit, struct tw_arena *a, struct tw_rollup_due **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &due_fields, ret, ret_n), err,
	        "SELECT {columns} FROM rollup_cell INDEXED BY rollup_cell_pending WHERE "
	        "project_id>?1 AND pending>0 AND again_ms<=?2 AND "
	        "(pending>=min(?3,max(?4,(traces-pending)/4)) OR day<?5) ORDER BY project_id, "
	        "pending DESC LIMIT ?6",
	        "tiiiii", when->after_project, when->now_ms, (int64_t)when->most,
	        (int64_t)when->least, when->day, (int64_t)limit);
}

static enum tw_status load(struct tw_db *db, const struct tw_rollup_due *of, struct tw_arena *a,
        struct tw_rollup_cell *ret, struct tw_err *err)
{
	struct tw_cat_cells k = {.db = db,
	        .project_id = of->project_id,
	        .arena = a,
	        .metrics = TW_ROLLUP_ALL,
	        .max_deltas = DELTAS_AT_ONCE};
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT " TW_CELL_COLUMNS " FROM rollup_cell WHERE project_id=? AND cell_id=?",
	        "ti", of->project_id, of->cell_id);

	if (tw_cat_row(&q))
		st = tw_cat_cell_row(&q, a, ret, err);
	else if (tw_cat_at_end(&q))
		st = tw_fail(err, TW_NOT_FOUND, "no such cell");
	st = tw_cat_close_after(&q, st, err);
	if (st == TW_OK)
		st = tw_cat_read_cells(&k, &ret, 1, err);
	tw_cat_cells_done(&k);
	return st;
}

enum tw_status tw_catalogue_rollup_load(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_rollup_cell *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_snapshot(c, &db, err);

	if (st != TW_OK)
		return st;
	st = load(db, of, a, ret, err);
	tw_cat_snapshot_done(c, db);
	return st;
}

static enum tw_status fail_changed(struct tw_err *err)
{
	return tw_fail(err, TW_CONFLICT, "the cell was changed by another transaction");
}

static enum tw_status take_deltas(struct tw_db *db, const char *project_id,
        const struct tw_rollup_cell *was, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "tit",
	        .sql = "DELETE FROM rollup_delta WHERE (project_id,cell_id,trace_id) IN (SELECT"
	               " c1,c2,c3 FROM {rows})"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < was->n_deltas; i++)
		st = tw_cat_rows_add(&rows, err, project_id, was->cell_id, was->deltas[i].trace_id);
	st = tw_cat_rows_end(&rows, st, err);
	return st == TW_OK && rows.changed != (int64_t)was->n_deltas ? fail_changed(err) : st;
}

static enum tw_status put_parts(struct tw_db *db, const char *project_id, int64_t cell_id,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "tiib",
	        .sql = "INSERT INTO rollup_part(project_id,cell_id,metric,data) SELECT c1,c2,c3,c4"
	               " FROM {rows} WHERE 1=1 ON CONFLICT(project_id,cell_id,metric) DO UPDATE"
	               " SET data=excluded.data"};
	enum tw_status st = TW_OK;

	for (int m = 0; st == TW_OK && m < TW_ROLLUP_METRICS; m++)
		if (parts[m].len)
			st = tw_cat_rows_add(
			        &rows, err, project_id, cell_id, (int64_t)m, &parts[m]);
	return tw_cat_rows_end(&rows, st, err);
}

enum tw_status tw_catalogue_rollup_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_cell *was, const struct tw_str *head,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, &changed, err, /* primary key */
		        "UPDATE rollup_cell SET head=?, version=version+1, pending=pending-?,"
		        " attempts=0 WHERE project_id=? AND cell_id=? AND version=?",
		        "bitii", head, (int64_t)was->n_deltas, project_id, was->cell_id,
		        was->version);
	if (st == TW_OK && changed == 0)
		st = fail_changed(err);
	if (st == TW_OK)
		st = take_deltas(w, project_id, was, err);
	if (st == TW_OK)
		st = put_parts(w, project_id, was->cell_id, parts, err);
	if (st == TW_OK)
		st = tw_cat_merged_due(w, project_id, &was->dims, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_rollup_postpone(
        struct tw_catalogue *c, const struct tw_rollup_due *of, int64_t now_ms, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_FLEET, ""},
	        err, /* primary key */
	        "UPDATE rollup_cell SET attempts=attempts+1, again_ms=?1+" TW_POSTPONE_MS(
	                "attempts") " WHERE project_id=?2 AND cell_id=?3",
	        "iti", now_ms, of->project_id, of->cell_id);
}
