/*
 * query_methods.c - totals per method of a selection.
 */
#include "server/query/query.h"

enum tw_status tw_query_methods(const struct tw_forest *f, uint32_t n_methods, struct tw_arena *a,
        struct tw_method_info **ret, struct tw_err *err)
{
	struct tw_method_info *rows = tw_arena_zalloc(a, n_methods, sizeof *rows);
	uint32_t *active = tw_arena_zalloc(a, n_methods, sizeof *active);

	if (!rows || !active)
		return tw_oom(err);
	for (uint32_t i = 0; i < f->n; i++)
		if (!tw_tree_add_methods(&f->trees[i], n_methods, rows, active))
			return tw_fail(err, TW_CORRUPT, "a call tree is damaged");
	*ret = rows;
	return TW_OK;
}
