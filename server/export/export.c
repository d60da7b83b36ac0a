/*
 * export.c - opens an export, resolves names, and returns its bytes, compressed if requested.
 */
#include "server/export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/codec_memory.h"
#include "server/export/export_format.h"

enum {
	NAME_MAX_BYTES = 16384,
	GZIP_LEVEL = 4,
	GZIP_WINDOW = 15 + 16,
	TAIL_BYTES = 80,
	KNOWN_MAX = 16384,
	SLICE_BYTES = 40, /* estimated size of a file: per slice; measured: 30 */
	EVENT_BYTES = 100 /* and per event; measured: 58 with texts of 16 bytes */
};
#define OUT_MAX_BYTES   ((size_t)96 << 20)
#define ARENA_MAX_BYTES ((size_t)1 << 30)
#define NAMES_MAX_BYTES ((size_t)4 << 20) /* above this, names are composed on each use */

static const struct tw_export_format *const formats[] = {
#define EXPORT(name) &tw_export_##name,
#include "server/export/exports.def"
#undef EXPORT
};

enum { FORMATS = sizeof formats / sizeof formats[0] }; /* NOLINT(bugprone-sizeof-expression) */

const struct tw_export_kind *tw_export_kind_at(size_t i)
{
	return i < FORMATS ? &formats[i]->kind : NULL;
}

const struct tw_export_kind *tw_export_kind(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (strcmp(formats[i]->kind.name, name) == 0)
			return &formats[i]->kind;
	return NULL;
}

/* --- names and text for formats --- */

static struct tw_str display(struct tw_export *x, uint32_t method)
{
	const struct tw_named what = tw_method_named(&x->methods[method]);

	(void)tw_names_display(&x->names, &what, x->name, NAME_MAX_BYTES);
	return tw_trace_file_is_sanitized(x->file) ? tw_sanitized_name(tw_str_of(x->name))
	                                           : tw_str_of(x->name);
}

struct tw_str tw_export_name(struct tw_export *x, uint32_t method)
{
	struct tw_export_known *known = &x->known[method & x->known_mask];
	struct tw_str name;
	char *copy;

	if (method >= x->n_methods)
		return TW_STR("?");
	if (known->name.ptr && known->method == method)
		return known->name;
	name = display(x, method);
	if (tw_arena_bytes(x->name_arena) > NAMES_MAX_BYTES) {
		memset(x->known, 0, ((size_t)x->known_mask + 1) * sizeof *x->known);
		tw_arena_reset(x->name_arena);
	}
	copy = tw_arena_str(x->name_arena, name);
	if (!copy)
		return name;
	*known = (struct tw_export_known){{copy, name.len}, method};
	return known->name;
}

uint32_t tw_export_number(struct tw_export *x, uint32_t method)
{
	if (method >= x->n_methods)
		method = 0;
	if (x->numbers[method] == 0) {
		x->used[x->n_used++] = method;
		x->numbers[method] = x->n_used;
	}
	return x->numbers[method];
}

const char *tw_export_source_suffix(const struct tw_thread_info *t)
{
	if (t->source == TW_SOURCE_SAMPLES)
		return ", sampled";
	return t->source == TW_SOURCE_COUNTS ? ", counted" : "";
}

static struct tw_str thread_name(struct tw_export *x, const struct tw_thread_info *t)
{
	char tail[TAIL_BYTES];
	size_t n;

	(void)snprintf(tail, sizeof tail, " (%" PRIu64 "%s)", t->tid, tw_export_source_suffix(t));
	n = tw_utf8_clean(
	        x->name, NAME_MAX_BYTES - sizeof tail, t->name.len ? t->name : TW_STR("thread"));
	(void)snprintf(x->name + n, sizeof tail, "%s", tail);
	return tw_str_of(x->name);
}

struct tw_str tw_export_thread_name(struct tw_export *x)
{
	return thread_name(x, x->thread);
}

struct tw_str tw_export_scope(struct tw_export *x)
{
	const struct tw_thread_info *only = NULL;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(x->file, &n);

	for (uint32_t i = 0; i < n; i++) {
		if (t[i].slices == 0 || !tw_selection_has(&x->q.sel, &t[i]))
			continue;
		if (only)
			return x->q.sel.all_threads ? TW_STR("all threads")
			                            : TW_STR("selected threads");
		only = &t[i];
	}
	return only ? thread_name(x, only) : TW_STR("no calls");
}

struct tw_str tw_export_node_name(struct tw_export *x, uint32_t node)
{
	const struct tw_flame_node *n = &x->flame.nodes[node];

	if (n->others)
		return TW_STR("(other)");
	return n->method == TW_NO_METHOD ? tw_export_scope(x) : tw_export_name(x, n->method);
}

int64_t tw_export_from(const struct tw_export *x, const struct tw_thread_info *t)
{
	return x->q.sel.ranged && x->q.sel.from_ns > t->start_ns ? x->q.sel.from_ns : t->start_ns;
}

int64_t tw_export_to(const struct tw_export *x, const struct tw_thread_info *t)
{
	return x->q.sel.ranged && x->q.sel.to_ns < t->end_ns ? x->q.sel.to_ns : t->end_ns;
}

int64_t tw_export_self_cpu(const struct tw_export *x, uint32_t node)
{
	const struct tw_tree_node *n = &x->tree.nodes[node];
	int64_t left = n->cpu_ns;

	if (left < 0)
		return 0;
	for (uint32_t c = node + 1; c < node + n->subtree; c += x->tree.nodes[c].subtree)
		if (x->tree.nodes[c].cpu_ns > 0)
			left -= x->tree.nodes[c].cpu_ns;
	return left > 0 ? left : 0;
}

int64_t tw_export_self(const struct tw_export *x, uint32_t node)
{
	if (x->q.metric == TW_EXPORT_COUNT)
		return (int64_t)x->tree.nodes[node].count;
	if (x->q.metric == TW_EXPORT_CPU)
		return tw_export_self_cpu(x, node);
	return x->tree.nodes[node].self_ns;
}

void tw_export_decimal(struct tw_buf *out, int64_t v, unsigned digits)
{
	char text[32];
	char *at = text + sizeof text;
	uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	for (unsigned i = 0; i < digits || left || i == digits; i++) {
		if (i == digits && digits)
			*--at = '.';
		*--at = (char)('0' + left % 10);
		left /= 10;
	}
	if (v < 0)
		*--at = '-';
	(void)tw_buf_add(out, at, (size_t)(text + sizeof text - at));
}

/* Adds the slices of all chunks of a thread that overlap the range. */
static enum tw_status count_in_range(struct tw_export *x, const struct tw_thread_info *t,
        uint64_t *io_slices, struct tw_err *err)
{
	const struct tw_chunk_row *rows = NULL;
	uint32_t n = 0;
	enum tw_status st = tw_trace_file_call_chunks(x->file, t->thread_id, &rows, &n, err);

	for (uint32_t i = 0; i < n; i++)
		if (rows[i].info.start_ns < x->q.sel.to_ns &&
		        rows[i].info.end_ns >= x->q.sel.from_ns)
			*io_slices += rows[i].info.slices;
	return st;
}

/* Events outside the range are also counted: few traces have many. */
static enum tw_status estimate_file(struct tw_export *x, uint64_t *ret_bytes, struct tw_err *err)
{
	uint64_t events[TW_NOTE_COUNT] = {0};
	uint64_t slices = 0;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(x->file, &n);
	enum tw_status st = tw_trace_file_note_counts(x->file, events, err);

	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		if (!tw_selection_has(&x->q.sel, &t[i]))
			continue;
		if (x->q.sel.ranged)
			st = count_in_range(x, &t[i], &slices, err);
		else
			slices += t[i].slices;
	}
	*ret_bytes = slices * SLICE_BYTES;
	for (size_t i = 0; i < TW_NOTE_COUNT; i++)
		*ret_bytes += events[i] * EVENT_BYTES;
	return st;
}

enum tw_status tw_export_open_file(struct tw_export *x, int *ret_fd)
{
	uint64_t bytes;
	enum tw_status st = estimate_file(x, &bytes, &x->failure);

	return st == TW_OK ? x->q.open_file(x->q.file_arg, bytes, ret_fd, &x->failure) : st;
}

/* --- opening --- */

static const char *clean(struct tw_export *x, const char *text)
{
	struct tw_str s = tw_str_of(text ? text : "");
	char *out = tw_arena_alloc(x->arena, s.len * 3 + 1, 1);

	if (out)
		(void)tw_utf8_clean(out, s.len * 3 + 1, s);
	return out;
}

static bool copy_facts(struct tw_export *x, const struct tw_export_facts *f)
{
	const char *from[] = {f->title, f->trace_id, f->process, f->app, f->version_name,
	        f->build_id, f->device, f->scenario, f->url};
	struct tw_export_facts *to = &x->facts;
	const char **at[] = {&to->title, &to->trace_id, &to->process, &to->app, &to->version_name,
	        &to->build_id, &to->device, &to->scenario, &to->url};

	for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
		*at[i] = clean(x, from[i]);
		if (!*at[i])
			return false;
	}
	to->started_ms = f->started_ms;
	if (tw_trace_file_is_sanitized(x->file)) {
		if (strcmp(to->title, to->trace_id) == 0)
			to->title = "";
		to->trace_id = to->device = to->url = "";
		to->started_ms = 0;
	}
	return true;
}

static bool copy_query(struct tw_export *x, const struct tw_export_query *q)
{
	size_t n = q->sel.all_threads ? 0 : q->sel.n_tids;
	uint64_t *tids = tw_arena_alloc(x->arena, n + 1, sizeof *tids);

	x->q = *q;
	if (tids && n)
		memcpy(tids, q->sel.tids, n * sizeof *tids);
	x->q.sel.tids = tids;
	x->q.sel.n_tids = n;
	return tids != NULL;
}

static bool make_tables(struct tw_export *x)
{
	size_t n = (size_t)x->n_methods + 1;
	uint32_t slots = 64;

	while (slots < x->n_methods && slots < KNOWN_MAX)
		slots *= 2;
	x->known_mask = slots - 1;
	x->known = tw_arena_zalloc(x->arena, slots, sizeof *x->known);
	x->numbers = tw_arena_zalloc(x->arena, n, sizeof *x->numbers);
	x->used = tw_arena_alloc(x->arena, n, sizeof *x->used);
	x->name = tw_arena_alloc(x->arena, NAME_MAX_BYTES, 1);
	x->state = tw_arena_zalloc(x->arena, 1, x->format->state_bytes + 1);
	return x->numbers && x->used && x->known && x->name && x->state;
}

static bool set_flame_starts(struct tw_export *x)
{
	const struct tw_flame *f = &x->flame;
	int64_t *next = tw_arena_zalloc(x->arena, (size_t)f->n + 1, sizeof *next);

	x->flame_starts = tw_arena_zalloc(x->arena, (size_t)f->n + 1, sizeof *next);
	if (!next || !x->flame_starts)
		return false;
	for (uint32_t i = 1; i < f->n; i++) {
		uint32_t parent = f->nodes[i].parent;

		x->flame_starts[i] = next[i] = next[parent];
		next[parent] += f->nodes[i].value;
	}
	return true;
}

static enum tw_status make_flame(struct tw_export *x, struct tw_err *err)
{
	const struct tw_flame_query q = {.view = x->q.view,
	        .metric = x->q.metric == TW_EXPORT_COUNT ? TW_METRIC_COUNT : TW_METRIC_WALL,
	        .max_nodes = x->q.max_nodes ? x->q.max_nodes : x->format->flame_nodes,
	        .no_longest = true};
	enum tw_status st;

	if (!x->format->flame_nodes)
		return TW_OK;
	st = tw_query_graph(x->file, &x->q.sel, &q, NULL, x->arena, &x->flame, err);
	return st == TW_OK && !set_flame_starts(x) ? tw_oom(err) : st;
}

static enum tw_status start(
        struct tw_export *x, const struct tw_export_facts *facts, struct tw_err *err)
{
	enum tw_status st;

	x->info = tw_trace_file_info(x->file);
	tw_buf_init(&x->out, OUT_MAX_BYTES);
	tw_buf_init(&x->packed, OUT_MAX_BYTES);
	x->j = tw_json_to(&x->out);
	x->arena = tw_arena_new(ARENA_MAX_BYTES);
	x->thread_arena = tw_arena_new(ARENA_MAX_BYTES);
	x->name_arena = tw_arena_new(ARENA_MAX_BYTES);
	if (!x->arena || !x->thread_arena || !x->name_arena)
		return tw_oom(err);
	st = tw_trace_file_inline(x->file, &x->names, err);
	if (st == TW_OK)
		st = tw_trace_file_method_refs(x->file, &x->methods, &x->n_methods, err);
	if (st != TW_OK)
		return st;
	if (!copy_query(x, &x->q) || !copy_facts(x, facts) || !make_tables(x))
		return tw_oom(err);
	if (x->format->gzip) {
		tw_zlib_memory(&x->z);
		if (deflateInit2(&x->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
		            Z_DEFAULT_STRATEGY) != Z_OK)
			return tw_oom(err);
		x->z_open = true;
	}
	return make_flame(x, err);
}

static const struct tw_export_format *format_of(const struct tw_export_kind *kind)
{
	size_t i = 0;

	while (&formats[i]->kind != kind)
		i++;
	return formats[i];
}

enum tw_status tw_export_open(struct tw_trace_file *file, const struct tw_names *names,
        const struct tw_export_query *q, const struct tw_export_facts *facts,
        struct tw_export **ret, struct tw_err *err)
{
	const struct tw_export_format *format = format_of(q->kind);
	struct tw_export *x;
	enum tw_status st = tw_selection_check(file, &q->sel, err);

	if (st != TW_OK)
		return st;
	if (!(format->metrics >> q->metric & 1))
		return tw_fail(
		        err, TW_BAD_REQUEST, "%s does not have this metric", format->kind.name);
	x = tw_mem_zalloc(1, sizeof *x);
	if (!x)
		return tw_oom(err);
	x->format = format;
	x->file = file;
	x->names = names ? *names : (struct tw_names){NULL, NULL};
	x->q = *q;
	st = start(x, facts, err);
	if (st == TW_OK)
		*ret = x;
	else
		tw_export_close(x);
	return st;
}

/* --- reading --- */

/* Compresses the piece with gzip; the last piece ends the stream. */
static enum tw_status pack(struct tw_export *x, struct tw_err *err)
{
	int result = Z_OK;

	tw_buf_clear(&x->packed);
	x->z.next_in = x->out.data;
	x->z.avail_in = (unsigned)x->out.len;
	do {
		if (tw_buf_reserve(&x->packed, TW_EXPORT_PIECE) != TW_OK)
			return tw_oom(err);
		x->z.next_out = x->packed.data + x->packed.len;
		x->z.avail_out = TW_EXPORT_PIECE;
		result = deflate(&x->z, x->ended ? Z_FINISH : Z_NO_FLUSH);
		x->packed.len += TW_EXPORT_PIECE - x->z.avail_out;
	} while (result == Z_OK && (x->z.avail_in > 0 || x->z.avail_out == 0 || x->ended));
	return TW_OK;
}

/* Runs until there is output, or the end. */
static enum tw_status make_piece(struct tw_export *x, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	x->taken = 0;
	tw_buf_clear(&x->packed);
	tw_buf_clear(&x->out);
	while (st == TW_OK && !x->ended && x->out.len == 0 && x->packed.len == 0) {
		st = tw_export_walk(x, err);
		if (st == TW_OK && tw_buf_status(&x->out) != TW_OK)
			st = tw_oom(err);
		if (st == TW_OK && x->format->gzip) {
			st = pack(x, err);
			tw_buf_clear(&x->out);
		}
	}
	return st;
}

enum tw_status tw_export_read(
        struct tw_export *x, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	const struct tw_buf *from = x->format->gzip ? &x->packed : &x->out;
	size_t n;

	if (x->taken == from->len) {
		enum tw_status st = make_piece(x, err);

		if (st != TW_OK)
			return st;
	}
	n = from->len - x->taken;
	if (n > cap)
		n = cap;
	if (n)
		memcpy(out, from->data + x->taken, n);
	x->taken += n;
	*ret_n = n;
	return TW_OK;
}

struct tw_export *tw_export_close(struct tw_export *x)
{
	if (!x)
		return NULL;
	tw_export_walk_done(x);
	if (x->state && x->format->done)
		x->format->done(x);
	if (x->z_open)
		(void)deflateEnd(&x->z);
	tw_buf_done(&x->out);
	tw_buf_done(&x->packed);
	tw_arena_free(x->arena);
	tw_arena_free(x->thread_arena);
	tw_arena_free(x->name_arena);
	tw_mem_free(x);
	return NULL;
}
