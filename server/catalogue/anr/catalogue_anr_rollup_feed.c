/* catalogue_anr_rollup_feed.c - converts rows of ANRs and lock waits to additions of rollups. */
#include <stdio.h>
#include <string.h>

#include "decoder/base/lookup.h"
#include "server/catalogue/anr/catalogue_anr_rollup_int.h"
#include "server/stats/anr_rollup.h"

enum { KEY_COLUMN = 11, LOCK_COLUMN = 11, SCRATCH_BYTES = 4 << 20 };

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
			st = tw_anr_fail_too_large(err);
	}
	return tw_cat_close_after(q, st, err);
}

/* --- locks --- */

struct wait {
	const char *name, *owner;
	struct tw_anr_rollup_one one;
};
struct trace { /* the trace whose waits are being read */
	struct tw_arena *arena;
	char id[TW_ID_BYTES];
	struct tw_anr_rollup_report report;
	struct wait waits[TW_LOCKS_MAX];
	size_t n;
};

/* TW_ANR_ROLLUP_COLUMNS */
#define OF_REPORT(member) TW_FIELD(struct tw_anr_rollup_report, member, "h." #member, NULL)
static const struct tw_fields report_fields = TW_FIELDS_OF(OF_REPORT(trace_id), OF_REPORT(app),
        OF_REPORT(version_name), OF_REPORT(build_id), OF_REPORT(scenario), OF_REPORT(device),
        OF_REPORT(device_class), OF_REPORT(os), OF_REPORT(day), OF_REPORT(recorded_ms),
        OF_REPORT(who));
/* TW_ANR_ROLLUP_LOCK_COLUMNS after the kind */
#define OF_WAIT(member, column) TW_FIELD(struct wait, member, "l." column, NULL)
static const struct tw_fields wait_fields = TW_FIELDS_OF(OF_WAIT(one.monitor, "monitor"),
        OF_WAIT(owner, "owner"), OF_WAIT(one.sum.holder, "holder"), OF_WAIT(one.sum.waits, "waits"),
        OF_WAIT(one.sum.timed, "timed"), OF_WAIT(one.sum.total_ns, "total_ns"),
        OF_WAIT(one.sum.max_ns, "max_ns"));

static bool begin(struct trace *t, const struct tw_cat_query *q)
{
	tw_arena_reset(t->arena);
	t->n = 0;
	if (tw_row_read(q, 0, &report_fields, t->arena, &t->report) < 0)
		return false;
	(void)snprintf(t->id, sizeof t->id, "%s", t->report.trace_id);
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

	if (t->n == TW_LOCKS_MAX) /* the limit per trace */
		return true;
	w->one = one_of(&t->report);
	w->one.bit = kind_of(q);
	if (tw_row_read(q, LOCK_COLUMN + 2, &wait_fields, t->arena, w) < 0)
		return false;
	w->one.owned = w->owner[0] != '\0';
	w->name = w->one.owned ? w->owner : w->one.monitor;
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

static bool feed_trace(const struct trace *t, tw_anr_rollup_sink sink, void *arg)
{
	bool fits = t->n == 0 || feed_name(t, "", sink, arg);

	for (size_t i = 0; fits && i < t->n; i++)
		if (t->waits[i].name[0] && !TW_LOOKUP(t->waits, i, name, t->waits[i].name))
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
	return tw_cat_close_after(q, fits ? TW_OK : tw_anr_fail_too_large(err), err);
}
