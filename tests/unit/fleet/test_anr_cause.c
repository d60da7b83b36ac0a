/* Causes of ANRs: normalised names, rules and their bounds, keys, failing memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/fleet/anr/anr_brief.h"
#include "server/fleet/anr/anr_cause.h"
#include "server/fleet/anr/anr_frame.h"
#include "server/fleet/anr/anr_names.h"
#include "tests/unit/anr_fixture.h"
#include "tests/unit/unit.h"

/* --- names --- */

static void names_lose_what_compilers_number(void **state)
{
	static const char *const pairs[][2] = {
	        {"a.B.c", "a.B.c"},
	        {"a.Main$2.run", "a.Main$.run"},
	        {"a.Main$Inner2.run", "a.Main$Inner2.run"},
	        {"a.Main.lambda$onCreate$0", "a.Main.lambda$onCreate$"},
	        {"a.Main$$Lambda$14.run", "a.Main$$Lambda$.run"},
	        {"a.Main$$ExternalSyntheticLambda7.run", "a.Main$$ExternalSyntheticLambda.run"},
	        {"a.Main.$r8$lambda$AbC_12", "a.Main.$r8$lambda$"},
	        {"a.Main.load-0d7_KjU", "a.Main.load"},
	        {"a.Main.load$app_release", "a.Main.load"},
	        {"a.Main.load$default", "a.Main.load"},
	        {"a.Main.onCreate$lambda-3", "a.Main.onCreate$lambda"},
	        {"libx.so+0x12af", "libx.so"},
	        {"", ""},
	        {"$", "$"},
	        {"....", "...."},
	        {"-x", "-x"},
	};
	char out[200];

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		size_t n = tw_anr_frame_plain(tw_str_of(pairs[i][0]), out, sizeof out);

		assert_string_equal(out, pairs[i][1]);
		assert_int_equal(n, strlen(out));
	}
	assert_int_equal(tw_anr_frame_plain(TW_STR("a.B.c"), out, 3), 2);
	assert_string_equal(out, "a.");
}

static void bridges_are_reported(void **state)
{
	(void)state;
	assert_true(tw_anr_frame_is_bridge(TW_STR("a.Main.access$000")));
	assert_true(tw_anr_frame_is_bridge(TW_STR("a.Main.-$$Nest$fgetx")));
	assert_true(tw_anr_frame_is_bridge(TW_STR("a.Main$$ExternalSyntheticLambda0.run")));
	assert_true(tw_anr_frame_is_bridge(TW_STR("a.-$$Lambda$Main$x.run")));
	assert_false(tw_anr_frame_is_bridge(TW_STR("a.Main.lambda$x$0")));
	assert_false(tw_anr_frame_is_bridge(TW_STR("a.Main.accessible")));
	assert_false(tw_anr_frame_is_bridge(TW_STR("")));
}

/* --- rules --- */

static enum tw_status rules_of(const char *text, struct tw_err *err)
{
	json_t *doc = json_loads(text, 0, NULL);
	struct tw_anr_rules *r = NULL;
	enum tw_status st = tw_anr_rules_new(doc, &r, err);

	tw_anr_rules_free(r);
	json_decref(doc);
	return st;
}

static void rules_have_bounds(void **state)
{
	struct tw_anr_rules *none = NULL;
	char pattern[TW_ANR_RULE_PATTERN_BYTES + 2];
	char text[400];
	struct tw_err err;

	(void)state;
	for (size_t n = TW_ANR_RULE_PATTERN_BYTES; n <= TW_ANR_RULE_PATTERN_BYTES + 1; n++) {
		memset(pattern, 'a', n);
		pattern[n] = '\0';
		(void)snprintf(text, sizeof text,
		        "{\"rules\":[{\"action\":\"skip\",\"frame\":\"%s\"}]}", pattern);
		assert_int_equal(rules_of(text, &err),
		        n == TW_ANR_RULE_PATTERN_BYTES ? TW_OK : TW_BAD_REQUEST);
	}
	for (size_t n = TW_ANR_RULES_MAX; n <= TW_ANR_RULES_MAX + 1; n++) {
		json_t *list = json_array();
		json_t *doc = json_pack("{s:o}", "rules", list);
		struct tw_anr_rules *r = NULL;

		for (size_t i = 0; i < n; i++)
			(void)json_array_append_new(
			        list, json_pack("{s:s, s:s}", "action", "skip", "frame", "x"));
		assert_int_equal(tw_anr_rules_new(doc, &r, &err),
		        n == TW_ANR_RULES_MAX ? TW_OK : TW_BAD_REQUEST);
		tw_anr_rules_free(r);
		json_decref(doc);
	}
	assert_int_equal(rules_of("{\"rules\":[{\"action\":\"skip\",\"frame\":\"/(/\"}]}", &err),
	        TW_BAD_REQUEST);
	assert_non_null(strstr(err.msg, "rule 1"));
	assert_int_equal(rules_of("{}", &err), TW_BAD_REQUEST);
	assert_int_equal(tw_anr_rules_new(NULL, &none, NULL), TW_OK);
	none = tw_anr_rules_free(none);
}

/* Text without regard to case, or an expression whose steps are bounded. */
static void patterns_end(void **state)
{
	json_t *doc = json_pack("{s:[{s:s,s:s},{s:s,s:s},{s:s,s:s,s:b}]}", "rules", "action",
	        "skip", "frame", "/(a+)+b$/", "action", "skip", "frame", "COM.app.Log", "action",
	        "skip", "frame", "off", "enabled", 0);
	char name[400];
	struct tw_anr_rules *r;

	(void)state;
	memset(name, 'a', sizeof name);
	assert_int_equal(tw_anr_rules_new(doc, &r, NULL), TW_OK);
	assert_false(tw_anr_rules_skip(r, (struct tw_str){name, sizeof name}));
	assert_true(tw_anr_rules_skip(r, TW_STR("com.app.Logger.write")));
	assert_true(tw_anr_rules_skip(r, TW_STR("aaab")));
	assert_false(tw_anr_rules_skip(r, TW_STR("turned off")));
	tw_anr_rules_free(r);
	json_decref(doc);
}

/* --- causes --- */

struct found {
	struct tw_arena *arena;
	struct tw_anr_cause cause;
	enum tw_status st;
};

static json_t *kept_doc(const json_t *doc, struct tw_arena *a)
{
	struct tw_str brief = tw_anr_brief(doc, NULL, a);
	json_t *o = brief.ptr ? tw_anr_brief_read(brief) : NULL;
	char *text = o ? json_dumps(json_object_get(o, "doc"), 0) : NULL;
	struct tw_str named =
	        text ? tw_anr_named(a, tw_str_of(text), &(struct tw_names){0}) : (struct tw_str){0};

	free(text);
	json_decref(o);
	return named.ptr ? json_loadb(named.ptr, named.len, 0, NULL) : NULL;
}

/* Through the stored facts of a report, as in the server. */
static struct found find(const char *text, const char *rules)
{
	struct anr_report r = anr_read_text(text);
	struct found f = {.arena = tw_arena_new(64 << 20)};
	json_t *said = rules ? json_loads(rules, 0, NULL) : NULL;
	json_t *doc = kept_doc(r.doc, f.arena);
	struct tw_anr_blame by = {0};
	struct tw_anr_rules *set = NULL;
	struct tw_err err;

	assert_non_null(doc);
	assert_int_equal(tw_anr_rules_new(said, &set, &err), TW_OK);
	assert_int_equal(tw_frame_rules_new(NULL, f.arena, &by.app, &err), TW_OK);
	by.rules = set;
	f.st = tw_anr_cause_of(doc, &by, f.arena, &f.cause, &err);
	tw_anr_rules_free(set);
	json_decref(said);
	json_decref(doc);
	anr_done(&r);
	return f;
}

static const char held[] = "\"main\" prio=5 tid=1 Blocked\n"
                           "  at a.b.Screen$1.draw(Screen.java:1)\n"
                           "  - waiting to lock <0x01> (a a.b.Store) held by thread 2\n\n"
                           "\"w\" prio=5 tid=2 Runnable\n"
                           "  at a.b.Json.read(Json.java:9)\n"
                           "  at a.b.Store.put(Store.java:3)\n"
                           "  - locked <0x01> (a a.b.Store)\n"
                           "  at a.b.Work.run(Work.java:4)\n";
static const char held_elsewhere[] = "\"main\" prio=5 tid=1 Blocked\n"
                                     "  at a.b.List.bind(List.java:77)\n"
                                     "  - waiting to lock <0x22> (a a.b.Store) held by thread 9\n\n"
                                     "\"other\" prio=5 tid=9 Sleeping\n"
                                     "  at java.lang.Thread.sleep(Native method)\n"
                                     "  at a.b.Store.put(Store.java:33)\n"
                                     "  - locked <0x22> (a a.b.Store)\n"
                                     "  at a.b.Work.run(Work.java:40)\n";

static void a_holder_is_where_it_took_the_lock(void **state)
{
	struct found one = find(held, NULL);
	struct found other = find(held_elsewhere, NULL);

	(void)state;
	assert_int_equal(one.st, TW_OK);
	assert_string_equal(one.cause.kind, "lock");
	assert_string_equal(one.cause.title, "Lock of Store, held in Store.put");
	assert_string_equal(one.cause.key, other.cause.key);
	assert_string_not_equal(one.cause.verdict, other.cause.verdict);
	tw_arena_free(one.arena);
	tw_arena_free(other.arena);
}

static void rules_move_and_name(void **state)
{
	struct found plain = find(held, NULL);
	struct found merged =
	        find(held, "{\"rules\":[{\"action\":\"merge\",\"name\":\"M\",\"lock\":\"b.store\"},"
	                   "{\"action\":\"merge\",\"name\":\"N\",\"kind\":\"lock\"},"
	                   "{\"action\":\"name\",\"name\":\"Called\",\"frame\":\"Store.put\"}]}");
	struct found skipped =
	        find(held, "{\"rules\":[{\"action\":\"skip\",\"frame\":\"a.b.Store\"}]}");

	(void)state;
	assert_string_equal(plain.cause.key, plain.cause.base);
	assert_string_equal(plain.cause.name, "");
	assert_string_equal(merged.cause.base, plain.cause.base);
	assert_string_not_equal(merged.cause.key, plain.cause.key);
	assert_string_equal(merged.cause.name, "Called");
	assert_string_equal(skipped.cause.title, "Lock of Store, held in Work.run");
	tw_arena_free(plain.arena);
	tw_arena_free(merged.arena);
	tw_arena_free(skipped.arena);
}

static json_t *look(bool reads, const char *method)
{
	json_t *frames = json_array();

	if (reads)
		(void)json_array_append_new(frames, json_pack("{s:s}", "name", "a.b.Json.read"));
	(void)json_array_append_new(frames, json_pack("{s:s}", "name", method));
	(void)json_array_append_new(frames, json_pack("{s:s}", "name", "android.os.Looper.loop"));
	return json_pack("{s:b, s:i, s:[{s:s, s:i, s:s, s:o}]}", "stacks_only", 1, "main", 0,
	        "threads", "name", "main", "tid", 1, "state", "Runnable", "frames", frames);
}

static void samples_report_the_path_of_half_of_them(void **state)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	json_t *looks = json_array();
	json_t *said = json_pack("{s:b, s:i, s:o}", "sampled", 1, "blamed", 0, "processes", looks);
	struct tw_anr_blame by = {0};
	struct tw_anr_rules *set = NULL;
	struct tw_anr_cause cause;
	json_t *doc;

	(void)state;
	for (int i = 0; i < 6; i++)
		(void)json_array_append_new(
		        looks, look(i % 3, i == 5 ? "a.b.Feed.idle" : "a.b.Feed.parse"));
	doc = kept_doc(said, a);
	assert_int_equal(tw_anr_rules_new(NULL, &set, NULL), TW_OK);
	assert_int_equal(tw_frame_rules_new(NULL, a, &by.app, NULL), TW_OK);
	by.rules = set;
	assert_int_equal(tw_anr_cause_of(doc, &by, a, &cause, NULL), TW_OK);
	assert_string_equal(cause.kind, "path");
	assert_string_equal(cause.title, "Time spent in Json.read"); /* three of six */
	tw_anr_rules_free(set);
	json_decref(doc);
	json_decref(said);
	tw_arena_free(a);
}

static void no_document_is_a_cause_too(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_anr_blame by = {0};
	struct tw_anr_rules *set = NULL;
	struct tw_anr_cause cause;

	(void)state;
	assert_int_equal(tw_anr_rules_new(NULL, &set, NULL), TW_OK);
	assert_int_equal(tw_frame_rules_new(NULL, a, &by.app, NULL), TW_OK);
	by.rules = set;
	assert_int_equal(tw_anr_cause_of(NULL, &by, a, &cause, NULL), TW_OK);
	assert_string_equal(cause.kind, "unknown");
	assert_null(tw_anr_brief_read(TW_STR("no zstd")));
	tw_anr_rules_free(set);
	tw_arena_free(a);
}

/* Each failed allocation is reported, and nothing leaks. */
static void memory_may_be_short(void **state)
{
	struct anr_report r = anr_read_text(held);
	enum tw_status st = TW_NOMEM;

	(void)state;
	for (uint64_t at = 1; st != TW_OK && at < 400; at++) {
		struct tw_arena *a = tw_arena_new(64 << 20);
		struct tw_anr_blame by = {0};
		struct tw_anr_rules *set = NULL;
		struct tw_anr_cause cause;
		json_t *doc;
		struct tw_err err;

		assert_int_equal(tw_frame_rules_new(NULL, a, &by.app, &err), TW_OK);
		tw_mem_fail_at(at);
		doc = kept_doc(r.doc, a);
		st = doc ? tw_anr_rules_new(NULL, &set, &err) : TW_NOMEM;
		by.rules = set;
		if (st == TW_OK)
			st = tw_anr_cause_of(doc, &by, a, &cause, &err);
		tw_mem_fail_at(0);
		tw_anr_rules_free(set);
		json_decref(doc);
		tw_arena_free(a);
	}
	assert_int_equal(st, TW_OK);
	anr_done(&r);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lose_what_compilers_number),
        cmocka_unit_test(bridges_are_reported),
        cmocka_unit_test(rules_have_bounds),
        cmocka_unit_test(patterns_end),
        cmocka_unit_test(a_holder_is_where_it_took_the_lock),
        cmocka_unit_test(rules_move_and_name),
        cmocka_unit_test(samples_report_the_path_of_half_of_them),
        cmocka_unit_test(no_document_is_a_cause_too),
        cmocka_unit_test(memory_may_be_short),
};

UNIT_TESTS("anr_cause", tests)
