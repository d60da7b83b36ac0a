/* catalogue_anr_index.c - extraction of ANRs and lock waits: pending traces, results, expiry. */
#include "server/catalogue/anr/catalogue_anr_rollup_int.h"
#include "server/catalogue/traces/catalogue_trace.h"

#include <stdio.h>
#include <string.h>

#include "server/base/secret.h"

enum { EXPIRED_AT_ONCE = 256, RESET_AT_ONCE = 1000 };

/* --- facts of a trace --- */

static enum tw_status forget(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err)
{
	static const char *const sql[] = {/* primary keys */
	        "DELETE FROM lock_wait WHERE project_id=? AND trace_id=?",
	        "DELETE FROM anr WHERE project_id=? AND trace_id=?",
	        "DELETE FROM anr_trace WHERE project_id=? AND trace_id=?"};
	enum tw_status st = tw_cat_anr_rollup_undo(db, project_id, trace_id, err);

	for (int i = 0; st == TW_OK && i < 3; i++)
		st = tw_cat_exec(db, NULL, err, sql[i], "tt", project_id, trace_id);
	return st;
}

/* The user with that name, otherwise the uploading installation. */
static enum tw_status user_of(
        struct tw_db *db, const struct tw_anr_entry *h, int64_t *ret, struct tw_err *err)
{
	*ret = tw_cat_install(h->row->project_id, h->user);
	if (*ret)
		return TW_OK;
	return tw_cat_get_int(db, ret, err,
	        "SELECT install FROM trace WHERE project_id=? AND trace_id=?", "tt",
	        h->row->project_id, h->row->id);
}

static enum tw_status insert_anr_trace(
        struct tw_db *db, const struct tw_anr_entry *h, struct tw_err *err)
{
	const struct tw_trace_row *row = h->row;
	const struct tw_trace_meta *m = &row->meta;
	int64_t who = 0;
	enum tw_status st = user_of(db, h, &who, err);

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO"
		        " anr_trace(project_id,trace_id,recorded_ms,day,app,version_name,"
		        "build_id,mapping_id,scenario,device,device_class,os,labels,who,anr)"
		        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
		        "ttiitttttttttii", row->project_id, row->id, m->recorded_ms,
		        m->recorded_ms / TW_DAY_MS, m->app, m->version_name, m->build_id,
		        m->mapping_id, m->scenario, m->device, h->device_class, m->os,
		        m->labels[0] ? m->labels : "{}", who, (int64_t)h->anr);
	if (st == TW_OK)
		st = tw_cat_anr_rollup_waits(db, row->project_id, m->recorded_ms / TW_DAY_MS, err);
	if (st == TW_OK && h->anr)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO anr(project_id,trace_id,brief,base,key,kind,name,title,"
		        "verdict,detail) VALUES(?,?,?,'','','','','','','{}')",
		        "ttb", row->project_id, row->id, &h->brief);
	return st;
}

#define LOCK(member) TW_FIELD(struct tw_lock_wait, member, #member, NULL)
static const struct tw_field lock_fields[] = {LOCK(dump), LOCK(is_main), LOCK(raw_monitor),
        LOCK(raw_owner), LOCK(source), LOCK(monitor), LOCK(owner), LOCK(holder), LOCK(waits),
        LOCK(timed), LOCK(total_ns), LOCK(max_ns)};
const struct tw_fields tw_cat_lock_fields = TW_FIELDS(lock_fields);

enum tw_status tw_cat_lock_insert(struct tw_db *db, const char *project_id, const char *trace_id,
        const struct tw_lock_wait *l, size_t n, struct tw_err *err)
{
	struct tw_stmt *prepared = NULL;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_cat_write(db,
		        &(struct tw_cat_written){&tw_cat_lock_fields, &l[i], &prepared}, err,
		        "INSERT INTO lock_wait(project_id,trace_id,seq,{columns})"
		        " VALUES(?1,?2,?3,{values})",
		        "tti", project_id, trace_id, (int64_t)i);
	tw_stmt_drop(prepared);
	return st;
}

/* A trace without facts has no row, unless an engine has a copy of its former ones: the row then
 * replaces that copy. */
static enum tw_status needs_row(struct tw_db *db, const struct tw_anr_entry *h, bool had_facts,
        bool *ret, struct tw_err *err)
{
	int64_t engines = 0;
	enum tw_status st = TW_OK;

	*ret = h->anr || h->n_locks;
	if (!*ret && had_facts)
		st = tw_cat_get_int(db, &engines, err, "SELECT count(*) FROM fleet_engine", "");
	*ret = *ret || engines > 0;
	return st;
}

static enum tw_status put(
        struct tw_db *db, const struct tw_anr_entry *h, bool had_facts, struct tw_err *err)
{
	const struct tw_trace_row *row = h->row;
	bool needed = false;
	int there = 0;
	enum tw_status st = tw_cat_exec(db, &there, err, /* primary key */
	        "UPDATE trace SET anr_state=1 WHERE project_id=? AND trace_id=? AND state=2", "tt",
	        row->project_id, row->id);

	if (st != TW_OK || !there)
		return st;
	st = needs_row(db, h, had_facts, &needed, err);
	if (st == TW_OK)
		st = forget(db, row->project_id, row->id, err);
	if (st == TW_OK && needed)
		st = insert_anr_trace(db, h, err);
	return st == TW_OK
	               ? tw_cat_lock_insert(db, row->project_id, row->id, h->locks, h->n_locks, err)
	               : st;
}

struct putting { /* tw_catalogue_anr_put, as one transaction */
	const struct tw_anr_entry *of;
	size_t n;
	struct tw_arena *arena;
	bool *has_facts; /* stored before, of each */
};

static enum tw_status find_facts(struct tw_db *db, const struct putting *p, struct tw_err *err)
{
	const char **ids = tw_arena_alloc(p->arena, p->n, sizeof *ids);
	const char *list = NULL;
	struct tw_cat_query q;
	enum tw_status st;

	memset(p->has_facts, 0, p->n * sizeof *p->has_facts);
	for (size_t i = 0; ids && i < p->n; i++)
		ids[i] = p->of[i].row->id;
	if (ids)
		list = tw_cat_texts(db, ids, p->n, p->arena);
	st = list ? tw_cat_query(&q, db, err, /* primary key */
	                    "SELECT trace_id FROM anr_trace WHERE project_id=?1 AND"
	                    " trace_id" TW_CAT_AMONG_TEXTS("?2"),
	                    "tt", p->of[0].row->project_id, list)
	          : tw_oom(err);
	if (st != TW_OK)
		return st;
	while (tw_cat_row(&q))
		for (size_t i = 0; i < p->n; i++)
			if (strcmp(p->of[i].row->id, tw_cat_str(&q, 0)) == 0)
				p->has_facts[i] = true;
	return tw_cat_close(&q, err);
}

/* Most traces have no facts, and had none: for those only the state of the stage changes. */
static enum tw_status put_all(struct tw_db *db, void *arg, struct tw_err *err)
{
	const struct putting *p = arg;
	struct tw_cat_rows states = {.db = db,
	        .types = "tt",
	        .sql = "UPDATE trace SET anr_state=1 FROM {rows} WHERE trace.project_id=r.c1 AND"
	               " trace.trace_id=r.c2 AND trace.state=2"};
	enum tw_status st = find_facts(db, p, err);

	for (size_t i = 0; st == TW_OK && i < p->n; i++) {
		const struct tw_anr_entry *h = &p->of[i];

		if (p->has_facts[i] || h->anr || h->n_locks)
			st = put(db, h, p->has_facts[i], err);
		else
			st = tw_cat_rows_add(&states, err, h->row->project_id, h->row->id);
	}
	return tw_cat_rows_end(&states, st, err);
}

enum tw_status tw_catalogue_anr_put(
        struct tw_catalogue *c, const struct tw_anr_entry *h, size_t n, struct tw_err *err)
{
	struct putting p = {h, n, tw_arena_new(1 << 20), NULL};
	enum tw_status st;

	if (p.arena)
		p.has_facts = tw_arena_alloc(p.arena, n + 1, sizeof *p.has_facts);
	st = !p.has_facts ? tw_oom(err)
	     : n          ? tw_cat_transact(c, TW_SUBJECT_ANR, put_all, &p, err)
	                  : TW_OK;
	tw_arena_free(p.arena);
	return st;
}

/* Hash of a text that identifies a person within a project; 0 for none. */
int64_t tw_cat_install(const char *project_id, const char *name)
{
	char text[TW_ID_BYTES + 1 + 512];
	uint64_t bits;

	if (!name || !name[0])
		return 0;
	(void)snprintf(text, sizeof text, "%s\n%s", project_id, name);
	bits = tw_secret_bits(text);
	return (int64_t)(bits >> 1) + 1;
}

/* --- reset and expiry --- */

struct range { /* a range of a project's trace ids, for traces and for their facts, which outlive
	        * them */
	const char *project_id;
	char after[TW_ID_BYTES], last[TW_ID_BYTES];
};

/* The next batch; last is "" for the final, smaller one. */
static enum tw_status next_range(struct tw_db *db, struct range *io, struct tw_err *err)
{
	return tw_cat_get_text(db, io->last, sizeof io->last, err, /* primary key */
	        "SELECT min(x) FROM (SELECT (SELECT trace_id FROM trace WHERE project_id=?1 AND"
	        " trace_id>?2 ORDER BY trace_id LIMIT 1 OFFSET ?3) AS x UNION ALL SELECT (SELECT"
	        " trace_id FROM anr_trace WHERE project_id=?1 AND trace_id>?2 ORDER BY trace_id"
	        " LIMIT 1 OFFSET ?3)) of_both",
	        "tti", io->project_id, io->after, (int64_t)RESET_AT_ONCE);
}

static enum tw_status reset_range(struct tw_catalogue *c, struct range *io, struct tw_err *err)
{
	struct tw_db *w = NULL;
	static const char *const sql[] = {/* primary keys; no id is as large as '~' */
	        "UPDATE trace SET anr_state=0 WHERE project_id=? AND trace_id>? AND trace_id<=? AND"
	        " anr_state<>0",
	        "UPDATE anr_trace SET keyed=0 WHERE project_id=? AND trace_id>? AND trace_id<=?"};
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ANR, "", &w, err);

	if (st == TW_OK)
		st = next_range(w, io, err);
	for (int i = 0; st == TW_OK && i < 2; i++)
		st = tw_cat_exec(w, NULL, err, sql[i], "ttt", io->project_id, io->after,
		        io->last[0] ? io->last : "~");
	return tw_cat_end(c, w, st, err);
}

/* Other writers run between the batches; new traces are read anyway. */
enum tw_status tw_catalogue_anr_reset(
        struct tw_catalogue *c, const char *project_id, struct tw_err *err)
{
	struct range s = {.project_id = project_id};
	enum tw_status st;

	do {
		st = reset_range(c, &s, err);
		memcpy(s.after, s.last, sizeof s.after);
	} while (st == TW_OK && s.after[0]);
	return st;
}

struct old {
	const char *project_id, *trace_id;
};

static const struct tw_fields old_fields =
        TW_FIELDS_OF(TW_FIELD(struct old, project_id, "project_id", NULL),
                TW_FIELD(struct old, trace_id, "trace_id", NULL));

static enum tw_status forget_all(
        struct tw_catalogue *c, const struct old *old, size_t n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ANR, "", &w, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = forget(w, old[i].project_id, old[i].trace_id, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_anr_expire(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_cat_list list = {.arena = a,
	        .limit = EXPIRED_AT_ONCE,
	        .row_bytes = sizeof(struct old),
	        .fields = &old_fields};
	bool days = false;
	enum tw_status st = a ? tw_cat_anr_rollup_expire(c, day, a, &days, err) : tw_oom(err);

	/* rollups first, so that reports need not be subtracted one by one */
	if (st == TW_OK && !days)
		st = tw_cat_list(c, &list, err, /* anr_trace_by_age */
		        "SELECT {columns} FROM anr_trace WHERE day<? LIMIT ?", "ii", day,
		        (int64_t)EXPIRED_AT_ONCE);
	if (st == TW_OK && list.n)
		st = forget_all(c, list.rows, list.n, err);
	*ret_more = st == TW_OK && (days || list.n == EXPIRED_AT_ONCE);
	tw_arena_free(a);
	return st;
}
