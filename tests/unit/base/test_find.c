/* test_find.c - names by what a person types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/base/text/find.h"
#include "tests/unit/unit.h"

static enum tw_find_rank rank(const char *text, const char *name)
{
	struct tw_find f;

	assert_int_equal(tw_find_read(text, &f, NULL), TW_OK);
	return tw_find_rank(&f, tw_str_of(name));
}

static void words_by_their_place(void **state)
{
	static const char parse[] = "com.acme.shop.data.JsonParser.parse";

	(void)state;
	assert_int_equal(rank(parse, parse), TW_FIND_WHOLE);
	assert_int_equal(rank("JsonParser.parse", parse), TW_FIND_END);
	assert_int_equal(rank("parse", parse), TW_FIND_END);
	assert_int_equal(rank("PARSE", parse), TW_FIND_END);
	assert_int_equal(rank("json", parse), TW_FIND_BEGIN);
	assert_int_equal(rank("Parser", parse), TW_FIND_BEGIN);
	assert_int_equal(rank("arse", parse), TW_FIND_WITHIN);
	assert_int_equal(rank("parse json", parse), TW_FIND_BEGIN);
	assert_int_equal(rank("parse yaml", parse), TW_FIND_NOT);
	assert_int_equal(rank("  ", parse), TW_FIND_NOT);
	assert_int_equal(rank("a.b.c", "a.b.c"), TW_FIND_WHOLE);
	assert_int_equal(rank("open", "com.acme.Db.open(Ljava/lang/String;)V"), TW_FIND_END);
	assert_int_equal(rank("$lambda$", "com.acme.Main$lambda$0.run"), TW_FIND_BEGIN);
	assert_int_equal(
	        rank("Main lambda", "com.acme.Main$$ExternalSyntheticLambda0.run"), TW_FIND_BEGIN);
	assert_int_equal(rank("x", ""), TW_FIND_NOT);
}

static void stars(void **state)
{
	static const char warm[] = "com.acme.shop.ads.Ads.warmUp";

	(void)state;
	assert_int_equal(rank("*.warmUp", warm), TW_FIND_END);
	assert_int_equal(rank("*.warm", warm), TW_FIND_NOT);
	assert_int_equal(rank("*.warm*", warm), TW_FIND_BEGIN);
	assert_int_equal(rank("com.acme.*Ads.warmUp", warm), TW_FIND_END);
	assert_int_equal(rank("acme*warmup", warm), TW_FIND_END);
	assert_int_equal(rank("cme*warmUp", warm), TW_FIND_NOT);
	assert_int_equal(rank("*", warm), TW_FIND_BEGIN);
	assert_int_equal(rank("warmUp*warmUp", warm), TW_FIND_NOT);
	assert_int_equal(rank("*open", "com.acme.Db.open(Ljava/lang/String;)V"), TW_FIND_END);
	assert_int_equal(rank("ads* shop", warm), TW_FIND_BEGIN);
}

static void bounds(void **state)
{
	char text[TW_FIND_BYTES + 2];
	struct tw_find f;
	struct tw_err err;

	(void)state;
	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(tw_find_read(text, &f, &err), TW_BAD_REQUEST);
	text[TW_FIND_BYTES] = '\0';
	assert_int_equal(tw_find_read(text, &f, &err), TW_OK);
	assert_int_equal(tw_find_read("1 2 3 4 5 6 7 8 9", &f, &err), TW_BAD_REQUEST);
	assert_int_equal(tw_find_read("1 2 3 4 5 6 7  8 ", &f, &err), TW_OK);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_by_their_place),
        cmocka_unit_test(stars),
        cmocka_unit_test(bounds),
};

UNIT_TESTS("find", tests)
