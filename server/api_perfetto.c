/*
 * api_perfetto.c - a trace as a Perfetto file.
 */
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "export_perfetto.h"
#include "view.h"

struct download { /* what must live until the last byte is out */
	struct tw_app *app;
	struct tw_trace_file *file;
	struct tw_symbols_ref *map, *retrace;
	struct tw_perfetto *perfetto;
};

static enum tw_status read_some(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct download *d = arg;

	return tw_perfetto_read(d->perfetto, out, cap, ret_n, err);
}

static void download_free(void *arg)
{
	struct download *d = arg;

	tw_perfetto_close(d->perfetto);
	tw_trace_file_close(d->file);
	if (d->app) {
		tw_symbols_release(d->app->symbols, d->map);
		tw_symbols_release(d->app->symbols, d->retrace);
	}
	tw_mem_free(d);
}

static const struct tw_stream_ops stream = {read_some, download_free};

/* "app-scenario-id.perfetto-trace" of plain characters only. */
static void file_name(const struct tw_trace_row *row, char *out, size_t cap)
{
	size_t at;

	(void)snprintf(out, cap, "attachment; filename=\"");
	at = strlen(out);
	(void)snprintf(
	        out + at, cap - at, "%.80s-%.40s-%s", row->meta.app, row->meta.scenario, row->id);
	for (; out[at]; at++)
		if (!((out[at] >= 'a' && out[at] <= 'z') || (out[at] >= 'A' && out[at] <= 'Z') ||
		            (out[at] >= '0' && out[at] <= '9') || strchr(".-_", out[at])))
			out[at] = '_';
	(void)snprintf(out + at, cap - at, ".perfetto-trace\"");
}

static const char *permalink(const struct tw_view *v)
{
	const char *base = tw_req_app(v->req)->config->public_url;

	if (!base[0])
		return "";
	return tw_arena_printf(tw_req_arena(v->req), "%s/traces/%s", base, v->row.id);
}

static enum tw_status open_download(struct tw_view *v, struct download *d, struct tw_err *err)
{
	const struct tw_trace_meta *m = &v->row.meta;
	struct tw_perfetto_facts facts = {v->row.id, m->process, m->app, m->version_name,
	        m->build_id, m->device, m->scenario, permalink(v)};
	struct tw_selection sel;
	enum tw_status st = tw_view_selection(v, &sel, err);

	if (st == TW_OK)
		st = tw_perfetto_open(v->file, &v->names, &sel, &facts, &d->perfetto, err);
	if (st != TW_OK)
		return st;
	d->app = tw_req_app(v->req);
	d->file = v->file; /* moves into the download */
	d->map = v->map_ref;
	d->retrace = v->retrace_ref;
	v->file = NULL;
	v->map_ref = v->retrace_ref = NULL;
	return TW_OK;
}

static enum tw_status perfetto(struct tw_req *r, struct tw_err *err)
{
	struct download *d = NULL;
	char disposition[320];
	struct tw_view v;
	enum tw_status st = tw_view_open(r, &v, err);

	if (st != TW_OK)
		return st;
	d = tw_mem_zalloc(1, sizeof *d);
	st = d ? open_download(&v, d, err) : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	tw_view_close(&v);
	if (st != TW_OK) {
		tw_mem_free(d);
		return st;
	}
	file_name(&v.row, disposition, sizeof disposition);
	tw_req_set_header(r, "Content-Disposition", disposition);
	return tw_req_reply_stream(r, 200, "application/octet-stream", true, &stream, d, err);
}

const struct tw_route tw_routes_perfetto[] = {
        {.method = "GET",
                .path = "/api/v1/traces/{id}/perfetto",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = perfetto,
                .summary = "the trace as a .perfetto-trace file"},
        {0},
};
