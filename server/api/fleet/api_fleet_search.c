/*
 * api_fleet_search.c - calls in many traces that took longer than a threshold.
 *
 * Searches names first, then the index entries of the filtered cells, then the files of the traces
 * with the longest calls, until there are enough hits or the time is used up.
 */
#include <string.h>

#include "server/api/api.h"
#include "server/api/fleet/api_fleet.h"
#include "server/base/clock.h"
#include "server/base/text/find.h"
#include "server/base/text/match.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/fleet/fleet_search.h"
#include "server/storage/blob.h"
#include "server/trace/trace_readers.h"

enum { LIMIT_MAX = 200, NAMES_MAX = 4096, PATH_BYTES = 1500 };
/* Files are read for this long after the index, however long that took in another database. */
enum { NAMES_MS = 1000, FILES_MS = 400, NAMES_PER_CHECK = 64 };

struct naming { /* the filter of names, with its deadline */
	struct tw_match *match;
	int64_t until_ms;
	uint32_t names_matched;
};

struct search {
	struct tw_fleet_request *q;
	struct tw_search s;
	struct tw_search_path path;
	int64_t limit, until_ms;
	bool partial;
};

/* --- the request --- */

static enum tw_status matches_name(void *arg, const char *name, bool *ret_fits, struct tw_err *err)
{
	struct naming *n = arg;

	if (++n->names_matched % NAMES_PER_CHECK == 0 && tw_monotonic_ms() > n->until_ms)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the regular expression takes too long on this project's names: simplify "
		        "it, or search for a name");
	return tw_match_check(n->match, tw_str_of(name), ret_fits, err);
}

static enum tw_status matches_words(void *arg, const char *name, bool *ret_fits, struct tw_err *err)
{
	const struct tw_find *find = arg;

	(void)err;
	*ret_fits = tw_find_rank(find, tw_str_of(name)) != TW_FIND_NOT;
	return TW_OK;
}

/* The methods with exactly that name; if there are none, those found by its words. */
static enum tw_status read_by_words(struct tw_fleet_request *q, const char *text,
        struct tw_rollup_naming **ret, size_t *ret_n, bool *ret_all, struct tw_err *err)
{
	struct tw_find find;
	const struct tw_index_names of = {
	        tw_api_project(q->req), NULL, matches_words, &find, NAMES_MAX};
	enum tw_status st = tw_find_read(text, &find, err);

	if (st != TW_OK || find.n == 0)
		return st;
	return tw_catalogue_index_names(
	        tw_api_catalogue(q->req), &of, q->arena, ret, ret_n, ret_all, err);
}

static enum tw_status read_names(struct tw_fleet_request *q, const char *text, bool regex,
        const struct tw_rollup_naming **ret, size_t *ret_n, struct tw_err *err)
{
	struct naming naming = {.until_ms = tw_monotonic_ms() + NAMES_MS};
	struct tw_index_names of = {tw_api_project(q->req), regex ? NULL : text,
	        regex ? matches_name : NULL, &naming, NAMES_MAX};
	struct tw_rollup_naming *rows = NULL;
	bool all = true;
	enum tw_status st = regex ? tw_match_new(text, true, &naming.match, err) : TW_OK;

	if (st == TW_OK)
		st = tw_catalogue_index_names(
		        tw_api_catalogue(q->req), &of, q->arena, &rows, ret_n, &all, err);
	tw_match_free(naming.match);
	if (st == TW_OK && !regex && *ret_n == 0)
		st = read_by_words(q, text, &rows, ret_n, &all, err);
	if (st == TW_OK && !all)
		return tw_fail(err, TW_BAD_REQUEST, "more than %d methods match: narrow the search",
		        NAMES_MAX);
	*ret = rows;
	return st;
}

const struct tw_param tw_fleet_search_params[] = {
        TW_PARAM_REQUIRED("method", 0,
                "Name of the method as in /api/v1/fleet/methods, a part of it, or words with * for "
                "any text."),
        TW_PARAM_FLAG("regex", false, "Whether `method` is a regular expression over names."),
        TW_PARAM_NUMBER("over_ns", 0, 0, INT64_MAX / 2, "Calls longer than this, in nanoseconds."),
        TW_PARAM_TEXT("thread", 0,
                "On a thread of that name; main is the main thread, whatever its name."),
        TW_PARAM_TEXT("threads", 0, "The same as thread."),
        TW_PARAM_TEXT("ancestor", 0, "Called by that method, directly or not."),
        TW_PARAM_FLAG(
                "ancestor_regex", false, "Whether `ancestor` is a regular expression over names."),
        TW_PARAM_NUMBER("limit", 50, 1, LIMIT_MAX, "Largest number of hits in the response."),
        {0},
};

static enum tw_status read_methods(struct search *k, struct tw_err *err)
{
	uint64_t *numbers;
	enum tw_status st = read_names(k->q, tw_req_text(k->q->req, "method"),
	        tw_req_flag(k->q->req, "regex"), &k->s.methods, &k->s.n_methods, err);

	if (st != TW_OK)
		return st;
	numbers = tw_arena_alloc(k->q->arena, k->s.n_methods + 1, sizeof *numbers);
	if (!numbers)
		return tw_oom(err);
	for (size_t i = 0; i < k->s.n_methods; i++)
		numbers[i] = k->s.methods[i].id;
	k->s.numbers = numbers;
	return TW_OK;
}

static enum tw_status read_path(struct search *k, struct tw_err *err)
{
	const char *ancestor = tw_req_text_or_empty(k->q->req, "ancestor");

	k->path.wanted = ancestor[0] != '\0';
	if (!k->path.wanted)
		return TW_OK;
	return read_names(k->q, ancestor, tw_req_flag(k->q->req, "ancestor_regex"),
	        &k->path.ancestors, &k->path.n, err);
}

static enum tw_status read_query(struct search *k, struct tw_err *err)
{
	struct tw_req *r = k->q->req;
	const char *thread = tw_api_thread(r);
	enum tw_status st = read_methods(k, err);

	k->s.over_ns = tw_req_number(r, "over_ns");
	k->s.over_ns -= k->s.over_ns == 0; /* without a threshold, calls of no length count too */
	k->limit = tw_req_number(r, "limit");
	if (st == TW_OK)
		st = read_path(k, err);
	k->s.thread = thread && thread[0] && strcmp(thread, "all") != 0 ? thread : NULL;
	return st;
}

/* --- the index --- */

static enum tw_status scan(struct search *k, struct tw_err *err)
{
	struct tw_fleet_request *q = k->q;
	struct tw_fleet_store *store = tw_fleet_store_of(q);

	k->s.found = tw_arena_alloc(q->arena, 2 * (size_t)TW_SEARCH_HITS_MAX, sizeof *k->s.found);
	k->s.results_arena = q->arena;
	if (!k->s.found)
		return tw_oom(err);
	return store->engine->search(store, &q->query, q->cells, q->n_cells, &k->s, err);
}

/* --- files --- */

static bool is_late(void *arg)
{
	return tw_monotonic_ms() > ((const struct search *)arg)->until_ms;
}

/* An unreadable file is skipped; the other hits are returned. */
static struct tw_search_call read_hit(struct search *k, const struct tw_search_found *found)
{
	const struct tw_api *api = tw_api_of(k->q->req);
	const struct tw_derive_parts parts = {
	        .catalogue = api->catalogue, .blobs = api->blobs, .symbols = api->symbols};
	const struct tw_rollup_naming *method = &k->s.methods[found->which];
	const struct tw_named_trace of = {
	        tw_api_project(k->q->req), found->trace_id, method->build_id, method->mapping_id};
	const struct tw_deadline deadline = {is_late, k};
	const struct tw_search_query query = {method, found, &k->path, k->s.over_ns, &deadline};
	struct tw_search_call call = {0};
	struct tw_trace_file *file = NULL;
	struct tw_namer namer = {0};
	struct tw_err why;
	enum tw_status st =
	        tw_trace_stored_open_by(api->blobs, found->trace_id, k->until_ms, &file, &why);

	if (st == TW_OK && method->raw[0] == TW_RAW_EXPANDED) {
		st = tw_namer_open(&parts, &of, k->q->arena, &namer, &why);
		if (st == TW_OK)
			st = tw_namer_inline(
			        &parts, of.project_id, file, k->q->arena, &namer, &why);
	}
	if (st == TW_OK)
		st = tw_search_find_call(file, &query, &call, &why);
	tw_trace_file_close(file);
	tw_namer_close(&parts, &namer);
	return st == TW_OK ? call : (struct tw_search_call){0};
}

static bool is_there(const struct search *k, const char *trace_id)
{
	bool there = false;

	return tw_catalogue_has_trace(tw_api_catalogue(k->q->req), trace_id, &there, NULL) ==
	               TW_OK &&
	       there;
}

/* --- the response --- */

static void put_call(struct tw_json *j, const struct tw_search_call *call)
{
	tw_json_key(j, "call");
	if (!call->there) {
		tw_json_null(j);
		return;
	}
	tw_json_open(j, '{');
	TW_JSON_MEMBERS(j, call, tid, start_ns);
	tw_json_key_int(j, "duration_ns", call->dur_ns);
	tw_json_key_int(j, "depth", call->depth);
	tw_json_close(j, '}');
}

static void put_hit(
        struct search *k, const struct tw_search_found *found, const struct tw_search_call *call)
{
	struct tw_fleet_request *q = k->q;
	const struct tw_rollup_dims *d = found->dims;
	const struct tw_rollup_naming *m = &k->s.methods[found->which];

	tw_json_open(&q->j, '{');
	tw_json_key_text(&q->j, "trace", found->trace_id);
	tw_json_key_text(&q->j, "method", m->name);
	tw_json_key_text(&q->j, "descriptor", m->descriptor);
	TW_JSON_MEMBERS(&q->j, found, thread, is_main);
	tw_json_key_int(&q->j, "max_ns", call->there ? call->dur_ns : found->max_ns);
	tw_json_key_int(&q->j, "day_ms", d->day * TW_DAY_MS);
	TW_JSON_MEMBERS(&q->j, d, app, version_name, scenario);
	tw_json_key_text(&q->j, "class", d->device_class);
	tw_json_key_text(&q->j, "os", d->os);
	put_call(&q->j, call);
	tw_json_close(&q->j, '}');
}

/* Without an ancestor, times from the index are exact, and files only provide the call's
 * position. */
static void put_hits(struct search *k)
{
	int64_t written = 0;

	tw_json_key_open(&k->q->j, "hits", '[');
	for (size_t i = 0; i < k->s.n && written < k->limit; i++) {
		struct tw_search_call call = {0};

		if (is_late(k) && k->path.wanted) {
			k->partial = true;
			break;
		}
		if (!is_there(k, k->s.found[i].trace_id))
			continue;
		if (!is_late(k))
			call = read_hit(k, &k->s.found[i]);
		if (k->path.wanted && !call.there)
			continue;
		put_hit(k, &k->s.found[i], &call);
		written++;
	}
	if (written < k->limit && k->s.matches > k->s.n)
		k->partial = true;
	tw_json_close(&k->q->j, ']');
}

enum tw_status tw_fleet_write_search(struct tw_fleet_request *q, struct tw_err *err)
{
	struct search k = {.q = q};
	enum tw_status st = read_query(&k, err);

	if (st == TW_OK)
		st = tw_fleet_read(q, 0, 0, err);
	if (st == TW_OK)
		st = scan(&k, err);
	if (st != TW_OK)
		return st;
	k.until_ms = tw_monotonic_ms() + FILES_MS;
	tw_fleet_put_head(q);
	tw_json_key_int(&q->j, "methods", (int64_t)k.s.n_methods);
	tw_json_key_int(&q->j, "matches", (int64_t)k.s.matches);
	put_hits(&k);
	tw_json_key_bool(&q->j, "partial", k.partial);
	tw_json_close(&q->j, '}');
	return TW_OK;
}
