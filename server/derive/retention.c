#include "server/derive/retention.h"

#include <string.h>

#include "decoder/base/lookup.h"
#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_retention.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/traces/catalogue_quarantine.h"
#include "server/catalogue/traces/catalogue_trace.h"

/* A thousand years, and more bytes than a file system holds. */
enum { MAX_DAYS = 365000, QUARANTINE_MAX = 1000 };
#define MAX_COUNT (INT64_C(1) << 53)

static const struct member {
	const char *name;
	size_t offset;
	int64_t max, if_absent;
} members[] = {
        {"max_age_days", offsetof(struct tw_retention, max_age_days), MAX_DAYS, 0},
        {"max_traces", offsetof(struct tw_retention, max_traces), MAX_COUNT, 0},
        {"max_bytes", offsetof(struct tw_retention, max_bytes), MAX_COUNT, 0},
        {"uploads_max_age_days", offsetof(struct tw_retention, uploads_max_age_days), MAX_DAYS, 0},
        {"anr_max_age_days", offsetof(struct tw_retention, anr_max_age_days), MAX_DAYS, 0},
        {"decoded_max_age_days", offsetof(struct tw_retention, decoded_max_age_days), MAX_DAYS, 0},
        {"keep_first_anr", offsetof(struct tw_retention, keep_first_anr), 1, 1},
        {"keep_annotated", offsetof(struct tw_retention, keep_annotated), 1, 1},
        {"quarantine_max_traces", offsetof(struct tw_retention, quarantine_max_traces),
                QUARANTINE_MAX, 100},
        {"quarantine_max_bytes", offsetof(struct tw_retention, quarantine_max_bytes), MAX_COUNT,
                INT64_C(1) << 30},
};
enum { MEMBERS = sizeof members / sizeof *members };

static bool is_flag(const struct member *m)
{
	return m->max == 1;
}

static int64_t *member_of(struct tw_retention *r, const struct member *m)
{
	return (int64_t *)(void *)((char *)r + m->offset);
}

static struct tw_retention defaults_if_absent(void)
{
	struct tw_retention rules = {0};

	for (size_t i = 0; i < MEMBERS; i++)
		*member_of(&rules, &members[i]) = members[i].if_absent;
	return rules;
}

static struct tw_retention defaults(void)
{
	struct tw_retention rules = defaults_if_absent();

	rules.uploads_max_age_days = TW_UPLOADS_DAYS;
	rules.max_age_days = TW_TRACES_DAYS;
	return rules;
}

enum tw_status tw_retention_read(const json_t *json, struct tw_retention *ret, struct tw_err *err)
{
	struct tw_retention rules = defaults_if_absent();
	const char *name;
	json_t *value;

	if (!json_is_object(json))
		return tw_fail(err, TW_BAD_REQUEST, "the rules must be an object");
	json_object_foreach((json_t *)(uintptr_t)json, name, value)
	{
		const struct member *m = TW_LOOKUP(members, MEMBERS, name, name);
		int64_t v = (int64_t)json_integer_value(value);

		if (!m)
			return tw_fail(err, TW_BAD_REQUEST,
			        "unknown rule \"%.30s\"; the rules are max_age_days, max_traces, "
			        "max_bytes, uploads_, decoded_ and anr_max_age_days, "
			        "keep_annotated, "
			        "keep_first_anr, quarantine_max_traces and _bytes",
			        name);
		if (json_is_null(value) || (json_is_integer(value) && v == 0 && !is_flag(m)))
			continue;
		if (is_flag(m)) {
			if (!json_is_boolean(value))
				return tw_fail(
				        err, TW_BAD_REQUEST, "%s must be true or false", name);
			*member_of(&rules, m) = json_is_true(value);
			continue;
		}
		if (!json_is_integer(value) || v < 1 || v > m->max)
			return tw_fail(err, TW_BAD_REQUEST,
			        "%s must be a whole number from 1 to %lld, or null or 0 for %s",
			        name, (long long)m->max,
			        strncmp(name, "quarantine_", 11) == 0 ? "the default" : "no limit");
		*member_of(&rules, m) = v;
	}
	*ret = rules;
	return TW_OK;
}

json_t *tw_retention_json(const struct tw_retention *r)
{
	struct tw_retention rules = *r;
	json_t *json = json_object();

	for (size_t i = 0; i < MEMBERS; i++) {
		int64_t v = *member_of(&rules, &members[i]);

		(void)json_object_set_new(json, members[i].name,
		        is_flag(&members[i]) ? json_boolean(v)
		        : v                  ? json_integer((json_int_t)v)
		                             : json_null());
	}
	return json;
}

static enum tw_status check_rules(const json_t *json, struct tw_err *err)
{
	struct tw_retention rules;

	return tw_retention_read(json, &rules, err);
}

const struct tw_setting tw_retention_setting = {TW_SETTING_RETENTION, check_rules};

enum tw_status tw_retention_of(struct tw_catalogue *c, const char *project_id,
        struct tw_retention *ret, struct tw_err *err)
{
	int64_t updated_ms;
	json_t *json;
	enum tw_status st =
	        tw_setting_load(c, project_id, &tw_retention_setting, &json, &updated_ms, err);

	if (st != TW_OK)
		return st;
	if (json) {
		st = tw_retention_read(json, ret, err);
		json_decref(json);
		return st;
	}
	*ret = defaults();
	if (updated_ms) /* invalid: the defaults could delete what the project meant to keep */
		*ret = defaults_if_absent();
	return TW_OK;
}

static int64_t end_of(int64_t since_ms, int64_t days)
{
	return days ? since_ms + days * TW_DAY_MS : 0;
}

/* The earlier one; 0 means never. */
static int64_t first_of(int64_t a, int64_t b)
{
	return a && (!b || a < b) ? a : b;
}

static bool is_kept(const struct tw_retention *r, const struct tw_trace_row *row)
{
	bool is_annotated = row->title[0] || row->annotations;

	return row->pinned || row->exempt_reason[0] || (r->keep_annotated && is_annotated) ||
	       (r->keep_first_anr && row->first_anr);
}

struct tw_ends tw_retention_ends(const struct tw_retention *r, const struct tw_trace_row *row)
{
	bool anr = row->anr[0] && r->anr_max_age_days;
	struct tw_ends ends = {0};
	int64_t upload_ms;

	if (is_kept(r, row))
		return ends;
	ends.trace_ms = end_of(row->created_ms, anr ? r->anr_max_age_days : r->max_age_days);
	if (!row->has_upload)
		return ends;
	upload_ms = end_of(row->created_ms, r->uploads_max_age_days);
	if (row->state == TW_TRACE_ARCHIVED)
		ends.trace_ms = first_of(ends.trace_ms, upload_ms);
	if (row->state != TW_TRACE_READY)
		return ends;
	ends.upload_ms = upload_ms;
	ends.decoded_ms = end_of(row->ready_ms, r->decoded_max_age_days);
	return ends;
}

const char *tw_expiry_name(enum tw_expiry_why why)
{
	static const char *const names[] = {"age", "count", "bytes", "upload_age", "quarantine",
	        "anr_age", "decoded_age", "archived_age", "disk"};

	return names[why];
}

enum tw_expired tw_expiry_what(enum tw_expiry_why why)
{
	return why == TW_EXPIRY_UPLOAD    ? TW_EXPIRED_UPLOAD
	       : why == TW_EXPIRY_DECODED ? TW_EXPIRED_DECODED
	                                  : TW_EXPIRED_TRACE;
}

/* --- what is due --- */

struct due {
	struct tw_catalogue *catalogue;
	const char *project_id;
	const struct tw_retention *rules;
	int64_t now_ms;
	uint32_t limit;
	struct tw_arena *arena;
	uint64_t traces, bytes; /* that would remain; unknown without a rule for either */
	struct tw_expiry *rows;
	size_t n;
};

static struct tw_old_query query_of(const struct due *d, int64_t days)
{
	return (struct tw_old_query){.project_id = d->project_id,
	        .before_ms = days ? d->now_ms - days * TW_DAY_MS : INT64_MAX,
	        .limit = d->limit - (uint32_t)d->n,
	        .keep_annotated = d->rules->keep_annotated != 0,
	        .firsts_ms = INT64_MAX};
}

/* Traces above the age, except first traces of ANR groups that may outlive it. */
static enum tw_status aged(
        const struct due *d, int64_t days, struct tw_old_query *ret, struct tw_err *err)
{
	struct tw_old_query firsts;

	*ret = firsts = query_of(d, days);
	firsts.limit = TW_FIRSTS_KEPT;
	return d->rules->keep_first_anr ? tw_catalogue_firsts_since(d->catalogue, &firsts,
	                                          TW_FIRSTS_BYTES, d->arena, &ret->firsts_ms, err)
	                                : TW_OK;
}

static void add(struct due *d, const struct tw_old_trace *old, enum tw_expiry_why why, int64_t days)
{
	if (d->n == d->limit || TW_LOOKUP(d->rows, d->n, id, old->id))
		return;
	d->rows[d->n++] = (struct tw_expiry){.project_id = d->project_id,
	        .id = old->id,
	        .name = old->name,
	        .created_ms = old->created_ms,
	        .due_ms = end_of(old->since_ms, days),
	        .bytes = old->bytes,
	        .why = why};
	if (tw_expiry_what(why) == TW_EXPIRED_TRACE)
		d->traces--;
	d->bytes -= old->bytes < d->bytes ? old->bytes : d->bytes;
}

static enum tw_status add_aged(struct due *d, enum tw_old_which which, enum tw_expiry_why why,
        int64_t days, struct tw_err *err)
{
	struct tw_old_query of;
	struct tw_old_trace *old = NULL;
	size_t n = 0;
	enum tw_status st;

	if (!days)
		return TW_OK;
	st = aged(d, days, &of, err);
	if (st == TW_OK)
		st = tw_catalogue_oldest(d->catalogue, which, &of, d->arena, &old, &n, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		add(d, &old[i], why, days);
	return st;
}

static bool is_over(const struct due *d, enum tw_expiry_why *ret)
{
	const struct tw_retention *r = d->rules;
	bool count = r->max_traces && d->traces > (uint64_t)r->max_traces;

	*ret = count ? TW_EXPIRY_COUNT : TW_EXPIRY_BYTES;
	return count || (r->max_bytes && d->bytes > (uint64_t)r->max_bytes);
}

/* Traces to which the limits for all traces apply. */
static enum tw_old_which limited(const struct tw_retention *r)
{
	return r->anr_max_age_days ? TW_OLD_WITHOUT_ANR : TW_OLD_ALL;
}

/* The oldest may all be listed already, so that number is requested in addition. */
static enum tw_status add_over(struct due *d, struct tw_err *err)
{
	struct tw_old_query of = query_of(d, 0);
	struct tw_old_trace *old = NULL;
	enum tw_expiry_why why;
	size_t n = 0;
	enum tw_status st = TW_OK;

	of.limit = d->limit;
	if (is_over(d, &why))
		st = tw_catalogue_oldest(
		        d->catalogue, limited(d->rules), &of, d->arena, &old, &n, err);
	for (size_t i = 0; st == TW_OK && i < n && is_over(d, &why); i++)
		add(d, &old[i], why, 0);
	return st;
}

/* Single files first, then complete traces to free space: deleting the files may free enough. */
static enum tw_status add_all(struct due *d, struct tw_err *err)
{
	const struct tw_retention *r = d->rules;
	enum tw_status st = add_aged(d, TW_OLD_WITH_ANR, TW_EXPIRY_ANR, r->anr_max_age_days, err);

	if (st == TW_OK)
		st = add_aged(
		        d, TW_OLD_WITH_UPLOAD, TW_EXPIRY_UPLOAD, r->uploads_max_age_days, err);
	if (st == TW_OK)
		st = add_aged(d, TW_OLD_ARCHIVED, TW_EXPIRY_ARCHIVED, r->uploads_max_age_days, err);
	if (st == TW_OK)
		st = add_aged(d, TW_OLD_DECODED, TW_EXPIRY_DECODED, r->decoded_max_age_days, err);
	if (st == TW_OK)
		st = add_aged(d, limited(r), TW_EXPIRY_AGE, r->max_age_days, err);
	return st == TW_OK ? add_over(d, err) : st;
}

/* Deletes the oldest until the rest fits; traces being retried count, but are not deleted. */
static enum tw_status add_quarantined(struct due *d, struct tw_err *err)
{
	struct tw_quarantined *all = NULL;
	const char *cursor;
	uint64_t left = 0, bytes = 0;
	size_t n = 0;
	enum tw_status st =
	        tw_catalogue_quarantine_size(d->catalogue, d->project_id, &left, &bytes, err);

	if (st == TW_OK)
		st = tw_catalogue_quarantine(d->catalogue, d->project_id, "", QUARANTINE_MAX,
		        d->arena, &all, &n, &cursor, err);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		const struct tw_quarantined *q = &all[i];
		bool goes = TW_LOOKUP(d->rows, d->n, id, q->id) != NULL;

		if (!goes && left <= (uint64_t)d->rules->quarantine_max_traces &&
		        bytes <= (uint64_t)d->rules->quarantine_max_bytes)
			break;
		if (!goes && (q->state != TW_TRACE_FAILED || q->pinned ||
		                     (d->rules->keep_annotated && q->is_annotated)))
			continue;
		add(d,
		        &(struct tw_old_trace){q->id, q->app[0] ? q->app : q->id, q->created_ms,
		                q->first_ms, q->bytes},
		        TW_EXPIRY_QUARANTINE, 0);
		left--;
		bytes -= q->bytes;
	}
	return st;
}

enum tw_status tw_retention_due(struct tw_catalogue *c, const char *project_id,
        const struct tw_retention *rules, int64_t now_ms, uint32_t limit, struct tw_arena *a,
        struct tw_expiry **ret, size_t *ret_n, struct tw_err *err)
{
	struct due d = {c, project_id, rules, now_ms, limit, a,
	        .rows = tw_arena_alloc(a, limit, sizeof *d.rows)};
	struct tw_use use = {0};
	enum tw_status st = TW_OK;

	if (!d.rows)
		return tw_oom(err);
	if (rules->max_traces || rules->max_bytes) /* reads all rows of the project */
		st = tw_catalogue_use(c, project_id, &use, err);
	d.traces = use.traces;
	d.bytes = use.upload_bytes + use.decoded_bytes;
	if (st == TW_OK)
		st = add_all(&d, err);
	if (st == TW_OK)
		st = add_quarantined(&d, err);
	if (st == TW_OK) {
		*ret = d.rows;
		*ret_n = d.n;
	}
	return st;
}

/* --- the disk --- */

struct share { /* a project's share of the disk */
	const char *project_id;
	uint64_t bytes;
	struct tw_old_trace *old;
	size_t n, next;
};

static enum tw_status read_share(struct tw_catalogue *c, const char *project_id, uint32_t limit,
        struct tw_arena *a, struct share *ret, struct tw_err *err)
{
	struct tw_retention rules;
	struct due d = {c, project_id, &rules, 0, limit, a};
	struct tw_old_query of;
	struct tw_use use;
	enum tw_status st = tw_retention_of(c, project_id, &rules, err);

	if (st == TW_OK)
		st = tw_catalogue_use(c, project_id, &use, err);
	if (st == TW_OK)
		st = aged(&d, 0, &of, err);
	if (st == TW_OK)
		st = tw_catalogue_oldest(c, TW_OLD_ALL, &of, a, &ret->old, &ret->n, err);
	if (st == TW_OK) {
		ret->project_id = project_id;
		ret->bytes = use.upload_bytes + use.decoded_bytes;
	}
	return st;
}

/* The largest of those with traces that may be deleted; NULL: none. */
static struct share *largest(struct share *all, size_t n)
{
	struct share *most = NULL;

	for (size_t i = 0; i < n; i++)
		if (all[i].next < all[i].n && (!most || all[i].bytes > most->bytes))
			most = &all[i];
	return most;
}

static uint64_t less(uint64_t from, uint64_t bytes)
{
	return from > bytes ? from - bytes : 0;
}

static size_t choose(
        struct share *all, size_t n, uint64_t over_bytes, struct tw_expiry *rows, uint32_t limit)
{
	struct share *s;
	size_t chosen = 0;

	while (over_bytes > 0 && chosen < limit && (s = largest(all, n))) {
		const struct tw_old_trace *old = &s->old[s->next++];

		rows[chosen++] = (struct tw_expiry){.project_id = s->project_id,
		        .id = old->id,
		        .name = old->name,
		        .created_ms = old->created_ms,
		        .bytes = old->bytes,
		        .why = TW_EXPIRY_DISK};
		s->bytes = less(s->bytes, old->bytes);
		over_bytes = less(over_bytes, old->bytes);
	}
	return chosen;
}

enum tw_status tw_retention_for_disk(struct tw_catalogue *c, const struct tw_project_row *projects,
        size_t n_projects, uint64_t over_bytes, uint32_t limit, struct tw_arena *a,
        struct tw_expiry **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_expiry *rows = tw_arena_alloc(a, limit, sizeof *rows);
	struct share *all = tw_arena_alloc(a, n_projects + 1, sizeof *all);
	uint64_t bytes = 0;
	enum tw_status st = TW_OK;

	if (!rows || !all)
		return tw_oom(err);
	for (size_t i = 0; i < n_projects && st == TW_OK; i++) {
		all[i] = (struct share){0};
		st = read_share(c, projects[i].id, limit, a, &all[i], err);
		bytes += all[i].bytes;
	}
	if (st != TW_OK)
		return st;
	*ret = rows;
	*ret_n = bytes < over_bytes ? 0 : choose(all, n_projects, over_bytes, rows, limit);
	return TW_OK;
}
