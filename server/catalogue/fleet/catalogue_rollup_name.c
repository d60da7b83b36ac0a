/*
 * catalogue_rollup_name.c - renames methods in rollups after a new mapping, in batches.
 *
 * Counts do not change; only the names of the methods' ids do.
 */
#include <inttypes.h>
#include <stdio.h>

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/fleet/catalogue_rollup.h"

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
	struct tw_stmt *kept = NULL;
	bool ours = false;
	char last[24];
	enum tw_status st = tw_cat_begin(c, TW_ALONE_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(last, sizeof last, "%" PRIi64, n ? (int64_t)methods[n - 1].id : 0);
	st = tw_cat_rename_done(w, "rollup", of, n ? last : NULL, &ours, err);
	for (size_t i = 0; st == TW_OK && ours && i < n; i++)
		st = tw_cat_exec_kept(w, &kept, err, /* primary key */
		        "UPDATE rollup_method SET name=?, descriptor=?, named=?"
		        " WHERE project_id=? AND method_id=?",
		        "ttiti", methods[i].name, methods[i].descriptor, (int64_t)methods[i].named,
		        of->project_id, (int64_t)methods[i].id);
	tw_stmt_drop(kept);
	return tw_cat_end(c, w, st, err);
}
