/*
 * From a method's name to its lines and owners: patterns of code owners by the examples of GitHub's
 * and GitLab's manuals, links from hostile values, declarations of Java and Kotlin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/text/json.h"
#include "server/source/source_name.h"
#include "server/source/source_owners.h"
#include "server/source/source_rules.h"
#include "tests/unit/unit.h"

enum { ROOM = 64 << 20 };

/* --- owners --- */

static void assert_fits(const char *pattern, const char *path, bool fits)
{
	if (tw_owners_fits(tw_str_of(pattern), tw_str_of(path)) != fits)
		fail_msg("%s %s %s", pattern, fits ? "does not fit" : "fits", path);
}

static void patterns_as_in_the_manuals(void **state)
{
	(void)state;
	assert_fits("*", "a/b/c.txt", true);
	assert_fits("*.js", "x.js", true);
	assert_fits("*.js", "deep/er/x.js", true);
	assert_fits("*.js", "x.jsx", false);
	assert_fits("/build/logs/", "build/logs/a/b.txt", true);
	assert_fits("/build/logs/", "x/build/logs/a.txt", false);
	assert_fits("docs/*", "docs/getting-started.md", true);
	assert_fits("docs/*", "docs/build-app/troubleshooting.md", false);
	assert_fits("docs/*", "x/docs/a.md", false);
	assert_fits("apps/", "apps/a.txt", true);
	assert_fits("apps/", "x/apps/y/a.txt", true);
	assert_fits("apps/", "apps", false);
	assert_fits("/docs/", "docs/a", true);
	assert_fits("/docs/", "x/docs/a", false);
	assert_fits("/scripts/", "scripts/x", true);
	assert_fits("**/logs", "build/logs", true);
	assert_fits("**/logs", "deeply/nested/logs/a.txt", true);
	assert_fits("/apps/github", "apps/github/x", true);
	assert_fits("/apps/github", "apps/githubber", false);
	assert_fits("a/**/b", "a/b", true);
	assert_fits("a/**/b", "a/x/y/b/c", true);
	assert_fits("a/**/b", "a/x/bb", false);
	assert_fits("/docs/**/index.md", "docs/index.md", true);
	assert_fits("/docs/*.md", "docs/x.md", true);
	assert_fits("/docs/*.md", "docs/a/x.md", false);
	assert_fits("path\\ with\\ spaces/", "path with spaces/a", true);
	assert_fits("README.md", "docs/README.md", true);
	assert_fits("internal/README.md", "internal/README.md", true);
	assert_fits("internal/README.md", "x/internal/README.md", false);
	assert_fits("a?c", "abc", true);
	assert_fits("a?c", "a/c", false);
	assert_fits("**", "a/b", true);
	assert_fits("/", "a/b", true);
}

static const char *owners_of(const char *file, const char *path)
{
	static char out[512];
	struct tw_owners_hit hits[TW_OWNERS_SECTIONS];
	size_t n = tw_owners_find(tw_str_of(file), tw_str_of(path), hits);

	out[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(out);

		(void)snprintf(out + at, sizeof out - at, "%s%.*s:%.*s", i ? "; " : "",
		        (int)hits[i].section.len, hits[i].section.ptr, (int)hits[i].owners.len,
		        hits[i].owners.ptr);
	}
	return out;
}

static void the_last_line_wins_and_may_take_owners_away(void **state)
{
	static const char file[] =
	        "# all\n*  @all\r\n*.go docs@example.com # inline\n/apps/ @octocat\n"
	        "/apps/github\n!/apps/x @never\n";

	(void)state;
	assert_string_equal(owners_of(file, "x.txt"), ":@all");
	assert_string_equal(owners_of(file, "x.go"), ":docs@example.com");
	assert_string_equal(owners_of(file, "apps/a"), ":@octocat");
	assert_string_equal(owners_of(file, "apps/x"), ":@octocat");
	assert_string_equal(owners_of(file, "apps/github/a"), ":");
	assert_string_equal(owners_of("", "a"), "");
	assert_string_equal(owners_of("/b @x", "a"), "");
}

static void sections_have_a_last_line_each(void **state)
{
	static const char file[] =
	        "* @admin\n[README Owners] @docs @more\nREADME.md\n^[Optional][2]\n"
	        "*.rb @ruby\n[readme owners]\ninternal/README.md @user4\n";

	(void)state;
	assert_string_equal(owners_of(file, "README.md"), ":@admin; README Owners:@docs @more");
	assert_string_equal(owners_of(file, "internal/README.md"), ":@admin; README Owners:@user4");
	assert_string_equal(owners_of(file, "a.rb"), ":@admin; Optional:@ruby");
}

static void patterns_of_many_stars_end_in_time(void **state)
{
	char pattern[1000], path[1000];

	(void)state;
	memset(path, 'a', sizeof path);
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[999] = 'b';
	for (unsigned i = 0; i < 500; i++)
		assert_false(tw_owners_fits(
		        (struct tw_str){pattern, 1000}, (struct tw_str){path, 1000}));
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = "**/a/"[i % 5];
	pattern[999] = 'b';
	for (size_t i = 1; i < sizeof path; i += 2)
		path[i] = '/';
	for (unsigned i = 0; i < 500; i++)
		assert_false(
		        tw_owners_fits((struct tw_str){pattern, 1000}, (struct tw_str){path, 999}));
}

/* --- links --- */

static void links_hold_hostile_values(void **state)
{
	struct tw_arena *a = tw_arena_new(ROOM);
	struct tw_link_values v = {"v1/\"x", "a b/Ü$1.kt", "javascript:", 3, 9};
	struct tw_err err;

	(void)state;
	assert_string_equal(
	        tw_link_make("https://h/{commit}/{path}?v={version}#L{line}-{end}", &v, a),
	        "https://h/v1%2F%22x/a%20b/%C3%9C%241.kt?v=javascript%3A#L3-9");
	v.line = 0;
	assert_string_equal(
	        tw_link_make("http://h:8/{path}#L{line}", &v, a), "http://h:8/a%20b/%C3%9C%241.kt");
	assert_string_equal(
	        tw_link_make("http://h/{path}#file", &v, a), "http://h/a%20b/%C3%9C%241.kt#file");
	v.version = "../../../../evil/x";
	assert_string_equal(tw_link_make("https://h/x/{version}/f", &v, a),
	        "https://h/x/..%2F..%2F..%2F..%2Fevil%2Fx/f");
	static const char *const climbing[] = {"..", ".", "a/../b", "./a", "a/.."};
	for (size_t i = 0; i < sizeof climbing / sizeof *climbing; i++) {
		v.path = climbing[i];
		assert_string_equal(tw_link_make("https://h/x/{path}#L{line}", &v, a), "");
	}
	v.version = "..";
	assert_string_equal(tw_link_make("https://h/x/{version}/f", &v, a), "");
	assert_string_equal(tw_link_make("https://h/x?v={version}", &v, a), "https://h/x?v=..");
	assert_int_equal(tw_link_check("x", "https://h.example:8443/{path}", true, &err), TW_OK);
	static const char *const wrong[] = {"", "ftp://h/{path}", "https:///{path}",
	        "https://u@h/{path}", "https://{path}/", "https://h{path}", "HTTPS://h/{path}",
	        "https://h/{path}<", "https://h/{path}{", "https://h/{Path}", "https://h/ {path}",
	        "javascript:{path}"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (tw_link_check("x", wrong[i], true, &err) != TW_BAD_REQUEST)
			fail_msg("%s is taken", wrong[i]);
	(void)tw_arena_free(a);
}

/* --- declarations --- */

/* Lines of the method as "3-5 9-9", with "~" in front when it is approximate, "class" without it.
 */
static const char *lines_of(const char *text, bool kotlin, const char *method, uint32_t line)
{
	static char out[256];
	struct tw_arena *a = tw_arena_new(ROOM);
	struct tw_source_name name;
	struct tw_source_location p;
	struct tw_decls decls;
	struct tw_err err;
	size_t n;

	assert_int_equal(tw_source_name_read(method, a, &name, &err), TW_OK);
	assert_int_equal(tw_source_scan(tw_str_of(text), kotlin, a, &decls, &err), TW_OK);
	tw_source_location(&decls, &name, line, &p);
	n = (size_t)snprintf(
	        out, sizeof out, "%s%s", p.note ? "~" : "", p.n && !p.is_method ? "class " : "");
	for (size_t i = 0; i < p.n && n < sizeof out; i++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%u-%u", i ? " " : "",
		        p.at[i].first, p.at[i].last);
	(void)tw_arena_free(a);
	return out;
}

static const char kotlin[] = /* line 1 */
        "@file:JvmName(\"x\")\n"
        "package com.a\n"
        "import com.b.C as D\n"
        "\n"
        "/* { /* nested */ } */\n"
        "@Keep\n"
        "data class Feed<T : Any>(\n"
        "  val rows: List<T> = emptyList(),\n"
        ") : Base({ 1 }), Other by other {\n" /* 9 */
        "  val s = \"x ${if (true) \"}\" else '}'} {\"\n"
        "\n"
        "  init { check(rows.size > 0) }\n" /* 12 */
        "  @Inject(\"a\")\n"
        "  private suspend fun <R> R.load(a: Int = f { 2 }, b: () -> Unit): Map<Int, List<String>> "
        "{\n"
        "    listOf(1).map { it }\n"
        "    val o = object : Runnable { override fun run() { go() } }\n" /* 16 */
        "    fun inner() = 1\n"
        "  }\n"
        "  fun size() = rows\n"
        "    .size\n" /* 20 */
        "  abstract fun none(): Int?\n"
        "  val title: String\n"
        "    get() = \"\"\"raw \" { ${1}\"\"\"\n" /* 23 */
        "  var open = false\n"
        "    private set\n"
        "  fun size(n: Int) = when (n) {\n" /* 26 */
        "    1 -> 2\n"
        "    else -> 3\n"
        "  }\n"
        "  constructor(x: Int) : this(emptyList()) {\n" /* 30 */
        "  }\n"
        "  companion object {\n"
        "    @JvmStatic fun create() = Feed<Int>()\n" /* 33 */
        "  }\n"
        "  enum class Kind(val n: Int) { A(1) { override fun f() = 1 }, B(2); open fun f() = n }\n"
        "  object Holder { fun get() = 1 }\n" /* 36 */
        "  class Plain\n"
        "  @Inject constructor(val y: Int) { fun f() { y } }\n"
        "  fun `has blanks`() {}\n" /* 39 */
        "  operator fun get(i: Int): T = rows[i]\n"
        "}\n"
        "fun top() = 1\n" /* 42 */
        "interface Only { fun a(); fun b() }\n"
        "fun interface Sam { fun c() }\n"
        "class Last\n"; /* 45 */

static void declarations_of_kotlin(void **state)
{
	static const struct {
		const char *method, *lines;
	} cases[] = {{"com.a.Feed.load", "13-18"}, {"com.a.Feed.load-0d7_KjU", "13-18"},
	        {"com.a.Feed.load$default", "13-18"}, {"com.a.Feed.access$load", "13-18"},
	        {"com.a.Feed$load$1.invoke", "~13-18"}, {"com.a.Feed$load$o$1.run", "~16-16"},
	        {"com.a.Feed.load$lambda$0", "~13-18"}, {"com.a.Feed.load$lambda-3", "~13-18"},
	        {"com.a.Feed.none", "21-21"}, {"com.a.Feed.getTitle", "~22-23"},
	        {"com.a.Feed.setOpen", "~24-25"}, {"com.a.Feed.size", "~19-20 26-29"},
	        {"com.a.Feed.<init>", "~6-9 12-12 30-31"}, {"com.a.Feed.<clinit>", "~class 6-9"},
	        {"com.a.Feed$Companion.create", "33-33"}, {"com.a.Feed$Kind.f", "35-35"},
	        {"com.a.Feed$Holder.get", "36-36"}, {"com.a.Feed$Plain.f", "38-38"},
	        {"com.a.Feed.get", "40-40"}, {"com.a.FeedKt.top", "42-42"},
	        {"com.a.Only.b", "43-43"}, {"com.a.Sam.c", "44-44"},
	        {"com.a.Last.<init>", "~class 45-45"}, {"com.a.Feed.component1", "~class 6-9"},
	        {"com.a.Gone.x", ""}, {"com.a.Feed$$ExternalSyntheticLambda0.run", "~16-16"},
	        {"com.a.-$$Lambda$Feed$abc.run", "~class 6-9"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *got = lines_of(kotlin, true, cases[i].method, 0);

		if (strcmp(got, cases[i].lines) != 0)
			print_error("%s: %s, not %s\n", cases[i].method, got, cases[i].lines);
	}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(lines_of(kotlin, true, cases[i].method, 0), cases[i].lines);
	assert_string_equal(lines_of(kotlin, true, "com.a.Feed.size", 27), "26-29");
}

static const char jvm[] = /* line 1 */
        "@file:JvmName(\"Feeds\")\n"
        "@file:JvmMultifileClass\n"
        "package com.a\n"
        "@JvmName(\"loadAll\")\n"
        "fun load(n: Int = 1) = listOf(1).map { it }\n" /* 5 */
        "val started = now()\n"
        "var Int.size: Int\n"
        "  get() = 1\n"
        "  @JvmName(\"resize\") set(v) { f(v) }\n" /* 9 */
        "class Feed @Inject constructor(\n"
        "  @get:JvmName(\"lines\") val rows: Int,\n" /* 11 */
        "  private var open: Boolean = f { true }, n: Int,\n"
        ") : Base(n), Other {\n" /* 13 */
        "  var isBig = false\n"
        "  internal fun trim(a: Int) = a\n" /* 15 */
        "  companion object Maker {\n"
        "    const val TAG = \"x\"\n" /* 17 */
        "    val cache by lazy { 1 }\n"
        "    @JvmStatic\n"
        "    fun make() = Feed(1)\n" /* 20 */
        "    @kotlin.jvm.JvmName(name = \"other\") fun more() {}\n"
        "  }\n"
        "}\n" /* 23 */
        "object Cache {\n"
        "  val all = mutableMapOf<Int, Int>()\n" /* 25 */
        "  @JvmName(\"$no\") fun drop() {}\n"
        "}\n"
        "interface Shown {\n"
        "  fun show(n: Int = 1) { run { n } }\n" /* 29 */
        "}\n"
        "data class Pair(val a: Int,\n"
        "  val b: Int)\n" /* 32 */
        "class None\n"
        "@JvmName(\"stale\") val left = 1\n"
        "fun last() = 2\n"; /* 35 */

/* As a trace names them, and where they are. */
static void names_of_class_files(void **state)
{
	static const struct {
		const char *method, *lines;
	} cases[] = {{"com.a.Feeds.loadAll", "4-5"}, {"com.a.Feeds.load", "4-5"},
	        {"com.a.Feeds__MoreKt.loadAll", "4-5"}, {"com.a.Feeds.loadAll$default", "4-5"},
	        {"com.a.Feeds$loadAll$1.invoke", "~4-5"}, {"com.a.Feeds$load$1.invoke", "~4-5"},
	        {"com.a.Feeds.load$lambda$0", "~4-5"}, {"com.a.Feeds.<clinit>", "~6-6 7-9 34-34"},
	        {"com.a.Feeds.getStarted", "~6-6"}, {"com.a.Feeds.resize", "~7-9"},
	        {"com.a.Feeds.getSize", "~7-9"}, {"com.a.Feeds.gone", ""},
	        {"com.a.OtherFeeds.loadAll", ""}, {"com.a.Feed.<init>", "10-13"},
	        {"com.a.Feed.lines", "~11-11"}, {"com.a.Feed.getRows", "~11-11"},
	        {"com.a.Feed.setOpen", "~12-12"}, {"com.a.Feed.access$getOpen$p", "~12-12"},
	        {"com.a.Feed.getN", "~class 10-13"}, {"com.a.Feed.setBig", "~14-14"},
	        {"com.a.Feed.isBig", "~14-14"}, {"com.a.Feed.trim$core_debug", "~15-15"},
	        {"com.a.Feed.<clinit>", "~17-17 18-18"}, {"com.a.Feed.make", "19-20"},
	        {"com.a.Feed$Maker.make", "19-20"}, {"com.a.Feed.access$getCache$cp", "~18-18"},
	        {"com.a.Feed$Maker.other", "21-21"}, {"com.a.Feed$Maker$cache$2.invoke", "~18-18"},
	        {"com.a.Feed$Maker.getCache", "~18-18"}, {"com.a.Cache.<clinit>", "~25-25"},
	        {"com.a.Cache.drop", "26-26"}, {"com.a.Shown$DefaultImpls.show", "29-29"},
	        {"com.a.Shown$DefaultImpls.show$default", "29-29"},
	        {"com.a.Shown$show$1.invoke", "~29-29"}, {"com.a.Pair.<init>", "31-32"},
	        {"com.a.Pair.getB", "~32-32"}, {"com.a.Pair.component1", "~class 31-32"},
	        {"com.a.None.<init>", "~class 33-33"}, {"com.a.Feeds.last", "35-35"},
	        {"com.a.Feeds.stale", "~34-34"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *got = lines_of(jvm, true, cases[i].method, 0);

		if (strcmp(got, cases[i].lines) != 0)
			print_error("%s: %s, not %s\n", cases[i].method, got, cases[i].lines);
	}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(lines_of(jvm, true, cases[i].method, 0), cases[i].lines);
	for (size_t i = 0; i < sizeof jvm; i++) {
		char cut[sizeof jvm];

		memcpy(cut, jvm, i);
		cut[i] = 0;
		(void)lines_of(cut, true, "com.a.Feeds.loadAll", 0);
	}
}

static const char java[] = /* line 1 */
        "package com.a;\n"
        "import java.util.*;\n"
        "@SuppressWarnings({\"a\", \"b\"})\n"
        "public class Feed<T extends Map<String, Integer>> extends Base {\n"
        "  static final int[] N = {1, 2}, M = new int[] {3};\n" /* 5 */
        "  static { System.out.println(\"}\"); }\n"
        "  private final Runnable r = new Runnable() {\n"
        "    @Override public void run() { go(); }\n" /* 8 */
        "  };\n"
        "  Runnable s = () -> { a(); };\n"
        "  @Inject\n"
        "  public Feed(int a) { this.a = a; }\n" /* 12 */
        "  public <R> Map<String, List<R>> load(@NonNull R r, int[] b) throws A, B {\n"
        "    if (new A().b()) { x(new C() { void deep() {} }); }\n"
        "    switch (b[0]) { case '{': return null; }\n"
        "    class Local { void in() {} }\n" /* 16 */
        "  }\n"
        "  abstract void none(int a);\n"
        "  void load() { // }\n"
        "  }\n" /* 20 */
        "  int x = f(1), y = g(2);\n"
        "  enum Kind { A(1), B(2) { @Override int f() { return 2; } }; int f() { return 1; } "
        "Kind(int n) {} }\n"
        "  @interface Mark { String value() default \"x\"; }\n" /* 23 */
        "  record Point(int a, int b) { Point { } int sum() { return a + b; } }\n"
        "  interface In { default void d() { } }\n" /* 25 */
        "  String t = \"\"\"\n"
        "    { \" }\n"
        "    \"\"\";\n"
        "  void after() { Object o = Feed.class; }\n" /* 29 */
        "}\n"
        "class Second { void f() {} }\n";

static void declarations_of_java(void **state)
{
	static const struct {
		const char *method, *lines;
	} cases[] = {{"com.a.Feed.<clinit>", "6-6"}, {"com.a.Feed$1.run", "~8-8"},
	        {"com.a.Feed.<init>", "11-12"}, {"com.a.Feed.load", "~13-17 19-20"},
	        {"com.a.Feed.load(I)V", "~13-17 19-20"},
	        {"com.a.Feed.lambda$load$0", "~13-17 19-20"}, {"com.a.Feed$2.deep", "~14-14"},
	        {"com.a.Feed.none", "18-18"}, {"com.a.Feed$Kind.f", "22-22"},
	        {"com.a.Feed$Kind.<init>", "22-22"}, {"com.a.Feed$Mark.value", "23-23"},
	        {"com.a.Feed$Point.sum", "24-24"}, {"com.a.Feed$In.d", "25-25"},
	        {"com.a.Feed.after", "29-29"}, {"com.a.Second.f", "31-31"},
	        {"com.a.Feed.f", "~class 3-4"}, {"com.a.Feed.g", "~class 3-4"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *got = lines_of(java, false, cases[i].method, 0);

		if (strcmp(got, cases[i].lines) != 0)
			print_error("%s: %s, not %s\n", cases[i].method, got, cases[i].lines);
	}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(lines_of(java, false, cases[i].method, 0), cases[i].lines);
	assert_string_equal(lines_of(java, false, "com.a.Feed.load", 14), "13-17");
}

/* Every end of both texts, and braces without end: no crash, and in time. */
static void files_may_be_anything(void **state)
{
	size_t n = 300000;
	char *deep = malloc(n + 1);

	(void)state;
	assert_non_null(deep);
	for (size_t i = 0; i < sizeof kotlin; i += 3) {
		char cut[sizeof kotlin];

		memcpy(cut, kotlin, i);
		cut[i] = 0;
		(void)lines_of(cut, true, "com.a.Feed.load", 0);
		(void)lines_of(cut, false, "com.a.Feed.load", 0);
	}
	for (size_t i = 0; i < n; i++)
		deep[i] = "class A{"[i % 8];
	deep[n] = '\0';
	(void)lines_of(deep, true, "com.a.A.f", 0);
	for (size_t i = 0; i < n; i++)
		deep[i] = "\"${"[i % 3];
	(void)lines_of(deep, true, "com.a.A.f", 0);
	for (size_t i = 0; i < n; i++)
		deep[i] = "}/*"[i % 3];
	(void)lines_of(deep, true, "com.a.A.f", 0);
	free(deep);
}

/* Seconds of processor for a file of 2 MiB that is one line. */
static double reads_one_line(const char *piece, bool as_kotlin)
{
	const size_t room = 2 << 20, n = strlen(piece);
	char *text = malloc(room + 1);
	clock_t begin;

	assert_non_null(text);
	for (size_t i = 0; i < room; i++)
		text[i] = piece[i % n];
	text[room] = '\0';
	begin = clock();
	(void)lines_of(text, as_kotlin, "com.a.A.f", 0);
	free(text);
	return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* What is generated may be one line: quadratic work took 40 s on it, linear takes a tenth of one.
 */
static void a_file_of_one_line_is_read_in_time(void **state)
{
	static const char *const pieces[] = {"1,", "val x=1\n@A(\"a\")", "@A(", "@JvmName(\"a\")",
	        "`,", ".", "`a`.", "/**/,", "record "};

	(void)state;
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
		for (int as_kotlin = 0; as_kotlin < 2; as_kotlin++)
			if (reads_one_line(pieces[i], as_kotlin) > 5)
				fail_msg("%s takes too long", pieces[i]);
}

static void the_longest_package_wins(void **state)
{
	json_t *doc = json_loads("{\"repositories\":[{\"name\":\"any\"},"
	                         "{\"name\":\"a\",\"packages\":[\"com.a\"]},"
	                         "{\"name\":\"ab\",\"packages\":[\"com.a.b.\"]}]}",
	        0, NULL);
	struct tw_arena *a = tw_arena_new(ROOM);
	static const char *const cases[][2] = {{"com.a.C.f", "a"}, {"com.a.b.C.f", "ab"},
	        {"com.ab.C.f", "any"}, {"org.C.f", "any"}, {"com.a.f", "a"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tw_source_name name;
		struct tw_err err;

		assert_int_equal(tw_source_name_read(cases[i][0], a, &name, &err), TW_OK);
		assert_string_equal(
		        tw_json_text(tw_source_rules_pick(doc, &name), "name"), cases[i][1]);
	}
	json_decref(doc);
	(void)tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_as_in_the_manuals),
        cmocka_unit_test(the_last_line_wins_and_may_take_owners_away),
        cmocka_unit_test(sections_have_a_last_line_each),
        cmocka_unit_test(patterns_of_many_stars_end_in_time),
        cmocka_unit_test(links_hold_hostile_values),
        cmocka_unit_test(declarations_of_kotlin),
        cmocka_unit_test(names_of_class_files),
        cmocka_unit_test(declarations_of_java),
        cmocka_unit_test(files_may_be_anything),
        cmocka_unit_test(a_file_of_one_line_is_read_in_time),
        cmocka_unit_test(the_longest_package_wins),
};

UNIT_TESTS("source", tests)
