#include "tests/unit/catalogue_plan/plan_found.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/catalogue/fleet/catalogue_found.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/derive/pipeline.h"

struct reported {
	const char *id;
	unsigned n;
};

static enum tw_status take(void *arg, const char *trace_id, struct tw_str data, struct tw_err *err)
{
	struct reported *t = arg;

	(void)err;
	assert_string_equal(trace_id, t->id);
	assert_int_equal(data.len, 1);
	t->n++;
	return TW_OK;
}

static bool is_todo(struct tw_catalogue *c, const char *project, const char *id, int64_t number)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_trace_row *todo;
	uint64_t waiting;
	bool found = false;
	size_t n;

	assert_int_equal(tw_catalogue_found_todo(c, project, number, 9, a, &todo, &n, NULL), TW_OK);
	for (size_t i = 0; i < n; i++)
		found = found || strcmp(todo[i].id, id) == 0;
	assert_int_equal(tw_catalogue_found_waiting(c, project, number, &waiting, NULL), TW_OK);
	assert_true(waiting >= n && (waiting > 0) == (n > 0));
	tw_arena_free(a);
	return found;
}

static void give_up(struct tw_catalogue *c, const char *project, const char *id)
{
	const struct tw_named_trace t = {project, id, "", ""};

	assert_int_equal(tw_catalogue_stage_give_up(c, tw_stage_findings.sql, &t, NULL), TW_OK);
}

/* Unprocessed traces come first: only this one then. */
static void skip_others(struct tw_catalogue *c, const char *project, const char *id)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_trace_row *todo;
	size_t n;

	assert_int_equal(tw_catalogue_found_todo(c, project, 7, 9, a, &todo, &n, NULL), TW_OK);
	for (size_t i = 0; i < n; i++)
		if (strcmp(todo[i].id, id) != 0)
			give_up(c, project, todo[i].id);
	tw_arena_free(a);
}

/* Until it is due, it is not selected. */
static void postponed(struct tw_catalogue *c, const char *project, const char *id)
{
	uint64_t waiting;

	const struct tw_named_trace t = {project, id, "", ""};
	bool more;

	assert_int_equal(
	        tw_catalogue_stage_postpone(c, tw_stage_findings.sql, &t, "busy", 1000, NULL),
	        TW_OK);
	assert_int_equal(
	        tw_catalogue_stage_resume(c, tw_stage_findings.sql, 5999, &more, NULL), TW_OK);
	assert_false(more);
	assert_int_equal(tw_catalogue_found_waiting(c, project, 9, &waiting, NULL), TW_OK);
	assert_int_equal(waiting, 1);
	assert_int_equal(
	        tw_catalogue_stage_resume(c, tw_stage_findings.sql, 6000, &more, NULL), TW_OK);
	assert_true(more);
	assert_true(is_todo(c, project, id, 9));
}

void plan_use_found(struct tw_catalogue *c, const char *project, const char *id)
{
	const struct tw_rollup_dims dims = {20000, "a", "1", "b", "", "s", "low", "14", ""};
	const struct tw_rollup_dims no_cell = {20000, "a", "1", "b", "", "s", "", "", "k=v"};
	const struct tw_rollup_dims of[] = {dims, no_cell};
	const struct tw_rollup_cell cell = {.cell_id = tw_rollup_cell_id(&dims), .dims = dims};
	const struct tw_rollup_cell none = {
	        .cell_id = tw_rollup_cell_id(&no_cell), .dims = no_cell};
	const struct tw_rollup_cell *cells[] = {&cell, &none};
	struct tw_found_trace t = {{project, id, "", ""}, {"", ""}, of, 2, {"x", 1}};
	const struct tw_rollup_reading f = {project, id, &dims, 1, 5, {0}, {0}, {"x", 1}};
	const char *library = "elf:0123", *image = "former";
	struct reported reported = {id, 0};
	const struct tw_found_reading all = {project, cells, 2, take, &reported};

	assert_false(
	        is_todo(c, project, id, 7)); /* before it is counted there are no cells for it */
	assert_int_equal(tw_catalogue_rollup_put(c, &f, 1, NULL), TW_OK);
	assert_true(is_todo(c, project, id, 7));
	skip_others(c, project, id);
	memcpy(t.by.map, "other", sizeof "other");
	assert_int_equal(tw_catalogue_found_put(c, &t, 1, 7, NULL), TW_OK);
	assert_true(is_todo(c, project, id, 7)); /* names of another mapping are not stored */
	t.by.map[0] = '\0';
	t.libraries = (struct tw_libraries){&library, &image, 1};
	assert_int_equal(tw_catalogue_found_put(c, &t, 1, 7, NULL), TW_OK);
	assert_true(is_todo(c, project, id, 7)); /* nor what other symbols name */
	image = "";
	assert_int_equal(tw_catalogue_found_put(c, &t, 1, 7, NULL), TW_OK);
	assert_false(is_todo(c, project, id, 7));
	assert_true(is_todo(c, project, id, 6));
	assert_true(is_todo(c, project, id, 8));
	assert_int_equal(tw_catalogue_found_put(c, &t, 1, 8, NULL), TW_OK); /* in place of it */
	assert_int_equal(tw_catalogue_found_read(c, &all, NULL), TW_OK);
	assert_int_equal(reported.n, 1);
	postponed(c, project, id);
	assert_int_equal(tw_catalogue_found_put(c, &t, 1, 9, NULL), TW_OK); /* again */
	reported.n = 0;
	assert_int_equal(tw_catalogue_found_read(c, &all, NULL), TW_OK);
	assert_int_equal(reported.n, 1);
	give_up(c, project, id);
	assert_false(is_todo(c, project, id, 10));
}
