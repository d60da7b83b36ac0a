/* R8's mapping.txt: worked cases, real mappings, cuts, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "decoder/base/arena.h"
#include "decoder/symbols/names.h"
#include "decoder/symbols/retrace.h"
#include "decoder/symbols/retrace_image.h"
#include "tests/unit/unit.h"

enum { CAP = 64 };

struct mapping {
	struct tw_buf image;
	struct tw_retrace_stats stats;
	struct tw_retrace r;
};

static enum tw_status compile(
        struct mapping *m, const void *text, size_t len, size_t piece, struct tw_err *err)
{
	struct tw_retrace_writer *w = tw_retrace_writer_new(64 << 20);
	enum tw_status st = w ? TW_OK : TW_NOMEM;

	*m = (struct mapping){0};
	tw_buf_init(&m->image, 256 << 20);
	for (size_t at = 0; st == TW_OK && at < len; at += piece)
		st = tw_retrace_writer_push(
		        w, (const uint8_t *)text + at, len - at < piece ? len - at : piece, err);
	if (st == TW_OK)
		st = tw_retrace_writer_finish(w, &m->image, &m->stats, err);
	tw_retrace_writer_free(w);
	if (st == TW_OK)
		st = tw_retrace_open(m->image.data, m->image.len, &m->r, err);
	if (st != TW_OK)
		tw_buf_done(&m->image);
	return st;
}

static struct mapping made(const char *text)
{
	struct mapping m;

	assert_int_equal(compile(&m, text, strlen(text), 7, NULL), TW_OK);
	return m;
}

/* Frames as "class.method:line", "/" between those inlined, " or " between alternatives. */
static void frames(const struct mapping *m, const char *method, uint32_t line, const char *want)
{
	struct tw_retraced f[CAP];
	char got[1024] = "";
	size_t n = tw_retrace_frame(&m->r, TW_STR("a.a"), tw_str_of(method), line, f, CAP);

	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(got);
		const char *before = !i                                         ? ""
		                     : f[i].alternative == f[i - 1].alternative ? "/"
		                                                                : " or ";

		(void)snprintf(got + at, sizeof got - at, "%s%.*s.%.*s:%u", before,
		        (int)f[i].class_name.len, f[i].class_name.ptr, (int)f[i].method.len,
		        f[i].method.ptr, f[i].line);
	}
	assert_string_equal(got, want);
}

static void test_frames(void **state)
{
	static const struct {
		const char *members, *method;
		uint32_t line;
		const char *want;
	} rows[] = {
	        {"    1:10:void qux():27:27 -> a\n    11:15:void qux():42 -> a\n", "a", 8,
	                "o.C.qux:27"},
	        {"    1:10:void qux():27:27 -> a\n    11:15:void qux():42 -> a\n", "a", 13,
	                "o.C.qux:42"},
	        {"    1337:1400:void foo.bar.Baz.quux():113:113 -> b\n"
	         "    1337:1400:void quuz():72 -> b\n",
	                "b", 1399, "foo.bar.Baz.quux:113/o.C.quuz:72"},
	        {"    1:3:void m2():11:13 -> a\n    4:4:void m2():10:10 -> a\n", "a", 27, ""},
	        {"    1:3:void m2():11:13 -> a\n    4:4:void m2():10:10 -> a\n", "a", 2,
	                "o.C.m2:12"},
	        {"    1:3:void m2():11:13 -> a\n    4:4:void m2():10:10 -> a\n", "a", 0,
	                "o.C.m2:0"},
	        {"    void m1(java.lang.String):42:44 -> a\n", "a", 1,
	                "o.C.m1:42 or o.C.m1:43 or o.C.m1:44"},
	        {"    0:0:void m1():42:42 -> a\n    0:0:void main():28 -> a\n", "a", 0,
	                "o.C.m1:42/o.C.main:28"},
	        {"    0:0:void m1():42:44 -> a\n    0:0:void main():28 -> a\n", "a", 0,
	                "o.C.m1:0/o.C.main:0"},
	        {"    void o1():7 -> o\n    void o2(java.lang.String):11 -> o\n", "o", 0,
	                "o.C.o1:0 or o.C.o2:0"},
	        {"    void one():7 -> o\n", "o", 0, "o.C.one:7"},
	        {"    void one() -> o\n", "o", 9, "o.C.one:9"},
	        {"    5:3:void main(java.lang.String[]) -> main\n", "main", 3, "o.C.main:3"},
	        {"    2:5:void main(java.lang.String[]):5:2 -> main\n", "main", 3, "o.C.main:3"},
	        {"    10:10:void some.in1(int):10:10 -> z\n    10:10:void foo(int):10 -> z\n"
	         "    11:12:void foo(int):11:12 -> z\n"
	         "    10:10:void some.in2(int,int):20:20 -> z\n"
	         "    10:10:void foo(int,int):42 -> z\n",
	                "z", 10, "some.in1:10/o.C.foo:10 or some.in2:20/o.C.foo:42"},
	        {"    void a() -> b\n", "c", 3, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[1024];
		struct mapping m;

		(void)snprintf(text, sizeof text, "o.C -> a.a:\n%s", rows[i].members);
		m = made(text);
		frames(&m, rows[i].method, rows[i].line, rows[i].want);
		tw_buf_done(&m.image);
	}
}

static const char methods_text[] =
        "# compiler: R8\n# pg_map_id: 1a2b3c\n"
        "com.shop.Cart -> a.a:\n"
        "# {\"id\":\"sourceFile\",\"fileName\":\"Cart.kt\"}\n"
        "    int total -> a\n"
        "    1:4:void add(com.shop.Item):10:13 -> a\n"
        "    5:8:void add(com.shop.Item,int[][]):20:23 -> a\n"
        "    9:12:com.shop.Item find(java.lang.String) -> a\n"
        "    1:2:void com.shop.Util.check(int):7:8 -> b\n"
        "    1:2:void pay():30 -> b\n"
        "    void lambda$pay$0() -> c\n"
        "      # {\"id\":\"com.android.tools.r8.synthesized\"}\n"
        "    void x(java.lang.Object) -> d\n"
        "      # {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"(I)V\"}\n"
        "    void y(java.lang.String) -> d\n"
        "      # {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"(J)V\"}\n"
        "    void com.shop.Moved.gone() -> e\n"
        "    1:1:void out() -> f\n"
        "      # {\"id\":\"com.android.tools.r8.outline\"}\n"
        "    2:3:void call() -> f\n"
        "      # {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"1\":2},"
        "\"outline\":\"La/a;f()V\"}\n"
        "com.shop.Item -> a.b:\n"
        "    void <init>() -> <init>\n";

static void shown(const struct mapping *m, const char *class_name, const char *method,
        const char *descriptor, bool known, const char *want)
{
	char out[256];

	assert_int_equal(tw_retrace_display(&m->r, tw_str_of(class_name), tw_str_of(method),
	                         tw_str_of(descriptor), out, sizeof out),
	        known);
	assert_string_equal(out, want);
}

static void test_methods(void **state)
{
	struct mapping m = made(methods_text);
	struct tw_retraced list[CAP];

	(void)state;
	assert_int_equal(m.stats.classes, 2);
	assert_int_equal(m.stats.methods, 12);
	assert_int_equal(m.stats.malformed, 0);
	assert_string_equal(m.stats.id, "1a2b3c");
	/* alternatives are joined, overloads are one name, a descriptor decides */
	shown(&m, "a.a", "a", "", true, "com.shop.Cart.add | com.shop.Cart.find");
	shown(&m, "a.a", "a", "(La/b;)V", true, "com.shop.Cart.add");
	shown(&m, "a.a", "a", "(La/b;[[I)V", true, "com.shop.Cart.add");
	shown(&m, "a.a", "a", "(Ljava/lang/String;)La/b;", true, "com.shop.Cart.find");
	shown(&m, "a.a", "a", "(J)V", true, "com.shop.Cart.add | com.shop.Cart.find");
	/* an inlined method is not the method; a member of another class belongs to that class */
	shown(&m, "a.a", "b", "", true, "com.shop.Cart.pay");
	shown(&m, "a.a", "e", "", true, "com.shop.Moved.gone");
	/* the residual signature is the one in the file, whatever the original types were */
	shown(&m, "a.a", "d", "(I)V", true, "com.shop.Cart.x");
	shown(&m, "a.a", "d", "(J)V", true, "com.shop.Cart.y");
	shown(&m, "a.a", "d", "", true, "com.shop.Cart.x | com.shop.Cart.y");
	/* members excluded from renaming keep their names; unknown classes are unchanged */
	shown(&m, "a.a", "onCreate", "", true, "com.shop.Cart.onCreate");
	shown(&m, "a.b", "<init>", "()V", true, "com.shop.Item.<init>");
	shown(&m, "a.b$c", "a", "", false, "a.b$c.a");
	shown(&m, "android.os.Looper", "loop", "", false, "android.os.Looper.loop");
	assert_int_equal(
	        tw_retrace_method(&m.r, TW_STR("a.a"), TW_STR("c"), TW_STR(""), list, CAP), 1);
	assert_true(list[0].synthesized);
	assert_int_equal(
	        tw_retrace_method(&m.r, TW_STR("a.a"), TW_STR("a"), TW_STR(""), list, CAP), 3);
	assert_int_equal(
	        tw_retrace_method(&m.r, TW_STR("a.a"), TW_STR("a"), TW_STR(""), list, 2), 2);
	tw_buf_done(&m.image);
}

static void test_cuts(void **state)
{
	struct mapping whole;
	size_t len = strlen(methods_text);

	(void)state;
	assert_int_equal(compile(&whole, methods_text, len, len, NULL), TW_OK);
	for (size_t piece = 1; piece < 40; piece++) {
		struct mapping m;

		assert_int_equal(compile(&m, methods_text, len, piece, NULL), TW_OK);
		assert_int_equal(m.image.len, whole.image.len);
		assert_memory_equal(m.image.data, whole.image.data, m.image.len);
		tw_buf_done(&m.image);
	}
	tw_buf_done(&whole.image);
}

static void test_refusals(void **state)
{
	static const char *const texts[] = {"", "1,2,a.B c ()V\n", "a.B -> c:\n",
	        "    void m() -> d\n",
	        "\x7f"
	        "ELF\n",
	        "a.B -> c:\n    int x -> y\n"};
	struct tw_err err;
	struct mapping m;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(compile(&m, texts[i], strlen(texts[i]), 100, &err), TW_CORRUPT);
	m = made("nonsense\na.B -> c:\n    what is this\n    void m() -> d\n  1:void x() -> e\n");
	assert_int_equal(m.stats.malformed, 3);
	assert_int_equal(m.stats.first_malformed, 0);
	assert_int_equal(m.stats.methods, 1);
	tw_buf_done(&m.image);
}

static void damaged_stack(const struct tw_retrace *r)
{
	struct tw_retrace_walk walk = {.r = r};
	struct tw_retraced f[CAP];
	bool known;

	for (uint32_t line = 1; line < 4; line++) {
		size_t n = tw_retrace_next(&walk,
		        &(struct tw_retrace_at){TW_STR("a.a"), TW_STR("f"), line}, f, CAP, &known);

		for (size_t i = 0; i < n; i++)
			(void)tw_retrace_file(&f[i], TW_STR("SourceFile"));
	}
}

/* Any image: lookups succeed or fail, but read only inside it. */
static void test_damaged_image(void **state)
{
	struct mapping m = made(methods_text);
	uint8_t *copy = tw_mem_alloc(m.image.len, 1);

	(void)state;
	assert_non_null(copy);
	for (size_t i = 0; i < m.image.len; i++) {
		struct tw_retrace r;
		char out[256];
		struct tw_retraced f[CAP];

		memcpy(copy, m.image.data, m.image.len);
		copy[i] ^= 0xFF;
		if (tw_retrace_open(copy, m.image.len, &r, NULL) != TW_OK)
			continue;
		(void)tw_retrace_display(
		        &r, TW_STR("a.a"), TW_STR("a"), TW_STR("(La/b;)V"), out, sizeof out);
		(void)tw_retrace_frame(&r, TW_STR("a.a"), TW_STR("b"), 1, f, CAP);
		(void)tw_retrace_frame(&r, TW_STR("a.a"), TW_STR("a"), 0, f, CAP);
		damaged_stack(&r);
	}
	for (size_t len = 0; len < m.image.len; len += 13) {
		struct tw_retrace r;

		assert_int_equal(tw_retrace_open(m.image.data, len, &r, NULL), TW_CORRUPT);
	}
	tw_mem_free(copy);
	tw_buf_done(&m.image);
}

static void test_no_memory(void **state)
{
	enum tw_status st = TW_NOMEM;
	int n = 0;

	(void)state;
	while (st != TW_OK && ++n < 100) {
		struct mapping m;

		tw_mem_fail_at((uint64_t)n);
		st = compile(&m, methods_text, strlen(methods_text), 50, NULL);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
		if (st == TW_OK)
			tw_buf_done(&m.image);
	}
	assert_in_range(n, 4, 99);
}

/* --- real mappings, where they are --- */

static char *sample(const char *name, size_t *ret_len)
{
	FILE *f = fopen(unit_sample(name), "rb");
	char *packed;
	char *text;
	size_t n;

	assert_non_null(f);
	packed = tw_mem_alloc(1 << 20, 1);
	text = tw_mem_alloc(8 << 20, 1);
	assert_true(packed && text);
	n = fread(packed, 1, 1 << 20, f);
	(void)fclose(f);
	n = ZSTD_decompress(text, 8 << 20, packed, n);
	assert_false(ZSTD_isError(n));
	tw_mem_free(packed);
	*ret_len = n;
	return text;
}

struct pairs {
	unsigned unique, overloads, ambiguous;
};

static struct tw_str at(const struct tw_retrace *r, const uint8_t *p)
{
	return (struct tw_str){r->text + tw_u32le(p), tw_u32le(p + 4)};
}

/* Every pair of class and obfuscated method, looked up without a descriptor. */
static struct pairs count_pairs(const struct tw_retrace *r)
{
	struct pairs p = {0};

	for (uint32_t c = 0; c < r->classes; c++) {
		const uint8_t *k = r->class_records + (size_t)c * RETRACE_CLASS;
		struct tw_str before = {0};

		for (uint32_t i = 0; i < tw_u32le(k + 20); i++) {
			struct tw_str obf =
			        at(r, r->member_records +
			                        (size_t)(tw_u32le(k + 16) + i) * RETRACE_MEMBER);
			struct tw_retraced list[CAP];
			bool one_name = true;
			size_t n;

			if (before.ptr && tw_str_eq(obf, before))
				continue;
			before = obf;
			n = tw_retrace_method(r, at(r, k), obf, TW_STR(""), list, CAP);
			assert_int_not_equal(n, 0);
			for (size_t j = 1; j < n; j++)
				one_name = one_name && tw_str_eq(list[j].method, list[0].method) &&
				           tw_str_eq(list[j].class_name, list[0].class_name);
			p.unique += n == 1;
			p.overloads += n > 1 && one_name;
			p.ambiguous += n > 1 && !one_name;
		}
	}
	return p;
}

static void test_samples(void **state)
{
	static const struct {
		const char *name;
		struct pairs want;
	} rows[] = {{"mapping/mapping-r8.txt.zst", {4714, 274, 932}},
	        {"mapping/mapping.txt.zst", {3002, 141, 505}}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t len = 0;
		char *text = sample(rows[i].name, &len);
		struct mapping m;
		struct pairs got;

		assert_int_equal(compile(&m, text, len, 65536, NULL), TW_OK);
		assert_int_equal(m.stats.malformed, 0);
		got = count_pairs(&m.r);
		assert_int_equal(got.unique, rows[i].want.unique);
		assert_int_equal(got.overloads, rows[i].want.overloads);
		assert_int_equal(got.ambiguous, rows[i].want.ambiguous);
		tw_buf_done(&m.image);
		tw_mem_free(text);
	}
}

/* --- stacks --- */

/* Maps "a.b.m:1 a.c.n:2", from the top down, to original names; '/' joins inlined frames. */
static void stack(const struct mapping *m, const char *frames, const char *want)
{
	struct tw_retrace_walk walk = {.r = &m->r};
	struct tw_str rest = tw_str_of(frames);
	char got[512] = "";

	while (rest.len) {
		struct tw_str line = tw_str_split(&rest, ' ');
		struct tw_str name = tw_str_split(&line, ':');
		size_t dot = name.len;
		struct tw_retraced f[CAP];
		uint64_t number = 0;
		bool known;
		size_t n;

		while (name.ptr[dot - 1] != '.')
			dot--;
		assert_true(tw_str_u64(line, UINT32_MAX, &number));
		n = tw_retrace_next(&walk,
		        &(struct tw_retrace_at){.class_name = {name.ptr, dot - 1},
		                .method = {name.ptr + dot, name.len - dot},
		                .line = (uint32_t)number},
		        f, CAP, &known);
		for (size_t i = 0; i < n; i++) {
			struct tw_retrace_file file = tw_retrace_file(&f[i], TW_STR("SourceFile"));
			size_t at = strlen(got);

			(void)snprintf(got + at, sizeof got - at, "%s%.*s(%.*s%.*s:%u)",
			        !got[0] ? ""
			        : i     ? "/"
			                : " ",
			        (int)f[i].method.len, f[i].method.ptr, (int)file.name.len,
			        file.name.ptr, (int)file.extension.len, file.extension.ptr,
			        f[i].line);
		}
	}
	assert_string_equal(got, want);
}

static void test_stacks(void **state)
{
	struct mapping m =
	        made("outline.Class -> a:\n"
	             "    1:2:int outline() -> a\n"
	             "# { \"id\":\"com.android.tools.r8.outline\" }\n"
	             "some.Class -> b:\n"
	             "    4:4:int caller(int):98:98 -> s\n"
	             "    5:5:int caller(int):100:100 -> s\n"
	             "    27:27:int caller(int):0:0 -> s\n"
	             "# { \"id\":\"com.android.tools.r8.outlineCallsite\", \"positions\": "
	             "{ \"1\": 4, \"2\": 5 }, \"outline\":\"La;a()I\"}\n"
	             "    1:1:void some.HelperKt.help():7 -> t\n"
	             "    1:1:void work():30 -> t\n"
	             "    2:2:void lambda():9 -> t\n"
	             "    2:2:void access$0():31 -> t\n"
	             "      # {\"id\":\"com.android.tools.r8.synthesized\"}\n"
	             "    3:3:void some.Other$Inner.far():8 -> t\n"
	             "    3:3:void work():32 -> t\n"
	             "some.Kt -> c:\n"
	             "# {\"id\":\"sourceFile\",\"fileName\":\"Screen.kt\"}\n"
	             "    1:1:void draw():5 -> a\n"
	             "    2:2:void some.Far.near():6 -> a\n"
	             "    2:2:void draw():6 -> a\n"
	             "some.Made -> d:\n"
	             "# {\"id\":\"sourceFile\",\"fileName\":\"R8$$SyntheticClass\"}\n"
	             "    1:1:void run():1 -> a\n");

	(void)state;
	/* an outline's line identifies the position in its caller */
	stack(&m, "a.a:1 b.s:27", "caller(Class.java:98)");
	stack(&m, "a.a:2 b.s:27", "caller(Class.java:100)");
	stack(&m, "a.a:3 b.s:27", "caller(Class.java:0)");
	stack(&m, "b.s:4", "caller(Class.java:98)");
	/* it is carried to one frame only, and only to one that called it */
	stack(&m, "a.a:1 b.t:1 b.s:27",
	        "help(Helper.kt:7)/work(Class.java:30) caller(Class.java:0)");
	/* the compiler's own frame, with its line or without */
	stack(&m, "a.a:0 b.s:4", "caller(Class.java:98)");
	/* synthetic frames are left out if another frame remains */
	stack(&m, "b.t:2", "lambda(Class.java:9)");
	stack(&m, "b.t:3", "far(Other.java:8)/work(Class.java:32)");
	/* files: by the mapping, otherwise by the class, with the suffix of the containing class */
	stack(&m, "c.a:1 c.a:2", "draw(Screen.kt:5) near(Far.kt:6)/draw(Screen.kt:6)");
	stack(&m, "d.a:1", "run(Made.java:1)");
	/* no member fits: the class alone */
	stack(&m, "d.a:9 d.z:4", "a(Made.java:9) z(Made.java:4)");
	stack(&m, "x.y:1", "");
	tw_buf_done(&m.image);
}

/* A name with more members than the limit: lines are found in their order, names and types among
 * the first. */
static void test_many_members(void **state)
{
	enum { MEMBERS = 20000 };
	struct tw_buf text;
	struct tw_retraced f[CAP];
	struct mapping m;

	(void)state;
	tw_buf_init(&text, 8 << 20);
	assert_int_equal(tw_buf_add_str(&text, TW_STR("o.C -> a.a:\n")), TW_OK);
	for (int i = 0; i < MEMBERS; i++) {
		char line[80];
		int n = snprintf(line, sizeof line, "    %d:%d:void m%d(t%d):%d -> a\n", 2 * i + 1,
		        2 * i + 2, i, i, i + 1);

		assert_int_equal(tw_buf_add(&text, line, (size_t)n), TW_OK);
	}
	assert_int_equal(compile(&m, (const char *)text.data, text.len, 65536, NULL), TW_OK);
	for (uint32_t i = 0; i < MEMBERS; i += 777) {
		assert_int_equal(
		        tw_retrace_frame(&m.r, TW_STR("a.a"), TW_STR("a"), 2 * i + 2, f, CAP), 1);
		assert_int_equal(f[0].line, i + 1);
	}
	assert_int_equal(
	        tw_retrace_frame(&m.r, TW_STR("a.a"), TW_STR("a"), 2 * MEMBERS + 1, f, CAP), 0);
	assert_int_equal(
	        tw_retrace_method(&m.r, TW_STR("a.a"), TW_STR("a"), TW_STR("(Lt1023;)V"), f, CAP),
	        1);
	assert_int_equal(
	        tw_retrace_method(&m.r, TW_STR("a.a"), TW_STR("a"), TW_STR("(Lt1024;)V"), f, CAP),
	        CAP);
	tw_buf_done(&m.image);
	tw_buf_done(&text);
}

static void test_a_class_twice(void **state)
{
	struct mapping m =
	        made("o.First -> a.a:\n    void m() -> a\no.Last -> a.a:\n    void n() -> a\n");

	(void)state;
	shown(&m, "a.a", "a", "", true, "o.Last.n");
	tw_buf_done(&m.image);
}

/* Without a mapping a name is shown without the descriptor that is kept for one. */
static void test_plain_names(void **state)
{
	static const struct {
		const char *name, *plain;
	} rows[] = {
	        {"a.b.C.m(I)V", "a.b.C.m"},
	        {"a.b.C.<init>(Ljava/lang/String;[[J)Lx/Y;", "a.b.C.<init>"},
	        {"a.b.C.m()[Z", "a.b.C.m"},
	        {"a.b.C.m", "a.b.C.m"},
	        {"a.b.C.m(I)", "a.b.C.m(I)"},
	        {"a.b.C.m(I", "a.b.C.m(I"},
	        {"a.b.C.m(I)VV", "a.b.C.m(I)VV"},
	        {"a.b.C.m(Lx)V", "a.b.C.m(Lx)V"},
	        {"a.b.C.m([)V", "a.b.C.m([)V"},
	        {"draw (frame 3)", "draw (frame 3)"},
	        {"(I)V", "(I)V"},
	        {"", ""},
	};
	const struct tw_names none = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct tw_named what = {.name = tw_str_of(rows[i].name)};
		char shown[64];

		assert_true(tw_str_eq(tw_names_plain(what.name), tw_str_of(rows[i].plain)));
		assert_true(tw_names_display(&none, &what, shown, sizeof shown));
		assert_string_equal(shown, rows[i].plain);
	}
}

/* Overloads are distinguished by their descriptors, with the original types where R8 renamed them.
 */
static void test_descriptors(void **state)
{
	static const struct {
		const char *name, *plain, *original;
	} rows[] = {
	        {"a.a.a(I)V", "(I)V", "(I)V"},
	        {"a.a.a(La/a;)V", "(La/a;)V", "(Lo/First;[[Ljava/lang/String;)[Z"},
	        {"a.a.k(La/a;[[La/a;J)La/a;", "(La/a;[[La/a;J)La/a;",
	                "(Lo/First;[[Lo/First;J)Lo/First;"},
	        {"a.a.one", "", "(J)V"},
	        {"a.a.two", "", ""},
	        {"x.Kept.m(Ljava/lang/String;)V", "(Ljava/lang/String;)V", "(Ljava/lang/String;)V"},
	        {"x.Kept.m", "", ""},
	        {"a.a.a(:12)", "", ""},
	        {"draw (frame 3)", "", ""},
	        {"", "", ""},
	};
	struct mapping m = made("o.First -> a.a:\n"
	                        "    void parse(int) -> a\n"
	                        "    boolean[] parse(o.First,java.lang.String[][]) -> a\n"
	                        "      # {\"id\":\"com.android.tools.r8.residualsignature\","
	                        "\"signature\":\"(La/a;)V\"}\n"
	                        "    void single(long) -> one\n"
	                        "    void left(int) -> two\n"
	                        "    void right(long) -> two\n");
	const struct tw_names none = {0};
	const struct tw_names names = {.retrace = &m.r};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct tw_named what = {.name = tw_str_of(rows[i].name)};
		const struct tw_named original = {.name = what.name, .original = true};

		tw_names_descriptor(&none, &what, out, sizeof out);
		assert_string_equal(out, rows[i].plain);
		tw_names_descriptor(&names, &what, out, sizeof out);
		assert_string_equal(out, rows[i].original);
		tw_names_descriptor(&names, &original, out, sizeof out);
		assert_string_equal(out, rows[i].plain);
	}
	tw_names_descriptor(&names, &(struct tw_named){.has_id = true, .id = 1}, out, sizeof out);
	assert_string_equal(out, "");
	tw_buf_done(&m.image);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_plain_names),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_a_class_twice),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_damaged_image),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_samples),
};

UNIT_TESTS("retrace", tests)
