/*
 * api_view.c - threads, names, slices and raw parts of one trace.
 */
#include <fcntl.h>
#include <string.h>
#include <zstd.h>

#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/auth/auth.h"
#include "server/base/text/json_write.h"
#include "server/catalogue/traces/catalogue_quarantine.h"
#include "server/catalogue/traces/catalogue_trace.h"

#define BODY_MAX ((size_t)512 << 20)

static enum tw_status reply(struct tw_req *r, struct tw_buf *out, struct tw_err *err)
{
	enum tw_status st = tw_req_reply_buf(r, 200, "application/json", true, out, err);

	tw_buf_done(out);
	return st;
}

static enum tw_status put_thread(const struct tw_view *v, const struct tw_waits *waits,
        const struct tw_thread_info *t, struct tw_json *j, struct tw_err *err)
{
	uint8_t strip[TW_ACTIVITY_CELLS] = {0};
	int64_t running = 0;
	enum tw_status st =
	        t->slices ? tw_query_activity(v->file, t, waits, strip, &running, err) : TW_OK;

	if (st != TW_OK)
		return st;
	tw_json_open(j, '{');
	TW_JSON_MEMBERS(j, t, thread_id, tid, pid, name, is_main);
	tw_json_key_text(j, "source", tw_slice_source_name(t->source));
	TW_JSON_MEMBERS(j, t, interval_ns, slices, roots, max_depth, start_ns, end_ns, busy_ns);
	tw_json_key_int(j, "running_ns", running < t->busy_ns ? running : t->busy_ns);
	tw_json_key_open(j, "activity", '[');
	for (int i = 0; i < TW_ACTIVITY_CELLS; i++)
		tw_json_int(j, strip[i]);
	tw_json_close(j, ']');
	tw_json_close(j, '}');
	return TW_OK;
}

static enum tw_status put_processes(
        struct tw_req *r, const struct tw_view *v, struct tw_json *j, struct tw_err *err)
{
	struct tw_trace_process *list;
	uint32_t n;
	enum tw_status st = tw_trace_processes(v->file, tw_req_arena(r), &list, &n, err);

	tw_json_key_open(j, "processes", '[');
	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		tw_json_open(j, '{');
		TW_JSON_MEMBERS(j, &list[i], pid, name, threads);
		tw_json_close(j, '}');
	}
	tw_json_close(j, ']');
	return st;
}

static enum tw_status answer_threads(struct tw_trace_query *q, struct tw_err *err)
{
	struct tw_json *const j = &q->j;
	struct tw_waits waits = {0};
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(q->v.file, &n);
	enum tw_status st = tw_view_waits(&q->v, q->arena, &waits, err);

	tw_json_open(j, '{');
	tw_json_key_open(j, "threads", '[');
	for (uint32_t i = 0; st == TW_OK && i < n; i++)
		st = put_thread(&q->v, &waits, &t[i], j, err);
	tw_json_close(j, ']');
	if (st == TW_OK)
		st = put_processes(q->v.req, &q->v, j, err);
	tw_json_close(j, '}');
	return st;
}

static void put_names(const struct tw_view *v, struct tw_json *j, char *resolved, char *buf)
{
	tw_json_key_open(j, "names", '[');
	for (uint32_t i = 0; i < v->n_methods; i++) {
		bool known;

		tw_json_str(j, tw_view_name(v, i, buf, &known));
		resolved[i] = known ? '1' : '0';
	}
	tw_json_close(j, ']');
	tw_json_key_open(j, "descriptors", '[');
	for (uint32_t i = 0; i < v->n_methods; i++)
		tw_json_str(j, tw_view_descriptor(v, i, buf));
	tw_json_close(j, ']');
	tw_json_key_open(j, "obfuscated", '[');
	for (uint32_t i = 0; v->names.retrace && i < v->n_methods; i++)
		tw_json_str(j, tw_view_obfuscated(v, i, buf));
	tw_json_close(j, ']');
	tw_json_key_str(j, "resolved", (struct tw_str){resolved, v->n_methods});
}

static enum tw_status answer_names(struct tw_trace_query *q, struct tw_err *err)
{
	char *resolved = tw_arena_alloc(q->arena, q->v.n_methods + 1, 1);

	if (!resolved)
		return tw_oom(err);
	tw_json_open(&q->j, '{');
	put_names(&q->v, &q->j, resolved, q->name);
	tw_json_close(&q->j, '}');
	return TW_OK;
}

/* --- slices --- */

/* The main thread; if no main thread has calls, the thread with the longest running time. */
static enum tw_status first_thread(
        const struct tw_view *v, const struct tw_thread_info **ret, struct tw_err *err)
{
	struct tw_waits waits = {0};
	int64_t longest = -1;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(v->file, &n);
	enum tw_status st;

	for (uint32_t i = 0; i < n; i++)
		if (t[i].is_main && t[i].slices) {
			*ret = &t[i];
			return TW_OK;
		}
	st = tw_view_waits(v, tw_req_arena(v->req), &waits, err);
	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		uint8_t strip[TW_ACTIVITY_CELLS] = {0};
		int64_t running = 0;

		if (!t[i].slices)
			continue;
		st = tw_query_activity(v->file, &t[i], &waits, strip, &running, err);
		if (running <= longest)
			continue;
		longest = running;
		*ret = &t[i];
	}
	if (st == TW_OK && longest < 0)
		return tw_fail(err, TW_NOT_FOUND, "the trace has no calls");
	return st;
}

static enum tw_status find_thread(
        const struct tw_view *v, const struct tw_thread_info **ret, struct tw_err *err)
{
	const char *word = tw_api_thread(v->req);
	struct tw_selection sel;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(v->file, &n);
	enum tw_status st = tw_view_threads(v, false, &sel, err);

	if (st != TW_OK)
		return st;
	if (!word)
		return first_thread(v, ret, err);
	if (sel.all_threads)
		return tw_fail(err, TW_BAD_REQUEST,
		        "slices are listed for one thread: set thread to main, a tid or a name");
	if (sel.n_tids > 1)
		return tw_fail(err, TW_BAD_REQUEST,
		        "thread=%.40s selects %zu threads: slices are listed for one thread, such "
		        "as %llu",
		        word, sel.n_tids, (unsigned long long)sel.tids[0]);
	for (uint32_t i = 0; i < n; i++)
		if (tw_selection_has(&sel, &t[i])) {
			*ret = &t[i];
			break;
		}
	return TW_OK;
}

static enum tw_status directory(struct tw_req *r, struct tw_err *err)
{
	const struct tw_thread_info *t = NULL;
	const struct tw_chunk_row *rows = NULL;
	struct tw_buf out;
	struct tw_json j = tw_json_to(&out);
	struct tw_view v;
	uint32_t n = 0;
	enum tw_status st = tw_view_open(r, &v, err);

	if (st != TW_OK)
		return st;
	st = find_thread(&v, &t, err);
	if (st == TW_OK && t)
		st = tw_trace_file_chunks(v.file, t->thread_id, &rows, &n, err);
	tw_buf_init(&out, BODY_MAX);
	if (st == TW_OK && t) {
		tw_json_open(&j, '{');
		TW_JSON_MEMBERS(&j, t, thread_id, tid, slices, start_ns, end_ns, max_depth);
		tw_json_key_open(&j, "chunks", '[');
		for (uint32_t i = 0; i < n; i++) {
			tw_json_open(&j, '{');
			tw_json_key_int(&j, "chunk", rows[i].chunk_id);
			TW_JSON_MEMBERS(&j, &rows[i].info, level, start_ns, end_ns, slices, open);
			tw_json_key_int(&j, "bytes", rows[i].stored_bytes);
			tw_json_key_int(&j, "min_dur_ns", rows[i].info.min_dur_ns);
			tw_json_close(&j, '}');
		}
		tw_json_close(&j, ']');
		tw_json_close(&j, '}');
	}
	tw_view_close(&v);
	return st == TW_OK ? reply(r, &out, err) : st;
}

/* The stored frame unchanged if the client accepts zstd, otherwise decompressed. */
static enum tw_status reply_frame(struct tw_req *r, struct tw_buf *frame, struct tw_err *err)
{
	static const char type[] = "application/x-tracewell-columns";
	unsigned long long size = ZSTD_getFrameContentSize(frame->data, frame->len);
	struct tw_buf plain;
	enum tw_status st;
	size_t n;

	if (tw_req_accepts(r, "zstd")) {
		tw_req_set_header(r, "Content-Encoding", "zstd");
		tw_req_set_header(r, "Vary", "Accept-Encoding");
		return tw_req_reply_buf(r, 200, type, false, frame, err);
	}
	tw_buf_init(&plain, (size_t)16 << 20);
	if (size > plain.max || tw_buf_reserve(&plain, (size_t)size) != TW_OK)
		return tw_fail(err, TW_CORRUPT, "the chunk is damaged");
	n = ZSTD_decompress(plain.data, (size_t)size, frame->data, frame->len);
	plain.len = ZSTD_isError(n) ? 0 : n;
	st = n == size ? tw_req_reply_buf(r, 200, type, true, &plain, err)
	               : tw_fail(err, TW_CORRUPT, "the chunk is damaged");
	tw_buf_done(&plain);
	return st;
}

static enum tw_status chunk(struct tw_req *r, struct tw_err *err)
{
	uint64_t id = 0;
	struct tw_buf frame;
	struct tw_view v;
	bool for_good = false;
	enum tw_status st = tw_view_open(r, &v, err);

	if (st != TW_OK)
		return st;
	for_good = !tw_trace_file_is_inlined(v.file);
	if (!for_good && tw_view_unchanged(&v)) {
		tw_view_close(&v);
		return TW_OK;
	}
	tw_buf_init(&frame, (size_t)64 << 20);
	if (!tw_str_u64(tw_str_of(tw_req_path(r, "chunk")), UINT32_MAX, &id))
		st = tw_fail(err, TW_NOT_FOUND, "no such chunk");
	if (st == TW_OK)
		st = tw_trace_file_chunk_raw(v.file, (uint32_t)id, &frame, err);
	tw_view_close(&v);
	if (st == TW_OK) {
		if (for_good)
			tw_req_set_header(
			        r, "Cache-Control", "private, max-age=31536000, immutable");
		st = reply_frame(r, &frame, err);
	}
	tw_buf_done(&frame);
	return st;
}

/* --- raw parts --- */

/* Only admins may download bytes that crashed a decoder. */
static enum tw_status refuse_quarantined(struct tw_req *r, const char *id, struct tw_err *err)
{
	const struct tw_caller *caller = tw_req_caller(r);
	struct tw_quarantined found;
	enum tw_status st;

	if (tw_auth_allows(caller, TW_NEED_ADMIN, NULL) == TW_OK)
		return TW_OK;
	st = tw_catalogue_quarantine_get(
	        tw_api_catalogue(r), caller->project_id, id, tw_req_arena(r), &found, err);
	if (st != TW_OK)
		return st == TW_NOT_FOUND ? TW_OK : st;
	return tw_fail(err, TW_DENIED,
	        "this upload is in quarantine, because it crashed decoders: an admin of the "
	        "project can download it");
}

static enum tw_status raw(struct tw_req *r, struct tw_err *err)
{
	struct tw_trace_row row;
	const char *id;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	if (st == TW_OK)
		st = tw_catalogue_trace_get(
		        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &row, err);
	if (st == TW_OK)
		st = refuse_quarantined(r, id, err);
	return st == TW_OK ? tw_api_stream_part(r, id, err) : st;
}

const struct tw_route tw_routes_view[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/threads", TW_NEED_READ, "Threads of a trace",
                .trace_query = answer_threads),
        TW_ROUTE("GET", "/api/v1/traces/{id}/names", TW_NEED_READ, "Names of all methods by index",
                .trace_query = answer_names),
        TW_ROUTE("GET", "/api/v1/traces/{id}/slices", TW_NEED_READ,
                "Directory of a thread's slice chunks", .params = TW_PARAMS(tw_api_thread_params),
                .end = directory),
        TW_ROUTE("GET", "/api/v1/traces/{id}/slices/{chunk}", TW_NEED_READ,
                "One chunk of slices as columns", .end = chunk),
        TW_ROUTE("GET", "/api/v1/traces/{id}/raw/{part}", TW_NEED_READ,
                "A part as uploaded, or as extracted from the uploaded archive", .end = raw),
        {0},
};
