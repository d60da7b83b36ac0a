/* print_form.c - see print_form.h. */
#include "print_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "decoder/symbols/names.h"
#include "server/export/perfetto/export_cursor.h"

static void check(enum tw_status st, const struct tw_err *err)
{
	if (st == TW_OK)
		return;
	(void)fprintf(stderr, "print_form: %s\n", err->msg);
	exit(1);
}

enum { BUNDLE_EVENTS = 4096, MAX_LANES = 64 };

struct printer {
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

static void end_bundle(struct printer *p, bool last)
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

static void put_print(struct printer *p, uint64_t ts, uint64_t tid, const char *text)
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

static void print_edge(struct printer *p, const struct tw_thread_info *t, const struct tw_edge *e,
        const struct tw_method_info *m, int64_t base)
{
	char text[400];
	char name[320];

	if (e->begin) {
		const struct tw_named what = tw_method_info_named(m);

		(void)tw_names_display(&(struct tw_names){NULL, NULL}, &what, name, sizeof name);
		/* as long as a method's name is, 45 characters */
		(void)snprintf(text, sizeof text, "B|%u|%-45s\n", t->pid, name);
	} else {
		(void)snprintf(text, sizeof text, "E|%u|\n", t->pid);
	}
	put_print(p, (uint64_t)(e->ts_ns + base), t->tid, text);
}

void print_form(struct tw_trace_file *f, struct printed *ret)
{
	static struct tw_cursor c[MAX_LANES];
	const struct tw_method_info *methods;
	uint32_t n;
	uint32_t n_methods;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	int64_t base = tw_trace_file_info(f)->mono_base_ns;
	struct printer print = {.zstd = ZSTD_createCCtx()};
	struct printer *p = &print;
	struct tw_err err;
	struct tw_edge e;

	n = n < MAX_LANES ? n : MAX_LANES;
	(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, 3);
	tw_buf_init(&p->bundle, 64 << 20);
	tw_buf_init(&p->file, 64 << 20);
	(void)tw_buf_add(&p->bundle, "\x08", 2);
	check(tw_trace_file_methods(f, &methods, &n_methods, &err), &err);
	for (uint32_t i = 0; i < n; i++)
		check(tw_cursor_open_range(
		              &c[i], f, t[i].thread_id, 1024, INT64_MIN, INT64_MAX, &err),
		        &err);
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
	*ret = (struct printed){p->bytes, p->zstd_bytes};
}
