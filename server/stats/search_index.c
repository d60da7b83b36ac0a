/*
 * search_index.c - formats.
 * one:     the trace's id, its threads, then for each entry the method (8 bytes), and as varints
 *          the thread and the longest call.
 * head:    number of traces, their ids, the threads.
 * slot:    for each method its number (8 bytes), the length of the rest (varint) and, repeated, as
 *          varints the trace, the thread and the longest call.
 * threads: their number; for each whether it is the main one, and its name with its length.
 */
#include "server/stats/search_index.h"

#include <string.h>

#include "decoder/base/order.h"

static enum tw_status damaged(struct tw_err *err)
{
	return tw_fail(err, TW_CORRUPT,
	        "the search index is damaged; rebuild it with `tracewell rollup --rebuild`");
}

/* --- writing --- */

TW_ORDER_BY(by_method, struct tw_index_entry, TW_RISING(method), TW_RISING(thread))

static void write_threads(const struct tw_index_thread *threads, uint32_t n, struct tw_buf *out)
{
	(void)tw_buf_add_varint(out, n);
	for (uint32_t i = 0; i < n; i++) {
		(void)tw_buf_add_u8(out, threads[i].is_main);
		(void)tw_buf_add_varint(out, threads[i].name.len);
		(void)tw_buf_add_str(out, threads[i].name);
	}
}

static uint64_t not_below_0(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

void tw_index_write(const struct tw_index_entries *p, struct tw_buf *out)
{
	TW_SORT(p->posts, p->n, by_method);
	(void)tw_buf_add(out, p->trace_id, TW_INDEX_ID);
	write_threads(p->threads, p->n_threads, out);
	for (size_t i = 0; i < p->n; i++) {
		int64_t max_ns = p->posts[i].max_ns;

		while (i + 1 < p->n && by_method(&p->posts[i], &p->posts[i + 1]) == 0) {
			i++; /* threads of one name */
			max_ns = max_ns > p->posts[i].max_ns ? max_ns : p->posts[i].max_ns;
		}
		(void)tw_buf_add_u64le(out, p->posts[i].method);
		(void)tw_buf_add_varint(out, p->posts[i].thread);
		(void)tw_buf_add_varint(out, not_below_0(max_ns));
	}
}

/* --- reading --- */

static bool read_thread(const uint8_t **p, const uint8_t *end, struct tw_index_thread *ret)
{
	uint64_t len;

	if (*p == end)
		return false;
	ret->is_main = *(*p)++ != 0;
	if (!tw_get_varint(p, end, &len) || len > (uint64_t)(end - *p))
		return false;
	ret->name = (struct tw_str){(const char *)*p, len};
	*p += len;
	return true;
}

static enum tw_status read_threads(const uint8_t **p, const uint8_t *end, struct tw_arena *a,
        struct tw_index_head *ret, struct tw_err *err)
{
	uint64_t n;

	if (!tw_get_varint(p, end, &n) || n > (uint64_t)(end - *p) / 2)
		return damaged(err);
	ret->threads = tw_arena_alloc(a, n + 1, sizeof *ret->threads);
	if (!ret->threads)
		return tw_oom(err);
	ret->n_threads = (uint32_t)n;
	for (uint64_t i = 0; i < n; i++)
		if (!read_thread(p, end, &ret->threads[i]))
			return damaged(err);
	return TW_OK;
}

enum tw_status tw_index_read_head(struct tw_str row, bool one, struct tw_arena *a,
        struct tw_index_head *ret, struct tw_str *ret_rest, struct tw_err *err)
{
	const uint8_t *p = (const uint8_t *)row.ptr;
	const uint8_t *end = p + row.len;
	uint64_t n = 1;
	enum tw_status st;

	if ((!one && !tw_get_varint(&p, end, &n)) || n > (uint64_t)(end - p) / TW_INDEX_ID)
		return damaged(err);
	ret->ids = (const char *)p;
	ret->n = (uint32_t)n;
	p += n * TW_INDEX_ID;
	st = read_threads(&p, end, a, ret, err);
	*ret_rest = (struct tw_str){(const char *)p, (size_t)(end - p)};
	return st;
}

static bool read_post(const uint8_t **p, const uint8_t *end, struct tw_index_entry *ret)
{
	uint64_t thread, max;

	if (end - *p < 8)
		return false;
	ret->method = tw_u64le(*p);
	*p += 8;
	if (!tw_get_varint(p, end, &thread) || !tw_get_varint(p, end, &max) ||
	        thread > UINT32_MAX || max > INT64_MAX)
		return false;
	ret->thread = (uint32_t)thread;
	ret->max_ns = (int64_t)max;
	return true;
}

bool tw_index_next(
        struct tw_str *rest, const struct tw_index_head *head, struct tw_index_entry *ret)
{
	const uint8_t *p = (const uint8_t *)rest->ptr;
	const uint8_t *end = p + rest->len;

	if (rest->len == 0)
		return false;
	if (!read_post(&p, end, ret) || ret->thread >= head->n_threads) {
		*rest = (struct tw_str){NULL, 0};
		return false;
	}
	*rest = (struct tw_str){(const char *)p, (size_t)(end - p)};
	return true;
}

/* --- packing --- */

struct entry { /* an entry to be packed */
	struct tw_index_entry post;
	uint32_t trace;
};

struct thread_ref { /* a thread of one trace, and its index in the pack */
	struct tw_index_thread thread;
	uint32_t at;
};

struct packing {
	struct tw_arena *arena;
	struct tw_index_head *heads;
	struct tw_str *rests;
	size_t n;
	uint32_t *thread_of; /* the pack's index, by the first index of a trace plus the thread's
	                      * index there */
	struct tw_index_thread *threads;
	uint32_t n_threads;
	struct entry *entries;
	size_t n_entries;
};

TW_ORDER_BY(by_name, struct thread_ref, TW_RISING(thread.name), TW_RISING(thread.is_main))

/* Merges equal threads of all traces. */
static bool join_threads(struct packing *k)
{
	struct thread_ref *refs;
	uint32_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		n += k->heads[i].n_threads;
	refs = tw_arena_alloc(k->arena, (size_t)n + 1, sizeof *refs);
	k->thread_of = tw_arena_alloc(k->arena, (size_t)n + 1, sizeof *k->thread_of);
	k->threads = tw_arena_alloc(k->arena, (size_t)n + 1, sizeof *k->threads);
	if (!refs || !k->thread_of || !k->threads)
		return false;
	n = 0;
	for (size_t i = 0; i < k->n; i++)
		for (uint32_t t = 0; t < k->heads[i].n_threads; t++, n++)
			refs[n] = (struct thread_ref){k->heads[i].threads[t], n};
	TW_SORT(refs, n, by_name);
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || by_name(&refs[i - 1], &refs[i]) != 0)
			k->threads[k->n_threads++] = refs[i].thread;
		k->thread_of[refs[i].at] = k->n_threads - 1;
	}
	return true;
}

static bool read_entries(struct packing *k, size_t trace, uint32_t first_thread)
{
	const struct tw_str *rest = k->rests ? &k->rests[trace] : NULL;
	const uint8_t *p = rest ? (const uint8_t *)rest->ptr : NULL;
	const uint8_t *end = rest ? p + rest->len : NULL;

	if (!p || !k->entries || !k->heads)
		return rest && rest->len == 0;
	while (p < end) {
		struct entry *e = &k->entries[k->n_entries++];

		if (!read_post(&p, end, &e->post) || e->post.thread >= k->heads[trace].n_threads)
			return false;
		e->post.thread = k->thread_of[first_thread + e->post.thread];
		e->trace = (uint32_t)trace;
	}
	return true;
}

TW_ORDER_BY(by_slot, struct entry,
        TW_ORDER(tw_index_slot(a->post.method), tw_index_slot(b->post.method)),
        TW_RISING(post.method), TW_RISING(trace))

/* Writes the entries of one method from e on; returns their number. */
static size_t write_method(
        const struct entry *e, const struct entry *end, struct tw_buf *list, struct tw_buf *out)
{
	size_t n = 0;

	tw_buf_clear(list);
	for (; e + n < end && e[n].post.method == e->post.method; n++) {
		(void)tw_buf_add_varint(list, e[n].trace);
		(void)tw_buf_add_varint(list, e[n].post.thread);
		(void)tw_buf_add_varint(list, (uint64_t)e[n].post.max_ns);
	}
	(void)tw_buf_add_u64le(out, e->post.method);
	(void)tw_buf_add_varint(out, list->len);
	(void)tw_buf_add(out, list->data, list->len);
	return n;
}

static bool keep(struct tw_buf *out, struct tw_arena *a, struct tw_str *ret)
{
	char *copy = tw_arena_alloc(a, out->len ? out->len : 1, 1);

	if (!copy || tw_buf_status(out) != TW_OK)
		return false;
	if (out->len)
		memcpy(copy, out->data, out->len);
	*ret = (struct tw_str){copy, out->len};
	tw_buf_clear(out);
	return true;
}

static bool write_slots(struct packing *k, struct tw_buf *list, struct tw_buf *out,
        struct tw_str ret[TW_INDEX_ROWS])
{
	const struct entry *e = k->entries;
	const struct entry *end = e + k->n_entries;
	bool fits = true;

	for (unsigned slot = 0; fits && slot < TW_INDEX_SLOTS; slot++) {
		while (e < end && tw_index_slot(e->post.method) == slot)
			e += write_method(e, end, list, out);
		fits = tw_buf_status(list) == TW_OK && keep(out, k->arena, &ret[slot]);
	}
	return fits;
}

static bool write_rows(struct packing *k, struct tw_str ret[TW_INDEX_ROWS])
{
	struct tw_buf list, out;
	bool fits;

	tw_buf_init(&list, 64 << 20);
	tw_buf_init(&out, 256 << 20);
	fits = write_slots(k, &list, &out, ret);
	(void)tw_buf_add_varint(&out, k->n);
	for (size_t i = 0; i < k->n; i++)
		(void)tw_buf_add(&out, k->heads[i].ids, TW_INDEX_ID);
	write_threads(k->threads, k->n_threads, &out);
	fits = fits && keep(&out, k->arena, &ret[TW_INDEX_HEAD]);
	tw_buf_done(&list);
	tw_buf_done(&out);
	return fits;
}

static enum tw_status read_ones(struct packing *k, const struct tw_str *ones, struct tw_err *err)
{
	size_t bytes = 0;
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < k->n; i++) {
		st = tw_index_read_head(ones[i], true, k->arena, &k->heads[i], &k->rests[i], err);
		bytes += k->rests[i].len;
	}
	if (st != TW_OK)
		return st;
	/* an entry has at least ten bytes */
	k->entries = tw_arena_alloc(k->arena, bytes / 10 + k->n + 1, sizeof *k->entries);
	return k->entries && join_threads(k) ? TW_OK : tw_oom(err);
}

enum tw_status tw_index_pack(const struct tw_str *ones, size_t n, struct tw_arena *a,
        struct tw_str ret[TW_INDEX_ROWS], struct tw_err *err)
{
	struct packing k = {.arena = a,
	        .heads = tw_arena_zalloc(a, n + 1, sizeof *k.heads),
	        .rests = tw_arena_zalloc(a, n + 1, sizeof *k.rests),
	        .n = n};
	uint32_t first_thread = 0;
	enum tw_status st = k.heads && k.rests ? read_ones(&k, ones, err) : tw_oom(err);

	if (st != TW_OK)
		return st;
	if (!k.heads || !k.rests || !k.entries)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++) {
		if (!read_entries(&k, i, first_thread))
			return damaged(err);
		first_thread += k.heads[i].n_threads;
	}
	TW_SORT(k.entries, k.n_entries, by_slot);
	return write_rows(&k, ret) ? TW_OK : tw_oom(err);
}

/* --- searching --- */

/* The index of the method among the searched ones; n: it is not one. */
static size_t which_of(const struct tw_index_scan *s, uint64_t method)
{
	size_t at;

	TW_BISECT(at, s->n, s->methods[at] < method);
	return at < s->n && s->methods[at] == method ? at : s->n;
}

static bool scan_list(const struct tw_index_scan *s, size_t which, const uint8_t *p,
        const uint8_t *end, const struct tw_index_head *head)
{
	while (p < end) {
		uint64_t trace, thread, max;

		if (!tw_get_varint(&p, end, &trace) || !tw_get_varint(&p, end, &thread) ||
		        !tw_get_varint(&p, end, &max) || trace >= head->n ||
		        thread >= head->n_threads || max > INT64_MAX)
			return false;
		if ((int64_t)max > s->over_ns)
			s->each(s->arg, &(struct tw_index_hit){which, (uint32_t)trace,
			                        (uint32_t)thread, (int64_t)max});
	}
	return true;
}

static bool scan_slot(
        const struct tw_index_scan *s, struct tw_str row, const struct tw_index_head *head)
{
	const uint8_t *p = (const uint8_t *)row.ptr;
	const uint8_t *end = p + row.len;

	while (p < end) {
		uint64_t len, method;
		size_t which;

		if (end - p < 8)
			return false;
		method = tw_u64le(p);
		p += 8;
		if (!tw_get_varint(&p, end, &len) || len > (uint64_t)(end - p))
			return false;
		which = which_of(s, method);
		if (which < s->n && !scan_list(s, which, p, p + len, head))
			return false;
		p += len;
	}
	return true;
}

static bool scan_one(
        const struct tw_index_scan *s, struct tw_str row, const struct tw_index_head *head)
{
	const uint8_t *p = (const uint8_t *)row.ptr;
	const uint8_t *end = p + row.len;
	struct tw_index_entry post;

	while (p < end) {
		size_t which;

		if (!read_post(&p, end, &post) || post.thread >= head->n_threads)
			return false;
		which = which_of(s, post.method);
		if (which < s->n && post.max_ns > s->over_ns)
			s->each(s->arg, &(struct tw_index_hit){which, 0, post.thread, post.max_ns});
	}
	return true;
}

enum tw_status tw_index_scan(const struct tw_index_scan *s, struct tw_str row, bool one,
        const struct tw_index_head *head, struct tw_err *err)
{
	bool intact = one ? scan_one(s, row, head) : scan_slot(s, row, head);

	return intact ? TW_OK : damaged(err);
}
