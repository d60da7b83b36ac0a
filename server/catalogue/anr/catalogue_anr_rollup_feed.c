/* catalogue_anr_rollup_feed.c - converts rows of ANRs and lock waits to additions of rollups. */
#include <string.h>

#include "server/catalogue/anr/catalogue_anr_rollup_int.h"

enum { KEY_COLUMN = 11, LOCK_COLUMN = 11, SCRATCH_BYTES = 4 << 20 };

static enum tw_status too_much(struct tw_err *err)
{
	return tw_fail(err, TW_TOO_LARGE,
	        "the response is too large; narrow the filter or the time range");
}

static const char *text_at(const struct tw_cat_query *q, int col)
{
	const char *text = tw_cat_str(q, col);

	return text ? text : "";
}

static struct tw_anr_rollup_report report_of(const struct tw_cat_query *q)
{
	return (struct tw_anr_rollup_report){text_at(q, 0), text_at(q, 1), text_at(q, 2),
	        text_at(q, 3), text_at(q, 4), text_at(q, 5), text_at(q, 6), text_at(q, 7),
	        tw_cat_int(q, 8), tw_cat_int(q, 9), tw_cat_int(q, 10)};
}

/* The part of an addition that does not depend on its waits. */
static struct tw_anr_rollup_one one_of(const struct tw_anr_rollup_report *r)
{
	struct tw_anr_rollup_one one = {.mask = 1,
	        .bit = 1,
	        .sum = {.traces = 1,
	                .first_ms = r->recorded_ms,
	                .last_ms = r->recorded_ms,
	                .holder = ""},
	        .sets = {[TW_ANR_ROLLUP_VERSIONS] = tw_distinct_hash(r->version_name)},
	        .monitor = ""};

	if (strlen(r->trace_id) <= TW_ANR_ROLLUP_ID)
		memcpy(one.sum.worst, r->trace_id, strlen(r->trace_id) + 1);
	return one;
}

enum tw_status tw_cat_feed_anrs(
        struct tw_cat_query *q, tw_anr_rollup_sink sink, void *arg, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_cat_row(q)) {
		const struct tw_anr_rollup_report r = report_of(q);
		struct tw_anr_rollup_one one = one_of(&r);

		if (r.device[0])
			one.sets[TW_ANR_ROLLUP_DEVICES] = tw_distinct_hash(r.device);
		one.sets[TW_ANR_ROLLUP_USERS] = tw_distinct_mix(r.who);
		if (!sink(arg, &r, text_at(q, KEY_COLUMN), &one) || !sink(arg, &r, "", &one))
			st = too_much(err);
	}
	return tw_cat_close_after(q, st, err);
}

/* --- locks --- */

struct wait {
	const char *name;
	struct tw_anr_rollup_one one;
};
struct trace { /* the trace whose waits are being read */
	struct tw_arena *arena;
	char id[TW_ID_BYTES];
	struct tw_anr_rollup_report report;
	struct wait waits[TW_LOCKS_MAX];
	size_t n;
};

static bool begin(struct trace *t, const struct tw_cat_query *q)
{
	const char **texts[] = {&t->report.trace_id, &t->report.app, &t->report.version_name,
	        &t->report.build_id, &t->report.scenario, &t->report.device,
	        &t->report.device_class, &t->report.os};

	tw_arena_reset(t->arena);
	t->report = report_of(q);
	t->n = 0;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		*texts[i] = tw_arena_str(t->arena, tw_str_of(*texts[i]));
		if (!*texts[i])
			return false;
	}
	memset(t->id, 0, sizeof t->id);
	memcpy(t->id, t->report.trace_id, strnlen(t->report.trace_id, sizeof t->id - 1));
	return true;
}

/* Calls of other threads 1, of main 2; reports of other threads 4, of main 8. */
static unsigned kind_of(const struct tw_cat_query *q)
{
	return 1U << (2 * (tw_cat_int(q, LOCK_COLUMN) != 0) +
	               (tw_cat_int(q, LOCK_COLUMN + 1) != 0));
}

static bool take_wait(struct trace *t, const struct tw_cat_query *q)
{
	struct wait *w = &t->waits[t->n];
	const char *monitor = tw_cat_text(q, LOCK_COLUMN + 2, t->arena);
	const char *owner = tw_cat_text(q, LOCK_COLUMN + 3, t->arena);
	const char *holder = tw_cat_text(q, LOCK_COLUMN + 4, t->arena);

	if (!monitor || !owner || !holder)
		return false;
	if (t->n == TW_LOCKS_MAX) /* the limit per trace */
		return true;
	w->name = owner[0] ? owner : monitor;
	w->one = one_of(&t->report);
	w->one.bit = kind_of(q);
	w->one.owned = owner[0] != '\0';
	w->one.monitor = monitor;
	w->one.sum.holder = holder;
	w->one.sum.waits = (uint64_t)tw_cat_int(q, LOCK_COLUMN + 5);
	w->one.sum.timed = (uint64_t)tw_cat_int(q, LOCK_COLUMN + 6);
	w->one.sum.total_ns = tw_cat_int(q, LOCK_COLUMN + 7);
	w->one.sum.max_ns = tw_cat_int(q, LOCK_COLUMN + 8);
	t->n++;
	return true;
}

/* The waits of a name, or of all with "": all kinds are known before the first is added, and the
 * trace counts once per kind. */
static bool feed_name(const struct trace *t, const char *name, tw_anr_rollup_sink sink, void *arg)
{
	unsigned mask = 0, fed = 0;
	bool fits = true;

	for (size_t i = 0; i < t->n; i++)
		if (!name[0] || strcmp(t->waits[i].name, name) == 0)
			mask |= t->waits[i].one.bit;
	for (size_t i = 0; fits && i < t->n; i++) {
		struct tw_anr_rollup_one one = t->waits[i].one;

		if (name[0] && strcmp(t->waits[i].name, name) != 0)
			continue;
		one.mask = mask;
		one.sum.traces = !(fed & one.bit);
		fed |= one.bit;
		fits = sink(arg, &t->report, name, &one);
	}
	return fits;
}

static bool is_fed(const struct trace *t, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(t->waits[k].name, t->waits[i].name) == 0)
			return true;
	return !t->waits[i].name[0];
}

static bool feed_trace(const struct trace *t, tw_anr_rollup_sink sink, void *arg)
{
	bool fits = t->n == 0 || feed_name(t, "", sink, arg);

	for (size_t i = 0; fits && i < t->n; i++)
		if (!is_fed(t, i))
			fits = feed_name(t, t->waits[i].name, sink, arg);
	return fits;
}

enum tw_status tw_cat_feed_locks(
        struct tw_cat_query *q, tw_anr_rollup_sink sink, void *arg, struct tw_err *err)
{
	struct trace *t = tw_mem_zalloc(1, sizeof *t);
	bool fits = t && (t->arena = tw_arena_new(SCRATCH_BYTES));

	while (fits && tw_cat_row(q)) {
		if (strcmp(t->id, text_at(q, 0)) != 0)
			fits = feed_trace(t, sink, arg) && begin(t, q);
		fits = fits && take_wait(t, q);
	}
	fits = fits && feed_trace(t, sink, arg);
	if (t)
		tw_arena_free(t->arena);
	tw_mem_free(t);
	return tw_cat_close_after(q, fits ? TW_OK : too_much(err), err);
}
