/* test_find.c - finds names by typed text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/base/text/find.h"
#include "server/base/text/match.h"
#include "tests/unit/unit.h"

static enum tw_find_rank rank(const char *text, const char *name)
{
	struct tw_find f;

	assert_int_equal(tw_find_read(text, &f, NULL), TW_OK);
	return tw_find_rank(&f, tw_str_of(name));
}

static void words_by_their_position(void **state)
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

/* --- typing errors --- */

static unsigned errors(const char *text, const char *name)
{
	struct tw_find f;
	struct tw_find_near near;

	assert_int_equal(tw_find_read(text, &f, NULL), TW_OK);
	tw_find_near_read(&f, &near);
	return tw_find_errors(&near, tw_str_of(name));
}

static void typing_errors(void **state)
{
	static const char parse[] = "com.acme.shop.data.JsonParser.parse(Ljava/lang/String;)V";

	(void)state;
	assert_int_equal(errors("JsonPraser", parse), 1);
	assert_int_equal(errors("jsonpraser.prase", parse), 2);
	assert_int_equal(errors("JsonParsr", parse), 1);
	assert_int_equal(errors("JssonParser", parse), 1);
	assert_int_equal(errors("JzonParzer", parse), 2);
	assert_int_equal(errors("YamlWriter", parse), TW_FIND_FAR);
	assert_int_equal(errors("JsonPraser prase", parse), 2);
	assert_int_equal(errors("JsonPraser yaml", parse), TW_FIND_FAR);
	assert_int_equal(errors("shp", parse), TW_FIND_FAR);
	assert_int_equal(errors("*.prase", parse), TW_FIND_FAR);
	assert_int_equal(errors("Sting", parse), TW_FIND_FAR); /* parameters do not count */
	assert_int_equal(errors("  ", parse), TW_FIND_FAR);
	assert_int_equal(errors("JsonPraser", ""), TW_FIND_FAR);
	assert_int_equal(
	        errors("xcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm",
	                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm"),
	        1);
	assert_int_equal(
	        errors("xbcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmn",
	                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmn"),
	        TW_FIND_FAR);
}

/* The definition: rows are letters of the word, columns those of the name. */
static unsigned naive_errors(const char *word, const char *name, bool within)
{
	unsigned d[17][33] = {{0}};
	const size_t m = strlen(word), n = strlen(name);
	unsigned best = (unsigned)m;

	for (size_t i = 0; i <= m; i++)
		for (size_t j = 0; j <= n; j++) {
			unsigned least = 0;

			if (!i && !within)
				least = (unsigned)j;
			if (i && !j)
				least = (unsigned)i;
			if (i && j) {
				least = d[i - 1][j - 1] + (word[i - 1] != name[j - 1]);
				least = d[i - 1][j] + 1 < least ? d[i - 1][j] + 1 : least;
				least = d[i][j - 1] + 1 < least ? d[i][j - 1] + 1 : least;
			}
			if (i > 1 && j > 1 && word[i - 1] == name[j - 2] &&
			        word[i - 2] == name[j - 1] && d[i - 2][j - 2] + 1 < least)
				least = d[i - 2][j - 2] + 1;
			d[i][j] = least;
		}
	for (size_t j = 0; j <= n; j++)
		best = d[m][j] < best ? d[m][j] : best;
	return within ? best : d[m][n];
}

static void typing_errors_as_defined(void **state)
{
	uint32_t x = 7;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char word[17] = "", name[33] = "";
		const unsigned m = 1 + (unsigned)round % 16, n = (unsigned)round / 16 % 33;
		const unsigned most = m < 4 ? 0 : m < 6 ? 1 : m < 12 ? 2 : 3;
		unsigned naive;

		for (unsigned i = 0; i < m + n; i++) {
			x = x * 1664525 + 1013904223;
			*(i < m ? &word[i] : &name[i - m]) = "abc"[(x >> 16) % 3];
		}
		naive = naive_errors(word, name, true);
		assert_int_equal(errors(word, name), naive <= most ? naive : TW_FIND_FAR);
		assert_int_equal(tw_near_distance(word, name), naive_errors(word, name, false));
	}
}

static void nearest_name(void **state)
{
	static const char *const names[] = {"push", "perfetto", "project"};
	struct tw_near_match near = {NULL, 0}, none = {NULL, 0};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		tw_near_match_try(&near, "prefetto", names[i]);
		tw_near_match_try(&none, "nonsense", names[i]);
	}
	assert_string_equal(near.best, "perfetto");
	assert_null(none.best);
	assert_int_equal(tw_near_distance("", "push"), TW_FIND_FAR);
	near.best = NULL;
	tw_near_match_try(&near, "perf", "perfetto"); /* its begin */
	assert_string_equal(near.best, "perfetto");
}

static bool fits(const char *text, bool regex, const char *descriptor)
{
	struct tw_match *m = NULL;
	bool has;

	assert_int_equal(tw_match_new(text, regex, &m, NULL), TW_OK);
	has = tw_match_has_method(m, TW_STR("com.acme.Json.parse"), tw_str_of(descriptor));
	assert_null(tw_match_free(m));
	return has;
}

static void methods_by_their_parameters(void **state)
{
	static const char two[] = "(Ljava/lang/String;[[I)Ljava/util/Map$Entry;";
	static const char *const not_descriptors[] = {"", "()", "(", "(I", "(L)V",
	        "(Ljava/lang/String)V", "(II)", "()V)", "(Q)V", "([", "()["};

	(void)state;
	assert_true(fits("parse(string, int[][]): Map$Entry", false, two));
	assert_true(fits("(java.lang.String, int", false, two));
	assert_true(fits("parse(Ljava/lang/String;[[I)", false, two));
	assert_true(fits("parse\\(String, \\w+\\[", true, two));
	assert_true(fits("parse(): void", false, "()V"));
	assert_false(fits("parse(int", false, two));
	assert_false(fits("parse(", false, ""));
	assert_false(fits("String", false, two)); /* only a parenthesis begins parameters */
	assert_false(fits("(String)$", true, two));
	for (size_t i = 0; i < sizeof not_descriptors / sizeof *not_descriptors; i++) {
		assert_false(fits("parse(): ", false, not_descriptors[i]));
		assert_int_equal(
		        fits("parse(", false, not_descriptors[i]), not_descriptors[i][0] != '\0');
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_by_their_parameters),
        cmocka_unit_test(words_by_their_position),
        cmocka_unit_test(stars),
        cmocka_unit_test(bounds),
        cmocka_unit_test(typing_errors),
        cmocka_unit_test(typing_errors_as_defined),
        cmocka_unit_test(nearest_name),
};

UNIT_TESTS("find", tests)
