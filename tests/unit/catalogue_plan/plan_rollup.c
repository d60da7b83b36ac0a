#include "tests/unit/catalogue_plan/plan_rollup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/catalogue/fleet/catalogue_search_index.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/derive/pipeline.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/stats/rollup_tree.h"
#include "tests/unit/catalogue_fixture.h"

static void make_ready(const char *dir)
{
	struct tw_db *db = catalogue_connect(dir);

	catalogue_run(db, "/* */ UPDATE trace SET state=2"); /* not one of the server */
	tw_db_close(db);
}

static void use_regressions(
        struct tw_catalogue *c, const char *project, const char *id, struct tw_arena *a)
{
	const struct tw_regression_query all = {"", "", "", "", "", 15, 0};
	const struct tw_regress_found f = {.app = "a",
	        .scenario = "s",
	        .method = "m",
	        .descriptor = "",
	        .base = "",
	        .head = "",
	        .after_trace = id,
	        .fixed_in = ""};
	struct tw_triage_item triage = {
	        TW_TRIAGE_REGRESSION, "", {TW_REGRESS_FIXED, "1", "o", "n", 0}};
	struct tw_regression *rows, one;
	const struct tw_inbox_query inbox = {"", "", 1, 1, TW_INBOX_UNMUTED, {INT64_MAX, ""}, 1};
	struct tw_inbox_counts counts;
	const char *cursor;
	uint64_t fresh = 0;
	size_t n;

	assert_int_equal(tw_catalogue_regression_store(c, project, &f, 1, &fresh, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_regressions(c, project, &all, 1, "", a, &rows, &n, &cursor, NULL),
	        TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(cursor, "");
	assert_int_equal(
	        tw_catalogue_inbox_count_regressions(c, project, &inbox, &counts, NULL), TW_OK);
	assert_int_equal(counts.of[TW_REGRESS_OPEN][0], 1);
	assert_int_equal(
	        tw_catalogue_inbox_regressions(c, project, &inbox, a, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	triage.id = rows[0].id;
	assert_int_equal(tw_catalogue_triage(c, project, &triage, 1, NULL), TW_OK);
	assert_int_equal(tw_catalogue_regression_get(c, project, rows[0].id, a, &one, NULL), TW_OK);
}

static enum tw_status look(
        void *arg, size_t cell, unsigned slot, const struct tw_index_row *row, struct tw_err *err)
{
	(void)arg, (void)cell, (void)slot, (void)row, (void)err;
	return TW_OK;
}

static void use_posts(struct tw_catalogue *c, const char *project,
        const struct tw_rollup_cell *cell, struct tw_arena *a)
{
	const struct tw_rollup_due of = {project, cell->cell_id};
	const struct tw_index_query query = {project, cell, 1, 1, look, NULL};
	struct tw_index_names names = {project, "unknown:1", NULL, NULL, 9};
	const struct tw_str rows[TW_INDEX_ROWS] = {{"x", 1}};
	struct tw_rollup_naming *found;
	struct tw_index_row *loose;
	bool all;
	size_t n;

	assert_int_equal(tw_catalogue_index_loose(c, &of, 9, a, &loose, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_index_pack(c, &of, loose, n, rows, NULL), TW_OK);
	assert_int_equal(tw_catalogue_index_pack(c, &of, loose, n, rows, NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_index_read(c, &query, NULL), TW_OK);
	assert_int_equal(tw_catalogue_index_names(c, &names, a, &found, &n, &all, NULL), TW_OK);
	assert_int_equal(n, 1);
	names.name = NULL;
	assert_int_equal(tw_catalogue_index_names(c, &names, a, &found, &n, &all, NULL), TW_OK);
	assert_true(all);
}

void plan_use_rollups(struct tw_catalogue *c, const char *dir, const char *project, const char *id)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	const struct tw_rollup_dims cell = {20000, "a", "1", "b", "", "s", "low", "14", ""};
	const struct tw_rollup_naming method = {7, "b", "", "#1", "unknown:1", "", false};
	const struct tw_rollup_fact fact = {7, 1, 5, 5, 5, -1, 0};
	const struct tw_rollup_filter any = tw_rollup_days(20000, 20000);
	struct tw_str head, parts[TW_ROLLUP_METRICS] = {{0}};
	const struct tw_rollup_names given = {project, &method, 1, 20000, {"", ""}};
	struct tw_rollup_reading f = {project, id, &cell, 1, 5, {0}, {0}, {"x", 1}};
	const char *library = "elf:0123456789abcdef0123456789abcdef01234567", *image = "former";
	struct tw_rollup_when when = {1, 1, 0, INT64_MAX / 2, ""};
	const struct tw_rollup_filter labelled = {"", "", "", "", "", "", "key", 20000, 20000};
	struct tw_stage_waiting waiting;
	uint64_t counted;
	struct tw_rollup_naming *names;
	struct tw_named_trace *todo;
	char next[TW_ID_BYTES];
	const char *const *projects;
	int64_t entry = 0;
	struct tw_rollup_cell *cells, one;
	struct tw_rename rename;
	struct tw_rollup_reset sums;
	struct tw_rollup_due *due;
	struct tw_rollup_tree t = {.arena = a, .traces = 1};
	struct tw_tree_cell *tree;
	struct tw_buf facts, written;
	uint64_t *ids;
	bool more;
	size_t n;

	make_ready(dir);
	tw_buf_init(&facts, 1000);
	tw_rollup_write_facts(&fact, 1, &facts);
	f.facts = (struct tw_str){(const char *)facts.data, facts.len};
	tw_buf_init(&written, 1000);
	assert_int_equal(tw_rollup_tree_write(&t, &written, &written, NULL), TW_OK);
	f.tree = (struct tw_str){(const char *)written.data, written.len};
	for (int i = 0; tw_stages[i]; i++) {
		const struct tw_stage_sql *m = tw_stages[i]->sql;

		if (tw_stages[i]->all)
			assert_int_equal(tw_catalogue_stage_projects(
			                         c, tw_stages[i]->all, a, &projects, &n, NULL),
			        TW_OK);
		if (!m)
			continue;
		assert_int_equal(tw_catalogue_stage_next(c, m, "", next, NULL), TW_OK);
		assert_int_equal(
		        tw_catalogue_stage_changed(c, &entry, a, &projects, &n, NULL), TW_OK);
		assert_int_equal(
		        tw_catalogue_stage_todo(c, m, project, 9, a, &todo, &n, NULL), TW_OK);
		if (n)
			assert_int_equal(
			        tw_catalogue_stage_postpone(c, m, todo, "busy", 0, NULL), TW_OK);
		assert_int_equal(tw_catalogue_stage_resume(c, m, 5000, &more, NULL), TW_OK);
		assert_int_equal(more, n > 0);
		assert_int_equal(tw_catalogue_stage_waiting(c, m, "", &waiting, NULL), TW_OK);
		assert_true(strcmp(m->stage, "rollup") != 0 || waiting.traces > 0);
		if (n && m->give_up && strcmp(m->stage, "rollup") != 0)
			assert_int_equal(tw_catalogue_stage_give_up(c, m, todo, NULL), TW_OK);
	}
	assert_int_equal(tw_catalogue_rollup_name(c, &given, NULL), TW_OK);
	f.natives = (struct tw_used_libraries){{&library, &image, 1}, "b", 20000};
	assert_int_equal(tw_catalogue_rollup_put(c, &f, 1, NULL), TW_OK);
	assert_int_equal(tw_catalogue_rollup_count(c, project, &any, &counted, NULL), TW_OK);
	assert_int_equal(counted, 0); /* its library has other symbols */
	assert_int_equal(tw_catalogue_rollup_expanded(c, project, library, &more, NULL), TW_OK);
	assert_false(more);
	image = "";
	assert_int_equal(tw_catalogue_rollup_put(c, &f, 1, NULL), TW_OK);
	assert_int_equal(tw_catalogue_rollup_expanded(c, project, library, &more, NULL), TW_OK);
	assert_true(more);
	assert_int_equal(
	        tw_catalogue_rollup_read(c, project, &any, TW_ROLLUP_ALL, a, &cells, &n, NULL),
	        TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(cells[0].n_deltas, 1);
	assert_int_equal(tw_catalogue_rollup_count(c, project, &any, &counted, NULL), TW_OK);
	assert_int_equal(counted, 1);
	assert_int_equal(
	        tw_catalogue_rollup_read(c, project, &labelled, 0, a, &cells, &n, NULL), TW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(tw_catalogue_rollup_read(c, project, &any, 0, a, &cells, &n, NULL), TW_OK);
	use_posts(c, project, &cells[0], a);
	assert_int_equal(tw_catalogue_rollup_due(c, &when, 9, a, &due, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_rollup_postpone(c, due, 0, NULL), TW_OK);
	assert_int_equal(tw_catalogue_rollup_load(c, due, a, &one, NULL), TW_OK);
	assert_int_equal(tw_rollup_cell_add(&one, a, &head, parts, NULL), TW_OK);
	assert_int_equal(tw_catalogue_rollup_store(c, project, &one, &head, parts, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_trees_read(c, project, &one.cell_id, 1, true, a, &tree, NULL), TW_OK);
	assert_int_equal(tree->n_deltas, 1);
	assert_int_equal(tw_rollup_trees_add(c, 1, 0, &more, NULL), TW_OK);
	assert_true(more);
	assert_int_equal(tw_rollup_merged_add(c, INT32_MAX, &more, NULL), TW_OK);
	assert_true(more);
	assert_int_equal(tw_catalogue_rollup_read(c, project, &any,
	                         TW_ROLLUP_ALL | TW_ROLLUP_MERGED, a, &cells, &n, NULL),
	        TW_OK);
	assert_int_equal(
	        tw_catalogue_rollup_find(c, project, "unknown:1", a, &ids, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_rollup_names(c, project, ids, n, a, &names, NULL), TW_OK);
	while (tw_catalogue_rollup_renames(c, NULL, a, &rename, &names, &n, NULL) == TW_OK)
		assert_int_equal(tw_catalogue_rollup_renamed(c, &rename, names, n, NULL), TW_OK);
	use_regressions(c, project, id, a);
	assert_int_equal(
	        tw_catalogue_rollup_reset_build(c, project, "elf:other", &sums, NULL), TW_OK);
	assert_int_equal(sums.days + sums.days_kept, 0);
	assert_int_equal(tw_catalogue_rollup_reset_build(c, project, library, &sums, NULL), TW_OK);
	assert_true(sums.days + sums.days_kept > 0);
	assert_int_equal(tw_catalogue_rollup_reset(c, project, &sums, NULL), TW_OK);
	for (more = true; more;)
		assert_int_equal(tw_catalogue_rollup_expire(c, 20001, &more, NULL), TW_OK);
	assert_int_equal(tw_catalogue_rollup_expanded(c, project, library, &more, NULL), TW_OK);
	assert_false(more);
	tw_buf_done(&facts);
	tw_buf_done(&written);
	tw_arena_free(a);
}
