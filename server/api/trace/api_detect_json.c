/*
 * api_detect_json.c - findings, frames and phases of a trace as JSON, each with a message.
 */
#include <stdio.h>

#include "decoder/base/sum.h"
#include "server/api/trace/trace_query.h"
#include "server/derive/detecting.h"

enum { DURATION_BYTES = 32, SENTENCE_BYTES = 1024, SHOWN_BYTES = 300 };

static void duration(int64_t ns, char out[DURATION_BYTES])
{
	const double ms = (double)ns / 1e6;

	if (ms >= 1000)
		(void)snprintf(out, DURATION_BYTES, "%.2f s", ms / 1000);
	else
		(void)snprintf(out, DURATION_BYTES, ms >= 10 ? "%.0f ms" : "%.2f ms", ms);
}

/* A name for messages: truncated, valid UTF-8. */
static void shown(struct tw_detecting *d, uint32_t method, char out[SHOWN_BYTES])
{
	(void)tw_utf8_clean(out, SHOWN_BYTES, tw_view_name(&d->v, method, d->name, NULL));
}

static void put_method(struct tw_detecting *d, const char *key, uint32_t method)
{
	tw_json_key(&d->j, key);
	if (method == TW_NO_METHOD) {
		tw_json_null(&d->j);
		return;
	}
	tw_json_open(&d->j, '{');
	tw_json_key_int(&d->j, "method", method);
	tw_json_key_str(&d->j, "name", tw_view_name(&d->v, method, d->name, NULL));
	tw_json_key_str(&d->j, "descriptor", tw_view_descriptor(&d->v, method, d->name));
	tw_json_close(&d->j, '}');
}

/* --- rules and findings --- */

static void put_rule(struct tw_detecting *d, size_t i)
{
	const struct tw_detect_rule *rule = &d->rules->rules[i];
	const struct tw_detect_sum *sum = &d->found.sums[i];

	tw_json_open(&d->j, '{');
	TW_JSON_MEMBERS(&d->j, rule, id, kind, title, severity, message);
	tw_json_key_bool(&d->j, "enabled", rule->on);
	tw_json_key_int(&d->j, "threshold_ns", rule->threshold_ns);
	TW_JSON_MEMBERS(&d->j, sum, calls, total_ns, max_ns);
	tw_json_key_int_or_null(&d->j, "cpu_ns", sum->cpu_ns);
	TW_JSON_MEMBERS(&d->j, sum, found, found_ns);
	tw_json_key_int(&d->j, "listed", sum->n_kept);
	tw_json_key_text(&d->j, "problem", rule->costly_why[0] ? rule->costly_why : NULL);
	tw_json_close(&d->j, '}');
}

static void put_finding(struct tw_detecting *d, const struct tw_finding *f)
{
	const struct tw_detect_rule *rule = &d->rules->rules[f->rule];

	tw_json_open(&d->j, '{');
	tw_json_key_text(&d->j, "rule", rule->id);
	tw_json_key_text(&d->j, "kind", rule->kind);
	tw_trace_put_tid(&d->j, d->v.file, f->thread_id);
	TW_JSON_MEMBERS(&d->j, f, start_ns, wall_ns);
	tw_json_key_int_or_null(&d->j, "cpu_ns", f->cpu_ns);
	put_method(d, "call", f->method);
	tw_json_key_int(&d->j, "depth", f->depth);
	put_method(d, "caller", f->caller);
	tw_json_key(&d->j, "note");
	if (f->note) {
		tw_json_open(&d->j, '{');
		tw_json_key_int(&d->j, "id", (int64_t)f->note);
		tw_json_key_text(&d->j, "text", f->text ? f->text : "");
		tw_json_close(&d->j, '}');
	} else
		tw_json_null(&d->j);
	tw_json_close(&d->j, '}');
}

/* --- the cause of a range's duration --- */

static int64_t overlap(const struct tw_finding *f, int64_t from_ns, int64_t to_ns)
{
	const int64_t from = f->start_ns > from_ns ? f->start_ns : from_ns;
	const int64_t end = tw_sum_ns(f->start_ns, f->wall_ns);
	const int64_t to = end < to_ns ? end : to_ns;

	return to > from ? to - from : 0;
}

/* The main thread's finding that covers most of a range. */
static const struct tw_finding *worst_in(
        const struct tw_detecting *d, int64_t from_ns, int64_t to_ns, int64_t *ret_ns)
{
	const struct tw_finding *worst = NULL;

	*ret_ns = 0;
	for (size_t i = 0; i < d->n && d->list[i].start_ns < to_ns; i++) {
		const int64_t ns = overlap(&d->list[i], from_ns, to_ns);

		if (ns <= *ret_ns || d->list[i].thread_id != d->main->thread_id)
			continue;
		*ret_ns = ns;
		worst = &d->list[i];
	}
	return worst;
}

static void put_finding_text(
        struct tw_detecting *d, const struct tw_finding *f, int64_t ns, char out[SENTENCE_BYTES])
{
	char took[DURATION_BYTES], name[SHOWN_BYTES] = "", caller[SHOWN_BYTES] = "";

	duration(ns, took);
	if (f->note)
		(void)tw_utf8_clean(name, sizeof name, tw_str_of(f->text ? f->text : ""));
	else
		shown(d, f->method, name);
	if (f->caller != TW_NO_METHOD)
		shown(d, f->caller, caller);
	(void)snprintf(out, SENTENCE_BYTES, "%s: %s in %s%s%s.", d->rules->rules[f->rule].title,
	        took, name[0] ? name : "a wait", caller[0] ? ", called by " : "", caller);
}

/* `own`: the call that fills the range. */
static void put_own_text(struct tw_detecting *d, const struct tw_heavy *h, uint32_t own,
        int64_t whole_ns, char out[SENTENCE_BYTES])
{
	char took[DURATION_BYTES], name[SHOWN_BYTES];

	duration(h->leaf_self_ns, took);
	if (own != TW_NO_METHOD && h->leaf == own && h->leaf_self_ns >= whole_ns / 2) {
		shown(d, own, name);
		(void)snprintf(
		        out, SENTENCE_BYTES, "%s in %s itself, without its callees.", took, name);
	} else
		(void)snprintf(out, SENTENCE_BYTES, "No single call takes half of it.");
}

static void put_path_text(
        struct tw_detecting *d, const struct tw_heavy *h, char out[SENTENCE_BYTES])
{
	char took[DURATION_BYTES], inner[DURATION_BYTES];
	char name[SHOWN_BYTES], leaf[SHOWN_BYTES];

	duration(h->ns, took);
	duration(h->leaf_ns, inner);
	shown(d, h->method, name);
	shown(d, h->leaf, leaf);
	if (h->leaf == h->method)
		(void)snprintf(out, SENTENCE_BYTES, "%s in %s.", took, name);
	else
		(void)snprintf(out, SENTENCE_BYTES, "%s in %s, of that %s in %s.", took, name,
		        inner, leaf);
}

/* A finding that covers most of the heaviest path explains the range better than the path does. */
static void put_cause(struct tw_detecting *d, int64_t from_ns, int64_t to_ns, uint32_t own,
        const struct tw_heavy *h)
{
	char message[SENTENCE_BYTES];
	int64_t ns = 0;
	const struct tw_finding *f = worst_in(d, from_ns, to_ns, &ns);

	if (f && (ns >= (to_ns - from_ns) / 2 || (h->method == own && ns >= (to_ns - from_ns) / 4)))
		put_finding_text(d, f, ns, message);
	else {
		f = NULL;
		ns = h->ns;
		if (h->method == TW_NO_METHOD || h->method == own)
			put_own_text(d, h, own, to_ns - from_ns, message);
		else
			put_path_text(d, h, message);
	}
	tw_json_open(&d->j, '{');
	tw_json_key_text(&d->j, "message", message);
	tw_json_key_text(&d->j, "rule", f ? d->rules->rules[f->rule].id : NULL);
	put_method(d, "call", f ? f->method : h->method == own ? TW_NO_METHOD : h->method);
	put_method(d, "caller", f ? f->caller : TW_NO_METHOD);
	tw_json_key_int(&d->j, "start_ns", f ? f->start_ns : from_ns);
	tw_json_key_int(&d->j, "ns", ns);
	tw_json_close(&d->j, '}');
}

/* *ret_known false: not computed for lack of time or memory; only the cause is missing then. */
static enum tw_status find_heavy(struct tw_detecting *d, int64_t from_ns, int64_t to_ns,
        struct tw_heavy *ret, bool *ret_known, struct tw_err *err)
{
	const struct tw_heavy_query query = {d->main, from_ns, to_ns, d->is_app, &d->deadline};
	bool partial = tw_deadline_passed(&d->deadline);
	enum tw_status st = TW_OK;

	tw_arena_reset(d->scratch);
	if (!partial)
		st = tw_query_heavy(d->v.file, &query, d->scratch, ret, &partial, err);
	*ret_known = st == TW_OK && !partial;
	if (st == TW_NOMEM)
		d->cut |= TW_CUT_CAUSES;
	else if (partial)
		d->cut |= TW_CUT_TIME;
	return st == TW_NOMEM ? TW_OK : st;
}

/* null if the cause is unknown; other members remain. */
static enum tw_status put_why(
        struct tw_detecting *d, int64_t from_ns, int64_t dur_ns, uint32_t own, struct tw_err *err)
{
	const int64_t to_ns = tw_sum_ns(from_ns, dur_ns);
	struct tw_heavy h;
	bool known = false;
	enum tw_status st = TW_OK;

	if (d->main && dur_ns > 0)
		st = find_heavy(d, from_ns, to_ns, &h, &known, err);
	tw_json_key(&d->j, "cause");
	if (known)
		put_cause(d, from_ns, to_ns, own, &h);
	else
		tw_json_null(&d->j);
	return st;
}

/* --- frames --- */

static enum tw_status put_frame(
        struct tw_detecting *d, const struct tw_frame_found *f, struct tw_err *err)
{
	enum tw_status st;

	tw_json_open(&d->j, '{');
	tw_json_key_str(&d->j, "what", f->message ? TW_STR("message") : TW_STR("frame"));
	tw_json_key_bool(&d->j, "frozen", f->dur_ns > d->rules->frozen_ns);
	tw_trace_put_tid(&d->j, d->v.file, d->main ? d->main->thread_id : 0);
	TW_JSON_MEMBERS(&d->j, f, start_ns, dur_ns);
	put_method(d, "call", f->method);
	tw_json_key_text(&d->j, "display", f->display);
	st = put_why(d, f->start_ns, f->dur_ns, f->method, err);
	tw_json_close(&d->j, '}');
	return st;
}

static enum tw_status put_frames(struct tw_detecting *d, struct tw_err *err)
{
	static const char *const from[] = {NULL, "calls", "notes"};
	enum tw_status st = TW_OK;

	tw_json_key_open(&d->j, "frames", '{');
	tw_json_key_text(&d->j, "from", from[d->frames.from]);
	TW_JSON_MEMBERS(&d->j, d->rules, slow_ns, frozen_ns);
	TW_JSON_MEMBERS(&d->j, &d->frames, total, slow, frozen, messages);
	tw_json_key_open(&d->j, "list", '[');
	for (uint32_t i = 0; st == TW_OK && i < d->frames.n; i++)
		st = put_frame(d, &d->frames.list[i], err);
	tw_json_close(&d->j, ']');
	tw_json_close(&d->j, '}');
	return st;
}

/* --- app start --- */

static enum tw_status put_phase(
        struct tw_detecting *d, const struct tw_start_phase *p, struct tw_err *err)
{
	enum tw_status st;

	tw_json_open(&d->j, '{');
	TW_JSON_MEMBERS(&d->j, p, id, title);
	tw_trace_put_tid(&d->j, d->v.file, p->thread_id);
	TW_JSON_MEMBERS(&d->j, p, start_ns, dur_ns);
	put_method(d, "call", p->method);
	st = put_why(d, p->start_ns, p->dur_ns, p->method, err);
	tw_json_close(&d->j, '}');
	return st;
}

static enum tw_status put_start(struct tw_detecting *d, struct tw_err *err)
{
	const struct tw_start *s = &d->start;
	enum tw_status st = TW_OK;

	tw_json_key(&d->j, "start");
	if (s->n == 0) {
		tw_json_null(&d->j);
		return TW_OK;
	}
	tw_json_open(&d->j, '{');
	tw_json_key_str(&d->j, "kind", s->cold ? TW_STR("process") : TW_STR("activity"));
	tw_json_key_int(&d->j, "start_ns", s->start_ns);
	tw_json_key_int(&d->j, "dur_ns", s->end_ns - s->start_ns);
	tw_json_key_open(&d->j, "phases", '[');
	for (size_t i = 0; st == TW_OK && i < s->n; i++)
		st = put_phase(d, &s->phases[i], err);
	tw_json_close(&d->j, ']');
	tw_json_close(&d->j, '}');
	return st;
}

/* --- the response --- */

static void put_head(struct tw_detecting *d)
{
	tw_json_key_int_or_null(&d->j, "rules_version", d->rules_version);
	tw_json_key_int_or_null(&d->j, "main_tid", d->main ? (int64_t)d->main->tid : -1);
	tw_json_key_int(&d->j, "methods", d->v.n_methods);
	tw_json_key_int(&d->j, "unnamed", d->unnamed);
	tw_json_key_open(&d->j, "rules", '[');
	for (size_t i = 0; i < d->rules->n; i++)
		put_rule(d, i);
	tw_json_close(&d->j, ']');
	tw_json_key_open(&d->j, "findings", '[');
	for (size_t i = 0; i < d->n; i++)
		put_finding(d, &d->list[i]);
	tw_json_close(&d->j, ']');
}

static void put_cut(struct tw_detecting *d)
{
	static const char *const names[] = {
	        "time", "calls", "role_calls", "notes", "frames", "causes"};

	tw_json_key_bool(&d->j, "partial", d->cut != 0);
	tw_json_key_open(&d->j, "cut", '[');
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (d->cut >> i & 1)
			tw_json_str(&d->j, tw_str_of(names[i]));
	tw_json_close(&d->j, ']');
}

enum tw_status tw_detecting_put(struct tw_detecting *d, struct tw_err *err)
{
	enum tw_status st;

	tw_json_open(&d->j, '{');
	put_head(d);
	st = put_frames(d, err);
	if (st == TW_OK)
		st = put_start(d, err);
	put_cut(d);
	tw_json_close(&d->j, '}');
	return st;
}
