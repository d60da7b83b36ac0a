/*
 * Rules of what should not take long: which names and threads they fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/query/detect/detect_rules.h"
#include "tests/unit/unit.h"

/* --- names --- */

static void names_fit(void **state)
{
	static const struct {
		const char *gaps, *name;
		bool fits;
	} cases[] = {
	        {"*", "", true},
	        {"*", "a.b", true},
	        {"a*", "a", true},
	        {"a*b", "ab", true},
	        {"a*b", "axxb", true},
	        {"a*b", "axxbc", false},
	        {"*Dao_Impl.*", "com.app.UserDao_Impl.load", true},
	        {"*Dao_Impl.*", "com.app.UserDao_Impl", false},
	        {"*ab*ab", "xabxxab", true},
	        {"*ab*ab", "xab", false},
	        {"**a", "ba", true},
	        {"a*", "ba", false},
	        {"*b", "ba", false},
	        {"ab*bc", "abc", false}, /* the ends may not share */
	        {"*ab*bc*", "abc", false},
	        {"*ab*bc*", "abbc", true},
	        {"a**b", "ab", true},
	};
	char many[4097];
	struct tw_name_pattern p;
	bool fits;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(tw_name_fits(tw_str_of(cases[i].name), tw_str_of(cases[i].gaps)),
		        cases[i].fits);
	memset(many, 'a', sizeof many - 1); /* takes length times length, not more */
	many[sizeof many - 1] = '\0';
	assert_false(tw_name_fits(tw_str_of(many), TW_STR("*a*a*a*a*a*a*a*a*a*a*a*a*a*ab")));
	assert_int_equal(tw_name_pattern_init(&p, TW_STR("a.B.c"), NULL), TW_OK);
	assert_int_equal(tw_name_pattern_check(&p, TW_STR("a.B.c"), &fits, NULL), TW_OK);
	assert_true(fits);
	assert_int_equal(tw_name_pattern_check(&p, TW_STR("a.B.cd"), &fits, NULL), TW_OK);
	assert_false(fits);
	assert_true(tw_name_fits((struct tw_str){NULL, 0}, TW_STR("**")));
}

/* Both of them from then on, also for names that are none of their trouble. */
static void each_costly_expression_is_left_out(void **state)
{
	static const char again[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	struct tw_detect_rules *r = NULL;
	json_t *doc = json_pack("{s:[{s:s, s:s, s:s, s:[s,s,s], s:i}]}", "rules", "id", "a", "kind",
	        "own", "title", "A", "methods", "/^([a-z.]|[a-z.]+)+[12]$/",
	        "/^([a-z]|[a-z]+)+[34]$/", "other", "threshold_ms", 1);

	(void)state;
	assert_int_equal(tw_detect_rules_new(doc, &r, NULL), TW_OK);
	assert_int_equal(tw_detect_rules_of(r, TW_STR("a1")), 1);
	assert_int_equal(tw_detect_rules_of(r, TW_STR("a3")), 1);
	assert_string_equal(r->rules[0].costly_why, "");
	assert_int_equal(tw_detect_rules_of(r, tw_str_of(again)), 0);
	assert_int_equal(tw_detect_rules_of(r, TW_STR("a1")), 0);
	assert_int_equal(tw_detect_rules_of(r, TW_STR("a3")), 0);
	assert_int_equal(tw_detect_rules_of(r, TW_STR("other.B")), 1);
	assert_non_null(strstr(r->rules[0].costly_why, "costly"));
	r = tw_detect_rules_free(r);
	json_decref(doc);
}

/* The first rule of each kind that fits a name; "" none. */
static void check_default(struct tw_detect_rules *r, const char *name, const char *id)
{
	const uint64_t bits = tw_detect_rules_of(r, tw_str_of(name));

	if (bits ? strcmp(r->rules[__builtin_ctzll(bits)].id, id) != 0 : id[0] != '\0')
		fail_msg("%s is not of %s", name, id);
}

static void defaults_cover_android(void **state)
{
	static const char *const names[][2] = {
	        {"org.json.JSONObject.<init>", "json"},
	        {"com.google.gson.Gson.fromJson", "json"},
	        {"com.squareup.moshi.JsonAdapter.fromJson", "json"},
	        {"com.app.UserJsonAdapter.fromJson", "json"},
	        {"kotlinx.serialization.json.Json.decodeFromString", "json"},
	        {"android.app.SharedPreferencesImpl$EditorImpl.commit", "preferences"},
	        {"android.app.SharedPreferencesImpl.awaitLoadedLocked", "preferences"},
	        {"android.app.QueuedWork.waitToFinish", "preferences"},
	        {"java.io.FileInputStream.read", "file"},
	        {"java.io.FileOutputStream.write", "file"},
	        {"java.io.RandomAccessFile.seek", "file"},
	        {"okhttp3.internal.connection.RealCall.execute", "network"},
	        {"android.database.sqlite.SQLiteDatabase.query", "database"},
	        {"android.database.sqlite.SQLiteConnection.execute", "database"},
	        {"com.app.db.UserDao_Impl.load", "database"},
	        {"androidx.room.RoomDatabase.query", "database"},
	        {"android.graphics.BitmapFactory.decodeStream", "bitmap"},
	        {"android.graphics.ImageDecoder.decodeBitmap", "bitmap"},
	        {"android.os.BinderProxy.transact", "binder"},
	        {"binder transaction", "binder"},
	        {"android.view.LayoutInflater.inflate", "inflation"},
	        {"inflate", "inflation"},
	        {"java.lang.reflect.Method.invoke", "reflection"},
	        {"java.lang.Class.forName", "reflection"},
	        {"java.lang.ClassLoader.loadClass", "class_loading"},
	        {"dalvik.system.DexFile.defineClass", "class_loading"},
	        {"java.lang.Runtime.loadLibrary0", "class_loading"},
	        {"java.lang.System.loadLibrary", "class_loading"},
	        {"monitor contention with owner main (1) at void a.B.c()", "lock"},
	        {"jdk.internal.misc.Unsafe.park", "lock"},
	        {"java.util.concurrent.locks.ReentrantLock.lock", "lock"},
	        {"java.util.concurrent.CountDownLatch.await", "lock"},
	        {"java.lang.Object.wait", "lock"},
	        {"java.lang.Thread.sleep", "sleep"},
	        {"android.os.SystemClock.sleep", "sleep"},
	        {"android.os.MessageQueue.nativePollOnce", ""},
	        {"java.lang.Thread.run", ""},
	        {"com.app.Files.read", ""},
	        {"java.lang.Object.waiting", ""},
	};
	json_t *doc = tw_detect_defaults();
	struct tw_detect_rules *r = NULL;

	(void)state;
	assert_int_equal(tw_detect_rules_new(doc, &r, NULL), TW_OK);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		check_default(r, names[i][0], names[i][1]);
	for (size_t i = 0; tw_detect_kinds[i + 1]; i++) { /* each kind but own has a rule */
		bool there = false;

		for (size_t k = 0; k < r->n; k++)
			there = there || strcmp(r->rules[k].kind, tw_detect_kinds[i]) == 0;
		assert_true(there);
	}
	assert_int_equal(r->slow_ns, 16000000);
	assert_int_equal(r->frozen_ns, 700000000);
	r = tw_detect_rules_free(r);
	json_decref(doc);
}

static void rules_know_their_threads(void **state)
{
	static const struct {
		const char *threads;
		bool main, pool, none;
	} cases[] = {{"main", true, false, false}, {"others", false, true, false},
	        {"all", true, true, true}, {"pool-*", false, true, false},
	        {"pool", false, false, false}};
	const struct tw_thread_info main = {.is_main = true, .name = TW_STR("app")};
	const struct tw_thread_info pool = {.name = TW_STR("pool-1")};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tw_detect_rules *r = NULL;
		json_t *doc = json_pack("{s:[{s:s, s:s, s:s, s:[s], s:i, s:s}]}", "rules", "id",
		        "a", "kind", "own", "title", "A", "methods", "a", "threshold_ms", 1,
		        "threads", cases[i].threads);

		assert_int_equal(tw_detect_rules_new(doc, &r, NULL), TW_OK);
		assert_int_equal(tw_detect_rules_on(r, &main, true), cases[i].main);
		assert_int_equal(tw_detect_rules_on(r, &pool, false), cases[i].pool);
		assert_int_equal(tw_detect_rules_on(r, NULL, false), cases[i].none);
		r = tw_detect_rules_free(r);
		json_decref(doc);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_fit),
        cmocka_unit_test(defaults_cover_android),
        cmocka_unit_test(each_costly_expression_is_left_out),
        cmocka_unit_test(rules_know_their_threads),
};

UNIT_TESTS("detect_rules", tests)
