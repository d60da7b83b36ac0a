/*
 * api_note.c - events of a trace other than calls: notes by time, and documents.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/base/text/json.h"
#include "server/base/text/json_write.h"
#include "server/base/text/match.h"
#include "server/fleet/anr/anr_names.h"
#include "server/query/note_names.h"
#include "server/trace/note_keys.h"

enum { NOTES_MAX = 100000, NOTES_DEFAULT = 10000, VERDICTS = 8, CHECK_EVERY = 256 };

struct verdict { /* of an ANR document: as decoded, and with the mapping's names */
	struct tw_str decoded, named;
};

struct answer {
	struct tw_trace_query *of;
	const struct tw_view *v; /* of it */
	struct tw_json *j;
	const struct tw_thread_info *threads;
	uint32_t n_threads;
	struct tw_str kind; /* of documents; "": all */
	bool no_memory;     /* for a verdict */
	struct verdict verdicts[VERDICTS];
	unsigned n_verdicts;
	bool verdicts_read;
	uint64_t n, limit, last;
	struct tw_match *match;   /* NULL: all notes */
	enum tw_note_kind listed; /* of a search; TW_NOTE_COUNT: any */
	uint64_t matches[TW_NOTE_COUNT];
	uint64_t searched;
	bool partial;
	enum tw_status status; /* TW_BAD_REQUEST: matching is too costly */
	struct tw_err *err;    /* of the status */
};

/* Valid JSON is passed through; an invalid detail of a damaged file is omitted. */
static void put_json(struct tw_json *j, struct tw_str text)
{
	json_t *o = text.len ? json_loadb(text.ptr, text.len, 0, NULL) : NULL;

	if (o)
		tw_json_raw(j, text);
	else
		tw_json_null(j);
	json_decref(o);
}

static void put_detail(struct answer *a, struct tw_str text)
{
	const struct tw_retrace *retrace = a->v->names.retrace;
	json_t *o = retrace && text.len ? json_loadb(text.ptr, text.len, 0, NULL) : NULL;
	char *named = NULL;

	if (json_is_object(o) && tw_note_detail(retrace, o))
		named = tw_json_dumps(o, JSON_COMPACT);
	put_json(a->j, named ? tw_str_of(named) : text);
	free(named);
	json_decref(o);
}

static struct tw_str verdict_of(const struct answer *a, struct tw_str json)
{
	json_t *o = json_loadb(json.ptr, json.len, 0, NULL);
	const char *text = json_string_value(json_object_get(o, "verdict"));
	const char *copy = text ? tw_arena_str(tw_req_arena(a->v->req), tw_str_of(text)) : NULL;

	json_decref(o);
	return tw_str_of(copy);
}

static struct tw_str named_document(const struct answer *a, struct tw_str json)
{
	const struct tw_names by = {
	        .retrace = a->v->names.retrace, .natives = &a->v->natives.natives};

	if (!by.retrace && by.natives->n == 0)
		return json;
	return tw_anr_named(tw_req_arena(a->v->req), json, &by);
}

static bool add_verdict(void *arg, struct tw_str kind, struct tw_str json)
{
	struct answer *a = arg;
	struct verdict *v = &a->verdicts[a->n_verdicts];
	struct tw_str named;

	if (!tw_str_eq(kind, TW_STR("anr")))
		return true;
	named = named_document(a, json);
	if (!named.ptr)
		return true;
	*v = (struct verdict){verdict_of(a, json), verdict_of(a, named)};
	a->n_verdicts += v->decoded.len && v->named.len;
	return a->n_verdicts < VERDICTS;
}

/* The text of an ANR without a reason is its verdict, which may contain names of the mapping. */
static struct tw_str anr_text(struct answer *a, struct tw_str text)
{
	if (!a->verdicts_read && tw_trace_file_documents(a->v->file, add_verdict, a, NULL) != TW_OK)
		a->n_verdicts = 0; /* the decoded text remains */
	a->verdicts_read = true;
	for (unsigned i = 0; i < a->n_verdicts; i++)
		if (tw_str_eq(a->verdicts[i].decoded, text))
			return a->verdicts[i].named;
	return text;
}

static struct tw_str note_text(struct answer *a, const struct tw_note_row *n)
{
	const struct tw_retrace *retrace = a->v->names.retrace;

	if (!retrace)
		return n->text;
	return n->kind == TW_NOTE_anr ? anr_text(a, n->text)
	                              : tw_note_text(retrace, n->kind, n->text);
}

/* Notes of the whole trace have no thread. */
static bool is_wanted(const struct answer *a, uint32_t thread_id)
{
	if (a->of->sel.all_threads)
		return true;
	return thread_id && thread_id <= a->n_threads &&
	       tw_selection_has(&a->of->sel, &a->threads[thread_id - 1]);
}

static bool put_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct answer *a = arg;
	enum tw_note_outcome outcome = tw_note_outcome(n);

	if (!is_wanted(a, n->thread_id))
		return true;
	tw_json_open(a->j, '{');
	tw_json_key_int(a->j, "id", (int64_t)id);
	tw_json_key_text(a->j, "kind", tw_note_info(n->kind)->name);
	tw_trace_put_tid(a->j, a->v->file, n->thread_id);
	tw_json_key_int(a->j, "ts_ns", n->ts_ns);
	tw_json_key_int_or_null(a->j, "dur_ns", n->dur_ns);
	tw_json_key_int(a->j, "value", n->value);
	tw_json_key_str(a->j, "text", note_text(a, n));
	if (outcome != TW_OUTCOME_NONE)
		tw_json_key_text(a->j, "outcome", tw_note_outcome_name(outcome));
	tw_json_key(a->j, "detail");
	put_detail(a, n->detail);
	tw_json_close(a->j, '}');
	a->n++;
	a->last = id;
	return a->n < a->limit && tw_buf_status(&a->of->out) == TW_OK;
}

static bool has_text(struct answer *a, struct tw_str text)
{
	bool has = false;

	if (a->status == TW_OK)
		a->status = tw_match_check(a->match, text, &has, a->err);
	return has;
}

/* A thread without a name by the one that pages show. */
static bool has_thread(struct answer *a, const struct tw_thread_info *t)
{
	char name[32];

	if (t->name.len)
		return has_text(a, t->name);
	(void)snprintf(name, sizeof name, "thread %" PRIu64, t->tid);
	return has_text(a, tw_str_of(name));
}

/* The thread that is the value of a note. */
static bool has_target(struct answer *a, const struct tw_note_row *n)
{
	if (n->value <= 0 || (n->kind != TW_NOTE_contention && n->kind != TW_NOTE_binder &&
	                             n->kind != TW_NOTE_wakeup && n->kind != TW_NOTE_flow &&
	                             n->kind != TW_NOTE_thread_created))
		return false;
	for (uint32_t i = 0; i < a->n_threads; i++)
		if (a->threads[i].tid == (uint64_t)n->value)
			return has_thread(a, &a->threads[i]);
	return false;
}

static bool has_value(struct answer *a, const json_t *v)
{
	char *text;
	bool has;

	if (json_is_string(v))
		return has_text(a, (struct tw_str){json_string_value(v), json_string_length(v)});
	text = tw_json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	has = text && has_text(a, tw_str_of(text));
	free(text);
	return has;
}

/* Values only: keys are the same in all events of a kind. */
static bool has_detail(struct answer *a, struct tw_str text)
{
	json_t *o = text.len ? json_loadb(text.ptr, text.len, 0, NULL) : NULL;
	const char *key;
	json_t *v;
	bool has = false;

	if (json_is_object(o) && a->v->names.retrace)
		(void)tw_note_detail(a->v->names.retrace, o);
	json_object_foreach(o, key, v) has = has || has_value(a, v);
	json_decref(o);
	return has;
}

static bool note_matches(struct answer *a, const struct tw_note_row *n)
{
	return has_text(a, note_text(a, n)) ||
	       (n->thread_id && n->thread_id <= a->n_threads &&
	               has_thread(a, &a->threads[n->thread_id - 1])) ||
	       has_target(a, n) || has_detail(a, n->detail);
}

/* Counts matches of all kinds, also after the last note of the page. */
static bool put_match(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct answer *a = arg;

	if (++a->searched % CHECK_EVERY == 0 && tw_deadline_passed(&a->of->deadline)) {
		a->partial = true;
		return false;
	}
	if (a->n < a->limit)
		a->last = id; /* a partial search continues here */
	if (!is_wanted(a, n->thread_id) || !note_matches(a, n))
		return a->status == TW_OK;
	a->matches[n->kind]++;
	if (a->n < a->limit && (a->listed == TW_NOTE_COUNT || a->listed == n->kind))
		(void)put_note(a, id, n);
	return tw_buf_status(&a->of->out) == TW_OK;
}

static const struct tw_param notes_params[] = {
        TW_PARAM_TEXT("kind", 0, "Only events of this kind."),
        TW_PARAM_TEXT("q", 0,
                "Returns only events whose text, details or thread contain this text, ignoring "
                "case. With regex=true, q is a PCRE2 pattern."),
        TW_PARAM_FLAG("regex", false, "Whether `q` is a regular expression."),
        TW_PARAM_NUMBER("cursor", 0, 0, INT64_MAX, "`next_cursor` of the previous page."),
        TW_PARAM_NUMBER("limit", NOTES_DEFAULT, 1, NOTES_MAX, ""),
        {0},
};

static enum tw_status read_query(struct answer *a, struct tw_note_query *q, struct tw_err *err)
{
	const struct tw_req *r = a->v->req;
	const char *kind = tw_req_text(r, "kind");
	const char *text = tw_req_text_or_empty(r, "q");
	enum tw_status st;

	*q = (struct tw_note_query){.kind = TW_NOTE_COUNT};
	if (kind && kind[0]) {
		q->kind = tw_note_of_name(kind);
		if (q->kind == TW_NOTE_COUNT)
			return tw_fail(err, TW_BAD_REQUEST, "unknown event kind %.64s", kind);
	}
	a->listed = q->kind;
	if (text[0]) {
		q->kind = TW_NOTE_COUNT;
		st = tw_match_new(text, tw_req_flag(r, "regex"), &a->match, err);
		if (st != TW_OK)
			return st;
	}
	q->after = (uint64_t)tw_req_number(r, "cursor");
	q->limit = UINT32_MAX; /* put_note counts the notes of the selected threads */
	a->limit = (uint64_t)tw_req_number(r, "limit");
	q->from_ns = a->of->sel.from_ns;
	q->to_ns = a->of->sel.to_ns;
	return TW_OK;
}

static void put_counts(struct tw_json *j, const char *key, const uint64_t counts[TW_NOTE_COUNT])
{
	tw_json_key_open(j, key, '{');
	for (int i = 0; i < TW_NOTE_COUNT; i++)
		if (counts[i])
			tw_json_key_int(
			        j, tw_note_info((enum tw_note_kind)i)->name, (int64_t)counts[i]);
	tw_json_close(j, '}');
}

static enum tw_status put_notes(struct answer *a, struct tw_err *err)
{
	uint64_t counts[TW_NOTE_COUNT];
	struct tw_note_query q;
	enum tw_status st = read_query(a, &q, err);

	if (st != TW_OK)
		return st;
	a->err = err;
	tw_json_open(a->j, '{');
	tw_json_key_open(a->j, "notes", '[');
	st = tw_trace_file_notes(a->v->file, &q, a->match ? put_match : put_note, a, err);
	tw_json_close(a->j, ']');
	if (st == TW_OK)
		st = a->status;
	if (st == TW_OK)
		st = tw_trace_file_note_counts(a->v->file, counts, err);
	if (st != TW_OK)
		return st;
	put_counts(a->j, "kinds", counts);
	if (a->match)
		put_counts(a->j, "matches", a->matches);
	tw_json_key(a->j, "next_cursor");
	if (a->n == a->limit || a->partial)
		tw_json_int(a->j, (int64_t)a->last);
	else
		tw_json_null(a->j);
	tw_json_key_bool(a->j, "partial", a->partial);
	tw_json_close(a->j, '}');
	return st;
}

static struct answer begin(struct tw_trace_query *q)
{
	struct answer a = {.of = q, .v = &q->v, .j = &q->j};

	a.threads = tw_trace_file_threads(q->v.file, &a.n_threads);
	return a;
}

static enum tw_status answer_notes(struct tw_trace_query *q, struct tw_err *err)
{
	struct answer a = begin(q);
	enum tw_status st = put_notes(&a, err);

	tw_match_free(a.match);
	return st;
}

static bool put_document(void *arg, struct tw_str kind, struct tw_str json)
{
	struct answer *a = arg;

	if (a->kind.len && !tw_str_eq(a->kind, kind))
		return true;
	if (tw_str_eq(kind, TW_STR("anr")))
		json = named_document(a, json);
	a->no_memory = a->no_memory || !json.ptr;
	if (a->no_memory)
		return false;
	tw_json_open(a->j, '{');
	tw_json_key_str(a->j, "kind", kind);
	tw_json_key(a->j, "content");
	put_json(a->j, json);
	tw_json_close(a->j, '}');
	return tw_buf_status(&a->of->out) == TW_OK;
}

static const struct tw_param documents_params[] = {
        TW_PARAM_TEXT("kind", 0, "Only documents of this kind: anr."),
        {0},
};

static enum tw_status answer_documents(struct tw_trace_query *q, struct tw_err *err)
{
	struct answer one = begin(q), *const a = &one;
	enum tw_status st;

	a->kind = tw_str_of(tw_req_text_or_empty(a->v->req, "kind"));
	tw_json_open(a->j, '{');
	tw_json_key_open(a->j, "documents", '[');
	st = tw_trace_file_documents(a->v->file, put_document, a, err);
	if (st == TW_OK && a->no_memory)
		st = tw_oom(err);
	tw_json_close(a->j, ']');
	tw_json_close(a->j, '}');
	return st;
}

const struct tw_route tw_routes_note[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/notes", TW_NEED_READ,
                "Events of a trace that are not calls",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params, notes_params),
                .trace_query = answer_notes),
        TW_ROUTE("GET", "/api/v1/traces/{id}/documents", TW_NEED_READ,
                "Documents of a trace, such as an ANR report",
                .params = TW_PARAMS(documents_params), .trace_query = answer_documents),
        {0},
};
