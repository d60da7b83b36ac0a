/*
 * The chunk encoder's exact bytes: what it makes of the calls in tests/golden/columns/NAME.txt is
 * NAME.hex, which the page's decoder is held to as well (web/test/trace/golden.test.ts), and the
 * example of schema/columns.md; and those of a call tree.  TW_REWRITE=1 writes the .hex files anew,
 * to be reviewed as a diff.
 *
 * A line of NAME.txt is `start NS`, `open START DUR METHOD` or
 * `DEPTH START DUR METHOD CPU MERGED`, CPU `-` where it is not known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/str.h"
#include "decoder/trace/calltree.h"
#include "decoder/trace/columns.h"
#include "decoder/trace/tree_sums.h"
#include "tests/unit/unit.h"

enum { SLICES_MAX = 1000, TEXT_MAX = 1 << 16 };

struct golden {
	int64_t start_ns;
	struct tw_slice open[SLICES_MAX], slices[SLICES_MAX];
	size_t n_open, n;
};

static char *path_of(char *buf, size_t size, const char *name)
{
	const char *root = getenv("TW_SOURCE_ROOT");

	(void)snprintf(buf, size, "%s/%s", root ? root : ".", name);
	return buf;
}

/* The whole file, NUL-terminated. */
static char *read_text(const char *name)
{
	static char text[TEXT_MAX];
	char path[1024];
	FILE *f = fopen(path_of(path, sizeof path, name), "re");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof text - 1, f);
	assert_true(feof(f));
	(void)fclose(f);
	text[n] = 0;
	return text;
}

static int64_t number(struct tw_str *line)
{
	struct tw_str word = tw_str_split(line, ' ');
	uint64_t v = 0;

	if (tw_str_eq(word, TW_STR("-")))
		return -1;
	assert_true(tw_str_u64(word, INT64_MAX, &v));
	return (int64_t)v;
}

static void read_line(struct golden *g, struct tw_str line)
{
	struct tw_str rest = line;
	struct tw_str first = tw_str_split(&rest, ' ');
	struct tw_slice s = {.cpu_ns = -1};

	if (tw_str_eq(first, TW_STR("start"))) {
		g->start_ns = number(&rest);
		return;
	}
	assert_in_range(g->n + g->n_open, 0, SLICES_MAX - 1);
	if (tw_str_eq(first, TW_STR("open"))) {
		s.depth = (uint32_t)g->n_open;
		s.start_ns = number(&rest);
		s.dur_ns = number(&rest);
		s.method = (uint32_t)number(&rest);
		g->open[g->n_open++] = s;
		return;
	}
	s.depth = (uint32_t)number(&line);
	s.start_ns = number(&line);
	s.dur_ns = number(&line);
	s.method = (uint32_t)number(&line);
	s.cpu_ns = number(&line);
	s.merged = (uint32_t)number(&line);
	g->slices[g->n++] = s;
}

static void read_golden(struct golden *g, const char *name)
{
	struct tw_str text = tw_str_of(read_text(name));

	*g = (struct golden){0};
	while (text.len) {
		struct tw_str line = tw_str_split(&text, '\n');

		if (line.len)
			read_line(g, line);
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes as two digits with one or two spaces between; the rest of a line is a comment. */
static size_t read_hex(struct tw_str text, uint8_t *out, size_t cap)
{
	size_t n = 0;

	while (text.len) {
		struct tw_str line = tw_str_split(&text, '\n');
		size_t gap = 0;

		for (size_t i = 0; i + 1 < line.len && gap < 3;) {
			int high = hex_digit(line.ptr[i]);
			int low = hex_digit(line.ptr[i + 1]);

			if (line.ptr[i] == ' ') {
				gap++;
				i++;
				continue;
			}
			assert_true(high >= 0 && low >= 0 && n < cap);
			out[n++] = (uint8_t)(high << 4 | low);
			gap = 0;
			i += 2;
		}
	}
	return n;
}

static void write_hex(const char *name, const struct tw_buf *b)
{
	char path[1024];
	FILE *f = fopen(path_of(path, sizeof path, name), "we");

	assert_non_null(f);
	for (size_t i = 0; i < b->len; i++)
		(void)fprintf(
		        f, "%02x%s", b->data[i], i % 16 == 15 || i + 1 == b->len ? "\n" : " ");
	(void)fclose(f);
}

static void encode(const struct golden *g, struct tw_buf *out)
{
	tw_buf_init(out, 1 << 20);
	assert_int_equal(tw_chunk_encode(g->open, g->n_open, g->slices, g->n, out), TW_OK);
}

static void check_decoded(const struct golden *g, const struct tw_buf *b)
{
	struct tw_chunk c;

	tw_chunk_init(&c);
	assert_int_equal(tw_chunk_decode(&c, b->data, b->len, g->start_ns, NULL), TW_OK);
	assert_int_equal(c.n_open, g->n_open);
	assert_int_equal(c.n, g->n);
	for (size_t i = 0; i < c.n; i++) {
		assert_int_equal(c.slices[i].start_ns, g->slices[i].start_ns);
		assert_int_equal(c.slices[i].dur_ns, g->slices[i].dur_ns);
		assert_int_equal(c.slices[i].depth, g->slices[i].depth);
		assert_int_equal(c.slices[i].method, g->slices[i].method);
		assert_int_equal(c.slices[i].cpu_ns, g->slices[i].cpu_ns);
		assert_int_equal(c.slices[i].merged, g->slices[i].merged);
	}
	for (size_t i = 0; i < c.n_open; i++) {
		assert_int_equal(c.open[i].start_ns, g->open[i].start_ns);
		assert_int_equal(c.open[i].dur_ns, g->open[i].dur_ns);
		assert_int_equal(c.open[i].method, g->open[i].method);
	}
	tw_chunk_done(&c);
}

static void check_golden(const char *text, const char *hex)
{
	static struct golden g;
	static uint8_t want[TEXT_MAX];
	struct tw_buf b;
	size_t n;

	read_golden(&g, text);
	encode(&g, &b);
	if (getenv("TW_REWRITE"))
		write_hex(hex, &b);
	n = read_hex(tw_str_of(read_text(hex)), want, sizeof want);
	assert_int_equal(b.len, n);
	assert_memory_equal(b.data, want, n);
	check_decoded(&g, &b);
	tw_buf_done(&b);
}

/* Unknown CPU times remain unknown among others. */
static void test_unknown_cpu(void **state)
{
	(void)state;
	check_golden("tests/golden/columns/cpu.txt", "tests/golden/columns/cpu.hex");
}

static void test_bytes(void **state)
{
	(void)state;
	check_golden("tests/golden/columns/example.txt", "tests/golden/columns/example.hex");
	check_golden("tests/golden/columns/open.txt", "tests/golden/columns/open.hex");
	check_golden("tests/golden/columns/merged.txt", "tests/golden/columns/merged.hex");
	check_golden("tests/golden/columns/nested.txt", "tests/golden/columns/nested.hex");
}

/* Encoder and decoder agree with the document's example. */
static void test_document(void **state)
{
	static const char begin[] = "```\n54 57 43 32";
	static struct golden g;
	uint8_t want[256];
	char *at = strstr(read_text("schema/columns.md"), begin);
	char *end;
	struct tw_buf b;
	size_t n;

	(void)state;
	assert_non_null(at);
	at += 4;
	end = strstr(at, "\n```");
	assert_non_null(end);
	n = read_hex((struct tw_str){at, (size_t)(end - at)}, want, sizeof want);
	read_golden(&g, "tests/golden/columns/example.txt");
	encode(&g, &b);
	assert_int_equal(b.len, n);
	assert_memory_equal(b.data, want, n);
	check_decoded(&g, &b);
	tw_buf_done(&b);
}

/* Four calls one after the other, without bits.  The duration of the third one and the gap of the
 * last one are wide, so the last duration is two of them past the end of the bits, and so of the
 * chunk. */
static void test_past_end(void **state)
{
	static const char hex[] = "54 57 43 32  04 00 00 00  00 00 00 00  00 00 00 00"
	                          " 00 00 00 00  00 00 00 00  08 00 00 00  04 00 00 00"
	                          " 00 00 00 00  04 00 00 00  00 00 00 00  00 00 00 00"
	                          " 00 00 01 00 01 00 01 00  00 00 ff 00  00 00 00 ff";
	uint8_t bytes[128];
	size_t n = read_hex(tw_str_of(hex), bytes, sizeof bytes);
	uint8_t *exact = malloc(n); /* so that a sanitizer detects reads past it */
	struct tw_chunk c;

	(void)state;
	assert_non_null(exact);
	memcpy(exact, bytes, n);
	tw_chunk_init(&c);
	assert_int_equal(tw_chunk_decode(&c, exact, n, 1000, NULL), TW_CORRUPT);
	tw_chunk_done(&c);
	free(exact);
}

/* --- call trees --- */

#define TREE_HEAD                                                                                  \
	" 04 00 00 00  00 00 00 00 00 00 00 00  06 00 00 00  03 00 00 00"                          \
	" 03 00 00 00  01 00 00 00  02 00 00 00  01 00 00 00  00 00 00 00"                         \
	" 00 00 00 01 02 02  02 03 01  5d 61 40  10 "

/* Two calls of a, with three of b in them, then one of c. */
static struct tw_tree make_tree(struct tw_arena *a)
{
	static const struct tw_slice calls[] = {
	        {.start_ns = 0, .dur_ns = 100, .cpu_ns = -1, .method = 0, .depth = 0},
	        {.start_ns = 10, .dur_ns = 20, .cpu_ns = -1, .method = 1, .depth = 1},
	        {.start_ns = 40, .dur_ns = 40, .cpu_ns = -1, .method = 1, .depth = 1},
	        {.start_ns = 200, .dur_ns = 60, .cpu_ns = -1, .method = 0, .depth = 0},
	        {.start_ns = 210, .dur_ns = 40, .cpu_ns = -1, .method = 1, .depth = 1},
	        {.start_ns = 300, .dur_ns = 1, .cpu_ns = -1, .method = 2, .depth = 0},
	};
	struct tw_tree_builder *b = tw_tree_builder_new(UINT32_MAX);
	struct tw_tree t;

	assert_non_null(b);
	assert_int_equal(tw_tree_builder_add(b, calls, sizeof calls / sizeof *calls), TW_OK);
	assert_int_equal(tw_tree_builder_finish(b, a, &t), TW_OK);
	tw_tree_builder_free(b);
	return t;
}

/* Adds calls with two calls each, on `levels` levels. */
static enum tw_status add_pairs(struct tw_tree_builder *b, unsigned levels)
{
	enum tw_status st = TW_OK;

	for (uint32_t leaf = 0; leaf < 1u << levels; leaf++)
		for (unsigned below = leaf ? (unsigned)__builtin_ctz(leaf) + 1 : levels; below--;) {
			const struct tw_slice call = {.cpu_ns = -1,
			        .method = leaf >> below & 1,
			        .depth = levels - 1 - below};

			if (st == TW_OK)
				st = tw_tree_builder_add(b, &call, 1);
		}
	return st;
}

/* Needs no memory for nodes that it made space for.  Only the node with a CPU time has one. */
static void test_reserved_nodes(void **state)
{
	enum { LEVELS = 15, NODES = (2 << LEVELS) - 1 };
	const struct tw_slice timed = {.cpu_ns = 7, .method = 2};
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct tw_tree_builder *b = tw_tree_builder_new(UINT32_MAX);
	struct tw_tree t;

	(void)state;
	assert_true(tw_tree_builder_reserve(b, 2 * NODES));
	tw_mem_fail_at(1);
	assert_int_equal(add_pairs(b, LEVELS), TW_OK);
	assert_true(tw_tree_builder_reserve(b, NODES));
	assert_false(tw_tree_builder_reserve(b, 3 * NODES));
	tw_mem_fail_at(0);
	assert_int_equal(tw_tree_builder_nodes(b), NODES);
	tw_tree_builder_reset(b, UINT32_MAX);
	assert_int_equal(tw_tree_builder_add(b, &timed, 1), TW_OK);
	assert_int_equal(add_pairs(b, LEVELS + 1), TW_OK);
	assert_int_equal(tw_tree_builder_finish(b, a, &t), TW_OK);
	for (uint32_t i = 1; i < t.n; i++)
		assert_int_equal(t.nodes[i].cpu_ns, t.nodes[i].method == 2 ? 7 : -1);
	tw_tree_builder_free(b);
	tw_arena_free(a);
}

static void check_tree(const char *hex, const struct tw_tree *want, struct tw_arena *a)
{
	uint8_t bytes[128];
	size_t n = read_hex(tw_str_of(hex), bytes, sizeof bytes);
	struct tw_tree t;

	assert_int_equal(tw_tree_decode(bytes, n, a, &t, NULL), TW_OK);
	assert_int_equal(t.n, want->n);
	assert_memory_equal(t.nodes, want->nodes, t.n * sizeof *t.nodes);
}

/* The longest calls take 100 - 40 and 40 ns more than those that they contain: buckets 31 and 26,
 * where 60 / 2 and 100 / 3 have 23 and 24.  The older form has 100 and 40 themselves, and expects
 * the buckets of 160 / 2 and 100 / 3. */
static void test_tree(void **state)
{
	static const char hex[] = "54 57 54 33" TREE_HEAD "02 08  00";
	static const char older[] = "54 57 54 32" TREE_HEAD "02 02  10";
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_tree t = make_tree(a);
	uint8_t want[128];
	struct tw_buf b;

	(void)state;
	tw_buf_init(&b, 1 << 20);
	assert_int_equal(tw_tree_encode(&t, &b), TW_OK);
	assert_int_equal(b.len, read_hex(tw_str_of(hex), want, sizeof want));
	assert_memory_equal(b.data, want, b.len);
	check_tree(hex, &t, a);
	check_tree(older, &t, a);
	tw_buf_done(&b);
	tw_arena_free(a);
}

/* Calls of more than 2^32 ns, and more than 2^32 calls: totals and longest calls of nodes, of their
 * sums, and of a second tree to which the first is added. */
static void test_wide_nodes(void **state)
{
	const int64_t s = 1000000000;
	const struct tw_slice calls[] = {
	        {.start_ns = 0, .dur_ns = 3 * s, .cpu_ns = -1, .method = 0, .depth = 0},
	        {.start_ns = 3 * s, .dur_ns = 9 * s, .cpu_ns = -1, .method = 0, .depth = 0},
	        {.start_ns = 3 * s, .dur_ns = 5 * s, .cpu_ns = -1, .method = 1, .depth = 1},
	        {.start_ns = 12 * s, .dur_ns = 7 * s, .cpu_ns = -1, .method = 0, .depth = 0},
	        {.start_ns = 19 * s, .dur_ns = 0, .cpu_ns = -1, .method = 0, .depth = 0},
	        {.start_ns = 20 * s, .dur_ns = 1, .cpu_ns = -1, .method = 2, .depth = 0},
	};
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_tree_builder *b = tw_tree_builder_new(UINT32_MAX);
	struct tw_tree_builder *twice = tw_tree_builder_new(UINT32_MAX);
	struct tw_tree_sums sums;
	struct tw_tree t;

	(void)state;
	assert_int_equal(tw_tree_builder_add(b, calls, sizeof calls / sizeof *calls), TW_OK);
	assert_int_equal(tw_tree_builder_finish(b, a, &t), TW_OK);
	assert_int_equal(t.n, 4);
	assert_int_equal(t.nodes[1].max_ns, 9 * s);
	assert_int_equal(t.nodes[1].total_ns, 19 * s);
	assert_int_equal(t.nodes[1].self_ns, 14 * s);
	assert_int_equal(t.nodes[2].max_ns, 5 * s);
	assert_int_equal(t.nodes[3].max_ns, 1);
	t.nodes[3].count = UINT64_C(3) << 32;
	assert_true(tw_tree_sums_begin(&sums, t.n));
	assert_true(tw_tree_sums_add(&sums, t.nodes, t.n));
	tw_tree_sums_end(&sums);
	assert_int_equal(sums.n, 4);
	assert_int_equal(sums.n_wide, 3);
	assert_int_equal(tw_tree_sums_wide(&sums, 1)->max_ns, 9 * s);
	assert_int_equal(tw_tree_sums_wide(&sums, 2)->max_ns, 5 * s);
	assert_int_equal(tw_tree_sums_wide(&sums, 3)->count, UINT64_C(3) << 32);
	assert_int_equal(sums.nodes[0].subtree, 4);
	assert_int_equal(sums.nodes[1].subtree, 2);
	tw_tree_sums_done(&sums);
	assert_int_equal(tw_tree_builder_add_tree(twice, &t), TW_OK);
	assert_int_equal(tw_tree_builder_add_tree(twice, &t), TW_OK);
	assert_int_equal(tw_tree_builder_finish(twice, a, &t), TW_OK);
	assert_int_equal(t.nodes[1].max_ns, 9 * s);
	assert_int_equal(t.nodes[1].count, 8);
	assert_int_equal(t.nodes[3].count, UINT64_C(6) << 32);
	tw_tree_builder_free(twice);
	tw_tree_builder_free(b);
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_unknown_cpu),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_past_end),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_reserved_nodes),
        cmocka_unit_test(test_wide_nodes),
};

UNIT_TESTS("columns", tests)
