/*
 * bench_view.c - what the server computes for a trace that is there: flame graphs and Perfetto.
 *
 * Each figure stands beside a plain scan: decoding every chunk of the trace once.
 *
 *   bench_view UPLOAD
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "export_cursor.h"
#include "export_perfetto.h"
#include "local_trace.h"
#include "query.h"

enum { TIMES = 5, PIECE_BYTES = 256 << 10 };

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(enum tw_status st, const struct tw_err *err)
{
	if (st == TW_OK)
		return;
	(void)fprintf(stderr, "bench_view: %s\n", err->msg);
	exit(1);
}

static double scan(struct tw_trace_file *f)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	struct tw_chunk c;
	struct tw_err err;
	double start = seconds();

	tw_chunk_init(&c);
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_chunk_row *rows;
		uint32_t n_rows;

		check(tw_trace_file_chunks(f, t[i].thread_id, &rows, &n_rows, &err), &err);
		for (uint32_t k = 0; k < n_rows && rows[k].info.level == 0; k++)
			check(tw_trace_file_chunk(f, &rows[k], &c, &err), &err);
	}
	tw_chunk_done(&c);
	return seconds() - start;
}

static double flame(
        struct tw_trace_file *f, const struct tw_selection *sel, enum tw_flame_view view)
{
	const struct tw_flame_query q = {.view = view, .max_nodes = 20000};
	struct tw_arena *a = tw_arena_new((size_t)2 << 30);
	struct tw_flame out;
	struct tw_err err;
	double start = seconds();

	check(tw_query_graph(f, sel, &q, NULL, a, &out, &err), &err);
	start = seconds() - start;
	tw_arena_free(a);
	return start;
}

struct exported {
	double first_s, all_s;
	uint64_t bytes, zstd_bytes;
};

static void export(struct tw_trace_file *f, bool compress, struct exported *ret)
{
	const struct tw_perfetto_source source = {.file = f,
	        .sel = {.all_threads = true},
	        .facts = {.trace_id = "bench"},
	        .system_fd = -1};
	const struct tw_perfetto_options plain = {0};
	uint8_t *piece = tw_mem_alloc(PIECE_BYTES, 1);
	uint8_t *packed = tw_mem_alloc(PIECE_BYTES, 2);
	ZSTD_CCtx *z = ZSTD_createCCtx();
	struct tw_perfetto *x = NULL;
	struct tw_err err;
	size_t n = 1;
	double start = seconds();

	*ret = (struct exported){0};
	(void)ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, 3);
	check(tw_perfetto_open(&source, 1, &plain, &x, &err), &err);
	while (n > 0) {
		check(tw_perfetto_read(x, piece, PIECE_BYTES, &n, &err), &err);
		if (ret->bytes == 0)
			ret->first_s = seconds() - start;
		ret->bytes += n;
		if (compress) {
			ZSTD_inBuffer in = {piece, n, 0};
			ZSTD_outBuffer out = {packed, 2 * PIECE_BYTES, 0};

			(void)ZSTD_compressStream2(z, &out, &in, n ? ZSTD_e_continue : ZSTD_e_end);
			ret->zstd_bytes += out.pos;
		}
	}
	ret->all_s = seconds() - start;
	tw_perfetto_close(x);
	(void)ZSTD_freeCCtx(z);
	tw_mem_free(piece);
	tw_mem_free(packed);
}

/* --- the form that btrace 2.0's script wrote: kernel marks in text, 4,096 to a bundle, by time ---
 */

enum { BUNDLE_EVENTS = 4096, MAX_LANES = 64 };

struct printed {
	struct tw_buf bundle, file;
	unsigned events;
	uint64_t bytes, zstd_bytes;
	ZSTD_CCtx *zstd;
};

static void put_message(struct tw_buf *b, uint8_t tag, const struct tw_buf *m)
{
	(void)tw_buf_add_u8(b, tag);
	(void)tw_buf_add_varint(b, m->len);
	(void)tw_buf_add(b, m->data, m->len);
}

static void end_bundle(struct printed *p, bool last)
{
	struct tw_buf packet;
	ZSTD_inBuffer in;
	ZSTD_outBuffer out;

	tw_buf_init(&packet, 64 << 20);
	tw_buf_clear(&p->file);
	put_message(&packet, 0x0A, &p->bundle);
	put_message(&p->file, 0x0A, &packet);
	(void)tw_buf_reserve(&packet, p->file.len * 2 + 4096);
	p->bytes += p->file.len;
	in = (ZSTD_inBuffer){p->file.data, p->file.len, 0};
	out = (ZSTD_outBuffer){packet.data, packet.cap, 0};
	(void)ZSTD_compressStream2(p->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
	p->zstd_bytes += out.pos;
	tw_buf_clear(&p->bundle);
	(void)tw_buf_add(&p->bundle, "\x08", 2); /* cpu 0 */
	p->events = 0;
	tw_buf_done(&packet);
}

static void put_print(struct printed *p, uint64_t ts, uint64_t tid, const char *text)
{
	uint8_t event[512];
	size_t len = strlen(text);
	uint8_t head[8];
	uint8_t *at = event;
	size_t n_head;

	n_head = (size_t)(tw_put_varint(head, len) - head);
	*at++ = 0x08;
	at = tw_put_varint(at, ts);
	*at++ = 0x10;
	at = tw_put_varint(at, tid);
	*at++ = 0x1A;
	at = tw_put_varint(at, 1 + n_head + len);
	*at++ = 0x12;
	at = tw_put_varint(at, len);
	memcpy(at, text, len);
	at += len;
	(void)tw_buf_add_u8(&p->bundle, 0x12);
	(void)tw_buf_add_varint(&p->bundle, (uint64_t)(at - event));
	(void)tw_buf_add(&p->bundle, event, (size_t)(at - event));
	if (++p->events == BUNDLE_EVENTS)
		end_bundle(p, false);
}

static void print_edge(struct printed *p, const struct tw_thread_info *t, const struct tw_edge *e,
        const struct tw_method_info *m, int64_t base)
{
	char text[400];
	char name[320];

	if (e->begin) {
		(void)tw_names_display(&(struct tw_names){NULL, NULL},
		        &(struct tw_named){m->has_id, m->id, m->name}, name, sizeof name);
		/* as long as a method's name is, 45 characters */
		(void)snprintf(text, sizeof text, "B|%u|%-45s\n", t->pid, name);
	} else {
		(void)snprintf(text, sizeof text, "E|%u|\n", t->pid);
	}
	put_print(p, (uint64_t)(e->ts_ns + base), t->tid, text);
}

static void print_form(struct tw_trace_file *f, struct printed *p)
{
	static struct tw_cursor c[MAX_LANES];
	const struct tw_method_info *methods;
	uint32_t n;
	uint32_t n_methods;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	int64_t base = tw_trace_file_info(f)->mono_base_ns;
	struct tw_err err;
	struct tw_edge e;

	n = n < MAX_LANES ? n : MAX_LANES;
	*p = (struct printed){.zstd = ZSTD_createCCtx()};
	(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, 3);
	tw_buf_init(&p->bundle, 64 << 20);
	tw_buf_init(&p->file, 64 << 20);
	(void)tw_buf_add(&p->bundle, "\x08", 2);
	check(tw_trace_file_methods(f, &methods, &n_methods, &err), &err);
	for (uint32_t i = 0; i < n; i++)
		check(tw_cursor_open(&c[i], f, t[i].thread_id, 1024, &err), &err);
	for (;;) {
		uint32_t first = 0;

		for (uint32_t i = 1; i < n; i++)
			if (c[i].next_ns < c[first].next_ns)
				first = i;
		if (c[first].done)
			break;
		check(tw_cursor_next(&c[first], &e, &err), &err);
		print_edge(p, &t[first], &e, &methods[e.begin ? e.method : 0], base);
	}
	end_bundle(p, true);
	for (uint32_t i = 0; i < n; i++)
		tw_cursor_close(&c[i]);
	(void)ZSTD_freeCCtx(p->zstd);
	tw_buf_done(&p->bundle);
	tw_buf_done(&p->file);
}

static double best(double a, double b)
{
	return a == 0 || b < a ? b : a;
}

int main(int argc, char **argv)
{
	struct tw_trace_file *f = NULL;
	struct tw_selection all = {.all_threads = true};
	struct tw_selection range = {.all_threads = true, .ranged = true};
	struct exported x = {0};
	struct exported packed = {0};
	struct printed printed;
	double s = 0;
	double top = 0;
	double bottom = 0;
	double part = 0;
	double perfetto = 0;
	struct tw_err err;
	uint64_t slices;

	if (argc != 2)
		return 2;
	check(tw_local_open(argv[1], NULL, &f, &err), &err);
	slices = tw_trace_file_info(f)->slices;
	range.from_ns = tw_trace_file_info(f)->start_ns;
	range.to_ns = tw_trace_file_info(f)->end_ns;
	range.from_ns += (range.to_ns - range.from_ns) / 4;
	for (int i = 0; i < TIMES; i++) {
		s = best(s, scan(f));
		top = best(top, flame(f, &all, TW_TOP_DOWN));
		bottom = best(bottom, flame(f, &all, TW_BOTTOM_UP));
		part = best(part, flame(f, &range, TW_TOP_DOWN));
		export(f, false, &x);
		perfetto = best(perfetto, x.all_s);
	}
	export(f, true, &packed);
	(void)printf("slices %llu, plain scan of all chunks %.1f ms (%.1f M slices/s)\n",
	        (unsigned long long)slices, s * 1e3, (double)slices / s / 1e6);
	(void)printf("flame, whole trace, all threads, top-down  %.1f ms = %.2f x the scan\n",
	        top * 1e3, top / s);
	(void)printf("flame, whole trace, all threads, bottom-up %.1f ms = %.2f x\n", bottom * 1e3,
	        bottom / s);
	(void)printf("flame, three quarters of the time          %.1f ms = %.2f x\n", part * 1e3,
	        part / s);
	(void)printf(
	        "perfetto %.2f M slices/s = %.2f x the scan's time, first bytes after %.1f ms\n",
	        (double)slices / perfetto / 1e6, perfetto / s, x.first_s * 1e3);
	(void)printf("perfetto %.2f B per slice, zstd -3 %.2f B\n",
	        (double)x.bytes / (double)slices, (double)packed.zstd_bytes / (double)slices);
	print_form(f, &printed);
	(void)printf("the same as kernel marks in text: %.2f B per slice, zstd -3 %.2f B\n",
	        (double)printed.bytes / (double)slices,
	        (double)printed.zstd_bytes / (double)slices);
	tw_trace_file_close(f);
	return 0;
}
