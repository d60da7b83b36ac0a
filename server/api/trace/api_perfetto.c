/*
 * api_perfetto.c - one or several traces as a Perfetto file.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/base/clock.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/export/perfetto/export_perfetto.h"
#include "server/storage/blob.h"

struct opened { /* lives until the last byte is sent */
	struct tw_trace_file *file;
	struct tw_symbols_ref *map, *retrace;
	struct tw_names names;
	int system_fd;
};

struct download {
	struct tw_api *api;
	struct opened opened[TW_PERFETTO_MAX_SOURCES];
	struct tw_perfetto_source sources[TW_PERFETTO_MAX_SOURCES];
	size_t n;
	struct tw_perfetto_options options;
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
	for (size_t i = 0; i < d->n; i++) {
		struct opened *o = &d->opened[i];

		tw_trace_file_close(o->file);
		tw_symbols_release(d->api->symbols, o->map);
		tw_symbols_release(d->api->symbols, o->retrace);
		if (o->system_fd >= 0)
			(void)close(o->system_fd);
	}
	tw_mem_free(d);
}

static const struct tw_stream_ops stream = {read_some, download_free};

/* --- the request --- */

static const char *const forms[] = {"perfetto", "tar", NULL};
static const char *const compressions[] = {"none", "gzip", "zstd", "packets", NULL};

static const struct tw_param perfetto_params[] = {
        {.name = "system",
                .kind = TW_PARAM_IS_FLAG,
                .optional = true,
                .dflt = true,
                .about = "`false` omits the system trace; `true` fails with 404 if none was sent, "
                         "and with 400 if `sanitize` is set."},
        TW_PARAM_ENUM("format", forms,
                "`tar`: the system trace byte for byte, ours, and a manifest; for Perfetto 58 and "
                "later."),
        TW_PARAM_ENUM("compress", compressions,
                "`gzip` and `zstd` (Perfetto 58 and later) compress the file; `packets` stores "
                "tracewell's own packets compressed."),
        {0},
};
static const struct tw_param merge_params[] = {
        TW_PARAM_REQUIRED("ids", 0, "Up to 16 trace ids, separated by commas."),
        TW_PARAM_TEXT("align", 0,
                "`clock`: by shared clocks, otherwise at the start; `start`; `slice:NAME`: the "
                "first call of that name in each. Absent: by clock within a device and session, "
                "otherwise at the start."),
        {0},
};

static enum tw_status read_align(
        const struct tw_req *r, struct tw_perfetto_options *o, struct tw_err *err)
{
	static const char *const names[] = {"", "clock", "start", NULL};
	const char *text = tw_req_text_or_empty(r, "align");
	unsigned word = 0;
	enum tw_status st = TW_OK;

	if (strncmp(text, "slice:", 6) == 0 && text[6]) {
		o->align = TW_PERFETTO_BY_SLICE;
		o->slice = text + 6;
		return TW_OK;
	}
	for (unsigned i = 0; names[i]; i++)
		if (strcmp(names[i], text) == 0)
			word = i;
	if (!word && *text)
		st = tw_fail(err, TW_BAD_REQUEST,
		        "align must be clock, start or slice:NAME, not %.60s", text);
	o->align = (enum tw_perfetto_align)word;
	return st;
}

/* --- opening --- */

static const char *permalink(const struct tw_view *v)
{
	const char *base = tw_api_of(v->req)->config->public_url;

	if (!base[0])
		return "";
	return tw_arena_printf(tw_req_arena(v->req), "%s/traces/%s", base, v->row.id);
}

/* The device's system trace as it was uploaded; -1: none, or not requested. */
static enum tw_status open_system(const struct tw_view *v, int *ret_fd, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(v->req);
	struct tw_part *parts = NULL;
	size_t n = 0;
	enum tw_status st;

	*ret_fd = -1;
	if (!tw_req_flag(v->req, "system"))
		return TW_OK;
	if (tw_req_flag(v->req, "sanitize"))
		return !tw_req_text(v->req, "system")
		               ? TW_OK
		               : tw_fail(err, TW_BAD_REQUEST,
		                         "sanitize=1 omits the system trace: use it without "
		                         "system=1");
	st = tw_catalogue_trace_parts(api->catalogue, v->row.project_id, v->row.id,
	        tw_req_arena(v->req), &parts, &n, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (strcmp(parts[i].part, "system") == 0)
			return tw_blob_open_by(api->blobs, parts[i].sha256,
			        tw_monotonic_ms() + (int64_t)tw_req_ms_left(v->req), ret_fd, err);
	if (st == TW_OK && tw_req_text(v->req, "system"))
		return tw_fail(err, TW_NOT_FOUND, "no system trace was sent with this one");
	return st;
}

/* Moves the view's file and names to the download. */
static void take_view(struct tw_view *v, struct opened *o)
{
	o->file = v->file;
	o->map = v->map_ref;
	o->retrace = v->retrace_ref;
	o->names = v->names;
	v->file = NULL;
	v->map_ref = v->retrace_ref = NULL;
}

static enum tw_status add_view(
        struct download *d, struct tw_view *v, bool only_one, struct tw_err *err)
{
	struct opened *o = &d->opened[d->n];
	struct tw_perfetto_source *s = &d->sources[d->n];
	const struct tw_trace_meta *m = &v->row.meta;
	enum tw_status st = tw_view_selection(v, !only_one, &s->sel, err);

	if (st == TW_OK)
		st = open_system(v, &o->system_fd, err);
	if (st != TW_OK)
		return st;
	take_view(v, o);
	if (tw_req_flag(v->req, "sanitize"))
		tw_trace_file_sanitize(o->file);
	s->file = o->file;
	s->names = &o->names;
	s->system_fd = o->system_fd;
	s->system_as_sent = true;
	s->facts = (struct tw_perfetto_facts){.trace_id = v->row.id,
	        .process = m->process,
	        .app = m->app,
	        .version_name = m->version_name,
	        .build_id = m->build_id,
	        .device = m->device,
	        .scenario = m->scenario,
	        .url = permalink(v),
	        .session_id = m->session_id};
	d->n++;
	return TW_OK;
}

/* "app-scenario-id.perfetto-trace" of plain characters only. */
static void file_name(const char *name, const char *suffix, char *out, size_t cap)
{
	size_t at;

	(void)snprintf(out, cap, "attachment; filename=\"");
	at = strlen(out);
	(void)snprintf(out + at, cap - at, "%.200s", name);
	for (; out[at]; at++)
		if (!((out[at] >= 'a' && out[at] <= 'z') || (out[at] >= 'A' && out[at] <= 'Z') ||
		            (out[at] >= '0' && out[at] <= '9') || strchr(".-_", out[at])))
			out[at] = '_';
	(void)snprintf(out + at, cap - at, "%s\"", suffix);
}

static enum tw_status reply(
        struct tw_req *r, struct download *d, const char *name, struct tw_err *err)
{
	char disposition[320];
	bool packed = d->options.compression != TW_PERFETTO_AS_IS;
	enum tw_status st = tw_perfetto_open(d->sources, d->n, &d->options, &d->perfetto, err);

	if (st != TW_OK) {
		download_free(d);
		return st;
	}
	file_name(name, tw_perfetto_suffix(&d->options), disposition, sizeof disposition);
	tw_req_set_header(r, "Content-Disposition", disposition);
	return tw_req_reply_stream(r, "application/octet-stream", !packed, &stream, d, err);
}

/* Returns NULL on failure, with *ret_st and err. */
static struct download *new_download(struct tw_req *r, enum tw_status *ret_st, struct tw_err *err)
{
	struct download *d = tw_mem_zalloc(1, sizeof *d);

	if (!d) {
		*ret_st = tw_oom(err);
		return NULL;
	}
	d->api = tw_api_of(r);
	d->options = (struct tw_perfetto_options){
	        .form = (enum tw_perfetto_form)tw_req_enum(r, "format"),
	        .compression = (enum tw_perfetto_compression)tw_req_enum(r, "compress")};
	return d;
}

static enum tw_status perfetto(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	struct download *d = new_download(r, &st, err);
	const char *name = "trace";
	struct tw_view v;

	if (!d)
		return st;
	st = tw_view_open(r, &v, err);
	if (st == TW_OK) {
		st = add_view(d, &v, true, err);
		name = tw_arena_printf(tw_req_arena(r), "%.80s-%.40s-%s", v.row.meta.app,
		        v.row.meta.scenario, tw_req_flag(r, "sanitize") ? "sanitized" : v.row.id);
		tw_view_close(&v);
	}
	if (st != TW_OK) {
		download_free(d);
		return st;
	}
	return reply(r, d, name ? name : "trace", err);
}

/* --- several --- */

static enum tw_status add_id(
        struct tw_req *r, struct download *d, struct tw_str id, struct tw_err *err)
{
	const char *text = tw_arena_str(tw_req_arena(r), id);
	struct tw_view v;
	enum tw_status st;

	if (!text)
		return tw_oom(err);
	if (id.len != TW_ID_CHARS)
		return tw_fail(err, TW_BAD_REQUEST, "ids must be trace ids, separated by commas");
	if (d->n == TW_PERFETTO_MAX_SOURCES)
		return tw_fail(err, TW_BAD_REQUEST, "at most %d traces go into one file",
		        TW_PERFETTO_MAX_SOURCES);
	for (size_t i = 0; i < d->n; i++)
		if (tw_str_eq(tw_str_of(d->sources[i].facts.trace_id), id))
			return tw_fail(err, TW_BAD_REQUEST, "trace %.30s is listed twice", text);
	st = tw_view_open_id(r, text, &v, err);
	if (st != TW_OK)
		return st;
	st = add_view(d, &v, false, err);
	tw_view_close(&v);
	return st;
}

/* Refuses threads that none of the traces has. */
static enum tw_status check_threads(
        const struct tw_req *r, const struct download *d, struct tw_err *err)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->sources[i].sel.all_threads || d->sources[i].sel.n_tids)
			return TW_OK;
	return tw_fail(err, TW_NOT_FOUND, "none of the traces has thread %.60s", tw_api_thread(r));
}

static enum tw_status merge(struct tw_req *r, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(tw_req_text(r, "ids"));
	enum tw_status st = TW_OK;
	struct download *d = new_download(r, &st, err);
	const char *name;

	if (!d)
		return st;
	st = read_align(r, &d->options, err);
	while (st == TW_OK && rest.len)
		st = add_id(r, d, tw_str_split(&rest, ','), err);
	if (st == TW_OK)
		st = check_threads(r, d, err);
	if (st != TW_OK) {
		download_free(d);
		return st;
	}
	name = tw_arena_printf(tw_req_arena(r), "merge-%zu-%s", d->n,
	        tw_req_flag(r, "sanitize") ? "sanitized" : d->sources[0].facts.trace_id);
	return reply(r, d, name ? name : "merge", err);
}

const struct tw_route tw_routes_perfetto[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/perfetto", TW_NEED_READ,
                "The trace as a file for Perfetto",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params,
                        tw_view_sanitize_params, perfetto_params),
                .end = perfetto),
        TW_ROUTE("GET", "/api/v1/merge", TW_NEED_READ, "Several traces as one file for Perfetto",
                .params = TW_PARAMS(merge_params, tw_api_thread_params, tw_view_range_params,
                        tw_view_sanitize_params, perfetto_params),
                .end = merge),
        {0},
};
