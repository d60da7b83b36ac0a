/* catalogue_rollup.c - counts traces in rollups: stores names, marks the trace, adds deltas. */
#include "server/catalogue/fleet/catalogue_rollup.h"

#include "server/catalogue/fleet/catalogue_rollup_int.h"
#include "server/catalogue/traces/catalogue_names.h"

enum kept { KEPT_MARK, KEPT_CELL, KEPT_DELTA, KEPT_POST, KEPT_TREE, KEPT_TREE_DELTA, KEPT_ALL };

/* --- names --- */

static enum tw_status add_method(struct tw_db *db, struct tw_stmt **kept, const char *project_id,
        const struct tw_rollup_naming *m, int64_t day, struct tw_err *err)
{
	return tw_cat_exec_kept(db, kept, err,
	        "INSERT INTO rollup_method(project_id,method_id,build_id,mapping_id,raw,name,"
	        "descriptor,named,seen_day) VALUES(?,?,?,?,?,?,?,?,?) ON "
	        "CONFLICT(project_id,method_id)"
	        " DO UPDATE SET seen_day=max(rollup_method.seen_day,excluded.seen_day)",
	        "titttttii", project_id, (int64_t)m->id, m->build_id, m->mapping_id, m->raw,
	        m->name, m->descriptor, (int64_t)m->named, day);
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
		st = tw_cat_rename(db, names->project_id, m->build_id, err);
	if (st == TW_OK && !same && m->mapping_id[0])
		st = tw_cat_rename(db, names->project_id, m->mapping_id, err);
	return st;
}

enum tw_status tw_catalogue_rollup_name(
        struct tw_catalogue *c, const struct tw_rollup_names *names, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_stmt *kept = NULL;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < names->n; i++)
		st = add_method(w, &kept, names->project_id, &names->methods[i], names->day, err);
	tw_stmt_drop(kept);
	if (st == TW_OK && names->n)
		st = name_again_if_mapped(w, names, err);
	return tw_cat_end(c, w, st, err);
}

/* --- counting --- */

static enum tw_status add_to_cell(struct tw_db *db, struct tw_stmt **kept,
        const struct tw_rollup_reading *f, const struct tw_rollup_dims *d, struct tw_err *err)
{
	const struct tw_str no_head = {"", 0};
	const struct tw_tree_place at = {tw_rollup_cell_id(d), d->day};
	int64_t cell_id = at.cell_id;
	enum tw_status st = tw_cat_exec_kept(db, &kept[KEPT_CELL], err,
	        "INSERT INTO rollup_cell(project_id,cell_id,day,app,version_name,build_id,"
	        "mapping_id,scenario,device_class,os,label,traces,pending,head)"
	        " VALUES(?,?,?,?,?,?,?,?,?,?,?,1,1,?) ON CONFLICT(project_id,cell_id) DO UPDATE SET"
	        " traces=rollup_cell.traces+1, pending=rollup_cell.pending+1",
	        "tiittttttttb", f->project_id, cell_id, d->day, d->app, d->version_name,
	        d->build_id, d->mapping_id, d->scenario, d->device_class, d->os, d->label,
	        &no_head);

	if (st == TW_OK)
		st = tw_cat_exec_kept(db, &kept[KEPT_DELTA], err,
		        "INSERT INTO rollup_delta(project_id,cell_id,trace_id,duration_ns,data)"
		        " VALUES(?,?,?,?,?)",
		        "titib", f->project_id, cell_id, f->trace_id, f->duration_ns, &f->facts);
	if (st == TW_OK)
		st = tw_cat_index_add(db, &kept[KEPT_POST], f, cell_id, err);
	return st == TW_OK ? tw_cat_tree_add(db, &kept[KEPT_TREE], f, &at, err) : st;
}

static enum tw_status fold_one(struct tw_db *db, struct tw_stmt **kept,
        const struct tw_rollup_reading *f, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec_kept(db, &kept[KEPT_MARK], err,
	        "UPDATE trace SET folded=1 WHERE project_id=? AND trace_id=? AND state=2 AND"
	        " folded=0",
	        "tt", f->project_id, f->trace_id);

	if (st != TW_OK || tw_db_changed(db) == 0)
		return st;
	for (size_t i = 0; st == TW_OK && i < f->n_cells; i++)
		st = add_to_cell(db, kept, f, &f->cells[i], err);
	return st;
}

enum tw_status tw_catalogue_rollup_put(
        struct tw_catalogue *c, const struct tw_rollup_reading *f, size_t n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_stmt *kept[KEPT_ALL] = {NULL};
	enum tw_status st = tw_cat_begin(c, TW_ALONE_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = fold_one(w, kept, &f[i], err);
	for (int i = 0; i < KEPT_ALL; i++)
		tw_stmt_drop(kept[i]);
	return tw_cat_end(c, w, st, err);
}
