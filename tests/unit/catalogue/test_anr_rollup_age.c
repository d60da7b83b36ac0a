/* Unit test of the expiry of sums by day: a large day is deleted in steps, and never read in part.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/catalogue.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { DAY = 20000, MANY = 5000, STEPS = 10 };

/* Names that one trace each has, on each day. */
#define SUMS                                                                                       \
	"INSERT INTO anr_rollup(project_id,what,fine,day,name,app,version_name,build_id,scenario," \
	"device_class,os,generation,data) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1"   \
	" FROM n WHERE i<5000) SELECT project_id,1,0,day,'only '||i,'','','','','','',generation," \
	"x'' FROM anr_day CROSS JOIN n"

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int64_t sums(struct tw_db *db)
{
	return catalogue_number(db, "SELECT count(*) FROM anr_rollup");
}

static int64_t read_of_the_day(struct tw_db *db)
{
	return catalogue_number(db, "SELECT count(*) FROM anr_rollup t JOIN anr_day d USING"
	                            " (project_id, day) WHERE t.generation=d.generation AND"
	                            " day=20000");
}

static void test_a_large_day_goes_in_steps(void **state)
{
	char dir[] = "/tmp/tw-age-XXXXXX";
	struct tw_catalogue *c;
	struct tw_db *db;
	bool more = true;
	int steps = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	c = catalogue_in(dir);
	db = catalogue_connect(dir);
	catalogue_run(db, "INSERT INTO anr_day(project_id,day) VALUES('P',20000),('P',20001)");
	catalogue_run(db, SUMS);
	for (; more && steps < STEPS; steps++) {
		const int64_t before = sums(db);

		assert_int_equal(tw_catalogue_anr_expire(c, DAY + 1, &more, NULL), TW_OK);
		assert_in_range(before - sums(db), 0, MANY / 2);
		assert_int_equal(read_of_the_day(db), 0);
	}
	assert_false(more);
	assert_in_range(steps, 3, STEPS - 1);
	assert_int_equal(sums(db), MANY);
	assert_int_equal(catalogue_number(db, "SELECT min(day) FROM anr_day"), DAY + 1);
	tw_db_close(db);
	(void)tw_catalogue_close(c);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_day_goes_in_steps),
};

UNIT_TESTS("anr_rollup_age", tests)
