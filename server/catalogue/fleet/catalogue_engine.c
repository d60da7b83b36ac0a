#include "server/catalogue/fleet/catalogue_engine.h"

#include "server/catalogue/anr/catalogue_anr_index_int.h"
#include "server/catalogue/catalogue_internal.h"

/* --- the engine --- */

static enum tw_status replace_engine(struct tw_db *w, const char *name, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(w, NULL, err, "DELETE FROM fleet_engine", "");

	if (st == TW_OK && name[0])
		return tw_cat_exec(w, NULL, err,
		        "INSERT INTO fleet_engine(name) VALUES(?) ON CONFLICT DO NOTHING", "t",
		        name);
	return st == TW_OK ? tw_cat_exec(w, NULL, err, "DELETE FROM fleet_erase", "") : st;
}

enum tw_status tw_catalogue_engine_set(struct tw_catalogue *c, const char *name, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, /* a row at most */
	        "SELECT count(*) FROM fleet_engine WHERE ?1='' OR name=?1", "t", name);

	if (st != TW_OK || n == (name[0] != 0))
		return st;
	st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);
	if (st != TW_OK)
		return st;
	st = replace_engine(w, name, err);
	return tw_cat_end(c, w, st, err);
}

/* --- deleted traces --- */

static const struct tw_fields erased_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_erased, project_id, "project_id", NULL),
                TW_FIELD(struct tw_erased, trace_id, "trace_id", NULL),
                TW_FIELD(struct tw_erased, day, "day", NULL));

enum tw_status tw_catalogue_erased(struct tw_catalogue *c, bool hidden, uint32_t limit,
        struct tw_arena *a, struct tw_erased **ret, size_t *ret_n, struct tw_err *err)
{
	*ret_n = 0;
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &erased_fields, ret, ret_n),
	        err, /* fleet_erase_hidden */
	        "SELECT {columns} FROM fleet_erase WHERE hidden=? ORDER BY trace_id LIMIT ?", "ii",
	        (int64_t)hidden, (int64_t)limit);
}

enum tw_status tw_catalogue_erased_done(struct tw_catalogue *c, bool hidden,
        const struct tw_erased *of, size_t n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_cat_exec(w, NULL, err, /* primary key */
		        hidden ? "DELETE FROM fleet_erase WHERE project_id=? AND trace_id=?"
		               : "UPDATE fleet_erase SET hidden=1 WHERE project_id=? AND"
		                 " trace_id=?",
		        "tt", of[i].project_id, of[i].trace_id);
	return tw_cat_end(c, w, st, err);
}

/* --- ANRs and lock waits --- */

#define COPY(member, column) TW_FIELD(struct tw_anr_copy, member, column, NULL)
static const struct tw_fields copy_fields = TW_FIELDS_OF(COPY(project_id, "h.project_id"),
        COPY(trace_id, "h.trace_id"), COPY(row.meta.app, "h.app"),
        COPY(row.meta.version_name, "h.version_name"), COPY(row.meta.build_id, "h.build_id"),
        COPY(row.meta.mapping_id, "h.mapping_id"), COPY(row.meta.scenario, "h.scenario"),
        COPY(row.meta.device, "h.device"), COPY(row.meta.os, "h.os"),
        COPY(row.meta.labels, "h.labels"), COPY(device_class, "h.device_class"), COPY(key, "h.key"),
        COPY(kind, "h.kind"), COPY(name, "a.name"), COPY(title, "a.title"),
        COPY(verdict, "a.verdict"), COPY(row.meta.recorded_ms, "t.recorded_ms"), COPY(who, "h.who"),
        COPY(keyed, "h.keyed"), COPY(anr, "h.anr"), COPY(row.meta.version_code, "''"),
        COPY(row.meta.abi, "''"), COPY(row.meta.process, "''"), COPY(row.meta.session_id, "''"),
        COPY(row.meta.uuid, "''"));

enum tw_status tw_catalogue_anr_uncopied(struct tw_catalogue *c, uint32_t limit, struct tw_arena *a,
        struct tw_anr_copy **ret, size_t *ret_n, struct tw_err *err)
{
	enum tw_status st = tw_cat_list(c, TW_CAT_LIST(a, limit, &copy_fields, ret, ret_n),
	        err, /* anr_trace_uncopied, primary keys */
	        "SELECT {columns} FROM anr_trace h JOIN trace t"
	        " ON t.project_id=h.project_id AND t.trace_id=h.trace_id LEFT JOIN anr a ON"
	        " a.project_id=h.project_id AND a.trace_id=h.trace_id WHERE h.copied=0 AND"
	        " h.keyed<>0 ORDER BY h.project_id, h.trace_id LIMIT ?",
	        "i", (int64_t)limit);

	if (st != TW_OK)
		*ret_n = 0;
	for (size_t i = 0; st == TW_OK && i < *ret_n; i++)
		st = tw_cat_lock_list(c, (*ret)[i].project_id, (*ret)[i].trace_id, a,
		        &(*ret)[i].locks, &(*ret)[i].n_locks, err);
	return st;
}

enum tw_status tw_catalogue_anr_copied(
        struct tw_catalogue *c, const struct tw_anr_copy *of, size_t n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ANR, "", &w, err);

	for (size_t i = 0; st == TW_OK && i < n; i++) /* unless it was named again since */
		st = tw_cat_exec(w, NULL, err,        /* primary key */
		        "UPDATE anr_trace SET copied=1 WHERE project_id=? AND trace_id=? AND "
		        "keyed=?",
		        "tti", of[i].project_id, of[i].trace_id, of[i].keyed);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_anr_copy_again(
        struct tw_catalogue *c, const char *project_id, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_ANR, ""}, err, /* primary key */
	        "UPDATE anr_trace SET copied=0 WHERE project_id=? AND copied<>0", "t", project_id);
}
