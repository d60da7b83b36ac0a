/* catalogue_rollup.c - counts traces in rollups: stores names, marks the trace, adds deltas. */
#include "server/catalogue/fleet/catalogue_rollup.h"

#include <string.h>

#include "server/catalogue/fleet/catalogue_rollup_int.h"
#include "server/catalogue/traces/catalogue_names.h"

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

	return tw_cat_transact(c, TW_ALONE_FLEET, name_all, &of, err);
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

static void add_counted(struct counting *k, const struct tw_rollup_reading *f)
{
	for (size_t at = 0; at < f->n_cells; at++)
		k->counted[k->n_counted++] =
		        (struct tw_in_cell){f, &f->cells[at], tw_rollup_cell_id(&f->cells[at])};
}

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
		list = tw_cat_ids(db, ids, k->n, k->arena);
	st = list ? tw_cat_query(&q, db, err, /* primary key */
	                    "SELECT trace_id FROM trace WHERE project_id=?1 AND"
	                    " trace_id" TW_CAT_AMONG_IDS(
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

static enum tw_status mark(struct tw_db *db, struct counting *k, struct tw_err *err)
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
		add_counted(k, &k->of[i]);
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
	enum tw_status st = mark(w, k, err);

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
	     : n                    ? tw_cat_transact(c, TW_ALONE_FLEET, count_all, &k, err)
	                            : TW_OK;
	tw_arena_free(k.arena);
	return st;
}
