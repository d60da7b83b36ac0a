/* Reads of many cells, methods and trees take a few statements, however many there are, and give
 * each its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { CELLS = 50, METHODS = 3000, DELTAS = 3, STATEMENTS = 10 };

struct many {
	char dir[40];
	struct tw_catalogue *c;
	struct tw_arena *arena;
};

/* Cell i has id 7*i-100, parts and deltas that name it; method i has id 13*i. */
static void fill(struct tw_catalogue *c)
{
	static const struct tw_str none = {"", 0};
	struct tw_db *w = NULL;

	assert_int_equal(tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, NULL), TW_OK);
	for (int64_t i = 0; i < CELLS; i++) {
		const int64_t id = 7 * i - 100;
		char text[40];
		struct tw_str data = {text, 0};

		data.len = (size_t)snprintf(text, sizeof text, "%lld", (long long)id);
		assert_int_equal(
		        tw_cat_exec(w, NULL, NULL,
		                "INSERT INTO rollup_cell(project_id,cell_id,day,app,"
		                "version_name,build_id,mapping_id,scenario,device_class,"
		                "os,label,traces,pending,version,head)"
		                " VALUES('p',?1,?2,'','','','','s','','','',9,?3,?4,?5)",
		                "iiiib", id, i % 5, (int64_t)DELTAS, (int64_t)(i % 4 != 0), &none),
		        TW_OK);
		assert_int_equal(
		        tw_cat_exec(w, NULL, NULL,
		                "INSERT INTO rollup_part VALUES('p',?1,0,?2),('p',?1,1,?2)", "ib",
		                id, &data),
		        TW_OK);
		assert_int_equal(tw_cat_exec(w, NULL, NULL,
		                         "INSERT INTO rollup_tree(project_id,cell_id,day,pending,"
		                         "version,data,levels) VALUES('p',?1,1,1,1,?2,?3)",
		                         "ibb", id, &data, &none),
		        TW_OK);
		for (int k = 0; k < DELTAS; k++) {
			char trace[40];

			(void)snprintf(trace, sizeof trace, "%022d%04d", (int)i, k);
			assert_int_equal(tw_cat_exec(w, NULL, NULL,
			                         "INSERT INTO rollup_delta VALUES('p',?,?,5,?)",
			                         "itb", id, trace, &data),
			        TW_OK);
			if (k == 0)
				assert_int_equal(
				        tw_cat_exec(w, NULL, NULL,
				                "INSERT INTO rollup_tree_delta VALUES('p',?,?,?)",
				                "itb", id, trace, &data),
				        TW_OK);
		}
	}
	for (int64_t i = 0; i < METHODS; i++) {
		char name[40];

		(void)snprintf(name, sizeof name, "m%lld", (long long)i);
		assert_int_equal(tw_cat_exec(w, NULL, NULL,
		                         "INSERT INTO rollup_method(project_id,method_id,build_id,"
		                         "mapping_id,raw,name,descriptor,named)"
		                         " VALUES('p',?,'','','',?,'()V',1)",
		                         "it", 13 * i, name),
		        TW_OK);
	}
	assert_int_equal(tw_cat_end(c, w, TW_OK, NULL), TW_OK);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void begin(struct many *m)
{
	memcpy(m->dir, "/tmp/tw-many-XXXXXX", sizeof "/tmp/tw-many-XXXXXX");
	assert_non_null(mkdtemp(m->dir));
	m->c = catalogue_in(m->dir);
	m->arena = tw_arena_new(16 << 20);
	assert_non_null(m->arena);
	fill(m->c);
}

static void end(struct many *m)
{
	(void)tw_catalogue_close(m->c);
	tw_arena_free(m->arena);
	assert_int_equal(nftw(m->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void is_text(struct tw_str bytes, int64_t id)
{
	char text[40];

	assert_int_equal(bytes.len, snprintf(text, sizeof text, "%lld", (long long)id));
	assert_memory_equal(bytes.ptr, text, bytes.len);
}

static void test_cells(void **state)
{
	const struct tw_rollup_filter all = {"", "", "", "s", "", "", "", 0, 9};
	struct tw_rollup_cell *cells;
	struct many m;
	uint64_t before;
	size_t n = 0;

	(void)state;
	begin(&m);
	before = tw_cat_statements();
	assert_int_equal(
	        tw_catalogue_rollup_read(m.c, "p", &all, 1, m.arena, &cells, &n, NULL), TW_OK);
	assert_in_range(tw_cat_statements() - before, 1, STATEMENTS);
	assert_int_equal(n, CELLS);
	for (size_t i = 0; i < n; i++) {
		if (cells[i].version)
			is_text(cells[i].parts[0], cells[i].cell_id);
		else
			assert_int_equal(cells[i].parts[0].len, 0);
		assert_int_equal(cells[i].parts[1].len, 0); /* not requested */
		assert_int_equal(cells[i].n_deltas, DELTAS);
		for (size_t k = 0; k < DELTAS; k++) {
			is_text(cells[i].deltas[k].facts, cells[i].cell_id);
			assert_int_equal(cells[i].deltas[k].trace_id[25] - '0', k);
		}
	}
	end(&m);
}

static void test_names(void **state)
{
	static uint64_t ids[METHODS + 3];
	struct tw_rollup_naming *names;
	struct many m;
	uint64_t before;

	(void)state;
	begin(&m);
	for (size_t i = 0; i < METHODS; i++)
		ids[i] = 13 * ((i * 7) % METHODS);
	ids[METHODS] = 13; /* a second time */
	ids[METHODS + 1] = UINT64_MAX;
	ids[METHODS + 2] = 14; /* not known */
	before = tw_cat_statements();
	assert_int_equal(
	        tw_catalogue_rollup_names(m.c, "p", ids, METHODS + 3, m.arena, &names, NULL),
	        TW_OK);
	assert_in_range(tw_cat_statements() - before, 1, STATEMENTS);
	for (size_t i = 0; i < METHODS + 3; i++) {
		char name[40] = "";

		if (ids[i] % 13 == 0)
			(void)snprintf(name, sizeof name, "m%llu", (unsigned long long)ids[i] / 13);
		assert_string_equal(names[i].name, name);
		assert_true(names[i].id == ids[i]);
	}
	end(&m);
}

static void test_trees(void **state)
{
	int64_t ids[CELLS + 1];
	struct tw_tree_cell *cells;
	struct many m;
	uint64_t before;

	(void)state;
	begin(&m);
	for (int64_t i = 0; i < CELLS; i++)
		ids[i] = 7 * (CELLS - 1 - i) - 100;
	ids[CELLS] = 1; /* there is none */
	before = tw_cat_statements();
	assert_int_equal(
	        tw_catalogue_trees_read(m.c, "p", ids, CELLS + 1, false, m.arena, &cells, NULL),
	        TW_OK);
	assert_in_range(tw_cat_statements() - before, 1, STATEMENTS);
	for (size_t i = 0; i < CELLS; i++) {
		assert_true(cells[i].cell_id == ids[i]);
		is_text(cells[i].tree.data, ids[i]);
		assert_int_equal(cells[i].n_deltas, 1);
		is_text(cells[i].deltas[0].data, ids[i]);
	}
	assert_int_equal(cells[CELLS].n_deltas, 0);
	end(&m);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_trees),
};

UNIT_TESTS("rollup_many", tests)
